"""The token and revocation requests (RFC 6749 section 3.2, RFC 7009 section 2.1): ordered tuples of checks, one rule
each. What a code or token itself must fulfil is in auth/tokens/codes.py and auth/tokens/refresh_tokens.py."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from auth.errors import InvalidAuthorizationDetails, InvalidClient, InvalidRequest, InvalidTarget, UnsupportedGrantType
from auth.policy import Resource
from storage.oauth.clients import Client

GRANT_TYPES = ("authorization_code", "refresh_token")


class PostedForm(Struct, frozen=True, kw_only=True):
    """A form that a client has posted; `fields` have each name once and no empty values. `client` is that of client_id,
    None for an unknown one.

    "Parameters sent without a value MUST be treated as if they were omitted from the request. The authorization server
    MUST ignore unrecognized request parameters. Request and response parameters MUST NOT be included more than once."
    RFC 6749 section 3.2
    """

    fields: Mapping[str, str]
    has_query: bool
    authorization_scheme: str  # of the Authorization header, in lower case; empty without one
    client: Client | None
    resource: Resource | None  # the one that is named, the data interface if none is; None: not one of ours


Check = Callable[[PostedForm], None]


def nothing_is_in_the_address(sent: PostedForm) -> None:
    """Raise InvalidRequest for an address with a query: "The parameters can only be transmitted in the request-body and
    MUST NOT be included in the request URI." RFC 6749 section 2.3.1"""
    if sent.has_query:
        raise InvalidRequest("Send parameters in the body, not in the address.")


def grant_type_is_sent(sent: PostedForm) -> None:
    """Raise InvalidRequest without grant_type: "grant_type REQUIRED." RFC 6749 section 4.1.3"""
    _check_sent(sent, "grant_type")


def grant_type_is_known(sent: PostedForm) -> None:
    """Raise UnsupportedGrantType for one that is not in GRANT_TYPES: "unsupported_grant_type The authorization grant
    type is not supported by the authorization server." RFC 6749 section 5.2"""
    if sent.fields["grant_type"] not in GRANT_TYPES:
        raise UnsupportedGrantType()


def no_credentials_are_in_the_header(sent: PostedForm) -> None:
    """Raise InvalidClient for an Authorization header of any scheme, since clients have no credentials: "If the client
    attempted to authenticate via the 'Authorization' request header field, the authorization server MUST respond with
    an HTTP 401 (Unauthorized) status code and include the 'WWW-Authenticate' response header field matching the
    authentication scheme used by the client." RFC 6749 section 5.2"""
    scheme = sent.authorization_scheme
    if scheme:
        challenge = scheme.capitalize() if scheme in ("basic", "bearer") else "Basic"
        raise InvalidClient(
            "Clients of this server are public: send client_id in the body and no credentials.",
            headers={"WWW-Authenticate": f'{challenge} realm="oauth"'},
        )


def no_credentials_are_in_the_body(sent: PostedForm) -> None:
    """Raise InvalidClient for client_secret or client_assertion: "The authorization server MUST NOT issue client
    passwords or other client credentials to native application or user-agent-based application clients" RFC 6749
    section 10.1; our clients are all public, so whoever sends one is not one of them."""
    if "client_secret" in sent.fields or "client_assertion" in sent.fields:
        raise InvalidClient("Clients of this server are public: send client_id alone.")


def client_is_named(sent: PostedForm) -> None:
    """Raise InvalidRequest without client_id: "client_id REQUIRED, if the client is not authenticating with the
    authorization server as described in Section 3.2.1." RFC 6749 section 4.1.3"""
    _check_sent(sent, "client_id")


def client_is_known(sent: PostedForm) -> None:
    """Raise InvalidClient for a client_id that is not registered: "invalid_client Client authentication failed (e.g.,
    unknown client, no client authentication included, or unsupported authentication method)." RFC 6749 section 5.2"""
    if sent.client is None:
        raise InvalidClient()


def resource_is_ours(sent: PostedForm) -> None:
    """Raise InvalidTarget for a resource that is not one of ours: "invalid_target The requested resource is invalid,
    missing, unknown, or malformed." RFC 8707 section 2"""
    if sent.resource is None:
        raise InvalidTarget()


def details_were_asked_for_before(sent: PostedForm) -> None:
    """Raise InvalidAuthorizationDetails for authorization_details, which belong in the authorization request: "the AS
    refuses the request with the error code invalid_authorization_details" RFC 9396 section 6. Only scopes can divide
    among several tokens what the user allowed."""
    if "authorization_details" in sent.fields:
        raise InvalidAuthorizationDetails("Send authorization_details with the authorization request.")


def code_or_refresh_token_is_sent(sent: PostedForm) -> None:
    """Raise InvalidRequest without the code or the refresh token, as grant_type asks: "code REQUIRED. The authorization
    code received from the authorization server." RFC 6749 section 4.1.3 "refresh_token REQUIRED. The refresh token
    issued to the client." RFC 6749 section 6"""
    _check_sent(sent, "code" if sent.fields["grant_type"] == "authorization_code" else "refresh_token")


def token_is_sent(sent: PostedForm) -> None:
    """Raise InvalidRequest without a token to revoke: "token REQUIRED. The token that the client wants to get revoked."
    RFC 7009 section 2.1"""
    _check_sent(sent, "token")


CLIENT_CHECKS: tuple[Check, ...] = (
    no_credentials_are_in_the_header,
    no_credentials_are_in_the_body,
    client_is_named,
    client_is_known,
)
TOKEN_CHECKS: tuple[Check, ...] = (
    nothing_is_in_the_address,
    grant_type_is_sent,
    grant_type_is_known,
    *CLIENT_CHECKS,
    resource_is_ours,
    details_were_asked_for_before,
    code_or_refresh_token_is_sent,
)
REVOCATION_CHECKS: tuple[Check, ...] = (nothing_is_in_the_address, token_is_sent, *CLIENT_CHECKS)


def checked_fields(sent: PostedForm, checks: tuple[Check, ...]) -> Mapping[str, str]:
    """The fields, after all checks have passed, in their order. Raises the OAuthError of the first check that fails."""
    for check in checks:
        check(sent)
    return sent.fields


def _check_sent(sent: PostedForm, name: str) -> None:
    if name not in sent.fields:
        raise InvalidRequest(f"{name} is missing.")
