"""Attempts to connect a bank: each bound to its user and to the browser session, or the command, that began it."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from storage.bank_access.connection_keys import ConnectionKeys
from storage.database import Row, Session, add_row, as_json, set_values, values_of

LIFETIME = timedelta(minutes=30)  # of an attempt
CONNECTED = "connected"
TAKEN_AT = "taken_at"
COLUMNS = (
    "user_id, id, connector, connection_id, browser_hash, sealed, version, outcome, created_connection_id, expires_at"
)


class StoredAttempt(Struct, frozen=True, kw_only=True):
    """One attempt to connect a bank. `content` is stored sealed: the step, the user's entries, the source's own notes.
    `connection_id` is the connection to be renewed, None for a new one; `browser_hash` is None for a command. `version`
    rises with each step that is claimed; `outcome` is None until the attempt ends."""

    user_id: str
    id: str
    connector: str
    connection_id: str | None
    browser_hash: str | None
    content: Mapping[str, Any]
    version: int = 1
    outcome: str | None = None
    created_connection_id: str | None = None
    expires_at: datetime

    @property
    def taken_at(self) -> datetime | None:
        """The time since which a request has been working on the next step; None while the attempt waits for the user's
        answer."""
        since = self.content.get(TAKEN_AT)
        return datetime.fromisoformat(since) if since is not None else None


def add(session: Session, keys: ConnectionKeys, attempt: StoredAttempt, *, state: str, now: datetime) -> None:
    """Store a new attempt with its content sealed and its `state` as a hash, and delete those of the user that have
    expired."""
    session.execute("DELETE FROM connection_attempts WHERE user_id = $1 AND expires_at <= $2", attempt.user_id, now)
    values = values_of(attempt)
    sealed = keys.seal(as_json(values.pop("content")), about=_binding(attempt.id))
    made = {"state_hash": hash_of(state), "sealed": sealed, "created_at": now}
    add_row(session, "connection_attempts", **values, **made)


def find(session: Session, keys: ConnectionKeys, user_id: str, id_: str) -> StoredAttempt | None:
    """The user's attempt with this id, ended, expired or not; None where there is none. Raises SecretsUnreadable where
    its content cannot be opened."""
    rows = session.rows(f"SELECT {COLUMNS} FROM connection_attempts WHERE user_id = $1 AND id = $2", user_id, id_)
    return _attempt(rows[0], keys) if rows else None


def of_state(session: Session, keys: ConnectionKeys, user_id: str, state: str) -> StoredAttempt | None:
    """The user's attempt whose last `state` is this, with which a browser returns from the bank, be it ended, expired
    or not; None where there is none. Each state is good for one return, because `take` replaces it. Raises
    SecretsUnreadable."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM connection_attempts WHERE user_id = $1 AND state_hash = $2", user_id, hash_of(state)
    )
    return _attempt(rows[0], keys) if rows else None


def take(session: Session, keys: ConnectionKeys, attempt: StoredAttempt, *, state: str, now: datetime) -> bool:
    """Claim the next step of an attempt; False where another request was faster, or the attempt has ended or expired.

    Until `go_on` or `end`, the content says since when the step is claimed. The state of the last step becomes void and
    `state` takes its place.
    """
    taken = session.rows(
        "UPDATE connection_attempts SET version = version + 1, state_hash = $4, sealed = $6"
        " WHERE user_id = $1 AND id = $2 AND version = $3 AND outcome IS NULL AND expires_at > $5 RETURNING id",
        attempt.user_id,
        attempt.id,
        attempt.version,
        hash_of(state),
        now,
        keys.seal(as_json({**attempt.content, TAKEN_AT: now.isoformat()}), about=_binding(attempt.id)),
    )
    return bool(taken)


def go_on(session: Session, keys: ConnectionKeys, attempt: StoredAttempt, content: Mapping[str, Any]) -> None:
    """Store the content that the claimed step has led to; this ends the claim. An attempt that has ended meanwhile gets
    no content again."""
    sealed = keys.seal(as_json(content), about=_binding(attempt.id))
    set_values(session, "connection_attempts", _open_one(attempt), sealed=sealed)


def end(
    session: Session, keys: ConnectionKeys, attempt: StoredAttempt, *, outcome: str, connection_id: str | None = None
) -> None:
    """End the attempt with this outcome, and erase its content; the first outcome stays. `connection_id` is the
    connection that was made or renewed."""
    last = {"outcome": outcome, "created_connection_id": connection_id}
    sealed = keys.seal("{}", about=_binding(attempt.id))
    set_values(session, "connection_attempts", _open_one(attempt), **last, sealed=sealed)


def forget(session: Session, *, now: datetime) -> None:
    """Delete the attempts of all users that have expired."""
    session.execute("DELETE FROM connection_attempts WHERE expires_at <= $1", now)


def hash_of(secret: str) -> str:
    """The SHA-256 under which a secret of 256 bits is stored; so long a secret cannot be guessed, so no salt is
    needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _open_one(attempt: StoredAttempt) -> dict[str, str | None]:
    return {"user_id": attempt.user_id, "id": attempt.id, "outcome": None}


def _binding(id_: str) -> str:
    return f"{id_} attempt"


def _attempt(row: Row, keys: ConnectionKeys) -> StoredAttempt:
    return StoredAttempt(content=json.loads(keys.open(row.pop("sealed"), about=_binding(row["id"]))), **row)
