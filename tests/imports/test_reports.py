"""What `bankdata import` says of a file: rows as they stand in it, bookings as they are stored."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.imports.command_line import Shell

IBAN = "DE89370400440532013000"


def _booking(amount: str, *shares: str, status: str = "BOOK") -> str:
    details = "".join(f'<TxDtls><Amt Ccy="EUR">{share}</Amt></TxDtls>' for share in shares)
    return (
        f'<Ntry><Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>{status}</Sts>'
        f"<BookgDt><Dt>2026-03-02</Dt></BookgDt><NtryDtls>{details}</NtryDtls></Ntry>"
    )


def _balance(code: str, amount: str) -> str:
    return (
        f'<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">{amount}</Amt>'
        "<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-02</Dt></Dt></Bal>"
    )


@pytest.fixture
def statement(write: Callable[..., Path]) -> Path:
    """Four rows: a booking, a batch of three bookings, a batch that does not add up, and one that is announced."""
    rows = (
        _booking("5.00")
        + _booking("12.00", "3.00", "4.00", "5.00")
        + _booking("7.00", "1.00", "2.00")
        + _booking("9.99", status="PDNG")
    )
    return write(
        "march.xml",
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><Stmt>'
        f"<Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>"
        f"{_balance('OPBD', '100.00')}{_balance('CLBD', '76.00')}{rows}</Stmt></BkToCstmrStmt></Document>",
    )


@pytest.mark.requirement("import.report")
def test_a_batch_is_one_row_of_the_file_and_as_many_bookings_as_it_shows(shell: Shell, statement: Path) -> None:
    assert shell.import_(statement, statement) == [
        {
            "file": str(statement),
            "format": "camt",
            "error": None,
            "guesses": [],
            "warnings": [],
            "statements": [
                {
                    "account": IBAN,
                    "currency": "EUR",
                    "rows": 4,
                    "pending": 1,
                    "opening": 100.00,
                    "closing": 76.00,
                    "closingDate": "2026-03-02",
                    "addsUp": True,
                }
            ],
            "new": new,
            "known": known,
        }
        for new, known in ((5, 0), (0, 5))
    ]


@pytest.mark.requirement("import.report")
def test_a_person_reads_rows_bookings_period_balance_and_sum(shell: Shell, statement: Path) -> None:
    told = shell("import", "--user", "eva", statement).stdout
    assert f"{IBAN} EUR, 4 rows with 6 bookings from 2026-03-02 to 2026-03-02, closing balance 76.00" in told
    assert told.endswith(" on 2026-03-02, adds up\n")


@pytest.mark.requirement("import.report")
@pytest.mark.parametrize(("currency", "closing"), [("EUR", "76.50"), ("KWD", "76.500")])
def test_a_person_reads_a_balance_with_the_decimals_of_its_currency(
    shell: Shell, write: Callable[..., Path], currency: str, closing: str
) -> None:
    file = write("a.sta", f":20:1\n:25:1234\n:28C:1\n:60F:C260101{currency}76,5\n:62F:C260131{currency}76,5\n-\n")
    assert f"closing balance {closing} on " in shell("import", "--user", "eva", file).stdout
    assert f"\t{closing} {currency} as of " in shell("accounts", "list").stdout


@pytest.mark.requirement("import.report")
def test_a_file_that_comes_again_is_told_as_before(shell: Shell, write: Callable[..., Path]) -> None:
    file = write(
        "april.xml",
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><Stmt>'
        f"<Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>{_balance('OPBD', '100.00')}"
        f"{_balance('CLBD', '83.00')}{_booking('5.00')}{_booking('12.00', '3.00', '4.00', '5.00')}"
        "</Stmt></BkToCstmrStmt></Document>",
    )
    (first,), lines = shell.import_(file), shell("import", "--user", "eva", "--dry-run", file).stdout.splitlines()
    assert shell.import_(file) == [{**first, "new": 0, "known": 4}]
    assert shell("import", "--user", "eva", file).stdout.splitlines() == lines


@pytest.mark.requirement("import.report")
def test_what_was_set_aside_is_said_below_the_file(shell: Shell, write: Callable[..., Path]) -> None:
    ahead = _balance("CLBD", "76.00").replace("2026-03-02", "2099-01-01")
    file = write(
        "ahead.xml",
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><Stmt>'
        f"<Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>{ahead}{_booking('5.00')}</Stmt></BkToCstmrStmt>"
        "</Document>",
    )
    lines = shell("import", "--user", "eva", file).stdout.splitlines()
    assert lines[0] == f"{file} (camt): 1 new, 0 known"
    assert lines[-1] == "  A balance is dated more than 60 days ahead and was set aside."
