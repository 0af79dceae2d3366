"""The two examples of docs/write-a-source.md, run by the sync engine against a real store."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import httpx
import pytest

from connectors import formats
from connectors.connector import Connector, LimitExceeded, MalformedFile
from connectors.sources.folder import Folder
from handlers.work.sync.engine import SyncEngine
from storage import connections, jobs, users
from storage.connections import StoredConnection
from tests.conftest import NOW
from tests.documents.conftest import ROOT, blocks
from tests.engines import OpenStore
from tests.service.test_sync_machine import COOLDOWN, Hand

IBAN = "DE89370400440532013000"
LEDGER = f"""HILLBANK;{IBAN};EUR
2026-11-02;-4.20;Bakery Hill;7001
2026-11-03;-12.99;Cinema;7002
BALANCE;2026-11-03;82.81
"""


def example(number: int, folder: Path) -> ModuleType:
    """A block of the page as a module: 0 is the connector, 1 the format."""
    found = [block.text for block in blocks(ROOT / "docs" / "write-a-source.md") if block.language == "python"]
    module = ModuleType(f"example_{number}")
    exec(compile(found[number], str(folder / "write-a-source.md"), "exec"), module.__dict__)
    return module


class HillBankServer(ThreadingHTTPServer):
    """The bank's side: pages of bookings, and what it answers with next instead of 200."""

    pages: list[list[dict[str, str]]]
    refusal: tuple[int, dict[str, str]] | None = None
    polls = 0


class Answers(BaseHTTPRequestHandler):
    """The bank's API. A refresh is running when it is asked about for the first time."""

    server: HillBankServer

    def do_POST(self) -> None:
        self.server.polls = 0
        self._answer({"id": "r1"})

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/refreshes/r1":
            self.server.polls += 1
            if self.server.polls == 1:
                self._answer({"state": "running", "seconds": 30})
            else:
                self._answer({"state": "ready", "consentUntil": "2027-01-31T00:00:00"})
            return
        page = int(parse_qs(url.query)["page"][0])
        account = {"iban": IBAN, "name": "Giro", "currency": "EUR", "balance": "95.80", "day": "2026-11-20"}
        more = page < len(self.server.pages)
        bookings = self.server.pages[page - 1]
        self._answer({"account": account, "bookings": bookings, "nextPage": page + 1 if more else None})

    def _answer(self, body: dict[str, object]) -> None:
        status, headers = self.server.refusal or (200, {})
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test is quiet."""


def booking(number: int, amount: str) -> dict[str, str]:
    return {"id": f"h{number}", "amount": amount, "day": f"2026-11-{number:02}", "name": "Bakery", "text": "Bread"}


@contextmanager
def engine(database: OpenStore, connector: Connector) -> Iterator[tuple[SyncEngine, Hand]]:
    """The product's sync engine with this source, under a clock that the test moves."""
    clock = Hand(ZoneInfo("Europe/Berlin"))
    made = SyncEngine(database, {connector.name: connector}, clock, cooldown=COOLDOWN, after_import=lambda _: None)
    try:
        yield made, clock
    finally:
        made.close()


def connected(database: OpenStore, connector: str, settings: dict[str, str]) -> StoredConnection:
    eva = users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    return connections.add(
        database,
        user_id=eva.id,
        user_name="eva",
        connector=connector,
        bank_name="Hill Bank",
        settings=settings,
        now=NOW,
    )


def begun(sync: SyncEngine, connection: StoredConnection) -> jobs.Job:
    job = sync.start(connection).job
    assert job is not None
    return read(sync, job)


def read(sync: SyncEngine, job: jobs.Job) -> jobs.Job:
    found = sync.read(job.user_id, job.id)
    assert found is not None
    return found


def told(database: OpenStore) -> list[tuple[date, Decimal, str]]:
    rows = database.rows("SELECT booking_date, amount, counterpart_name FROM transactions ORDER BY booking_date, id")
    return [(row["booking_date"], row["amount"], row["counterpart_name"]) for row in rows]


@pytest.fixture
def bank() -> Iterator[HillBankServer]:
    server = HillBankServer(("127.0.0.1", 0), Answers)
    server.pages = [[booking(1, "-4.20"), booking(2, "-4.20")], [booking(3, "100.00")]]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.requirement("docs.sources")
