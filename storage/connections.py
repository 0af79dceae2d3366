"""Bank connections: where a user's accounts come from, and in what state each source is."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Literal
from uuid import uuid5

from msgspec import Struct

from storage import jobs
from storage.bank_access import connection_secrets
from storage.database import Database, Row, Session, add_row, as_json, set_values
from storage.importing.matching.booking_keys import NAMESPACE

Status = Literal["ACTIVE", "REAUTH_REQUIRED", "EXPIRED", "REVOKED", "ERROR", "DISCONNECTED"]

NEED_USER = ("REAUTH_REQUIRED", "EXPIRED", "REVOKED", "DISCONNECTED")  # until connected again (decision 23)
NEEDS_USER = "(" + ", ".join(f"'{status}'" for status in NEED_USER) + ")"
FILE_CONNECTORS = ("files", "folder", "household-files")  # anybody may have written what they read: ids prove nothing
SHARED = ("household", "household-files")  # what another person shares, told by their banks, and by their files
FAILURES_MAX = 3  # in a row, then ACTIVE becomes ERROR (decision 23)
SYNCABLE = "status IN ('ACTIVE', 'ERROR')"
IS_DUE = f"{SYNCABLE} AND due_at <= $1 AND running_job_id IS NULL"
PAST_CONSENT = f"consent_expires_at <= $1 AND {SYNCABLE}"
AT_ONCE = datetime(1970, 1, 1)  # noqa: DTZ001 - the store keeps UTC without zone; as a new row has it in its migration
PIECE = 500  # connections read at once
REMOVED = "The connection was removed."
COLUMNS = "id, user_id, connector, bank_name, status, settings, cursor, consent_expires_at, failures_in_row, created_at"


class StoredConnection(Struct, frozen=True, kw_only=True):
    """One source of bank data of one user (decision 23). `settings` are what its connector reads, `cursor` says where
    the next fetch continues, None: at the beginning."""

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

    @property
    def is_attended_only(self) -> bool:
        """Whether the source can be asked only while the user is there, because what opens it is not stored."""
        return self.settings.get("attended_only") is True

    def is_past_consent(self, now: datetime) -> bool:
        """Whether the user's consent to ask the source has run out."""
        return self.consent_expires_at is not None and self.consent_expires_at <= now


class Due(Struct, frozen=True, kw_only=True):
    """A connection whose schedule has to be checked since `due_at`. `planned_at` is the last planned sync that was
    begun (None: none yet); before `free_at` no sync may begin (None: one may)."""

    connection: StoredConnection
    due_at: datetime
    planned_at: datetime | None
    free_at: datetime | None


def add(
    session: Session,
    *,
    user_id: str,
    user_name: str,
    connector: str,
    bank_name: str,
    settings: dict[str, Any],
    now: datetime,
    told_by: str = "",
) -> StoredConnection:
    """Store a new connection, ACTIVE, and return it; or return the one that the user has under this connector and bank
    name already, as it is, disconnected or not. Of a person who shares there is one for each connection of theirs
    (`told_by`).

    The id is derived from these names, so that a store rebuilt from the raw files has the same ids.
    """
    connection_id = id_of(user_name=user_name, connector=connector, bank_name=bank_name + told_by)
    known = find(session, user_id, connection_id)
    if known is not None:
        return known
    names = {"id": connection_id, "user_id": user_id, "connector": connector, "bank_name": bank_name}
    state = {"status": "ACTIVE", "told_status": "ACTIVE", "failures_in_row": 0, "created_at": now}
    add_row(session, "connections", **names, settings=as_json(settings), **state)
    created = find(session, user_id, connection_id)
    assert created is not None
    return created


def id_of(*, user_name: str, connector: str, bank_name: str) -> str:
    """The id of a connection, made of these names alone; the case of the user's name does not matter."""
    return "con_" + uuid5(NAMESPACE, f"{user_name.casefold()}|{connector}|{bank_name}").hex


