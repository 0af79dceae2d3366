"""A recurring payment as users and apps know it, and what a day makes of it."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.periods import months_later, six_months_before
from analytics.recurring.directions import INCOMING, MARK, OUTGOING
from analytics.recurring.frequencies import OVER_AFTER

CONFIRMED, DISMISSED, UNDECIDED = "confirmed", "dismissed", "none"


class RecurringPayment(Struct, frozen=True, kw_only=True):
    """One recurring payment. `amount` is the latest charge, positive; charges are oldest first. `direction` is
    "incoming" or "outgoing", `confirmation` what the person says of it. `added_id` is the id of the payment added by
    hand that is the same, and `added_to` the account of one that was added and not found. `asked` is the day until
    which the bookings of its account are known."""

    id: str
    merchant_name: str
    amount: Decimal
    currency: str
    frequency: str
    last_charged: date
    charge_ids: list[str]
    charge_days: list[date]
    confidence: float
    next_expected: date
    account_id: str
    direction: str
    confirmation: str = UNDECIDED
    added_id: str | None = None
    added_to: str | None = None
    asked: date = date.max

    @property
    def over_on(self) -> date:
        """The first day on which it is over: more than two periods and a day after its latest charge."""
        months, days = OVER_AFTER[self.frequency]
        return months_later(self.last_charged, months) + timedelta(days=days + 1)

    @property
    def is_over(self) -> bool:
        """Whether it is over as far as the bookings of its account are known."""
        return self.over_on <= self.asked

    @property
    def goes_on(self) -> bool:
        """Whether it is neither over nor dismissed, so that it is looked ahead to."""
        return not self.is_over and self.confirmation != DISMISSED

    def is_current(self, today: date) -> bool:
        """Whether it goes on, and was charged in the last six months and in two periods before `today`, or was added by
        a person."""
        return self.goes_on and (
            self.added_to is not None or (self.last_charged >= six_months_before(today) and self.over_on > today)
        )

    def occurrences(self, today: date) -> int:
        """The number of its charges in the six months before `today`."""
        window = six_months_before(today)
        return sum(day >= window for day in self.charge_days)


def payments_in(found: pl.DataFrame) -> list[RecurringPayment]:
    """The payments of a frame (analytics.frames.SUBSCRIPTIONS), of incoming ones with `directions.MARK`."""
    return [_payment(row) for row in found.iter_rows(named=True)]


def _payment(row: Mapping[str, object]) -> RecurringPayment:
    values = {name: row[name] for name in RecurringPayment.__struct_fields__ if name in row}
    comes_in = str(row["user_id"]).endswith(MARK)
    return RecurringPayment(**values, direction=INCOMING if comes_in else OUTGOING)  # type: ignore[arg-type]


def asked_until(payments: Iterable[RecurringPayment], known: Mapping[str, date], today: date) -> list[RecurringPayment]:
    """The payments with `asked`, by `known`: the day until which the bookings of each account are known, else
    `today`."""
    return [replace(each, asked=known.get(each.account_id, today)) for each in payments]


def ids_by_charge(payments: Iterable[RecurringPayment]) -> dict[str, str]:
    """The ids of recurring payments by each of their charges."""
    return {charge: each.id for each in payments for charge in each.charge_ids}
