"""Authorization codes; each can be redeemed once."""

from dataclasses import dataclass
from datetime import datetime

from storage.database import Session
from storage.oauth.moments import in_utc, with_moments

COLUMNS = "code_hash, grant_id, client_id, redirect_uri, code_challenge, expires_at, used_at"


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


def add(session: Session, code: Code) -> None:
    """Store a code."""
    session.execute(
        "INSERT INTO oauth_codes (code_hash, grant_id, client_id, redirect_uri, code_challenge, expires_at, used_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, NULL)",
        code.code_hash,
        code.grant_id,
        code.client_id,
        code.redirect_uri,
        code.code_challenge,
        in_utc(code.expires_at),
    )


def find(session: Session, code_hash: str) -> Code | None:
    """The code with this hash, used or not; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM oauth_codes WHERE code_hash = $1", code_hash)
    return Code(**with_moments(rows[0], "expires_at", "used_at")) if rows else None


def use(session: Session, code_hash: str, *, now: datetime) -> bool:
    """Mark the code as used; True for exactly one caller."""
    return bool(
        session.rows(
            "UPDATE oauth_codes SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL RETURNING grant_id",
            code_hash,
            in_utc(now),
        )
    )