def find(session: Session, user_id: str, connection_id: str) -> StoredConnection | None:
    """The user's connection with this id; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM connections WHERE user_id = $1 AND id = $2", user_id, connection_id)
    return _connection(rows[0]) if rows else None


def of_user(session: Session, user_id: str) -> list[StoredConnection]:
    """All connections of a user but the disconnected ones, oldest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM connections WHERE user_id = $1 AND status <> 'DISCONNECTED' ORDER BY created_at, id",
        user_id,
    )
    return [_connection(row) for row in rows]


def of_connectors(session: Session, connectors: list[str]) -> list[StoredConnection]:
    """The connections of all users with one of these connectors that may be synced (ACTIVE or ERROR), oldest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM connections WHERE connector = ANY($1::TEXT[]) AND {SYNCABLE} ORDER BY created_at, id",
        connectors,
    )
    return [_connection(row) for row in rows]


def due(session: Session, *, now: datetime, after: Due | None) -> list[Due]:
    """The next PIECE connections (`after` the last one given before; None: from the first), of all users, whose
    schedule has to be checked; the longest due first.

    Connections in a sync are left out, because writing their row would make the import start over.
    """
    rows = session.rows(
        f"SELECT {COLUMNS}, due_at, planned_at, greatest(next_sync_at, source_retry_at) AS free_at FROM connections"
        f" WHERE {IS_DUE} AND (due_at, user_id, id) > ($2, $3, $4)"
        f" ORDER BY due_at, user_id, id LIMIT {PIECE}",
        now,
        after.due_at if after is not None else AT_ONCE,
        after.connection.user_id if after is not None else "",
        after.connection.id if after is not None else "",
    )
    return [
        Due(**{name: row.pop(name) for name in ("due_at", "planned_at", "free_at")}, connection=_connection(row))
        for row in rows
    ]


def due_since(session: Session, *, now: datetime) -> datetime | None:
    """The time since when the longest waiting connection has been due for a check of its schedule; None where none is
    due."""
    rows = session.rows(f"SELECT min(greatest(due_at, created_at)) AS since FROM connections WHERE {IS_DUE}", now)
    since: datetime | None = rows[0]["since"]
    return since


def look_again(session: Session, due: Due, *, at: datetime) -> bool:
    """Postpone the next check of the connection to `at`; False where another process was faster."""
    as_it_was = {"user_id": due.connection.user_id, "id": due.connection.id, "due_at": due.due_at}
    return set_values(session, "connections", as_it_was, due_at=at)


def keep_plan(
    session: Session, connection: StoredConnection, *, planned_at: datetime, due_at: datetime, now: datetime
) -> bool:
    """Record that the sync planned for `planned_at` is begun, and that the schedule has to be checked again at
    `due_at`; True if the caller has to begin the sync.

    True once per `planned_at`; False, with nothing recorded, while a sync runs or is not allowed yet, and for a
    connection made after `planned_at`.
    """
    changed = session.execute(
        "UPDATE connections SET planned_at = $3, due_at = $5 WHERE user_id = $1 AND id = $2 AND created_at < $3"
        " AND (planned_at IS NULL OR planned_at < $3) AND running_job_id IS NULL"
        " AND (next_sync_at IS NULL OR next_sync_at <= $4) AND (source_retry_at IS NULL OR source_retry_at <= $4)",
        *(connection.user_id, connection.id, planned_at, now, due_at),
    )
    return changed > 0


def statuses(session: Session, user_id: str) -> dict[str, Status]:
    """The status of each of the user's connections by id, disconnected ones included."""
    rows = session.rows("SELECT id, status FROM connections WHERE user_id = $1", user_id)
    return {row["id"]: row["status"] for row in rows}


def bank_names(session: Session, user_id: str) -> dict[str, str]:
    """The bank name of each of the user's connections by id, disconnected ones included."""
    rows = session.rows("SELECT id, bank_name FROM connections WHERE user_id = $1", user_id)
    return {row["id"]: row["bank_name"] for row in rows}


def of_files(session: Session, user_id: str) -> set[str]:
    """The ids of the user's connections that read files, disconnected ones included."""
    rows = session.rows("SELECT id, connector FROM connections WHERE user_id = $1", user_id)
    return {row["id"] for row in rows if row["connector"] in FILE_CONNECTORS}


