"""What a camt.052, .053 or .054 says of an account: balances, pages, whose statement it is, whether it adds up."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.camt.reader import read

Text = Callable[..., str]
Gather = Callable[..., Any]

OWN = "DE89370400440532013000"


@pytest.mark.requirement("readers.camt.dates")
def test_without_balances_the_last_day_is_the_end_of_the_period(found: Gather, message: Text, entry: Text) -> None:
    header = "<CreDtTm>2026-02-02T08:00:00</CreDtTm><FrToDt><ToDtTm>2026-02-01T23:59:59</ToDtTm></FrToDt>"
    assert found(read, message(entry(dates=""), header=header)).only.booking_date == date(2026, 2, 1)


@pytest.mark.requirement("readers.camt.balances")
@pytest.mark.parametrize(
    ("version", "kinds", "opening", "closing"),
    [
        ("053.001.08", ["OPBD", "CLBD"], 1, 2),
        ("053.001.08", ["PRCD", "CLBD", "CLAV"], 1, 2),
        ("053.001.08", ["CLAV"], None, None),
        ("053.001.08", ["OPAV", "ITBD"], None, None),
        ("053.001.08", ["OPBD", "ITBD"], 1, 2),
        ("053.001.08", ["ITBD", "CLBD"], 1, 2),
        ("052.001.08", ["ITBD"], None, 1),
        ("052.001.08", ["ITAV", "OPAV"], None, None),
    ],
)
def test_only_booked_balances_count(
    version: str,
    kinds: list[str],
    opening: int | None,
    closing: int | None,
    found: Gather,
    message: Text,
    balance: Text,
) -> None:
    balances = "".join(balance(kind, str(amount)) for amount, kind in enumerate(kinds, start=1))
    (statement,) = found(read, message(version=version, balances=balances)).statements
    assert (statement.opening, statement.closing) == (opening, closing)


@pytest.mark.requirement("readers.camt.balances")
@pytest.mark.parametrize(("kinds", "said"), [("OPBD CLBD", "2026-02-02T08:00:00"), ("CLBD", None)])
def test_when_a_statement_was_written_is_said_where_it_has_both_balances(
    kinds: str, said: str | None, found: Gather, message: Text, balance: Text
) -> None:
    balances = "".join(balance(kind, "1") for kind in kinds.split())
    header = "<CreDtTm>2026-02-02T08:00:00.000+01:00</CreDtTm>"
    (statement,) = found(read, message(balances=balances, header=header)).statements
    assert statement.issued_at == said


@pytest.mark.requirement("readers.camt.balances")
def test_a_balance_without_indicator_is_a_credit_and_debits_are_negative(
    found: Gather, message: Text, balance: Text
) -> None:
    balances = balance("OPBD", "5", mark="") + balance("CLBD", "7.5", mark="DBIT")
    (statement,) = found(read, message(balances=balances)).statements
    assert (statement.opening, statement.closing) == (Decimal(5), Decimal("-7.5"))
    assert statement.closing_date == date(2026, 1, 31)


@pytest.mark.requirement("readers.camt.balances")
@pytest.mark.parametrize(
    ("line", "granted"),
    [
        ("<Incl>false</Incl><Amt Ccy='EUR'>2000.00</Amt>", Decimal(2000)),
        ("<Incl>true</Incl><Tp><Cd>AVAI</Cd></Tp><Amt Ccy='EUR'>150.00</Amt>", None),
        ("<Incl>false</Incl>", None),
        (
            "<Incl>true</Incl><Tp><Cd>AVAI</Cd></Tp><Amt Ccy='EUR'>1500.00</Amt></CdtLine><CdtLine>"
            "<Incl>false</Incl><Tp><Cd>CRED</Cd></Tp><Amt Ccy='EUR'>2000.00</Amt>",
            Decimal(2000),
        ),
        (
            "<Incl>false</Incl><Amt Ccy='EUR'>2000.00</Amt></CdtLine><CdtLine>"
            "<Incl>true</Incl><Tp><Cd>AVAI</Cd></Tp><Amt Ccy='EUR'>1500.00</Amt>",
            Decimal(2000),
        ),
        ("<Incl>false</Incl><Amt Ccy='EUR'>much</Amt>", None),
        ("<Incl>false</Incl><Amt Ccy='USD'>500.00</Amt>", None),  # not of the account's currency
    ],
)
def test_the_overdraft_that_a_bank_grants_is_read_and_what_is_left_of_it_is_not(
    line: str, granted: Decimal | None, found: Gather, message: Text, balance: Text
) -> None:
    closing = balance("CLBD", "7.5").replace("<Amt", f"<CdtLine>{line}</CdtLine><Amt", 1)
    (statement,) = found(read, message(balances=balance("OPBD", "5") + closing)).statements
    assert (statement.closing, statement.credit_line) == (Decimal("7.5"), granted)


@pytest.mark.requirement("readers.camt.balances")
def test_an_overdraft_that_changes_within_a_statement_is_that_of_its_end(
    found: Gather, message: Text, balance: Text
) -> None:
    first, last = (
        balance(kind, "5").replace("<Amt", f"<CdtLine><Incl>false</Incl><Amt Ccy='EUR'>{line}</Amt></CdtLine><Amt", 1)
        for kind, line in (("OPBD", "1000"), ("CLBD", "2000"))
    )
    for balances in (first + last, last + first):
        assert found(read, message(balances=balances)).statements[0].credit_line == Decimal(2000)


@pytest.mark.requirement("readers.camt.balances")
@pytest.mark.parametrize(("closing", "adds_up"), [("87.66", True), ("87.67", False)])
def test_a_statement_that_adds_up_says_so(
    closing: str, adds_up: bool, found: Gather, message: Text, entry: Text, balance: Text
) -> None:
    text = message(entry(), balances=balance("OPBD", "100") + balance("CLBD", closing))
    assert found(read, text).statements[0].is_authoritative is adds_up


@pytest.mark.requirement("readers.camt.accounts")
def test_each_statement_belongs_to_its_own_account(found: Gather, message: Text, entry: Text) -> None:
    one = message(entry("1"), account="<Id><Othr><Id>123 45</Id></Othr></Id><Ccy>USD</Ccy><Nm>Cash</Nm>")
    two = message(entry("2"), account=f"<Id><IBAN>{OWN}</IBAN></Id><Tp><Cd>SVGS</Cd></Tp>")
    inner = two[two.index("<Stmt>") : two.index("</BkToCstmrStmt>")]
    accounts = found(read, one.replace("</Stmt>", "</Stmt>" + inner)).accounts
    assert [(account.stable_key, account.iban, account.currency, account.kind) for account in accounts] == [
        ("12345", None, "USD", None),
        (OWN, OWN, "EUR", "savings"),
    ]
    assert accounts[0].name == "Cash"


@pytest.mark.requirement("accounts.german-iban")
@pytest.mark.parametrize("around", ["{}", "<CmbndId>{}</CmbndId>"])
@pytest.mark.parametrize(
    ("system", "code", "number", "key", "iban"),
    [
        ("DEBLZ", "12030000", "202051", "12030000/202051", "DE02120300000000202051"),
        ("DEBLZ", "12030000", "0000202051", "12030000/0000202051", "DE02120300000000202051"),
        ("DEBLZ", "12030000", "202052", "12030000/202052", None),  # wrong check digit
        ("DEBLZ", "12030000", "GIRO-1", "GIRO-1", None),
        ("ATBLZ", "12030000", "202051", "202051", None),
        ("DEBLZ", "12030000", "DE02120300000000202051", "DE02120300000000202051", "DE02120300000000202051"),
    ],
)
def test_an_account_number_belongs_to_the_german_bank_code_beside_it(
    system: str, code: str, number: str, key: str, iban: str | None, around: str, found: Gather, message: Text
) -> None:
    bank = f"<ClrSysMmbId><ClrSysId><Cd>{system}</Cd></ClrSysId><MmbId>{code}</MmbId></ClrSysMmbId>"
    servicer = f"<Svcr><FinInstnId>{around.format(bank)}</FinInstnId></Svcr>"
    stated = f"<Id><Othr><Id>{number}</Id></Othr></Id><Ccy>EUR</Ccy>{servicer}"
    (account,) = found(read, message(account=stated)).accounts
    assert (account.stable_key, account.iban) == (key, iban)


@pytest.mark.requirement("readers.camt.paging")
def test_later_pages_keep_their_place_in_the_sequence(found: Gather, message: Text) -> None:
    header = "<StmtPgntn><PgNb>2</PgNb><LastPgInd>true</LastPgInd></StmtPgntn><ElctrncSeqNb>17</ElctrncSeqNb>"
    assert found(read, message(header=header)).statements[0].sequence == "17/2"


@pytest.mark.requirement("readers.camt")
def test_an_envelope_and_an_empty_line_before_the_declaration_do_no_harm(
    found: Gather, message: Text, entry: Text
) -> None:
    inner = message(entry())
    document = inner[inner.index("<Document") :]
    assert len(found(read, f"<message><AppHdr/>{document}</message>").transactions) == 1
    assert len(found(read, f"\r\n  {inner}").transactions) == 1
    assert len(found(read, "\n" * 100_000 + inner).transactions) == 1  # more than is read at once


@pytest.mark.requirement("readers.camt.accounts")
@pytest.mark.parametrize(
    ("account", "key", "currency"),
    [
        ("<Id><PrtryAcct><Id>SE12 34</Id></PrtryAcct></Id>", "SE1234", "EUR"),
        ("<Id/><Nm>Till</Nm>", "Till", "EUR"),
        ("", "unnamed", "EUR"),
        ("<Id><IBAN>CH9300762011623852957</IBAN></Id>", "CH9300762011623852957", "EUR"),
    ],
)
def test_accounts_without_an_iban_or_a_currency(
    account: str, key: str, currency: str, found: Gather, message: Text, entry: Text
) -> None:
    (record,) = found(read, message(entry(), account=account)).accounts
    assert (record.stable_key, record.currency) == (key, currency)


@pytest.mark.requirement("readers.camt.accounts")
def test_without_any_amount_the_currency_is_the_country_s(found: Gather, message: Text) -> None:
    (record,) = found(read, message(account="<Id><IBAN>CH9300762011623852957</IBAN></Id>")).accounts
    assert record.currency == "CHF"


@pytest.mark.requirement("readers.camt.balances")
def test_of_several_balances_the_earliest_opens_and_the_latest_closes_in_the_account_s_currency(
    found: Gather, message: Text, entry: Text, balance: Text
) -> None:
    balances = (
        balance("OPBD", "7", "2026-01-01", currency="USD")
        + balance("OPBD", "2", "2026-01-30")
        + balance("OPBD", "1", "2026-01-29")
        + balance("CLBD", "4", "2026-01-30")
    )
    text = message(entry(), balances=balances, after=balance("CLBD", "3", "2026-01-29"))
    (statement,) = found(read, text).statements
    assert (statement.opening, statement.closing) == (1, 4)
