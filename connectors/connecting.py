"""How a person connects a bank to a live source, or renews it: one step after the other, wherever it is carried on.

A step ends in a question to the person, in an address where the browser goes, or in a connection. Between two steps
nothing is kept in memory: what the source wants to remember is its `memo`, which lies encrypted in the store. The
words of a question come from the source, in every language of the pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from connectors.connector import Connection, Connector, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence in both languages. A bank's own words are the same in both."""

    en: str
    de: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """Something to fill in; with `choices` (value, label) one of them. What `is_secret` is not shown as it is typed,
    and never stands in arguments of a command. A field of a `default` may be left as it is."""

    name: str
    label: Sentence
    is_secret: bool = False
    choices: Sequence[tuple[str, str]] = ()
    default: str = ""
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The person is asked. Without fields it says what to do elsewhere (approve in the bank's app), and the step is
    taken again after `again_after` seconds. `image` is a picture to look at, such as a photoTAN, and what kind it is.
    `problem` says what was wrong with the last answer."""

    text: Sentence
    fields: Sequence[FormField] = ()
    problem: Sentence | None = None
    image: bytes | None = None
    image_type: str = "image/png"
    again_after: float | None = None
    memo: Json = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """The browser goes to `url`, which is at the provider or the bank. It comes back to the return address with the
    state; a provider that sends nobody back is asked again after `again_after` seconds instead."""

    url: str
    again_after: float | None = None
    memo: Json = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The bank is connected: what its connection is called if nobody named it, what is stored in clear and what is
    stored encrypted, and the end of the consent, in UTC without zone."""

    bank_name: str
    settings: Json = field(default_factory=dict)
    secrets: Json = field(default_factory=dict, repr=False)
    consent_expires_at: datetime | None = None


Step = Question | Redirect | Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the last step led to: the fields of its question, or the parameters that the browser came back with. Both
    are empty in the first step, and in one that is taken again without an answer.

    `given` may hold more: what the command was typed with (--bank, --country) is there in every step. `return_url` and
    `state` are what a Redirect of this step has to name.
    """

    return_url: str
    state: str = field(repr=False)
    given: Json = field(default_factory=dict, repr=False)
    returned: Json = field(default_factory=dict, repr=False)
    memo: Json = field(default_factory=dict, repr=False)


class LiveSource(Connector, Protocol):
    """A source that a person connects by answering questions or by a sign-in elsewhere.

    `title` is what people know it by, `about` says in a sentence whose banks it reaches.
    """

    title: str
    about: Sentence

    @property
    def is_set_up(self) -> bool:
        """Whether a page can offer it: the operator has set up what it takes, and no address has to be typed."""
        ...

    def begin_connect(self, connection: Connection, answer: Reply, /, *, now: datetime) -> Step:
        """The next step. `connection` has the settings and secrets of the one that is renewed, or none yet. An error
        ends the attempt and changes nothing; what the person can mend is a Question with a `problem` instead."""
        ...

    def is_same_login(self, known: Connection, done: Done, /) -> bool | None:
        """Whether what was connected just now is the login of `known`, a connection of the same user and bank name, and
        so renews it; None where that cannot be told."""
        ...

    def disconnect(self, connection: Connection, *, now: datetime) -> None:
        """The user ends the connection: end the access at the provider too. An error, also that the provider has no
        request for it, ends it here all the same."""
        ...
