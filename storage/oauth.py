"""What the authorization server remembers: clients, requests, codes, grants, refresh tokens, sessions, throttles.

Moments go in aware or in UTC and come out aware. Every secret arrives here as its hash. "Exactly one winner" is
always `UPDATE ... WHERE used_at IS NULL RETURNING`: the row comes back to one caller only.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from storage.database import Row, Session, as_json

RegisteredBy = Literal["self", "operator", "builtin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An app that may ask users for access."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    metadata: dict[str, Any]
    registered_by: RegisteredBy
    address_hash: str | None
    created_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequest:
    """An authorization request that waits for the user, bound to one browser session."""

    id_hash: str
    session_hash: str
    client_id: str
    redirect_uri: str
    scope: str
    state: str | None
    code_challenge: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """An authorization code, bound to client, redirect URI and challenge."""

    code_hash: str
    grant_id: str
    client_id: str
    redirect_uri: str
    code_challenge: str
    expires_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One connection of one app to one user; all tokens of the family carry its id."""

    id: str
    user_id: str
    client_id: str
    scope: str
    created_at: datetime
    expires_at: datetime
    redeemed_at: datetime | None
    revoked_at: datetime | None
    revoked_because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshToken:
    """One link in the chain of a grant."""

    token_hash: str
    grant_id: str
    issued_at: datetime
    expires_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """A browser; `user_id` is None before sign-in."""

    id_hash: str
    user_id: str | None
    created_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """A live grant as people see it."""

    grant: Grant
    client_name: str
    user_name: str
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether tokens of a grant are still good for something."""

    user_id: str
    is_live: bool
    expires_at: datetime
    has_subscription: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """Failed sign-ins of one subject."""

    failures: int
    blocked_until: datetime
    updated_at: datetime


# Clients


def find_client(session: Session, client_id: str) -> Client | None:
    """The client of this id."""
    rows = session.rows("SELECT * FROM oauth_clients WHERE id = $1", client_id)
    return _client(rows[0]) if rows else None


def clients(session: Session) -> list[Client]:
    """All clients, oldest first."""
    return [_client(row) for row in session.rows("SELECT * FROM oauth_clients ORDER BY created_at, id")]


def add_client(session: Session, client: Client) -> None:
    """Store a client; raises Conflict when the id is taken."""
    session.execute(
        "INSERT INTO oauth_clients (id, name, redirect_uris, metadata, registered_by, address_hash, created_at,"
        " used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        client.id,
        client.name,
        as_json(list(client.redirect_uris)),
        as_json(client.metadata),
        client.registered_by,
        client.address_hash,
        _utc(client.created_at),
        _utc(client.used_at),
    )


def remove_client(session: Session, client_id: str) -> bool:
    """Delete a client with its requests; its grants are revoked by the caller first."""
    session.execute("DELETE FROM oauth_requests WHERE client_id = $1", client_id)
    return session.execute("DELETE FROM oauth_clients WHERE id = $1", client_id) > 0


def unused_clients(session: Session, *, address_hash: str, since: datetime) -> list[datetime]:
    """When this address registered clients that nobody has allowed yet, oldest first."""
    rows = session.rows(
        "SELECT created_at FROM oauth_clients WHERE address_hash = $1 AND created_at > $2 AND used_at IS NULL"
        " ORDER BY created_at",
        address_hash,
        _utc(since),
    )
    return [_aware(row["created_at"]) for row in rows]


def count_clients(session: Session) -> int:
    """How many clients registered themselves."""
    rows = session.rows("SELECT count(*) AS number FROM oauth_clients WHERE registered_by = 'self'")
    return int(rows[0]["number"])


def mark_client_used(session: Session, client_id: str, *, now: datetime) -> None:
    """A user allowed it: it no longer expires and no longer counts against its address."""
    session.execute("UPDATE oauth_clients SET used_at = $2 WHERE id = $1 AND used_at IS NULL", client_id, _utc(now))


# Authorization requests and codes


def add_request(session: Session, request: PendingRequest) -> None:
    """Store a request."""
    session.execute(
        "INSERT INTO oauth_requests (id_hash, session_hash, client_id, redirect_uri, scope, state, code_challenge,"
        " created_at, expires_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL)",
        request.id_hash,
        request.session_hash,
        request.client_id,
        request.redirect_uri,
        request.scope,
        request.state,
        request.code_challenge,
        _utc(request.created_at),
        _utc(request.expires_at),
    )


def find_request(session: Session, id_hash: str, *, session_hash: str, now: datetime) -> PendingRequest | None:
    """The open request of this id, if it belongs to this browser."""
    rows = session.rows(
        "SELECT * FROM oauth_requests WHERE id_hash = $1 AND session_hash = $2 AND used_at IS NULL AND expires_at > $3",
        id_hash,
        session_hash,
        _utc(now),
    )
    return _request(rows[0]) if rows else None


def use_request(session: Session, id_hash: str, *, session_hash: str, now: datetime) -> PendingRequest | None:
    """The same, and from now on it is used; None for everybody but the first."""
    rows = session.rows(
        "UPDATE oauth_requests SET used_at = $3"
        " WHERE id_hash = $1 AND session_hash = $2 AND used_at IS NULL AND expires_at > $3 RETURNING *",
        id_hash,
        session_hash,
        _utc(now),
    )
    return _request(rows[0]) if rows else None


def count_requests(session: Session, session_hash: str, *, now: datetime) -> int:
    """How many open requests a browser has."""
    rows = session.rows(
        "SELECT count(*) AS number FROM oauth_requests WHERE session_hash = $1 AND used_at IS NULL AND expires_at > $2",
        session_hash,
        _utc(now),
    )
    return int(rows[0]["number"])


def add_code(session: Session, code: Code) -> None:
    """Store a code."""
    session.execute(
        "INSERT INTO oauth_codes (code_hash, grant_id, client_id, redirect_uri, code_challenge, expires_at, used_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, NULL)",
        code.code_hash,
        code.grant_id,
        code.client_id,
        code.redirect_uri,
        code.code_challenge,
        _utc(code.expires_at),
    )


def find_code(session: Session, code_hash: str) -> Code | None:
    """The code, used or not."""
    rows = session.rows("SELECT * FROM oauth_codes WHERE code_hash = $1", code_hash)
    return Code(**_times(rows[0], "expires_at", "used_at")) if rows else None


def use_code(session: Session, code_hash: str, *, now: datetime) -> bool:
    """True for exactly one caller."""
    return bool(
        session.rows(
            "UPDATE oauth_codes SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL RETURNING grant_id",
            code_hash,
            _utc(now),
        )
    )


# Grants and refresh tokens


def add_grant(session: Session, grant: Grant) -> None:
    """Store a grant."""
    session.execute(
        "INSERT INTO oauth_grants (id, user_id, client_id, scope, created_at, expires_at, redeemed_at, revoked_at,"
        " revoked_because) VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, NULL)",
        grant.id,
        grant.user_id,
        grant.client_id,
        grant.scope,
        _utc(grant.created_at),
        _utc(grant.expires_at),
        _utc(grant.redeemed_at),
    )


def find_grant(session: Session, grant_id: str) -> Grant | None:
    """The grant, live or not."""
    rows = session.rows("SELECT * FROM oauth_grants WHERE id = $1", grant_id)
    return _grant(rows[0]) if rows else None


def redeem_grant(session: Session, grant_id: str, *, now: datetime) -> None:
    """The app has fetched its first tokens."""
    session.execute("UPDATE oauth_grants SET redeemed_at = $2 WHERE id = $1", grant_id, _utc(now))


def revoke_grant(session: Session, grant_id: str, *, because: str, now: datetime) -> bool:
    """End a grant with all its tokens; False when it had ended before or never was."""
    changed = session.execute(
        "UPDATE oauth_grants SET revoked_at = $2, revoked_because = $3 WHERE id = $1 AND revoked_at IS NULL",
        grant_id,
        _utc(now),
        because,
    )
    return changed > 0


def revoke_grants(
    session: Session, *, because: str, now: datetime, user_id: str | None = None, client_id: str | None = None
) -> int:
    """End all live grants of a user, of a client, or of both together; how many."""
    return session.execute(
        "UPDATE oauth_grants SET revoked_at = $1, revoked_because = $2 WHERE revoked_at IS NULL"
        " AND (CAST($3 AS TEXT) IS NULL OR user_id = $3) AND (CAST($4 AS TEXT) IS NULL OR client_id = $4)",
        _utc(now),
        because,
        user_id,
        client_id,
    )


def connected(session: Session, *, now: datetime, user_id: str | None = None) -> list[Connected]:
    """The live grants whose tokens were fetched, newest first; of one user, or of everybody."""
    rows = session.rows(
        "SELECT g.*, c.name AS client_name, u.name AS user_name,"
        " (SELECT max(t.issued_at) FROM oauth_refresh_tokens t WHERE t.grant_id = g.id) AS last_used_at"
        " FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id JOIN users u ON u.id = g.user_id"
        " WHERE g.revoked_at IS NULL AND g.redeemed_at IS NOT NULL AND g.expires_at > $1"
        " AND (CAST($2 AS TEXT) IS NULL OR g.user_id = $2) ORDER BY g.created_at DESC, g.id",
        _utc(now),
        user_id,
    )
    return [_connected(row) for row in rows]


def standing(session: Session, grant_id: str) -> Standing | None:
    """Whether a grant and its user still stand; None when either is gone."""
    rows = session.rows(
        "SELECT g.user_id, g.revoked_at, g.expires_at, u.has_subscription"
        " FROM oauth_grants g JOIN users u ON u.id = g.user_id WHERE g.id = $1",
        grant_id,
    )
    if not rows:
        return None
    row = rows[0]
    return Standing(
        user_id=row["user_id"],
        is_live=row["revoked_at"] is None,
        expires_at=_aware(row["expires_at"]),
        has_subscription=row["has_subscription"],
    )


def add_refresh_token(session: Session, token: RefreshToken) -> None:
    """Store a refresh token."""
    session.execute(
        "INSERT INTO oauth_refresh_tokens (token_hash, grant_id, issued_at, expires_at, used_at)"
        " VALUES ($1, $2, $3, $4, NULL)",
        token.token_hash,
        token.grant_id,
        _utc(token.issued_at),
        _utc(token.expires_at),
    )


def find_refresh_token(session: Session, token_hash: str) -> RefreshToken | None:
    """The refresh token, used or not."""
    rows = session.rows("SELECT * FROM oauth_refresh_tokens WHERE token_hash = $1", token_hash)
    return RefreshToken(**_times(rows[0], "issued_at", "expires_at", "used_at")) if rows else None


def use_refresh_token(session: Session, token_hash: str, *, now: datetime) -> bool:
    """True for exactly one caller."""
    return bool(
        session.rows(
            "UPDATE oauth_refresh_tokens SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL RETURNING grant_id",
            token_hash,
            _utc(now),
        )
    )


def revoke_access_token(session: Session, token_id: str, *, expires_at: datetime) -> None:
    """One access token ends before its time."""
    session.execute(
        "INSERT INTO oauth_revoked_tokens (token_id, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        token_id,
        _utc(expires_at),
    )


def revoked_access_tokens(session: Session, *, now: datetime) -> frozenset[str]:
    """The ids of access tokens that were revoked alone and have not expired."""
    rows = session.rows("SELECT token_id FROM oauth_revoked_tokens WHERE expires_at > $1", _utc(now))
    return frozenset(row["token_id"] for row in rows)


# Browser sessions and throttles


def add_session(session: Session, browser: BrowserSession) -> None:
    """Store a browser session."""
    session.execute(
        "INSERT INTO oauth_sessions (id_hash, user_id, created_at, seen_at) VALUES ($1, $2, $3, $4)",
        browser.id_hash,
        browser.user_id,
        _utc(browser.created_at),
        _utc(browser.seen_at),
    )


def find_session(session: Session, id_hash: str) -> BrowserSession | None:
    """The session of this id."""
    rows = session.rows("SELECT * FROM oauth_sessions WHERE id_hash = $1", id_hash)
    return BrowserSession(**_times(rows[0], "created_at", "seen_at")) if rows else None


def see_session(session: Session, id_hash: str, *, now: datetime) -> None:
    """The browser was here."""
    session.execute("UPDATE oauth_sessions SET seen_at = $2 WHERE id_hash = $1", id_hash, _utc(now))


def move_requests(session: Session, *, from_session: str, to_session: str) -> None:
    """Sign-in gives a browser a new session; its open requests come along."""
    session.execute(
        "UPDATE oauth_requests SET session_hash = $2 WHERE session_hash = $1 AND used_at IS NULL",
        from_session,
        to_session,
    )


def remove_session(session: Session, id_hash: str) -> None:
    """Sign a browser out; its open requests end with it."""
    session.execute("DELETE FROM oauth_requests WHERE session_hash = $1", id_hash)
    session.execute("DELETE FROM oauth_sessions WHERE id_hash = $1", id_hash)


def remove_sessions(session: Session, user_id: str, *, but: str = "") -> None:
    """Sign a user out of every browser, or of every other one."""
    session.execute("DELETE FROM oauth_sessions WHERE user_id = $1 AND id_hash <> $2", user_id, but)


def throttle(session: Session, subject_hash: str) -> Throttle | None:
    """What is known of a subject's failures."""
    rows = session.rows(
        "SELECT failures, blocked_until, updated_at FROM oauth_throttles WHERE subject_hash = $1", subject_hash
    )
    return Throttle(**_times(rows[0], "blocked_until", "updated_at")) if rows else None


