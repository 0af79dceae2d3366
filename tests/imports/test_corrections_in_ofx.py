"""What an OFX file replaces or deletes of earlier ones is gone, in whatever order they come (OFX 11.4.2)."""

from collections.abc import Callable
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


def statement(*rows: tuple[str, str, str, str]) -> str:
    bookings = "".join(
        f"<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>{day}<TRNAMT>{amount}<FITID>{id_}<NAME>Shop {day}{more}</STMTTRN>\n"
        for day, amount, id_, more in rows
    )
    return (
        "OFXHEADER:100\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>USD<BANKACCTFROM><BANKID>1<ACCTID>4711"
        f"<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>{bookings}</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>"
    )


def amounts(shell: Shell) -> list[str]:
    return [f"{amount:.2f}" for (amount,) in shell.rows("amount")]


def test_what_a_later_file_replaces_or_deletes_is_gone_and_stays_so(shell: Shell, write: Callable[..., Path]) -> None:
    first, second = write("a.ofx", statement(*FIRST)), write("b.ofx", statement(*SECOND))
    assert [each["new"] for each in shell.import_(first, second)] == [3, 1]
    assert sorted(amounts(shell)) == RIGHT
    shell.import_(first, second)
    assert sorted(amounts(shell)) == RIGHT
    undone = shell("imports", "list", "--user", "eva").stdout.splitlines()
    for line in (undone[1], undone[3]):  # both of the second file
        shell("imports", "undo", line.split("\t")[0], "--user", "eva")
    assert sorted(amounts(shell)) == ["-19.00", "-30.00", "-50.00"]


@pytest.mark.parametrize("is_one_file", [False, True])
def test_what_is_corrected_does_not_come_with_an_older_file_or_beside_its_correction(
    is_one_file: bool, shell: Shell, write: Callable[..., Path]
) -> None:
    if is_one_file:
        shell.import_(write("both.ofx", statement(*FIRST, *SECOND)))
    else:
        shell.import_(write("b.ofx", statement(*SECOND)), write("a.ofx", statement(*FIRST)))
    assert sorted(amounts(shell)) == RIGHT
