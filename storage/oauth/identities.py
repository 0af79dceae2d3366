"""Who signs in as whom at the household's provider, and errands there that are under way; each errand counts once."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from storage.database import Session, add_row_unless_there, names_of, put_row, values_of
from storage.oauth.moments import with_moments

Purpose = Literal["sign in", "join", "link", "prove", "name", "confirm", "signed out", "ask"]

OPEN_MAX = 20  # errands of one browser
OPEN_IN_ALL_MAX = 10_000


class Identity(Struct, frozen=True, kw_only=True):
    """Somebody at a provider, named by issuer and subject alone, and which user they are here; `shown` is their name
    there, which decides nothing."""

    id_hash: str
    user_id: str
    issuer: str
    subject: str
    shown: str
    linked_at: datetime


class Errand(Struct, frozen=True, kw_only=True):
    """What a browser was sent to the provider for, what is asked of the person afterwards, or through an app (`ask`;
    `session_hash` is then that of who asks)."""

    secret_hash: str
    session_hash: str
    purpose: Purpose
    expires_at: datetime
    user_id: str | None = None
    goes_on: str = ""
    link_hash: str | None = None
    told: str | None = None


def find(session: Session, id_hash: str) -> Identity | None:
    """The identity with this hash; None where nobody here is linked to it."""
    return next(iter(_where(session, "id_hash = $1", id_hash)), None)


def of_user(session: Session, user_id: str) -> list[Identity]:
    """The identities of a user, of whatever issuer, the one linked first first."""
    return _where(session, "user_id = $1 ORDER BY linked_at, id_hash", user_id)


def put(session: Session, identity: Identity) -> None:
    """Link an identity, of which the caller knows that it is nobody else's."""
    put_row(session, "oauth_identities", ("id_hash",), **values_of(identity))


def remove(session: Session, user_id: str, id_hash: str) -> bool:
    """Unlink an identity of a user; False where they do not have it."""
    return session.execute("DELETE FROM oauth_identities WHERE id_hash = $1 AND user_id = $2", id_hash, user_id) > 0


def remove_all(session: Session, user_id: str) -> None:
    """Delete a user's identities and errands."""
    session.execute("DELETE FROM oauth_identities WHERE user_id = $1", user_id)
    session.execute("DELETE FROM oauth_errands WHERE user_id = $1", user_id)


def begin(session: Session, errand: Errand, *, now: datetime) -> bool:
    """Store an errand, and delete the oldest ones of this browser and of all beyond what is kept; False where there is
    one with this hash."""
    for condition, most, parameters in (
        ("session_hash = $2", OPEN_MAX, (errand.session_hash,)),
        ("TRUE", OPEN_IN_ALL_MAX, ()),
    ):
        session.execute(
            "DELETE FROM oauth_errands WHERE secret_hash IN (SELECT e.secret_hash FROM oauth_errands e"
            f" WHERE {condition} AND session_hash <> '' ORDER BY expires_at DESC, secret_hash OFFSET $1)",
            *(most - 1, *parameters),
        )
    session.execute("DELETE FROM oauth_errands WHERE expires_at <= $1", now)
    return add_row_unless_there(session, "oauth_errands", **values_of(errand))


def find_errand(session: Session, secret_hash: str, *, session_hash: str, now: datetime) -> Errand | None:
    """The open errand with this hash, of this browser; None for any other."""
    rows = session.rows(
        f"SELECT {names_of(Errand)} FROM oauth_errands"
        " WHERE secret_hash = $1 AND session_hash = $2 AND expires_at > $3",
        *(secret_hash, session_hash, now),
    )
    return Errand(**with_moments(rows[0])) if rows else None


def answer(session: Session, secret_hash: str, *, session_hash: str, told: str, now: datetime) -> bool:
    """Note the answer to an open question; False where there is none, or it is answered."""
    said = session.execute(
        "UPDATE oauth_errands SET told = $4"
        " WHERE secret_hash = $1 AND session_hash = $2 AND expires_at > $3 AND told IS NULL",
        *(secret_hash, session_hash, now, told),
    )
    return said > 0


def take(session: Session, secret_hash: str, *, session_hash: str, now: datetime) -> Errand | None:
    """The open errand with this hash, of this browser, which is done with that; None for every caller but the first."""
    errand = find_errand(session, secret_hash, session_hash=session_hash, now=now)
    gone = session.execute(
        "DELETE FROM oauth_errands WHERE secret_hash = $1 AND session_hash = $2", secret_hash, session_hash
    )
    return errand if gone else None


def sessions_of(session: Session, *, identity_hash: str | None, provider_session: str | None) -> list[str]:
    """The hashes of the browser sessions begun by this identity, in this session there, or both; an argument that is
    None does not count, and both None find nothing."""
    rows = session.rows(
        "SELECT id_hash FROM oauth_sessions WHERE ($1::TEXT IS NOT NULL OR $2::TEXT IS NOT NULL)"
        " AND ($1::TEXT IS NULL OR identity_hash = $1) AND ($2::TEXT IS NULL OR provider_session = $2)",
        *(identity_hash, provider_session),
    )
    return [row["id_hash"] for row in rows]


def sweep(session: Session, *, now: datetime) -> None:
    """Delete errands that are over."""
    session.execute("DELETE FROM oauth_errands WHERE expires_at < $1", now)


def _where(session: Session, condition: str, *parameters: object) -> list[Identity]:
    rows = session.rows(f"SELECT {names_of(Identity)} FROM oauth_identities WHERE {condition}", *parameters)
    return [Identity(**with_moments(row)) for row in rows]
