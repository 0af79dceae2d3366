"""Annotations: the category, note, tags and parts that a user gave to one booking; they are called the user's words.

Words whose booking is gone sleep: they are kept, appear in no list, count or export, and wake when the booking comes
back (`storage.annotations.anchors`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import groupby
from operator import itemgetter

import polars as pl
from msgspec.structs import replace

from analytics.classification.rules import TAGS_MAX, ChosenCategory
from analytics.searching.parts import NO_PARTS, PARTS, fit
from storage.annotations.anchors import TABLES, Anchor, of_bookings
from storage.annotations.annotation import (
    LATEST,
    NOTE_LENGTH_MAX,
    Annotation,
    OwnCategory,
    OwnWords,
    Split,
    Tag,
    fold_tag,
)
from storage.database import Row, Session, Transaction, add_row

OF_PART = "s.category, s.detailed_category, s.own_category_id"
SAID = "a.category, a.detailed_category, a.own_category_id, a.note"


def of_user(session: Session, user_id: str, transaction_ids: Sequence[str] | None = None) -> OwnWords:
    """The user's annotations of existing bookings that are not hidden, with the tags of rules, also where the user has
    said nothing, and with parts only where they add up. With `transaction_ids`, of these bookings alone, and without
    own categories."""
    wanted = list(transaction_ids) if transaction_ids is not None else None
    rows = session.rows(
        f"SELECT a.transaction_id, {SAID}, t.account_id, t.amount, t.currency FROM annotations AS a"
        " JOIN transactions AS t ON t.user_id = a.user_id AND t.id = a.transaction_id"
        " WHERE a.user_id = $1 AND t.user_id = $1 AND ($2::TEXT[] IS NULL OR a.transaction_id = ANY($2))"
        " AND t.account_id NOT IN (SELECT id FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL)"
        f"{f' LIMIT {len(wanted)}' if wanted is not None else ''}",  # else the rest of a long history is read, too
        *(user_id, wanted),
    )
    rows.sort(key=itemgetter("transaction_id"))
    given = _rule_tags(session, user_id, wanted)
    own = own_categories(session, user_id) if wanted is None else {}
    owned = _rows_in_own(session, user_id) if own else []
    tags, parts = (_tags(session, user_id, wanted), _parts(session, user_id, wanted)) if rows else ({}, {})
    accounts = {row["transaction_id"]: row["account_id"] for row in rows} | {
        row["id"]: row["account_id"] for row in owned
    }
    said: dict[str, Annotation] = {}
    for row in rows:
        each = _annotation(row["transaction_id"], row, tags, parts)
        said[each.transaction_id] = each if each.fits(row) else replace(each, parts=())
    for id_, (account_id, by_rules) in given.items():
        said[id_] = replace(said.get(id_, Annotation(id_)), rule_tags=by_rules)
        accounts[id_] = account_id
    return OwnWords(
        said, accounts, own, {row["id"]: (row["own_category_id"], row["detailed_category"]) for row in owned}
    )


def has_parts(session: Session, user_id: str) -> bool:
    """Whether any booking of the user, gone ones included, is divided into parts."""
    rows = session.rows("SELECT EXISTS (SELECT 1 FROM annotation_splits WHERE user_id = $1) AS found", user_id)
    return bool(rows[0]["found"])


def parts_of_user(session: Session, user_id: str) -> pl.DataFrame:
    """The parts of all existing bookings, those of hidden accounts included, whose parts add up to their amount, as
    analytics.searching.parts.PARTS."""
    return _fitting_parts(
        session.rows(
            f"SELECT s.transaction_id, s.amount AS of_part, {OF_PART}, t.amount, t.currency"
            " FROM annotation_splits AS s JOIN transactions AS t ON t.user_id = s.user_id AND t.id = s.transaction_id"
            " WHERE s.user_id = $1 AND t.user_id = $1 ORDER BY s.transaction_id, s.position",
            user_id,
        )
    )


def own_categories(session: Session, user_id: str) -> dict[str, OwnCategory]:
    """The user's own categories by id, sorted by name."""
    rows = session.rows("SELECT id, name, category, detailed_category FROM own_categories WHERE user_id = $1", user_id)
    own = [OwnCategory(row["id"], row["name"], row["category"], row["detailed_category"]) for row in rows]
    return {each.id: each for each in sorted(own, key=lambda each: (fold_tag(each.name), each.id))}


