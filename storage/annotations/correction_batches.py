"""Batches of corrections: one category chosen for several bookings at once, as if for each alone, and undone
together."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import polars as pl

from analytics.classification.rules import ChosenCategory
from analytics.frames import columns
from storage.annotations import anchors, annotations
from storage.annotations.annotation import OwnCategory
from storage.database import Transaction, add_row, as_json, set_values

KEPT_FOR = timedelta(days=90)
ANCHORED = columns("transaction_id, account_id, booking_date, amount, currency, counterpart") | {
    "place": pl.Int32(),
    "equal_ones": pl.Int32(),
}


def choose(
    session: Transaction, user_id: str, batch_id: str, ids: Sequence[str], choice: ChosenCategory, *, now: datetime
) -> None:
    """Choose this category for each of these bookings, and remember under `batch_id` what they had, for `take_back`.
    Deletes batches older than KEPT_FOR; derives no booking anew. The caller has called `hold`."""
    session.changes(user_id)
    known = annotations.choices(session, user_id)
    before = {id_: known.get(id_) for id_ in ids}
    session.execute("DELETE FROM correction_batches WHERE user_id = $1 AND made_at < $2", user_id, now - KEPT_FOR)
    batch = {"user_id": user_id, "id": batch_id, **choice._asdict(), "before": as_json(before), "made_at": now}
    add_row(session, "correction_batches", **batch)
    meant = {"user_id": user_id, "transaction_id": list(ids)}
    set_values(session, "annotations", meant, **choice._asdict(), changed_at=now)
    spoken = anchors.of_user(session, user_id)
    found = anchors.of_bookings(session, user_id, [id_ for id_ in ids if id_ not in spoken])
    rows = [(id_, *anchor) for id_, anchor in found.items()]
    session.append(
        "annotations",
        pl.DataFrame(rows, schema=ANCHORED, orient="row").with_columns(
            user_id=pl.lit(user_id),
            category=pl.lit(choice.category),
            detailed_category=pl.lit(choice.detailed_category, dtype=pl.String),
            own_category_id=pl.lit(choice.own_category_id, dtype=pl.String),
            changed_at=pl.lit(now),
        ),
    )


def take_back(session: Transaction, user_id: str, batch_id: str, *, now: datetime) -> list[str] | None:
    """Undo a batch and delete it: each booking gets its former choice back, unless another one has been made since.
    Returns the ids of all its bookings; None where there is no such batch, or it is older than KEPT_FOR. Derives no
    booking anew."""
    rows = session.rows(
        f"SELECT {', '.join(ChosenCategory._fields)}, before FROM correction_batches"
        " WHERE user_id = $1 AND id = $2 AND made_at >= $3",
        *(user_id, batch_id, now - KEPT_FOR),
    )
    if not rows:
        return None
    session.changes(user_id)
    own = annotations.own_categories(session, user_id)
    before = {id_: _former_choice(own, had) for id_, had in json.loads(rows[0]["before"]).items()}
    chosen = ChosenCategory(*(rows[0][name] for name in ChosenCategory._fields))
    known = annotations.choices(session, user_id)
    of_choice: dict[ChosenCategory | None, list[str]] = defaultdict(list)
    for id_, had in before.items():
        if known.get(id_) == chosen:
            of_choice[had].append(id_)
    for had, ids in of_choice.items():
        choice = had._asdict() if had is not None else dict.fromkeys(ChosenCategory._fields)
        set_values(session, "annotations", {"user_id": user_id, "transaction_id": ids}, **choice, changed_at=now)
    session.execute(
        "DELETE FROM annotations WHERE user_id = $1 AND transaction_id = ANY($2::TEXT[])"
        " AND category IS NULL AND note IS NULL"
        " AND transaction_id NOT IN (SELECT transaction_id FROM annotation_tags WHERE user_id = $1)"
        " AND transaction_id NOT IN (SELECT transaction_id FROM annotation_splits WHERE user_id = $1)",
        *(user_id, list(before)),
    )
    session.execute("DELETE FROM correction_batches WHERE user_id = $1 AND id = $2", user_id, batch_id)
    return list(before)


def _former_choice(own: Mapping[str, OwnCategory], had: list[str | None] | None) -> ChosenCategory | None:
    """A booking's former choice as it is possible now; of an own category removed since, only the category above it."""
    if had is None:
        return None
    category, leaf, *more = had
    own_id = more[0] if more and more[0] in own else None
    assert category is not None
    return ChosenCategory(category, leaf, own_id)
