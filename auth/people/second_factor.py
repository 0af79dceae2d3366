"""The second factor: codes of an app (TOTP, RFC 6238), and recovery codes in case the app is lost."""

import base64
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Literal

import pyotp
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from analytics.records import Discreet
from auth import lifetimes
from auth.instants import Now
from auth.secret_text import is_same, stored_hash
from auth.security_events import Events
from storage.database import Database, Session
from storage.oauth import second_factors
from storage.users import User

STEP_SECONDS = 30  # "We RECOMMEND a default time-step size of 30 seconds." RFC 6238 section 5.2
NONCE_BYTES = 12
RECOVERY_CODES = 10
RECOVERY_BYTES = 15  # 120 bits, 24 letters and digits: enough for SHA-256 (ASVS 5.0 6.5.2)
GROUP = 4  # characters in a group
ISSUER = "Banking Data Service"  # what the app shows above the code

Kind = Literal["code", "recovery code", "passkey"]


class SetUp(Discreet, frozen=True, kw_only=True):
    """The data for setting up an authenticator app: the seed as letters, and an address with it for a QR code."""

    seed: str
    address: str


class SecondFactors:
    """Sets up, verifies and removes second factors. A valid code counts only once, whichever process checks it."""

    def __init__(self, database: Database, key: bytes, events: Events, now: Now) -> None:
        self._database = database
        self._cipher = AESGCM(key)
        self._events = events
        self._now = now

    def is_on(self, user_id: str) -> bool:
        """Whether signing in requires a second factor: the user has confirmed one by a first code."""
        kept = second_factors.find(self._database, user_id)
        return kept is not None and kept.confirmed_at is not None

    def codes_left(self, user_id: str) -> int:
        """The number of the user's recovery codes that have not been used."""
        return second_factors.codes_left(self._database, user_id)

    def begin(self, user: User) -> SetUp | None:
        """Make and store a new seed, in place of one that was not confirmed; `confirm` turns the second factor on with
        it. None where the user's second factor is on already."""
        seed = pyotp.random_base32()  # 160 bits, as RFC 4226 section 4 recommends
        sealed = self._seal(user.id, seed)
        now = self._now()
        begun = self._database.atomically(
            lambda session: second_factors.begin(session, user.id, sealed_seed=sealed, now=now)
        )
        return _set_up(user, seed) if begun else None

    def waiting_set_up(self, user: User) -> SetUp | None:
        """The set-up that `begin` made and nobody has confirmed; None where there is none, it is older than 15 minutes,
        or its seed cannot be decrypted."""
        kept = second_factors.find(self._database, user.id)
        if kept is None or kept.confirmed_at is not None or self._now() - kept.made_at > lifetimes.SECOND_FACTOR_SETUP:
            return None
        seed = self._open(user.id, kept.sealed_seed)
        return _set_up(user, seed) if seed is not None else None

    def confirm(
        self, user: User, typed: str, *, also: Callable[[Session], None] = lambda _session: None
    ) -> tuple[str, ...] | None:
        """Turn the second factor on, with what is `also` to be done in the same transaction, log and record that, and
        return ten new recovery codes, which are shown only now. None where no set-up waits, the code `typed` is wrong,
        or another request was first."""
        kept, waiting, now = second_factors.find(self._database, user.id), self.waiting_set_up(user), self._now()
        step = _step_of(typed, waiting.seed, now) if waiting is not None else None
        if kept is None or step is None:
            return None
        codes = tuple(_new_recovery_code() for _ in range(RECOVERY_CODES))

        def work(session: Session) -> bool:
            is_first = second_factors.confirm(session, user.id, sealed_seed=kept.sealed_seed, step=step, now=now)
            if is_first:
                second_factors.add_codes(session, user.id, [stored_hash(_plain_code(code)) for code in codes])
                also(session)
                self._events.tell(session, user.id, "turnOnSecondFactor")
            return is_first

        if not self._database.atomically(work):
            return None
        self._events.info("second factor turned on", user=user.id)
        self._events.did(user.id, "turnOnSecondFactor")
        return codes

    def turn_off(self, user_id: str) -> bool:
        """Turn the second factor off, so that the password is enough: deletes its seed, the recovery codes and the
        passkeys. False, without an entry in log and record, where it was off."""

        def work(session: Session) -> bool:
            was_on = second_factors.remove(session, user_id)
            if was_on:
                self._events.tell(session, user_id, "turnOffSecondFactor")
            return was_on

        was_on = self._database.atomically(work)
        if was_on:
            self._events.info("second factor turned off", user=user_id)
            self._events.did(user_id, "turnOffSecondFactor")
        return was_on

    def first_codes(self, user_id: str) -> tuple[str, ...]:
        """Ten recovery codes for somebody who has none that is unused, shown only now; nothing for anybody else. With a
        passkey that signs in alone and no password, one of them opens the way to a new passkey."""
        if self.codes_left(user_id) > 0:
            return ()
        codes = tuple(_new_recovery_code() for _ in range(RECOVERY_CODES))
        self._database.atomically(
            lambda session: second_factors.add_codes(
                session, user_id, [stored_hash(_plain_code(each)) for each in codes]
            )
        )
        return codes

    def use_recovery_code(self, user_id: str, typed: str) -> bool:
        """Use up a recovery code; False for anything else."""
        code_hash, now = stored_hash(_plain_code(typed)), self._now()

        def work(session: Session) -> bool:
            is_used = second_factors.use_code(session, user_id, code_hash, now=now)
            if is_used:
                self._events.tell(session, user_id, "useRecoveryCode")
            return is_used

        return self._database.atomically(work)

    def use(self, user_id: str, typed: str) -> Kind | None:
        """Use up the code that was typed, and return its kind: an app's code of the present or the previous 30 seconds,
        or a recovery code. None where it is wrong or used, or the second factor is off."""
        kept, plain = second_factors.find(self._database, user_id), _plain_code(typed)
        if kept is None or kept.confirmed_at is None:
            return None
        if len(plain) > len("123456"):
            return "recovery code" if self.use_recovery_code(user_id, typed) else None
        seed = self._open(user_id, kept.sealed_seed)
        step = _step_of(plain, seed, self._now()) if seed is not None else None
        if step is None:
            return None
        is_first = self._database.atomically(lambda session: second_factors.use_step(session, user_id, step))
        return "code" if is_first else None

    def _seal(self, user_id: str, seed: str) -> str:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, seed.encode(), user_id.encode())).decode()

    def _open(self, user_id: str, sealed: str) -> str | None:
        content = base64.b64decode(sealed)
        try:
            return self._cipher.decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], user_id.encode()).decode()
        except InvalidTag:
            self._events.alarm("second factor of other keys: only recovery codes open", user=user_id)
            return None


def _set_up(user: User, seed: str) -> SetUp:
    return SetUp(seed=seed, address=pyotp.TOTP(seed).provisioning_uri(name=user.name, issuer_name=ISSUER))


def _step_of(typed: str, seed: str, now: datetime) -> int | None:
    """The present or the previous time step, whichever the typed code belongs to; None where it is a code of neither:
    "We RECOMMEND that at most one time step is allowed as the network delay." RFC 6238 section 5.2"""
    present = int(now.timestamp()) // STEP_SECONDS
    codes = pyotp.HOTP(seed)  # a TOTP is the HOTP of its step; pyotp's TOTP would use the local time zone
    return next((step for step in (present, present - 1) if is_same(codes.at(step), _plain_code(typed))), None)


def _new_recovery_code() -> str:
    letters = base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode()
    return "-".join(letters[start : start + GROUP] for start in range(0, len(letters), GROUP))


def _plain_code(typed: str) -> str:
    """The code in capitals, without the spaces and dashes that apps and people put between groups, for comparing it."""
    return "".join(typed.split()).replace("-", "").upper()
