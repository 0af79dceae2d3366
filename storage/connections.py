"""Bank connections: where a user's accounts come from, and in what state each source is."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import uuid5

from storage.database import Row, Session, as_json
from storage.importing.identity import NAMESPACE

Status = Literal["ACTIVE", "REAUTH_REQUIRED", "EXPIRED", "REVOKED", "ERROR", "DISCONNECTED"]

NEEDS_USER = "('REAUTH_REQUIRED', 'EXPIRED', 'REVOKED', 'DISCONNECTED')"  # until connected again (decision 23)
FAILURES_MAX = 3  # in a row, then ACTIVE becomes ERROR (decision 23)
COLUMNS = "id, user_id, connector, bank_name, status, settings, cursor, consent_expires_at, failures_in_row, created_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConnection:
    """One source of bank data of one user (decision 23)."""

    id: str
    user_id: str
    connector: str
    bank_name: str
    status: Status
    settings: dict[str, Any]
    cursor: dict[str, Any] | None
    consent_expires_at: datetime | None
    failures_in_row: int
    created_at: datetime


def add(
    session: Session,
    *,
    user_id: str,
    user_name: str,
    connector: str,
    bank_name: str,
    settings: dict[str, Any],
    now: datetime,
) -> StoredConnection:
    """A new connection, or the one that the user has under this connector and bank name already.

    The id follows from these names, so that a store rebuilt from the raw files gets the same ids.
    """
    connection_id = "con_" + uuid5(NAMESPACE, f"{user_name.casefold()}|{connector}|{bank_name}").hex
    known = find(session, user_id, connection_id)
    if known is not None:
        return known
    session.execute(
        "INSERT INTO connections (id, user_id, connector, bank_name, status, settings, failures_in_row, created_at)"
        " VALUES ($1, $2, $3, $4, 'ACTIVE', $5, 0, $6)",
        connection_id,
        user_id,
        connector,
        bank_name,
        as_json(settings),
        now,
    )
    created = find(session, user_id, connection_id)
    assert created is not None
    return created


def find(session: Session, user_id: str, connection_id: str) -> StoredConnection | None:
    """The user's connection of this id."""
    rows = session.rows(f"SELECT {COLUMNS} FROM connections WHERE user_id = $1 AND id = $2", user_id, connection_id)
    return _connection(rows[0]) if rows else None


def of_user(session: Session, user_id: str) -> list[StoredConnection]:
    """All connections of a user that still exist at the bank, oldest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM connections WHERE user_id = $1 AND status <> 'DISCONNECTED' ORDER BY created_at, id",
        user_id,
    )
    return [_connection(row) for row in rows]


def statuses(session: Session, user_id: str) -> dict[str, Status]:
    """The state of each of the user's connections by id, disconnected ones too."""
    rows = session.rows("SELECT id, status FROM connections WHERE user_id = $1", user_id)
    return {row["id"]: row["status"] for row in rows}


def containing(session: Session, user_id: str, account_ids: list[str]) -> list[StoredConnection]:
    """The user's connections that bring at least one of these accounts, oldest first."""
    found = session.rows(
        "SELECT DISTINCT connection_id FROM account_sources WHERE user_id = $1 AND account_id = ANY($2::TEXT[])",
        user_id,
        account_ids,
    )
    ids = {row["connection_id"] for row in found}
    return [connection for connection in of_user(session, user_id) if connection.id in ids]


def renew(session: Session, connection: StoredConnection, *, settings: dict[str, Any]) -> StoredConnection:
    """The user has connected the bank again: what was expired or withdrawn holds anew, and may be synced at once."""
    renewed = session.rows(
        "UPDATE connections SET settings = $3,"
        f" status = CASE WHEN status IN {NEEDS_USER} THEN 'ACTIVE' ELSE status END,"
        f" next_sync_at = CASE WHEN status IN {NEEDS_USER} THEN NULL ELSE next_sync_at END"
        f" WHERE user_id = $1 AND id = $2 RETURNING {COLUMNS}",
        connection.user_id,
        connection.id,
        as_json(settings),
    )
    return _connection(renewed[0])


def allow_sync(session: Session, connection_id: str) -> None:
    """Forget when the connection was synced last: what comes now is no sync, but brought by the user."""
    session.execute("UPDATE connections SET next_sync_at = NULL WHERE id = $1", connection_id)


def remove(session: Session, user_id: str, connection_id: str) -> None:
    """The connection ends; its accounts and transactions stay readable (decision 23)."""
    session.execute(
        "UPDATE connections SET status = 'DISCONNECTED', settings = '{}' WHERE user_id = $1 AND id = $2",
        user_id,
        connection_id,
    )


def set_settings(session: Session, connection_id: str, settings: dict[str, Any]) -> None:
    """Replace what the connector reads."""
    session.execute("UPDATE connections SET settings = $2 WHERE id = $1", connection_id, as_json(settings))


def record_success(session: Session, connection_id: str, *, cursor: dict[str, Any]) -> None:
    """A completed sync cures every state but DISCONNECTED (decision 23)."""
    session.execute(
        "UPDATE connections SET status = 'ACTIVE', failures_in_row = 0, cursor = $2"
        " WHERE id = $1 AND status <> 'DISCONNECTED'",
        connection_id,
        as_json(cursor),
    )


def record_failure(session: Session, connection_id: str, *, status: Status | None) -> None:
    """A failed sync: the state its reason implies, else ERROR after three in a row."""
    session.execute(
        "UPDATE connections SET failures_in_row = failures_in_row + 1, status = CASE"
        " WHEN status = 'DISCONNECTED' THEN status"
        " WHEN $2::TEXT IS NOT NULL THEN $2::TEXT"
        f" WHEN status = 'ACTIVE' AND failures_in_row + 1 >= {FAILURES_MAX} THEN 'ERROR'"
        " ELSE status END WHERE id = $1",
        connection_id,
        status,
    )


def _connection(row: Row) -> StoredConnection:
    settings, cursor = json.loads(row.pop("settings")), row.pop("cursor")
    return StoredConnection(settings=settings, cursor=json.loads(cursor) if cursor else None, **row)
