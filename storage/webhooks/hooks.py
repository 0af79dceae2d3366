"""Webhooks: addresses to which events are sent with the permissions of a grant."""

import json
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from storage.database import Row, Session, add_row, as_json, names_of, set_values, values_of

OF_ONE = {"webhooks": "id", "webhook_deliveries": "webhook_id", "connection_secrets": "connection_id"}
"""For each table, the column with the id of the webhook that a row belongs to."""


class Webhook(Struct, frozen=True, kw_only=True):
    """One webhook. `event_types` None means all types; `disabled_reason` None means that events are sent;
    `failing_since` is None unless every delivery since then has failed."""

    user_id: str
    id: str
    grant_id: str
    client_id: str
    scopes: frozenset[str]
    url: str
    event_types: Sequence[str] | None
    description: str | None
    disabled_reason: str | None = None
    failing_since: datetime | None = None
    created_at: datetime


COLUMNS = names_of(Webhook)


def add(session: Session, webhook: Webhook) -> None:
    """Store a new webhook."""
    types = as_json(list(webhook.event_types)) if webhook.event_types is not None else None
    scopes = " ".join(sorted(webhook.scopes))
    add_row(session, "webhooks", **{**values_of(webhook), "scopes": scopes, "event_types": types})


def of_user(session: Session, user_id: str) -> list[Webhook]:
    """The user's webhooks, in the order in which they were made."""
    rows = session.rows(f"SELECT {COLUMNS} FROM webhooks WHERE user_id = $1 ORDER BY created_at, id", user_id)
    return [_webhook(row) for row in rows]


def of_grant(session: Session, user_id: str, grant_id: str) -> list[Webhook]:
    """The webhooks of one grant, in the order in which they were made."""
    return [each for each in of_user(session, user_id) if each.grant_id == grant_id]


def find(session: Session, user_id: str, id_: str) -> Webhook | None:
    """The webhook with this id; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM webhooks WHERE user_id = $1 AND id = $2", user_id, id_)
    return _webhook(rows[0]) if rows else None


def remove(session: Session, user_id: str, id_: str) -> None:
    """Delete the webhook with its secret and its deliveries."""
    for table, column in OF_ONE.items():
        session.execute(f"DELETE FROM {table} WHERE user_id = $1 AND {column} = $2", user_id, id_)


def enable(session: Session, user_id: str, id_: str) -> None:
    """Enable the webhook: events that happen from now on are sent to it, and no failure counts against it any more."""
    set_values(session, "webhooks", {"user_id": user_id, "id": id_}, disabled_reason=None, failing_since=None)


def disable(session: Session, user_id: str, id_: str, *, because: str) -> None:
    """Disable the webhook: nothing is sent to it any more, and its pending deliveries fail."""
    set_values(session, "webhooks", {"user_id": user_id, "id": id_}, disabled_reason=because)
    pending = {"user_id": user_id, "webhook_id": id_, "state": "pending"}
    set_values(session, "webhook_deliveries", pending, state="failed", due_at=None, is_claimed=False)


def set_failing(session: Session, user_id: str, id_: str, since: datetime | None) -> None:
    """Note since when every delivery has failed; None once one has succeeded."""
    set_values(session, "webhooks", {"user_id": user_id, "id": id_}, failing_since=since)


def _webhook(row: Row) -> Webhook:
    types = json.loads(row["event_types"]) if row["event_types"] is not None else None
    return Webhook(**{**row, "event_types": types, "scopes": frozenset(row["scopes"].split())})
