"""Refresh tokens: each is used once, against an ordered tuple of checks, and answered with its successor; a second use
ends the family (RFC 6749 section 6).

The grace in which a used token is answered with its successor once more is the setting `refresh_reuse_seconds`
(handlers/settings.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Struct

from analytics.records import Discreet
from auth import authorization_details, lifetimes
from auth.errors import InvalidGrant, InvalidScope
from auth.instants import Now
from auth.policy import Policy, Resource
from auth.scopes import scope_set, scope_text
from auth.secret_text import keyed_hash, new_secret, stored_hash
from auth.tokens.access_check import coverage_of
from auth.tokens.access_tokens import AccessTokens
from auth.tokens.grants import Grants, check_resource
from auth.tokens.one_time import OneTime, Reused
from storage import accounts
from storage.database import Session
from storage.oauth import clients, tokens
from storage.oauth.grants import Grant
from storage.oauth.tokens import RefreshToken


class TokenAnswer(Discreet, frozen=True, kw_only=True):
    """The content of an answer of /oauth/token (decision 33); `expires_in` in seconds."""

    access_token: str
    expires_in: int
    refresh_token: str | None
    scope: str
    authorization_details: list[dict[str, Any]] | None = None  # for an app that asked with authorization_details


class PresentedToken(Struct, frozen=True, kw_only=True):
    """A known refresh token of a live grant together with what the client sent to use it, and the time. `is_in_grace`:
    it was used, but so recently that it may be answered once more."""

    token: RefreshToken
    grant: Grant
    client_id: str
    scope: str | None
    resource: Resource | None
    is_in_grace: bool
    now: datetime


def client_is_the_same(presented: PresentedToken) -> None:
    """Raise InvalidGrant for another client: "the refresh token is bound to the client to which it was issued" RFC 6749
    section 6"""
    if presented.grant.client_id != presented.client_id:
        raise InvalidGrant(reason="of another client")


def resource_is_the_same(presented: PresentedToken) -> None:
    """Raise InvalidTarget where the app names another resource than the grant's (RFC 8707 section 2.2); it may name
    none."""
    check_resource(presented.grant, presented.resource)


def token_is_unused(presented: PresentedToken) -> None:
    """Raise Reused, which ends the grant, for a used token whose grace is over."""
    if presented.token.used_at is not None and not presented.is_in_grace:
        raise Reused(presented.grant.id)


def token_is_in_time(presented: PresentedToken) -> None:
    """Raise InvalidGrant for an unused token that has expired. A used one has a successor, with which it may be
    answered once more within its grace, even if it has expired meanwhile."""
    if presented.token.used_at is None and presented.now >= presented.token.expires_at:
        raise InvalidGrant(reason="expired")


def scope_is_not_wider(presented: PresentedToken) -> None:
    """Raise InvalidScope for a scope of ours that is not granted, or none of ours: "The requested scope MUST NOT
    include any scope not originally granted by the resource owner, and if omitted is treated as equal to the scope
    originally granted by the resource owner." RFC 6749 section 6"""
    if presented.scope is None:
        return
    wanted = scope_set(presented.scope)
    if wanted is None or not wanted <= frozenset(presented.grant.scope.split()):
        raise InvalidScope("scope must not go beyond what the user allowed.")


CHECKS: tuple[Callable[[PresentedToken], None], ...] = (
    client_is_the_same,
    resource_is_the_same,
    token_is_unused,
    token_is_in_time,
    scope_is_not_wider,
)


