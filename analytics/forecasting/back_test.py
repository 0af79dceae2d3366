"""Back tests: how wrong past forecasts of an account would have been, each made from what was known then."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct

from analytics.forecasting.ledgers import AccountLedger
from analytics.forecasting.projection import Stream, project
from analytics.minor_digits import in_digits

TESTED_DAYS = 30
ORIGINS_MAX = 6


class Accuracy(Struct, frozen=True, kw_only=True):
    """The accuracy of so many past forecasts (`tests`): the mean absolute error of the balance after 30 days, the same
    error of simply assuming an unchanged balance, and the share (0 to 1) of balances that were within the band."""

    tests: int
    mean_absolute_error: Decimal
    last_balance_error: Decimal
    coverage: float

    @property
    def beats_last_balance(self) -> bool:
        """Whether the forecasts were nearer than assuming an unchanged balance."""
        return self.mean_absolute_error < self.last_balance_error


def origins(today: date) -> list[date]:
    """The six past days from which forecasts are made again, the latest first: 30, 60, ... 180 days before `today`."""
    return [today - timedelta(days=TESTED_DAYS * step) for step in range(1, ORIGINS_MAX + 1)]


def accuracy(ledger: AccountLedger, streams: Mapping[date, Iterable[Stream]]) -> Accuracy | None:
    """The accuracy of forecasts from past days, with `streams` as they were visible on each; None where on all of them
    the history was too short, or the bookings too few, for a forecast."""
    errors: list[Decimal] = []
    unmoved: list[Decimal] = []
    hits: list[bool] = []
    for origin in origins(ledger.day):
        then = ledger.at(origin)
        if then.reason is not None:
            continue
        last = project(then, streams.get(origin, ()), days=TESTED_DAYS).days[-1]
        came = ledger.at(last.day).balance
        errors.append(abs(last.expected - came))
        unmoved.append(abs(then.balance - came))
        hits.append(last.low <= came <= last.high)
    if not hits:
        return None
    return Accuracy(
        tests=len(hits),
        mean_absolute_error=_mean(errors, ledger.currency),
        last_balance_error=_mean(unmoved, ledger.currency),
        coverage=sum(hits) / len(hits),
    )


def _mean(values: Sequence[Decimal], currency: str) -> Decimal:
    """The mean, rounded half to even to the currency's digits, so that a forecast does not win by an invisible
    difference."""
    return in_digits(sum(values, Decimal(0)) / len(values), currency)
