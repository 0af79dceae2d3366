"""What stands above, below and between the bookings of a CSV file: account, balances, totals, further tables."""

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.bank_csv import accounts
from connectors.bank_csv.profile import Profile, parse_profile

Read = Callable[..., tuple[list[AccountRecord], list[TransactionRecord], list[StatementRecord]]]
IBAN = "DE89370400440532013000"
TABLE = "Datum;Betrag;Text\n02.01.2026;1,00;x\n"
BALANCED = "Datum;Betrag;Saldo\n01.01.2026;1,00;11,00\n02.01.2026;2,00;13,00\n"


def layout(**entries: object) -> Profile:
    columns = {"date": "Datum", "amount": "Betrag", "purpose": "Text"}
    whole = {"header": ["Datum", "Betrag"], "columns": columns, "date": "DD.MM.YYYY", "decimal": ","}
    return parse_profile(json.dumps(whole | entries), name="mine")


@pytest.mark.requirement("readers.csv.metadata")
def test_a_balance_of_a_later_day_than_the_rows_stands_alone_beside_their_chain(read_csv: Read) -> None:
    chain = StatementRecord(
        opening=Decimal("10.00"),
        opening_date=date(2026, 1, 1),
        closing=Decimal("13.00"),
        closing_date=date(2026, 1, 2),
        is_authoritative=True,
    )
    rows = BALANCED.replace("01.01", "01.01.2026;2,00;10,00\n01.01", 1)
    chain = replace(chain, opening=Decimal("8.00"))
    assert read_csv(f"Kontostand;13,00\n{rows}")[2] == [chain]
    assert read_csv(f"Kontostand;50,00\n{rows}")[2] == [chain]  # of an unknown day
    assert read_csv(f"Kontostand am 02.01.2026:;50,00\n{rows}")[2] == [chain]
    later = StatementRecord(closing=Decimal("50.00"), closing_date=date(2026, 1, 5))
    assert read_csv(f"Kontostand am 05.01.2026:;50,00\n{rows}")[2] == [chain, later]
    assert read_csv(f"Kontostand am 05.01.2026:;50,00\n{BALANCED}")[2] == [later]  # two rows prove little


@pytest.mark.requirement("readers.csv.metadata")
def test_balances_in_the_rows_are_a_statement_that_a_missing_row_breaks(read_csv: Read) -> None:
    days = [f"0{day}.01.2026;1,00;{10 + day},00" for day in (1, 2, 3, 4)]

    def said(*rows: str) -> tuple[Decimal | None, date | None, bool]:
        [statement] = read_csv("\n".join(["Datum;Betrag;Saldo", *rows]))[2]
        return statement.opening, statement.opening_date, statement.is_authoritative

    assert said(*days) == said(*days[::-1]) == (Decimal("10.00"), date(2026, 1, 1), True)
    assert said(*days[:2], days[3]) == said(days[3], *days[1::-1]) == (Decimal("10.00"), date(2026, 1, 1), False)
    assert said(days[0], days[2]) == (None, None, False)  # the balances of two rows may as well mean something else


@pytest.mark.requirement("readers.csv.metadata")
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1), (1, 0, 3, 2)])
def test_the_closing_balance_is_that_after_which_no_row_begins_whatever_the_order(
    read_csv: Read, order: tuple[int, ...]
) -> None:
    rows = (
        "01.01.2026;100,00;100,00",
        "01.01.2026;-15,00;85,00",
        "02.01.2026;-20,00;65,00",
        "02.01.2026;-10,00;55,00",
    )
    _, _, [statement] = read_csv("\n".join(["Datum;Betrag;Saldo", *(rows[place] for place in order)]))
    assert (statement.opening, statement.closing, statement.closing_date) == (Decimal(0), Decimal(55), date(2026, 1, 2))


@pytest.mark.requirement("readers.csv.metadata")
def test_the_closing_balance_of_a_broken_chain_is_that_of_the_newest_row(read_csv: Read) -> None:
    rows = "Datum;Betrag;Saldo\n02.01.2026;-10,00;55,00\n02.01.2026;-1,00;65,00\n01.01.2026;9,00;9,00\n"
    _, _, [statement] = read_csv(rows)
    assert (statement.opening, statement.closing, statement.closing_date) == (Decimal(0), Decimal(55), date(2026, 1, 2))


@pytest.mark.requirement("readers.csv.metadata")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_what_leads_back_to_a_balance_of_before_hides_no_gap(read_csv: Read, order: tuple[int, ...]) -> None:
    rows = ("05.01.2026;-80,00;920,00", "05.02.2026;-80,00;700,00", "07.02.2026;80,00;780,00")  # a debit, returned
    _, _, [statement] = read_csv("\n".join(["Datum;Betrag;Saldo", *(rows[place] for place in order)]))
    assert (statement.closing, statement.closing_date) == (Decimal(780), date(2026, 2, 7))


@pytest.mark.requirement("readers.csv.metadata")
def test_of_too_many_chains_of_balances_none_is_looked_for(read_csv: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "ENDS_MAX", 3)
    rows = "Datum;Betrag;Saldo\n02.01.2026;-10,00;55,00\n02.01.2026;-1,00;70,00\n01.01.2026;9,00;9,00\n"
    _, _, [statement] = read_csv(rows)
    assert (statement.opening, statement.closing, statement.closing_date) == (Decimal(0), Decimal(55), date(2026, 1, 2))


