"""Anchors: the properties by which a user's words (the annotation of a booking: category, note, tags, parts) find their
booking when its id is gone, after a merge or in a new store.

After every import, undo and merge, words whose id is gone look for the one booking that matches their anchor and has no
words. Where none matches, or several that cannot be told apart, the words sleep: they are kept and shown nowhere.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from storage import accounts
from storage.accounts import StoredAccount
from storage.database import Row, Session, Transaction, set_values
from storage.importing.matching.booking_keys import squeeze

TABLES = ("annotations", "annotation_tags", "annotation_splits", "annotation_split_tags")
"""The tables of annotations, each with the id of the booking."""
PARTING = "\n"
COLUMNS = "id, account_id, booking_date, amount, currency, counterpart_iban, counterpart_name, value_date, purpose"


class Anchor(NamedTuple):
    """The description of a booking without its id: among `equal_ones` bookings equal in all else, it is the one at
    `place` (from 1) in the order of `order`. `counterpart` is as the function of that name makes it."""

    account_id: str
    booking_date: date
    amount: Decimal
    currency: str
    counterpart: str
    place: int
    equal_ones: int

    def holds(self, row: Row) -> bool:
        """Whether the row may be the booking of this anchor, whatever its account: of the same day and money, with the
        same IBAN or the same name, or with neither in both."""
        money = (row["booking_date"], row["amount"], row["currency"])
        return money == (self.booking_date, self.amount, self.currency) and _is_same(self.counterpart, counterpart(row))


class Awoken(NamedTuple):
    """An annotation that has found its booking: the id under which it was stored, and the booking's row."""

    id: str
    row: Row


def by_number(number: str, currency: str) -> str:
    """A stand-in for the id of an account that does not exist yet: its number (such as the IBAN) and currency."""
    return f"{number} {currency}"


def counterpart(row: Row) -> str:
    """The counterpart in the form that anchors compare: IBAN and name, without case and white space, on a line each;
    sources give either or both."""
    return PARTING.join((squeeze(row["counterpart_iban"]), squeeze(row["counterpart_name"])))


def of_bookings(
    session: Session, user_id: str, transaction_ids: Sequence[str], *, day: date | None = None
) -> dict[str, Anchor]:
    """The anchors of these bookings, by id; ids without a booking are absent. `day` is that of all of them, if the
    caller knows it: to find it takes as long as all the rest in a long history."""
    days = "SELECT booking_date FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])"
    rows = session.rows(
        f"SELECT {COLUMNS} FROM transactions WHERE user_id = $1 AND booking_date"
        f"{' = $2' if day is not None else f' IN ({days} LIMIT {len(transaction_ids)})'}",
        *(user_id, day if day is not None else list(transaction_ids)),
    )
    by_day: dict[tuple[str, date], list[Row]] = defaultdict(list)
    for row in rows:
        by_day[row["account_id"], row["booking_date"]].append(row)
    wanted = set(transaction_ids)
    meant = [row for row in rows if row["id"] in wanted]
    return {row["id"]: _anchor(row, by_day[row["account_id"], row["booking_date"]]) for row in meant}


def of_user(session: Session, user_id: str) -> dict[str, Anchor]:
    """The stored anchors of all the user's annotations, by the id of the booking that they were given to."""
    rows = session.rows(
        f"SELECT transaction_id, {', '.join(Anchor._fields)} FROM annotations WHERE user_id = $1"
        " ORDER BY place, transaction_id",
        user_id,
    )
    return {row["transaction_id"]: Anchor(*(row[name] for name in Anchor._fields)) for row in rows}


def find(session: Session, user_id: str, anchors: Sequence[Anchor]) -> list[str | None]:
    """For each of these anchors the id of the booking that it describes; None where there is none, or not just one."""
    numbered = {str(number): anchor for number, anchor in enumerate(anchors)}
    rows = _rows_around(session, user_id, numbered) if numbered else []
    groups = _candidates(session, user_id, numbered, rows, ())
    return [_same_place(anchor, ids) or (ids[0] if len(ids) == 1 else None) for _, anchor, ids in groups]


