"""From balance to balance: what the bookings between two balances of an account leave unexplained.

A balance that a bank tells by itself is one of some moment of its day: bookings of that day may be in it or not, and so
may bookings of days before that came to be known later, of days after that were known already, and what is pending.
What was known when the balance was told is taken to be in it. Where that does not add up but one of the others would
explain it, nothing is claimed: the next balance decides. A statement's closing balance holds all of its day.

A bank that corrects a booking, or takes it back, does not tell its earlier balances again: they hold it as it was, and
so it is kept how it was (DayTotals.former_at). Where a store is from a version that kept nothing, such balances
contradict those before and after them, which agree with each other.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import takewhile

from analytics.day_totals import ZERO, DayTotals
from analytics.ledger_periods import LedgerPeriod

LATE_DAYS_MAX = 10  # banks book a few days back, and announce a few days ahead
OVERTAKEN_MAX = 8  # balances until the one that has a correction in it
DOUBTFUL_MAX = 8  # bookings of an edge looked at in all combinations; with many more anything could be explained


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldBalance:
    """A balance of a day. `known_at` is when it was told; None for the end of that day."""

    day: date
    balance: Decimal
    known_at: datetime | None


def between_balances(
    balances: Sequence[ToldBalance], totals: DayTotals, pending: Sequence[Decimal]
) -> list[LedgerPeriod]:
    """What lies between the balances, which are of one day each and in the order of their days, but not between two
    statements, which speak for themselves. What cannot be decided yet is part of a longer period, or absent at the end.
    `pending` are the amounts of what is not booked."""
    chain = _Chain(totals, pending, balances)
    found: list[LedgerPeriod] = []
    earlier: ToldBalance | None = None
    is_proven = False  # whether the bookings of the earlier one's day are known to be in it
    for place, later in enumerate(balances):
        if earlier is None:
            earlier = later
            continue
        if earlier.known_at is None and later.known_at is None:
            earlier, is_proven = later, True
            continue
        period = chain.period(earlier, later)
        difference = period.difference
        following = balances[place : place + OVERTAKEN_MAX + 1]
        if difference and (difference in chain.doubts(later) or chain.is_overtaken(earlier, following)):
            continue
        if difference and not is_proven and -difference in chain.doubts(earlier):
            period = chain.period(earlier, later, further=difference)
        found.append(period)
        earlier, is_proven = later, not difference
    return found


class _Chain:
    def __init__(self, totals: DayTotals, pending: Sequence[Decimal], balances: Sequence[ToldBalance]) -> None:
        self._totals = totals
        self._pending = pending
        self._last = balances[-1] if balances else None

    def period(self, earlier: ToldBalance, later: ToldBalance, *, further: Decimal = ZERO) -> LedgerPeriod:
        """What lies between them; `further` are bookings of the edges that belong to it against the rule."""
        return LedgerPeriod(
            first=min(earlier.day + timedelta(days=1), later.day),
            last=later.day,
            opening=earlier.balance,
            bookings=self._within(later) - self._within(earlier) + further,
            closing=later.balance,
        )

    def is_overtaken(self, earlier: ToldBalance, following: Sequence[ToldBalance]) -> bool:
        """Whether the first of these was told by itself, as were others after it, and the next one adds up."""
        alone = takewhile(lambda told: told.known_at is not None, following)
        return any(not self.period(earlier, after).difference for _, after in zip(alone, following[1:], strict=False))

    def _within(self, told: ToldBalance) -> Decimal:
        """The bookings that are taken to be in a balance."""
        before = self._totals.before(told.day)
        if told.known_at is None:
            return before + self._totals.between(told.day, told.day)
        of_day = [amount for amount, at in self._totals.of_day(told.day) if at <= told.known_at]
        former = [
            amount
            for day, amount, at in self._totals.former_at(told.known_at)
            if day < told.day or (day == told.day and at <= told.known_at)
        ]
        return before + sum(of_day, ZERO) + sum(former, ZERO)

    def doubts(self, told: ToldBalance) -> set[Decimal]:
        """The amounts that a balance may hold beyond what is taken to be in it: every sum of the bookings that may be
        in or out."""
        if told.known_at is None:
            return set()
        in_day = [amount if at > told.known_at else -amount for amount, at in self._totals.of_day(told.day)]
        amended: list[Decimal] = []
        for day, amount, at in self._totals.former_at(told.known_at):
            if day <= told.day and at <= told.known_at:
                amended.append(-amount)
            if day == told.day and amount in in_day:
                in_day.remove(amount)
        around = [told.day + timedelta(days=days) for days in range(-LATE_DAYS_MAX, LATE_DAYS_MAX + 1) if days]
        late: dict[datetime, Decimal] = defaultdict(Decimal)  # what one import brought is late together
        ahead: list[Decimal] = []
        for day in around:
            for amount, at in self._totals.of_day(day):
                if day < told.day and at > told.known_at:
                    late[at] -= amount
                elif day > told.day and at <= told.known_at:
                    ahead.append(amount)
        kinds = [in_day, list(late.values()), ahead, amended, list(self._pending) if told is self._last else []]
        if sum(map(len, kinds)) > DOUBTFUL_MAX:
            kinds = [[sum(kind, ZERO)] for kind in kinds]
        sums = {ZERO}
        for amount in (amount for kind in kinds for amount in kind):
            sums |= {each + amount for each in sums}
        return sums - {ZERO}
