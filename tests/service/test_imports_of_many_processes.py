"""Every process of a store, and its next start, reports on an import, though one alone reads the file."""

import asyncio
import json
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from auth.principal import PAGE, Principal
from auth.scopes import ALL_SCOPES
from connectors.bank_csv.profile import Profile
from handlers.operations import imports
from handlers.web.call import json_bytes
from handlers.work.clock import Clock
from handlers.work.sync.concurrency import ImportLane
from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.leases import Leases
from handlers.work.sync.statement_files import ENDED, GIVEN_UP, FileImport, UploadedFiles
from storage import jobs, users
from storage.database import Database, StoreUnavailable
from storage.importing import file_imports
from storage.importing.file_imports import StoredReport
from storage.jobs import Leased
from tests.conftest import NOW
from tests.engines import OpenStore

CSV = "Date,Description,Amount,Currency\n2026-03-02,Coffee,-3.50,EUR\n"


def rendered(report: FileImport) -> bytes:
    return json_bytes(imports.file_import(report))


class Processes:
    """Two of them, `here` and `there`, of which the files wait until they are let go."""

    def __init__(self, database: OpenStore, folder: Path) -> None:
        self.clock = Clock(ZoneInfo("UTC"))
        self.let_go = threading.Event()
        self.leases = Leases(database, self.clock, threading.Event())
        self.here = self._uploads(database, self.leases)
        self.there = self._uploads(database, Leases(database, self.clock, threading.Event()))
        self.user = users.add(
            database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW
        )
        who = Principal(
            user_id=self.user.id, client_id=PAGE, scopes=frozenset(ALL_SCOPES), grant_id=None, has_subscription=True
        )
        self.request: Any = SimpleNamespace(principal=who)
        self._file = folder / "a.csv"
        self._file.write_text(CSV)

    def begin(self, render: Any = rendered) -> FileImport:
        return self.here.begin(
            self.user,
            self._file.open("rb"),
            name="a.csv",
            choice=None,
            layout=None,
            is_dry_run=True,
            may_say=(),
            render=render,
        )

    def told(self, report: FileImport) -> tuple[str, str | None] | None:
        """Status and error, as the other process tells them."""
        found = self.there.find(self.user.id, report.id)
        if found is None:
            return None
        answer = json.loads(found.answer)
        assert found.is_done is (answer["status"] == "done")
        return answer["status"], answer["error"]

    def forward(self, seconds: float) -> None:
        self.clock.offset += timedelta(seconds=seconds)

    def _uploads(self, database: OpenStore, leases: Leases) -> UploadedFiles:
        def profiles(_: str) -> Sequence[Profile]:
            self.let_go.wait(60)
            return ()

        return UploadedFiles(database, self.clock, ImportLane(), leases, profiles=profiles, after_import=print)


@pytest.fixture
def processes(database: OpenStore, tmp_path: Path) -> Processes:
    return Processes(database, tmp_path)


@pytest.mark.requirement("imports.leases")
def test_an_import_is_told_by_every_process_until_it_is_forgotten_by_one(processes: Processes) -> None:
    report = processes.begin()
    assert processes.told(report) == ("running", None)
    processes.let_go.set()
    report.ended.result(60)
    assert processes.told(report) == ("done", None)
    processes.there.forget(processes.user.id, report.id)
    assert processes.told(report) is None
    assert processes.here.find(processes.user.id, report.id) is None


@pytest.mark.requirement("http.uploads")
def test_an_import_is_answered_by_a_process_that_did_not_take_it(processes: Processes, database: OpenStore) -> None:
    report = processes.begin()
    processes.let_go.set()
    report.ended.result(60)
    services: Any = SimpleNamespace(of=database.of, uploads=processes.there)
    answer = asyncio.run(imports.get_import(services, processes.request, id=report.id))
    told = answer.body
    assert (told["importId"], told["status"], told["error"]) == (report.id, "done", None)
    assert answer.headers == {}


@pytest.mark.requirement("sync.turns")
def test_a_preview_that_another_process_has_taken_ends_when_it_is_deleted_here(
    processes: Processes, database: OpenStore
) -> None:
    preview = processes.begin()
    services: Any = SimpleNamespace(
        of=database.of, user=lambda _: processes.user, clock=processes.clock, uploads=processes.there
    )
    assert imports.undo_import(services, processes.request, id=preview.id) == {
        "added": 0,
        "removed": 0,
        "accountsGone": (),
    }
    assert processes.told(preview) is None
    processes.leases.renew()  # as it does three times a minute
    processes.let_go.set()
    preview.ended.result(60)
    assert preview.error == GIVEN_UP


@pytest.mark.requirement("imports.leases")
def test_a_process_that_says_nothing_for_a_minute_has_ended(processes: Processes) -> None:
    report = processes.begin()
    processes.forward(59)
    processes.leases.renew()
    processes.forward(59)
    assert processes.told(report) == ("running", None)
    processes.forward(2)
    assert processes.told(report) == ("done", ENDED)
    processes.let_go.set()
    report.ended.result(60)