def set_throttle(session: Session, subject_hash: str, throttle: Throttle) -> None:
    """Remember a subject's failures."""
    session.execute(
        "INSERT INTO oauth_throttles (subject_hash, failures, blocked_until, updated_at) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (subject_hash) DO UPDATE SET failures = excluded.failures,"
        " blocked_until = excluded.blocked_until, updated_at = excluded.updated_at",
        subject_hash,
        throttle.failures,
        _utc(throttle.blocked_until),
        _utc(throttle.updated_at),
    )


def clear_throttles(session: Session, subject_hashes: Sequence[str]) -> None:
    """Forget failures after a success."""
    for subject_hash in subject_hashes:
        session.execute("DELETE FROM oauth_throttles WHERE subject_hash = $1", subject_hash)


def remove_user(session: Session, user_id: str) -> None:
    """Delete all that a user left here."""
    session.execute(
        "DELETE FROM oauth_refresh_tokens WHERE grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)", user_id
    )
    session.execute(
        "DELETE FROM oauth_codes WHERE grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)", user_id
    )
    session.execute("DELETE FROM oauth_grants WHERE user_id = $1", user_id)
    session.execute("DELETE FROM oauth_sessions WHERE user_id = $1", user_id)


def sweep(
    session: Session,
    *,
    now: datetime,
    hour_ago: datetime,
    day_ago: datetime,
    session_seen: datetime,
    session_born: datetime,
) -> None:
    """Delete what can never matter again; used codes and refresh tokens stay as long as they can betray a thief."""
    at, old = _utc(now), _utc(day_ago)
    session.execute("DELETE FROM oauth_requests WHERE expires_at < $1", at)
    session.execute("DELETE FROM oauth_codes WHERE expires_at < $1", old)
    session.execute("DELETE FROM oauth_revoked_tokens WHERE expires_at < $1", at)
    session.execute("DELETE FROM oauth_refresh_tokens WHERE expires_at < $1", at)
    session.execute(
        "DELETE FROM oauth_sessions WHERE seen_at < $1 OR created_at < $2 OR (user_id IS NULL AND seen_at < $3)",
        _utc(session_seen),
        _utc(session_born),
        _utc(hour_ago),
    )
    session.execute("DELETE FROM oauth_throttles WHERE updated_at < $1 AND blocked_until < $1", old)
    session.execute(
        "DELETE FROM oauth_grants WHERE created_at < $1 AND (redeemed_at IS NULL OR expires_at < $1 OR revoked_at < $1)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_refresh_tokens t WHERE t.grant_id = oauth_grants.id)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_codes o WHERE o.grant_id = oauth_grants.id)",
        old,
    )
    session.execute(
        "DELETE FROM oauth_clients WHERE registered_by = 'self' AND used_at IS NULL AND created_at < $1"
        " AND NOT EXISTS (SELECT 1 FROM oauth_requests r WHERE r.client_id = oauth_clients.id)",  # a sign-in goes on
        old,
    )


def _client(row: Row) -> Client:
    row = _times(row, "created_at", "used_at")
    return Client(
        **{**row, "redirect_uris": tuple(json.loads(row["redirect_uris"])), "metadata": json.loads(row["metadata"])}
    )


def _request(row: Row) -> PendingRequest:
    return PendingRequest(**_times(row, "created_at", "expires_at", "used_at"))


def _grant(row: Row) -> Grant:
    return Grant(**_times(row, "created_at", "expires_at", "redeemed_at", "revoked_at"))


def _connected(row: Row) -> Connected:
    row = dict(row)
    client_name, user_name, last_used_at = row.pop("client_name"), row.pop("user_name"), row.pop("last_used_at")
    return Connected(
        grant=_grant(row),
        client_name=client_name,
        user_name=user_name,
        last_used_at=_aware(last_used_at) if last_used_at else None,
    )


def _times(row: Row, *names: str) -> Row:
    return {**row, **{name: _aware(row[name]) for name in names if row[name] is not None}}


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _utc(moment: datetime | None) -> datetime | None:
    """The store's TIMESTAMP has no zone: it is UTC."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment is not None and moment.tzinfo else moment
