"""Passkeys of users, and the challenges that browsers were given; each challenge is answered once."""

from datetime import datetime

from msgspec import Struct

from storage import users
from storage.database import Session, add_row_unless_there, names_of, set_values, values_of
from storage.oauth import second_factors
from storage.oauth.moments import with_moments


class Passkey(Struct, frozen=True, kw_only=True):
    """A passkey of a user for sign-in at `host`; id and public key are in base64url, and `sign_count` is the device's
    count of uses. One that `is_alone` signs in by itself, another one takes the place of a code."""

    id: str
    host: str
    name: str
    public_key: str
    sign_count: int
    made_at: datetime
    used_at: datetime | None = None
    is_alone: bool = False


def of_user(session: Session, user_id: str) -> list[Passkey]:
    """All passkeys of a user, the oldest first."""
    rows = session.rows(f"SELECT {names_of(Passkey)} FROM passkeys WHERE user_id = $1 ORDER BY made_at, id", user_id)
    return [Passkey(**with_moments(row)) for row in rows]


def add(session: Session, user_id: str, passkey: Passkey, *, at_most: int) -> bool:
    """Store a passkey; False where the user has `at_most` of them, has this one already, or has no second factor (any
    more) beside which one that is not alone could stand."""
    users.change_ways_in(session)  # so that turning the second factor off at the same moment is seen
    factor = second_factors.find(session, user_id)
    is_on = passkey.is_alone or (factor is not None and factor.confirmed_at is not None)
    if not is_on or len(of_user(session, user_id)) >= at_most:
        return False
    return add_row_unless_there(session, "passkeys", user_id=user_id, **values_of(passkey))


def use(session: Session, user_id: str, passkey: Passkey, *, sign_count: int, now: datetime) -> bool:
    """Store the device's new count of uses and the time; False where the stored count has changed since the passkey was
    read, or the passkey is gone."""
    as_read = {"user_id": user_id, "id": passkey.id, "sign_count": passkey.sign_count}
    return set_values(session, "passkeys", as_read, sign_count=sign_count, used_at=now)


def remove(session: Session, user_id: str, passkey_id: str) -> bool:
    """Delete a passkey; False where there was none with this id."""
    return session.execute("DELETE FROM passkeys WHERE user_id = $1 AND id = $2", user_id, passkey_id) > 0


def give_challenge(session: Session, session_hash: str, challenge: str, *, until: datetime) -> None:
    """Store the challenge that this browser has to sign, in place of an earlier one."""
    set_values(session, "oauth_sessions", {"id_hash": session_hash}, challenge=challenge, challenge_until=until)


def take_challenge(session: Session, session_hash: str, *, now: datetime) -> str | None:
    """The last challenge of this browser, which is then spent: given to exactly one caller; None where it has expired
    or was taken."""
    rows = session.rows(
        "SELECT challenge FROM oauth_sessions WHERE id_hash = $1 AND challenge_until > $2", session_hash, now
    )
    if not rows or rows[0]["challenge"] is None:
        return None
    challenge: str = rows[0]["challenge"]
    taken = set_values(session, "oauth_sessions", {"id_hash": session_hash, "challenge": challenge}, challenge=None)
    return challenge if taken else None