def settle(session: Transaction, user_id: str, *, family: Collection[str] = ()) -> list[str]:
    """Attach each annotation whose booking's id is gone to the booking that matches its anchor and has no annotation,
    if there is exactly one such booking; and bring the stored anchors of existing bookings up to date.

    Returns the ids of bookings that got an annotation or lost it, and of those whose amount has changed, which parts
    may not fit any more. Anchors treat the accounts of `family` as one: they were merged, or have been until now, and
    what was said of a booking of one of them returns to it from its twin in the other.
    """
    anchors = of_user(session, user_id)
    if not anchors:
        return []
    rows = _rows_around(session, user_id, anchors)
    there = {row["id"] for row in rows}
    astray = _astray(session, user_id, anchors, rows, family)
    retold = _update(session, user_id, {id_: each for id_, each in anchors.items() if id_ not in astray}, rows)
    gone = {id_: anchor for id_, anchor in anchors.items() if id_ not in there}
    if not gone and not astray:
        return retold
    groups = _candidates(session, user_id, astray, rows, ()) + _candidates(session, user_id, gone, rows, family)
    moves = list(_match_words(groups, taken=there & anchors.keys(), rows={row["id"]: row for row in rows}))
    for old, row in moves:
        for table in TABLES:
            set_values(session, table, {"user_id": user_id, "transaction_id": old}, transaction_id=row["id"])
    if moves:
        session.changes(user_id)
    left = [old for old, _ in moves if old in there]
    return [*retold, *(row["id"] for _, row in moves), *left]


def waiting(session: Session, user_id: str) -> int:
    """The number of annotations whose booking is not there: not yet, or not any more."""
    sql = (
        "SELECT count(*) AS n FROM annotations AS a WHERE a.user_id = $1 AND NOT EXISTS"
        " (SELECT 1 FROM transactions AS t WHERE t.user_id = $1 AND t.id = a.transaction_id)"
    )
    return int(session.rows(sql, user_id)[0]["n"])


def of_account(session: Session, user_id: str, account_id: str) -> list[str]:
    """The booking ids of all annotations of bookings of this account, and of bookings that are gone of it, or of
    accounts merged into it."""
    parts = [id_ for id_, whole in accounts_of(session, user_id).items() if whole == account_id]
    rows = session.rows(
        "SELECT a.transaction_id FROM annotations AS a LEFT JOIN transactions AS t ON t.user_id = a.user_id"
        " AND t.id = a.transaction_id WHERE a.user_id = $1 AND coalesce(t.account_id, a.account_id) = ANY($2::TEXT[])",
        *(user_id, parts),
    )
    return [row["transaction_id"] for row in rows]


def twins(session: Session, user_id: str, account_id: str) -> list[tuple[str, str]]:
    """Return the annotations of account `account_id`, just merged into another, whose booking is gone and whose place
    is taken by a booking that has an annotation too, as pairs: id of the gone booking, id of the present one. The
    caller combines the two annotations."""
    anchors = of_user(session, user_id)
    rows = _rows_around(session, user_id, anchors) if anchors else []
    there = {row["id"] for row in rows}
    gone = {id_: each for id_, each in anchors.items() if id_ not in there and each.account_id == account_id}
    groups = _candidates(session, user_id, gone, rows, ())
    return [
        (id_, choice)
        for id_, anchor, ids in groups
        if (choice := _same_place(anchor, ids)) is not None and choice in anchors
    ]


def _rows_around(session: Session, user_id: str, anchors: Mapping[str, Anchor]) -> list[Row]:
    return session.rows(
        f"SELECT {COLUMNS} FROM transactions"
        " WHERE user_id = $1 AND (id = ANY($2::TEXT[]) OR booking_date = ANY($3::DATE[]))",
        *(user_id, list(anchors), list({anchor.booking_date for anchor in anchors.values()})),
    )


def _update(session: Transaction, user_id: str, anchors: Mapping[str, Anchor], rows: Sequence[Row]) -> list[str]:
    """Update the anchors of bookings whose details or number of equals have changed; returns the ids of those with
    another amount or currency.

    An anchor keeps the account that the annotation was given in, as long as that exists or is part of the booking's
    account.
    """
    retold = []
    by_day: dict[tuple[str, date], list[Row]] = defaultdict(list)
    for row in rows:
        by_day[row["account_id"], row["booking_date"]].append(row)
    whose = accounts_of(session, user_id)
    for row in rows:
        before = anchors.get(row["id"])
        if before is None:
            continue
        now = _anchor(row, by_day[row["account_id"], row["booking_date"]])
        if whose.get(before.account_id) == row["account_id"]:
            now = now._replace(account_id=before.account_id)
        if now != before:
            set_values(session, "annotations", {"user_id": user_id, "transaction_id": row["id"]}, **now._asdict())
            if (now.amount, now.currency) != (before.amount, before.currency):
                retold.append(row["id"])
    return retold


