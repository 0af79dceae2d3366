"""An export of accounts without number is taken for no other account of that kind, whatever its format."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.classified_records import without_classes
from connectors.formats import read_records
from connectors.own_formats import csv as csv_statement
from handlers.commands.table import perform
from tests.imports.command_line import Shell

pytestmark = pytest.mark.engine("duckdb")  # its stores are made in folders by processes of their own

FORMATS = ["csv", "jsonl", "parquet", "camt053", "ofx", "beancount"]
HEADER = "Date,Description,Amount,Currency\n"
VISA = f"{HEADER}2026-03-01,Coffee,-3.50,EUR\n2026-03-02,Book,-12.00,EUR\n2026-03-03,Shoes,-60.00,EUR\n"
CASH = f"{HEADER}2026-03-01,Milk,-1.50,EUR\n2026-03-02,Bread,-2.00,EUR\n2026-03-04,Pay,90.00,EUR\n"
CLUB = f"{HEADER}2026-03-05,Fee,-7.00,EUR\n2026-03-06,Rent,-8.00,EUR\n2026-03-07,Gift,9.00,EUR\n"
IDS = "account_id, id, amount, purpose"
UNCLEAR = "does not say which account it is about"


class Answering:
    """A person who says of each file that its account is not there yet."""

    def line(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> int:
        assert UNCLEAR in question
        return len(choices) - 1


def import_as_new(shell: Shell, user: str, path: Path) -> None:
    """Import the file, which does not say which account it is about, as a new account."""
    with closing(shell.opened()) as services:
        arguments = {"user": user, "files": [str(path)], "connection": None, "account": None}
        perform(services, "import", {**arguments, "is_dry_run": False, "is_json": False}, Answering())


def of(account: AccountRecord, *amounts: int, closing: int | None = None) -> bytes:
    """A file of this service with a booking a day."""
    stream = BytesIO()
    rows = [
        TransactionRecord(
            amount=Decimal(amount), currency="EUR", booking_date=date(2026, 1, day), purpose=f"No {amount}"
        )
        for day, amount in enumerate(amounts, 1)
    ]
    day = date(2026, 1, 31)
    stated = StatementRecord() if closing is None else StatementRecord(closing=Decimal(closing), closing_date=day)
    csv_statement.write(without_classes([account, *rows, stated]), stream)
    return stream.getvalue()


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_an_export_without_number_is_not_mixed_with_another_account_of_its_kind(
    format_: str, shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    shell.import_(write("visa.csv", VISA), user="tom")
    shell.import_(write("cash.csv", CASH))
    before = shell.rows_of("eva", IDS)
    path = shell.export(format_, tmp_path / "export", user="tom")
    (report,) = shell.import_(path, code=1)
    assert UNCLEAR in report["error"]
    assert shell.rows_of("eva", IDS) == before
    for _ in range(2):  # the way that the refusal names
        shell("import", "--user", "eva", "--connection", "Of Tom", path)
        assert sorted(shell.rows_of("eva", "balance IS NULL", "accounts")) == [(True,), (True,)]
        both = shell.rows_of("eva", "account_id, amount")
        assert len(both) == 6
        assert sorted(sorted(amount for id_, amount in both if id_ == one) for one in {id_ for id_, _ in both}) == [
            [Decimal("-60.00"), Decimal("-12.00"), Decimal("-3.50")],
            [Decimal("-2.00"), Decimal("-1.50"), Decimal("90.00")],
        ]


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_an_export_without_number_goes_to_the_account_that_has_its_bookings(
    format_: str, shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    visa = write("visa.csv", VISA)
    shell.import_(visa, user="tom")
    shell.import_(visa)
    import_as_new(shell, "eva", write("cash.csv", CASH))
    before = shell.rows_of("eva", IDS), shell.rows_of("eva", "id, balance", "accounts")
    path = shell.export(format_, tmp_path / "export", user="tom")
    (report,) = shell.import_(path)
    assert (report["new"], report["known"]) == (0, 3)
    assert (shell.rows_of("eva", IDS), shell.rows_of("eva", "id, balance", "accounts")) == before


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("apart_by", ["answer", "connection"])
@pytest.mark.sampled
def test_accounts_without_number_come_back_whole_and_apart(
    apart_by: str, format_: str, shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    """Their keys are `CSV` and `CSV 2`, or `CSV` twice, to which an export adds the ends of their ids."""
    shell.import_(write("visa.csv", VISA))
    if apart_by == "answer":
        import_as_new(shell, "eva", write("cash.csv", CASH))
    else:
        shell("import", "--user", "eva", "--connection", "Two", write("cash.csv", CASH))
    path = shell.export(format_, tmp_path / "export")
    for user, new in ("eva", 0), ("tom", 6), ("tom", 0):
        (report,) = shell.import_(path, user=user)
        assert report["new"] == new
        rows = shell.rows_of(user, "account_id, amount")
        assert sorted(sorted(amount for id_, amount in rows if id_ == one) for one in {id_ for id_, _ in rows}) == [
            [Decimal("-60.00"), Decimal("-12.00"), Decimal("-3.50")],
            [Decimal("-2.00"), Decimal("-1.50"), Decimal("90.00")],
        ]
        assert len(shell.rows_of(user, "id", "accounts")) == 2
    result = shell("import", "--user", "tom", "--json", "--connection", "Another name", path)
    assert json.loads(result.stdout)["new"] == 0
    assert len(shell.rows_of("tom", "id", "accounts")) == 2


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_the_second_account_without_number_is_not_mixed_with_another_second_one(
    format_: str, shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    visa = write("visa.csv", VISA)
    for user, second in ("eva", CASH), ("tom", CLUB):
        shell.import_(visa, user=user)
        import_as_new(shell, user, write(f"{user}.csv", second))
    before = shell.rows_of("eva", IDS)
    (report,) = shell.import_(shell.export(format_, tmp_path / "export", user="tom"), code=1)
    assert UNCLEAR in report["error"]
    assert shell.rows_of("eva", IDS) == before


@pytest.mark.requirement("export.again")
def test_a_balance_alone_without_number_is_of_no_account_with_another_balance(
    shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    unnumbered = AccountRecord(stable_key="CSV", currency="EUR")
    path = write("alone.csv", of(unnumbered, closing=5))
    shell.import_(write("cash.csv", of(unnumbered, 90, closing=90)))
    (report,) = shell.import_(path, code=1)
    assert UNCLEAR in report["error"]
    assert shell.rows_of("eva", "balance", "accounts") == [(Decimal(90),)]
    shell.import_(path, user="tom")
    shell.import_(shell.export("csv", tmp_path / "export", user="tom"), user="tom")
    assert shell.rows_of("tom", "balance", "accounts") == [(Decimal(5),)]


@pytest.mark.requirement("export.again")
def test_an_export_that_knows_an_account_by_name_is_not_mixed_with_another_of_that_name(
    shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    joint = AccountRecord(stable_key="N26/Joint", currency="EUR", name="Joint", bank_name="N26")
    shell.import_(write("eva.csv", of(joint, 1, 2, 3, 4, 5)))
    shell.import_(write("tom.csv", of(joint, 10, 20, 30, 40, 50)), user="tom")
    (report,) = shell.import_(shell.export("csv", tmp_path / "export", user="tom"), code=1)
    assert UNCLEAR in report["error"]
    assert sorted(amount for (amount,) in shell.rows_of("eva", "amount")) == [1, 2, 3, 4, 5]


@pytest.mark.requirement("export.again")
def test_accounts_that_one_file_tells_apart_are_not_both_the_account_of_a_folder(
    shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    shell.import_(write("visa.csv", VISA), user="tom")
    import_as_new(shell, "tom", write("cash.csv", CASH))
    shell.import_(write("club.csv", CLUB))
    folder = tmp_path / "folder"
    folder.mkdir()
    os.utime(shell.export("csv", folder / "export.csv", user="tom"), (1_700_000_000, 1_700_000_000))
    shell("connect", "folder", folder, "--user", "eva", "--account", "CSV")
    assert shell.rows_of("eva", "count(*) AS bookings, count(DISTINCT account_id) AS accounts") == [(9, 3)]


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize(
    ("key", "bank_name", "is_anonymous", "is_by_name"),
    [
        ("CSV", None, True, False),
        ("CSV 2", None, True, False),
        ("unnamed", None, True, False),
        ("10020030/unnamed", None, True, False),
        ("Deutsche Bank", None, True, False),
        ("Revolut/EUR", None, True, False),
        ("Bank of Eva", "Bank of Eva", True, False),  # a layout of the user's own
        ("N26/Joint account", "N26", False, True),
        ("CSV-68caeb1c", None, False, False),  # the end of an id tells it from others
        ("DKB/1234567890", "DKB", False, False),
        ("99911000/4711", "Bank of Eva", False, False),
        ("411111******1111", None, False, False),
    ],
)
def test_a_key_that_stands_for_no_number_names_no_account(
    key: str, bank_name: str | None, is_anonymous: bool, is_by_name: bool
) -> None:
    stream = BytesIO()
    csv_statement.write(without_classes([AccountRecord(stable_key=key, currency="EUR", bank_name=bank_name)]), stream)
    (account, *_) = read_records(stream)
    assert isinstance(account, AccountRecord)
    assert (account.stable_key, account.is_anonymous, account.is_by_name) == (key, is_anonymous, is_by_name)
