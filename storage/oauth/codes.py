"""Authorization codes; each can be redeemed once."""

from datetime import datetime

from msgspec import Struct

from storage.database import Session, add_row, names_of, set_values, values_of
from storage.oauth.moments import with_moments


class Code(Struct, frozen=True, kw_only=True):
    """An authorization code, bound to client, redirect URI and challenge."""

    code_hash: str
    grant_id: str
    client_id: str
    redirect_uri: str
    code_challenge: str
    expires_at: datetime
    used_at: datetime | None = None


def add(session: Session, code: Code) -> None:
    """Store a code."""
    add_row(session, "oauth_codes", **values_of(code))


def find(session: Session, code_hash: str) -> Code | None:
    """The code with this hash, used or not; None where there is none."""
    rows = session.rows(f"SELECT {names_of(Code)} FROM oauth_codes WHERE code_hash = $1", code_hash)
    return Code(**with_moments(rows[0])) if rows else None


def use(session: Session, code_hash: str, *, now: datetime) -> bool:
    """Mark the code as used; True for exactly one caller, False once it is used and for an unknown one."""
    return set_values(session, "oauth_codes", {"code_hash": code_hash, "used_at": None}, used_at=now)
