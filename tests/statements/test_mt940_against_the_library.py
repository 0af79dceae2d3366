"""The mt-940 library, with its options on and one parse per block, as a second opinion on plain statements."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import mt940
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.mt940.reader import read
from tests.conftest import examples

BOOKINGS = st.lists(
    st.tuples(
        st.sampled_from(["C", "D", "RC", "RD"]),
        st.decimals(min_value=Decimal("0.01"), max_value=Decimal("99999999.99"), places=2),
        st.dates(min_value=date(2001, 1, 10), max_value=date(2069, 12, 20)),
        st.integers(min_value=-5, max_value=5),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.requirement("readers.mt940")
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(BOOKINGS)
def test_amounts_and_days_agree_with_the_library(
    found: Callable[..., Any],
    block: Callable[..., str],
    bookings: list[tuple[str, Decimal, date, int]],
) -> None:
    lines = [
        f":61:{value:%y%m%d}{date.fromordinal(value.toordinal() + shift):%m%d}{mark}{amount:f}NTRFNONREF".replace(
            ".", ","
        )
        for mark, amount, value, shift in bookings
    ]
    text = block("\n".join(lines), closing=":62F:C260131EUR1,00")
    ours = [(row.amount, row.value_date, row.booking_date) for row in found(read, text).transactions]
    (statement,) = mt940.parse_statements(text, options=mt940.Options.all())
    theirs = [
        (row.data["amount"].amount, _day(row.data["date"]), _day(row.data["entry_date"]))
        for row in statement.transactions
    ]
    assert ours == theirs


def _day(day: date) -> date:
    return date(day.year, day.month, day.day)
