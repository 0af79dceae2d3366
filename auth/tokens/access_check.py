"""Whether a request's access token still counts: signature once, then what was revoked, from memory (oauth.md 3.8)."""

import threading
from datetime import datetime, timedelta

from auth.errors import InvalidToken
from auth.instants import Now
from auth.principal import Coverage, Principal
from auth.tokens.access_tokens import AccessTokens, Claims
from storage.database import Database
from storage.oauth import grants, tokens
from storage.oauth.grants import Standing, Terms

CACHED_TOKENS_MAX = 4096
CACHED_GRANTS_MAX = 4096


class AccessCheck:
    """The check of every request. Costs no query but for the first request of a grant: the event loop asks
    `remembered`, and only what memory does not know goes to a worker thread, which asks `principal`.

    `recheck` is how long another process's revocation may stay unseen; None says that there is no other process, as
    on the embedded store, whose only process hears of every revocation through `forget`.
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

    def remembered(self, token: str, audience: str | None = None) -> Principal | None:
        """Whom a token speaks for, from memory alone; None when the store has to be asked. Raises InvalidToken, also
        for a token of another resource than `audience`, which is the data interface unless said."""
        now = self._now()
        claims = self._claims.get(token)
        if claims is None:
            return None
        self._check_audience(claims, audience)
        if not self._tokens.still_holds(claims, now):
            self._claims.pop(token, None)
            raise InvalidToken("expired")
        revoked, standing = self._revoked, self._known(claims.grant_id, now)
        if revoked is None or standing is None or self._is_stale(revoked[1], now):
            return None
        return self._principal(claims, revoked[0], standing, now)

    def principal(self, token: str, audience: str | None = None) -> Principal:
        """Whom a token speaks for, asking the store where memory does not know. A failing store raises its own error:
        it is no 401."""
        now = self._now()
        claims = self._claims.get(token)
        if claims is None or not self._tokens.still_holds(claims, now):
            self._claims.pop(token, None)
            claims = self._tokens.verify(token, now)
            if len(self._claims) >= CACHED_TOKENS_MAX:
                self._claims.clear()
            self._claims[token] = claims
        self._check_audience(claims, audience)
        return self._principal(claims, self._revoked_tokens(now), self._grant(claims.grant_id, now), now)

    def known_standing(self, grant_id: str) -> Standing | None:
        """How a grant stands, from memory alone; None when the store has to be asked."""
        return self._known(grant_id, self._now())

    def check(self, grant_id: str, user_id: str) -> Standing:
        """How a grant of this user stands, which has no token of ours; raises InvalidToken where it stands no more."""
        now = self._now()
        return _checked(self._grant(grant_id, now), user_id, now)

    def forget(self) -> None:
        """Drop what is remembered of grants and users: something was revoked, removed or changed."""
        with self._lock:
            self._generation += 1
            self._standing.clear()
            self._principals.clear()
            self._revoked = None

    def _known(self, grant_id: str, now: datetime) -> Standing | None:
        known = self._standing.get(grant_id)
        return known[0] if known is not None and not self._is_stale(known[1], now) else None

    def _grant(self, grant_id: str, now: datetime) -> Standing | None:
        known = self._known(grant_id, now)
        if known is not None:
            return known
        generation = self._generation
        found = grants.standing(self._database, grant_id)
        with self._lock:
            # A revocation between query and here has the last word: what was read before it is not kept
            if found is not None and generation == self._generation:
                if len(self._standing) >= CACHED_GRANTS_MAX:
                    self._standing.clear()
                self._standing[grant_id] = found, now
        return found

    def _revoked_tokens(self, now: datetime) -> frozenset[str]:
        known = self._revoked
        if known is not None and not self._is_stale(known[1], now):
            return known[0]
        generation = self._generation
        revoked = tokens.revoked_access(self._database, now=now)
        with self._lock:
            if generation == self._generation:
                self._revoked = (revoked, now)
        return revoked

    def _check_audience(self, claims: Claims, audience: str | None) -> None:
        """Claims are remembered by token: which resource they are for has to be asked each time."""
        if claims.audience != (audience or self._tokens.audience):
            raise InvalidToken("of another resource")

    def _principal(
        self, claims: Claims, revoked: frozenset[str], standing: Standing | None, now: datetime
    ) -> Principal:
        if claims.token_id in revoked:
            raise InvalidToken("revoked")
        standing = _checked(standing, claims.user_id, now)
        made = self._principals.get(claims.token_id)
        if made is None or made[0] is not standing:
            if len(self._principals) >= CACHED_TOKENS_MAX:
                self._principals.clear()
            made = self._principals[claims.token_id] = standing, _principal(claims, standing)
        return made[1]

    def _is_stale(self, read_at: datetime, now: datetime) -> bool:
        return self._recheck is not None and not timedelta() <= now - read_at < self._recheck


def _checked(standing: Standing | None, user_id: str, now: datetime) -> Standing:
    if standing is None or not standing.is_live or standing.user_id != user_id:
        raise InvalidToken("grant revoked or user removed")
    if now >= standing.expires_at:
        raise InvalidToken("grant expired")
    return standing


def _principal(claims: Claims, standing: Standing) -> Principal:
    return Principal(
        user_id=claims.user_id,
        client_id=claims.client_id,
        scopes=claims.scopes,
        grant_id=claims.grant_id,
        has_subscription=standing.has_subscription,
        coverage=coverage_of(standing.terms),
        figures_only=standing.terms.figures_only,
        full_numbers=standing.terms.full_numbers,
    )


def coverage_of(terms: Terms) -> Coverage | None:
    """Which accounts these terms cover; None where they name none."""
    return Coverage(frozenset(terms.accounts), terms.all_but) if terms.accounts is not None else None
