"""Shares: which accounts one person, the giver, lets another one, the receiver, see."""

import json
from collections.abc import Collection, Iterable
from datetime import datetime

from msgspec import Struct

from storage.database import Row, Session, add_row, as_json, names_of, set_values, values_of
from storage.oauth.grants import Terms
from storage.oauth.moments import with_moments

INVITED = "invitation "  # begins the `receiver_key` of an offer to whoever uses an invitation, whose hash follows
NOBODY_YET = "…"  # the `receiver_name` of such an offer
UNSEEN = ""  # the mark of a share that has to be looked at, whatever the states


class Share(Struct, frozen=True, kw_only=True):
    """A share of the giver's `accounts` (None: all), or of all but these. It is an offer until `accepted_at`, to whom
    `receiver_name` meant when it was made (`receiver_id`, None for nobody), and lasts until `ends_at` (None: until
    somebody ends it, at `ended_at`). It rests unless `life` is the store's present incarnation. `held` are accounts of
    the receiver that nothing but it tells: no app of theirs may see them, unless the giver lets it (`pass_on`). The
    giver's categories and notes come along `with_words`; the receiver has those of the digest `words_told`."""

    id: str
    giver_id: str
    giver_name: str
    receiver_id: str | None
    receiver_key: str
    receiver_name: str
    accounts: tuple[str, ...] | None
    all_but: bool
    offered_at: datetime
    open_until: datetime
    life: str
    pass_on: bool = False
    with_words: bool = False
    words_told: str = ""
    accepted_at: datetime | None = None
    ends_at: datetime | None = None
    ended_at: datetime | None = None
    seen: str = UNSEEN
    held: tuple[str, ...] = ()

    @property
    def is_for_invited(self) -> bool:
        """Whether it waits for whoever uses an invitation."""
        return self.receiver_key.startswith(INVITED)

    @property
    def terms(self) -> Terms:
        """What is shared, as the terms of a grant."""
        return Terms(accounts=self.accounts, all_but=self.all_but)

    def is_live(self, now: datetime) -> bool:
        """Whether it was accepted and has not ended; it may rest nevertheless."""
        return self.accepted_at is not None and self.ended_at is None and (self.ends_at is None or now < self.ends_at)

    def is_open(self, now: datetime) -> bool:
        """Whether it is an offer that can still be accepted."""
        is_over = self.ends_at is not None and now >= self.ends_at
        return self.accepted_at is None and self.ended_at is None and now < self.open_until and not is_over


def add(session: Session, share: Share) -> None:
    """Store a share."""
    values = values_of(share)
    held = as_json(list(values.pop("held")))
    add_row(session, "oauth_shares", **values | _terms(share.terms), held=held)


def find(session: Session, share_id: str) -> Share | None:
    """The share with this id; None where there is none."""
    return next(iter(_where(session, "id = $1", share_id)), None)


def of_giver(session: Session, user_id: str) -> list[Share]:
    """What this person shares or has offered and not ended, the first offered first."""
    return _where(session, "giver_id = $1 AND ended_at IS NULL ORDER BY offered_at, id", user_id)


def of_receiver(session: Session, user_id: str) -> list[Share]:
    """What is shared with this person or offered to them and not ended, the first offered first."""
    return _where(session, "receiver_id = $1 AND ended_at IS NULL ORDER BY offered_at, id", user_id)


def accepted(session: Session) -> list[Share]:
    """All accepted shares of the store, also those that have ended and were not cleared yet."""
    return _where(session, "accepted_at IS NOT NULL ORDER BY id")


def accept(session: Session, share: Share, *, now: datetime) -> bool:
    """Accept an offer; False where that was done already or it has ended."""
    return set_values(session, "oauth_shares", {"id": share.id, "accepted_at": None, "ended_at": None}, accepted_at=now)