def test_the_connector_of_the_page_waits_reads_its_pages_and_finds_only_what_is_new(
    database: OpenStore, bank: HillBankServer, tmp_path: Path
) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{bank.server_port}", timeout=60, trust_env=False) as client:
        hill = example(0, tmp_path).HillBank(client)
        connection = connected(database, hill.name, {"account": "4711"})
        with engine(database, hill) as (sync, clock):
            job = begun(sync, connection)
            assert (job.status, sync.seconds_until_due(job)) == ("syncing", 30)
            clock.moment += timedelta(seconds=30)
            job = read(sync, job)
            assert (job.status, job.new_transactions) == ("completed", 3)

            bank.pages[1].append(booking(4, "-7.00"))
            clock.moment += COOLDOWN
            job = begun(sync, connection)
            clock.moment += timedelta(seconds=30)
            assert read(sync, job).new_transactions == 1

    assert [(day.day, amount) for day, amount, _ in told(database)] == [
        (1, Decimal("-4.20")),
        (2, Decimal("-4.20")),
        (3, Decimal("100.00")),
        (4, Decimal("-7.00")),
    ]
    (account,) = database.rows("SELECT iban, balance FROM accounts")
    assert (account["iban"], account["balance"]) == (IBAN, Decimal("95.80"))
    found = connections.find(database, connection.user_id, connection.id)
    assert found is not None
    assert str(found.consent_expires_at) == "2027-01-31 00:00:00"


@pytest.mark.requirement("docs.sources")
@pytest.mark.parametrize(
    ("status", "headers", "job_status", "connection_status"),
    [
        (401, {}, "failed", "REAUTH_REQUIRED"),
        (429, {"Retry-After": "60"}, "pending", "ACTIVE"),
        (429, {"Retry-After": "61"}, "failed", "ACTIVE"),
        (500, {}, "failed", "ACTIVE"),
    ],
)
def test_what_the_page_says_of_errors_is_what_happens(
    database: OpenStore,
    bank: HillBankServer,
    tmp_path: Path,
    status: int,
    headers: dict[str, str],
    job_status: str,
    connection_status: str,
) -> None:
    bank.refusal = (status, headers)
    with httpx.Client(base_url=f"http://127.0.0.1:{bank.server_port}", timeout=60, trust_env=False) as client:
        hill = example(0, tmp_path).HillBank(client)
        connection = connected(database, hill.name, {"account": "4711"})
        with engine(database, hill) as (sync, _):
            assert begun(sync, connection).status == job_status
    found = connections.find(database, connection.user_id, connection.id)
    assert found is not None
    assert found.status == connection_status


@pytest.mark.requirement("docs.sources")
def test_a_bank_that_cannot_be_reached_fails_the_job(database: OpenStore, tmp_path: Path) -> None:
    with httpx.Client(base_url="http://127.0.0.1:9", timeout=60, trust_env=False) as client:
        hill = example(0, tmp_path).HillBank(client)
        with engine(database, hill) as (sync, _):
            job = begun(sync, connected(database, hill.name, {"account": "4711"}))
    assert (job.status, job.error) == ("failed", "The bank could not be reached.")


@pytest.mark.requirement("docs.sources")
def test_the_format_of_the_page_is_imported_by_a_folder_and_a_damaged_file_is_refused_with_its_line(
    database: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hill = example(1, tmp_path)
    monkeypatch.setattr(formats, "FORMATS", (formats.Format("hill", hill.detect, hill.read), *formats.FORMATS))
    (tmp_path / "in").mkdir()
    damaged = LEDGER.replace("-12.99", "twelve")
    for name, text in (("a.txt", LEDGER), ("b.txt", damaged), ("c.txt", LEDGER.replace("\n", "\r\n"))):
        file = tmp_path / "in" / name
        file.write_text(text, newline="")
        os.utime(file, (0, 0))
    folder = Folder(lambda file, _user_id, _: formats.read_records(file))
    with engine(database, folder) as (sync, _):
        job = begun(sync, connected(database, folder.name, {"folder": str(tmp_path / "in")}))
    assert (job.status, job.new_transactions) == ("completed", 2)
    assert [(each.name, each.reason) for each in job.refusals] == [("b.txt", "Line 3: not a day or an amount.")]
    assert told(database) == [
        (date(2026, 11, 2), Decimal("-4.20"), "Bakery Hill"),
        (date(2026, 11, 3), Decimal("-12.99"), "Cinema"),
    ]


@pytest.mark.requirement("docs.sources")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LEDGER.replace("BALANCE;2026-11-03;82.81\n", ""), "The ledger ends without its balance."),
        (LEDGER + "2026-11-04;1.00;Late;7003\n", "Line 5: not a line of a ledger."),
        (LEDGER.replace(IBAN, "DE00"), "Line 1: not a line of a ledger."),
    ],
)
def test_the_format_of_the_page_refuses_what_is_not_whole(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "ledger.txt"
    file.write_text(text)
    with pytest.raises(MalformedFile, match=reason), file.open("rb") as stream:
        list(example(1, tmp_path).read(stream))


@pytest.mark.requirement("docs.sources")
def test_the_format_of_the_page_has_a_limit(tmp_path: Path) -> None:
    hill = example(1, tmp_path)
    hill.ENTRIES_MAX = 3  # type: ignore[attr-defined]  # the module is made of the page
    file = tmp_path / "ledger.txt"
    file.write_text(LEDGER)
    with pytest.raises(LimitExceeded, match="Line 4: more bookings than allowed"), file.open("rb") as stream:
        list(hill.read(stream))
