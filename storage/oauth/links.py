"""Links that work once: to become the first person of a store, to join it, to set a new password."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from storage.database import Session, add_row, names_of, set_values, values_of
from storage.oauth import shares
from storage.oauth.moments import with_moments

Kind = Literal["first", "invitation", "password", "sign_in"]


class Link(Struct, frozen=True, kw_only=True):
    """A link that works once, until `expires_at`; `user_id` is whose password it sets or who signs in by it, `made_by`
    the operator who made it (None: by command or at a start). `ended_at` is when it was revoked, or refused its
    last taken name."""

    secret_hash: str
    kind: Kind
    made_at: datetime
    expires_at: datetime
    user_id: str | None = None
    made_by: str | None = None
    used_at: datetime | None = None
    ended_at: datetime | None = None
    taken_names: int = 0
    told_at: datetime | None = None


def add(session: Session, link: Link) -> None:
    """Store a link."""
    add_row(session, "oauth_links", **values_of(link))


def find(session: Session, secret_hash: str) -> Link | None:
    """The link with this hash, whether or not it still works; None where there is none."""
    return next(iter(_where(session, "secret_hash = $1", secret_hash)), None)


def open_invitations(session: Session, *, now: datetime) -> list[Link]:
    """The invitations that nobody has used, revoked or let expire, the one made last first."""
    condition = "kind = 'invitation' AND used_at IS NULL AND ended_at IS NULL AND expires_at > $1"
    return _where(session, f"{condition} ORDER BY made_at DESC, secret_hash", now)


def use(session: Session, link: Link, *, now: datetime) -> bool:
    """Use the link up; False where somebody was faster, or it has ended meanwhile."""
    return set_values(session, "oauth_links", _open(link), used_at=now)


def end(session: Session, secret_hash: str, *, now: datetime) -> bool:
    """End a link that was not used; False where there is none."""
    return set_values(
        session, "oauth_links", {"secret_hash": secret_hash, "used_at": None, "ended_at": None}, ended_at=now
    )


def end_of_user(session: Session, user_id: str, *, now: datetime) -> None:
    """End the links that set this user's password or let somebody in as them."""
    set_values(session, "oauth_links", {"user_id": user_id, "used_at": None, "ended_at": None}, ended_at=now)


def count_taken_name(session: Session, link: Link, *, at_most: int, now: datetime) -> None:
    """Count a taken name that was tried with the link, which ends with the last of `at_most`, and with it what was
    offered to whoever uses it."""
    count = link.taken_names + 1
    is_over = count >= at_most
    is_open = set_values(session, "oauth_links", _open(link), taken_names=count, ended_at=now if is_over else None)
    if is_open and is_over:
        shares.end_of_invitation(session, link.secret_hash, now=now)


def tell(session: Session, user_id: str, *, now: datetime) -> Link | None:
    """The link used last by which the user's password was set, or somebody signed in as them, without their being told;
    they count as told of all from now on. None where there is nothing to tell."""
    condition = "user_id = $1 AND used_at IS NOT NULL AND told_at IS NULL ORDER BY used_at DESC"
    untold = _where(session, condition, user_id)
    for each in untold:
        set_values(session, "oauth_links", {"secret_hash": each.secret_hash}, told_at=now)
    return untold[0] if untold else None


def remove_first(session: Session) -> None:
    """Delete the links by which somebody could become the first person of the store."""
    session.execute("DELETE FROM oauth_links WHERE kind = 'first'")


def remove_all(session: Session, user_id: str) -> None:
    """Delete the links that let this user in or set their password, and the invitations that they made and nobody has
    used."""
    session.execute("DELETE FROM oauth_links WHERE user_id = $1 OR (made_by = $1 AND used_at IS NULL)", user_id)


def sweep(session: Session, *, day_ago: datetime) -> None:
    """Delete the links that expired before this time, but those of whose use somebody has still to be told."""
    condition = "expires_at < $1 AND (user_id IS NULL OR used_at IS NULL OR told_at IS NOT NULL)"
    session.execute(f"DELETE FROM oauth_links WHERE {condition}", day_ago)


def _open(link: Link) -> dict[str, object]:
    return {"secret_hash": link.secret_hash, "used_at": None, "ended_at": None, "taken_names": link.taken_names}


def _where(session: Session, condition: str, *parameters: object) -> list[Link]:
    rows = session.rows(f"SELECT {names_of(Link)} FROM oauth_links WHERE {condition}", *parameters)
    return [Link(**with_moments(row)) for row in rows]
