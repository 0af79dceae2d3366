"""Moments with a zone, as the rules compare them. The store keeps them in UTC without zone, and takes them with
either."""

from datetime import UTC, datetime

from storage.database import Row


def aware(moment: datetime) -> datetime:
    """The same moment with UTC as its zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def with_moments(row: Row) -> Row:
    """The row, whose moments have UTC as their zone."""
    return {name: aware(value) if isinstance(value, datetime) else value for name, value in row.items()}
