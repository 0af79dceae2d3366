"""The choice of streams among the accepted groups, and of the charges that belong to them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, permutations
from statistics import median
from typing import NamedTuple

from analytics.recurring.evidence import Candidate, Fit
from analytics.recurring.frequencies import PERIOD_DAYS

TURNS_MAX = 12  # rounds of choosing; three or four are common
KEPT_MIN = 0.9  # a group that lost more than 10 % of its charges to a coarser one is no stream of its own
ABSORBED_MAX = 0.25  # second collections may be a quarter of a stream without contract at most
WHOLE = 0.99  # of the payee's charges: nothing else is bought there
STREAMS_AT_A_PAYEE_MAX = 10  # more are rows without a name; every charge left would be compared with every stream
STRANGER_DAYS = 1.0  # a charge this much beyond the tolerance was bought, not collected
NEXT_DAYS_MAX = 4.0  # a charge of another price belongs to a stream only when it comes on the day
NEXT_PRICE_MIN, NEXT_PRICE_MAX = 0.5, 2.1  # outside, the price is that of another product
PAUSE_MIN, PAUSE_MAX = 0.5, 2.2  # periods between the end of a stream and the beginning of its successor
CHANGES_MAX = 2
STEADY_MIN = 0.5  # share of charges with a repeated price, from which on a single other price is doubtful


class DatedCharge(NamedTuple):
    """A charge with its price (the amount without its sign) and its booking date on each axis: in days, in business
    days and in months."""

    row: int
    payee_id: int
    price: float
    days: float
    business: float
    months: float


class Placed(NamedTuple):
    """A charge beside the due days of a candidate: the number of the nearest due day (`slot`), and how many days after
    it the charge came (negative: before it)."""

    charge: DatedCharge
    candidate: Candidate
    slot: int
    late_days: float

    @property
    def rank(self) -> tuple[float, float, int]:
        """A sort key: of the streams to which a charge may belong, it goes to the one with the least rank. The nearest
        day counts first, then the best score."""
        return abs(self.late_days), -self.candidate.score, self.candidate.group.group

    @property
    def is_off_its_day(self) -> bool:
        """Whether the charge is more than a day beyond the tolerance, so that it was bought, not collected."""
        return abs(self.late_days) > self.candidate.fit.tolerance_days + STRANGER_DAYS


Streams = dict[int, list[Placed]]
"""The charges of each stream, oldest first, by its group."""


def place(charge: DatedCharge, candidate: Candidate) -> Placed:
    """The charge with the nearest due day of the candidate."""
    return Placed(charge, candidate, *_position(charge, candidate.fit))


def _position(charge: DatedCharge, fit: Fit) -> tuple[int, float]:
    offset = getattr(charge, fit.axis) / fit.period - fit.phase
    slot = round(offset)
    return slot, (offset - slot) * fit.period * fit.unit_days


def choose_groups(ranked: Mapping[int, Sequence[int]]) -> dict[int, Sequence[int]]:
    """The chosen groups with their rows. `ranked` has the candidate groups with their rows, the best first; each charge
    goes to the first group that has it, and groups that lost more than a tenth of theirs are dropped.

    Groups that come first for all of their charges win; then, among the remaining charges, the next ones do.
    """
    claims, won = ranked, dict[int, Sequence[int]]()
    for _ in range(TURNS_MAX):
        first: dict[int, int] = {}
        for group, rows in claims.items():
            for row in rows:
                first.setdefault(row, group)
        winners = {group: rows for group, rows in claims.items() if all(first[row] == group for row in rows)}
        won |= winners
        left = {group: [row for row in rows if first[row] not in winners] for group, rows in claims.items()}
        claims = {group: rows for group, rows in left.items() if len(rows) >= KEPT_MIN * len(ranked[group])}
        if not claims:
            break
    return won


def complete_streams(
    charges: Mapping[int, DatedCharge], chosen: Mapping[int, Sequence[int]], candidates: Mapping[int, Candidate]
) -> tuple[Streams, set[int]]:
    """The streams of the chosen groups, without charges off their day (which are bought, not collected, unless there is
    a contract or nothing else at the payee), and with what else belongs to them at the payee: second collections of the
    same price, and trial months and new prices in the slots before and after.

    Beside them the rows of odd charges (`odd_ones`): they are in no stream, and no beginning of another one.
    """
    streams: Streams = {}
    odd: set[int] = set()
    for group, rows in chosen.items():
        candidate = candidates[group]
        placed = [place(charges[row], candidate) for row in rows]
        if not (candidate.group.contract or candidate.group.part >= WHOLE):
            placed = [each for each in placed if not each.is_off_its_day]
        odd |= (strange := odd_ones(placed))
        if kept := [each for each in placed if each.charge.row not in strange]:
            streams[group] = kept
    taken = set(chain.from_iterable(chosen.values()))
    left = defaultdict(list)
    for row, charge in charges.items():
        if row not in taken:
            left[charge.payee_id].append(charge)
    added: dict[int, Placed] = {}
    for payee_id, groups in by_payee(streams).items():
        for each in chain.from_iterable(further_charges(streams[group], left[payee_id]) for group in groups):
            if (row := each.charge.row) not in added or each.rank < added[row].rank:
                added[row] = each
    for each in added.values():
        streams[each.candidate.group.group].append(each)
    return {group: sorted(stream) for group, stream in streams.items()}, odd


def by_payee(streams: Streams) -> dict[int, list[int]]:
    """The groups of the streams by payee, without payees that have more than ten."""
    groups = defaultdict(list)
    for group, placed in streams.items():
        groups[placed[-1].charge.payee_id].append(group)
    return {payee_id: together for payee_id, together in groups.items() if len(together) <= STREAMS_AT_A_PAYEE_MAX}


def odd_ones(stream: Sequence[Placed]) -> set[int]:
    """The rows of a steady stream's charges that are something else at the same payee: 55.00 once to somebody who gets
    1,000.00 each month. An empty set where fewer than half of the charges have a repeated price.

    The price of such a charge comes only once, and it is off the day, fills a slot which a repeated price fills too, or
    is the latest one and no likely new price. A price that is repeated is a new price.
    """
    prices = Counter(each.charge.price for each in stream)
    lone = [each for each in stream if prices[each.charge.price] == 1]
    if not lone or len(stream) - len(lone) < STEADY_MIN * len(stream):
        return set()
    paid = {each.slot for each in stream if prices[each.charge.price] > 1}
    likely_min = NEXT_PRICE_MIN * median(each.charge.price for each in stream)
    return {
        each.charge.row
        for each in lone
        if each.is_off_its_day or each.slot in paid or (each is stream[-1] and each.charge.price < likely_min)
    }


def further_charges(stream: Sequence[Placed], left: Iterable[DatedCharge]) -> list[Placed]:
    """The charges of `left`, which are in no stream of the payee, that belong to this one: those of its prices within
    its time (second collections and double charges, unless there are too many); a likely new price in the slots after
    its last charge; and an old price, a trial month or a part of a month before its first."""
    candidate = stream[0].candidate
    is_contract, tolerance = candidate.group.contract, candidate.fit.tolerance_days
    prices = {each.charge.price for each in stream}
    first_price, last_price = stream[0].charge.price, stream[-1].charge.price
    first, last = min(each.slot for each in stream), max(each.slot for each in stream)
    again, later, earlier = [], [], []
    for charge in left:  # of thousands, as of card payments without a name, few are kept
        slot, late_days = _position(charge, candidate.fit)
        if first <= slot <= last:
            if charge.price in prices and (is_contract or abs(late_days) <= tolerance):
                again.append(Placed(charge, candidate, slot, late_days))
        elif abs(late_days) <= min(tolerance, NEXT_DAYS_MAX):
            if slot > last and NEXT_PRICE_MIN <= charge.price / last_price <= NEXT_PRICE_MAX:
                later.append(Placed(charge, candidate, slot, late_days))
            elif slot < first and charge.price / first_price <= NEXT_PRICE_MAX:
                earlier.append(Placed(charge, candidate, slot, late_days))
    if not is_contract and len(again) > ABSORBED_MAX * len(stream):
        again = []
    return [*again, *in_next_slots(later, last), *in_next_slots(earlier, first)]


def in_next_slots(placed: Iterable[Placed], edge: int) -> list[Placed]:
    """For each slot beyond the edge of a stream the charge nearest to its due day, as far out as at most one slot in
    all is without a charge."""
    nearest: dict[int, Placed] = {}
    for each in sorted(placed, key=lambda each: (abs(each.late_days), each.charge.row)):
        nearest.setdefault(abs(each.slot - edge), each)
    return [nearest[ahead] for number, ahead in enumerate(sorted(nearest), 1) if ahead <= number + 1]


def join_successors(streams: Streams) -> Streams:
    """The streams, with two of the same payee and frequency joined where one ends when the other begins: a new mandate,
    a new price, a moved billing day. (A chain of two such changes within the evidence is joined, too.)"""
    for _ in range(CHANGES_MAX):
        heirs = heirs_of(streams)
        joined: Streams = defaultdict(list)
        for group, placed in streams.items():
            joined[heirs.get(group, group)] += placed
        streams = {group: sorted(placed) for group, placed in joined.items()}
    return streams


def heirs_of(streams: Streams) -> dict[int, int]:
    """For each stream that another stream continues, by its group: the group of that other stream. A stream continues
    at most one other."""
    pauses = []
    for groups in by_payee(streams).values():
        for group, other in permutations(groups, 2):
            last, then = streams[group][-1], streams[other][0]
            frequency = last.candidate.fit.frequency
            if frequency == streams[other][-1].candidate.fit.frequency:
                pause = (then.charge.days - last.charge.days) / PERIOD_DAYS[frequency]
                ratio = then.charge.price / last.charge.price
                if PAUSE_MIN <= pause <= PAUSE_MAX and NEXT_PRICE_MIN <= ratio <= NEXT_PRICE_MAX:
                    pauses.append((pause, group, other))
    heirs: dict[int, int] = {}
    for _, group, other in sorted(pauses):
        heirs.setdefault(group, other)
    former = {heir: group for group, heir in reversed(heirs.items())}  # of two with one heir, the earlier
    return {group: heir for heir, group in former.items()}
