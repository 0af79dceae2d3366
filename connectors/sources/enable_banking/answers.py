"""Values in Enable Banking's answers, each read by its type; any other value makes the answer a damaged one."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from connectors.connector import Json, ProviderUnavailable
from connectors.text import parse_amount, parse_date


def damage(detail: str) -> ProviderUnavailable:
    """The error for a damaged answer; `detail` is for the log."""
    return ProviderUnavailable("Enable Banking sent a damaged answer.", detail=detail)


def members(value: object) -> Json:
    """The value as an object; an empty one where it is null. Raises ProviderUnavailable."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise damage("not an object")
    return value


def objects(value: object) -> list[dict[str, Any]]:
    """The value as a list of objects. Raises ProviderUnavailable."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise damage("not a list of objects")
    return value


def text(value: object) -> str | None:
    """The value as a text or None. Raises ProviderUnavailable."""
    if value is not None and not isinstance(value, str):
        raise damage("not a text")
    return value


def texts(value: object) -> list[str]:
    """The value as a list of texts; an empty one where it is null. Raises ProviderUnavailable."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise damage("not a list of texts")
    return value


def amount(value: object) -> Decimal:
    """The value as an exact amount, given as a text or number. Raises ProviderUnavailable."""
    try:
        return parse_amount(str(value))
    except ValueError as error:
        raise damage("no amount") from error


def day(value: object) -> date | None:
    """The value as a calendar day or None. Raises ProviderUnavailable."""
    try:
        return parse_date(written) if (written := text(value)) else None
    except ValueError as error:
        raise damage("no day") from error


def moment(value: object) -> datetime | None:
    """The value as a time in UTC without a zone; None for an unreadable one, because nothing depends on it."""
    try:
        at = datetime.fromisoformat(str(value))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
