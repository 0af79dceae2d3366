"""A store that the first released program made, opened by this one: nothing is lost, nobody signs in again.

The files in `released` were made by commit e9ffeaa (schema version 4) on 22 November 2026, by its own commands:

    bankdata users add eva; bankdata users add otto
    bankdata import giro.sta spar.sta announced.xml --user eva
    bankdata users subscription otto off; bankdata users currency otto CHF
    bankdata rules add - --user eva           # counterpartName contains EDEKA: DINING
    bankdata rules apply --user eva
    bankdata correct ID ENTERTAINMENT --user eva        # the first of two charges by Netflix
    bankdata clients add "Budget app" https://app.example.org/callback

Then it was served, the app "Ledger" registered itself and was allowed by eva; `answers.json` is what the app read, and
REFRESH_TOKEN what it held in the end. Store and keys are as they were left: 10 MB, compressed.
"""

import json
import tarfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from analytics.records import AccountRecord, StatementRecord
from handlers.commands.table import perform
from handlers.settings import load
from handlers.work.services import open_services
from storage.migrations import runner
from tests.archives import unpack
from tests.engines import OpenStore
from tests.explanations.conftest import Service, opened
from tests.service.conftest import Said
from tests.storage.conftest import bookings, make_bank

RELEASED = Path(__file__).with_name("released")
ANSWERS: dict[str, Any] = json.loads((RELEASED / "answers.json").read_text("utf-8"))
THAT_DAY = datetime(2026, 11, 22, 12, tzinfo=UTC)
LEDGER = "app_e3zqzwYYfLp2vjOAeR2T_UJIuwafbBif"
REFRESH_TOKEN = "AgemJEEDoqZyaH4KuJa9hLaLFcSahEVyXZ7ln-4KNW4"
GIRO_NAME = "37040044 / 532013000"
GIRO, SAVINGS = "acc_076866bf618d5ba69887d0d5490a8918", "acc_bcb1433b8bc45d3d976c3d1f8bd0e2a1"


def done(service: Service, name: str, **arguments: object) -> list[str]:
    """The lines that a command prints."""
    said = Said()
    perform(service.services, name, arguments, said)
    return said.lines


def imported(service: Service, *files: Path) -> list[dict[str, Any]]:
    """The reports of an import for eva, file by file."""
    service.services.clock.offset += timedelta(seconds=1)  # after everything that was stored
    names = [str(file) for file in files]
    where = {"connection": None, "account": None}
    lines = done(service, "import", user="eva", files=names, **where, is_dry_run=False, is_json=True)
    return [json.loads(line) for line in lines]


def exported(service: Service, path: Path) -> bytes:
    """All of eva's bookings, with balances."""
    done(service, "export", user="eva", format_="csv", path=str(path))
    return path.read_bytes()


