"""What the balances of two statements prove of their bookings: whether both can contain one and the same booking.

Each statement that adds up is one piece of the account's history, from its opening to its closing balance. If two
pieces overlap, what is in both moves the balance from where the later one begins to where the earlier one ends; if one
piece lies within the other, the rest lies before and after it. Where neither fits, equal bookings of both are different
ones, whatever their words and references say.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal

import polars as pl
from msgspec import Struct

from storage.database import Row
from storage.importing import contributions
from storage.importing.batches import AccountStatement, spool_statements
from storage.importing.spool import PARTING, Spool
from storage.importing.teller import Teller


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


class Piece(Struct, frozen=True):
    """The bookings of a statement that adds up (`keys`: spool.KEYS), from its `opening` to its `closing` balance."""

    opening: Decimal
    closing: Decimal
    sequence: str | None
    keys: pl.DataFrame
    moved: Counter[tuple[date, Decimal]]
    references: frozenset[str]

    def is_apart(self, other: "Piece", links: Links) -> bool:
        """Whether the balances prove that no booking of the other piece is in this one, although both have some of the
        same day and amount: one follows the other, at once or by these links, or their numbers differ and so does all
        else."""
        common = self.moved & other.moved
        if not common:
            return False
        is_next = links.lead(self.closing, other.opening) or links.lead(other.closing, self.opening)
        is_other = (
            None not in (self.sequence, other.sequence)
            and self.sequence != other.sequence
            and self.references.isdisjoint(other.references)
            and self.opening != other.opening
            and self.closing != other.closing
        )
        in_both = _sum(common)
        overlaps = in_both in (self.closing - other.opening, other.closing - self.opening)
        is_within = _may_contain(self, other, common) or _may_contain(other, self, common)
        return (is_next or is_other) and not overlaps and not is_within


def stated_nearby(
    teller: Teller, account_id: str, reported: Sequence[AccountStatement], booked: pl.DataFrame
) -> tuple[list[Row], Links]:
    """The stored statements that add up and reach into the days of these bookings, by batch, `opening` and `closing`:
    those that share a balance with one of these statements, those with another number, and those of its last day from
    which others lead to it or to which it leads; and the links between all of them."""
    stated = [each.statement for each in reported if each.adds_up]
    if not stated or booked.is_empty():
        return [], Links()
    first, last = booked.select(pl.min("booking_date"), last=pl.max("booking_date")).row(0)
    rows = teller.session.rows(
        "SELECT DISTINCT batch_id, opening, closing, coalesce(opening = ANY($5::DECIMAL(20,5)[])"
        " OR closing = ANY($5::DECIMAL(20,5)[]) OR NOT sequence = ANY($6::TEXT[]), FALSE) AS is_near,"
        " closing_date = ANY($7::DATE[]) AS is_of_day FROM statements WHERE user_id = $1 AND account_id = $2"
        " AND adds_up AND closing_date >= $3 AND coalesce(opening_date, $4) <= $4",
        *(teller.user.id, account_id, first, last),
        [balance for each in stated for balance in (each.opening, each.closing)],
        [each.sequence for each in stated if each.sequence] or None,
        [each.closing_date for each in stated],
    )
    ours = {(each.opening, each.closing) for each in stated if each.opening is not None and each.closing is not None}
    between = {(row["opening"], row["closing"]) for row in rows if row["is_near"] or row["is_of_day"]}
    links = Links(ours | between)
    near = [
        row
        for row in rows
        if row["is_near"]
        or (
            row["is_of_day"]
            and any(links.lead(row["closing"], first) or links.lead(last, row["opening"]) for first, last in ours)
        )
    ]
    return near, links


def stored_pieces(teller: Teller, account_id: str, stated: Sequence[Row]) -> Iterator[tuple[Piece, Spool]]:
    """These stored statements (of `stated_nearby`), each with the spool of its bookings."""
    found = {(row["batch_id"], row["opening"], row["closing"]) for row in stated}
    batches = {batch_id for batch_id, _, _ in found}
    for contribution in contributions.of_batches(teller.session, teller.user.id, account_id, batches):
        statements, spool = spool_statements(contributions.records(teller.session, teller.user.id, contribution))
        for each in statements:
            if (contribution.batch_id, each.statement.opening, each.statement.closing) in found:
                yield from ((piece, spool) for piece in pieces([each], spool))


def pieces(reported: Sequence[AccountStatement], spool: Spool) -> list[Piece]:
    """The pieces that those of the statements tell that add up; their bookings are in the spool."""
    return [_piece(each, spool) for each in reported if each.adds_up]


def _piece(reported: AccountStatement, spool: Spool) -> Piece:
    said, keys = reported.statement, spool.keys([reported.places]).filter("is_booked")
    assert said.opening is not None, "it adds up"
    assert said.closing is not None, "it adds up"
    references = frozenset(key for each in keys["references"] for key in each.split(PARTING) if key)
    moved = Counter(keys.select("booking_date", "amount").iter_rows())
    return Piece(said.opening, said.closing, said.sequence, keys, moved, references)


def _may_contain(whole: Piece, part: Piece, common: Counter[tuple[date, Decimal]]) -> bool:
    """Whether the part lies within the whole by its bookings, and the whole has others that may lie before it."""
    rest = [money[1] for money in (whole.moved - common).elements()]
    before = part.opening - whole.opening
    least, most = (sum((side(each, Decimal(0)) for each in rest), Decimal(0)) for side in (min, max))
    return common == part.moved and least <= before <= most


def _sum(moved: Counter[tuple[date, Decimal]]) -> Decimal:
    return sum((amount * n for (_, amount), n in moved.items()), Decimal(0))
