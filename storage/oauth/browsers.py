"""Browser sessions, signed in or not."""

from datetime import datetime

from msgspec import Struct

from storage.database import Session, names_of, put_row, set_values, values_of
from storage.oauth.moments import with_moments


class BrowserSession(Struct, frozen=True, kw_only=True):
    """A browser session; `user_id` is None before sign-in. `awaits_user_id` is the user who has entered the right
    password in it, and has until `awaits_until` to show the second factor. `identity_hash` and `provider_session` name
    the identity and the session at the household's provider by which it began; `proven_at` is when the person last
    showed who they are, None for its start."""

    id_hash: str
    user_id: str | None
    created_at: datetime
    seen_at: datetime
    agent: str | None = None
    awaits_user_id: str | None = None
    awaits_until: datetime | None = None
    identity_hash: str | None = None
    provider_session: str | None = None
    proven_at: datetime | None = None


COLUMNS = names_of(BrowserSession)


def add(session: Session, browser: BrowserSession) -> None:
    """Store a browser session, anew where it is there."""
    put_row(session, "oauth_sessions", ("id_hash",), **values_of(browser))


def find(session: Session, id_hash: str) -> BrowserSession | None:
    """The session with this id; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM oauth_sessions WHERE id_hash = $1", id_hash)
    return BrowserSession(**with_moments(rows[0])) if rows else None


def of_user(session: Session, user_id: str) -> list[BrowserSession]:
    """The browser sessions in which the user is signed in, the most recently seen first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM oauth_sessions WHERE user_id = $1 ORDER BY seen_at DESC, id_hash", user_id
    )
    return [BrowserSession(**with_moments(row)) for row in rows]


def see(session: Session, id_hash: str, *, now: datetime) -> None:
    """Record that the browser has just been seen."""
    set_values(session, "oauth_sessions", {"id_hash": id_hash}, seen_at=now)


def prove(session: Session, id_hash: str, *, now: datetime) -> None:
    """Record that the person has just shown who they are."""
    set_values(session, "oauth_sessions", {"id_hash": id_hash}, proven_at=now)


def remove_oldest_nobodys(session: Session, *, but: int) -> None:
    """Keep the `but` most recently seen sessions in which nobody is signed in; the others go with their requests."""
    rows = session.rows(
        "SELECT id_hash FROM oauth_sessions WHERE user_id IS NULL ORDER BY seen_at DESC, id_hash OFFSET $1", but
    )
    for row in rows:
        remove(session, row["id_hash"])


def remove(session: Session, id_hash: str) -> None:
    """Delete a browser session, which signs its user out, and its open requests."""
    session.execute("DELETE FROM oauth_requests WHERE session_hash = $1", id_hash)
    session.execute("DELETE FROM oauth_sessions WHERE id_hash = $1", id_hash)


def remove_of_user(session: Session, user_id: str, id_hash: str) -> bool:
    """Sign a user out of one browser, by deleting its session; its open requests expire by themselves. False where the
    user is not signed in there."""
    return session.execute("DELETE FROM oauth_sessions WHERE id_hash = $1 AND user_id = $2", id_hash, user_id) > 0


def remove_all(session: Session, user_id: str, *, but: str = "") -> None:
    """Sign a user out of every browser but `but`, also of those that wait for the second factor."""
    session.execute(
        "DELETE FROM oauth_sessions WHERE (user_id = $1 OR awaits_user_id = $1) AND id_hash <> $2", user_id, but
    )
