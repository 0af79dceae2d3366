"""What first answers say of bookings, and when they are written."""

from datetime import date
from decimal import Decimal

import pytest

from handlers.json_shapes import transaction
from handlers.work.cache.reader import Reader
from handlers.work.cache.user_data import Need
from storage.changes import first_answers
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
