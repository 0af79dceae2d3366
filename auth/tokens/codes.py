"""Authorization codes: issued when a user allows access, redeemed once, against an ordered tuple of checks."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from auth import lifetimes, pkce
from auth.apps.clients import DOCUMENTATION, PAGE
from auth.errors import InvalidGrant, InvalidRequest
from auth.instants import Now
from auth.policy import Resource
from auth.secret_text import stored_hash
from auth.tokens.grants import Grants, check_resource
from auth.tokens.one_time import OneTime, Reused
from auth.tokens.refresh_tokens import RefreshTokens, TokenAnswer
from storage.database import Database, Session
from storage.oauth import clients, codes, grants
from storage.oauth.codes import Code
from storage.oauth.grants import EVERYTHING, Grant, Terms
from storage.oauth.pending import PendingRequest


class PresentedCode(Struct, frozen=True, kw_only=True):
    """A known code together with what the client sent to redeem it, and the time."""

    code: Code
    client_id: str
    redirect_uri: str | None
    verifier: str | None
    now: datetime


def client_is_the_same(presented: PresentedCode) -> None:
    """Raise InvalidGrant for another client: "ensure that the authorization code was issued to the authenticated
    confidential client, or if the client is public, ensure that the code was issued to 'client_id' in the request" RFC
    6749 section 4.1.3"""
    if presented.code.client_id != presented.client_id:
        raise InvalidGrant(reason="of another client")


def redirect_uri_is_the_same(presented: PresentedCode) -> None:
    """Raise InvalidGrant for a redirect_uri that differs from that of the authorization request; it may be left out,
    because PKCE binds the code already (OAuth 2.1; oauth.md 2.7)."""
    if presented.redirect_uri is not None and presented.redirect_uri != presented.code.redirect_uri:
        raise InvalidGrant(reason="redirect_uri differs")


def verifier_is_sent(presented: PresentedCode) -> None:
    """Raise InvalidRequest without code_verifier: "code_verifier REQUIRED. Code verifier" RFC 7636 section 4.5"""
    if presented.verifier is None:
        raise InvalidRequest("code_verifier is missing.")


def verifier_fits(presented: PresentedCode) -> None:
    """Raise InvalidGrant unless the verifier's hash is the code's challenge: "If the values are not equal, an error
    response indicating 'invalid_grant' as described in Section 5.2 of [RFC6749] MUST be returned." RFC 7636 section
    4.6"""
    if not pkce.is_proven(presented.verifier or "", presented.code.code_challenge):
        raise InvalidGrant(reason="code_verifier does not fit")


def code_is_unused(presented: PresentedCode) -> None:
    """Raise Reused for a used code, whose grant then ends: "If an authorization code is used more than once, the
    authorization server MUST deny the request and SHOULD revoke (when possible) all tokens previously issued based on
    that authorization code." RFC 6749 section 4.1.2

    After all checks of who presents it: an invalid request must not be able to end a grant (OAuth 2.1 section 7.5.3).
    """
    if presented.code.used_at is not None:
        raise Reused(presented.code.grant_id)


def code_is_in_time(presented: PresentedCode) -> None:
    """Raise InvalidGrant for an expired code: "The authorization code MUST expire shortly after it is issued to
    mitigate the risk of leaks." RFC 6749 section 4.1.2"""
    if presented.now >= presented.code.expires_at:
        raise InvalidGrant(reason="expired")


CHECKS: tuple[Callable[[PresentedCode], None], ...] = (
    client_is_the_same,
    redirect_uri_is_the_same,
    verifier_is_sent,
    verifier_fits,
    code_is_unused,
    code_is_in_time,
)


class AuthorizationCodes:
    """Issues authorization codes, each with a new grant, and redeems each of them once."""

    def __init__(
        self, database: Database, grants: Grants, refresh_tokens: RefreshTokens, one_time: OneTime, now: Now
    ) -> None:
        self._database = database
        self._grants = grants
        self._refresh_tokens = refresh_tokens
        self._one_time = one_time
        self._now = now

    def issue(
        self,
        session: Session,
        request: PendingRequest,
        code: str,
        *,
        user_id: str,
        scope: str,
        terms: Terms = EVERYTHING,
        lifetime: timedelta | None = None,
    ) -> str:
        """Make a grant of what a user has just allowed, and return `code`, which opens it for 60 seconds; inside the
        caller's transaction. A grant of our own page ends with the browser session. Also notes that the client was
        used."""
        grant = self._grants.add(
            session,
            user_id=user_id,
            client_id=request.client_id,
            scope=scope,
            resource=request.resource,
            session_hash=request.session_hash if request.client_id == PAGE else None,
            terms=terms,
            lifetime=lifetime,
            has_details=request.details is not None,
        )
        now = self._now()
        codes.add(
            session,
            Code(
                code_hash=stored_hash(code),
                grant_id=grant.id,
                client_id=request.client_id,
                redirect_uri=request.redirect_uri,
                code_challenge=request.code_challenge,
                expires_at=now + lifetimes.CODE,
            ),
        )
        clients.mark_used(session, request.client_id, now=now, unless_since=now)
        return code

    def is_open(self, code: str) -> bool:
        """Whether the code was issued, is not used, and can still be redeemed."""
        row = codes.find(self._database, stored_hash(code))
        return row is not None and row.used_at is None and self._now() < row.expires_at

    def redeem(
        self,
        code: str,
        *,
        client_id: str,
        redirect_uri: str | None,
        verifier: str | None,
        resource: Resource | None = None,
    ) -> TokenAnswer:
        """Exchange a code for the first tokens of its grant (RFC 6749 section 4.1.3). `resource`, if the app names one,
        must be the grant's. Our own page gets no refresh token; the documentation page's earlier grants of the same
        user end. A second use ends the code's grant. Raises InvalidGrant, InvalidRequest, InvalidTarget."""
        code_hash = stored_hash(code)

        def work(session: Session) -> tuple[Grant, TokenAnswer]:
            row, now = codes.find(session, code_hash), self._now()
            if row is None:
                raise InvalidGrant(reason="unknown")
            presented = PresentedCode(
                code=row, client_id=client_id, redirect_uri=redirect_uri, verifier=verifier, now=now
            )
            for check in CHECKS:
                check(presented)
            grant = self._grants.find_live(session, row.grant_id)
            check_resource(grant, resource)
            if not codes.use(session, code_hash, now=now):
                raise Reused(row.grant_id)
            grants.redeem(session, grant.id, now=now)
            # The page asks anew while the browser is signed in; a refresh token in a script could only be stolen
            is_page = grant.client_id == PAGE
            return grant, self._refresh_tokens.alone(grant) if is_page else self._refresh_tokens.first(session, grant)

        grant, answer = self._one_time.exchange(code_hash, work, kind="code", client_id=client_id)
        if client_id == DOCUMENTATION:
            # Every tab signs in anew, and closed ones leave their grants behind: for each person, only the last one is
            # counted
            self._grants.revoke_all(
                because="ended: signed in anew", user_id=grant.user_id, client_id=client_id, before=grant.created_at
            )
        return answer
