"""What a bank connector is: it starts a refresh, is asked whether it is ready, and hands over records.

A connector is input and parsing only: it never touches the store, never decides the state of a job, and waits for
nothing but its answers (a source that is not ready is `Waiting`). Its failures say what happened, and one table in
`handlers.sync.outcomes` says what that means for job and connection.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol, runtime_checkable

from storage.importing.records import Batch

Json = Mapping[str, Any]

PSD2_SYNCS_MAX = 4  # in 24 hours, while the user is absent (Delegated Regulation (EU) 2018/389, Article 36(5)(b))


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """The user who asks for fresh data at this moment, as a bank wants to be told: all of it is sent on, or nothing."""

    address: str
    user_agent: str
    accept: str
    accept_language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A bank connection as its connector sees it; `settings` are what `bankdata connect` stored for it.

    `secrets` are its passwords, tokens and keys. What the source gives in their place, a refreshed token or the state
    of a dialogue, goes to `keep_secrets` (all of them, the unchanged ones too), which stores it at once: it stays,
    whatever fails afterwards. `attended` is the user, if present; most banks count the accesses without one.
    """

    id: str
    user_id: str
    bank_name: str
    settings: Json
    secrets: Json = field(default_factory=dict, repr=False)
    keep_secrets: Callable[[Json], None] = field(default=lambda _: None, repr=False)
    attended: Person | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The source is not ready; it is not asked again before `seconds` have passed."""

    seconds: float = 1.0
    handle: Json | None = None  # replaces the stored handle when given


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The source has everything; `handle` replaces the stored one when given, and so does the end of the consent."""

    handle: Json | None = None
    consent_expires_at: datetime | None = None  # UTC without zone; past it the bank is not asked any more


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A part that the source did not give, such as one account of several: a warning of a job that completes, unless
    nothing came at all. `reason` is a sentence for the user."""

    name: str
    reason: str


CUT_OFF = "The bank broke off its list of bookings. The next sync asks for all of it again."
"""Why an account is left out whose pages go round, or whose next page the source refuses: its cursor stays."""


class Connector(Protocol):
    """One source of bank data, which has whatever it asks for at once and nothing to tidy up unless it says otherwise.
    `handle` and `cursor` are JSON and are stored between calls.

    `is_local` says that nothing is asked of another machine: what is fetched is then read one batch at a time in the
    whole server, which bounds its memory, and nobody waits for anybody else's network meanwhile.
    """

    name: str
    is_local: bool

    @property
    def unattended_syncs_max(self) -> int | None:
        """How many syncs in 24 hours the source allows while its user is absent; None where nobody counts them. One
        that allows more than the four of PSD2 is no bank, and counts those with its user as well."""
        ...

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - those that ask need them
        """Ask the source for fresh data; the handle that later calls receive."""
        return {}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:  # noqa: ARG002 - as above
        """One question to the source, in bounded time."""
        return Ready()

    def fetch(
        self, connection: Connection, handle: Json, *, cursor: Json | None, today: date
    ) -> Iterator[Batch | LeftOut]:
        """The batches that are new since `cursor` (everything there is when None), lazily, overlaps included.

        Each is stored, with the cursor it names, before the next one is asked for. What is wrong with one alone
        (`UNREADABLE`) refuses it and leaves the others; any other failure ends the job, and what is stored stays.
        """
        ...

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None:  # noqa: ARG002 - as above
        """After the batch's commit, or its refusal with the reason: tidy up after it (a folder moves the file)."""
        return


@runtime_checkable
class HasNews(Protocol):
    """A connector of which the source can be looked at for nothing; none is whose requests are counted."""

    def has_news(self, connection: Connection, *, now: datetime) -> bool:
        """Whether a look that costs nobody anything shows that there is something new: the server then starts a sync
        by itself."""
        ...


class SourceError(Exception):
    """The bank's data could not be fetched; before `retry_after` seconds have passed the source is not asked again."""

    retry_after: float | None = None

    def __init__(self, message: str | None = None, *, detail: str = "", retry_after: float | None = None) -> None:
        super().__init__(message or self.__class__.__doc__)
        self.detail = detail  # for the operator's log; never holds secrets, names or account numbers
        self.retry_after = retry_after


class Misconfigured(SourceError):
    """The connection's settings are incomplete or wrong."""


class ConsentExpired(SourceError):
    """The consent for this bank connection has expired. Connect the bank again."""


class ConsentRevoked(SourceError):
    """The consent for this bank connection was withdrawn. Connect the bank again."""


class UserActionRequired(SourceError):
    """The bank asks for a sign-in. Renew the connection at the bank."""


class RateLimited(SourceError):
    """The bank allows no further requests for now."""


class ProviderUnavailable(SourceError):
    """The bank could not be reached."""


class UnsupportedFile(SourceError):
    """Not a bank statement in a known format."""


class MalformedFile(SourceError):
    """The statement is damaged or incomplete."""


class LimitExceeded(SourceError):
    """The source is larger than allowed."""


UNREADABLE = (UnsupportedFile, MalformedFile, LimitExceeded)
"""What is wrong with one file and says nothing about its source."""


def as_sentence(reason: Exception) -> str:
    """Why something was refused, for a person: it begins with a capital letter and ends with a full stop."""
    text = str(reason)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
