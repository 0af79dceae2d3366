"""The few things a store remembers of itself, by name."""

from datetime import datetime

from storage.database import Session


def recall(session: Session, name: str) -> str | None:
    """The value remembered under this name."""
    rows = session.rows("SELECT value FROM settings WHERE name = $1", name)
    return str(rows[0]["value"]) if rows else None


def remember(session: Session, name: str, value: str) -> None:
    """Keep a value under this name instead of the one before."""
    session.execute(
        "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name,
        value,
    )


def clock(session: Session) -> datetime | None:
    """The present instant in UTC on the machine of the database; None where that is this machine."""
    if not session.dialect.is_shared:
        return None
    moment = session.rows("SELECT clock_timestamp() AT TIME ZONE 'UTC' AS moment")[0]["moment"]
    assert isinstance(moment, datetime)
    return moment
