"""What the balances of two statements prove of their bookings: whether both can contain one and the same booking.

Each statement that adds up is one piece of the account's history, from its opening to its closing balance. If two
pieces overlap, what is in both moves the balance from where the later one begins to where the earlier one ends; if one
piece lies within the other, the rest lies before and after it. Where neither fits, equal bookings of both are different
ones, whatever their words and references say.
"""

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.records import StatementRecord
from analytics.statements.chain import Links
from storage.database import Row
from storage.importing.batches import AccountStatement
from storage.importing.matching.exact_matches import PAIRS, contradictions
from storage.importing.matching.stored_bookings import NEIGHBOURHOOD
from storage.importing.matching.windows import DAY
from storage.importing.spool import PARTING, Spool
from storage.importing.teller import Teller

SUMS_MAX = 1_000  # of bookings that two statements may have in common
OF_ISSUE = ("opening", "closing", "closing_date")
Money = tuple[date, Decimal]  # the day and the amount of a booking


class Piece(Struct, frozen=True):
    """The bookings of a statement that adds up, from its `opening` to its `closing` balance: what they `moved` by day,
    and all their references."""

    opening: Decimal
    closing: Decimal
    sequence: str | None
    moved: Counter[Money]
    references: frozenset[str]

    def is_apart(self, other: "Piece", links: Links) -> bool:
        """Whether the balances prove that no booking of the other piece is in this one, although both have some of the
        same day and amount: one follows the other, at once or by these links; or their numbers differ, or of both is
        nothing known but equal bookings of one day, and so does all else."""
        common = self.moved & other.moved
        if not common:
            return False
        is_next = links.lead(self.closing, other.opening) or links.lead(other.closing, self.opening)
        has_other_number = None not in (self.sequence, other.sequence) and self.sequence != other.sequence
        is_numbered = (self.sequence, other.sequence) != (None, None)
        are_equal = not is_numbered and len(common) == 1 and len({day for day, _ in self.moved | other.moved}) == 1
        is_other = (
            (has_other_number or are_equal)
            and self.references.isdisjoint(other.references)
            and not self.meets(other.opening, other.closing)
        )
        rooms = self.closing - other.opening, other.closing - self.opening  # where one ends within the other
        has_room = not _sums(common).isdisjoint(rooms) or self.may_share(other, common)
        amounts = [amount for _, amount in common.elements()]
        has_some = any(_equal_ones(amounts, room) for room in rooms)
        return (is_next or (is_other and not has_some)) and not has_room

    def meets(self, opening: Decimal, closing: Decimal) -> bool:
        """Whether a statement with these balances begins or ends like this one; one that returns to its beginning may
        as well follow it, and so has to do both."""
        begins, ends = self.opening == opening, self.closing == closing
        is_circle = self.opening == self.closing or opening == closing
        return (begins and ends) if is_circle else (begins or ends)

    def may_share(self, other: "Piece", common: Counter[Money]) -> bool:
        """Whether one piece may lie within the other, all its bookings in common."""
        return _may_contain(self, other, common) or _may_contain(other, self, common)


class Extent(NamedTuple):
    """The balances of a statement and the days on which it opens and closes."""

    opening: Decimal
    closing: Decimal
    first: date
    last: date

    @classmethod
    def of(cls, said: StatementRecord) -> "Extent | None":
        """That of a statement that states all of it and has all bookings of its days; else None."""
        opening, closing, first, last = said.opening, said.closing, said.opening_date, said.closing_date
        if not said.is_authoritative or opening is None or closing is None or first is None or last is None:
            return None
        return cls(opening, closing, first, last)

    @classmethod
    def of_row(cls, row: Row) -> "Extent":
        return cls(row["opening"], row["closing"], row["first_day"], row["last_day"])

    def is_within(self, other: "Extent") -> bool:
        """Whether this statement begins with the balance of the other one, no earlier, and closes on an earlier day:
        the other one was written later, and has its bookings. One that returns to its beginning may as well precede
        the other."""
        goes_on = self.opening == other.opening and self.opening not in (self.closing, other.closing)
        return goes_on and other.first <= self.first and self.last < other.last


class _Known(NamedTuple):
    id: str
    day: date
    amount: Decimal


