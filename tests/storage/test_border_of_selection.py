"""Cashflow counts what crosses the border of a selection: for any data, also while legs of transfers are missing."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations, count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.cashflow import monthly_cashflow
from analytics.records import AccountRecord, TransactionRecord
from storage.database import Database
from storage.transactions import Selection
from tests.cache.from_store import matching
from tests.conftest import examples
from tests.storage.conftest import Bank, bookings

TODAY = date(2026, 3, 31)
MONTHS = 6
GIRO, SAVINGS, CARD = (
    AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR"),
    AccountRecord(stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR", kind="savings"),
    AccountRecord(stable_key="5500 **** 0004", currency="EUR", kind="credit_card"),
)
IBANS = (None, GIRO.iban, SAVINGS.iban, "AT611904300234573201")

# Few amounts and days, so that many rows are legs, lone legs, and legs with a choice of partners
RECORDS = st.builds(
    TransactionRecord,
    amount=st.sampled_from([Decimal(text) for text in ("-50.00", "50.00", "-7.25", "7.25", "1000.00", "0.00")]),
    currency=st.just("EUR"),
    booking_date=st.integers(0, 12).map(lambda days: date(2026, 2, 24) + timedelta(days=days)),
    counterpart_iban=st.sampled_from(IBANS),
    purpose=st.sampled_from([None, "Kreditkartenabrechnung"]),
)
IMPORTS = st.lists(st.tuples(st.sampled_from([GIRO, SAVINGS, CARD]), st.lists(RECORDS, max_size=5)), max_size=5)

_numbers = count()


def figures(database: Database, user_id: str, selection: list[str]) -> Decimal:
    """The sum of net over all months."""
    rows = matching(database, user_id, Selection(account_ids=selection))
    months = monthly_cashflow(rows, selection=selection, months=MONTHS, today=TODAY, currency="EUR")
    return sum(months["net"].to_list(), Decimal(0))


@pytest.mark.requirement("cashflow.border")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(20))
@given(imports=IMPORTS)
def test_the_sum_of_net_is_the_change_of_the_balance_of_any_selection_after_any_import(
    new_bank: Callable[..., Any], database: Database, imports: list[tuple[AccountRecord, list[TransactionRecord]]]
) -> None:
    bank = new_bank(f"user{next(_numbers)}")
    for account, records in imports:
        bank.bring(records, account=account)
        rows = bank.rows("account_id, amount, booking_date, id")
        known = sorted({row["account_id"] for row in rows})
        for size in range(1, len(known) + 1):
            for selection in map(list, combinations(known, size)):
                change = sum((row["amount"] for row in rows if row["account_id"] in selection), Decimal(0))
                user_id = bank.user.id
                assert figures(database, user_id, selection) == change


@pytest.mark.requirement("cashflow.border")
@pytest.mark.parametrize("named", ["DE37999200000000012345", "DE37 9992 0000 0000 0123 45"])
def test_the_iban_of_a_german_bank_code_and_number_names_the_account_of_which_no_more_is_known(
    bank: Bank, database: Database, named: str
) -> None:
    bank.bring(
        bookings("2026-03-03 | 50.00 | Eva | Sparen", counterpart_iban=GIRO.iban),
        account=AccountRecord(stable_key="99920000/12345", currency="EUR"),  # MT940 of an unknown bank
    )
    bank.bring(bookings("2026-03-02 | -50.00 | Eva | Sparen", counterpart_iban=named), account=GIRO)
    both = sorted({row["account_id"] for row in bank.rows("account_id, booking_date, amount, id")})
    rows = matching(database, bank.user.id, Selection(account_ids=both))
    assert set(rows["transfer_account_id"]) == set(both)
    months = monthly_cashflow(rows, selection=both, months=MONTHS, today=TODAY, currency="EUR")
    assert months.row(-1)[1:3] == (0, 0)


@pytest.mark.requirement("cashflow.border")
def test_a_leg_counts_until_the_other_one_arrives(new_bank: Callable[..., Any], database: Database) -> None:
    bank = new_bank()
    leaving = TransactionRecord(
        amount=Decimal("-50.00"), currency="EUR", booking_date=date(2026, 2, 27), counterpart_iban=SAVINGS.iban
    )
    arriving = TransactionRecord(
        amount=Decimal("50.00"), currency="EUR", booking_date=date(2026, 3, 2), counterpart_iban=GIRO.iban
    )
    bank.bring([], account=SAVINGS)
    bank.bring([leaving], account=GIRO)
    user_id = bank.user.id
    accounts = [row["id"] for row in database.rows("SELECT id FROM accounts WHERE user_id = $1", user_id)]

    assert matching(database, user_id, Selection(account_ids=accounts))["transfer_id"].to_list() == [None]
    assert figures(database, user_id, accounts) == Decimal("-50.00")

    bank.bring([arriving], account=SAVINGS)
    rows = matching(database, user_id, Selection(account_ids=accounts))
    assert set(rows["transfer_account_id"]) == set(accounts)
    assert figures(database, user_id, accounts) == 0


@pytest.mark.requirement("decision 149")
def test_what_a_card_paid_counts_once_when_the_card_is_settled_under_its_companys_iban(
    bank: Bank, database: Database
) -> None:
    paid = bookings("2026-03-02 | -80.00 | Hotel | Zimmer\n2026-03-20 | 80.00 | | Zahlung Danke")
    settled = bookings(f"2026-03-19 | -80.00 | Kreditkartenabrechnung | Maerz | counterpart_iban={IBANS[-1]}")
    bank.bring(paid, account=CARD)
    bank.bring(settled, account=GIRO)
    both = sorted({row["account_id"] for row in bank.rows("account_id, booking_date, amount, id")})
    rows = matching(database, bank.user.id, Selection(account_ids=both))
    months = monthly_cashflow(rows, selection=both, months=MONTHS, today=TODAY, currency="EUR")
    assert months.row(-1)[1:3] == (0, 80)
    assert bank.bring(settled, account=GIRO).changes.is_empty()  # paired for the same reason as before
