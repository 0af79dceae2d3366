"""Connecting a bank to a live source, or renewing it: one step after the other, in the browser or in a command.

A step ends in a question to the person, in an address for the browser, or in a connection. Between two steps nothing is
kept in memory: what the source has to remember is its `memo`, which is stored encrypted. The texts of a question come
from the source; a bank's own text is the same in every language.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from analytics.messages import Message
from analytics.records import Discreet
from connectors.connector import Connection, Connector, Json


class FormField(Struct, frozen=True, kw_only=True):
    """A field to fill in, with `choices` (value, label) to choose from, if any. `is_secret`: hidden while typed, and
    never an argument of a command. A field with a `default` may be left as it is, one that `is_optional` empty."""

    name: str
    label: Message
    is_secret: bool = False
    choices: Sequence[tuple[str, str]] = ()
    default: str = ""
    is_optional: bool = False


class Question(Discreet, frozen=True, kw_only=True):
    """A question to the person. Without fields it says what to do elsewhere (approve in the bank's app), and the step
    is repeated after `again_after` seconds (None: after the answer). `image` is a picture to look at, such as a
    photoTAN, of type `image_type`. `problem` says what was wrong with the last answer. The next Reply brings `memo`
    back."""

    text: Message
    fields: Sequence[FormField] = ()
    problem: Message | None = None
    image: bytes | None = None
    image_type: str = "image/png"
    again_after: float | None = None
    memo: Json = field(default_factory=dict)


class Redirect(Discreet, frozen=True, kw_only=True):
    """An address of the provider or bank to which the browser is sent. It comes back to the return address with the
    state; a provider that sends nobody back is asked again after `again_after` seconds instead. The next Reply brings
    `memo` back."""

    url: str
    again_after: float | None = None
    memo: Json = field(default_factory=dict)


class Done(Discreet, frozen=True, kw_only=True):
    """The outcome when the bank is connected: the default name of the connection, what is stored in clear and what
    encrypted, and the end of the consent, in UTC without a zone, None where none is known."""

    bank_name: str
    settings: Json = field(default_factory=dict)
    secrets: Json = field(default_factory=dict)
    consent_expires_at: datetime | None = None


Step = Question | Redirect | Done


class Reply(Discreet, frozen=True, kw_only=True):
    """The answer to the last step: the fields of its question (`given`), or the parameters with which the browser came
    back (`returned`), and its `memo`. Answer and memo are empty in the first step; a step that is repeated without an
    answer has its memo again.

    `given` may have more: the options of the command (--bank, --country) are there in every step. A Redirect of this
    step has to use `return_url` and `state`.
    """

    return_url: str
    state: str
    given: Json = field(default_factory=dict)
    returned: Json = field(default_factory=dict)
    memo: Json = field(default_factory=dict)


class LiveSource(Connector, Protocol):
    """A source that a person connects by answering questions or by signing in elsewhere.

    `title` is its name for people, `about` says in a sentence which banks it reaches.
    """

    title: str
    about: Message

    @property
    def is_set_up(self) -> bool:
        """Whether a page can offer the source: the operator has set up what it needs, and nobody has to type an
        address."""

    def next_step(self, connection: Connection, answer: Reply, /, *, now: datetime) -> Step:
        """The next step. `connection` has the settings and secrets of the connection that is renewed; both are empty
        for a new one.

        An error ends the attempt, and nothing of it is stored; what the person can correct is a Question with a
        `problem` instead.
        """

    def is_same_login(self, known: Connection, done: Done, /) -> bool | None:
        """Whether `done` is the login of `known`, a connection of the same user and bank name, and so renews it instead
        of making another connection; None where that cannot be determined."""

    def disconnect(self, connection: Connection, *, now: datetime) -> None:
        """End the access at the provider, because the user ends the connection. An error does not keep the connection
        from ending here; the user is told that the access is left, and why. A provider that has no request for this
        raises SourceError."""