def accounts_of(session: Session, user_id: str) -> dict[str, str]:
    """For each account id, the id of the account that it is now or has become a part of; also by `by_number`, for
    annotations imported before the account."""
    return _present(session, user_id, accounts.every(session, user_id))


def _present(session: Session, user_id: str, owned: Sequence[StoredAccount]) -> dict[str, str]:
    aliases = session.rows("SELECT source_id, account_id FROM account_aliases WHERE user_id = $1", user_id)
    return {
        **{number: ids[-1] for number, ids in _by_numbers(owned).items()},
        **{row["source_id"]: row["account_id"] for row in aliases},
        **{each.id: each.id for each in owned},
    }


def _by_numbers(owned: Iterable[StoredAccount]) -> Mapping[str, list[str]]:
    """The ids of the accounts with each number and currency; without an IBAN several may have the same."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in owned:
        for number in each.ibans or [each.stable_key]:
            found[by_number(number, each.currency)].append(each.id)
    return found


def _astray(
    session: Session, user_id: str, anchors: Mapping[str, Anchor], rows: Sequence[Row], family: Collection[str]
) -> dict[str, Anchor]:
    """The anchors whose booking is there, but in another account of the `family` than the annotation was given in."""
    if not family:
        return {}
    whose = accounts_of(session, user_id)
    booked_in = {row["id"]: row["account_id"] for row in rows}
    return {
        id_: anchor
        for id_, anchor in anchors.items()
        if {booked_in.get(id_), whose.get(anchor.account_id)} == set(family)
    }


def _candidates(
    session: Session, user_id: str, gone: Mapping[str, Anchor], rows: Sequence[Row], family: Collection[str]
) -> list[tuple[str, Anchor, list[str]]]:
    """For each of these annotations whose booking's id is gone: that id, its anchor, and the ids of the matching
    bookings in the order of `order`."""
    owned = accounts.every(session, user_id)
    whose, of_number = _present(session, user_id, owned), _by_numbers(owned)
    found = []
    for id_, anchor in gone.items():
        account = whose.get(anchor.account_id)
        meant = {account, *of_number[anchor.account_id], *(family if account in family else ())}
        equal = [row for row in rows if row["account_id"] in meant and anchor.holds(row)]
        found.append((id_, anchor, [row["id"] for row in sorted(equal, key=order)]))
    return found


def _match_words(
    groups: Iterable[tuple[str, Anchor, list[str]]], *, taken: Collection[str], rows: Mapping[str, Row]
) -> Iterable[Awoken]:
    """The annotations that match just one booking without an annotation, found by their place among equal bookings, or
    as the only one of these not `taken`. If several annotations match the same booking, none of them is returned."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for id_, anchor, ids in groups:
        choice = _same_place(anchor, ids)
        if choice is None:
            free = [each for each in ids if each not in taken]
            choice = free[0] if len(free) == 1 else None
        if choice is not None and choice not in taken:
            wanted[choice].append(id_)
    for choice, olds in wanted.items():
        if len(olds) == 1:
            yield Awoken(olds[0], rows[choice])


def _same_place(anchor: Anchor, ids: Sequence[str]) -> str | None:
    """The id of the booking at the anchor's place, where there are as many equal bookings as when the annotation was
    given; else None."""
    return ids[anchor.place - 1] if len(ids) == anchor.equal_ones else None


def _anchor(row: Row, of_day: Iterable[Row]) -> Anchor:
    money = (row["booking_date"], row["amount"], row["currency"])
    side = counterpart(row)
    first = Anchor(row["account_id"], *money, side, 1, 1)
    equal = [each["id"] for each in sorted(of_day, key=order) if first.holds(each)]
    return first._replace(place=equal.index(row["id"]) + 1, equal_ones=len(equal))


def order(row: Row) -> tuple[str, str, str]:
    """The sort key of equal bookings: purpose, value date, and the id last, so that mostly the order stays when ids
    change."""
    return squeeze(row["purpose"]), str(row["value_date"] or ""), row["id"]


def _is_same(one: str, other: str) -> bool:
    if one == other:
        return True
    pairs = zip(one.split(PARTING), other.split(PARTING), strict=True)
    return any(mine == theirs != "" for mine, theirs in pairs)
