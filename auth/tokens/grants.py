"""Grants: what users allowed apps; all tokens of a grant live and end together."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from auth import lifetimes
from auth.errors import InvalidGrant, InvalidTarget, InvalidToken
from auth.instants import Now
from auth.policy import Policy, Resource
from auth.record import Deed
from auth.scopes import READ_TRANSACTIONS, scope_text, scope_without_bookings
from auth.secret_text import new_grant_id, stored_hash
from auth.security_events import Events
from auth.tokens.access_check import AccessCheck
from auth.tokens.access_tokens import AccessTokens
from auth.tokens.terms import narrower, without_account, would_widen
from storage import users
from storage.database import Conflict, Database, Session
from storage.oauth import browsers, grants, tokens
from storage.oauth.grants import EVERYTHING, ConnectedGrant, Grant, Terms
from storage.webhooks import hooks

REVOCATION_TRIES = 8  # with pauses of a quarter of a second in all

T = TypeVar("T")


@dataclass(eq=False)
class Grants:
    """Makes, changes, finds and ends grants: what users allowed apps. A revocation counts from the next request on."""

    _database: Database
    _tokens: AccessTokens
    _access: AccessCheck
    _policy: Policy
    _events: Events
    _now: Now

    def add(
        self,
        session: Session,
        *,
        user_id: str,
        client_id: str,
        scope: str,
        resource: Resource = "data",
        session_hash: str | None = None,
        terms: Terms = EVERYTHING,
        lifetime: timedelta | None = None,
        has_details: bool = False,
    ) -> Grant:
        """Make a grant inside the caller's transaction; it is listed as connected once its first tokens are fetched. It
        lasts for `lifetime`, but for a year (GRANT) at most, which is also the default.

        A grant with the `session_hash` of a browser session ends with the session, and has no `lifetime` of its own.
        Its single access token is all it ever gets, so it only has to last until that token ends.
        """
        now = self._now()
        ends = now + min(lifetime or lifetimes.GRANT, lifetimes.GRANT)
        if session_hash is not None:
            row = browsers.find(session, session_hash)
            lasts = lifetimes.of_session(is_by_provider=row is not None and row.identity_hash is not None)
            session_ends = row.created_at + lasts if row is not None else now
            ends = min(session_ends, now + lifetimes.CODE + lifetimes.ACCESS_TOKEN)
        grant = Grant(
            id=new_grant_id(),
            user_id=user_id,
            client_id=client_id,
            scope=scope,
            created_at=now,
            expires_at=ends,
            resource=resource,
            session_hash=session_hash,
            terms=terms,
            has_details=has_details,
        )
        grants.add(session, grant)
        return grant

    def find_live(self, session: Session, grant_id: str) -> Grant:
        """The grant, if tokens may still be issued for it. Raises InvalidGrant where it, its browser session or its
        user is gone, or it was revoked or has expired."""
        grant = grants.find(session, grant_id)
        if grant is None or grant.revoked_at is not None or self._now() >= grant.expires_at:
            raise InvalidGrant(reason="grant ended")
        if not grants.has_its_session(session, grant):
            raise InvalidGrant(reason="session ended")
        if users.find(session, grant.user_id) is None:
            raise InvalidGrant(reason="user removed")
        return grant

    def session_of(self, grant_id: str) -> str | None:
        """The hash of the browser session with which a grant ends; None for one of an app, and an unknown one."""
        grant = grants.find(self._database, grant_id)
        return grant.session_hash if grant is not None else None

    def connected_apps(self, user_id: str | None = None) -> list[ConnectedGrant]:
        """The live grants of one user's apps, or of everybody's, whose first tokens were fetched, the grant made last
        first; of SimpleFIN also those whose setup token can still be exchanged."""
        return grants.connected_grants(self._database, now=self._now(), user_id=user_id)

    def webhook_addresses(self, user_id: str) -> list[tuple[str, str]]:
        """Grant id and address of each of the user's webhooks that is not disabled."""
        webhooks = hooks.of_user(self._database, user_id)
        return [(each.grant_id, each.url) for each in webhooks if each.disabled_reason is None]

    def issue_alone(
        self,
        *,
        user_id: str,
        client_id: str,
        scopes: frozenset[str],
        lifetime: timedelta,
        resource: Resource = "data",
        terms: Terms = EVERYTHING,
    ) -> str:
        """Issue an access token with a grant of its own and no refresh token (`bankdata token`); logs and records it.
        The caller sees to it that `lifetime` is at most GRANT."""
        now = self._now()
        grant = Grant(
            id=new_grant_id(),
            user_id=user_id,
            client_id=client_id,
            scope=scope_text(scopes),
            created_at=now,
            expires_at=now + lifetime,
            redeemed_at=now,
            resource=resource,
            terms=terms,
        )
        token = self._tokens.issue(
            user_id=user_id,
            client_id=client_id,
            scopes=scopes,
            grant_id=grant.id,
            now=now,
            lifetime=lifetime,
            audience=self._policy.address_of(resource),
        )
        self._database.atomically(lambda session: grants.add(session, grant))
        self._events.info("token issued by the operator", user=user_id, grant=grant.id)
        self._events.did(user_id, "issueToken", client_id=client_id, grant_id=grant.id)
        return token

    def end_of(self, lifetime: timedelta) -> datetime:
        """When an access ends that begins now and lasts for `lifetime`."""
        return self._now() + lifetime

    def narrow(self, grant: Grant, *, terms: Terms, ends: datetime) -> None:
        """Reduce a grant, from the next request on, to what both its own terms and `terms` cover, and let it and its
        refresh token end at `ends` if that is earlier. Logs and records the change."""

        def narrowed(present: Grant) -> tuple[Terms, str, datetime]:
            less = narrower(present.terms, terms)
            scope = scope_without_bookings(present.scope) if less.figures_only else present.scope
            return less, scope, min(ends, present.expires_at)

        self._change(grant, "narrowGrant", narrowed)

    def widen(self, grant: Grant, *, terms: Terms, ends: datetime) -> None:
        """Replace the terms and the end of a grant from the next request on, even if it then covers more; the caller
        has verified that its user wants it. Its refresh token ends accordingly. Logs and records the change.

        Where bookings are added, their scope comes with the next refreshed token.
        """

        def widened(present: Grant) -> tuple[Terms, str, datetime]:
            scope = scope_without_bookings(present.scope)
            if not terms.figures_only:
                scope = scope_text({*scope.split(), READ_TRANSACTIONS}) if present.terms.figures_only else present.scope
            return terms, scope, ends

        self._change(grant, "widenGrant", widened)

    def _change(self, grant: Grant, deed: Deed, changed: Callable[[Grant], tuple[Terms, str, datetime]]) -> None:
        """Change a grant by what it is now, whatever it was when the person saw it."""

        def work(session: Session) -> None:
            terms, scope, ends = changed(grants.find(session, grant.id) or grant)
            grants.change_terms(session, grant.id, terms=terms, scope=scope, ends=ends)
            # The app's refresh token was made to end with the access, so it is prolonged with it
            tokens.prolong_refresh(session, grant.id, lifetime=lifetimes.REFRESH_TOKEN, at_most=ends)

        self._retry_conflicts(work)
        self._access.forget()
        self._events.info("grant changed", user=grant.user_id, grant=grant.id, deed=deed)
        self._events.did(grant.user_id, deed, client_id=grant.client_id, grant_id=grant.id)

    def widened_by_merge(self, user_id: str, *, source_id: str, target_id: str) -> list[ConnectedGrant]:
        """The grants whose apps would see more once the source account is merged into the target, because they see the
        target but not the source; the grant made last first."""
        connected = self.connected_apps(user_id)
        return [each for each in connected if would_widen(each.grant.terms, source_id=source_id, target_id=target_id)]

    def keep_exclusions(self, user_id: str, *, source_id: str, target_id: str) -> None:
        """Exclude the target account from every live grant that covers it but not the source account; to be called
        before the source is merged into the target, so that no app sees more afterwards. Logs and records each."""
        now = self._now()

        def work(session: Session) -> list[Grant]:
            concerned = [
                grant
                for grant in grants.live_of_user(session, user_id, now=now)
                if would_widen(grant.terms, source_id=source_id, target_id=target_id)
            ]
            for grant in concerned:
                terms = without_account(grant.terms, target_id)
                grants.change_terms(session, grant.id, terms=terms, scope=grant.scope, ends=grant.expires_at)
            return concerned

        changed = self._retry_conflicts(work)
        self._access.forget()
        for grant in changed:
            self._events.info("grant of merged accounts", user=user_id, grant=grant.id, deed="narrowGrant")
            self._events.did(user_id, "narrowGrant", client_id=grant.client_id, grant_id=grant.id)

    def revoke(self, grant_id: str, *, because: str) -> bool:
        """End one grant, and log and record that; its access tokens are refused from the next request on. False where
        there is no such grant or it was revoked before."""
        grant = grants.find(self._database, grant_id)
        if grant is None:
            return False
        now = self._now()
        ended = self._retry_conflicts(lambda session: grants.revoke(session, grant_id, because=because, now=now))
        self._access.forget()
        if ended:
            self._events.info(f"grant {because}", grant=grant_id)
            self._events.did(grant.user_id, "revokeGrant", client_id=grant.client_id, grant_id=grant.id)
        return ended

    def revoke_all(
        self,
        *,
        because: str,
        user_id: str | None = None,
        client_id: str | None = None,
        before: datetime | None = None,
    ) -> int:
        """End all grants that fit every given condition: of a user, of a client, made before a time; without any,
        everybody's. Logs that, records it for each of their users, and returns how many were ended."""
        now = self._now()
        ended = self._retry_conflicts(
            lambda session: grants.revoke_all(
                session, because=because, now=now, user_id=user_id, client_id=client_id, before=before
            )
        )
        self._access.forget()
        if ended:
            self._events.info(
                f"grants {because}", number=str(len(ended)), user=user_id or "every", client=client_id or "every"
            )
        for each in set(ended):
            self._events.did(each, "revokeGrant", client_id=client_id or "")
        return len(ended)

    def revoke_token(self, token: str, *, client_id: str) -> None:
        """Revoke a token as RFC 7009 asks: a refresh token ends its whole grant, an access token ends alone. Nothing
        happens for tokens of other clients, and for texts that are no valid token."""
        row = tokens.find_refresh(self._database, stored_hash(token))
        if row is not None:
            grant = grants.find(self._database, row.grant_id)
            if grant is not None and grant.client_id == client_id:
                self.revoke(grant.id, because="revoked by the app")
            return
        try:
            claims = self._tokens.verify(token, self._now())
        except InvalidToken:
            return  # "invalid tokens do not cause an error response" RFC 7009 section 2.2
        if claims.client_id == client_id:
            self._retry_conflicts(
                lambda session: tokens.revoke_access(session, claims.token_id, expires_at=claims.expires_at)
            )
            self._access.forget()
            self._events.info("access token revoked by the app", grant=claims.grant_id)

    def _retry_conflicts(self, work: Callable[[Session], T]) -> T:
        """The result of `work` in a transaction, tried eight times instead of the usual number, so that no revocation
        is lost to conflicts; raises the last Conflict."""
        for attempt in range(REVOCATION_TRIES):
            try:
                return self._database.atomically(work)
            except Conflict:
                if attempt + 1 == REVOCATION_TRIES:
                    raise
                time.sleep(0.002 * 2**attempt)
        raise AssertionError


def check_resource(grant: Grant, resource: Resource | None) -> None:
    """Raise InvalidTarget for another resource than the grant's (RFC 8707 section 2.2); None means none named."""
    if resource not in (None, grant.resource):
        raise InvalidTarget()
