"""A statement file first, then the bank itself: each booking once, under the id that it had, in one account."""

from pathlib import Path

import pytest

from tests.days import days_ago, today
from tests.imports.statements_in_xml import GIRO, camt
from tests.live.conftest import Live
from tests.live.test_enable_banking import connected
from tests.service.conftest import Json, get
from tests.simulators.enable_banking import BANK, BankAccount, row
from tests.simulators.simplefin import booking

pytestmark = pytest.mark.requirement("import.file-then-live")

CHECKING = """OFXHEADER:100
DATA:OFXSGML

<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>USD
<BANKACCTFROM><BANKID>110000000<ACCTID>556677<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>{bookings}
</BANKTRANLIST><LEDGERBAL><BALAMT>126.00<DTASOF>{day}</LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
"""


def day(back: int) -> str:
    return days_ago(back).isoformat()


def imported(live: Live, user: str, file: Path, content: str) -> str:
    """What the command says of the file."""
    file.write_text(content)
    done = live.bankdata("import", "--user", user, str(file))
    assert done.returncode == 0, done.stderr
    return done.stdout


def accounts(live: Live, user: str) -> list[Json]:
    return list(get(live.client(user), "/accounts")["accounts"])


def statement(rows: str, closing: str) -> str:
    return camt(GIRO, rows, opening="100.00", closing=closing)


@pytest.mark.long
def test_enable_banking_tells_again_what_a_file_has_told(live: Live, tmp_path: Path) -> None:
    user = live.user()
    rows = f"""
        {day(40)} | -50.00 | Miete GmbH | Miete
        {day(4)}  | -10.00 | Cafe       | Karte 1234 Cafe
        {day(4)}  | -10.00 | Cafe       | Karte 1234 Cafe
        {day(3)}  | -3.00  | Kiosk      | Karte 1234 Kiosk Koeln
        {day(2)}  | 99.00  | Arbeit AG  | Lohn
    """
    imported(live, user, tmp_path / "first.xml", statement(rows, "126.00"))
    (account,) = accounts(live, user)
    before = live.ids(user)
    live.enable_banking.accounts = [
        BankAccount(
            hash="giro",
            iban=GIRO,
            balance="120.00",
            rows=[
                row("r1", day(4), "-10.00", "Cafe"),
                row("r2", day(4), "-10.00", "Cafe"),
                row(None, day(3), "-3.00", "Kiosk"),
                row("r4", day(2), "99.00", "Arbeit AG"),
                row("r5", day(1), "-6.00", "Baecker"),
            ],
        )
    ]
    assert connected(live, user)[:2] == (0, f"{BANK}: 0 new accounts, 1 new transaction\n")
    everything = [
        (day(40), -50.0, "Miete"),
        (day(4), -10.0, "Karte 1234 Cafe"),
        (day(4), -10.0, "Karte 1234 Cafe"),
        (day(3), -3.0, "Karte 1234 Kiosk Koeln"),
        (day(2), 99.0, "Lohn"),
        (day(1), -6.0, "Baecker"),
    ]
    assert live.bookings(user) == everything
    assert before < live.ids(user)
    (now,) = accounts(live, user)
    assert (now["id"], now["iban"], now["balance"]) == (account["id"], GIRO, 120.0)
    assert live.sync(user) == ["Statement files\t0 new transactions", f"{BANK}\t0 new transactions"]
    later = f"{rows.rstrip()}\n{day(1)} | -6.00 | Baecker | Karte 1234 Baecker"
    assert "0 new, 6 known" in imported(live, user, tmp_path / "later.xml", statement(later, "120.00"))
    assert live.bookings(user) == [*everything[:-1], (day(1), -6.0, "Karte 1234 Baecker")]
    assert live.balances(user) == {"Account giro": 120.0}


@pytest.mark.long
def test_simplefin_names_no_account_number_so_its_user_says_once_that_two_accounts_are_one(
    live: Live, tmp_path: Path
) -> None:
    user = live.user()
    told = [(4, "-10.00", "Cafe"), (4, "-10.00", "Cafe"), (3, "-3.00", "Kiosk"), (2, "99.00", "Employer")]
    rows = "".join(
        f"<STMTTRN><TRNTYPE>POS<DTPOSTED>{day(back).replace('-', '')}<TRNAMT>{amount}<FITID>F{number}<NAME>{name}"
        "</STMTTRN>"
        for number, (back, amount, name) in enumerate(told)
    )
    file = CHECKING.format(bookings=rows, day=day(2).replace("-", ""))
    imported(live, user, tmp_path / "first.ofx", file)
    (account,) = accounts(live, user)
    before = live.ids(user)
    customer = live.simplefin.customer()
    customer.account(
        "1",
        "120.00",
        *(
            booking(f"s{number}", days_ago(back), amount, f"POS {name.upper()} 1234")
            for number, (back, amount, name) in enumerate(told)
        ),
        booking("s9", days_ago(1), "-6.00", "Bakery"),
        day=today(),
    )
    done = live.bankdata("connect", "simplefin", "--user", user, stdin=f"{customer.token}\n")
    assert accounts(live, user)[0]["id"] == account["id"]
    assert len(accounts(live, user)) == 1
    listed = live.bankdata("accounts", "list").stdout.splitlines()
    other = next(row.split("\t")[0] for row in listed if "Account 1" in row)
    merge = ["accounts", "merge", other, account["id"], "--user", user]
    assert done.stdout.splitlines()[-1] == "SimpleFIN: 1 new account, 5 new transactions"
    assert "Account 1: Is this the same account as 110000000 / 556677? Its transactions are there too." in done.stdout
    assert f"The same account: bankdata {' '.join(merge)}. Another one:" in done.stderr.splitlines()[-1]
    done = live.bankdata(*merge, "--yes")
    assert done.stdout == "Merged Account 1 into 110000000 / 556677: 4 bookings were in both and count once.\n"
    everything = [
        (day(4), -10.0, "POS CAFE 1234"),
        (day(4), -10.0, "POS CAFE 1234"),
        (day(3), -3.0, "POS KIOSK 1234"),
        (day(2), 99.0, "POS EMPLOYER 1234"),
        (day(1), -6.0, "Bakery"),
    ]
    assert live.bookings(user) == everything
    assert before < live.ids(user)
    (now,) = accounts(live, user)
    assert (now["id"], now["balance"]) == (account["id"], 120.0)
    assert live.sync(user) == ["Statement files\t0 new transactions", "SimpleFIN\t0 new transactions"]
    assert "0 new, 4 known" in imported(live, user, tmp_path / "again.ofx", file)
    assert live.bookings(user) == everything
    assert live.balances(user) == {"Account 1": 120.0}