@pytest.mark.requirement("http.uploads")
def test_an_import_whose_machine_is_away_keeps_no_other_from_being_said_to_go_on(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, other = processes.begin(), processes.begin()
    renew = jobs.renew

    def renewed(session: Database, work: Leased, **named: Any) -> bool:
        if work.id == away.id:
            raise StoreUnavailable
        return renew(session, work, **named)

    monkeypatch.setattr(jobs, "renew", renewed)
    processes.forward(59)
    processes.leases.renew()
    processes.forward(2)
    assert (processes.told(away), processes.told(other)) == (("done", ENDED), ("running", None))
    processes.let_go.set()
    for report in (away, other):
        report.ended.result(60)


@pytest.mark.requirement("http.uploads")
@pytest.mark.parametrize("failure", [StoreUnavailable, ZeroDivisionError])
def test_an_end_that_cannot_be_kept_is_logged_and_soon_told_as_the_end_of_the_process(
    processes: Processes, caplog: pytest.LogCaptureFixture, failure: type[Exception]
) -> None:
    def told_once(report: FileImport) -> bytes:
        if report.is_done:
            raise failure
        return rendered(report)

    report = processes.begin(told_once)
    processes.let_go.set()
    report.ended.result(60)
    assert (report.is_done, report.error) == (True, None)
    assert caplog.messages == [f"the end of import {report.id} could not be kept"]
    assert processes.told(report) == ("running", None)
    processes.forward(60)
    assert processes.told(report) == ("done", ENDED)


@pytest.mark.requirement("decision 152")
def test_an_end_during_which_the_store_was_away_is_told_as_soon_as_it_answers(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, ended = file_imports.end, threading.Event()

    def ends(*given: Any, **named: Any) -> None:
        if not ended.is_set():
            raise StoreUnavailable
        end(*given, **named)

    monkeypatch.setattr("handlers.work.sync.leases.END_EVERY", 0.01)
    monkeypatch.setattr(file_imports, "end", ends)
    report = processes.begin()
    processes.let_go.set()
    report.ended.result(60)
    assert (report.is_done, report.error) == (True, None), "who sent the file waits no longer"
    assert processes.told(report) == ("running", None)
    processes.forward(61)
    found = processes.here.find(processes.user.id, report.id)
    assert found is not None
    assert not found.is_done, "the process that has read the file lives, though it could not renew its lease"
    ended.set()
    [trying] = [each for each in threading.enumerate() if each.name == "file import"]
    trying.join(60)
    assert processes.told(report) == ("done", None)


@pytest.mark.requirement("decision 152")
def test_an_import_whose_process_ends_is_waited_for_and_one_that_takes_too_long_is_told_to_be_sent_again_at_once(
    processes: Processes, database: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SyncEngine(database, {}, processes.clock, cooldown=timedelta(0), after_import=print)
    engine.leases = processes.leases
    report = processes.begin()
    monkeypatch.setattr("handlers.work.sync.engine.STOP_WITHIN", 0.01)
    assert not engine.close(processes.here.at_work)
    assert processes.told(report) == ("done", ENDED)
    monkeypatch.setattr("handlers.work.sync.engine.STOP_WITHIN", 60)
    processes.let_go.set()
    assert engine.close(processes.here.at_work)
    assert processes.told(report) == ("done", None)


@pytest.mark.requirement("decision 152")
@pytest.mark.parametrize("is_silent", [False, True])
@pytest.mark.sampled
def test_a_process_that_ends_gives_back_what_it_can_though_a_machine_is_away_or_silent(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    away, other = processes.begin(), processes.begin()
    give_back = jobs.give_back

    def given_back(session: Database, work: Leased, **named: Any) -> None:
        if work.id == away.id:
            assert not is_silent or processes.let_go.wait(60)
            raise StoreUnavailable
        give_back(session, work, **named)

    monkeypatch.setattr(jobs, "give_back", given_back)
    processes.leases.give_back_held()
    assert (processes.told(away), processes.told(other)) == (("running", None), ("done", ENDED))
    processes.let_go.set()
    for report in (away, other):
        report.ended.result(60)


@pytest.mark.requirement("http.uploads")
@pytest.mark.parametrize(("looks", "is_done"), [(1, True), (3, True), (99, False)])
def test_an_import_is_waited_for_until_it_is_done_or_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, looks: int, is_done: bool
) -> None:
    seen: list[StoredReport] = []

    def find(_user_id: str, _import_id: str) -> StoredReport:
        seen.append(StoredReport(answer="{}", is_done=len(seen) + 1 >= looks, is_held=True))
        return seen[-1]

    monkeypatch.setattr(imports, "LOOK_EVERY", 0.001)
    monkeypatch.setattr(imports, "ANSWER_WITHIN", 60 if is_done else 0.005)
    services: Any = SimpleNamespace(uploads=SimpleNamespace(find=find))
    told = asyncio.run(imports._wait_for_report(services, "u", "i"))
    assert told is seen[-1]
    assert told.is_done is is_done
    assert len(seen) == looks or not is_done
