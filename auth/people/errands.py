"""Errands of browsers at the household's provider, and who came back from one; each is for one browser, and once. So
are questions to a person through an app."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from auth import lifetimes
from auth.instants import Now
from auth.people.sessions import Browser, Via
from auth.secret_text import stored_hash
from storage.database import Database, Session
from storage.oauth import identities
from storage.oauth.identities import Errand, Purpose


class SignedInThere(msgspec.Struct, frozen=True, kw_only=True):
    """Who signed in at the provider, by `via`, and how they are shown; `was_at` is when they showed there who they are,
    None where it does not say."""

    via: Via
    subject: str
    shown: str
    was_at: datetime | None = None


@dataclass(eq=False)
class Errands:
    """Stores errands under the hash of a secret, and gives them back to the browser that has it."""

    _database: Database
    _now: Now

    def begin(
        self,
        secret: str,
        browser: Browser,
        purpose: Purpose,
        *,
        goes_on: str = "",
        link_hash: str | None = None,
        told: SignedInThere | None = None,
    ) -> None:
        """Store an errand of this browser for ten minutes; `told` is who it is about, once the provider has said so."""
        errand = Errand(
            secret_hash=stored_hash(secret),
            session_hash=browser.id_hash,
            purpose=purpose,
            expires_at=self._now() + lifetimes.ERRAND,
            user_id=browser.user_id,
            goes_on=goes_on,
            link_hash=link_hash,
            told=msgspec.json.encode(told).decode() if told is not None else None,
        )
        self._database.atomically(lambda session: identities.begin(session, errand, now=self._now()))

    def note_once(self, what: str) -> bool:
        """Note something that may come once; False where it came before."""
        errand = Errand(
            secret_hash=stored_hash(what),
            session_hash="",
            purpose="signed out",
            expires_at=self._now() + 2 * (lifetimes.ERRAND + lifetimes.PROVIDER_LEEWAY),
        )
        return self._database.atomically(lambda session: identities.begin(session, errand, now=self._now()))

    def ask(self, secret: str, asker: str, user_id: str) -> None:
        """Note a question to a user, asked through `asker`, for ten minutes."""
        errand = Errand(
            secret_hash=stored_hash(secret),
            session_hash=stored_hash(asker),
            purpose="ask",
            expires_at=self._now() + lifetimes.ERRAND,
            user_id=user_id,
        )
        self._database.atomically(lambda session: identities.begin(session, errand, now=self._now()))

    def answer(self, secret: str, asker: str, said: str) -> bool:
        """Note what the user said; False where nothing open was asked so, or it is answered."""
        whose, now = stored_hash(asker), self._now()
        return self._database.atomically(
            lambda session: identities.answer(session, stored_hash(secret), session_hash=whose, told=said, now=now)
        )

    def answer_to(self, secret: str, asker: str) -> str | None:
        """What the user said; None as long as there is no answer."""
        found = identities.find_errand(
            self._database, stored_hash(secret), session_hash=stored_hash(asker), now=self._now()
        )
        return found.told if found is not None else None

    def find(self, browser: Browser, secret: str) -> Errand | None:
        """The open errand of this browser; None for any other."""
        return identities.find_errand(
            self._database, stored_hash(secret), session_hash=browser.id_hash, now=self._now()
        )

    def take(self, browser: Browser, secret: str) -> Errand | None:
        """The open errand of this browser, which is done with that; None for every caller but the first."""
        return self._database.atomically(lambda session: self.take_in(session, browser, secret))

    def take_in(self, session: Session, browser: Browser, secret: str) -> Errand | None:
        """As `take`, inside the caller's transaction."""
        return identities.take(session, stored_hash(secret), session_hash=browser.id_hash, now=self._now())


def told_of(errand: Errand) -> SignedInThere:
    """Who came back from an errand, of whom the person is asked something now."""
    return msgspec.json.decode(errand.told or "", type=SignedInThere)