class StatementsNearby:
    """What the stored statements of an account that add up and reach into the days of a batch prove of the `booked`
    (COMPARED) of these statements. A stored statement of which a booking has changed since is no evidence; what one of
    the `older` issues of these statements told is `reissued`."""

    def __init__(
        self,
        teller: Teller,
        account_id: str,
        reported: Sequence[AccountStatement],
        spool: Spool,
        booked: pl.DataFrame,
        older: Sequence[StatementRecord],
    ) -> None:
        self._session, self._about, self._is_live = teller.session, (teller.user.id, account_id), teller.is_live
        self._pieces: dict[str, Piece | None] = {}
        adding_up = [each for each in reported if each.adds_up] if not booked.is_empty() else []
        self._ours = [(each.places, _piece(each, spool)) for each in adding_up]
        self._spans = [(each.places, span) for each in adding_up if (span := Extent.of(each.statement))]
        self._stored = self._near(booked, [each.statement for each in adding_up]) if adding_up else []
        between = {(row["opening"], row["closing"]) for row in self._stored if row["is_near"] or row["is_of_day"]}
        self._telling: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(self._stored):
            for id_ in row["told"].split():
                self._telling[id_].append(place)
        replaced = {(each.opening, each.closing, each.closing_date) for each in older}
        self._older = [row for row in self._stored if tuple(map(row.get, OF_ISSUE)) in replaced]
        self.reissued = [id_ for row in self._older for id_ in row["told"].split()]
        self._links = Links(between.union((ours.opening, ours.closing) for _, ours in self._ours))

    def without_apart(self, stored: pl.DataFrame, booked: pl.DataFrame) -> pl.DataFrame:
        """The rows (STORED) without those that balances prove to be none of the bookings: rows of a statement that is
        apart from one of these, and has nothing in common with any other. Where a statement begins or ends like a
        stored one, or may contain it, both tell the same bookings, whatever references they give."""
        near = [row for row in self._stored if row["is_near"] or (row["is_of_day"] and self._is_linked(row))]
        apart_only = [row for row in near if not any(self._meets(row, ours) for _, ours in self._ours)]
        is_again = len(apart_only) < len(near)
        apart: set[str] = set()
        for row, piece in self._with_pieces(apart_only):
            common = [ours for _, ours in self._ours if ours.moved & piece.moved]
            if common and all(ours.is_apart(piece, self._links) for ours in common):
                apart.update(row["told"].split())
            else:
                is_again |= bool(common)
        is_told = pl.col("booking_date").is_in(booked["booking_date"].implode()) & is_again
        left = stored.filter(~pl.col("id").is_in(list(apart)))
        return left.with_columns(is_asked_for=pl.col("is_asked_for") | is_told)

    def beyond_room(
        self, booked: pl.DataFrame, stored: pl.DataFrame, matches: pl.DataFrame, counted: Collection[str]
    ) -> set[str]:
        """The ids of rows (`stored`) of which balances prove that they are none of the bookings (`booked`) with which
        they were matched (PAIRS): a statement that goes on within the other one has more in common with it than there
        is room. Those go first that were only `counted`, or whose id or references are others; else those of pairs
        that all are of one day."""
        if not (told := self._told(booked, stored, matches)):
            return set()
        doubtful_ids = {*counted, *contradictions(booked, stored, matches.select(*PAIRS))["stored_id"]}
        found: set[str] = set()
        for ours, known in told:
            near = sorted({place for id_ in known for place in self._telling[id_]})
            unlike = [row for row in map(self._stored.__getitem__, near) if not self._meets(row, ours)]
            doubtful = [row for row in unlike if _room(row, ours, _moved(_both(row, known)))]
            for row, piece in self._with_pieces(doubtful):
                both = _both(row, known)
                among = [each for each in both if each.id in doubtful_ids]
                if not among and len({each.day for each in both}) == 1:
                    among = both
                common = Counter((each.day, each.amount) for each in both)
                if not ours.may_share(piece, common):
                    rooms = (_adding_up(among, _moved(both) - room) for room in _room(row, ours, _moved(both)))
                    found.update(next(filter(None, rooms), ()))
        return found

    def beside(
        self, gone: pl.DataFrame, booked: pl.DataFrame, stored: pl.DataFrame, matches: pl.DataFrame
    ) -> list[str]:
        """Those of the rows (`id`, `booking_date`), which none of the bookings is, that a stored statement told beside
        all of these: they have nothing of it in common, or one goes on from the other; of two that begin or end
        alike, this holds for what the stored one has before or after all that both have. One that begins like ours and
        ends on an earlier day lies within it, and told nothing beside it."""
        days = dict(gone.select("id", "booking_date").iter_rows())
        found: set[str] = set()
        told = self._told(booked, stored, matches) if days else []
        for row in (row for row in self._stored if days and row not in self._older):
            if any(Extent.of_row(row).is_within(ours) for _, ours in self._spans):
                continue
            alone = set(row["told"].split()) & days.keys() - found
            for ours, known in told if alone else ():
                if both := _both(row, known):
                    first, last = min(each.day for each in both), max(each.day for each in both)
                    goes_on, meets = not _room(row, ours, _moved(both)), self._meets(row, ours)
                    alone = {id_ for id_ in alone if goes_on and not (meets and first < days[id_] < last)}
            found |= alone
        return sorted(found)

    @cached_property
    def _around(self) -> list[tuple[range, Extent]]:
        """The places of those of our statements that lie within a stored one, with that one. What a live source tells
        is never outdated."""
        proving = (row for row in self._stored if row["is_authoritative"] and not self._is_live)
        rows = [row for row in proving if any(ours.is_within(Extent.of_row(row)) for _, ours in self._spans)]
        whole = [Extent.of_row(row) for row, _ in self._with_pieces(rows)]
        return [(places, other) for places, ours in self._spans for other in whole if ours.is_within(other)]

    def latest(self, reported: Iterable[AccountStatement]) -> Iterator[AccountStatement]:
        """Those of our statements that do not lie within a stored one."""
        outdated = [places for places, _ in self._around]
        return (each for each in reported if each.places not in outdated)

    def told_no_more(self) -> pl.Expr:
        """Whether a booking of ours (`place`, `booking_date`) that no row is lies within a stored statement, which told
        all bookings of that day: the bank has taken it back since. As an expression."""
        among = [
            pl.col("place").is_between(places.start, places.stop - 1)
            & pl.col("booking_date").is_between(other.first + DAY, other.last, closed="none")
            for places, other in self._around
        ]
        return pl.any_horizontal(among) if among else pl.lit(value=False)

    def _near(self, booked: pl.DataFrame, stated: Sequence[StatementRecord]) -> list[Row]:
        """The stored statements of these days and a week around them; on these days, `is_near` are those that share a
        balance with one of ours or have another number, and `is_of_day` those of the last day of one of ours."""
        first, last = booked.select(pl.min("booking_date"), last=pl.max("booking_date")).row(0)
        rows = self._session.rows(
            "SELECT DISTINCT opening, closing, closing_date, sequence, is_authoritative, told, first_day, last_day FROM"
            " (SELECT opening, closing, closing_date, sequence, is_authoritative, told,"
            " least(opening_date, closing_date) AS first_day, greatest(opening_date, closing_date) AS last_day"
            " FROM statements WHERE user_id = $1 AND account_id = $2 AND adds_up AND told <> '') AS stated"
            " WHERE last_day >= $3 AND first_day <= $4"
            " ORDER BY told, opening, closing, closing_date, sequence, is_authoritative, first_day, last_day",
            *(*self._about, first - NEIGHBOURHOOD, last + NEIGHBOURHOOD),
        )
        balances = {balance for each in stated for balance in (each.opening, each.closing)}
        numbers, days = {each.sequence for each in stated if each.sequence}, {each.closing_date for each in stated}
        for row in rows:
            is_within = row["last_day"] >= first and row["first_day"] <= last
            has_another = bool(numbers and row["sequence"] and row["sequence"] not in numbers)
            row["is_near"] = is_within and (has_another or not balances.isdisjoint((row["opening"], row["closing"])))
            row["is_of_day"] = is_within and row["closing_date"] in days
        return rows

    def _is_linked(self, row: Row) -> bool:
        """Whether one of our statements leads to the stored one, or it leads to one of these; or both are without a
        number."""
        return any(
            (row["sequence"], ours.sequence) == (None, None)
            or self._links.lead(row["closing"], ours.opening)
            or self._links.lead(ours.closing, row["opening"])
            for _, ours in self._ours
        )

    def _meets(self, row: Row, ours: Piece) -> bool:
        """Whether a stored statement begins or ends like ours. Two that end alike and do not begin so may do so by
        chance, where what came between adds up to nothing, unless one has all amounts of the other."""
        if ours.opening == row["opening"] or not ours.meets(row["opening"], row["closing"]):
            return ours.meets(row["opening"], row["closing"])
        pieces = [piece for _, piece in self._with_pieces([row])]
        amounts = [Counter(amount for _, amount in each.moved.elements()) for each in (ours, *pieces)]
        return len(pieces) == 0 or amounts[0] <= amounts[1] or amounts[1] <= amounts[0]

    def _told(
        self, booked: pl.DataFrame, stored: pl.DataFrame, matches: pl.DataFrame
    ) -> list[tuple[Piece, dict[str, _Known]]]:
        """Each of our statements with the stored rows that are its bookings, by id, as these pairs say; of a whole
        these may be its details."""
        if not self._stored:
            return []
        there = stored.select("amount", stored_id="id")
        pairs = booked.join(matches, on="place").join(there, on="stored_id", how="left", suffix="_there")
        amount = pl.coalesce("amount_there", "amount")
        rows = pairs.select("place", "stored_id", "booking_date", amount).sort("place").rows()
        places = [row[0] for row in rows]
        parts = (rows[bisect_left(places, one.start) : bisect_left(places, one.stop)] for one, _ in self._ours)
        return [
            (ours, {row[1]: _Known(*row[1:]) for row in part})
            for (_, ours), part in zip(self._ours, parts, strict=True)
        ]

    def _with_pieces(self, rows: Sequence[Row]) -> Iterator[tuple[Row, Piece]]:
        """These stored statements with what they told, where it still explains their balances."""
        told = {row["told"]: row["told"].split() for row in rows if row["told"] not in self._pieces}
        ids = {id_ for each in told.values() for id_ in each}
        asked = (
            "SELECT id, booking_date, amount, reference_keys FROM transactions WHERE user_id = $1 AND account_id = $2"
            " AND id = ANY($3::TEXT[])"
        )
        known = {row["id"]: row for row in self._session.rows(asked, *self._about, sorted(ids))} if ids else {}
        for row in rows:
            name = row["told"]
            if name in told:
                of_piece = [known[id_] for id_ in told[name] if id_ in known]
                is_whole = len(of_piece) == len(told[name])
                moved = Counter((each["booking_date"], each["amount"]) for each in of_piece)
                references = frozenset(key for each in of_piece for key in json.loads(each["reference_keys"]))
                piece = Piece(row["opening"], row["closing"], row["sequence"], moved, references)
                proves = is_whole and row["opening"] + _sum(moved) == row["closing"]
                self._pieces[name] = piece if proves else None
            if (found := self._pieces[name]) is not None:
                yield row, replace(found, opening=row["opening"], closing=row["closing"], sequence=row["sequence"])


