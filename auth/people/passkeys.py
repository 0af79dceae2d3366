"""Passkeys (WebAuthn Level 3): a device's signatures over a challenge, valid only for pages of one host.

The library is loaded when a passkey is first used, because it costs 0.1 s and 16 MB.
"""

import base64
import json
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from auth import lifetimes
from auth.instants import Now
from auth.people.sessions import Browser
from auth.policy import Policy
from auth.secret_text import new_secret, stored_hash
from auth.security_events import Events
from storage.database import Database, Session
from storage.oauth import passkeys
from storage.oauth.passkeys import Passkey
from storage.users import User

if TYPE_CHECKING:
    from webauthn.authentication.verify_authentication_response import VerifiedAuthentication
    from webauthn.helpers.structs import PublicKeyCredentialDescriptor
    from webauthn.registration.verify_registration_response import VerifiedRegistration

PASSKEYS_MAX = 20  # of one user
NAME_CHARACTERS_MAX = 50
HANDLE_LENGTH_MAX = 100
SERVICE = "Banking Data Service"  # what the device shows beside the user

T = TypeVar("T")
log = logging.getLogger("bankdata.passkeys")


ADD, JOIN, ALONE, SECOND_STEP = "add", "join", "alone", "second"  # what a challenge is for


class Passkeys:
    """Makes challenges for browsers, verifies the answers of devices, and stores and deletes passkeys."""

    def __init__(self, database: Database, policy: Policy, events: Events, now: Now) -> None:
        self._database = database
        self._policy = policy
        self._events = events
        self._now = now

    def of_user(self, user_id: str) -> list[Passkey]:
        """All passkeys of a user, the first made first; those for an earlier host of the pages no longer work."""
        return passkeys.of_user(self._database, user_id)

    def creation_options(self, user: User, browser: Browser, *, is_alone: bool = False) -> str:
        """The options for a browser to have a device make a passkey, one that signs in alone or beside a second factor:
        PublicKeyCredentialCreationOptions as JSON. Stores their challenge with the browser's session for five minutes,
        in place of an earlier one. Call it only where there is a `Policy.passkey_host`."""
        return self._creation_options(
            user.id, user.name, self._challenge(browser, ADD), [*self._usable_passkeys(user.id)], is_alone=is_alone
        )

    def joining_options(self, name: str, browser: Browser) -> str:
        """As `creation_options` for somebody who is no user yet and will have this name."""
        challenge = self._challenge(browser, JOIN)
        return self._creation_options(_id_made_of(challenge.decode()), name, challenge, [], is_alone=True)

    def _creation_options(
        self, user_id: str, name: str, challenge: bytes, known: list[Passkey], *, is_alone: bool
    ) -> str:
        import webauthn
        from webauthn.helpers import structs

        assert self._policy.passkey_host is not None
        alone = structs.ResidentKeyRequirement.REQUIRED, structs.UserVerificationRequirement.REQUIRED
        beside = structs.ResidentKeyRequirement.DISCOURAGED, structs.UserVerificationRequirement.PREFERRED
        kept, verified = alone if is_alone else beside  # beside a password, the name has been typed
        return webauthn.options_to_json(
            webauthn.generate_registration_options(
                rp_id=self._policy.passkey_host,
                rp_name=SERVICE,
                user_name=name,
                user_id=user_id.encode(),
                challenge=challenge,
                timeout=_milliseconds(lifetimes.PASSKEY_ANSWER),
                authenticator_selection=structs.AuthenticatorSelectionCriteria(
                    resident_key=kept, user_verification=verified
                ),
                exclude_credentials=[_descriptor(each) for each in known],
            )
        )

    def request_options(self, half: Browser) -> str | None:
        """The options for a browser to have a device sign: PublicKeyCredentialRequestOptions as JSON, whose challenge
        is stored like that of `creation_options`. In the browser `half`, a user has entered the right password, and
        their second factor is awaited; None where this user has no passkey for this host."""
        usable = self._usable_passkeys(half.awaits_user_id or "")
        if not usable:
            return None
        import webauthn
        from webauthn.helpers import structs

        assert self._policy.passkey_host is not None
        return webauthn.options_to_json(
            webauthn.generate_authentication_options(
                rp_id=self._policy.passkey_host,
                challenge=self._challenge(half, SECOND_STEP),
                timeout=_milliseconds(lifetimes.PASSKEY_ANSWER),
                allow_credentials=[_descriptor(each) for each in usable],
                user_verification=structs.UserVerificationRequirement.PREFERRED,
            )
        )

    def alone_options(self, browser: Browser) -> str | None:
        """As `request_options` for any passkey that signs in alone; None where browsers make none for this host."""
        if self._policy.passkey_host is None:
            return None
        import webauthn
        from webauthn.helpers import structs

        return webauthn.options_to_json(
            webauthn.generate_authentication_options(
                rp_id=self._policy.passkey_host,
                challenge=self._challenge(browser, ALONE),
                timeout=_milliseconds(lifetimes.PASSKEY_ANSWER),
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            )
        )

    def joined(self, browser: Browser, answer: str, *, name: str) -> tuple[str, Passkey] | None:
        """The id that somebody new will have, and the passkey that their device has made for it, by `joining_options`;
        None where the answer does not fit this browser's challenge, which is used up."""
        challenge = self._take_challenge(browser, JOIN)
        made = self._made(answer, challenge, name=name, is_alone=True) if challenge is not None else None
        return (_id_made_of(challenge), made) if challenge is not None and made is not None else None

    def use_alone(self, browser: Browser, answer: str) -> str | None:
        """The id of the user whose passkey, one that signs in alone, has signed the challenge of this browser after
        the device made sure who holds it; None for any other answer. The challenge is used up in any case."""
        challenge, user_id = self._take_challenge(browser, ALONE), _user_in(answer)
        alone = [each for each in self._usable_passkeys(user_id or "") if each.is_alone]
        passkey = next((each for each in alone if each.id == _id_in(answer)), None)
        is_used = (
            challenge is not None
            and passkey is not None
            and self._signed(user_id or "", answer, challenge, passkey, is_verified=True)
        )
        return user_id if is_used else None

    def is_any_alone(self, session: Session, user_id: str) -> bool:
        """Whether the user has a passkey that signs in alone at this host."""
        host = self._policy.passkey_host
        return any(each.is_alone and each.host == host for each in passkeys.of_user(session, user_id))

    def add(self, user: User, browser: Browser, answer: str, *, name: str, is_alone: bool = False) -> bool:
        """Store the passkey that a device has made, under a name cut to 50 characters, and log and record that. False,
        with nothing stored, where the answer does not fit this browser's challenge, which is used up, or the user has
        this passkey, 20 of them, or no second factor, which one that is not alone complements."""
        challenge = self._take_challenge(browser, ADD)
        passkey = self._made(answer, challenge, name=name, is_alone=is_alone) if challenge is not None else None
        if passkey is None:
            self._events.alarm("wrong answer of a new passkey", user=user.id)
            return False

        def work(session: Session) -> bool:
            is_added = passkeys.add(session, user.id, passkey, at_most=PASSKEYS_MAX)
            if is_added:
                self._events.tell(session, user.id, "addPasskey")
            return is_added

        is_added = self._database.atomically(work)
        if is_added:
            self._events.info("passkey added", user=user.id)
            self._events.did(user.id, "addPasskey")
        return is_added

    def use(self, half: Browser, answer: str) -> bool:
        """Whether the answer is a signature over the challenge of the browser `half`, made on our pages by a passkey of
        the user whose second factor is awaited there, with a counter higher than before (if the device counts). The
        challenge is used up in any case; the counter and the time of a valid use are stored."""
        challenge, user_id = self._take_challenge(half, SECOND_STEP), half.awaits_user_id or ""
        passkey = next((each for each in self._usable_passkeys(user_id) if each.id == _id_in(answer)), None)
        return challenge is not None and passkey is not None and self._signed(user_id, answer, challenge, passkey)

    def remove(self, user_id: str, passkey_id: str, *, check: Callable[[Session], None]) -> bool:
        """Delete a passkey, unless `check` raises afterwards in the same transaction, and log and record that; False
        where the user has none with this id."""

        def work(session: Session) -> bool:
            was_there = passkeys.remove(session, user_id, passkey_id)
            check(session)
            return was_there

        was_there = self._database.atomically(work)
        if was_there:
            self._events.info("passkey removed", user=user_id)
            self._events.did(user_id, "removePasskey")
        return was_there

    def _signed(
        self, user_id: str, answer: str, challenge: str, passkey: Passkey, *, is_verified: bool = False
    ) -> bool:
        """Whether the passkey has signed the challenge; stores its count and the time if so."""
        signed = self._verify(answer, challenge, passkey, is_verified=is_verified)
        if signed is None:
            return False
        count, now = signed.new_sign_count, self._now()
        return self._database.atomically(
            lambda session: passkeys.use(session, user_id, passkey, sign_count=count, now=now)
        )

    def _made(self, answer: str, challenge: str, *, name: str, is_alone: bool) -> Passkey | None:
        made = self._verify_registration(answer, challenge, is_verified=is_alone)
        if made is None:
            return None
        from webauthn.helpers import bytes_to_base64url

        return Passkey(
            id=bytes_to_base64url(made.credential_id),
            host=self._policy.passkey_host or "",
            name=name[:NAME_CHARACTERS_MAX],
            public_key=bytes_to_base64url(made.credential_public_key),
            sign_count=made.sign_count,
            made_at=self._now(),
            is_alone=is_alone,
        )

    def _usable_passkeys(self, user_id: str) -> list[Passkey]:
        host = self._policy.passkey_host
        return [each for each in self.of_user(user_id) if each.host == host] if host is not None else []

    def _challenge(self, browser: Browser, purpose: str) -> bytes:
        challenge, until = f"{purpose}.{new_secret()}", self._now() + lifetimes.PASSKEY_ANSWER
        self._database.atomically(
            lambda session: passkeys.give_challenge(session, browser.id_hash, challenge, until=until)
        )
        return challenge.encode()

    def _take_challenge(self, browser: Browser, purpose: str) -> str | None:
        """The challenge of this browser, which is used up; None where it was given for something else: one that anybody
        gets, such as for signing in, must not stand for one that was given after a proof."""
        now = self._now()
        taken = self._database.atomically(lambda session: passkeys.take_challenge(session, browser.id_hash, now=now))
        return taken if taken is not None and taken.startswith(f"{purpose}.") else None

    def _verify_registration(self, answer: str, challenge: str, *, is_verified: bool) -> "VerifiedRegistration | None":
        import webauthn

        return _verify_by_webauthn(
            lambda: webauthn.verify_registration_response(
                credential=answer,
                expected_challenge=challenge.encode(),
                expected_rp_id=self._policy.passkey_host or "",
                expected_origin=self._policy.origin,
                require_user_verification=is_verified,
            )
        )

    def _verify(
        self, answer: str, challenge: str, passkey: Passkey, *, is_verified: bool
    ) -> "VerifiedAuthentication | None":
        import webauthn

        return _verify_by_webauthn(
            lambda: webauthn.verify_authentication_response(
                credential=answer,
                expected_challenge=challenge.encode(),
                expected_rp_id=passkey.host,
                expected_origin=self._policy.origin,
                credential_public_key=webauthn.base64url_to_bytes(passkey.public_key),
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=is_verified,
            )
        )


