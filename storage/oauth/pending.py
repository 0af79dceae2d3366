"""Authorization requests that wait for the user's answer, each bound to one browser session."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from storage.database import Row, Session, add_row, names_of, set_values, values_of
from storage.oauth.moments import with_moments


class AccessRequest(Struct, frozen=True, kw_only=True):
    """The content of a valid authorization request. `details` are its authorization details as JSON
    (`authorization_details.as_text`), None without any."""

    client_id: str
    redirect_uri: str
    scope: str
    state: str | None
    code_challenge: str
    resource: Literal["data", "mcp", "simplefin"] = "data"
    details: str | None = None  # what was asked for beyond scopes, in the form of auth/authorization_details.py


class PendingRequest(AccessRequest, frozen=True, kw_only=True):
    """An authorization request that waits for the user, bound to one browser session."""

    id_hash: str
    session_hash: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


COLUMNS = names_of(PendingRequest)


def add(session: Session, request: PendingRequest) -> None:
    """Store a request."""
    add_row(session, "oauth_requests", **values_of(request))


def find(session: Session, id_hash: str, *, session_hash: str, now: datetime) -> PendingRequest | None:
    """The open request with this id; None where it has expired, was answered, or belongs to another browser."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM oauth_requests"
        " WHERE id_hash = $1 AND session_hash = $2 AND used_at IS NULL AND expires_at > $3",
        *(id_hash, session_hash, now),
    )
    return _request(rows[0]) if rows else None


def use(session: Session, id_hash: str, *, session_hash: str, now: datetime) -> PendingRequest | None:
    """Mark the request as used and return it; None for every caller but the first, for another browser, and once it has
    expired."""
    rows = session.rows(
        "UPDATE oauth_requests SET used_at = $3"
        f" WHERE id_hash = $1 AND session_hash = $2 AND used_at IS NULL AND expires_at > $3 RETURNING {COLUMNS}",
        *(id_hash, session_hash, now),
    )
    return _request(rows[0]) if rows else None


def answered(session: Session, id_hash: str, *, session_hash: str) -> PendingRequest | None:
    """The answered request with this id; None where there is none, or it belongs to another browser."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM oauth_requests WHERE id_hash = $1 AND session_hash = $2 AND used_at IS NOT NULL",
        *(id_hash, session_hash),
    )
    return _request(rows[0]) if rows else None


def count(session: Session, session_hash: str, *, now: datetime) -> int:
    """The number of requests of a browser that are neither answered nor expired."""
    rows = session.rows(
        "SELECT count(*) AS number FROM oauth_requests WHERE session_hash = $1 AND used_at IS NULL AND expires_at > $2",
        *(session_hash, now),
    )
    return int(rows[0]["number"])


def remove_oldest(session: Session, *, but: int) -> None:
    """Delete all but the `but` newest requests of all browsers."""
    rows = session.rows("SELECT id_hash FROM oauth_requests ORDER BY created_at DESC, id_hash OFFSET $1", but)
    for row in rows:
        session.execute("DELETE FROM oauth_requests WHERE id_hash = $1", row["id_hash"])


def move(session: Session, *, from_session: str, to_session: str) -> None:
    """Move the open requests of a browser to the new session that sign-in gives it."""
    set_values(session, "oauth_requests", {"session_hash": from_session, "used_at": None}, session_hash=to_session)


def _request(row: Row) -> PendingRequest:
    return PendingRequest(**{**with_moments(row), "resource": row["resource"] or "data"})