def meet(session: Session, secret_hash: str, *, user_id: str, name: str, key: str, open_until: datetime) -> None:
    """Offer to this person what was offered to whoever uses the invitation with this hash, which they have."""
    whom = {"receiver_id": user_id, "receiver_name": name, "receiver_key": key}
    waiting = {"receiver_key": INVITED + secret_hash, "ended_at": None}
    set_values(session, "oauth_shares", waiting, **whom, open_until=open_until)


def end_of_invitation(session: Session, secret_hash: str, *, now: datetime) -> None:
    """End what was offered to whoever uses the invitation with this hash."""
    set_values(session, "oauth_shares", {"receiver_key": INVITED + secret_hash, "ended_at": None}, ended_at=now)


def change(
    session: Session,
    share_id: str,
    *,
    terms: Terms,
    ends_at: datetime | None,
    pass_on: bool = False,
    with_words: bool = False,
) -> None:
    """Replace what is shared, until when, whether apps may see it and words come along; the share has to be looked
    at."""
    changed = {**_terms(terms), "ends_at": ends_at, "pass_on": pass_on, "with_words": with_words}
    set_values(session, "oauth_shares", {"id": share_id}, **changed, seen=UNSEEN)


def end(session: Session, share_id: str, *, now: datetime) -> bool:
    """End a share or an offer; False where it had ended already."""
    return set_values(session, "oauth_shares", {"id": share_id, "ended_at": None}, ended_at=now, seen=UNSEEN)


def go_on(session: Session, share_id: str, *, life: str) -> None:
    """Let a share that rests go on in this incarnation of the store."""
    set_values(session, "oauth_shares", {"id": share_id}, life=life, seen=UNSEEN)


def note_seen(session: Session, share_id: str, *, before: str, seen: str) -> None:
    """Note the states in which nothing was left to hand over, unless the share was changed meanwhile."""
    set_values(session, "oauth_shares", {"id": share_id, "seen": before}, seen=seen)


def note_words(session: Session, share_id: str, digest: str) -> None:
    """Note which words of the giver the receiver has: none for an empty digest."""
    set_values(session, "oauth_shares", {"id": share_id}, words_told=digest)


def hold_back(session: Session, share_id: str, account_ids: Collection[str]) -> None:
    """Store which accounts of the receiver nothing but this share tells."""
    set_values(session, "oauth_shares", {"id": share_id}, held=as_json(sorted(account_ids)))


def remove(session: Session, share_id: str) -> None:
    """Delete a share of which nothing is left."""
    session.execute("DELETE FROM oauth_shares WHERE id = $1", share_id)


def remove_all(session: Session, user_id: str, *, now: datetime) -> None:
    """Delete what is shared with a person and what they have offered, and end what they share."""
    session.execute(
        "DELETE FROM oauth_shares WHERE receiver_id = $1 OR (giver_id = $1 AND accepted_at IS NULL)", user_id
    )
    for share in of_giver(session, user_id):
        end(session, share.id, now=now)


def sweep(session: Session, *, now: datetime) -> None:
    """Delete offers that have ended or that nobody has accepted in time."""
    session.execute(
        "DELETE FROM oauth_shares WHERE accepted_at IS NULL AND (open_until < $1 OR ended_at IS NOT NULL)", now
    )


def _terms(terms: Terms) -> dict[str, object]:
    return {
        "accounts": as_json(list(terms.accounts)) if terms.accounts is not None else None,
        "all_but": terms.all_but,
    }


def _where(session: Session, condition: str, *parameters: object) -> list[Share]:
    return list(map(_share, session.rows(f"SELECT {COLUMNS} FROM oauth_shares WHERE {condition}", *parameters)))


def _share(row: Row) -> Share:
    listed: Iterable[str] | None = json.loads(row["accounts"]) if row["accounts"] is not None else None
    also = {"accounts": tuple(listed) if listed is not None else None, "held": tuple(json.loads(row["held"]))}
    return Share(**with_moments(row) | also)


COLUMNS = names_of(Share)
