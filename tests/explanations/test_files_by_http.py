"""POST /imports over the real application: previewed, stored, read again, taken back, refused in a sentence."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from io import BufferedReader
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from polars.exceptions import PanicException
from starlette.testclient import TestClient

from auth.principal import Principal
from auth.scopes import ALL_SCOPES
from connectors.bank_csv.layouts import UNSIGNED
from handlers.operations.imports import create_import
from handlers.web.errors import BadRequest
from handlers.web.request import Request
from handlers.work.clock import Clock
from handlers.work.sync import statement_files
from handlers.work.sync.concurrency import Closed, ImportLane
from handlers.work.sync.statement_files import (
    ASKED_WITHIN,
    AT_ONCE_PER_USER,
    CHANGED,
    GIVEN_UP,
    INTERNAL,
    STOPPED,
    FileImport,
    TooManyFiles,
    UploadedFiles,
)
from storage import users
from storage.boundary import undo_on_failure
from storage.database import Conflict, StoreFull, StoreUnavailable
from storage.importing import file_imports
from storage.importing.batches import ReadBatch
from storage.users import User
from tests.explanations.conftest import Holder, Service

CSV = """Buchungstag;Valuta;Auftraggeber/Empfänger;Verwendungszweck;Betrag;Währung;IBAN
17.11.2026;17.11.2026;Rewe;Einkauf;-12,99;EUR;DE02120300000000202051
18.11.2026;18.11.2026;Employer;Lohn;2500,00;EUR;DE02120300000000202051
19.11.2026;19.11.2026;Stadtwerke;Strom;-80,00;EUR;DE02120300000000202051
"""
MT940 = """:20:STARTUMSE
:25:12030000/0000202051
:28C:00001/001
:60F:C261116EUR100,00
:61:2611171117D12,99N029NONREF
:86:166?00EINKAUF?20Milch?32Rewe
:61:2611181118C50,00N051NONREF
:86:166?00GUTSCHRIFT?20Danke?32Eva
:62F:C261118EUR137,01
-
"""


def writer(holder: Holder) -> TestClient:
    return holder.service.client(holder.user.id, frozenset(ALL_SCOPES))


def send(client: TestClient, content: bytes | str, name: str = "march.sta", **query: str) -> Any:
    return client.post(
        "/imports",
        params={"filename": name, **query},
        content=content if isinstance(content, bytes) else content.encode(),
        headers={"Content-Type": "application/octet-stream"},
    )


def sent(client: TestClient, content: bytes | str, **query: str) -> dict[str, Any]:
    """What came of a file, however long this machine takes."""
    answer = send(client, content, **query)
    assert answer.status_code in (200, 202), answer.text
    return told(client, answer.json())


def told(client: TestClient, report: dict[str, Any]) -> dict[str, Any]:
    """What came of a file that was sent."""
    while report["status"] == "running":
        report = client.get(f"/imports/{report['importId']}").json()
    return report


@pytest.mark.requirement("page.imports")
def test_a_file_is_previewed_and_nothing_is_stored(holder: Holder) -> None:
    client = writer(holder)
    found = sent(client, MT940, dryRun="true")
    assert holder.get("/accounts") == {"accounts": []}
    assert client.get("/imports").json() == {"imports": []}
    (told,) = found.pop("statements")
    (account,) = found.pop("accountIds")
    assert found == {
        "importId": found["importId"],
        "status": "done",
        "isDryRun": True,
        "fileName": "march.sta",
        "format": "mt940",
        "error": None,
        "new": 2,
        "known": 0,
        "warnings": [],
        "layouts": [],
        "candidates": [],
        "overlap": None,
    }
    assert account.startswith("acc_")
    assert told == {
        "iban": "DE02120300000000202051",
        "accountName": told["accountName"],
        "currency": "EUR",
        "rows": 2,
        "bookings": 2,
        "pending": 0,
        "firstDay": "2026-11-17",
        "lastDay": "2026-11-18",
        "opening": 100.0,
        "closing": 137.01,
        "closingDate": "2026-11-18",
        "addsUp": True,
        "firstRows": [
            {
                "bookingDate": "2026-11-17",
                "amount": -12.99,
                "currency": "EUR",
                "counterpartName": "Rewe",
                "purpose": "Milch",
            },
            {
                "bookingDate": "2026-11-18",
                "amount": 50.0,
                "currency": "EUR",
                "counterpartName": "Eva",
                "purpose": "Danke",
            },
        ],
    }


@pytest.mark.requirement("page.imports")
@pytest.mark.requirement("import.guesses")
def test_what_was_guessed_of_a_file_is_told_with_it(holder: Holder) -> None:
    found = sent(writer(holder), "Date,Payee,Amount\n2026-03-01,Baker,-3.50\n", dryRun="true")
    assert found["layouts"] == [
        {
            "origin": "guessed",
            "hasHeader": True,
            "columns": [
                {"name": "Date", "field": "date", "example": "2026-03-01"},
                {"name": "Payee", "field": "name", "example": "Baker"},
                {"name": "Amount", "field": "amount", "example": "-3.50"},
            ],
            "sign": "written",
            "currency": "EUR",
            "currencySource": "assumed",
            "decimalMark": ".",
            "dateFormats": ["YYYY-MM-DD"],
            "profile": json.dumps(
                {
                    "header": ["date", "payee", "amount"],
                    "columns": {"date": "date", "name": "payee", "amount": "amount"},
                    "date": ["YYYY-MM-DD"],
                    "decimal": ".",
                }
            ),
        }
    ]
    assert found["warnings"] == [
        'Guessed: booking date from "Date", amount from "Amount", payee or payer from "Payee"; signs as written; '
        "currency EUR assumed, as the file names none."
    ]
    assert (found["error"], found["new"]) == (None, 1)
    unsure = sent(writer(holder), "Date,Payee,Amount\n2026-03-01,Baker,3.50\n")
    assert (unsure["error"], unsure["layouts"][0]["sign"]) == (UNSIGNED, "unknown")
    assert [row["amount"] for each in unsure["statements"] for row in each["firstRows"]] == [3.5]
    assert holder.get("/accounts") == {"accounts": []}


@pytest.mark.requirement("page.imports")
def test_a_file_is_stored_once_listed_read_and_taken_back(holder: Holder) -> None:
    client = writer(holder)
    first = sent(client, MT940)
    assert (first["new"], first["known"], first["isDryRun"]) == (2, 0, False)
    again = sent(client, MT940, filename="again.sta")
    assert (again["new"], again["known"]) == (0, 2)
    (account,) = holder.get("/accounts")["accounts"]
    assert (account["balance"], [account["id"]]) == (137.01, first["accountIds"])
    assert holder.get("/transactions")["pagination"]["total"] == 2
    assert client.get(f"/imports/{first['importId']}").json() == first
    listed = client.get("/imports").json()["imports"]
    assert [(each["importId"], each["fileNames"], each["new"], each["source"]) for each in listed] == [
        (again["importId"], ["again.sta"], 0, "Statement files"),
        (first["importId"], ["march.sta"], 2, "Statement files"),
    ]
    assert client.delete(f"/imports/{again['importId']}").json() == {"removed": 0, "added": 0, "accountsGone": []}
    gone = client.delete(f"/imports/{first['importId']}")
    assert gone.json() == {"removed": 2, "added": 0, "accountsGone": first["accountIds"]}
    assert holder.get("/accounts") == {"accounts": []}
    refused = client.delete(f"/imports/{first['importId']}")
    assert (refused.status_code, refused.json()) == (404, {"error": "Import not found"})


@pytest.mark.requirement("page.imports")
def test_a_file_that_comes_again_is_told_as_before_and_brings_nothing(holder: Holder) -> None:
    client = writer(holder)
    first = sent(client, MT940)
    again, tried = sent(client, MT940), sent(client, MT940, dryRun="true")
    counts = {"new": 0, "known": 2}
    assert again == {**first, "importId": again["importId"], **counts}
    assert tried == {**first, "importId": tried["importId"], "isDryRun": True, **counts}
    assert [client.delete(f"/imports/{each['importId']}").status_code for each in (again, first)] == [200, 200]
    assert (sent(client, MT940)["new"], holder.get("/transactions")["pagination"]["total"]) == (2, 2)


@pytest.mark.requirement("page.imports")
def test_a_preview_and_a_refused_file_brought_nothing_and_are_forgotten_when_taken_back(holder: Holder) -> None:
    client = writer(holder)
    for told in (sent(client, MT940, dryRun="true"), sent(client, b"no statement")):
        nothing = {"removed": 0, "added": 0, "accountsGone": []}
        assert client.delete(f"/imports/{told['importId']}").json() == nothing
        assert client.get(f"/imports/{told['importId']}").status_code == 404
        assert client.delete(f"/imports/{told['importId']}").status_code == 404


@pytest.mark.requirement("page.imports")
def test_an_import_whose_report_is_forgotten_is_told_from_what_it_brought(holder: Holder) -> None:
    client = writer(holder)
    first = sent(client, MT940)
    holder.service.services.everybody.execute("DELETE FROM file_imports WHERE id = $1", first["importId"])
    told = client.get(f"/imports/{first['importId']}").json()
    assert (told["fileName"], told["new"], told["status"], told["statements"]) == ("march.sta", 2, "done", [])
    assert client.get("/imports/syn_unknown").status_code == 404


@pytest.mark.requirement("page.imports")
def test_nobody_reads_or_takes_back_another_ones_import(demo_service: Service, holder: Holder) -> None:
    first = sent(writer(holder), MT940)
    stranger = writer(demo_service.newcomer())
    assert stranger.get(f"/imports/{first['importId']}").status_code == 404
    assert stranger.delete(f"/imports/{first['importId']}").status_code == 404
    assert writer(holder).get(f"/imports/{first['importId']}").status_code == 200


@pytest.mark.requirement("page.imports")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"hello", "Not a bank statement in a known format"),
        (b"<?xml version='1.0'?><Document", ""),
        (bytes(range(256)), ""),
        (b" \n", "The file is empty."),
    ],
)
def test_what_is_no_statement_is_refused_in_a_sentence(content: bytes, sentence: str, holder: Holder) -> None:
    for dry_run in ("true", "false"):
        found = sent(writer(holder), content, dryRun=dry_run)
        assert found["error"].startswith(sentence)
        assert found["error"].endswith((".", ")."))
        assert (found["statements"], found["new"]) == ([], 0)


@pytest.mark.requirement("page.imports")
def test_a_file_that_does_not_say_its_account_gets_a_choice(holder: Holder) -> None:
    client = writer(holder)
    (giro,) = sent(client, MT940)["accountIds"]
    nameless = CSV.replace(";IBAN", "").replace(";DE02120300000000202051", "")
    (other,) = sent(client, nameless, filename="a.csv", accountId="new")["accountIds"]
    unclear = sent(client, nameless.replace("17.11", "02.11"), filename="b.csv", dryRun="true")
    assert unclear["error"].startswith("The file does not say which account it is about")
    assert [each["accountId"] for each in unclear["candidates"]] == [other]
    chosen = sent(client, nameless.replace("17.11", "02.11"), filename="b.csv", dryRun="true", accountId=giro)
    assert (chosen["error"], chosen["accountIds"]) == (None, [giro])
    wrong = send(client, nameless, accountId="acc_unknown")
    assert wrong.status_code == 400
    assert wrong.json()["error"].startswith("accountId: is not one of your accounts")


@pytest.mark.requirement("page.imports")
def test_a_file_about_a_hidden_account_tells_an_app_that_may_see_none_no_more_than_the_file(holder: Holder) -> None:
    page, app = writer(holder), holder.service.client(holder.user.id, frozenset(ALL_SCOPES) - {"write:accounts"})
    made = sent(page, MT940)["importId"]
    (hidden,) = holder.account_ids()
    assert app.get("/imports").json() == page.get("/imports").json()
    assert page.patch(f"/accounts/{hidden}", json={"isHidden": True}).is_success
    assert app.get("/accounts/hidden").status_code == 403
    of_page, of_app = (sent(client, MT940, dryRun="true") for client in (page, app))
    assert (of_page["new"], of_page["known"], of_page["accountIds"]) == (0, 2, [hidden])
    assert (of_app["new"], of_app["known"], of_app["accountIds"]) == (2, 0, [])
    assert send(app, MT940, dryRun="true", accountId=hidden).json()["error"].startswith("accountId: is not one of")
    assert [each["importId"] for each in page.get("/imports").json()["imports"]] == [made]
    assert app.get("/imports").json() == {"imports": []}
    assert app.get(f"/imports/{made}").json()["accountIds"] == []
    assert app.delete(f"/imports/{made}").status_code == 404
    holder.service.services.everybody.execute("DELETE FROM file_imports WHERE id = $1", made)
    assert app.get(f"/imports/{made}").status_code == 404
    assert page.delete(f"/imports/{made}").json()["accountsGone"] == [hidden]


@pytest.mark.requirement("page.imports")
def test_hidden_accounts_are_no_choice_for_an_app_that_may_see_none(holder: Holder) -> None:
    page, app = writer(holder), holder.service.client(holder.user.id, frozenset(ALL_SCOPES) - {"write:accounts"})
    nameless = CSV.replace(";IBAN", "").replace(";DE02120300000000202051", "")
    (hidden,) = sent(page, nameless)["accountIds"]
    assert page.patch(f"/accounts/{hidden}", json={"isHidden": True}).is_success
    october = nameless.replace(".11.", ".10.")
    of_page, of_app = (sent(client, october, dryRun="true") for client in (page, app))
    assert [each["accountId"] for each in of_page["candidates"]] == [hidden]
    assert of_app["candidates"] == []


@pytest.mark.requirement("page.imports")
def test_what_stands_in_another_account_already_is_told(holder: Holder) -> None:
    client = writer(holder)
    (giro,) = sent(client, CSV, filename="a.csv")["accountIds"]
    nameless = CSV.replace(";IBAN", "").replace(";DE02120300000000202051", "")
    found = sent(client, nameless, filename="b.csv", dryRun="true", accountId="new")
    assert found["overlap"] == {"accountId": giro, "bookings": 3}

    def warnings() -> list[str]:
        return [text for each in client.get("/connections").json()["connections"] for text in each["warnings"]]

    sent(client, nameless, filename="b.csv", accountId="new")
    (asked,) = client.get("/accounts/hidden").json()["accounts"]
    assert (asked["isHidden"], asked["perhapsSameAs"]) == (True, giro)
    assert [each["id"] for each in client.get("/accounts").json()["accounts"]] == [giro]
    assert "Is this the same account as" in warnings()[0]
    shown = client.patch(f"/accounts/{asked['id']}", json={"isHidden": False}).json()
    assert (shown["isHidden"], shown["perhapsSameAs"]) == (False, None)
    assert warnings() == []


@pytest.mark.requirement("page.imports")
@pytest.mark.long
def test_what_takes_long_is_polled_and_only_so_many_files_are_taken_at_once(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.operations.imports.ANSWER_WITHIN", 0.05)
    client, lane = writer(holder), holder.service.services.sync_engine.import_lane
    with lane.turn(holder.user.id):
        waiting = [send(client, MT940, filename=f"{number}.sta") for number in range(AT_ONCE_PER_USER)]
        assert [answer.status_code for answer in waiting] == [202] * AT_ONCE_PER_USER
        assert {answer.json()["status"] for answer in waiting} == {"running"}
        polled = client.get(waiting[0].headers["location"].removeprefix("/api/v1"))
        assert (polled.json()["status"], polled.headers["retry-after"]) == ("running", "1")
        running = client.delete(f"/imports/{waiting[0].json()['importId']}")
        assert (running.status_code, running.json()["error"]) == (
            409,
            "This import has not ended yet. Try again when it has.",
        )
        refused = send(client, MT940)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    for answer in waiting:
        found = told(client, answer.json())
        assert (found["status"], found["new"] + found["known"], found["error"]) == ("done", 2, None)


@pytest.mark.requirement("sync.turns")
def test_a_user_of_whom_nothing_is_at_work_finds_a_place_however_many_files_others_have_sent(
    holder: Holder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(statement_files, "AT_ONCE", 2)
    uploads, lane = holder.service.services.uploads, holder.service.services.sync_engine.import_lane
    (tmp_path / "a.sta").write_text(MT940)

    def begun(user: User) -> FileImport:
        file = (tmp_path / "a.sta").open("rb")  # the import closes it
        with undo_on_failure(file.close):
            return uploads.begin(
                user,
                file,
                name="a.sta",
                choice=None,
                layout=None,
                is_dry_run=True,
                may_say=(),
                render=lambda _: b"{}",
            )

    other = replace(holder.user, id="another")
    with lane.turn(holder.user.id), lane.turn(other.id, size=1):
        reports = [begun(holder.user), begun(holder.user), begun(other)]
        for full in (holder.user, other):
            with pytest.raises(TooManyFiles):
                begun(full)
    for report in reports:
        report.ended.result(timeout=60)


class Given:
    """A preview that is being read: what the parsing process says is held back."""

    def __init__(self, holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("handlers.operations.imports.ANSWER_WITHIN", 0.5)
        monkeypatch.setattr(FileImport, "read", self._read)
        self.reading = threading.Event()
        self.client, self._uploads = writer(holder), holder.service.services.uploads
        self.id = send(self.client, MT940, dryRun="true").json()["importId"]
        assert self.reading.wait(60)
        self._report = self._uploads._at_work[self.id]

    def _read(self, _file: BufferedReader, *, check: Callable[[], None], **_more: Any) -> None:
        self.reading.set()
        while True:
            check()
            time.sleep(0.001)

    def error(self) -> str | None:
        self._report.ended.result(timeout=60)
        return self._report.error


@pytest.mark.requirement("sync.turns")
def test_a_preview_that_is_deleted_ends_while_it_is_read(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    preview = Given(holder, monkeypatch)
    assert preview.client.get(f"/imports/{preview.id}").json()["status"] == "running"
    forgotten = preview.client.delete(f"/imports/{preview.id}")
    assert (forgotten.status_code, forgotten.json()) == (200, {"added": 0, "removed": 0, "accountsGone": []})
    assert preview.client.get(f"/imports/{preview.id}").status_code == 404
    assert preview.error() == GIVEN_UP
    assert preview.id not in preview._uploads._at_work


@pytest.mark.requirement("sync.turns")
@pytest.mark.parametrize(("is_dry_run", "error"), [(True, GIVEN_UP), (False, None)])
def test_a_preview_whose_client_goes_before_it_is_answered_ends_and_an_import_does_not(
    holder: Holder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_dry_run: bool, error: str | None
) -> None:
    services, begun = holder.service.services, list[FileImport]()
    begin = services.uploads.begin

    def noted(*args: Any, **more: Any) -> FileImport:
        begun.append(begin(*args, **more))
        return begun[-1]

    monkeypatch.setattr(services.uploads, "begin", noted)
    caller = Principal(
        user_id=holder.user.id, client_id="c", scopes=frozenset(ALL_SCOPES), grant_id="g", has_subscription=True
    )

    async def gone() -> None:
        """It is by now."""

    request = Request(
        caller=caller, method="POST", path="/imports", query="", headers={}, client_address="127.0.0.1", is_gone=gone
    )
    asked: dict[str, Any] = {"filename": "a.sta", "dry_run": is_dry_run, "layout": None, "keep_layout": False}
    (tmp_path / "a.sta").write_text(MT940)
    file = (tmp_path / "a.sta").open("rb")  # closed in the end, whether it is imported or refused
    with pytest.raises(BadRequest):
        asyncio.run(create_import(services, request, **asked, account_id="another's", body=file))
    assert file.closed
    file = (tmp_path / "a.sta").open("rb")
    with services.sync_engine.import_lane.turn(holder.user.id):
        asyncio.run(create_import(services, request, **asked, account_id=None, body=file))
    begun[0].ended.result(timeout=60)
    assert (begun[0].error, begun[0].new) == (error, 0 if is_dry_run else 2)
    assert (services.uploads.find(holder.user.id, begun[0].id) is None) == is_dry_run


@pytest.mark.requirement("sync.turns")
def test_a_preview_that_nobody_asks_about_ends(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    preview = Given(holder, monkeypatch)
    now = time.monotonic()
    preview._report.asked_at = now - ASKED_WITHIN + 60
    assert preview.client.get(f"/imports/{preview.id}").json()["status"] == "running"
    assert preview._report.asked_at >= now, "asked about again"
    preview._report.asked_at = now - ASKED_WITHIN
    assert preview.error() == GIVEN_UP
    assert preview.client.get(f"/imports/{preview.id}").json()["error"] == GIVEN_UP


@pytest.mark.requirement("page.imports")
@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (RuntimeError("broken"), INTERNAL),
        (PanicException("broken"), INTERNAL),
        (Conflict("late"), CHANGED),
        (Closed(), STOPPED),
        (StoreFull("The disk is full."), "The disk is full."),
    ],
)
@pytest.mark.sampled
def test_a_failure_of_ours_is_a_sentence_too(
    holder: Holder, monkeypatch: pytest.MonkeyPatch, failure: BaseException, sentence: str
) -> None:
    monkeypatch.setattr(FileImport, "keep", failing(failure))
    assert sent(writer(holder), MT940)["error"] == sentence


@pytest.mark.requirement("postgresql.unavailable")
def test_a_file_that_the_store_was_away_for_is_to_be_sent_again(
    holder: Holder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = writer(holder)
    with monkeypatch.context() as patched:
        patched.setattr(FileImport, "keep", failing(StoreUnavailable("The database is away.")))
        answer = send(client, MT940)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert [each.partition("failed: ")[2] for each in caplog.messages if "failed" in each] == ["The database is away."]
    assert sent(client, MT940)["new"] == 2


def failing(error: BaseException) -> Callable[..., None]:
    def fails(*_arguments: Any, **_named: Any) -> None:
        raise error

    return fails


@pytest.mark.requirement("serve.stop")
def test_an_import_that_the_end_of_the_server_cuts_off_is_one_line_of_the_log(
    holder: Holder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def close(*_arguments: Any, **_named: Any) -> None:
        monkeypatch.setattr(holder.service.services.sync_engine.import_lane, "_is_closed", True)
        raise RuntimeError("Connection already closed!")

    monkeypatch.setattr(FileImport, "keep", close)
    caplog.set_level(logging.INFO, logger="bankdata.imports")
    report = sent(writer(holder), MT940)
    (line,) = [each for each in caplog.records if each.name == "bankdata.imports"]
    assert (line.getMessage(), line.exc_info) == (f"import {report['importId']} failed: RuntimeError", None)


@pytest.mark.requirement("page.imports")
def test_a_file_of_a_user_who_is_removed_while_it_is_read_is_not_stored(
    holder: Holder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database, read = holder.service.services.everybody, FileImport.read

    def remove_and_read(file: FileImport, stream: BufferedReader, **more: Any) -> ReadBatch:
        database.atomically(lambda session: users.remove(session, file.user_id))
        return read(file, stream, **more)

    monkeypatch.setattr(FileImport, "read", remove_and_read)
    assert sent(writer(holder), MT940)["error"] == "This user has been removed."
    assert "Traceback" not in caplog.text


@pytest.mark.requirement("page.imports")
def test_an_import_that_the_store_still_runs_is_not_taken_back(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    client = writer(holder)
    first = sent(client, MT940)
    database = holder.service.services.everybody
    database.execute("UPDATE jobs SET status = 'importing' WHERE id = $1", first["importId"])
    assert client.delete(f"/imports/{first['importId']}").status_code == 409
    database.execute("UPDATE jobs SET status = 'completed' WHERE id = $1", first["importId"])


@pytest.mark.requirement("page.imports")
def test_a_sync_of_the_same_files_makes_an_import_wait(holder: Holder) -> None:
    client = writer(holder)
    first = sent(client, MT940)
    database = holder.service.services.everybody
    database.execute("UPDATE connections SET running_job_id = 'other' WHERE user_id = $1", holder.user.id)
    found = sent(client, CSV)
    database.execute("UPDATE connections SET running_job_id = NULL WHERE user_id = $1", holder.user.id)
    assert found["error"] == "These files are being synced. Try again in a moment."
    assert first["error"] is None


@pytest.mark.requirement("page.imports")
def test_reports_are_forgotten_after_an_hour_and_beyond_their_number(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert file_imports.KEPT_MAX == 50
    monkeypatch.setattr(file_imports, "KEPT_MAX", 3)
    client, database = writer(holder), holder.service.services.everybody
    ids = [sent(client, b"x", filename=f"{number}")["importId"] for number in range(4)]
    assert [client.get(f"/imports/{id_}").status_code for id_ in ids] == [404, 200, 200, 200]
    earlier = holder.service.services.clock.now() - file_imports.KEPT_FOR - timedelta(seconds=1)
    database.execute("UPDATE file_imports SET begun_at = $2 WHERE user_id = $1", holder.user.id, earlier)
    last = sent(client, b"x")["importId"]
    assert database.rows("SELECT id FROM file_imports WHERE user_id = $1", holder.user.id) == [{"id": last}]


@pytest.mark.requirement("page.imports")
def test_an_own_profile_that_is_wrong_is_told(holder: Holder) -> None:
    folder = Path(holder.service.services.settings.data_dir) / "csv-profiles"
    folder.mkdir()
    try:
        (folder / "wrong.json").write_text("{")
        assert "wrong.json" in sent(writer(holder), CSV)["error"]
    finally:
        (folder / "wrong.json").unlink()
        folder.rmdir()


@pytest.mark.requirement("page.imports")
def test_reading_scopes_send_nothing(holder: Holder) -> None:
    for answer in (send(holder.client, MT940), holder.client.get("/imports"), holder.client.delete("/imports/syn_1")):
        assert answer.status_code == 403
        assert answer.json() == {"error": "Insufficient scope. Required: write:imports"}


@pytest.mark.requirement("http.uploads")
def test_a_file_must_be_named_typed_and_there(holder: Holder) -> None:
    client = writer(holder)
    typed = {"Content-Type": "application/octet-stream"}
    for name in ("a/b", "", "x" * 256):
        assert send(client, MT940, filename=name).status_code == 400
    assert client.post("/imports", content=b"x", headers=typed).json() == {"error": "filename: is required"}
    assert client.post("/imports?filename=x", headers=typed).json() == {"error": "body: is required"}
    assert client.post("/imports?filename=x", content=b"{}", headers={"Content-Type": "text/csv"}).status_code == 415
    packed = client.post("/imports?filename=x", content=b"x", headers={**typed, "Content-Encoding": "gzip"})
    assert packed.status_code == 415
    assert send(client, MT940, dryRun="1").json() == {"error": "dryRun: must be true or false"}


@pytest.mark.requirement("http.uploads")
def test_files_that_the_database_did_not_take_keep_nobody_out(tmp_path: Path) -> None:
    def is_away(_: FileImport) -> bytes:
        raise StoreUnavailable

    shared: Any = SimpleNamespace()
    user: Any = SimpleNamespace(id="u1")
    leases: Any = SimpleNamespace(holder="h")
    uploads = UploadedFiles(
        shared, Clock(ZoneInfo("UTC")), ImportLane(), leases, profiles=lambda _: (), after_import=print
    )
    (tmp_path / "a.sta").write_text(MT940)
    for _ in range(AT_ONCE_PER_USER + 1):
        with (tmp_path / "a.sta").open("rb") as file, pytest.raises(StoreUnavailable):
            uploads.begin(
                user, file, name="a.sta", choice=None, layout=None, is_dry_run=True, may_say=(), render=is_away
            )
