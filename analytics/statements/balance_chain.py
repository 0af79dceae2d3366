"""The chain of balances: the part of an account's change between two balances that its bookings do not explain.

A balance that a bank reports without a statement is from some moment of its day. It may or may not contain bookings of
that day, bookings of earlier days that became known later, bookings of later days that were known already, and pending
ones. Bookings known when the balance was reported are taken to be in it. Where that does not add up but other bookings
would explain it, no difference is claimed: the next balance decides. A statement's closing balance contains what it and
those before it told.

A bank that corrects a booking, or takes it back, does not report its earlier balances again. They contain the former
amount, and so that is kept, too (DayTotals.former_at). In a store from a version that did not keep it, such balances
contradict those before and after them, which agree with each other.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import takewhile

from msgspec import Struct

from analytics.day_totals import ZERO, DayTotals
from analytics.statements.ledger_periods import LedgerPeriod

LATE_DAYS_MAX = 10  # banks book a few days back, and announce a few days ahead
OVERTAKEN_MAX = 8  # number of balances until the one that contains a correction
DOUBTFUL_MAX = 8  # bookings of an edge that are tried in all combinations; with many more, anything could be explained


class ReportedBalance(Struct, frozen=True, kw_only=True):
    """A balance of a day. `known_at` is when the bank reported it; None for that of a statement, of which the sum of
    all `bookings` until then is known."""

    day: date
    balance: Decimal
    known_at: datetime | None
    bookings: Decimal = ZERO


def between_balances(
    balances: Sequence[ReportedBalance], totals: DayTotals, pending: Sequence[Decimal]
) -> list[LedgerPeriod]:
    """The periods between balances, given in order with at most one per day; none between two statements, which prove
    themselves.

    Where it cannot be decided yet, the period becomes part of a longer one, or is left out at the end. `pending` are
    the amounts of pending transactions.
    """
    chain = _Chain(totals, pending, balances)
    found: list[LedgerPeriod] = []
    earlier: ReportedBalance | None = None
    is_proven = False  # whether the earlier balance is known to contain all bookings of its day
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
    def __init__(self, totals: DayTotals, pending: Sequence[Decimal], balances: Sequence[ReportedBalance]) -> None:
        self._totals = totals
        self._pending = pending
        self._last = balances[-1] if balances else None

    def period(self, earlier: ReportedBalance, later: ReportedBalance, *, further: Decimal = ZERO) -> LedgerPeriod:
        """The period between two balances. `further` is added to its bookings, for those that the earlier balance did
        not contain although they were known then, or the reverse."""
        return LedgerPeriod(
            first=min(earlier.day + timedelta(days=1), later.day),
            last=later.day,
            opening=earlier.balance,
            bookings=self._sum_within(later) - self._sum_within(earlier) + further,
            closing=later.balance,
        )

    def is_overtaken(self, earlier: ReportedBalance, following: Sequence[ReportedBalance]) -> bool:
        """Whether the next balance, the first of `following`, can be skipped: it, and perhaps some after it, came
        without a statement, and a later balance adds up with `earlier`."""
        alone = takewhile(lambda balance: balance.known_at is not None, following)
        return any(not self.period(earlier, after).difference for _, after in zip(alone, following[1:], strict=False))

    def _sum_within(self, balance: ReportedBalance) -> Decimal:
        """The sum of the bookings that are taken to be in a balance."""
        if balance.known_at is None:
            return balance.bookings
        of_day = [amount for amount, at in self._totals.of_day(balance.day) if at <= balance.known_at]
        former = [
            amount
            for day, amount, at in self._totals.former_at(balance.known_at)
            if day < balance.day or (day == balance.day and at <= balance.known_at)
        ]
        return self._totals.before(balance.day) + sum(of_day, ZERO) + sum(former, ZERO)

    def doubts(self, balance: ReportedBalance) -> set[Decimal]:
        """The differences that a balance may have for good reason: every sum of bookings that may or may not be in it;
        of more than eight such bookings, only the sums of each kind as a whole (of the day, late, ahead, corrected,
        pending)."""
        if balance.known_at is None:
            return set()
        in_day = [amount if at > balance.known_at else -amount for amount, at in self._totals.of_day(balance.day)]
        amended: list[Decimal] = []
        for day, amount, at in self._totals.former_at(balance.known_at):
            if day <= balance.day and at <= balance.known_at:
                amended.append(-amount)
            if day == balance.day and amount in in_day:
                in_day.remove(amount)
        around = [balance.day + timedelta(days=days) for days in range(-LATE_DAYS_MAX, LATE_DAYS_MAX + 1) if days]
        late: dict[datetime, Decimal] = defaultdict(Decimal)  # bookings of one import are late together
        ahead: list[Decimal] = []
        for day in around:
            for amount, at in self._totals.of_day(day):
                if day < balance.day and at > balance.known_at:
                    late[at] -= amount
                elif day > balance.day and at <= balance.known_at:
                    ahead.append(amount)
        kinds = [in_day, list(late.values()), ahead, amended, list(self._pending) if balance is self._last else []]
        if sum(map(len, kinds)) > DOUBTFUL_MAX:
            kinds = [[sum(kind, ZERO)] for kind in kinds]
        sums = {ZERO}
        for amount in (amount for kind in kinds for amount in kind):
            sums |= {each + amount for each in sums}
        return sums - {ZERO}
