"""One class per error of OAuth: its docstring is the description, `code` the RFC's error code, `status` that of the
answer."""

from typing import ClassVar


class OAuthError(Exception):
    """The request cannot be served."""

    code: ClassVar[str] = "invalid_request"
    status: ClassVar[int] = 400

    def __init__(self, description: str | None = None, *, headers: dict[str, str] | None = None) -> None:
        self.description = description or self.__class__.__doc__ or self.code
        self.headers = headers or {}
        super().__init__(self.description)


class InvalidRequest(OAuthError):
    """The request is malformed."""


class InvalidClient(OAuthError):
    """The client is unknown."""

    code = "invalid_client"
    status = 401


class InvalidGrant(OAuthError):
    """The code or refresh token is not valid."""

    code = "invalid_grant"

    def __init__(self, *, reason: str = "") -> None:
        """`reason` is for the log only: unknown, expired, foreign and reused look the same to the caller."""
        super().__init__()
        self.reason = reason


class LoginRequired(OAuthError):
    """Nobody is signed in with this browser, and prompt=none forbids asking."""

    code = "login_required"  # OpenID Connect Core 1.0 section 3.1.2.6


class ConsentRequired(OAuthError):
    """The user has to be asked, and prompt=none forbids asking."""

    code = "consent_required"  # OpenID Connect Core 1.0 section 3.1.2.6


class UnsupportedGrantType(OAuthError):
    """grant_type must be authorization_code or refresh_token."""

    code = "unsupported_grant_type"


class UnsupportedResponseType(OAuthError):
    """response_type must be code."""

    code = "unsupported_response_type"


class InvalidScope(OAuthError):
    """scope must name scopes that this client may have: read:accounts, read:transactions, read:cashflow."""

    code = "invalid_scope"


class InvalidTarget(OAuthError):
    """resource must be the address of this service's data interface, or that of its interface for assistants, and the
    one that the user allowed."""

    code = "invalid_target"


class InvalidAuthorizationDetails(OAuthError):
    """authorization_details must be a list of one object: its type account_information, and of actions, locations,
    accounts, laterAccounts, fullNumbers and lastsDays what this server describes."""

    code = "invalid_authorization_details"  # RFC 9396 section 5


class AccessDenied(OAuthError):
    """The user did not allow access."""

    code = "access_denied"


class InvalidRedirectUri(OAuthError):
    """A redirect URI cannot be accepted."""

    code = "invalid_redirect_uri"


class InvalidClientMetadata(OAuthError):
    """The client's description cannot be accepted."""

    code = "invalid_client_metadata"


class RegistrationClosed(OAuthError):
    """This server does not register clients. Ask its operator."""

    code = "access_denied"
    status = 403


class RegistrationTokenWrong(OAuthError):
    """Registration needs the initial access token of this server as a bearer token."""

    code = "invalid_token"
    status = 401


class TemporarilyUnavailable(OAuthError):
    """Too many requests. Try again later."""

    code = "temporarily_unavailable"
    status = 429

    def __init__(self, retry_after: int, description: str | None = None) -> None:
        super().__init__(description, headers={"Retry-After": str(retry_after)})
        self.retry_after = retry_after


class InvalidToken(Exception):
    """The access token is missing, malformed, forged, expired, revoked or for another resource; its message, which says
    which, is for the log only."""