def named(answer: Any) -> Any:
    """The answer with what an account without IBAN and name is called since then: bank code and number of its file."""
    if isinstance(answer, list):
        return [named(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    said = {name: named(value) for name, value in answer.items()}
    if said.get("id") == GIRO:
        return {**said, "accountName": GIRO_NAME}
    return {**said, "name": GIRO_NAME} if said.get("name") == "Account" else said


pytestmark = [pytest.mark.requirement("store.released"), pytest.mark.engine("duckdb")]  # the store is a file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder as the released program left it."""
    with tarfile.open(RELEASED / "data.tar.xz") as archive:
        unpack(archive, tmp_path)
    return tmp_path


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    """The store, served by this program on the day on which it was made."""
    made = opened(folder, validate_responses=False)
    made.services.clock.offset = THAT_DAY - datetime.now(UTC)
    with closing(made.services):
        yield made


def test_the_store_is_brought_up_to_date_once(folder: Path) -> None:
    for _ in range(2):
        with closing(open_services(load({}, data_dir=folder))) as services:
            versions = services.everybody.rows("SELECT number FROM schema_version ORDER BY number")
            assert [row["number"] for row in versions] == [each.number for each in runner.migrations()]


def test_the_refresh_token_of_an_app_counts_and_the_answers_are_those_of_the_day(service: Service) -> None:
    client = TestClient(service.app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    renewed = client.post(
        "/oauth/token", data={"grant_type": "refresh_token", "refresh_token": REFRESH_TOKEN, "client_id": LEDGER}
    )
    assert renewed.status_code == 200, renewed.text
    headers = {"Authorization": f"Bearer {renewed.json()['access_token']}"}
    assert len(ANSWERS) == 6
    for path, answer in ANSWERS.items():
        now = client.get(f"/api/v1{path}", headers=headers)
        assert (path, now.status_code, now.json()) == (path, 200, named(answer))


def test_balances_bookings_rules_corrections_and_users_are_all_there(service: Service) -> None:
    assert done(service, "users list") == [
        "eva\tactive subscription\t1 bank connection",
        "otto\tno subscription\t0 bank connections",
    ]
    [rule] = done(service, "rules list", user="eva")
    assert json.loads(rule)["value"] == "EDEKA"
    rows = service.services.everybody.rows
    assert [(each["id"], each["balance"]) for each in rows("SELECT id, balance FROM accounts ORDER BY id")] == [
        (GIRO, Decimal("2128.42")),
        (SAVINGS, Decimal("600.00")),
    ]
    assert rows("SELECT count(*) AS n, sum(amount) AS total FROM transactions") == [
        {"n": 7, "total": Decimal("1628.42")}
    ]
    assert [row["counterpart_name"] for row in rows("SELECT * FROM pending_transactions")] == ["Kino West"]
    assert [row["category"] for row in rows("SELECT category FROM corrections")] == ["ENTERTAINMENT"]
    assert [row["name"] for row in rows("SELECT name FROM users WHERE home_currency = 'CHF'")] == ["otto"]


def test_the_same_files_bring_nothing_new(service: Service) -> None:
    reports = imported(service, *(RELEASED / name for name in ("giro.sta", "spar.sta", "announced.xml")))
    assert [(report["new"], report["known"]) for report in reports] == [(0, 6), (0, 1), (0, 0)]
    assert service.services.everybody.rows("SELECT count(*) AS n FROM accounts") == [{"n": 2}]


TOLD = """
    2026-09-01 |  2500.00 | FIRMA NORD GMBH      | Lohn September      | provider_id=a{0}
    2026-09-03 |  -800.00 | Hausverwaltung Süd   | Miete September     | provider_id=b{0}
    2026-09-07 |   -12.99 | NETFLIX              | Netflix Monatsabo   | provider_id=c{0}
    2026-09-10 |   -45.60 | EDEKA Müller         | EDEKA Sagt Danke    | provider_id=d{0}
    2026-10-07 |   -12.99 | NETFLIX              | Netflix Monatsabo   | provider_id=e{0}
    2026-10-15 |  -500.00 | Eva Beispiel         | Umbuchung Tagesgeld | provider_id=f{0}
"""


def test_a_bank_tells_what_was_there_before_and_nothing_is_there_twice(service: Service) -> None:
    store = service.services.everybody
    before = store.rows("SELECT id, account_id, amount FROM transactions ORDER BY id")
    bank = make_bank(cast(OpenStore, store), THAT_DAY.replace(tzinfo=None), "eva", "Sparkasse")
    account = AccountRecord(stable_key="1", iban="DE89370400440532013000", currency="EUR")
    answer = StatementRecord(
        closing=Decimal("2128.42"),
        closing_date=date(2026, 11, 22),
        told_from=date(2026, 8, 24),
        told_until=date(2026, 11, 22),
    )
    for renewal in (1, 2):
        bank.now += timedelta(days=1)
        report = bank.bring(bookings(TOLD.format(renewal)), account=account, statement=answer)
        assert report.new_transactions == 0
        assert store.rows("SELECT id, account_id, amount FROM transactions ORDER BY id") == before


@pytest.mark.long
def test_an_import_of_today_can_be_undone_and_leaves_what_was_there_before(service: Service, tmp_path: Path) -> None:
    before = exported(service, tmp_path / "before.csv")
    more = tmp_path / "november.sta"
    more.write_text(
        ":20:STARTUMS\n:25:DE27100777770209299700\n:28C:2/1\n:60F:C261031EUR600,00\n"
        ":61:2611051105DR7,50NMSCNONREF//S2\n:86:106?00KARTENZAHLUNG?20SVWZ+Brot?32Baeckerei Ost\n"
        ":62F:C261121EUR592,50\n-\n"
    )
    imported(service, more)
    assert b"Baeckerei Ost" in exported(service, tmp_path / "with.csv")
    [listed] = done(service, "imports list", user="eva")
    done(service, "imports undo", user="eva", import_id=listed.split("\t")[0])
    assert exported(service, tmp_path / "after.csv") == before
