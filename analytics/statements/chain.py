"""The chain of an account's statements: where bookings or whole statements are missing, or a booking is too many.

The next statement opens with the closing balance of the one before, less what both told. That needs no days: a file
that is taken at noon goes on with the one of that evening. What no statement of a chain told has no room within it. Of
statements that told the same the one that told most counts, and of two issues of one statement the newer; a statement
that goes on from the former one was written before the correction.
"""

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import accumulate, islice, pairwise

import polars as pl
from msgspec import Struct

from analytics.day_totals import ZERO, DayTotals
from analytics.statements.balance_chain import ReportedBalance
from analytics.statements.told import DAY, Told, number, sum_of

NEXT_MAX = 12  # statements that are tried as the next one; where more begin on a day, their numbers order them


class Links:
    """Statements, each from its opening to its closing balance, of which one leads to the next."""

    def __init__(self, statements: Iterable[tuple[Decimal, Decimal]] = ()) -> None:
        self._closings: dict[Decimal, set[Decimal]] = defaultdict(set)
        for opening, closing in statements:
            self._closings[opening].add(closing)
        self._reached: dict[Decimal, set[Decimal]] = {}

    def lead(self, closing: Decimal, opening: Decimal) -> bool:
        """Whether one balance is the other, or is led to it by statements of which each opens where one before
        closes."""
        if closing not in self._reached:
            reached, ahead = {closing}, [closing]
            while ahead:
                further = self._closings.get(ahead.pop(), set()) - reached
                reached |= further
                ahead += further
            self._reached[closing] = reached
        return opening in self._reached[closing]