def _piece(reported: AccountStatement, spool: Spool) -> Piece:
    said, keys = reported.statement, spool.keys([reported.places]).filter("is_booked")
    assert said.opening is not None, "it adds up"
    assert said.closing is not None, "it adds up"
    references = frozenset(key for each in keys["references"] for key in each.split(PARTING) if key)
    moved = Counter(keys.select("booking_date", "amount").iter_rows())
    return Piece(said.opening, said.closing, said.sequence, moved, references)


def _both(row: Row, known: Mapping[str, _Known]) -> list[_Known]:
    """What a stored statement told of these bookings."""
    return [known[id_] for id_ in row["told"].split() if id_ in known]


def _room(row: Row, ours: Piece, moved: Decimal) -> Sequence[Decimal]:
    """What a stored statement and ours may have in common if one ends within the other; empty if it is this."""
    rooms = ours.closing - row["opening"], row["closing"] - ours.opening
    return () if moved in rooms else rooms


def _moved(rows: Iterable[_Known]) -> Decimal:
    return sum((each.amount for each in rows), Decimal(0))


def _adding_up(among: Sequence[_Known], total: Decimal) -> list[str]:
    """The ids of some with an equal amount that add up to the total, the last ones; empty where there are none."""
    amount, n = _equal_ones((each.amount for each in among), total) or (None, 0)
    return [each.id for each in among if each.amount == amount][-n:]


def _equal_ones(amounts: Iterable[Decimal], total: Decimal) -> tuple[Decimal, int] | None:
    """The amount of which some add up to the total, and their number; None where there is none."""
    for amount, n in Counter(amounts).items():
        if amount and 0 < total / amount <= n and total % amount == 0:
            return amount, int(total / amount)
    return None


def _may_contain(whole: Piece, part: Piece, common: Counter[Money]) -> bool:
    """Whether the part lies within the whole by its bookings, and the whole has others that may lie before it."""
    rest = [money[1] for money in (whole.moved - common).elements()]
    before = part.opening - whole.opening
    least, most = (sum((side(each, Decimal(0)) for each in rest), Decimal(0)) for side in (min, max))
    return common == part.moved and least <= before <= most


def _sums(moved: Counter[Money]) -> set[Decimal]:
    """What some of these bookings, one at least, may add up to; of very many different sums only the first, and that of
    all."""
    found = set[Decimal]()
    for _, amount in moved.elements():
        if len(found) < SUMS_MAX:
            found |= {amount, *(amount + each for each in found)}
    return found | {_sum(moved)}


def _sum(moved: Counter[Money]) -> Decimal:
    return sum((amount * n for (_, amount), n in moved.items()), Decimal(0))
