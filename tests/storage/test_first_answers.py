"""What first answers say of bookings, and when they are written."""

from collections.abc import Collection
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from analytics.cashflow import sums_by_month
from handlers.json_shapes import transaction
from handlers.work.cache.reader import Reader
from handlers.work.cache.user_data import Need
from storage import accounts
from storage.changes import first_answers
from storage.changes.first_answers import _NEWEST
from tests.storage.conftest import Bank, bookings


@pytest.mark.requirement("cache.first_answers")
def test_amounts_finer_than_the_currency_are_not_added_up_because_each_is_rounded(bank: Bank) -> None:
    bank.bring(
        bookings("2026-11-02 | -1.005 | A\n2026-11-03 | -1.005 | A\n2026-11-04 | -2.00 | B\n2026-11-05 | -3.00 | B")
    )
    begun = first_answers.begin(bank.database, bank.user.id, with_bookings=True)
    answers = begun.answers() if begun is not None else None
    assert answers is not None
    assert answers.newest is not None
    assert answers.newest.sums is not None
    assert answers.newest.sums.select("booking_date", "amount").rows() == [
        (date(2026, 11, 1), Decimal("-5.00")),
        (date(2026, 11, 2), Decimal("-1.005")),
        (date(2026, 11, 3), Decimal("-1.005")),
    ]


@pytest.mark.requirement("cache.first_answers")
def test_who_has_no_first_answers_gets_them_with_the_first_question(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -1.00 | A"))
    bank.database.execute("UPDATE first_answers SET form = 0 WHERE user_id = $1", bank.user.id)  # as before an upgrade
    reader = Reader(bank.database, bytes_max=1, render=transaction)
    with reader.open(bank.user.id, Need.ACCOUNTS) as reading:
        assert reading.flows.height == 1
        assert not reading.has(Need.FIGURES)
    begun = first_answers.begin(bank.database, bank.user.id, with_bookings=False)
    assert begun is not None
    assert begun.row is not None


@pytest.mark.requirement("cache.first_answers")
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_long_history_is_summed_up_a_few_months_at_a_time(
    size: int, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [
        *("2026-11-20 | 5.00 | Anna", "2026-11-02 | -1.00 | B", "2026-10-31 | -1.005 | B", "2026-10-02 | 3.00 | Cem"),
        *("2026-06-05 | -4.00 | Cem", "2026-06-04 | -2.00 | Anna", "2026-03-03 | -8.00 | Anna"),
        *("2026-03-03 | 7.00 | B", "2026-02-02 | -9.00 | Cem", "2026-01-01 | -6.00 | Dora"),
    ]
    bank.bring(bookings("\n".join(told)))
    shown = accounts.of_user(bank.database, bank.user.id)
    summed: list[int] = []

    def sums(rows: pl.DataFrame, *, currency: str, accounts: Collection[str]) -> pl.DataFrame | None:
        summed.append(rows.height)
        return sums_by_month(rows, currency=currency, accounts=accounts)

    monkeypatch.setattr("storage.changes.first_answers.NEWEST_MAX", 1)
    whole = _NEWEST.decode(first_answers.newest_of(bank.database, bank.user.id, shown, has_parts=False))
    monkeypatch.setattr("storage.transactions.LISTED_AT_ONCE", size)
    monkeypatch.setattr("storage.changes.first_answers.sums_by_month", sums)
    found = _NEWEST.decode(first_answers.newest_of(bank.database, bank.user.id, shown, has_parts=False))
    for one, other in ((found.sums, whole.sums), (found.recent, whole.recent)):
        assert one is not None
        assert other is not None
        assert one.equals(other)
    assert found.counts == whole.counts
    assert sum(summed) == len(told)
    assert max(summed) < len(told)
