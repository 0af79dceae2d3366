"""Refresh tokens, each a link in the chain of its grant, and single access tokens that were revoked."""

from datetime import datetime, timedelta

from msgspec import Struct

from storage.database import Session, add_row, add_row_unless_there, names_of, set_values, values_of
from storage.oauth.moments import with_moments


class RefreshToken(Struct, frozen=True, kw_only=True):
    """A refresh token: one link in the chain of a grant."""

    token_hash: str
    grant_id: str
    issued_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


COLUMNS = names_of(RefreshToken)


def add_refresh(session: Session, token: RefreshToken) -> None:
    """Store a refresh token."""
    add_row(session, "oauth_refresh_tokens", **values_of(token))


def find_refresh(session: Session, token_hash: str) -> RefreshToken | None:
    """The refresh token with this hash, used or not; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM oauth_refresh_tokens WHERE token_hash = $1", token_hash)
    return RefreshToken(**with_moments(rows[0])) if rows else None


def use_refresh(session: Session, token_hash: str, *, now: datetime) -> bool:
    """Mark the refresh token as used; True for exactly one caller, False once it is used and for an unknown one."""
    return set_values(session, "oauth_refresh_tokens", {"token_hash": token_hash, "used_at": None}, used_at=now)


def prolong_refresh(session: Session, grant_id: str, *, lifetime: timedelta, at_most: datetime) -> None:
    """Let a grant's unused refresh tokens end a `lifetime` after their issue, but no later than `at_most`, be that
    later or earlier than before."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM oauth_refresh_tokens WHERE grant_id = $1 AND used_at IS NULL ORDER BY token_hash",
        grant_id,
    )
    for row in rows:
        token = RefreshToken(**with_moments(row))
        ends = min(token.issued_at + lifetime, at_most)
        set_values(session, "oauth_refresh_tokens", {"token_hash": token.token_hash}, expires_at=ends)


def revoke_access(session: Session, token_id: str, *, expires_at: datetime) -> None:
    """Revoke a single access token before it expires."""
    add_row_unless_there(session, "oauth_revoked_tokens", token_id=token_id, expires_at=expires_at)


def revoked_token_ids(session: Session, *, now: datetime) -> frozenset[str]:
    """The ids of single access tokens that were revoked and have not expired."""
    rows = session.rows("SELECT token_id FROM oauth_revoked_tokens WHERE expires_at > $1", now)
    return frozenset(row["token_id"] for row in rows)
