"""The few things a store remembers of itself, by name."""

from datetime import datetime, timedelta

from storage.database import Session, put_row


def recall(session: Session, name: str) -> str | None:
    """The value remembered under this name."""
    rows = session.rows("SELECT value FROM settings WHERE name = $1", name)
    return str(rows[0]["value"]) if rows else None


def remember(session: Session, name: str, value: str) -> None:
    """Keep a value under this name instead of the one before."""
    put_row(session, "settings", ["name"], name=name, value=value)


def take_turn(session: Session, name: str, *, now: datetime, every: timedelta) -> bool:
    """Whether the caller is the one of all processes that does now what is done so often; a clock that was set back
    delays nothing."""
    changed = session.execute(
        "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        " WHERE settings.value <= $3 OR settings.value > $2",
        *(name, now.isoformat(timespec="microseconds"), (now - every).isoformat(timespec="microseconds")),
    )
    return changed > 0


def restored_until(session: Session) -> datetime | None:
    """When the last transaction was committed, in UTC, that a restored PostgreSQL has read from its WAL; None where it
    has read none."""
    moment = session.rows("SELECT pg_last_xact_replay_timestamp() AT TIME ZONE 'UTC' AS moment")[0]["moment"]
    assert moment is None or isinstance(moment, datetime)
    return moment


def clock(session: Session) -> datetime | None:
    """The present instant in UTC on the machine of the database; None where that is this machine."""
    if not session.dialect.is_shared:
        return None
    moment = session.rows("SELECT clock_timestamp() AT TIME ZONE 'UTC' AS moment")[0]["moment"]
    assert isinstance(moment, datetime)
    return moment