@dataclass(eq=False, repr=False)
class RefreshTokens:
    """Issues the refresh tokens of grants, and exchanges each of them once."""

    _access_tokens: AccessTokens
    _grants: Grants
    _one_time: OneTime
    _policy: Policy
    _successor_key: bytes
    _now: Now

    def first(self, session: Session, grant: Grant) -> TokenAnswer:
        """Issue the first access and refresh token of a grant, inside the caller's transaction."""
        return self._issue_next(session, grant, new_secret(), scope=grant.scope)

    def alone(self, grant: Grant) -> TokenAnswer:
        """Issue an access token without a refresh token, for a grant of our own page, which asks for a new grant
        instead."""
        return self._answer(grant, None, scope=grant.scope)

    def refresh(
        self, refresh_token: str, *, client_id: str, scope: str | None, resource: Resource | None = None
    ) -> TokenAnswer:
        """Exchange a refresh token for the next access and refresh token of its grant. `resource`, if the app names
        one, must be the grant's; `scope` narrows the access token alone. A token used again within the grace gets the
        same successor; later, its grant ends. Raises InvalidGrant, InvalidScope, InvalidTarget."""
        token_hash = stored_hash(refresh_token)
        successor = keyed_hash(self._successor_key, refresh_token)

        def work(session: Session) -> TokenAnswer:
            row = tokens.find_refresh(session, token_hash)
            if row is None:
                raise InvalidGrant(reason="unknown")
            now, grant = self._now(), self._grants.find_live(session, row.grant_id)
            presented = PresentedToken(
                token=row,
                grant=grant,
                client_id=client_id,
                scope=scope,
                resource=resource,
                is_in_grace=self._is_in_grace(session, row, successor),
                now=now,
            )
            for check in CHECKS:
                check(presented)
            narrowed = grant.scope if scope is None else scope_text(scope.split())
            if not presented.is_in_grace:
                if tokens.use_refresh(session, token_hash, now=now):
                    clients.mark_used(session, client_id, now=now, unless_since=now - lifetimes.CLIENT_USE_NOTED_EVERY)
                    return self._issue_next(session, grant, successor, scope=narrowed)
                overtaken = tokens.find_refresh(session, token_hash)  # another process used it this moment
                if overtaken is None or not self._is_in_grace(session, overtaken, successor):
                    raise Reused(grant.id)
            return self._answer(grant, successor, scope=narrowed, details=self._details(session, grant, narrowed))

        return self._one_time.exchange(token_hash, work, kind="refresh token", client_id=client_id)

    def _is_in_grace(self, session: Session, row: RefreshToken, successor: str) -> bool:
        """Whether a token was used and may be answered with its successor once more: it was used within the grace, and
        the successor is unused.

        Without a grace, any stored use forbids it. With one, a clock that was set back in between must not lengthen the
        grace, so the distance counts in both directions.
        """
        grace = self._policy.refresh_reuse_seconds
        if row.used_at is None or not grace or abs(self._now() - row.used_at) >= grace:
            return False
        next_row = tokens.find_refresh(session, stored_hash(successor))
        return next_row is not None and next_row.used_at is None

    def _issue_next(self, session: Session, grant: Grant, refresh_token: str, *, scope: str) -> TokenAnswer:
        now = self._now()
        tokens.add_refresh(
            session,
            RefreshToken(
                token_hash=stored_hash(refresh_token),
                grant_id=grant.id,
                issued_at=now,
                expires_at=min(now + lifetimes.REFRESH_TOKEN, grant.expires_at),
            ),
        )
        return self._answer(grant, refresh_token, scope=scope, details=self._details(session, grant, scope))

    def _details(self, session: Session, grant: Grant, scope: str) -> list[dict[str, Any]] | None:
        """Return the authorization details for the token answer: the actions that `scope` allows, and the accounts that
        the grant covers now; None where the app did not ask by such details. "the AS MUST also return the
        authorization_details as granted by the resource owner and assigned to the respective access token." RFC 9396
        section 7"""
        if not grant.has_details:
            return None
        coverage = coverage_of(grant.terms)
        owned = [account.id for account in accounts.of_user(session, grant.user_id)]
        return authorization_details.details_of_grant(
            grant.terms,
            scope=scope,
            account_ids=[each for each in owned if coverage is None or coverage.covers(each)],
            resource=grant.resource,
            address=self._policy.address_of(grant.resource),
        )

    def _answer(
        self, grant: Grant, refresh_token: str | None, *, scope: str, details: list[dict[str, Any]] | None = None
    ) -> TokenAnswer:
        now = self._now()
        lifetime = min(lifetimes.ACCESS_TOKEN, grant.expires_at - now)
        access_token = self._access_tokens.issue(
            user_id=grant.user_id,
            client_id=grant.client_id,
            scopes=scope.split(),
            grant_id=grant.id,
            now=now,
            audience=self._policy.address_of(grant.resource),
            lifetime=lifetime,
        )
        return TokenAnswer(
            access_token=access_token,
            expires_in=int(lifetime.total_seconds()),
            refresh_token=refresh_token,
            scope=scope,
            authorization_details=details,
        )