def _verify_by_webauthn(verify: Callable[[], T]) -> T | None:
    """The result of `verify`, a call of the webauthn library; None where it raised anything at all, whose type is
    logged: the bytes from outside are then no passkey or signature."""
    try:
        return verify()
    except Exception as error:
        log.info("no passkey: %s", type(error).__name__)
        return None


def _id_in(answer: str) -> str | None:
    passkey_id = _members(answer).get("id")
    return passkey_id if isinstance(passkey_id, str) else None


def _user_in(answer: str) -> str | None:
    """The id of the user for whom the device made the passkey by which it answers; None where it does not say."""
    response = _members(answer).get("response")
    handle = response.get("userHandle") if isinstance(response, dict) else None
    if not isinstance(handle, str) or len(handle) > HANDLE_LENGTH_MAX:
        return None
    try:
        return base64.urlsafe_b64decode(handle + "=" * (-len(handle) % 4)).decode("ascii")
    except ValueError:
        return None


def _members(answer: str) -> dict[str, object]:
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _id_made_of(challenge: str) -> str:
    """The id of somebody who joins by a passkey: known before they are a user, since the device keeps it."""
    return f"u{stored_hash(challenge)[:20]}"


def _descriptor(passkey: Passkey) -> "PublicKeyCredentialDescriptor":
    from webauthn import base64url_to_bytes
    from webauthn.helpers.structs import PublicKeyCredentialDescriptor

    return PublicKeyCredentialDescriptor(id=base64url_to_bytes(passkey.id))


def _milliseconds(time: timedelta) -> int:
    return int(time.total_seconds() * 1000)