@pytest.mark.requirement("readers.csv.metadata")
def test_an_iban_behind_the_first_word_of_a_row_is_the_account_whatever_the_word(read_csv: Read) -> None:
    [account], _, _ = read_csv(f"Zugehörig;{IBAN}\n{TABLE}")
    assert account.iban == IBAN


@pytest.mark.requirement("readers.csv.metadata")
def test_of_closing_balances_inside_the_table_that_of_the_latest_day_counts_and_of_one_day_the_first(
    read_csv: Read,
) -> None:
    more = ["04.01.2026;6,00;Endsaldo\n", "04.01.2026;7,00;Endsaldo\n", "03.01.2026;5,00;Endsaldo\n"]
    for first, second, third in ((0, 1, 2), (2, 0, 1), (0, 2, 1)):
        _, rows, [statement] = read_csv(TABLE + more[first] + more[second] + more[third])
        assert [row.amount for row in rows] == [Decimal("1.00")]
        assert (statement.closing, statement.closing_date) == (Decimal("6.00"), date(2026, 1, 4))


@pytest.mark.requirement("readers.csv.metadata")
def test_a_closing_balance_below_the_table_needs_no_day(read_csv: Read) -> None:
    _, rows, [statement] = read_csv(f"{TABLE};9,00;Endsaldo\n")
    assert (len(rows), statement.closing, statement.closing_date) == (1, Decimal("9.00"), date(2026, 1, 2))


@pytest.mark.requirement("readers.csv.metadata")
def test_a_balance_that_cannot_be_read_is_passed_over_for_the_next_one(read_csv: Read) -> None:
    _, _, [statement] = read_csv(f"Kontostand;abc 7,00;9,00\n{TABLE}")  # no currency
    assert statement.closing == Decimal("9.00")


@pytest.mark.requirement("readers.csv.metadata")
@pytest.mark.parametrize(
    ("label", "day"),
    [
        ("Kontostand vom 31.12.2025", date(2025, 12, 31)),
        ("Kontostand vom 31.13.2025", date(2026, 1, 2)),  # no day: that of the newest booking
        ("Kontostand vom 30.12.2025 (Druck 45.45.2025)", date(2025, 12, 30)),
    ],
)
def test_the_day_of_a_balance_is_the_last_one_beside_it(label: str, day: date, read_csv: Read) -> None:
    _, _, [statement] = read_csv(f"{label};9,00\n{TABLE}")
    assert statement.closing_date == day


@pytest.mark.requirement("readers.csv.metadata")
def test_a_currency_label_names_the_currency_where_something_stands_behind_it(read_csv: Read) -> None:
    assert read_csv(f"Währung;CHF\n{TABLE}")[0][0].currency == "CHF"
    assert read_csv(f"Währung;\n{TABLE}")[0][0].currency == "EUR"


@pytest.mark.requirement("readers.csv.values")
def test_a_line_of_totals_is_no_booking(read_csv: Read) -> None:
    _, rows, _ = read_csv(f"{TABLE};1,00;\n")
    assert [row.booking_date for row in rows] == [date(2026, 1, 2)]


@pytest.mark.requirement("security.limits")
def test_bookings_of_accounts_in_turns_are_held_up_to_a_limit_and_then_written(
    monkeypatch: pytest.MonkeyPatch, read_csv: Read
) -> None:
    profile = layout(
        header=["Datum", "Konto", "Betrag"], columns={"date": "Datum", "account": "Konto", "amount": "Betrag"}
    )
    turns = "".join(f"0{day}.01.2026;{name};1,00\n" for day in (1, 2, 3, 4) for name in ("A", "B"))
    text = f"Datum;Konto;Betrag\n{turns}"
    assert [account.stable_key for account in read_csv(text, profiles=[profile])[0]] == ["CSV/A", "CSV/B"]
    monkeypatch.setattr("connectors.bank_csv.tables.HELD_MAX", 2)
    accounts, rows, statements = read_csv(text, profiles=[profile])
    assert [account.stable_key for account in accounts] == ["CSV/A", "CSV/B"] * 2  # each goes on where it ended
    assert (len(rows), len(statements)) == (8, 4)


@pytest.mark.requirement("readers.csv.profiles")
def test_tables_of_one_group_follow_one_another_and_each_header_begins_an_account(read_csv: Read) -> None:
    bookings = layout(group="bank")
    orders = layout(group="bank", header=["Order"], columns={}, date=[], ignored=True)
    table = "Datum;Betrag;Text\n02.01.2026;{};x\n"
    first, second = f"IBAN;{IBAN}\n{table.format('1,00')}", table.format("2,00")
    accounts, rows, statements = read_csv(f"{first}Order;Stück\nBuy;3\n{second}", profiles=[bookings, orders])
    assert [row.amount for row in rows] == [Decimal("1.00"), Decimal("2.00")]
    assert [account.iban for account in accounts] == [IBAN, None]
    assert len(statements) == 2
