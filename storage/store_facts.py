"""Facts that a store remembers about itself, by name."""

from datetime import datetime, timedelta

from storage.database import Session, put_row


def recall(session: Session, name: str) -> str | None:
    """The value stored under this name; None where there is none."""
    rows = session.rows("SELECT value FROM settings WHERE name = $1", name)
    return str(rows[0]["value"]) if rows else None


def remember(session: Session, name: str, value: str) -> None:
    """Store a value under this name, in place of an earlier one."""
    put_row(session, "settings", ["name"], name=name, value=value)


def take_turn(session: Session, name: str, *, now: datetime, every: timedelta) -> bool:
    """Take the turn at a periodic task, and return whether this process has it: True for one process per `every`. A
    clock that was set back delays nothing."""
    changed = session.execute(
        "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        " WHERE settings.value <= $3 OR settings.value > $2",
        *(name, now.isoformat(timespec="microseconds"), (now - every).isoformat(timespec="microseconds")),
    )
    return changed > 0


def restored_until(session: Session) -> datetime | None:
    """The time (UTC) of the last committed transaction that a restored PostgreSQL has read from its WAL; None where it
    has read none."""
    moment = session.rows("SELECT pg_last_xact_replay_timestamp() AT TIME ZONE 'UTC' AS moment")[0]["moment"]
    assert moment is None or isinstance(moment, datetime)
    return moment


def clock(session: Session) -> datetime | None:
    """The present time on the database's machine, in UTC; None where that is this machine."""
    if not session.is_shared:
        return None
    moment = session.rows("SELECT clock_timestamp() AT TIME ZONE 'UTC' AS moment")[0]["moment"]
    assert isinstance(moment, datetime)
    return moment
