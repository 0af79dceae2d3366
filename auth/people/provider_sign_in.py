"""Signing in at the household's provider: errands there and back, who is who, and being signed out from there.

Somebody is named by issuer and subject alone. Name and e-mail address can be another person's tomorrow, so they link
nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from auth import lifetimes
from auth.instants import Now
from auth.people.errands import Errands, SignedInThere, told_of
from auth.people.identity_provider import Answered, IdentityProvider, with_query
from auth.people.links import OneTimeLinks, Refused
from auth.people.names import as_stored, is_good_name
from auth.people.provider_metadata import ProviderRefused, ProviderSettings
from auth.people.second_factor import SecondFactors
from auth.people.sessions import Browser, Sessions, Via
from auth.people.sign_in import Outcome, SignIn
from auth.secret_text import keyed_hash, new_secret, stored_hash
from auth.security_events import Events
from storage import users
from storage.database import Database, Session
from storage.oauth import identities
from storage.oauth.identities import Errand, Identity, Purpose
from storage.users import User

SHOWN_MAX = 64
TIME_MAX = 10**11  # of a number of seconds that is taken for a time
Ended = Literal["over", "refused", "not_admitted", "unknown", "other_person", "elsewhere", "has_one", "not_proven"]
"""Why an errand ended without success: it is over, or of another browser; the provider refused or proved nothing; none
of the person's groups may enter; nobody here is linked to them; another person came than was asked for; the identity is
another user's; the user has another identity there; the sign-in there was not a new one."""


class Back(Struct, frozen=True, kw_only=True):
    """What a browser brings back from the provider: `ended`, why it came to nothing; or the `outcome` of signing in; or
    the `secret` of a form in which somebody who is `shown` so there chooses a name, or says that this is them; or none
    of these, where somebody has proven who they are, or is signed in already. `goes_on` is what waits here."""

    purpose: Purpose
    goes_on: str = ""
    ended: Ended | None = None
    outcome: Outcome | None = None
    secret: str = ""
    shown: str = ""


