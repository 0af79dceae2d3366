"""The values in Enable Banking's answers, each read as what it has to be: any other one is a damaged answer."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from connectors.connector import Json, ProviderUnavailable
from connectors.text import parse_amount, parse_date


def damaged(detail: str) -> ProviderUnavailable:
    """What an answer is refused with; `detail` is for the log."""
    return ProviderUnavailable("Enable Banking sent a damaged answer.", detail=detail)


def members(found: object) -> Json:
    """An object; an empty one where nothing is told."""
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise damaged("not an object")
    return found


def objects(found: object) -> list[dict[str, Any]]:
    """A list of objects."""
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise damaged("not a list of objects")
    return found


def text(found: object) -> str | None:
    """A text, or nothing."""
    if found is not None and not isinstance(found, str):
        raise damaged("not a text")
    return found


def texts(found: object) -> list[str]:
    """A list of texts; an empty one where nothing is told."""
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise damaged("not a list of texts")
    return found


def amount(found: object) -> Decimal:
    """An exact amount, as a text or as a number."""
    try:
        return parse_amount(str(found))
    except ValueError as error:
        raise damaged("no amount") from error


def day(found: object) -> date | None:
    """A calendar day, or nothing."""
    try:
        return parse_date(told) if (told := text(found)) else None
    except ValueError as error:
        raise damaged("no day") from error


def moment(found: object) -> datetime | None:
    """A point in time, in UTC without zone; None for what is none, for nothing hangs on it."""
    try:
        at = datetime.fromisoformat(str(found))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
