"""Shares between people: offered by the giver, accepted by the receiver, changed by the giver, ended by either."""

from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from typing import Literal, NotRequired, TypedDict, Unpack

from auth import lifetimes
from auth.instants import Now
from auth.people.links import OneTimeLinks
from auth.record import Deed
from auth.security_events import Events
from auth.tokens.terms import is_within
from storage import users
from storage.database import Database, Session
from storage.oauth import shares
from storage.oauth.grants import Terms
from storage.oauth.shares import Share
from storage.users import User

OFFERS_MAX = 20  # open ones of one giver

Unoffered = Literal["self", "already", "many"]


class Shared(TypedDict):
    """What a giver decides about a share: the accounts, until when (None: until somebody ends it), whether the
    receiver's apps may see it, and whether the giver's categories and notes come along."""

    terms: Terms
    ends_at: datetime | None
    pass_on: NotRequired[bool]
    with_words: NotRequired[bool]


@dataclass(eq=False)
class Shares:
    """Offers, accepts, changes and ends shares; logs each step, and records it for both people. Who may do what is
    looked at here: a share that is not the person's own does not exist for them."""

    _database: Database
    _links: OneTimeLinks
    _events: Events
    _now: Now

    def invite(self, giver: User, by: User | None, *, life: str, **offered: Unpack[Shared]) -> str | None:
        """Make an address at which somebody can become a user, as `links.invite` does for `by`, and offer them a share
        there; None where twenty offers are open. Both end when the invitation is revoked."""
        address = self._links.invite(by)
        link = self._links.find(address)
        assert link is not None, "made just now"
        made = self._offer(giver, shares.NOBODY_YET, shares.INVITED + link.secret_hash, life, offered)
        if isinstance(made, Share):
            return address
        self._links.revoke(link.secret_hash, by)
        return None

    def offer(self, giver: User, name: str, *, life: str, **offered: Unpack[Shared]) -> Share | Unoffered:
        """Offer a share to the person of this name, if there is one, which the giver is not told. The caller has
        verified that the giver wants it. Returns why not, if that is to themselves, the person of this name has one, or
        twenty offers are open."""
        key = users.compared_name(name)
        return "self" if key == users.compared_name(giver.name) else self._offer(giver, name, key, life, offered)

    def _offer(self, giver: User, name: str, key: str, life: str, offered: Shared) -> Share | Unoffered:
        now = self._now()

        def work(session: Session) -> Share | Unoffered:
            present = [each for each in shares.of_giver(session, giver.id) if each.is_live(now) or each.is_open(now)]
            if any(each.receiver_key == key for each in present):
                return "already"
            if sum(each.is_open(now) for each in present) >= OFFERS_MAX:
                return "many"
            # Somebody is looked up either way, so that the time does not tell whether there is one
            receiver = users.find_by_name(session, name) or users.find(session, "")
            share = Share(
                id=f"shr_{token_hex(12)}",
                giver_id=giver.id,
                giver_name=giver.name,
                receiver_id=receiver.id if receiver is not None else None,
                receiver_key=key,
                receiver_name=name,
                accounts=offered["terms"].accounts,
                all_but=offered["terms"].all_but,
                offered_at=now,
                open_until=now + lifetimes.OFFER,
                ends_at=offered["ends_at"],
                life=life,
                pass_on=offered.get("pass_on", False),
                with_words=offered.get("with_words", False),
            )
            shares.add(session, share)
            self._events.tell(session, giver.id, "offerShare")
            return share

        made = self._database.atomically(work)
        if isinstance(made, Share):
            self._did(made, "offerShare", giver)
        return made

    def given_by(self, user_id: str) -> list[Share]:
        """What a person shares, and what they have offered that can still be accepted."""
        return self._present(shares.of_giver(self._database, user_id))

    def given_to(self, user_id: str) -> list[Share]:
        """What is shared with a person, and what they can accept."""
        return self._present(shares.of_receiver(self._database, user_id))

    def accept(self, receiver: User, share_id: str) -> bool:
        """Accept what was offered; False where nothing of this id can be accepted by this person."""
        share = next((each for each in self.given_to(receiver.id) if each.id == share_id), None)
        if share is None or share.accepted_at is not None:
            return False
        now = self._now()

        def work(session: Session) -> bool:
            is_first = shares.accept(session, share, now=now)
            for each in sorted((share.giver_id, receiver.id)) if is_first else ():
                self._events.tell(session, each, "acceptShare")
            return is_first

        is_first = self._database.atomically(work)
        if is_first:
            self._did(share, "acceptShare", receiver)
        return is_first

    def widens(self, share: Share, *, owned: set[str], **wanted: Unpack[Shared]) -> bool:
        """Whether the receiver would see more, of the giver's accounts (`owned`) and later ones, or longer, or the
        giver's words, or their apps would see it."""
        ends_at = wanted["ends_at"]
        is_longer = share.ends_at is not None and (ends_at is None or ends_at > share.ends_at)
        is_more = any(wanted.get(name, False) > getattr(share, name) for name in ("pass_on", "with_words"))
        return is_longer or is_more or not is_within(wanted["terms"], share.terms, owned)

    def change(self, giver: User, share: Share, *, is_wider: bool, **wanted: Unpack[Shared]) -> None:
        """Replace what is shared, until when, whether apps may see it and words come along; the caller has verified
        that the giver wants it where that `is_wider`."""
        self._database.atomically(lambda session: shares.change(session, share.id, **wanted))
        self._did(share, "widenShare" if is_wider else "narrowShare", giver)

    def end(self, user: User, share_id: str) -> bool:
        """End what this person gives or receives; False where there is nothing of this id."""
        found = [*self.given_by(user.id), *self.given_to(user.id)]
        share = next((each for each in found if each.id == share_id), None)
        if share is None:
            return False
        now = self._now()
        is_first = self._database.atomically(lambda session: shares.end(session, share.id, now=now))
        if is_first:
            self._did(share, "endShare" if share.giver_id == user.id else "leaveShare", user)
        return is_first

    def go_on(self, giver: User, share_id: str, *, life: str) -> bool:
        """Let a share that rests since the store was restored go on; False where this person gives none of this id."""
        share = next((each for each in self.given_by(giver.id) if each.id == share_id), None)
        if share is None:
            return False
        self._database.atomically(lambda session: shares.go_on(session, share.id, life=life))
        self._did(share, "resumeShare", giver)
        return True

    def handed_over(self, share: Share) -> None:
        """Note that something was handed over or taken back."""
        self._events.did(share.giver_id, "handOverShare")
        self._events.did(share.receiver_id or "", "handOverShare")

    def _present(self, found: list[Share]) -> list[Share]:
        now = self._now()
        return [each for each in found if each.is_live(now) or each.is_open(now)]

    def _did(self, share: Share, deed: Deed, by: User) -> None:
        self._events.info(deed, share=share.id, by=by.id)
        self._events.did(share.giver_id, deed)
        if share.receiver_id is not None:
            self._events.did(share.receiver_id, "getOffer" if deed == "offerShare" else deed)
