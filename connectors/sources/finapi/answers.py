"""What finAPI's answers say of a bank connection and its accounts."""

from datetime import UTC, datetime
from typing import Any

from connectors.connector import Json, ProviderUnavailable


def objects_of(answer: Json, name: str) -> list[dict[str, Any]]:
    """The list of objects under this name. Raises ProviderUnavailable where there is none."""
    value = answer.get(name)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ProviderUnavailable("finAPI sent a damaged answer.", detail=f"no {name}")
    return value


def object_of(answer: Json, name: str) -> dict[str, Any]:
    """The object under this name, empty where there is none."""
    value = answer.get(name)
    return value if isinstance(value, dict) else {}


def consent_end(bank_connection: Json) -> datetime | None:
    """The earliest end of the bank's consents, in UTC without a zone; finAPI's times without a zone are UTC. None where
    no end is stated."""
    ends = [object_of(each, "aisConsent").get("expiresAt") for each in objects_of(bank_connection, "interfaces")]
    try:
        moments = [datetime.fromisoformat(str(each).replace(" ", "T")) for each in ends if each]
    except ValueError as error:
        raise ProviderUnavailable("finAPI sent a damaged answer.", detail="expiresAt is no moment") from error
    plain = [each.astimezone(UTC).replace(tzinfo=None) if each.tzinfo else each for each in moments]
    return min(plain, default=None)


def needs_person(bank_connection: Json) -> bool:
    """Whether the bank wants to see the person before it is asked again."""
    return any(each.get("userActionRequired") is True for each in objects_of(bank_connection, "interfaces"))


def was_not_refreshed(account: Json) -> bool:
    """Whether the last update has left this account out."""
    return any(each.get("status") == "DOWNLOAD_FAILED" for each in objects_of(account, "interfaces"))
