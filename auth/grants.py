"""Grants and their tokens: codes redeemed once, refresh tokens that rotate, families that end together."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import TypeVar

from auth import pkce
from auth.access import AccessCheck
from auth.errors import InvalidGrant, InvalidRequest, InvalidScope, InvalidToken
from auth.scopes import scope_set, scope_text
from auth.secret_text import derived, new_secret, stored_hash
from auth.settings import AuthSettings
from auth.tokens import AccessTokens
from storage import users
from storage.database import Conflict, Database, Session
from storage.oauth import clients, codes, grants, tokens
from storage.oauth.codes import Code
from storage.oauth.grants import Grant
from storage.oauth.pending import PendingRequest
from storage.oauth.tokens import RefreshToken

CODE_LIFETIME = timedelta(seconds=60)  # ASVS 5.0 10.4.3: at most one minute
LOCKS = 64
REVOCATION_TRIES = 8  # a quarter of a second in all

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """What /oauth/token answers (decision 33)."""

    access_token: str
    expires_in: int
    refresh_token: str
    scope: str


class _Reused(Exception):
    """A used code or refresh token was presented; its family has to end."""

    def __init__(self, grant_id: str) -> None:
        super().__init__(grant_id)
        self.grant_id = grant_id


class Grants:
    """Issues, redeems, rotates and revokes. Exactly one caller wins a code or a refresh token.

    The store decides races between processes (`UPDATE ... WHERE used_at IS NULL RETURNING`); the striped locks only
    spare one process the conflicts.
    """

    def __init__(
        self,
        database: Database,
        tokens: AccessTokens,
        access: AccessCheck,
        settings: AuthSettings,
        successor_key: bytes,
    ) -> None:
        self._database = database
        self._tokens = tokens
        self._access = access
        self._settings = settings
        self._successor_key = successor_key
        self._locks = [threading.Lock() for _ in range(LOCKS)]

    def allow(self, session: Session, request: PendingRequest, *, user_id: str, now: datetime) -> str:
        """The code for a request that the user has just allowed, inside the caller's transaction."""
        grant = self._new_grant(user_id=user_id, client_id=request.client_id, scope=request.scope, now=now)
        grants.add(session, grant)
        code = new_secret()
        codes.add(
            session,
            Code(
                code_hash=stored_hash(code),
                grant_id=grant.id,
                client_id=request.client_id,
                redirect_uri=request.redirect_uri,
                code_challenge=request.code_challenge,
                expires_at=now + CODE_LIFETIME,
                used_at=None,
            ),
        )
        clients.mark_used(session, request.client_id, now=now)
        return code

    def redeem_code(
        self, code: str, *, client_id: str, redirect_uri: str | None, verifier: str | None, now: datetime
    ) -> TokenAnswer:
        """The first tokens of a grant; raises InvalidGrant, InvalidRequest."""
        code_hash = stored_hash(code)

        def work(session: Session) -> TokenAnswer:
            row = codes.find(session, code_hash)
            if row is None:
                raise _refused("code unknown")
            # "ensure that the authorization code was issued to ... client_id in the request" RFC 6749 section 4.1.3
            if row.client_id != client_id:
                raise _refused("code of another client")
            # Sent, it must be identical; left out, PKCE binds already (OAuth 2.1; oauth.md 2.7)
            if redirect_uri is not None and redirect_uri != row.redirect_uri:
                raise _refused("redirect_uri differs")
            if verifier is None:
                raise InvalidRequest("code_verifier is missing.")
            if not pkce.is_proven(verifier, row.code_challenge):
                raise _refused("code_verifier does not fit")
            # "If an authorization code is used more than once, the authorization server MUST deny the request and
            # SHOULD revoke (when possible) all tokens previously issued based on that authorization code."
            # RFC 6749 section 4.1.2; only for a request that is valid otherwise (OAuth 2.1 section 7.5.3)
            if row.used_at is not None:
                raise _Reused(row.grant_id)
            if now >= row.expires_at:
                raise _refused("code expired")
            grant = self._live_grant(session, row.grant_id, now)
            if not codes.use(session, code_hash, now=now):
                raise _Reused(row.grant_id)
            grants.redeem(session, grant.id, now=now)
            return self._next_tokens(session, grant, new_secret(), scope=grant.scope, now=now)

        return self._exactly_once(code_hash, work, reason="code used twice", now=now)

    def refresh(self, refresh_token: str, *, client_id: str, scope: str | None, now: datetime) -> TokenAnswer:
        """The next tokens of a family; raises InvalidGrant, InvalidScope."""
        token_hash = stored_hash(refresh_token)
        successor = derived(self._successor_key, refresh_token)

        def work(session: Session) -> TokenAnswer:
            row = tokens.find_refresh(session, token_hash)
            if row is None:
                raise _refused("refresh token unknown")
            grant = self._live_grant(session, row.grant_id, now)
            # "The refresh token is bound to the client to which it was issued." RFC 6749 section 6
            if grant.client_id != client_id:
                raise _refused("refresh token of another client")
            if row.used_at is not None:
                if not self._is_in_grace(session, row, successor, now):
                    raise _Reused(grant.id)
                return self._answer(grant, successor, scope=_narrowed(grant, scope), now=now)
            if now >= row.expires_at:
                raise _refused("refresh token expired")
            narrowed = _narrowed(grant, scope)
            if not tokens.use_refresh(session, token_hash, now=now):
                raise _Reused(grant.id)
            return self._next_tokens(session, grant, successor, scope=narrowed, now=now)

        return self._exactly_once(token_hash, work, reason="refresh token used twice", now=now)

    def revoke_token(self, token: str, *, client_id: str, now: datetime) -> None:
        """RFC 7009: a refresh token ends its grant at once, an access token ends alone; others' tokens stay."""
        row = tokens.find_refresh(self._database, stored_hash(token))
        if row is not None:
            grant = grants.find(self._database, row.grant_id)
            if grant is not None and grant.client_id == client_id:
                self.revoke(grant.id, because="revoked by the app", now=now)
            return
        try:
            claims = self._tokens.verify(token, now)
        except InvalidToken:
            return  # "The authorization server responds with HTTP status code 200 ... if the client submitted an
            # invalid token." RFC 7009 section 2.2
        if claims.client_id == client_id:
            self._certainly(
                lambda session: tokens.revoke_access(session, claims.token_id, expires_at=claims.expires_at)
            )
            self._access.forget()

    def revoke(self, grant_id: str, *, because: str, now: datetime) -> bool:
        """End one grant; its access tokens are refused from the next request on."""
        ended = self._certainly(lambda session: grants.revoke(session, grant_id, because=because, now=now))
        self._access.forget()
        return ended

    def revoke_all(
        self, *, because: str, now: datetime, user_id: str | None = None, client_id: str | None = None
    ) -> int:
        """End all grants of a user, of a client, or of both together; how many."""
        ended = self._certainly(
            lambda session: grants.revoke_all(session, because=because, now=now, user_id=user_id, client_id=client_id)
        )
        self._access.forget()
        return ended

    def issue_alone(
        self, *, user_id: str, client_id: str, scopes: frozenset[str], lifetime: timedelta, now: datetime
    ) -> str:
        """An access token with a grant of its own and no refresh token (`bankdata token`)."""
        grant = self._new_grant(
            user_id=user_id, client_id=client_id, scope=scope_text(scopes), now=now, lifetime=lifetime, redeemed_at=now
        )
        self._database.atomically(lambda session: grants.add(session, grant))
        return self._tokens.issue(
            user_id=user_id, client_id=client_id, scopes=scopes, grant_id=grant.id, now=now, lifetime=lifetime
        )

    def _new_grant(
        self,
        *,
        user_id: str,
        client_id: str,
        scope: str,
        now: datetime,
        lifetime: timedelta | None = None,
        redeemed_at: datetime | None = None,
    ) -> Grant:
        return Grant(
            id="g" + token_hex(12),
            user_id=user_id,
            client_id=client_id,
            scope=scope,
            created_at=now,
            expires_at=now + (lifetime or self._settings.grant_lifetime),
            redeemed_at=redeemed_at,
            revoked_at=None,
            revoked_because=None,
        )

    def _certainly(self, work: Callable[[Session], T]) -> T:
        """A revocation must not get lost because others change the same rows: it is tried until it has come through."""
        for attempt in range(REVOCATION_TRIES):
            try:
                return self._database.atomically(work)
            except Conflict:
                if attempt + 1 == REVOCATION_TRIES:
                    raise
                time.sleep(0.002 * 2**attempt)
        raise AssertionError

    def _exactly_once(
        self, secret_hash: str, work: Callable[[Session], TokenAnswer], *, reason: str, now: datetime
    ) -> TokenAnswer:
        with self._locks[int(secret_hash[:8], 16) % LOCKS]:
            try:
                return self._database.atomically(work)
            except _Reused as reused:
                grant_id = reused.grant_id
            except Conflict:
                # Another process is redeeming the same secret this moment: it wins, this caller loses
                raise _refused("lost a race") from None
            self.revoke(grant_id, because=reason, now=now)
            raise _refused(f"{reason}; grant {grant_id} revoked")

    def _live_grant(self, session: Session, grant_id: str, now: datetime) -> Grant:
        grant = grants.find(session, grant_id)
        if grant is None or grant.revoked_at is not None or now >= grant.expires_at:
            raise _refused("grant ended")
        if users.find(session, grant.user_id) is None:
            raise _refused("user removed")
        return grant

    def _is_in_grace(self, session: Session, row: RefreshToken, successor: str, now: datetime) -> bool:
        """Whether a used token may be answered with its successor once more: soon enough, successor unused."""
        allowed = timedelta(seconds=self._settings.refresh_reuse_seconds)
        if row.used_at is None or now - row.used_at >= allowed:
            return False
        next_row = tokens.find_refresh(session, stored_hash(successor))
        return next_row is not None and next_row.used_at is None

    def _next_tokens(
        self, session: Session, grant: Grant, refresh_token: str, *, scope: str, now: datetime
    ) -> TokenAnswer:
        tokens.add_refresh(
            session,
            RefreshToken(
                token_hash=stored_hash(refresh_token),
                grant_id=grant.id,
                issued_at=now,
                expires_at=min(now + self._settings.refresh_lifetime, grant.expires_at),
                used_at=None,
            ),
        )
        return self._answer(grant, refresh_token, scope=scope, now=now)

    def _answer(self, grant: Grant, refresh_token: str, *, scope: str, now: datetime) -> TokenAnswer:
        access_token = self._tokens.issue(
            user_id=grant.user_id, client_id=grant.client_id, scopes=scope.split(), grant_id=grant.id, now=now
        )
        return TokenAnswer(
            access_token=access_token,
            expires_in=int(self._tokens.lifetime.total_seconds()),
            refresh_token=refresh_token,
            scope=scope,
        )


def _narrowed(grant: Grant, scope: str | None) -> str:
    """ "The requested scope MUST NOT include any scope not originally granted by the resource owner, and if omitted is
    treated as equal to the scope originally granted." RFC 6749 section 6"""
    if scope is None:
        return grant.scope
    wanted = scope_set(scope)
    if wanted is None or not wanted <= frozenset(grant.scope.split()):
        raise InvalidScope("scope must not go beyond what the user allowed.")
    return scope_text(wanted)


def _refused(reason: str) -> InvalidGrant:
    """Unknown, expired, foreign and reused look the same to the caller and different in the log (style)."""
    log.info("token request refused: %s", reason)
    return InvalidGrant()