class Gap(Struct, frozen=True, kw_only=True):
    """The amount that moved between two statements and is in no booking."""

    earlier: Told
    later: Told
    amount: Decimal

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day between the statements; the day on which they meet where there is none."""
        first, last = self.earlier.last + DAY, self.later.first - DAY
        return (first, last) if first <= last else (max(self.earlier.last, last),) * 2


class StatementChain:
    """What the statements of one account (from `told_statements`) say of its bookings (MOVED): the `gaps` between them,
    and `extra`, by statement the sum of bookings that no statement told and that have no room there."""

    def __init__(self, told: Sequence[Told], moved: pl.DataFrame) -> None:
        self.gaps: list[Gap] = []
        self.extra: dict[Told, Decimal] = defaultdict(Decimal)
        self._moved = moved
        self._stretches = self._in_order(self._counting(told))
        if self._stretches:
            inside = [place for each in self._stretches for one in each for place in one.places]
            places = pl.Series(inside, dtype=pl.Int64).implode()
            for stretch in self._stretches:
                self._find_told_twice(stretch)
            self._find_missing(moved.filter(~pl.int_range(pl.len()).is_in(places)))

    def balances(self) -> Iterator[ReportedBalance]:
        """The closing balances in their order, each with the sum of all bookings until then."""
        totals = [DayTotals(self._told_by(stretch)) for stretch in self._stretches]
        every = DayTotals(self._moved)
        for place, stretch in enumerate(self._stretches):
            booked, before = ZERO, None
            for one in stretch:
                booked += one.bookings - (self._overlap(before, one) if before else ZERO)
                told = sum((each.before(one.last) for each in totals[place : place + 2]), ZERO)
                yield ReportedBalance(
                    day=one.last, balance=one.closing, known_at=None, bookings=every.before(one.last) - told + booked
                )
                before = one

    def _counting(self, told: Sequence[Told]) -> list[Told]:
        """The statements without those that others make needless: of which there is a newer issue, with the same days;
        that told a part of what another one told; or nothing, on days of another one."""
        named = {min(one.places) for one in told if one.places}
        told_by: dict[int, list[Told]] = defaultdict(list)
        issues: dict[tuple[int, date, date], list[Told]] = defaultdict(list)
        for one in sorted(told, key=lambda one: one.arrived):
            for place in one.places & named:
                told_by[place].append(one)
                issues[place, one.first, one.last].append(one)
        openings, links = {one.opening for one in told}, Links((one.opening, one.closing) for one in told)
        replaced = {
            one
            for alike in issues.values()
            for one, newer in pairwise(alike)
            if self._replaces(newer, one, openings) and not _are_apart(newer, one, links)
        }
        spans = sorted((one.first, one.last) for one in told if one.places)
        reach = list(accumulate((last for _, last in spans), max, initial=date.min))

        def is_needless(one: Told) -> bool:
            if not one.places:
                return reach[bisect_right(spans, (one.first, date.max))] >= one.last
            others = [other for other in told_by[min(one.places)] if other not in replaced and other is not one]
            return any(_contains(other, one) and not _are_apart(other, one, links) for other in others)

        return [one for one in told if one not in replaced and not is_needless(one)]

    def _replaces(self, newer: Told, one: Told, openings: Collection[Decimal]) -> bool:
        """Whether of two statements of the same days neither goes on from the other. One that told less may have been
        taken at noon, and come later: there the next opening balance decides."""
        if newer.places <= one.places:
            return newer.closing in openings and one.closing not in openings
        return self._step(one, newer) != 0 != self._step(newer, one)

    def _in_order(self, told: Sequence[Told]) -> list[list[Told]]:
        """The statements in stretches without a gap; one that told only what others of its stretch did is left out."""
        left = OrderedDict.fromkeys(sorted(told, key=lambda one: (one.first, one.last, number(one.sequence))))
        stretches: list[list[Told]] = []
        inside: set[int] = set()
        one: Told | None = None
        while left:
            following = self._next(one, left)
            del left[following]
            if one is None or not self._leads(one, following):
                is_inside = bool(following.places) and following.places <= inside
                if one is not None and is_inside and not _follows(one, following) and not _outlasts(following, one):
                    continue
                stretches.append([])
                inside = set()
            stretches[-1].append(following)
            inside |= following.places
            one = following
        return stretches

    def _next(self, one: Told | None, left: OrderedDict[Told, None]) -> Told:
        """The statement that goes on where this one ends, among those that lie near; else the earliest that goes
        on from none of those near it."""
        nearest, *others = islice(left, NEXT_MAX)
        if one is not None:
            until = max(one.last + DAY, nearest.last)
            for each in (nearest, *others):
                if each.first <= until and self._leads(one, each):
                    return each
        near = [nearest, *(each for each in others if each.first <= nearest.last)]
        begins = (each for each in near if not any(self._leads(other, each) for other in near if other is not each))
        return next(begins, nearest)

    def _leads(self, earlier: Told, later: Told) -> bool:
        """Whether the later one goes on where the earlier one ends."""
        return not self._step(earlier, later) and not _outlasts(earlier, later)

    def _step(self, earlier: Told, later: Told) -> Decimal:
        """By how much the later one opens otherwise than it would if it went on where the earlier one ends."""
        return later.opening - earlier.closing + self._overlap(earlier, later)

    def _overlap(self, one: Told, other: Told) -> Decimal:
        if one.places.isdisjoint(other.places):
            return ZERO
        return sum_of(self._moved[sorted(one.places & other.places)])

    def _find_told_twice(self, stretch: Sequence[Told]) -> None:
        """Compare a stretch with its bookings: two of its statements that others part cannot have told the same. By how
        much a statement contradicts itself is said of it alone."""
        within = sum_of(self._told_by(stretch)) - (stretch[-1].closing - stretch[0].opening)
        within -= sum((one.bookings - (one.closing - one.opening) for one in stretch), ZERO)
        if within:
            self.extra[stretch[-1]] += within

    def _find_missing(self, untold: pl.DataFrame) -> None:
        """Compare the bookings that no statement told with the room for them. On the day on which one stretch ends, or
        the next begins, they may be from between; before the first and after the last nothing is known of them."""
        totals = DayTotals(untold)
        ends = [(stretch[0].first, max(one.last for one in stretch)) for stretch in self._stretches]
        lasts, firsts = [date.min, *(last for _, last in ends)], [*(first for first, _ in ends[1:]), date.max]
        rooms = [
            (max(first, before) + DAY, min(last, after) - DAY)
            for (first, last), before, after in zip(ends, lasts, firsts, strict=False)
        ]
        for place, ((_, last), (first, _)) in enumerate(pairwise(ends)):
            earlier, later = self._stretches[place][-1], self._stretches[place + 1][0]
            between = totals.between(min(last, first), max(last, first))
            step = self._step(earlier, later)
            missing = step - between
            if not missing or later.opening in earlier.former or not _is_order_clear(earlier, later):
                continue
            explaining = [each for each in (place, place + 1) if missing == totals.between(*rooms[each])]
            if explaining:  # booked late with an earlier day, or dated ahead
                rooms[explaining[0]] = (date.max, date.min)
            elif step == totals.between(last + DAY, first - DAY):
                self.extra[earlier] += between - step
            else:
                self.gaps.append(Gap(earlier=earlier, later=later, amount=missing))
        of_days = untold.group_by("booking_date").agg(pl.col("amount").sum()).sort("booking_date")
        for stretch, (first, last) in zip(self._stretches, rooms, strict=True):
            for day, amount in of_days.filter(pl.col("booking_date").is_between(first, last)).iter_rows():
                self.extra[next(one for one in stretch if day <= one.last)] += amount

    def _told_by(self, stretch: Sequence[Told]) -> pl.DataFrame:
        return self._moved[sorted(frozenset().union(*(one.places for one in stretch)))]


def _contains(other: Told, one: Told) -> bool:
    """Whether the other one told all that this one told; of two that told the same, whether the other is newer. One
    that outlasts the other contradicts it instead."""
    if _outlasts(one, other):
        return False
    return one.places < other.places or (one.places == other.places and one.arrived < other.arrived)


def _outlasts(one: Told, other: Told) -> bool:
    """Whether this statement begins like the other one, closes on a later day, and ends otherwise."""
    is_alike = (one.opening, one.first) == (other.opening, other.first)
    return is_alike and one.last > other.last and one.closing != other.closing


def _are_apart(one: Told, other: Told, links: Links) -> bool:
    """Whether one of the statements goes on from the other, at once or by others between them."""
    pairs = ((one, other), (other, one))
    return any(
        later.first >= earlier.last and later.opening != later.closing and links.lead(earlier.closing, later.opening)
        for earlier, later in pairs
    )


def _follows(earlier: Told, later: Told) -> bool:
    return earlier.closing == later.opening != later.closing and later.first >= earlier.last


def _is_order_clear(earlier: Told, later: Told) -> bool:
    """Whether one of the statements comes before the other by its days, or else by its number."""
    first, second = number(earlier.sequence)[0], number(later.sequence)[0]
    days = {earlier.first, earlier.last, later.first, later.last}
    return len(days) > 1 or bool(first and second and first < second)
