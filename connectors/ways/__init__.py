"""The ways on which letters go to a person: what each takes, and what it says came of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from analytics.messages import Saying

REASONS: Sequence[str] = (
    "name_not_found",
    "address_not_allowed",
    "not_connected",
    "certificate",
    "timeout",
    "no_answer",
    "too_many",
    "refused",
    "not_allowed",
    "gone",
    "not_here",
    "unreadable",
    "over",
    "limit",
    "expired",
)
"""The words of the contract for why something was not delivered."""

State = Literal["delivered", "later", "refused", "gone", "paused"]


class AddressRefused(Saying):
    """An address cannot be used; the text says why, to its person."""


class Address(Struct, frozen=True, kw_only=True):
    """A checked address: the text that is kept sealed and given to `Way.send`; what is shown of it, scheme and last
    characters; and what makes it one person's alone (`unique`, such as a digest; empty where several may have it)."""

    sealed: str
    scheme: str
    last: str
    unique: str = ""


class Letter(Struct, frozen=True, kw_only=True):
    """What is sent to a person, in their language, as plain text.

    `id` is the same in every attempt; of two letters of one `tag` the later takes the place of the earlier one where
    they are shown. `link` leads behind the sign-in. `is_silent`: without a sound. It matters for `seconds`, at most
    three days. `leave` is the address that ends letters by a POST, for mail alone; `at` the real time, UTC without
    zone.
    """

    id: str
    tag: str
    title: str
    text: str
    link: str
    is_urgent: bool = False
    is_silent: bool = False
    seconds: int
    leave: str = ""
    at: datetime


class LetterOutcome(Struct, frozen=True, kw_only=True):
    """What came of a letter: `later` if nobody was reached or it was too much at present, `refused` if the receiver
    said no, `gone` if the address is no more, `paused` if nothing may be sent there until its person acts. `reason` is
    one of REASONS, `wait` the seconds that the receiver asks for."""

    state: State
    reason: str = ""
    wait: int = 0


DELIVERED = LetterOutcome(state="delivered")


class Way(Protocol):
    """A way to people; safe to use from several threads."""

    def checked(self, given: Any) -> Address:
        """The address as its person gave it, without asking anybody. Raises AddressRefused."""

    def send(self, address: str, letter: Letter) -> LetterOutcome:
        """Send a letter to an address (`Address.sealed`) within two and a half minutes, mostly seconds; what comes of
        it is an outcome."""

    def close(self) -> None:
        """End what was begun for sending."""
