"""Secret addresses of payment calendars, stored as hashes: one for each user."""

from datetime import datetime

from storage.database import Session
from storage.oauth.moments import aware, in_utc


def replace(session: Session, user_id: str, *, secret_hash: str, now: datetime) -> None:
    """Store the address of a user's calendar; an earlier address stops working."""
    session.execute(
        "INSERT INTO calendar_links (user_id, secret_hash, made_at) VALUES ($1, $2, $3)"
        " ON CONFLICT (user_id) DO UPDATE SET secret_hash = excluded.secret_hash, made_at = excluded.made_at",
        user_id,
        secret_hash,
        in_utc(now),
    )


def remove(session: Session, user_id: str) -> bool:
    """Delete the address of a user's calendar; False where there was none."""
    return session.execute("DELETE FROM calendar_links WHERE user_id = $1", user_id) > 0


def user_of(session: Session, secret_hash: str) -> str | None:
    """The id of the user whose calendar this secret opens; None where it opens none."""
    rows = session.rows("SELECT user_id FROM calendar_links WHERE secret_hash = $1", secret_hash)
    return str(rows[0]["user_id"]) if rows else None


def made_at(session: Session, user_id: str) -> datetime | None:
    """The time at which the address of a user's calendar was made; None where there is none."""
    rows = session.rows("SELECT made_at FROM calendar_links WHERE user_id = $1", user_id)
    return aware(rows[0]["made_at"]) if rows else None
