"""Signing in: name and password are checked against the throttles, then against the hash; also the change of a
password."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from msgspec import Struct

from auth.apps.clients import is_storable
from auth.instants import Now
from auth.people.new_passwords import Weakness, weakness
from auth.people.passkeys import Passkeys
from auth.people.password_change import PasswordChange
from auth.people.password_hashing import Busy, Passwords
from auth.people.second_factor import SecondFactors
from auth.people.sessions import Browser, Sessions, Via
from auth.people.throttle import Guessed, Reserved, Throttles
from auth.security_events import Events
from storage import users
from storage.database import Database
from storage.users import User


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of checking a password or a second factor. `browser` has passed, as the session that holds from now
    on; `half` has the right password and still needs the second factor; `known_browser` is a cookie for a browser that
    has signed in; `wait` is how long to wait before trying. With `is_paused`, the password is right, and an operator
    has paused the user. If none is set, the input was wrong."""

    browser: Browser | None = None
    half: Browser | None = None
    known_browser: str | None = None
    wait: timedelta | None = None
    is_paused: bool = False

    @property
    def wait_seconds(self) -> int:
        """The whole seconds to wait, up to one more than `wait`; 0 for none."""
        return int(self.wait.total_seconds()) + 1 if self.wait else 0


@dataclass(eq=False)
class SignIn:
    """Verifies who people are, with the same effort whether a user exists or not; limits and logs attempts."""

    _database: Database
    _sessions: Sessions
    _throttles: Throttles
    _passwords: Passwords
    _second_factors: SecondFactors
    _passkeys: Passkeys
    _password_change: PasswordChange
    _events: Events
    _now: Now
    _is_provider_only: bool = False  # passwords let nobody in

    def attempt(
        self, name: str, password: str, *, before: Browser | None, address: str, known_browser: str | None
    ) -> Outcome:
        """Check a name and a password; if they are right, sign the user in under a new session in place of `before`, or
        await their second factor. Counts, logs and records the attempt, and stores a hash with outdated parameters
        anew. `known_browser` is the content of the cookie that `Sessions.known_browser` makes, None without one. Raises
        Busy."""
        with self._throttles.turn(name):
            user = users.find_by_name(self._database, name) if is_storable(name) else None
            browser_name = self._sessions.knows(known_browser, user.id if user else None)
            reserved = self._reserve("sign-in held up", name=name, address=address, browser=browser_name)
            if isinstance(reserved, Outcome):
                return reserved
            stored = user.password_hash if user else None
            is_right = self._is_right(password, stored, reserved) and not self._is_provider_only
            if not is_right or user is None or stored is None:
                self._events.alarm("wrong password", account=name, address=address)
                if user is not None:
                    self._events.did(user.id, "signIn", is_refused=True)
                return Outcome()
            self._throttles.note_success(reserved)
            if self._passwords.is_outdated(stored):
                anew = self._passwords.hash(password)
                stored = anew if users.renew_password_hash(self._database, user, anew) else stored
            if user.paused_at is not None:
                self._events.info("password of a paused user", account=name, address=address, user=user.id)
                self._events.did(user.id, "signIn", is_refused=True)
                return Outcome(is_paused=True)
            if self._second_factors.is_on(user.id):
                self._events.info("password right, second factor asked", account=name, address=address, user=user.id)
                outcome = Outcome(half=self._sessions.await_second_factor(before, user.id))
            else:
                outcome = self.let_in(user, before, address=address)
            return self._unless_replaced(user, stored, outcome)

    def user_of(self, browser: Browser | None) -> User | None:
        """The user who is signed in with this browser; None where nobody is, or they are paused."""
        user = users.find(self._database, browser.user_id) if browser and browser.user_id else None
        return user if user is not None and user.paused_at is None else None

    def is_name_of(self, user_id: str | None, name: str) -> bool:
        """Whether the user with this id signs in with this name; False for None."""
        user = users.find(self._database, user_id) if user_id else None
        return user is not None and users.compared_name(user.name) == users.compared_name(name)

    def second_step(
        self, half: Browser, shown: str, *, address: str, known_browser: str | None, is_passkey: bool = False
    ) -> Outcome:
        """Check the second factor `shown` by a user whose password was right in the browser `half`: a code, or
        (`is_passkey`) the answer of a passkey; sign them in if it is right. Counts, logs and records the attempt.
        Raises Busy."""
        user = users.find(self._database, half.awaits_user_id or "")
        if user is None or user.paused_at is not None or self._sessions.resume(half.secret) is None:
            return Outcome()
        with self._throttles.turn(user.name):
            browser = self._sessions.knows(known_browser, user.id)

            def use() -> str | None:
                if is_passkey:
                    return "passkey" if self._passkeys.use(half, shown) else None
                return self._second_factors.use(user.id, shown)

            refused = self._use_second_factor(user, use, address=address, browser=browser)
            if refused is None:
                return self._unless_replaced(user, user.password_hash, self.let_in(user, half, address=address))
            if refused.wait is None:
                self._events.did(user.id, "signIn", is_refused=True)
            return refused

    def asks_password(self, user: User) -> bool:
        """Whether what needs a proof of who this signed-in user is asks for their password; else for a sign-in of the
        last five minutes."""
        return user.password_hash is not None and not self._is_provider_only

    def check_password(self, user: User, browser: Browser, *, password: str, address: str) -> Outcome:
        """Check a signed-in user's password once more, or that they have signed in lately (`asks_password`); the
        outcome's `browser` is this one if so. Wrong guesses count only against this browser, and are logged. Raises
        Busy."""
        with self._throttles.turn(user.name):
            return self._prove(user, browser, password=password, address=address)

    def check_second_factor(self, user: User, browser: Browser, typed: str, *, address: str) -> Outcome:
        """Use up a code of a signed-in user once more, one of the app or a recovery code; the outcome's `browser` is
        this one if it is right. Wrong guesses are counted like those of the second step, and logged. Raises Busy."""
        with self._throttles.turn(user.name):
            use = partial(self._second_factors.use, user.id, typed)
            refused = self._use_second_factor(user, use, address=address, browser=browser.id_hash)
            return refused if refused is not None else Outcome(browser=browser)

    def turn_on_second_factor(
        self, user: User, browser: Browser, typed: str, *, address: str
    ) -> tuple[str, ...] | Outcome:
        """Turn the second factor on if `typed` is the first code of the waiting set-up, sign out all other browsers,
        and return the recovery codes; else the outcome, wrong or with a wait. Raises Busy."""
        with self._throttles.turn(user.name):
            held_up = "set-up of the second factor held up"
            reserved = self._reserve(held_up, name=user.name, address=address, browser=browser.id_hash, of="first code")
            if isinstance(reserved, Outcome):
                return reserved
            end_others = partial(self._sessions.end_in, user_id=user.id, but=browser)
            codes = self._second_factors.confirm(user, typed, also=end_others)
            if codes is None:
                self._events.alarm("wrong first code", account=user.name, address=address)
                return Outcome()
            self._throttles.note_success(reserved)
            self._sessions.end_all(user.id, but=browser)  # also what a sign-in under way has stored meanwhile
            return codes

    def change_password(
        self, user: User, browser: Browser, *, current: str, new: str, address: str
    ) -> Weakness | Outcome:
        """Replace the password if the current one is right, give this browser a new session, and sign out all others.
        Returns what is wrong with the new password (then nothing changes), or the outcome of checking the current one,
        with the new session as `browser` if the password was changed. Raises Busy."""
        with self._throttles.turn(user.name):
            proof = self._prove(user, browser, password=current, address=address)
            if proof.browser is None:
                self._events.did(user.id, "changePassword", is_refused=True)
                return proof
            fault = weakness(new, user_name=user.name)
            if fault:
                return fault
            hashed = self._passwords.hash(new)
            is_same = partial(users.renew_password_hash, user=user, password_hash=hashed)
            if not self._password_change.set(user, hashed, "changePassword", only_if=is_same, but=browser):
                return Outcome()
            renewed = self._sessions.sign_in(browser, user.id, via=browser.via)  # a new id after every proof
            self._events.info("password changed", account=user.name, address=address, user=user.id)
            return self._unless_replaced(user, hashed, Outcome(browser=renewed))

    def by_passkey(self, browser: Browser, answer: str, *, address: str) -> Outcome:
        """Sign in whoever answers this browser's challenge by a passkey that signs in alone: neither password nor code
        is asked."""
        user_id = self._passkeys.use_alone(browser, answer) if not self._is_provider_only else None
        user = users.find(self._database, user_id) if user_id is not None else None
        if user is None:
            self._events.alarm("wrong passkey", address=address)
            return Outcome()
        if user.paused_at is not None:
            self._events.did(user.id, "signIn", is_refused=True)
            return Outcome(is_paused=True)
        return self.let_in(user, browser, address=address)

    def by_recovery_code(self, name: str, typed: str, *, before: Browser, address: str) -> Outcome:
        """Sign in somebody without a password by one of their recovery codes, which is used up, so that they can make a
        new passkey. Wrong guesses are counted like those of the second step, and logged; whoever has a password needs
        that. Raises Busy."""
        with self._throttles.turn(name):
            held_up = "recovery held up"
            reserved = self._reserve(held_up, name=name, address=address, browser=None, of="recovery code")
            if isinstance(reserved, Outcome):
                return reserved
            user = users.find_by_name(self._database, name) if is_storable(name) else None
            may = user is not None and user.password_hash is None and not self._is_provider_only
            # Codes are a second step for whoever comes by the provider, and a way in for those with a passkey alone
            is_way_in = user is not None and any(each.is_alone for each in self._passkeys.of_user(user.id))
            if user is None or not (may and is_way_in) or not self._second_factors.use_recovery_code(user.id, typed):
                self._events.alarm("wrong recovery code", account=name, address=address)
                return Outcome()
            self._throttles.note_success(reserved)
            if user.paused_at is not None:
                return Outcome(is_paused=True)
            self._events.did(user.id, "useRecoveryCode")
            return self.let_in(user, before, address=address)

    def let_in_by_link(self, user: User, before: Browser | None, *, address: str) -> Outcome:
        """Sign a user in who has used a link up that lets them in, or ask for their second factor."""
        if self._second_factors.is_on(user.id):
            outcome = Outcome(half=self._sessions.await_second_factor(before, user.id))
        else:
            outcome = self.let_in(user, before, address=address)
        return self._unless_replaced(user, user.password_hash, outcome)

    def let_in(self, user: User, before: Browser | None, *, address: str, via: Via | None = None) -> Outcome:
        """Sign a user in who has proven who they are, `via` the provider if there, under a new session in place of
        `before`; logs and records it."""
        self._events.info("signed in", account=user.name, address=address, user=user.id)
        self._events.did(user.id, "signIn")
        browser = self._sessions.sign_in(before, user.id, via=via)
        return Outcome(browser=browser, known_browser=self._sessions.known_browser(user.id))

    def _unless_replaced(self, user: User, stored: str | None, outcome: Outcome) -> Outcome:
        """The outcome whose session was just stored; with this hash no longer the user's, that session ends, too."""
        present = users.find(self._database, user.id)
        if present is not None and present.password_hash == stored:
            return outcome
        for each in (outcome.browser, outcome.half):
            if each is not None:
                self._sessions.end(each.id_hash)
        return Outcome()

    def _prove(self, user: User, browser: Browser, *, password: str, address: str) -> Outcome:
        if not self.asks_password(user):
            return Outcome(browser=browser if self._sessions.is_proven_lately(browser.id_hash) else None)
        # Only this browser's own wrong guesses count, not those of strangers
        reserved = self._reserve("password form held up", name=user.name, address=address, browser=browser.id_hash)
        if isinstance(reserved, Outcome):
            return reserved
        if not self._is_right(password, user.password_hash, reserved):
            self._events.alarm("wrong password in the password form", account=user.name, address=address)
            return Outcome()
        self._throttles.note_success(reserved)
        return Outcome(browser=browser)

    def _use_second_factor(
        self, user: User, use: Callable[[], str | None], *, address: str, browser: str | None
    ) -> Outcome | None:
        """Count, log and record one use of a second factor, which `use` checks and returns the kind of; None if it is
        right, else the outcome."""
        held_up = "second factor held up"
        reserved = self._reserve(held_up, name=user.name, address=address, browser=browser, of="second factor")
        if isinstance(reserved, Outcome):
            return reserved
        kind = use()
        if kind is None:
            self._events.alarm("wrong second factor", account=user.name, address=address)
            return Outcome()
        self._throttles.note_success(reserved)
        if kind == "recovery code":
            self._events.info("recovery code used", account=user.name, address=address, user=user.id)
            self._events.did(user.id, "useRecoveryCode")
        return None

    def _reserve(
        self, held_up: str, *, name: str, address: str, browser: str | None, of: Guessed = "password"
    ) -> Reserved | Outcome:
        """Count one attempt as failed before it is made. If this name and address, or the browser named for counting it
        alone, has to wait, returns the outcome with the wait instead, and logs that under the name `held_up`."""
        reserved = self._throttles.reserve(name=name, address=address, browser=browser, now=self._now(), of=of)
        if isinstance(reserved, Reserved):
            return reserved
        self._events.alarm(held_up, account=name, address=address)
        return Outcome(wait=reserved)

    def _is_right(self, password: str, stored: str | None, reserved: Reserved) -> bool:
        try:
            return self._passwords.is_right(password, stored)
        except Busy:
            self._throttles.withdraw(reserved)  # nothing was checked, so nothing has failed
            raise
