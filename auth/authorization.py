"""The authorization request (RFC 6749 section 4.1.1): an ordered tuple of checks, one rule each.

Before client and redirect URI are known to be good, nothing may be sent anywhere: the first group of checks raises
`Untrusted`, which is shown as a page. The second group raises the errors that are sent back to the client.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from auth import authorization_details, pkce
from auth.apps import redirects
from auth.apps.clients import PAGE
from auth.authorization_details import AccountInformation
from auth.errors import (
    InvalidAuthorizationDetails,
    InvalidRequest,
    InvalidScope,
    InvalidTarget,
    OAuthError,
    UnsupportedResponseType,
)
from auth.policy import Resource
from auth.scopes import SCOPES, TICKED_SCOPES, scope_set, scope_text
from storage.oauth.clients import Client

STATE_LENGTH_MAX = 4096
SENT_ONCE = (
    "response_type",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "response_mode",
    "prompt",
    "authorization_details",
)


class Untrusted(InvalidRequest):
    """An authorization request that must not be answered with a redirect, because its client or redirect URI cannot be
    trusted; `mistake` names the text of the page that is shown instead."""

    def __init__(self, mistake: str, description: str) -> None:
        super().__init__(description)
        self.mistake = mistake


class AuthorizationRequest(Struct, frozen=True, kw_only=True):
    """The parameters of an authorization request as they came in, without empty ones, and the client (None: unknown)
    and resource that they name. `writing_clients` are the ids of the apps that may ask for TICKED_SCOPES.

    "Parameters sent without a value MUST be treated as if they were omitted from the request. The authorization server
    MUST ignore unrecognized request parameters." RFC 6749 section 3.1
    """

    parameters: Mapping[str, tuple[str, ...]]
    client: Client | None
    resource: Resource | None  # the resource (of ours) that the client asks for; None: not one of ours
    address: str = ""  # of that resource
    writing_clients: frozenset[str] = frozenset()

    def get(self, name: str) -> str | None:
        """The first value of a parameter; None where it was not sent."""
        values = self.parameters.get(name)
        return values[0] if values else None

    def is_repeated(self, name: str) -> bool:
        """Whether a parameter was sent more than once."""
        return len(self.parameters.get(name, ())) > 1


Check = Callable[[AuthorizationRequest], None]


def client_is_named_once(asked: AuthorizationRequest) -> None:
    """Raise Untrusted unless client_id was sent exactly once: "client_id REQUIRED." RFC 6749 section 4.1.1"""
    if asked.is_repeated("client_id") or not asked.get("client_id"):
        raise Untrusted("client", "The link does not say once which app asks.")


def client_is_known(asked: AuthorizationRequest) -> None:
    """Raise Untrusted where no client has this id: "If the request fails due to ... if the client identifier is missing
    or invalid, the authorization server SHOULD inform the resource owner of the error and MUST NOT automatically
    redirect." RFC 6749 section 4.1.2.1"""
    if asked.client is None:
        raise Untrusted("client", "The app is not registered here, or its registration has expired.")


def redirect_uri_is_sent_once(asked: AuthorizationRequest) -> None:
    """Raise Untrusted unless redirect_uri was sent exactly once: "Request and response parameters MUST NOT be included
    more than once." RFC 6749 section 3.1; a request without one is refused, too."""
    if asked.is_repeated("redirect_uri") or not asked.get("redirect_uri"):
        raise Untrusted("redirect_uri", "The link does not say once where to go back to.")


def redirect_uri_is_registered(asked: AuthorizationRequest) -> None:
    """Raise Untrusted unless the client registered the redirect URI; the port of a loopback address may differ, except
    for clients of this server itself. "The authorization server MUST compare the two URIs using simple string
    comparison." RFC 6749 section 3.1.2.3"""
    assert asked.client is not None
    uri, registered = asked.get("redirect_uri") or "", asked.client.redirect_uris
    # Our own pages are served at one port: a program that listens at another port is not ours
    is_exact = asked.client.registered_by == "builtin"
    if not (uri in registered if is_exact else redirects.is_registered(uri, registered)):
        raise Untrusted("redirect_uri", "The address to go back to is not one that the app registered.")


