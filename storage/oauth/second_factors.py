"""Second factors of users, and their recovery codes; each code counts once, however many requests use it at once."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from storage import users
from storage.database import Session, add_row, add_row_unless_there, names_of, set_values
from storage.oauth.moments import with_moments


class SecondFactor(Struct, frozen=True, kw_only=True):
    """The second factor of a user: a sealed seed for codes that change with time, which counts once it is confirmed.
    `last_step` is the number of the latest time step whose code was used."""

    sealed_seed: str
    made_at: datetime
    confirmed_at: datetime | None
    last_step: int


def find(session: Session, user_id: str) -> SecondFactor | None:
    """The user's second factor, confirmed or not; None where there is none."""
    rows = session.rows(f"SELECT {names_of(SecondFactor)} FROM second_factors WHERE user_id = $1", user_id)
    return SecondFactor(**with_moments(rows[0])) if rows else None


def begin(session: Session, user_id: str, *, sealed_seed: str, now: datetime) -> bool:
    """Store an unconfirmed seed, replacing another unconfirmed one; False, with nothing stored, where one is
    confirmed."""
    seed, unconfirmed = {"sealed_seed": sealed_seed, "made_at": now}, {"user_id": user_id, "confirmed_at": None}
    return set_values(session, "second_factors", unconfirmed, **seed) or add_row_unless_there(
        session, "second_factors", **unconfirmed, **seed, last_step=0
    )


def confirm(session: Session, user_id: str, *, sealed_seed: str, step: int, now: datetime) -> bool:
    """Confirm this seed, so that it counts from now on, and use up its code of this time step; True for exactly one
    caller, False where the seed has been replaced."""
    unconfirmed = {"user_id": user_id, "sealed_seed": sealed_seed, "confirmed_at": None}
    return set_values(session, "second_factors", unconfirmed, confirmed_at=now, last_step=step)


def use_step(session: Session, user_id: str, step: int) -> bool:
    """Use the code of this time step; True for exactly one caller, and never again for this step or an earlier one;
    False without a confirmed second factor."""
    changed = session.execute(
        "UPDATE second_factors SET last_step = $2 WHERE user_id = $1 AND last_step < $2 AND confirmed_at IS NOT NULL",
        *(user_id, step),
    )
    return changed > 0


def remove(session: Session, user_id: str) -> bool:
    """Delete a user's second factor with the passkeys beside it, and the recovery codes unless a passkey that signs in
    alone needs them; False where it had not been confirmed."""
    users.change_ways_in(session)
    session.execute("DELETE FROM passkeys WHERE user_id = $1 AND NOT COALESCE(is_alone, FALSE)", user_id)
    if not session.rows("SELECT id FROM passkeys WHERE user_id = $1 LIMIT 1", user_id):
        session.execute("DELETE FROM recovery_codes WHERE user_id = $1", user_id)
    rows = session.rows("DELETE FROM second_factors WHERE user_id = $1 RETURNING confirmed_at", user_id)
    return bool(rows) and rows[0]["confirmed_at"] is not None


def add_codes(session: Session, user_id: str, code_hashes: Iterable[str]) -> None:
    """Store recovery codes, as hashes, beside those that the user has."""
    for code_hash in code_hashes:
        add_row(session, "recovery_codes", user_id=user_id, code_hash=code_hash)


def use_code(session: Session, user_id: str, code_hash: str, *, now: datetime) -> bool:
    """Use a recovery code; True for exactly one caller, False for any other code than an unused one of the user."""
    unused = {"user_id": user_id, "code_hash": code_hash, "used_at": None}
    return set_values(session, "recovery_codes", unused, used_at=now)


def codes_left(session: Session, user_id: str) -> int:
    """The number of recovery codes that have not been used."""
    rows = session.rows("SELECT count(*) AS number FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL", user_id)
    return int(rows[0]["number"])
