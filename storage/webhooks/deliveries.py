"""Deliveries of events to webhooks: one for each event and webhook, written by the commit that writes the event.

The content of an event is read when it is sent, with the permissions of the webhook's grant at that time: a grant that
was narrowed since gets less.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from msgspec import Struct

from storage.database import Row, Session, add_row, as_json, names_of, set_values

KEPT = 100  # finished deliveries of each webhook, besides the pending ones
CLAIMED_MAX = timedelta(hours=1)  # longer than any process claims one
GIVEN_UP_AFTER = timedelta(days=5)  # when only failures came of it, or no process sends


class Delivery(Struct, frozen=True, kw_only=True):
    """One event for one webhook. `sequence` is the event's number; None where the event is about webhooks themselves,
    and `event_id` and `data` are its id and content. `due_at` is when it is sent next, None for never."""

    user_id: str
    id: str
    webhook_id: str
    type: str
    sequence: int | None
    event_id: str | None
    data: Mapping[str, Any] | None
    state: str
    due_at: datetime | None
    attempts: Sequence[Mapping[str, Any]]
    made_at: datetime


COLUMNS = names_of(Delivery)


def announce(session: Session, user_id: str, events: Mapping[int, str], now: datetime) -> None:
    """Add deliveries of these events (type by event number) to the user's webhooks that want them; the end of
    `outbox.settle`.

    It only inserts rows, so that an import does not conflict with deliveries under way.
    """
    for hook in session.rows(
        "SELECT id, event_types FROM webhooks WHERE user_id = $1 AND disabled_reason IS NULL ORDER BY id", user_id
    ):
        wanted = json.loads(hook["event_types"]) if hook["event_types"] is not None else None
        for sequence, type_ in events.items():
            if wanted is None or type_ in wanted:
                _add(session, user_id, hook["id"], sequence, now, type=type_, sequence=sequence)


def add_own(
    session: Session, user_id: str, webhook_id: str, type_: str, data: Mapping[str, Any], *, now: datetime
) -> str:
    """Add a delivery to a webhook about webhooks themselves, such as a test; returns the id of the delivery."""
    unique = token_hex(8)
    return _add(session, user_id, webhook_id, unique, now, type=type_, event_id=f"evt_{unique}", data=as_json(data))


def _add(session: Session, user_id: str, webhook_id: str, number: int | str, now: datetime, **said: Any) -> str:
    """Add a delivery that is due now; returns its id."""
    id_ = f"{webhook_id}-{number}"
    state = {"state": "pending", "due_at": now, "is_claimed": False, "attempts": "[]", "made_at": now}
    add_row(session, "webhook_deliveries", user_id=user_id, id=id_, webhook_id=webhook_id, **said, **state)
    return id_


def due(session: Session, *, now: datetime, but_of: Sequence[str], limit: int) -> list[Delivery]:
    """The next deliveries to send, the longest due first, leaving out the webhooks and users in `but_of`."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM webhook_deliveries WHERE due_at <= $1"
        " AND NOT webhook_id = ANY($2::TEXT[]) AND NOT user_id = ANY($2::TEXT[])"
        f" ORDER BY due_at, id LIMIT {int(limit)}",
        *(now, list(but_of)),
    )
    return [_delivery(row) for row in rows]


def claim(session: Session, due: Delivery, *, until: datetime) -> Delivery | None:
    """Claim a delivery for one process; None where another one was faster. If the outcome is not settled by `until`,
    the delivery is due again."""
    rows = session.rows(
        "UPDATE webhook_deliveries SET due_at = $4, is_claimed = TRUE WHERE user_id = $1 AND id = $2 AND due_at = $3"
        f" RETURNING {COLUMNS}",
        *(due.user_id, due.id, due.due_at, until),
    )
    return _delivery(rows[0]) if rows else None


def release_all(session: Session, *, now: datetime) -> None:
    """Make due at once what a previous process was sending when it ended; only for a store that one process opens."""
    session.execute("UPDATE webhook_deliveries SET due_at = $1, is_claimed = FALSE WHERE is_claimed", now)


def make_due(session: Session, *, now: datetime) -> None:
    """Make due at once what waits for a moment that a clock has given which was set since, also what a process has
    claimed until then."""
    session.execute(
        "UPDATE webhook_deliveries SET due_at = $1, is_claimed = FALSE"
        " WHERE due_at > $2 OR (due_at > $1 AND NOT is_claimed)",
        *(now, now + CLAIMED_MAX),
    )


def settle(
    session: Session, delivery: Delivery, *, state: str, due_at: datetime | None, attempts: Sequence[Any]
) -> bool:
    """Store the outcome of a claimed delivery and when it is tried again (None: never); False where that was stored
    before, or the delivery is gone."""
    claimed = {"user_id": delivery.user_id, "id": delivery.id, "is_claimed": True, "due_at": delivery.due_at}
    outcome = {"state": state, "due_at": due_at, "attempts": as_json(list(attempts))}
    return set_values(session, "webhook_deliveries", claimed, is_claimed=False, **outcome)


def drop(session: Session, delivery: Delivery) -> None:
    """Delete a delivery about something that its webhook may no longer see."""
    session.execute("DELETE FROM webhook_deliveries WHERE user_id = $1 AND id = $2", delivery.user_id, delivery.id)


def keep_last(session: Session, user_id: str, webhook_id: str) -> None:
    """Delete all but the newest KEPT deliveries of a webhook; pending ones stay."""
    session.execute(
        "DELETE FROM webhook_deliveries WHERE user_id = $1 AND webhook_id = $2 AND due_at IS NULL AND id NOT IN"
        " (SELECT id FROM webhook_deliveries WHERE user_id = $1 AND webhook_id = $2"
        f" ORDER BY made_at DESC, id DESC LIMIT {KEPT})",
        *(user_id, webhook_id),
    )


def send_again(session: Session, user_id: str, webhook_id: str, id_: str, *, now: datetime) -> bool:
    """Make a delivery due now, whatever came of it before; False where there is none with this id."""
    which = {"user_id": user_id, "webhook_id": webhook_id, "id": id_}
    return set_values(session, "webhook_deliveries", which, state="pending", due_at=now, is_claimed=False)


def last(session: Session, user_id: str, webhook_id: str) -> list[Delivery]:
    """The newest KEPT deliveries of a webhook, the newest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM webhook_deliveries WHERE user_id = $1 AND webhook_id = $2"
        f" ORDER BY made_at DESC, id DESC LIMIT {KEPT}",
        *(user_id, webhook_id),
    )
    return [_delivery(row) for row in rows]


def count_waiting(session: Session, user_id: str, webhook_id: str) -> int:
    """The number of deliveries of a webhook that still have to be sent."""
    rows = session.rows(
        "SELECT count(*) AS waiting FROM webhook_deliveries"
        " WHERE user_id = $1 AND webhook_id = $2 AND due_at IS NOT NULL",
        *(user_id, webhook_id),
    )
    return int(rows[0]["waiting"])


def forget(session: Session, *, before: datetime, now: datetime) -> None:
    """Delete deliveries made before a time, as the events themselves are deleted, and those that have been due for more
    than GIVEN_UP_AFTER, which means that no process sends."""
    session.execute("DELETE FROM webhook_deliveries WHERE made_at < $1", before)
    session.execute("DELETE FROM webhook_deliveries WHERE due_at < $1", now - GIVEN_UP_AFTER)


def _delivery(row: Row) -> Delivery:
    data = json.loads(row["data"]) if row["data"] is not None else None
    return Delivery(**{**row, "data": data, "attempts": json.loads(row["attempts"])})