def spellings(session: Session, user_id: str, annotation: Annotation) -> OwnWords:
    """The user's annotations of all bookings, not hidden, that share a tag with this annotation: enough to find the
    earliest spelling of each tag."""
    tags = list(annotation.all_tags)
    if not tags:
        return OwnWords({}, {})
    rows = session.rows(
        "SELECT transaction_id FROM annotation_tags WHERE user_id = $1 AND tag = ANY($2::TEXT[])"
        " UNION SELECT transaction_id FROM annotation_split_tags WHERE user_id = $1 AND tag = ANY($2::TEXT[])"
        " UNION SELECT transaction_id FROM rule_tags WHERE user_id = $1 AND tag = ANY($2::TEXT[])",
        *(user_id, tags),
    )
    return of_user(session, user_id, [row["transaction_id"] for row in rows])


def choices(session: Session, user_id: str) -> dict[str, ChosenCategory]:
    """The categories that the user chose for single bookings as a whole, also for bookings that are gone, by booking
    id."""
    rows = session.rows(
        f"SELECT transaction_id, {', '.join(ChosenCategory._fields)} FROM annotations"
        " WHERE user_id = $1 AND category IS NOT NULL",
        user_id,
    )
    return {row["transaction_id"]: ChosenCategory(*(row[name] for name in ChosenCategory._fields)) for row in rows}


def largest_parts(session: Session, user_id: str) -> dict[str, ChosenCategory]:
    """For each booking with parts that add up to the amount that it had when last seen, even one that is gone: the
    category of its largest part (the first of equal ones), by booking id."""
    if not has_parts(session, user_id):
        return {}
    parts = _fitting_parts(
        session.rows(
            f"SELECT s.transaction_id, s.amount AS of_part, {OF_PART}, a.amount, a.currency"
            " FROM annotation_splits AS s"
            " JOIN annotations AS a ON a.user_id = s.user_id AND a.transaction_id = s.transaction_id"
            " WHERE s.user_id = $1 AND a.user_id = $1 ORDER BY s.transaction_id, s.position",
            user_id,
        )
    )
    by_size = sorted(parts.iter_rows(), key=lambda part: abs(part[1]), reverse=True)  # equal ones stay in their order
    return {id_: ChosenCategory(*place) for id_, _, *place in reversed(by_size)}


def different_tags(session: Session, user_id: str) -> set[str]:
    """All tags that the user (not a rule) gave, also to bookings that are gone, in the form of `fold_tag`."""
    rows = session.rows(
        "SELECT tag FROM annotation_tags WHERE user_id = $1"
        " UNION SELECT tag FROM annotation_split_tags WHERE user_id = $1",
        user_id,
    )
    return {row["tag"] for row in rows}


def find(session: Session, user_id: str, transaction_id: str) -> Annotation:
    """Return what the user has said about this booking, even if it is gone, and the tags that rules give it (none if it
    is gone or hidden); if the user has said nothing, an annotation with at most those tags. Its parts may no longer add
    up to the booking's amount: see `fits`."""
    rows = session.rows(
        f"SELECT {SAID} FROM annotations AS a WHERE user_id = $1 AND transaction_id = $2", user_id, transaction_id
    )
    ids = [transaction_id]
    _, given = _rule_tags(session, user_id, ids).get(transaction_id, ("", {}))
    if not rows:
        return Annotation(transaction_id, rule_tags=given)
    said = _annotation(transaction_id, rows[0], _tags(session, user_id, ids), _parts(session, user_id, ids))
    return replace(said, rule_tags=given)


def say(session: Transaction, user_id: str, annotation: Annotation, *, now: datetime, day: date | None = None) -> None:
    """Store the user's annotation of an existing booking, of this day if the caller knows it, in place of the former
    one; an empty one only deletes that. Tags of rules are not stored. The caller has called `hold`."""
    forget(session, user_id, [annotation.transaction_id])
    if not annotation.is_empty:
        anchor = of_bookings(session, user_id, [annotation.transaction_id], day=day)[annotation.transaction_id]
        _insert(session, user_id, annotation, anchor, now=now)


def sleep(
    session: Transaction,
    user_id: str,
    annotation: Annotation,
    anchor: Anchor,
    *,
    now: datetime,
    told_by: str | None = None,
) -> None:
    """Store an annotation of a booking that does not exist under this id, until `anchors.settle` finds it by the
    anchor; `told_by` is the share whose giver said it."""
    _insert(session, user_id, annotation, anchor, now=now, told_by=told_by)


