"""The operator's application at Enable Banking: every request is made in its name, with a token that it signs."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt

from connectors.connector import (
    ConsentExpired,
    ConsentRevoked,
    Json,
    Misconfigured,
    Person,
    ProviderUnavailable,
    RateLimited,
    SourceError,
    UserActionRequired,
)
from connectors.outgoing_http import Provider, ProviderAnswer

TOKEN_LIFETIME = timedelta(hours=1)


class WrongPeriod(ProviderUnavailable):
    """The bank reports nothing for so short a time."""


class NotAccessible(SourceError):
    """The bank does not give access to this account."""


class RequestRefused(ProviderUnavailable):
    """The bank could not be asked through Enable Banking."""


class Application:
    """Sends requests to Enable Banking. Each answer is a JSON object; a refusal is raised as the `SourceError` that it
    means."""

    def __init__(self, address: str, *, id: str, key_file: Path | None) -> None:
        """Prepare requests. `key_file` has the private key whose public key the operator has given to Enable
        Banking."""
        self._provider = Provider(address)
        self._id = id
        self._key_file = key_file

    @property
    def is_set_up(self) -> bool:
        """Whether the operator has an application at Enable Banking."""
        return bool(self._id) and self._key_file is not None

    def get(
        self, path: str, parameters: dict[str, str] | None = None, *, now: datetime, person: Person | None = None
    ) -> dict[str, Any]:
        """The answer to a GET; the bank is told of `person`, a user who is present."""
        answer = self._provider.get(path, parameters=parameters, headers={**self._token(now), **_headers(person)})
        return _check_accepted(answer).members()

    def post(self, path: str, document: Json, *, now: datetime) -> dict[str, Any]:
        """The answer to a POST of the document, which is sent only once."""
        return _check_accepted(self._provider.post(path, document=document, headers=self._token(now))).members()

    def delete(self, path: str, *, now: datetime) -> None:
        """Send a DELETE, which ends the session that the path names."""
        _check_accepted(self._provider.delete(path, headers=self._token(now)))

    def _token(self, now: datetime) -> dict[str, str]:
        if not self._id or self._key_file is None:
            raise Misconfigured(
                "Enable Banking is not set up here: the operator sets BANKDATA_ENABLE_BANKING_APPLICATION and"
                " BANKDATA_ENABLE_BANKING_KEY_FILE."
            )
        at = now.replace(tzinfo=UTC)
        claims = {
            "iss": "enablebanking.com",
            "aud": "api.enablebanking.com",
            "iat": int(at.timestamp()),
            "exp": int((at + TOKEN_LIFETIME).timestamp()),
        }
        try:
            token = jwt.encode(claims, self._key_file.read_bytes(), algorithm="RS256", headers={"kid": self._id})
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise Misconfigured(
                "The key file of Enable Banking cannot be used: see BANKDATA_ENABLE_BANKING_KEY_FILE.",
                detail=type(error).__name__,
            ) from error
        return {"Authorization": f"Bearer {token}"}


def _headers(person: Person | None) -> dict[str, str]:
    """The headers about a user who is present: all of them, or none without one."""
    if person is None:
        return {}
    return {
        "Psu-Ip-Address": person.address,
        "Psu-User-Agent": person.user_agent,
        "Psu-Accept": person.accept,
        "Psu-Accept-Language": person.accept_language,
    }


def _check_accepted(answer: ProviderAnswer) -> ProviderAnswer:
    if answer.status >= 400:
        raise _refusal(answer)
    return answer


def _refusal(answer: ProviderAnswer) -> SourceError:
    """The exception that an error code means: https://enablebanking.com/docs/api/reference/#errorcode"""
    code = _error_of(answer)
    detail = f"status {answer.status} {code}".strip()
    match code:
        case "EXPIRED_SESSION":
            return ConsentExpired(detail=detail)
        case "REVOKED_SESSION" | "CLOSED_SESSION" | "SESSION_DOES_NOT_EXIST":
            return ConsentRevoked(detail=detail)
        case "ASPSP_PSU_ACTION_REQUIRED":
            return UserActionRequired(detail=detail)
        case "ASPSP_RATE_LIMIT_EXCEEDED":
            return RateLimited(detail=detail, retry_after=answer.retry_after)
        case "WRONG_TRANSACTIONS_PERIOD":
            return WrongPeriod(detail=detail)
        case "ASPSP_ACCOUNT_NOT_ACCESSIBLE":
            return NotAccessible(detail=detail)
    if answer.status in (401, 402, 403):
        return Misconfigured(
            "Enable Banking refuses this server's application: see to it in their control panel.", detail=detail
        )
    is_of_the_bank = answer.status >= 500 or code.startswith("ASPSP_")
    return (ProviderUnavailable if is_of_the_bank else RequestRefused)(RequestRefused.__doc__, detail=detail)


def _error_of(answer: ProviderAnswer) -> str:
    try:
        return str(answer.members().get("error", ""))[:60]
    except ProviderUnavailable:
        return ""
