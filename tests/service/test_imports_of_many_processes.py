"""Over a shared store every process tells of an import, though one alone reads the file."""

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

from connectors.bank_csv.profile import Profile
from handlers.clock import Clock
from handlers.operations import imports
from handlers.sync.concurrency import ImportLane
from handlers.sync.uploaded_files import ENDED, FileImport, UploadedFiles
from storage import users
from storage.database import Database, StoreUnavailable
from storage.importing import file_imports
from storage.importing.file_imports import SharedImport
from tests.conftest import NOW

CSV = "Date,Description,Amount,Currency\n2026-03-02,Coffee,-3.50,EUR\n"


class Processes:
    """Two of them, `here` and `there`, of which the files wait until they are let go."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.clock = Clock(ZoneInfo("UTC"))
        self.let_go = threading.Event()
        self.here, self.there = (self._uploads(database) for _ in range(2))
        self.user = users.add(
            database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW
        )
        self._file = folder / "a.csv"
        self._file.write_text(CSV)

    def begin(self, render: Any = imports._encoded) -> FileImport:
        return self.here.begin(
            self.user, self._file.open("rb"), name="a.csv", choice=None, is_dry_run=True, render=render
        )

    def told(self, report: FileImport) -> tuple[str, str | None] | None:
        """Status and error, as the other process tells them."""
        shared = self.there.elsewhere(self.user.id, report.id)
        if shared is None:
            return None
        answer = json.loads(shared.answer)
        assert shared.is_done is (answer["status"] == "done")
        return answer["status"], answer["error"]

    def forward(self, seconds: float) -> None:
        self.clock.offset += timedelta(seconds=seconds)

    def _uploads(self, database: Database) -> UploadedFiles:
        def profiles() -> Sequence[Profile]:
            self.let_go.wait(30)
            return ()

        return UploadedFiles(database, self.clock, ImportLane(), profiles=profiles, after_import=print)


@pytest.fixture
def processes(database: Database, tmp_path: Path) -> Processes:
    return Processes(database, tmp_path)


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("http.uploads")
def test_an_import_is_told_by_every_process_until_it_is_forgotten_by_one(processes: Processes) -> None:
    report = processes.begin()
    assert processes.told(report) == ("running", None)
    processes.let_go.set()
    report.ended.result(30)
    assert processes.told(report) == ("done", None)
    processes.there.forget(processes.user.id, report.id)
    assert processes.told(report) is None
    processes.here.forget(processes.user.id, report.id)
    assert processes.here.find(processes.user.id, report.id) is None


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("http.uploads")
def test_an_import_is_answered_by_a_process_that_did_not_take_it(processes: Processes) -> None:
    report = processes.begin()
    processes.let_go.set()
    report.ended.result(30)
    services: Any = SimpleNamespace(uploads=processes.there)
    request: Any = SimpleNamespace(principal=SimpleNamespace(user_id=processes.user.id, coverage=None))
    answer = asyncio.run(imports.get_import(services, request, id=report.id))
    told = json.loads(answer.body)
    assert (told["importId"], told["status"], told["error"]) == (report.id, "done", None)
    assert answer.headers == {"content-type": "application/json"}


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("http.uploads")
def test_a_process_that_says_nothing_for_a_minute_has_ended(processes: Processes) -> None:
    report = processes.begin()
    processes.forward(59)
    processes.here.renew()
    processes.forward(59)
    assert processes.told(report) == ("running", None)
    processes.forward(2)
    assert processes.told(report) == ("done", ENDED)
    processes.let_go.set()
    report.ended.result(30)


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("http.uploads")
def test_an_import_whose_machine_is_away_keeps_no_other_from_being_said_to_go_on(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, other = processes.begin(), processes.begin()
    renew = file_imports.renew

    def renewed(session: Database, *, id_: str, **named: Any) -> None:
        if id_ == away.id:
            raise StoreUnavailable
        renew(session, id_=id_, **named)

    monkeypatch.setattr(file_imports, "renew", renewed)
    processes.forward(59)
    processes.here.renew()
    processes.forward(2)
    assert (processes.told(away), processes.told(other)) == (("done", ENDED), ("running", None))
    processes.let_go.set()
    for report in (away, other):
        report.ended.result(30)


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("http.uploads")
@pytest.mark.parametrize("failure", [StoreUnavailable, ZeroDivisionError])
def test_an_end_that_cannot_be_told_to_others_is_told_here(
    processes: Processes, caplog: pytest.LogCaptureFixture, failure: type[Exception]
) -> None:
    def told_once(report: FileImport) -> bytes:
        if report.is_done:
            raise failure
        return imports._encoded(report)

    report = processes.begin(told_once)
    processes.let_go.set()
    report.ended.result(30)
    assert processes.here.find(processes.user.id, report.id) is report
    assert caplog.messages == [f"the end of import {report.id} could not be told to other processes"]


@pytest.mark.requirement("http.uploads")
@pytest.mark.parametrize(("looks", "is_done"), [(1, True), (3, True), (99, False)])
def test_an_import_elsewhere_is_waited_for_as_long_as_one_here(
    monkeypatch: pytest.MonkeyPatch, looks: int, is_done: bool
) -> None:
    seen: list[SharedImport] = []

    def elsewhere(_user_id: str, _import_id: str) -> SharedImport:
        seen.append(SharedImport(answer="{}", is_done=len(seen) + 1 >= looks, alive_at=NOW))
        return seen[-1]

    monkeypatch.setattr(imports, "LOOK_EVERY", 0.001)
    monkeypatch.setattr(imports, "ANSWER_WITHIN", 0.005)
    services: Any = SimpleNamespace(uploads=SimpleNamespace(elsewhere=elsewhere))
    told = asyncio.run(imports._told_elsewhere(services, "u", "i"))
    assert told is seen[-1]
    assert (len(seen), told.is_done) == (min(looks, 5), is_done)
