"""SimpleFIN access of apps: for each grant a setup token and the password that replaced it, both as hashes."""

from datetime import datetime

from msgspec import Struct

from storage.database import Session, add_row
from storage.oauth.moments import with_moments


class SetupToken(Struct, frozen=True, kw_only=True):
    """The state of a grant's setup token: when and by whom it was exchanged, and whether it was sent again."""

    code_expires_at: datetime
    claimed_at: datetime | None = None
    claimed_by: str | None = None
    tried_again_at: datetime | None = None


class Credentials(Struct, frozen=True, kw_only=True):
    """The hash of a password, and the grant and user whose access it opens; these never change."""

    grant_id: str
    password_hash: str
    user_id: str
    client_id: str


def add(session: Session, *, grant_id: str, code_hash: str, expires_at: datetime) -> None:
    """Store the setup token of a grant."""
    add_row(session, "simplefin_access", grant_id=grant_id, code_hash=code_hash, code_expires_at=expires_at)


def claim(
    session: Session, code_hash: str, *, user_part: str, password_hash: str, claimed_by: str, now: datetime
) -> str | None:
    """Exchange a setup token for a password; returns the id of its grant to exactly one caller, None to others, and to
    all once the token has expired."""
    rows = session.rows(
        "UPDATE simplefin_access SET claimed_at = $2, user_part = $3, password_hash = $4, claimed_by = $5"
        " WHERE code_hash = $1 AND claimed_at IS NULL AND code_expires_at > $2 RETURNING grant_id",
        *(code_hash, now, user_part, password_hash, claimed_by),
    )
    return str(rows[0]["grant_id"]) if rows else None


def try_again(session: Session, code_hash: str, *, now: datetime) -> str | None:
    """Record that a setup token was sent again after its exchange; returns the id of its grant, None for a token that
    was not exchanged or does not exist."""
    rows = session.rows(
        "UPDATE simplefin_access SET tried_again_at = $2 WHERE code_hash = $1 AND claimed_at IS NOT NULL"
        " RETURNING grant_id",
        *(code_hash, now),
    )
    return str(rows[0]["grant_id"]) if rows else None


def credentials(session: Session, user_part: str) -> Credentials | None:
    """The credentials whose user name, a part of the app's address, is this, whether or not their grant has ended; None
    where there are none."""
    rows = session.rows(
        "SELECT s.grant_id, s.password_hash, g.user_id, g.client_id FROM simplefin_access s"
        " JOIN oauth_grants g ON g.id = s.grant_id WHERE s.user_part = $1",
        user_part,
    )
    return Credentials(**rows[0]) if rows else None


def of_grants(session: Session, grant_ids: list[str]) -> dict[str, SetupToken]:
    """The states of these grants' setup tokens, by grant id."""
    if not grant_ids:
        return {}
    rows = session.rows(
        "SELECT grant_id, code_expires_at, claimed_at, claimed_by, tried_again_at FROM simplefin_access"
        " WHERE grant_id = ANY($1::TEXT[])",
        grant_ids,
    )
    return {row.pop("grant_id"): SetupToken(**with_moments(row)) for row in rows}


def remove_all(session: Session, user_id: str) -> None:
    """Delete the SimpleFIN access of a user's apps, and the apps themselves, one for each grant; the caller deletes the
    grants."""
    rows = session.rows("SELECT id, client_id FROM oauth_grants WHERE user_id = $1 AND resource = 'simplefin'", user_id)
    _remove(session, [row["id"] for row in rows], [row["client_id"] for row in rows])


def sweep(session: Session, *, day_ago: datetime) -> None:
    """Delete what ended at least a day ago: setup tokens that nobody exchanged in time, and ended grants, in both cases
    with grant and app."""
    over = session.rows(
        "SELECT grant_id FROM simplefin_access WHERE (claimed_at IS NULL AND code_expires_at < $1) OR grant_id IN"
        " (SELECT id FROM oauth_grants WHERE resource = 'simplefin' AND (expires_at < $1 OR revoked_at < $1))",
        day_ago,
    )
    if not over:
        return
    grant_ids = sorted(row["grant_id"] for row in over)
    grants = session.rows("DELETE FROM oauth_grants WHERE id = ANY($1::TEXT[]) RETURNING client_id", grant_ids)
    _remove(session, grant_ids, [row["client_id"] for row in grants])


def _remove(session: Session, grant_ids: list[str], client_ids: list[str]) -> None:
    session.execute("DELETE FROM simplefin_access WHERE grant_id = ANY($1::TEXT[])", grant_ids)
    session.execute("DELETE FROM oauth_clients WHERE id = ANY($1::TEXT[])", client_ids)
