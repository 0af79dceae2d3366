"""Passkeys of users, and the challenges that browsers were given; each challenge is answered once."""

from dataclasses import dataclass
from datetime import datetime

from storage.database import Session
from storage.oauth.moments import in_utc, with_moments

COLUMNS = "id, host, name, public_key, sign_count, made_at, used_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """A passkey of a user; id and public key are in base64url."""

    id: str
    host: str
    name: str
    public_key: str
    sign_count: int
    made_at: datetime
    used_at: datetime | None = None


def of_user(session: Session, user_id: str) -> list[Passkey]:
    """All passkeys of a user, the oldest first."""
    rows = session.rows(f"SELECT {COLUMNS} FROM passkeys WHERE user_id = $1 ORDER BY made_at, id", user_id)
    return [Passkey(**with_moments(row, "made_at", "used_at")) for row in rows]


def add(session: Session, user_id: str, passkey: Passkey, *, at_most: int) -> bool:
    """Store a passkey; False where the user has `at_most` of them, has this one already, or has no second factor (any
    more)."""
    # An update, so that turning the second factor off at the same moment conflicts with this transaction
    is_on = session.rows(
        "UPDATE second_factors SET last_step = last_step WHERE user_id = $1 AND confirmed_at IS NOT NULL"
        " RETURNING user_id",
        user_id,
    )
    if not is_on or len(of_user(session, user_id)) >= at_most:
        return False
    return bool(
        session.rows(
            f"INSERT INTO passkeys (user_id, {COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
            " ON CONFLICT (user_id, id) DO NOTHING RETURNING id",
            user_id,
            passkey.id,
            passkey.host,
            passkey.name,
            passkey.public_key,
            passkey.sign_count,
            in_utc(passkey.made_at),
            in_utc(passkey.used_at),
        )
    )


def use(session: Session, user_id: str, passkey: Passkey, *, sign_count: int, now: datetime) -> bool:
    """Record a use of the passkey; False where another use was recorded since it was read."""
    return bool(
        session.rows(
            "UPDATE passkeys SET sign_count = $3, used_at = $4 WHERE user_id = $1 AND id = $2 AND sign_count = $5"
            " RETURNING id",
            user_id,
            passkey.id,
            sign_count,
            in_utc(now),
            passkey.sign_count,
        )
    )


def remove(session: Session, user_id: str, passkey_id: str) -> bool:
    """Delete a passkey; False where there was none with this id."""
    return session.execute("DELETE FROM passkeys WHERE user_id = $1 AND id = $2", user_id, passkey_id) > 0


def give_challenge(session: Session, session_hash: str, challenge: str, *, until: datetime) -> None:
    """Store the challenge that this browser has to sign, in place of an earlier one."""
    session.execute(
        "UPDATE oauth_sessions SET challenge = $2, challenge_until = $3 WHERE id_hash = $1",
        session_hash,
        challenge,
        in_utc(until),
    )


def take_challenge(session: Session, session_hash: str, *, now: datetime) -> str | None:
    """The last challenge of this browser, given to exactly one caller; None where it has expired or was taken."""
    rows = session.rows(
        "SELECT challenge FROM oauth_sessions WHERE id_hash = $1 AND challenge_until > $2", session_hash, in_utc(now)
    )
    if not rows or rows[0]["challenge"] is None:
        return None
    challenge: str = rows[0]["challenge"]
    taken = session.rows(
        "UPDATE oauth_sessions SET challenge = NULL WHERE id_hash = $1 AND challenge = $2 RETURNING id_hash",
        session_hash,
        challenge,
    )
    return challenge if taken else None
