"""The few things a store remembers of itself, by name."""

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