def of_share(session: Session, user_id: str, share_id: str) -> list[str]:
    """The ids of the bookings whose annotation is that of the giver of this share."""
    rows = session.rows(
        "SELECT transaction_id FROM annotations WHERE user_id = $1 AND told_by = $2 ORDER BY transaction_id",
        *(user_id, share_id),
    )
    return [row["transaction_id"] for row in rows]


def said_by_others(session: Session, user_id: str) -> set[str]:
    """The ids of the bookings whose annotation is that of somebody who shares them, and not the user's own."""
    rows = session.rows("SELECT transaction_id FROM annotations WHERE user_id = $1 AND told_by IS NOT NULL", user_id)
    return {row["transaction_id"] for row in rows}


def with_tags(annotation: Annotation, names: Iterable[str], *, now: datetime) -> Annotation:
    """The annotation with these tags instead of its own; a tag that stays keeps its spelling and time."""
    return replace(annotation, tags=tags_of(names, annotation.tags, now=now))


def tags_of(names: Iterable[str], known: Mapping[str, Tag], *, now: datetime) -> Mapping[str, Tag]:
    """Tags with these names, by `fold_tag`, the earliest first: those in `known` as they are there, others given `now`,
    with the first of several spellings, its white space tidied."""
    said = {fold_tag(name): Tag(" ".join(name.split()), now) for name in reversed(list(names))}
    kept = {tag: known.get(tag, said[tag]) for tag in said}
    return dict(sorted(kept.items(), key=lambda each: (each[1].tagged_at, each[0])))


def together(one: Annotation, other: Annotation, booking: Row) -> Annotation:
    """The annotation of the booking that two annotated ones have become: `one` with the tags of both (TAGS_MAX at
    most), both notes if they differ (cut to NOTE_LENGTH_MAX), `other`'s category if `one` has none, and the parts of
    the first of them that add up to the booking's amount, else `one`'s."""
    notes = dict.fromkeys(note for note in (one.note, other.note) if note is not None)
    return replace(
        one,
        place=one.place or other.place,
        note="\n".join(notes)[:NOTE_LENGTH_MAX] if notes else None,
        tags=dict(
            [*one.tags.items(), *((tag, said) for tag, said in other.tags.items() if tag not in one.tags)][:TAGS_MAX]
        ),
        parts=next((each.parts for each in (one, other) if each.fits(booking)), one.parts),
    )


def forget(session: Transaction, user_id: str, transaction_ids: Collection[str]) -> None:
    """Delete the user's annotations of these bookings; tags that rules gave stay."""
    session.changes(user_id)
    for table in TABLES:
        deleted = session.execute(
            f"DELETE FROM {table} WHERE user_id = $1 AND transaction_id = ANY($2::TEXT[])",
            *(user_id, list(transaction_ids)),
        )
        if not deleted and table == "annotations":  # each of the others belongs to one of these
            return


def _fitting_parts(rows: Sequence[Row]) -> pl.DataFrame:
    """The parts of bookings whose parts add up to the booking's amount, as PARTS; each row of `rows` is a part
    (`of_part`) with the booking's `amount` and `currency`, those of one booking in a row."""
    found: list[Row] = []
    for _, each in groupby(rows, key=lambda row: row["transaction_id"]):
        parts = list(each)
        if fit([row["of_part"] for row in parts], amount=parts[0]["amount"], currency=parts[0]["currency"]):
            found += parts
    if not found:
        return NO_PARTS
    names = ("transaction_id", "of_part", *ChosenCategory._fields)
    return pl.DataFrame([[row[name] for name in names] for row in found], schema=PARTS, orient="row")


def _annotation(
    id_: str, row: Row, tags: Mapping[str, Mapping[str, Tag]], parts: Mapping[str, Sequence[Split]]
) -> Annotation:
    place = ChosenCategory(*(row[name] for name in ChosenCategory._fields)) if row["category"] is not None else None
    return Annotation(id_, place, row["note"], tags.get(id_, {}), parts.get(id_, ()))


def _rows_in_own(session: Session, user_id: str) -> list[Row]:
    return session.rows(
        "SELECT id, account_id, own_category_id, detailed_category FROM transactions"
        " WHERE user_id = $1 AND own_category_id IS NOT NULL"
        " AND account_id NOT IN (SELECT id FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL) ORDER BY id",
        user_id,
    )