def nothing_is_repeated(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest for a parameter of SENT_ONCE that was sent more than once: "Request and response parameters
    MUST NOT be included more than once." RFC 6749 section 3.1; only `resource` may be ("Multiple 'resource' parameters
    MAY be used", RFC 8707 section 2)."""
    for name in SENT_ONCE:
        if asked.is_repeated(name):
            raise InvalidRequest(f"{name} must not be sent more than once.")


def state_can_be_kept(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest for a state that is too long or cannot be stored, because the answer has to repeat it: "The
    exact value received from the client." RFC 6749 section 4.1.2"""
    state = asked.get("state") or ""
    if len(state) > STATE_LENGTH_MAX or "\0" in state:
        raise InvalidRequest(f"state must have at most {STATE_LENGTH_MAX} characters and no NUL.")


def response_type_is_sent(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest without response_type: "If an authorization request is missing the 'response_type'
    parameter, or if the response type is not understood, the authorization server MUST return an error response." RFC
    6749 section 3.1.1"""
    if not asked.get("response_type"):
        raise InvalidRequest("response_type is missing.")


def response_type_is_code(asked: AuthorizationRequest) -> None:
    """Raise UnsupportedResponseType for another response_type than code: "unsupported_response_type The authorization
    server does not support obtaining an authorization code using this method." RFC 6749 section 4.1.2.1"""
    if asked.get("response_type") != "code":
        raise UnsupportedResponseType()


def response_mode_is_query(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest for another response_mode than query, the only one that the metadata announce
    (response_modes_supported, RFC 8414 section 2); it may be left out."""
    if asked.get("response_mode") not in (None, "query"):
        raise InvalidRequest("response_mode must be query.")


def challenge_is_sent(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest without code_challenge: "If the server requires Proof Key for Code Exchange (PKCE) by OAuth
    public clients and the client does not send the 'code challenge' in the request, the authorization endpoint MUST
    return the authorization error response with the 'error' value set to 'invalid_request'." RFC 7636 section 4.4.1"""
    if not asked.get("code_challenge"):
        raise InvalidRequest("code_challenge is missing: PKCE with S256 is needed.")


def challenge_method_is_s256(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest unless code_challenge_method is S256: "code_challenge_method OPTIONAL, defaults to 'plain'
    if not present in the request" RFC 7636 section 4.3; plain is not served (interface 5), so the method must be
    sent."""
    if asked.get("code_challenge_method") != "S256":
        raise InvalidRequest("code_challenge_method must be S256.")


def challenge_is_well_formed(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest for a code_challenge that is not 43 characters of base64url: "code_challenge =
    BASE64URL-ENCODE(SHA256(ASCII(code_verifier)))" RFC 7636 section 4.2"""
    if not pkce.is_challenge(asked.get("code_challenge") or ""):
        raise InvalidRequest("code_challenge must be 43 characters of base64url.")


def scope_is_known(asked: AuthorizationRequest) -> None:
    """Raise InvalidScope for a scope parameter without any scope of ours; it may be left out. "invalid_scope The
    requested scope is invalid, unknown, or malformed." RFC 6749 section 4.1.2.1"""
    scope = asked.get("scope")
    if scope is not None and scope_set(scope) is None:
        raise InvalidScope()


def scope_is_for_this_client(asked: AuthorizationRequest) -> None:
    """Raise InvalidScope where a client asks for one of TICKED_SCOPES that is neither our own page nor an app that the
    operator has named (decision 83): "invalid_scope The requested scope is invalid, unknown, or malformed." RFC 6749
    section 4.1.2.1"""
    assert asked.client is not None
    wanted = scope_set(asked.get("scope") or "") or frozenset()
    if not wanted.isdisjoint(TICKED_SCOPES) and asked.client.id not in {PAGE, *asked.writing_clients}:
        raise InvalidScope("Scopes that change something or read annotations are for apps that the operator has named.")


def prompt_none_stands_alone(asked: AuthorizationRequest) -> None:
    """Raise InvalidRequest for `prompt` with `none` beside another value: "If this parameter contains none with any
    other value, an error is returned." OpenID Connect Core 1.0 section 3.1.2.1; values other than `none` ask for pages
    that are shown anyway, and are ignored."""
    words = (asked.get("prompt") or "").split(" ")
    if "none" in words and len(words) > 1:
        raise InvalidRequest("prompt must not hold none beside another value.")


def resource_is_ours(asked: AuthorizationRequest) -> None:
    """Raise InvalidTarget for a resource that is not one of ours: "invalid_target The requested resource is invalid,
    missing, unknown, or malformed." RFC 8707 section 2"""
    if asked.resource is None:
        raise InvalidTarget()


def details_are_understood(asked: AuthorizationRequest) -> None:
    """Raise InvalidAuthorizationDetails for details that cannot be used: "The AS MUST abort processing and respond with
    an error invalid_authorization_details to the client" RFC 9396 section 5; and for any from our own page, which asks
    nobody for consent."""
    assert asked.client is not None
    if requested_details(asked) is not None and asked.client.id == PAGE:
        raise InvalidAuthorizationDetails("The page of this server sees everything.")


TRUST_CHECKS: tuple[Check, ...] = (
    client_is_named_once,
    client_is_known,
    redirect_uri_is_sent_once,
    redirect_uri_is_registered,
)
REQUEST_CHECKS: tuple[Check, ...] = (
    state_can_be_kept,
    nothing_is_repeated,
    response_type_is_sent,
    response_type_is_code,
    response_mode_is_query,
    challenge_is_sent,
    challenge_method_is_s256,
    challenge_is_well_formed,
    scope_is_known,
    scope_is_for_this_client,
    prompt_none_stands_alone,
    resource_is_ours,
    details_are_understood,
)


def trusted_redirect(asked: AuthorizationRequest) -> str:
    """The redirect URI, after all TRUST_CHECKS have passed. Raises Untrusted."""
    for check in TRUST_CHECKS:
        check(asked)
    return asked.get("redirect_uri") or ""


def first_fault(asked: AuthorizationRequest) -> OAuthError | None:
    """The error of the first of REQUEST_CHECKS that fails, in their order; None where all pass. To be asked once the
    redirect URI is trusted."""
    for check in REQUEST_CHECKS:
        try:
            check(asked)
        except OAuthError as error:
            return error
    return None


def requested_scope(asked: AuthorizationRequest) -> str:
    """The requested scopes, separated by spaces in the order of ALL_SCOPES. Without a scope parameter, they are those
    of the authorization details, else the three of SCOPES (oauth.md 2.4), which the consent page shows. Raises
    InvalidAuthorizationDetails."""
    details = requested_details(asked)
    return scope_text(scope_set(asked.get("scope") or "") or (details and details.scopes) or SCOPES)


def requested_details(asked: AuthorizationRequest) -> AccountInformation | None:
    """The checked authorization details of the request; None where it has none. Raises InvalidAuthorizationDetails."""
    text = asked.get("authorization_details")
    if text is None:
        return None
    return authorization_details.parse(text, resource=asked.resource, address=asked.address)


def returned_state(asked: AuthorizationRequest) -> dict[str, str]:
    """The parameter `state` of the answer, exactly as it was sent; empty where it was absent or sent more than once."""
    state = asked.get("state")
    return {"state": state} if state is not None and not asked.is_repeated("state") else {}
