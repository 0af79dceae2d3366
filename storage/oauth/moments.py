"""Moments between the rules, which compare aware ones, and the store, whose TIMESTAMP has no zone and is UTC."""

from datetime import UTC, datetime

from storage.database import Row


def in_utc(moment: datetime | None) -> datetime | None:
    """As the store keeps it."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment is not None and moment.tzinfo else moment


def aware(moment: datetime) -> datetime:
    """As the rules compare it."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def with_moments(row: Row, *names: str) -> Row:
    """The row, these of its columns aware where they are set."""
    return {**row, **{name: aware(row[name]) for name in names if row[name] is not None}}
