"""What is new of recurring payments since it was told last."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from analytics.recurring.frequencies import GRACE_DAYS
from analytics.recurring.history import History

NEW, PRICE_CHANGED, MISSED, ENDED = (f"subscription.{each}" for each in ("new", "price_changed", "missed", "ended"))

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldPayment:
    """A payment as it was told: its id, latest charge and price then, how many charges have been missed after it, and
    whether it had ended."""

    id: str
    transaction_id: str
    last_charged: date
    amount: Decimal
    missed: int
    has_ended: bool

    def missed_after(self, last_charged: date) -> int:
        """How many charges were told to be missed after the one of this day, the latest."""
        return self.missed if self.last_charged >= last_charged else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentState:
    """A payment as it stands: the days after its latest charge on which one was missed, whether it has ended, whether
    it has a price that mostly stays the same, and the next day on which it may stand otherwise without a charge."""

    missed: Sequence[date]
    has_ended: bool
    has_price: bool
    look_at: date | None


def state_of(told: History, *, frequency: str, over_on: date, today: date) -> PaymentState:
    """How the payment of this history stands; it is over from the day `over_on`."""
    grace, has_ended = timedelta(days=GRACE_DAYS[frequency]), over_on <= today
    charges = sum(price.charges for price in told.prices)
    return PaymentState(
        missed=[day for day in told.overdue if day + grace < over_on],
        has_ended=has_ended,
        has_price=2 * (len(told.prices) - 1) <= charges - 1,
        look_at=None if has_ended else min(told.next_expected + grace + DAY, over_on),
    )


def news_of(now: ToldPayment, stands: PaymentState, before: ToldPayment | None) -> list[tuple[str, date | None]]:
    """The types of what is to be told of the payment, with the day of a charge that is missed; `before` is None where
    nothing was told of it yet. One that is charged again after its end is new."""
    if before is None or (before.has_ended and not now.has_ended):
        return [] if now.has_ended else [(NEW, None)]
    return [
        *([(PRICE_CHANGED, None)] if stands.has_price and before.amount != now.amount else []),
        *((MISSED, day) for day in stands.missed[before.missed_after(now.last_charged) :]),
        *([(ENDED, None)] if now.has_ended and not before.has_ended else []),
    ]
