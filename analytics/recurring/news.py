"""News about recurring payments since the last events about them."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct

from analytics.recurring.frequencies import GRACE_DAYS
from analytics.recurring.history import History

NEW, PRICE_CHANGED, MISSED, ENDED = (f"subscription.{each}" for each in ("new", "price_changed", "missed", "ended"))

DAY = timedelta(days=1)


class KnownPayment(Struct, frozen=True, kw_only=True):
    """A payment as the user knows it from earlier events: its id, latest charge and price at that time, the number of
    charges missed after that charge, and whether it had ended."""

    id: str
    transaction_id: str
    last_charged: date
    amount: Decimal
    missed: int
    has_ended: bool

    def missed_after(self, last_charged: date) -> int:
        """The number of missed charges that were reported for the time after `last_charged`, the payment's latest
        charge: 0 if that charge came after those reports."""
        return self.missed if self.last_charged >= last_charged else 0


class PaymentState(Struct, frozen=True, kw_only=True):
    """The present state of a payment: the due days missed after its latest charge and before its end, whether it has
    ended, whether its price mostly stays the same, and the next day on which the state may change without a charge
    (None after its end)."""

    missed: Sequence[date]
    has_ended: bool
    has_price: bool
    look_at: date | None


def state_of(past: History, *, frequency: str, over_on: date, today: date) -> PaymentState:
    """The state of the payment with this history. `over_on` is the day from which it counts as ended without another
    charge."""
    grace, has_ended = timedelta(days=GRACE_DAYS[frequency]), over_on <= today
    charges = sum(price.charges for price in past.prices)
    return PaymentState(
        missed=[day for day in past.overdue if day + grace < over_on],
        has_ended=has_ended,
        has_price=2 * (len(past.prices) - 1) <= charges - 1,
        look_at=None if has_ended else min(past.next_expected + grace + DAY, over_on),
    )


def news_of(now: KnownPayment, stands: PaymentState, before: KnownPayment | None) -> list[tuple[str, date | None]]:
    """The events to report for the payment, as pairs of type and day; the day is None but for a missed charge. `before`
    is None where nothing was reported of it yet: then it is new, or, if it has ended already, no news. A payment that
    is charged again after its end is new, too, and another price is news only where the price mostly stays the same."""
    if before is None or (before.has_ended and not now.has_ended):
        return [] if now.has_ended else [(NEW, None)]
    return [
        *([(PRICE_CHANGED, None)] if stands.has_price and before.amount != now.amount else []),
        *((MISSED, day) for day in stands.missed[before.missed_after(now.last_charged) :]),
        *([(ENDED, None)] if now.has_ended and not before.has_ended else []),
    ]
