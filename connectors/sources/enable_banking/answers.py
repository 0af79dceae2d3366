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


def members(found: object) -> Json:
    """The value as an object; an empty one where it is null. Raises ProviderUnavailable."""
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise damage("not an object")
    return found


def objects(found: object) -> list[dict[str, Any]]:
    """The value as a list of objects. Raises ProviderUnavailable."""
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise damage("not a list of objects")
    return found


def text(found: object) -> str | None:
    """The value as a text or None. Raises ProviderUnavailable."""
    if found is not None and not isinstance(found, str):
        raise damage("not a text")
    return found


def texts(found: object) -> list[str]:
    """The value as a list of texts; an empty one where it is null. Raises ProviderUnavailable."""
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise damage("not a list of texts")
    return found


def amount(found: object) -> Decimal:
    """The value as an exact amount, given as a text or number. Raises ProviderUnavailable."""
    try:
        return parse_amount(str(found))
    except ValueError as error:
        raise damage("no amount") from error


def day(found: object) -> date | None:
    """The value as a calendar day or None. Raises ProviderUnavailable."""
    try:
        return parse_date(told) if (told := text(found)) else None
    except ValueError as error:
        raise damage("no day") from error


def moment(found: object) -> datetime | None:
    """The value as a time in UTC without a zone; None for an unreadable one, because nothing depends on it."""
    try:
        at = datetime.fromisoformat(str(found))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