def _insert(
    session: Transaction,
    user_id: str,
    annotation: Annotation,
    anchor: Anchor,
    *,
    now: datetime,
    told_by: str | None = None,
) -> None:
    session.changes(user_id)
    booking = {"user_id": user_id, "transaction_id": annotation.transaction_id}
    said = {"note": annotation.note, **(annotation.place._asdict() if annotation.place is not None else {})}
    add_row(session, "annotations", **booking, **said, changed_at=now, told_by=told_by, **anchor._asdict())
    for tag, each in annotation.tags.items():
        add_row(session, "annotation_tags", **booking, tag=tag, **each._asdict())
    for position, part in enumerate(annotation.parts):
        of_part = {**booking, "position": position}
        add_row(session, "annotation_splits", **of_part, amount=part.amount, **part.place._asdict(), note=part.note)
        for tag, each in part.tags.items():
            add_row(session, "annotation_split_tags", **of_part, tag=tag, **each._asdict())


def _parts(session: Session, user_id: str, transaction_ids: Sequence[str] | None) -> dict[str, list[Split]]:
    """The parts of each of these bookings (None: of all), in order, by booking id, whether or not the booking
    exists."""
    rows = session.rows(
        f"SELECT s.transaction_id, s.position, s.amount, {OF_PART}, s.note FROM annotation_splits AS s"
        " WHERE user_id = $1 AND ($2::TEXT[] IS NULL OR transaction_id = ANY($2)) ORDER BY transaction_id, position",
        *(user_id, transaction_ids),
    )
    if not rows:
        return {}
    tags: dict[tuple[str, int], dict[str, Tag]] = {}
    for row in session.rows(
        "SELECT transaction_id, position, tag, name, tagged_at FROM annotation_split_tags"
        " WHERE user_id = $1 AND ($2::TEXT[] IS NULL OR transaction_id = ANY($2)) ORDER BY tagged_at, tag",
        *(user_id, transaction_ids),
    ):
        tags.setdefault((row["transaction_id"], row["position"]), {})[row["tag"]] = Tag(row["name"], row["tagged_at"])
    found: dict[str, list[Split]] = {}
    for row in rows:
        of_part = tags.get((row["transaction_id"], row["position"]), {})
        place = ChosenCategory(*(row[name] for name in ChosenCategory._fields))
        part = Split(row["amount"], place, row["note"], of_part)
        found.setdefault(row["transaction_id"], []).append(part)
    return found


def _tags(session: Session, user_id: str, transaction_ids: Sequence[str] | None) -> dict[str, dict[str, Tag]]:
    rows = session.rows(
        "SELECT transaction_id, tag, name, tagged_at FROM annotation_tags"
        " WHERE user_id = $1 AND ($2::TEXT[] IS NULL OR transaction_id = ANY($2)) ORDER BY tagged_at, tag",
        *(user_id, transaction_ids),
    )
    found: dict[str, dict[str, Tag]] = {}
    for row in rows:
        found.setdefault(row["transaction_id"], {})[row["tag"]] = Tag(row["name"], row["tagged_at"])
    return found


def _rule_tags(
    session: Session, user_id: str, transaction_ids: Sequence[str] | None
) -> dict[str, tuple[str, dict[str, Tag]]]:
    """For each existing booking that is not hidden and has tags from rules: its account's id, and these tags by
    `fold_tag`; of these bookings, or (None) of all."""
    rows = session.rows(
        "SELECT r.transaction_id, r.tag, r.name, t.account_id FROM rule_tags AS r"
        " JOIN transactions AS t ON t.user_id = r.user_id AND t.id = r.transaction_id"
        " WHERE r.user_id = $1 AND t.user_id = $1 AND ($2::TEXT[] IS NULL OR r.transaction_id = ANY($2))"
        " AND t.account_id NOT IN (SELECT id FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL)"
        " ORDER BY r.transaction_id, r.tag",
        *(user_id, transaction_ids),
    )
    found: dict[str, tuple[str, dict[str, Tag]]] = {}
    for row in rows:
        of_booking = found.setdefault(row["transaction_id"], (row["account_id"], {}))
        of_booking[1][row["tag"]] = Tag(row["name"], LATEST)
    return found
