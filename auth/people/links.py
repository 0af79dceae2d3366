"""Links by which people come in or get a new password: each works once, and its secret is shown once and kept as a
hash.

The secret stands behind the # of an address, which browsers send to nobody; a page sends it in a form. Looking at a
link uses nothing up.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal

from auth import lifetimes
from auth.instants import Now
from auth.people.names import as_stored, is_good_name
from auth.people.new_passwords import Weakness, weakness
from auth.people.password_change import PasswordChange
from auth.people.password_hashing import Passwords
from auth.policy import Policy
from auth.secret_text import new_secret, stored_hash
from auth.security_events import Events
from storage import users
from storage.database import Database, Session, without_zone
from storage.oauth import links, passkeys, shares
from storage.oauth.links import Kind, Link
from storage.oauth.passkeys import Passkey
from storage.users import User

PATH = "/join"
JOINING: tuple[Kind, ...] = ("first", "invitation")
TAKEN_NAMES_MAX = 20  # that one link may learn of
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")  # what `new_secret` makes

Refused = Literal["over", "bad_name", "taken"] | Weakness


class _Over(Exception):
    """Takes back what a transaction has done by a link."""


@dataclass(eq=False)
class OneTimeLinks:
    """Makes, finds, revokes and uses links; whatever is done by one is logged and recorded."""

    _database: Database
    _policy: Policy
    _passwords: Passwords
    _password_change: PasswordChange
    _events: Events
    _now: Now

    def first(self) -> str:
        """Make the address at which somebody becomes the first person of this store, and operator: it works for 24
        hours, until there is anybody. An earlier one ends."""
        self._database.atomically(links.remove_first)
        return self._make("first", lifetimes.FIRST_LINK)

    def invite(self, by: User | None = None) -> str:
        """Make an address at which somebody can become a user within seven days, for an operator or (None) by
        command."""
        address = self._make("invitation", lifetimes.INVITATION, made_by=by)
        self._did(by, "inviteUser")
        return address

    def invitations(self) -> list[Link]:
        """The invitations that still work, the one made last first."""
        return links.open_invitations(self._database, now=self._now())

    def revoke(self, secret_hash: str, by: User | None = None) -> bool:
        """End an open invitation, named by its hash, and what was offered with it; False where there is none."""
        if all(each.secret_hash != secret_hash for each in self.invitations()):
            return False

        def work(session: Session) -> bool:
            shares.end_of_invitation(session, secret_hash, now=self._now())
            return links.end(session, secret_hash, now=self._now())

        is_ended = self._database.atomically(work)
        if is_ended:
            self._did(by, "revokeInvitation")
        return is_ended

    def new_password(self, user: User, by: User | None = None) -> str:
        """Make an address at which this user's password can be set anew within 24 hours, for an operator or (None) by
        command. Their second factor stays."""
        address = self._make("password", lifetimes.PASSWORD_LINK, user=user, made_by=by)
        self._events.info("password link made", user=user.id)
        self._events.did(user.id, "makePasswordLink")
        return address

    def find(self, shown: str) -> Link | None:
        """The link that still works and that this text, an address or its secret, shows; None for anything else, for
        whatever reason."""
        secret = shown.rpartition("#")[2].strip()
        return self._live(self._database, stored_hash(secret)) if _SECRET.fullmatch(secret) else None

    def find_hashed(self, secret_hash: str) -> Link | None:
        """The link of this hash by which somebody can still become a user; None for any other."""
        link = self._live(self._database, secret_hash)
        return link if link is not None and link.kind in JOINING else None

    def person_of(self, link: Link) -> User | None:
        """Whose password this link sets, or who signs in by it; None for a link by which somebody becomes a user."""
        return users.find(self._database, link.user_id) if link.user_id is not None else None

    def become_user(self, shown: str, *, name: str, password: str, home_currency: str, address: str) -> User | Refused:
        """Use a link up to become a user with this name and password; the first person becomes operator. Returns why
        not, and then only a name that is taken costs anything: with twenty of them the link ends. Raises Busy."""
        link, name = self.find(shown), as_stored(name)
        if link is None or link.kind not in JOINING:
            return "over"
        if not is_good_name(name):
            return "bad_name"
        if fault := weakness(password, user_name=name):
            return fault
        hashed = self._passwords.hash(password)
        return self.come_in(link, name, password_hash=hashed, home_currency=home_currency, address=address)

    def come_in(
        self,
        link: Link | None,
        name: str,
        *,
        password_hash: str | None,
        home_currency: str,
        address: str,
        user_id: str | None = None,
        also: Callable[[Session, User], bool] = lambda _session, _user: True,
    ) -> User | Refused:
        """Make a user of this name, by a link, which is used up, or (None) because the household's provider knows them;
        `also` stores by what they sign in, in the same transaction, and may say no. Returns why not, and then only a
        name that is taken costs the link anything."""
        name = as_stored(name)
        if not is_good_name(name):
            return "bad_name"
        user = users.new(
            name,
            password_hash=password_hash,
            home_currency=home_currency,
            now=without_zone(self._now()),
            is_operator=link is not None and link.kind == "first",
            user_id=user_id,
        )

        def work(session: Session) -> Refused | None:
            present = self._live(session, link.secret_hash) if link is not None else None
            if link is not None and present is None:
                return "over"
            if users.find_by_name(session, name) is not None:
                if present is not None:
                    links.count_taken_name(session, present, at_most=TAKEN_NAMES_MAX, now=self._now())
                return "taken"
            if present is not None and not links.use(session, present, now=self._now()):
                return "over"
            users.add_to(session, user)
            if present is not None:
                self._meet(session, present, user)
            if not also(session, user):
                raise _Over
            return None

        try:
            refused = self._database.atomically(work)
        except _Over:
            refused = "over"
        if refused is not None:
            self._events.info("link refused", reason=refused, address=address)
            return refused
        kind = link.kind if link is not None else "provider"
        self._events.info("somebody came in by a link", kind=kind, user=user.id, address=address)
        self._events.did(user.id, "becomeUser")
        if link is not None and shares.of_receiver(self._database, user.id):
            self._events.did(user.id, "getOffer")
        return user

    def _meet(self, session: Session, link: Link, user: User) -> None:
        """Offer somebody what waits for whoever uses this invitation, as if it were offered now."""
        key, open_until = users.compared_name(user.name), self._now() + lifetimes.OFFER
        shares.meet(session, link.secret_hash, user_id=user.id, name=user.name, key=key, open_until=open_until)

    def is_free(self, shown: str, name: str) -> Refused | None:
        """None where somebody who has this link could be called so; else why not, and a taken name counts."""
        link, name = self.find(shown), as_stored(name)
        if link is None or link.kind not in JOINING:
            return "over"
        if not is_good_name(name):
            return "bad_name"
        if users.find_by_name(self._database, name) is None:
            return None
        now = self._now()
        self._database.atomically(
            lambda session: links.count_taken_name(session, link, at_most=TAKEN_NAMES_MAX, now=now)
        )
        return "taken"

    def become_user_by_passkey(
        self, shown: str, *, name: str, user_id: str, passkey: Passkey, home_currency: str, address: str
    ) -> User | Refused:
        """Use a link up to become a user with this name, who signs in by a passkey that was made for this id. Returns
        why not, as `become_user` does."""
        link = self.find(shown)
        if link is None or link.kind not in JOINING:
            return "over"

        def also(session: Session, user: User) -> bool:
            return passkeys.add(session, user.id, passkey, at_most=1)

        return self.come_in(
            link, name, password_hash=None, home_currency=home_currency, address=address, user_id=user_id, also=also
        )

    def set_password(self, shown: str, password: str, *, address: str) -> User | Refused:
        """Use a link up to set its user's password anew; all their browsers are signed out, and their other links end.
        Returns why not, and then nothing has changed. Raises Busy."""
        link = self.find(shown)
        user = self.person_of(link) if link is not None and link.kind == "password" else None
        if link is None or user is None:
            return "over"
        if fault := weakness(password, user_name=user.name):
            return fault
        hashed = self._passwords.hash(password)
        use = partial(links.use, link=link, now=self._now())
        if not self._password_change.set(user, hashed, "setPasswordByLink", only_if=use):
            return "over"
        self._events.info("password set by a link", user=user.id, address=address)
        return user

    def sign_in_link(self, user: User) -> str:
        """Make an address at which this user can sign in once, within ten minutes, while the household's provider is
        away. Their second factor stays."""
        address = self._make("sign_in", lifetimes.SIGN_IN_LINK, user=user)
        self._events.info("sign-in link made", user=user.id)
        self._events.did(user.id, "makeSignInLink")
        return address

    def sign_in(self, shown: str, *, address: str) -> User | None:
        """Use a link up to sign its user in; None where it does not work, or they are paused."""
        link = self.find(shown)
        user = self.person_of(link) if link is not None and link.kind == "sign_in" else None
        if link is None or user is None or user.paused_at is not None:
            return None

        def work(session: Session) -> bool:
            is_first = links.use(session, link, now=self._now())
            if is_first:
                self._events.tell(session, user.id, "signInByLink")
            return is_first

        if not self._database.atomically(work):
            return None
        self._events.info("signed in by a link", user=user.id, address=address)
        self._events.did(user.id, "signInByLink")
        return user

    def tell(self, user_id: str) -> Link | None:
        """The link by which the user's password was set, or somebody signed in as them, if they have not been told;
        they count as told from now on. None where there is nothing to tell."""
        return self._database.atomically(lambda session: links.tell(session, user_id, now=self._now()))

    def _make(self, kind: Kind, lifetime: timedelta, *, user: User | None = None, made_by: User | None = None) -> str:
        secret, now = new_secret(), self._now()
        link = Link(
            secret_hash=stored_hash(secret),
            kind=kind,
            made_at=now,
            expires_at=now + lifetime,
            user_id=user.id if user is not None else None,
            made_by=made_by.id if made_by is not None else None,
        )
        self._database.atomically(lambda session: links.add(session, link))
        return f"{self._policy.auth_url}{PATH}#{secret}"

    def _live(self, session: Session, secret_hash: str) -> Link | None:
        link = links.find(session, secret_hash)
        if link is None or link.used_at is not None or link.ended_at is not None or self._now() >= link.expires_at:
            return None
        return None if link.kind == "first" and users.is_anybody(session) else link

    def _did(self, by: User | None, deed: Literal["inviteUser", "revokeInvitation"]) -> None:
        self._events.info(deed, by=by.id if by is not None else "command")
        if by is not None:
            self._events.did(by.id, deed)
