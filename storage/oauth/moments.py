"""Moments as the rules compare them: aware. The store keeps them in UTC without zone, and is asked with either."""

from datetime import UTC, datetime

from storage.database import Row


def aware(moment: datetime) -> datetime:
    """The same moment with its zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def with_moments(row: Row) -> Row:
    """The row with aware moments."""
    return {name: aware(value) if isinstance(value, datetime) else value for name, value in row.items()}