def of_shares(session: Session, user_id: str) -> set[str]:
    """The ids of the user's connections that bring what another person shares."""
    rows = session.rows("SELECT id, connector FROM connections WHERE user_id = $1", user_id)
    return {row["id"] for row in rows if row["connector"] in SHARED}


def is_any_shared(session: Session, user_id: str, connection_ids: Collection[str]) -> bool:
    """Whether one of these connections brings what another person shares."""
    found = session.rows(
        "SELECT id FROM connections WHERE user_id = $1 AND connector = ANY($2::TEXT[]) AND id = ANY($3::TEXT[])",
        *(user_id, list(SHARED), sorted(connection_ids)),
    )
    return bool(found)


def accounts_of(session: Session, user_id: str) -> dict[str, set[str]]:
    """The ids of the accounts that each connection has reported, hidden ones included, by connection id; connections
    without any are absent."""
    found: dict[str, set[str]] = {}
    for row in session.rows("SELECT connection_id, account_id FROM account_sources WHERE user_id = $1", user_id):
        found.setdefault(row["connection_id"], set()).add(row["account_id"])
    return found


def with_accounts(session: Session, user_id: str, account_ids: list[str]) -> list[StoredConnection]:
    """The user's connections, but the disconnected ones, that have reported at least one of these accounts, oldest
    first."""
    brought = accounts_of(session, user_id)
    return [each for each in of_user(session, user_id) if not brought.get(each.id, set()).isdisjoint(account_ids)]


def account_ids(session: Session, user_id: str, connection_id: str) -> list[str]:
    """The ids of the accounts that the connection has reported, hidden ones included, sorted."""
    return sorted(accounts_of(session, user_id).get(connection_id, ()))


def renew(
    session: Session,
    connection: StoredConnection,
    *,
    settings: dict[str, Any],
    consent_expires_at: datetime | None = None,
    is_synced_next: bool = False,
) -> StoredConnection:
    """Store that the user has connected the bank again, with these settings, and return the connection as it is now.

    One that needed its user (NEED_USER, disconnected ones included) becomes ACTIVE and may be synced at once; one in
    any other status keeps it, and may be synced at once only with `is_synced_next`. No wait that the source wanted
    holds any longer. `consent_expires_at` replaces the end of the consent; None: the bank names none.
    """
    session.changes(connection.user_id)
    renewed = session.rows(
        "UPDATE connections SET settings = $3, consent_expires_at = $4, source_retry_at = NULL,"
        f" status = CASE WHEN status IN {NEEDS_USER} THEN 'ACTIVE' ELSE status END,"
        f" next_sync_at = CASE WHEN $5 OR status IN {NEEDS_USER} THEN NULL ELSE next_sync_at END"
        f" WHERE user_id = $1 AND id = $2 RETURNING {COLUMNS}",
        *(connection.user_id, connection.id, as_json(settings), consent_expires_at, is_synced_next),
    )
    return _connection(renewed[0])


def take_import(session: Session, connection: StoredConnection) -> StoredConnection:
    """Let the user import a file by command, and return the connection as it is now.

    The minimum interval since the last sync is over, because an import is no sync; a disconnected connection becomes
    ACTIVE again (decision 49).
    """
    session.changes(connection.user_id)
    taken = session.rows(
        "UPDATE connections SET next_sync_at = NULL,"
        " status = CASE WHEN status = 'DISCONNECTED' THEN 'ACTIVE' ELSE status END"
        f" WHERE user_id = $1 AND id = $2 RETURNING {COLUMNS}",
        *(connection.user_id, connection.id),
    )
    return _connection(taken[0])


def expire_consents(database: Database, *, now: datetime) -> None:
    """Give connections whose consent has run out the status EXPIRED, of up to PIECE users, each in a transaction; the
    bank need not be asked. The rest follows next time."""
    past = database.rows(
        f"SELECT DISTINCT user_id FROM connections WHERE {PAST_CONSENT} ORDER BY user_id LIMIT {PIECE}", now
    )
    for row in past:
        database.atomically(partial(expire_consents_of, user_id=row["user_id"], now=now))


