"""News about recurring payments since the last events about them."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct

from analytics.recurring.frequencies import GRACE_DAYS
from analytics.recurring.history import History

NEW, PRICE_CHANGED, MISSED, ENDED, RETRACTED = (
    f"subscription.{each}" for each in ("new", "price_changed", "missed", "ended", "retracted")
)


class KnownPayment(Struct, frozen=True, kw_only=True):
    """A payment as the user knows it from earlier events: its id, latest charge and price at that time, the due days
    that were reported as missed, and the day from which it was over (None: it had not ended)."""

    id: str
    transaction_id: str
    last_charged: date
    amount: Decimal
    missed: Sequence[date]
    over_since: date | None


class PaymentState(Struct, frozen=True, kw_only=True):
    """The present state of a payment: the days of its charges, and those missed before its end; which of them are
    `overdue`, after the latest charge; the day from which it is over (None: it has not ended); whether its price mostly
    stays the same; and the number of days that a charge may be late."""

    charged: Sequence[date]
    missed: Sequence[date]
    overdue: Sequence[date]
    over_since: date | None
    has_price: bool
    grace: timedelta


class News(Struct, frozen=True, kw_only=True):
    """An event to report: `expected` is the day of a missed charge, else None; `retracts` is the type of the earlier
    event that a retraction takes back, else None."""

    type: str
    expected: date | None = None
    retracts: str | None = None


def state_of(past: History, charged: Sequence[date], *, frequency: str, over_on: date, asked: date) -> PaymentState:
    """The state of the payment with this history and these days of charges. `over_on` is the day from which it counts
    as ended without another charge, `asked` the day until which the bookings of its account are known."""
    grace = timedelta(days=GRACE_DAYS[frequency])
    charges = sum(price.charges for price in past.prices)
    return PaymentState(
        charged=charged,
        missed=[day for day in past.missed if day + grace < over_on],
        overdue=[day for day in past.overdue if day + grace < over_on],
        over_since=over_on if over_on <= asked else None,
        has_price=2 * (len(past.prices) - 1) <= charges - 1,
        grace=grace,
    )


def known_after(before: KnownPayment | None, stands: PaymentState) -> Sequence[date]:
    """The days that are known as missed after the events about the present state: those reported earlier that still
    are, and those that are overdue."""
    told = before.missed if before is not None else ()
    still = [day for day in told if _is_near(day, stands.missed, stands.grace)]
    return [*still, *(day for day in stands.overdue if not _is_near(day, still, stands.grace))]


def news_of(now: KnownPayment, stands: PaymentState, before: KnownPayment | None) -> list[News]:
    """The events to report for the payment. `before` is None where nothing was reported of it yet: then it is new, or,
    if it has ended already, no news. A payment that is charged again after its end is new, too, unless the charge came
    before the end: then the end is retracted, as is a missed charge that has come after all. Another price is news only
    where the price mostly stays the same."""
    if before is None:
        return [] if now.over_since is not None else [News(type=NEW)]
    # A day before the first charge is too long ago to be looked for
    told = [day for day in before.missed if day > stands.charged[0]]
    untrue = [day for day in told if not _is_near(day, stands.missed, stands.grace)]
    retracted = [News(type=RETRACTED, retracts=MISSED, expected=day) for day in untrue]
    ended = before.over_since if now.over_since is None else None  # what has ended goes on
    if ended is not None and not any(before.last_charged < day < ended for day in stands.charged):
        return [News(type=NEW)]
    return [
        *retracted,
        *([News(type=RETRACTED, retracts=ENDED)] if ended is not None else []),
        *([News(type=PRICE_CHANGED)] if stands.has_price and before.amount != now.amount else []),
        *(News(type=MISSED, expected=day) for day in stands.overdue if not _is_near(day, told, stands.grace)),
        *([News(type=ENDED)] if now.over_since is not None and before.over_since is None else []),
    ]


def _is_near(day: date, days: Iterable[date], grace: timedelta) -> bool:
    return any(abs(day - other) <= grace for other in days)
