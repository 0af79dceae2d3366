"""Browser sessions, with somebody signed in or nobody yet."""

from dataclasses import dataclass
from datetime import datetime

from storage.database import Session
from storage.oauth.moments import in_utc, with_moments

COLUMNS = "id_hash, user_id, created_at, seen_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """A browser; `user_id` is None before sign-in."""

    id_hash: str
    user_id: str | None
    created_at: datetime
    seen_at: datetime


def add(session: Session, browser: BrowserSession) -> None:
    """Store a browser session."""
    session.execute(
        "INSERT INTO oauth_sessions (id_hash, user_id, created_at, seen_at) VALUES ($1, $2, $3, $4)",
        browser.id_hash,
        browser.user_id,
        in_utc(browser.created_at),
        in_utc(browser.seen_at),
    )


def find(session: Session, id_hash: str) -> BrowserSession | None:
    """The session of this id."""
    rows = session.rows(f"SELECT {COLUMNS} FROM oauth_sessions WHERE id_hash = $1", id_hash)
    return BrowserSession(**with_moments(rows[0], "created_at", "seen_at")) if rows else None


def see(session: Session, id_hash: str, *, now: datetime) -> None:
    """The browser was here."""
    session.execute("UPDATE oauth_sessions SET seen_at = $2 WHERE id_hash = $1", id_hash, in_utc(now))


def remove_oldest_nobodys(session: Session, *, but: int) -> None:
    """Of the sessions in which nobody is signed in keep the `but` seen last; the others go with their requests."""
    rows = session.rows(
        "SELECT id_hash FROM oauth_sessions WHERE user_id IS NULL ORDER BY seen_at DESC, id_hash OFFSET $1", but
    )
    for row in rows:
        remove(session, row["id_hash"])


def remove(session: Session, id_hash: str) -> None:
    """Sign a browser out; its open requests end with it."""
    session.execute("DELETE FROM oauth_requests WHERE session_hash = $1", id_hash)
    session.execute("DELETE FROM oauth_sessions WHERE id_hash = $1", id_hash)


def remove_all(session: Session, user_id: str, *, but: str = "") -> None:
    """Sign a user out of every browser, or of every other one."""
    session.execute("DELETE FROM oauth_sessions WHERE user_id = $1 AND id_hash <> $2", user_id, but)