def expire_consents_of(session: Session, user_id: str, *, now: datetime) -> None:
    """Give one user's connections whose consent has run out, if ACTIVE or ERROR, the status EXPIRED."""
    if session.execute(
        f"UPDATE connections SET status = 'EXPIRED' WHERE {PAST_CONSENT} AND user_id = $2",
        *(now, user_id),
    ):
        session.changes(user_id)


def need_user(session: Session, user_id: str, connection_id: str) -> bool:
    """Give the connection the status REAUTH_REQUIRED, because what opens the bank is missing; False where it is neither
    ACTIVE nor ERROR, and so needs its user already or is disconnected."""
    changed = session.execute(
        f"UPDATE connections SET status = 'REAUTH_REQUIRED' WHERE user_id = $1 AND id = $2 AND {SYNCABLE}",
        *(user_id, connection_id),
    )
    if changed:
        session.changes(user_id)
    return changed > 0


def need_user_no_more(session: Session, user_id: str, connection_id: str) -> None:
    """Make the connection ACTIVE again if it is REAUTH_REQUIRED; the caller has found that the key to its bank secrets
    is back."""
    session.changes(user_id)
    needing = {"user_id": user_id, "id": connection_id, "status": "REAUTH_REQUIRED"}
    set_values(session, "connections", needing, status="ACTIVE")


def remove(session: Session, user_id: str, connection_id: str, *, now: datetime) -> None:
    """Disconnect the connection: end its running sync as failed, and delete its settings and secrets; its accounts and
    transactions stay readable (decision 23)."""
    session.changes(user_id)
    jobs.end_running(session, user_id, connection_id, error=REMOVED, now=now)
    set_values(session, "connections", {"user_id": user_id, "id": connection_id}, status="DISCONNECTED", settings="{}")
    connection_secrets.forget(session, user_id, connection_id)


def set_settings(session: Session, user_id: str, connection_id: str, settings: dict[str, Any]) -> None:
    """Replace the settings that the connector reads."""
    set_values(session, "connections", {"user_id": user_id, "id": connection_id}, settings=as_json(settings))


def keep_cursor(session: Session, user_id: str, connection_id: str, cursor: Mapping[str, Any]) -> None:
    """Store where the next fetch continues; belongs in the transaction of the batch that was fetched."""
    set_values(session, "connections", {"user_id": user_id, "id": connection_id}, cursor=as_json(dict(cursor)))


def record_success(session: Session, user_id: str, connection_id: str) -> None:
    """Record a completed sync: the connection becomes ACTIVE, unless it is DISCONNECTED (decision 23), and no failure
    counts any more."""
    if session.execute(
        "UPDATE connections SET status = 'ACTIVE', failures_in_row = 0"
        " WHERE user_id = $1 AND id = $2 AND status <> 'DISCONNECTED'",
        *(user_id, connection_id),
    ):
        session.changes(user_id)


def keep_consent(session: Session, user_id: str, connection_id: str, *, expires_at: datetime) -> None:
    """Store until when the user's consent holds, as the bank says."""
    set_values(session, "connections", {"user_id": user_id, "id": connection_id}, consent_expires_at=expires_at)


def record_failure(session: Session, user_id: str, connection_id: str, *, status: Status | None) -> None:
    """Record a failed sync: the connection gets the status that the reason implies, or (None) ERROR if it was ACTIVE
    and this is the third failure in a row; a DISCONNECTED one stays so. Its schedule becomes due for a check at once,
    which decides when to try again."""
    if session.execute(
        "UPDATE connections SET failures_in_row = failures_in_row + 1, due_at = $4, status = CASE"
        " WHEN status = 'DISCONNECTED' THEN status"
        " WHEN $3::TEXT IS NOT NULL THEN $3::TEXT"
        f" WHEN status = 'ACTIVE' AND failures_in_row + 1 >= {FAILURES_MAX} THEN 'ERROR'"
        " ELSE status END WHERE user_id = $1 AND id = $2",
        *(user_id, connection_id, status, AT_ONCE),
    ):
        session.changes(user_id)


def _connection(row: Row) -> StoredConnection:
    settings, cursor = json.loads(row.pop("settings")), row.pop("cursor")
    return StoredConnection(settings=settings, cursor=json.loads(cursor) if cursor else None, **row)
