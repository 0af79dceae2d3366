"""The check whether a request's access token is valid: its signature once, then revocations, from memory (oauth.md
3.8)."""

import threading
from datetime import datetime, timedelta

from auth.errors import InvalidToken
from auth.instants import Now
from auth.principal import PAGE, Coverage, Principal
from auth.tokens.access_tokens import AccessTokens, Claims
from storage.database import Database
from storage.oauth import grants, tokens
from storage.oauth.grants import Held, Standing, Terms

CACHED_TOKENS_MAX = 4096
CACHED_GRANTS_MAX = 4096


class AccessCheck:
    """Finds the principal of each request; only the first request of a grant costs a query, and later ones after
    `recheck`.

    The event loop calls `principal_in_memory`. If that has to ask the store, a worker thread calls `principal`.
    `recheck` is how long a revocation by another process may stay unnoticed; None means that there is no other process,
    as on the embedded store, whose only process learns of every revocation through `forget`.
    """

    def __init__(self, database: Database, tokens: AccessTokens, now: Now, *, recheck: timedelta | None) -> None:
        self._database = database
        self._tokens = tokens
        self._now = now
        self._recheck = recheck
        self._lock = threading.Lock()
        self._generation = 0
        self._claims: dict[str, Claims] = {}
        self._standing: dict[str, tuple[Standing, datetime]] = {}
        self._principals: dict[str, tuple[Standing, Principal]] = {}  # by token
        self._revoked: tuple[frozenset[str], datetime] | None = None
        self._held: tuple[dict[str, Held], datetime] | None = None  # by user, as grants.held_by_all

    def principal_in_memory(self, token: str, audience: str | None = None) -> Principal | None:
        """The principal of a token, from memory alone; None where the store has to be asked. Raises InvalidToken where
        memory shows that the token has expired, was revoked, or is of another resource than `audience` (default: the
        data interface)."""
        now = self._now()
        claims = self._claims.get(token)
        if claims is None:
            return None
        self._check_audience(claims, audience)
        if not self._tokens.still_holds(claims, now):
            self._claims.pop(token, None)
            raise InvalidToken("expired")
        revoked, standing = self._revoked, self._remembered_standing(claims.grant_id, now)
        if revoked is None or standing is None or self._is_stale(revoked[1], now):
            return None
        return self._principal(claims, revoked[0], standing, now)

    def principal(self, token: str, audience: str | None = None) -> Principal:
        """The principal of a token, read from the store where it is not in memory, and remembered. Raises InvalidToken,
        also for a token of another resource than `audience` (default: the data interface). An error of the store is
        raised as it is, because it is no 401."""
        now = self._now()
        claims = self._claims.get(token)
        if claims is None or not self._tokens.still_holds(claims, now):
            self._claims.pop(token, None)
            claims = self._tokens.verify(token, now)
            if len(self._claims) >= CACHED_TOKENS_MAX:
                self._claims.clear()
            self._claims[token] = claims
        self._check_audience(claims, audience)
        standing = self._grant(claims.grant_id, claims.user_id, now)
        return self._principal(claims, self._revoked_tokens(now), standing, now)

    def check(self, grant_id: str, user_id: str) -> Standing:
        """The standing of this user's live grant, from memory or else from the store, for what acts without an access
        token: SimpleFIN credentials and webhooks. Raises InvalidToken if the grant is unknown, revoked, expired or
        another user's."""
        now = self._now()
        return _check_standing(self._grant(grant_id, user_id, now), user_id, now)

    def forget(self) -> None:
        """Drop everything remembered of grants and users, because something was revoked, removed or changed."""
        with self._lock:
            self._generation += 1
            self._standing.clear()
            self._principals.clear()
            self._revoked = self._held = None

    def _remembered_standing(self, grant_id: str, now: datetime) -> Standing | None:
        known = self._standing.get(grant_id)
        return known[0] if known is not None and not self._is_stale(known[1], now) else None

    def _grant(self, grant_id: str, user_id: str, now: datetime) -> Standing | None:
        known = self._remembered_standing(grant_id, now)
        if known is not None:
            return known
        generation = self._generation
        held = self._held
        if held is None or self._is_stale(held[1], now):
            held = grants.held_by_all(self._database), now
        standing = grants.standing(self._database, grant_id, user_id, held[0])
        with self._lock:
            # A revocation between the query and here wins: what was read before it is not remembered
            if standing is not None and generation == self._generation:
                if len(self._standing) >= CACHED_GRANTS_MAX:
                    self._standing.clear()
                self._held = held
                self._standing[grant_id] = standing, held[1]  # as old as the older of the two
        return standing

    def _revoked_tokens(self, now: datetime) -> frozenset[str]:
        known = self._revoked
        if known is not None and not self._is_stale(known[1], now):
            return known[0]
        generation = self._generation
        revoked = tokens.revoked_token_ids(self._database, now=now)
        with self._lock:
            if generation == self._generation:
                self._revoked = (revoked, now)
        return revoked

    def _check_audience(self, claims: Claims, audience: str | None) -> None:
        """Raise InvalidToken for a token of another resource than `audience` (None: the data interface); this is
        checked each time, because claims are remembered by token only."""
        if claims.audience != (audience or self._tokens.audience):
            raise InvalidToken("of another resource")

    def _principal(
        self, claims: Claims, revoked: frozenset[str], standing: Standing | None, now: datetime
    ) -> Principal:
        if claims.token_id in revoked:
            raise InvalidToken("revoked")
        standing = _check_standing(standing, claims.user_id, now)
        made = self._principals.get(claims.token_id)
        if made is None or made[0] is not standing:
            if len(self._principals) >= CACHED_TOKENS_MAX:
                self._principals.clear()
            made = self._principals[claims.token_id] = (
                standing,
                principal_of(standing, client_id=claims.client_id, scopes=claims.scopes, grant_id=claims.grant_id),
            )
        return made[1]

    def _is_stale(self, read_at: datetime, now: datetime) -> bool:
        return self._recheck is not None and not timedelta() <= now - read_at < self._recheck


def _check_standing(standing: Standing | None, user_id: str, now: datetime) -> Standing:
    if standing is None or not standing.is_live or standing.user_id != user_id:
        raise InvalidToken("grant revoked or user removed")
    if now >= standing.expires_at:
        raise InvalidToken("grant expired")
    return standing


def principal_of(standing: Standing, *, client_id: str, scopes: frozenset[str], grant_id: str) -> Principal:
    """The principal of a request under a grant with this standing. What others share with the user is for the person,
    on this server's own page, and for no app, whatever its grant covers; what has ended is for nobody, before its rows
    are gone. This is decided here and nowhere else."""
    coverage = coverage_of(standing.terms)
    hidden = standing.over if client_id == PAGE else standing.held
    if hidden:
        coverage = Coverage(hidden, is_all_but=True) if coverage is None else coverage.without(hidden)
    return Principal(
        user_id=standing.user_id,
        client_id=client_id,
        scopes=scopes,
        grant_id=grant_id,
        has_subscription=standing.has_subscription,
        session=standing.session_hash,
        coverage=coverage,
        is_their_own=standing.terms.accounts is None,
        figures_only=standing.terms.figures_only,
        full_numbers=standing.terms.full_numbers,
    )


def coverage_of(terms: Terms) -> Coverage | None:
    """The accounts that these terms cover; None for all."""
    return Coverage(frozenset(terms.accounts), terms.all_but) if terms.accounts is not None else None
