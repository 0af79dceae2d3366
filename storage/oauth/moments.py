"""Conversion of times between the rules, which compare times with a zone, and the store, whose TIMESTAMP is UTC without
one."""

from datetime import UTC, datetime

from storage.database import Row


def in_utc(moment: datetime | None) -> datetime | None:
    """The time as the store keeps it: in UTC, without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment is not None and moment.tzinfo else moment


def aware(moment: datetime) -> datetime:
    """The time with its zone, as the rules compare it; without one it is UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def with_moments(row: Row, *names: str) -> Row:
    """The row with a zone added to the times in these columns, where they are set."""
    return {**row, **{name: aware(row[name]) for name in names if row[name] is not None}}