@dataclass(eq=False)
class ProviderSignIn:
    """Sends browsers to the provider and takes them back; whatever is done is logged and recorded."""

    provider: IdentityProvider
    _database: Database
    _errands: Errands
    _sessions: Sessions
    _sign_in: SignIn
    _second_factors: SecondFactors
    _links: OneTimeLinks
    _key: bytes
    _events: Events
    _now: Now

    @property
    def settings(self) -> ProviderSettings:
        """The operator's decisions about the provider."""
        return self.provider.settings

    def begin(self, browser: Browser, purpose: Purpose, *, goes_on: str = "", link_hash: str | None = None) -> str:
        """The address at the provider to which this browser is sent, once, within ten minutes; `goes_on` is what waits
        here meanwhile, `link_hash` that of the invitation by which somebody wants to come in. Raises ProviderAway."""
        state = new_secret()
        nonce, verifier = self._made_of(state)
        address = self.provider.address(state=state, nonce=nonce, verifier=verifier, is_proof=purpose == "prove")
        self._errands.begin(state, browser, purpose, goes_on=goes_on, link_hash=link_hash)
        return address

    def back(
        self, browser: Browser, *, state: str, code: str | None, iss: str | None, home_currency: str, address: str
    ) -> Back:
        """What comes of an errand whose browser is back, with a code or (None) without one; `home_currency` is that of
        somebody new. Raises ProviderAway."""
        errand = self._errands.take(browser, state)
        if errand is None:
            return Back(purpose="sign in", ended="over")
        nonce, verifier = self._made_of(state)
        try:
            self.provider.check_response(iss)
            if code is None:
                raise ProviderRefused("the person or the provider declined")
            answered = self.provider.redeem(code, nonce=nonce, verifier=verifier)
            is_admitted, told = self._is_admitted(answered), self._told(answered)
        except ProviderRefused as error:
            self._events.alarm("sign-in at the provider refused", reason=str(error).replace(" ", "_"), address=address)
            return Back(purpose=errand.purpose, goes_on=errand.goes_on, ended="refused")
        if not is_admitted:
            self._events.alarm("of no group that may enter", address=address)
            return Back(purpose=errand.purpose, goes_on=errand.goes_on, ended="not_admitted")
        if errand.purpose not in ("sign in", "join"):
            return self._proven(browser, errand, told)
        user = self._user_of(self._database, told)
        if browser.user_id is not None:
            return Back(purpose=errand.purpose, goes_on=errand.goes_on)  # somebody has signed in in another tab
        if user is None:
            return self._new_person(browser, errand, told, home_currency=home_currency, address=address)
        if user.paused_at is None:
            return self._let_in(browser, errand, user, told, address=address)
        self._events.did(user.id, "signIn", is_refused=True)
        return Back(purpose=errand.purpose, goes_on=errand.goes_on, outcome=Outcome(is_paused=True))

    def name(
        self, browser: Browser, secret: str, name: str, *, home_currency: str, address: str
    ) -> Back | Literal["bad_name", "taken"]:
        """Make a user of this name of the person for whom `back` has asked; or say why the name cannot be had, and then
        the form goes on."""
        errand = self._errands.find(browser, secret)
        if errand is None or errand.purpose != "name":
            return Back(purpose="name", ended="over")
        told = told_of(errand)
        made = self._become(browser, errand, told, name, home_currency=home_currency, address=address, secret=secret)
        if isinstance(made, User):
            return self._let_in(browser, errand, made, told, address=address)
        return made if made in ("bad_name", "taken") else Back(purpose="name", ended="over")

    def confirm(self, browser: Browser, secret: str) -> Back:
        """Link the identity about which `back` has asked to the user who is signed in in this browser."""
        errand = self._errands.take(browser, secret)
        if errand is None or errand.purpose != "confirm" or browser.user_id is None:
            return Back(purpose="confirm", ended="over")
        return Back(purpose="confirm", ended=self.link(browser.user_id, told_of(errand)))

    def identity_of(self, user_id: str, *, at: Session | None = None) -> Identity | None:
        """The identity at this provider by which a user may sign in, as the session `at` sees it; None where none is
        linked."""
        linked = identities.of_user(at or self._database, user_id)
        return next((each for each in linked if each.issuer == self._issuer), None)

    def link(self, user_id: str, told: SignedInThere) -> Ended | None:
        """Link somebody at the provider to a user; returns why not."""

        def work(session: Session) -> Ended | None:
            present = self._user_of(session, told)
            if present is not None:
                return None if present.id == user_id else "elsewhere"
            if any(each.issuer == self._issuer for each in identities.of_user(session, user_id)):
                return "has_one"
            self._store(session, user_id, told)
            self._events.tell(session, user_id, "linkProvider")
            return None

        ended = self._database.atomically(work)
        if ended is None:
            self._events.info("linked to the provider", user=user_id)
            self._events.did(user_id, "linkProvider")
        return ended

    def link_subject(self, user_id: str, subject: str) -> Ended | None:
        """Link the person with this subject to a user, as an operator says by command; returns why not."""
        return self.link(
            user_id, SignedInThere(via=self._via(subject, None), subject=subject, shown=subject[:SHOWN_MAX])
        )

    def unlink(self, user_id: str, *, check: Callable[[Session], None] = lambda _session: None) -> bool:
        """Unlink a user from the provider, unless `check` raises afterwards in the same transaction, and end the
        sessions that began there; False where they were not linked."""
        identity = self.identity_of(user_id)
        if identity is None:
            return False

        def work(session: Session) -> bool:
            was_there = identities.remove(session, user_id, identity.id_hash)
            check(session)
            return was_there

        is_gone = self._database.atomically(work)
        self._end_sessions(identity.id_hash, None)
        self._events.info("unlinked from the provider", user=user_id)
        self._events.did(user_id, "unlinkProvider")
        return is_gone

    def sign_out_address(self, browser: Browser, back_to: str) -> str:
        """Where a person can sign out of the provider too, who signed in there and has signed out here; empty where
        that is not offered. `back_to` is an address of ours. Raises ProviderAway."""
        end_session = self.provider.metadata().end_session if browser.via is not None else ""
        parameters = {"client_id": self.settings.client_id, "post_logout_redirect_uri": back_to}
        return with_query(end_session, parameters) if end_session else ""

    def signed_out_there(self, token: str) -> None:
        """End the browser sessions that a logout token names: those of its `sid`, or without one, of its `sub` alone.
        Apps go on. Raises ProviderRefused, also for a token that came before, and ProviderAway."""
        claims = self.provider.verify_logout_token(token)
        if not self._errands.note_once(f"jti {self._issuer} {claims['jti']}"):
            raise ProviderRefused("this logout token came before")
        subject, sid = claims.get("sub"), claims.get("sid")
        identity_hash = self._via(subject, None).identity_hash if subject is not None else None
        ended = self._end_sessions(identity_hash, self._hash("session", sid) if sid is not None else None)
        self._events.info("signed out by the provider", sessions=str(ended))

    def _let_in(self, browser: Browser, errand: Errand, user: User, told: SignedInThere, *, address: str) -> Back:
        """Sign a user in, or ask for their second factor."""
        is_lately = told.was_at is not None and self._now() - told.was_at < lifetimes.LATELY
        via = Via(identity_hash=told.via.identity_hash, provider_session=told.via.provider_session, is_proven=is_lately)
        if not self.settings.is_only and self._second_factors.is_on(user.id):
            outcome = Outcome(half=self._sessions.await_second_factor(browser, user.id, via=via))
        else:
            outcome = self._sign_in.let_in(user, browser, address=address, via=via)
        return Back(purpose=errand.purpose, goes_on=errand.goes_on, outcome=outcome)

    def _new_person(
        self, browser: Browser, errand: Errand, told: SignedInThere, *, home_currency: str, address: str
    ) -> Back:
        """Make a user of somebody unknown here under their name there, if that is free, or ask them for one; if they
        are invited, or new people may come."""
        if errand.link_hash is None and not self.settings.takes_new_people:
            self._events.alarm("nobody here is linked to who signed in at the provider", address=address)
            return Back(purpose=errand.purpose, goes_on=errand.goes_on, ended="unknown")
        name = as_stored(told.shown)
        if is_good_name(name) and users.find_by_name(self._database, name) is None:
            made = self._become(browser, errand, told, name, home_currency=home_currency, address=address)
            if isinstance(made, User):
                return self._let_in(browser, errand, made, told, address=address)
            if made == "over":
                return Back(purpose=errand.purpose, ended="over")
        secret = new_secret()
        self._errands.begin(secret, browser, "name", goes_on=errand.goes_on, link_hash=errand.link_hash, told=told)
        return Back(purpose="name", goes_on=errand.goes_on, secret=secret, shown=told.shown)

    def _become(
        self,
        browser: Browser,
        errand: Errand,
        told: SignedInThere,
        name: str,
        *,
        home_currency: str,
        address: str,
        secret: str | None = None,
    ) -> User | Refused:
        """Make a user who signs in at the provider; `secret` is that of the form in which they chose their name."""
        link = self._links.find_hashed(errand.link_hash) if errand.link_hash is not None else None
        if errand.link_hash is not None and link is None:
            return "over"

        def also(session: Session, user: User) -> bool:
            if secret is not None and self._errands.take_in(session, browser, secret) is None:
                return False
            if self._user_of(session, told) is not None:
                return False
            self._store(session, user.id, told)
            return True

        return self._links.come_in(
            link, name, password_hash=None, home_currency=home_currency, address=address, also=also
        )

    def _proven(self, browser: Browser, errand: Errand, told: SignedInThere) -> Back:
        """Go on for somebody who is signed in, and was when they were sent to the provider."""
        if browser.user_id is None or browser.user_id != errand.user_id:
            return Back(purpose=errand.purpose, ended="over")
        known = self._user_of(self._database, told)
        if errand.purpose == "prove":
            begun = errand.expires_at - lifetimes.ERRAND - lifetimes.PROVIDER_LEEWAY
            ended: Ended | None = None
            if known is None or known.id != browser.user_id:
                ended = "other_person"
            elif told.was_at is None or told.was_at < begun:
                ended = "not_proven"
            else:
                self._sessions.prove(browser)
            return Back(purpose="prove", goes_on=errand.goes_on, ended=ended)
        if known is not None:
            return Back(purpose="link", ended="elsewhere" if known.id != browser.user_id else None)
        secret = new_secret()
        self._errands.begin(secret, browser, "confirm", told=told)
        return Back(purpose="link", secret=secret, shown=told.shown)

    def _is_admitted(self, answered: Answered) -> bool:
        if not self.settings.groups_claim:
            return True
        held = answered.claim(self.settings.groups_claim)
        listed = [held] if isinstance(held, str) else held if isinstance(held, list) else []
        return any(isinstance(each, str) and each in self.settings.groups for each in listed)

    def _told(self, answered: Answered) -> SignedInThere:
        """Who has signed in; their name comes from userinfo where the ID token lacks it."""
        subject, sid, at = (answered.claims.get(name) for name in ("sub", "sid", "auth_time"))
        assert isinstance(subject, str), "verified"
        name = answered.claim("preferred_username")
        shown = "".join(filter(str.isprintable, name))[:SHOWN_MAX].strip() if isinstance(name, str) else ""
        is_time = isinstance(at, int) and not isinstance(at, bool) and 0 <= at < TIME_MAX
        return SignedInThere(
            via=self._via(subject, sid if isinstance(sid, str) else None),
            subject=subject,
            shown=shown or subject[:SHOWN_MAX],
            was_at=datetime.fromtimestamp(at, UTC) if is_time and at is not None else None,
        )

    def _user_of(self, session: Session, told: SignedInThere) -> User | None:
        """The user who is linked; None where nobody is, or an older program has removed the user alone."""
        identity = identities.find(session, told.via.identity_hash)
        return users.find(session, identity.user_id) if identity is not None else None

    def _store(self, session: Session, user_id: str, told: SignedInThere) -> None:
        identities.put(
            session,
            Identity(
                id_hash=told.via.identity_hash,
                user_id=user_id,
                issuer=self._issuer,
                subject=told.subject,
                shown=told.shown,
                linked_at=self._now(),
            ),
        )

    def _end_sessions(self, identity_hash: str | None, provider_session: str | None) -> int:
        """End the browser sessions that began by this identity, in this session there; returns how many."""
        found = identities.sessions_of(self._database, identity_hash=identity_hash, provider_session=provider_session)
        for each in found:
            self._sessions.end(each)
        return len(found)

    @property
    def _issuer(self) -> str:
        return self.settings.issuer.removesuffix("/")

    def _via(self, subject: str, sid: str | None) -> Via:
        session = self._hash("session", sid) if sid is not None else None
        return Via(identity_hash=self._hash("identity", subject), provider_session=session)

    def _hash(self, kind: str, named: str) -> str:
        return stored_hash(f"{kind} {self._issuer} {named}")

    def _made_of(self, state: str) -> tuple[str, str]:
        """The nonce and the verifier of an errand, made of its state, so that the store need not keep them."""
        return keyed_hash(self._key, f"nonce {state}"), keyed_hash(self._key, f"verifier {state}")
