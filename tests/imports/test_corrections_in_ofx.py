"""What an OFX file replaces or deletes of earlier ones is gone, in whatever order they come (OFX 11.4.2)."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.imports.command_line import Shell

FIRST = (("20260305", "-50.00", "A1", ""), ("20260306", "-19.00", "A2", ""), ("20260307", "-30.00", "A3", ""))
SECOND = (
    ("20260305", "-45.00", "B1", "<CORRECTFITID>A1<CORRECTACTION>REPLACE"),
    ("20260306", "-19.00", "B2", "<CORRECTFITID>A2<CORRECTACTION>DELETE"),
)
RIGHT = ["-30.00", "-45.00"]

pytestmark = pytest.mark.requirement("import.ofx-corrections")


def statement(*rows: tuple[str, str, str, str], balance: str = "") -> str:
    bookings = "".join(
        f"<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>{day}<TRNAMT>{amount}<FITID>{id_}<NAME>Shop {day}{more}</STMTTRN>\n"
        for day, amount, id_, more in rows
    )
    return (
        "OFXHEADER:100\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>USD<BANKACCTFROM><BANKID>1<ACCTID>4711"
        f"<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>{bookings}</BANKTRANLIST>{balance}</STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>"
    )


def amounts(shell: Shell) -> list[str]:
    return [f"{amount:.2f}" for (amount,) in shell.rows("amount")]


def test_what_a_later_file_replaces_or_deletes_is_gone_and_stays_so(shell: Shell, write: Callable[..., Path]) -> None:
    first, second = write("a.ofx", statement(*FIRST)), write("b.ofx", statement(*SECOND))
    assert [each["new"] for each in shell.import_(first, second)] == [3, 0]
    assert sorted(amounts(shell)) == RIGHT
    shell.import_(first, second)
    assert sorted(amounts(shell)) == RIGHT
    undone = shell("imports", "list", "--user", "eva").stdout.splitlines()
    for line in (undone[1], undone[3]):  # both of the second file
        shell("imports", "undo", line.split("\t")[0], "--user", "eva")
    assert sorted(amounts(shell)) == ["-19.00", "-30.00", "-50.00"]


def test_what_a_bank_has_taken_back_is_said_and_nothing_is_wrong(shell: Shell, write: Callable[..., Path]) -> None:
    said = shell.import_(write("a.ofx", statement(*FIRST)), write("b.ofx", statement(*SECOND)))[1]["warnings"]
    assert [each.partition(": ")[2] for each in said] == [
        "The bank has taken back the transaction of -19.00 USD on 6 March 2026. No figure counts it any more."
    ]
    assert "WRONG" not in shell("check", "--accounts").stdout


@pytest.mark.parametrize("is_one_file", [False, True])
def test_what_is_corrected_does_not_come_with_an_older_file_or_beside_its_correction(
    is_one_file: bool, shell: Shell, write: Callable[..., Path]
) -> None:
    if is_one_file:
        shell.import_(write("both.ofx", statement(*FIRST, *SECOND)))
    else:
        shell.import_(write("b.ofx", statement(*SECOND)), write("a.ofx", statement(*FIRST)))
    assert sorted(amounts(shell)) == RIGHT


def ledgerbal(amount: str, day: str) -> str:
    return f"<LEDGERBAL><BALAMT>{amount}<DTASOF>{day}</LEDGERBAL>"


@pytest.mark.parametrize("is_corrected_first", [False, True])
def test_no_balance_from_before_a_correction_contradicts_one_from_after_it(
    is_corrected_first: bool, shell: Shell, write: Callable[..., Path]
) -> None:
    before = write("a.ofx", statement(FIRST[0], FIRST[1], balance=ledgerbal("931.00", "20260310")))
    replaced = ("20260312", "-26.00", "B1", "<CORRECTFITID>A1<CORRECTACTION>REPLACE")
    after = write("b.ofx", statement(replaced, balance=ledgerbal("955.00", "20260331")))
    files = [after, before] if is_corrected_first else [before, after]
    assert [each["warnings"] for each in shell.import_(*files)] == [[], []]
    assert sorted(amounts(shell)) == ["-19.00", "-26.00"]
    assert shell.rows("balance", "accounts") == [(Decimal("955.00"),)]


def test_notes_on_a_booking_stay_when_the_bank_replaces_it(shell: Shell, write: Callable[..., Path]) -> None:
    shell.import_(write("a.ofx", statement(*FIRST)))
    ids = dict(shell.rows("purpose IS NULL AND amount = -50, id"))
    shell.import_(write("b.ofx", statement(*SECOND)))
    assert shell.rows("id", "transactions WHERE amount = -45") == [(ids[True],)]


def test_a_booking_that_replaces_one_of_its_own_id_is_it(shell: Shell, write: Callable[..., Path]) -> None:
    again = ("20260305", "-45.00", "A1", "<CORRECTFITID>A1<CORRECTACTION>REPLACE")
    first, second = write("a.ofx", statement(*FIRST)), write("b.ofx", statement(again))
    shell.import_(first, second, first)
    assert sorted(amounts(shell)) == ["-19.00", "-30.00", "-45.00"]


def days(shell: Shell) -> list[tuple[str, str]]:
    return [(f"{day:%d}", f"{amount:.2f}") for day, amount in shell.rows("booking_date, amount")]


@pytest.mark.parametrize(("id_", "others"), [("F20260305", ()), ("7", (FIRST[1],))])
def test_a_booking_whose_day_moves_under_one_id_stays_one(
    id_: str, others: tuple[tuple[str, str, str, str], ...], shell: Shell, write: Callable[..., Path]
) -> None:
    def told(name: str, day: str) -> Path:
        return write(name, statement((day, "-50.00", id_, "<MEMO>Order 1"), *others).replace(f"Shop {day}", "Shop"))

    first, second = told("a.ofx", "20260305"), told("b.ofx", "20260307")
    shell.import_(first, second)
    moved = [("06", "-19.00")] * len(others) + [("07", "-50.00")]
    assert days(shell) == moved
    shell.import_(first, second)
    assert days(shell) == moved


def test_a_number_that_counts_the_lines_of_a_file_is_no_id(shell: Shell, write: Callable[..., Path]) -> None:
    each = [write(f"{day}.ofx", statement((f"2026030{day}", "-3.20", "1", "<MEMO>Coffee"))) for day in (5, 6)]
    shell.import_(*each)
    assert days(shell) == [("05", "-3.20"), ("06", "-3.20")]
