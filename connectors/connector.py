"""The interface of a bank connector: it starts a refresh, says whether the source is ready, and yields records.

A connector does only input and parsing: it never touches the store, never decides the state of a job, and waits for
nothing but its answers (a source that is not ready is `Waiting`). Its failures say what happened, and one table in
`handlers.work.sync.outcomes` says what that means for job and connection.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from analytics.messages import Message, Saying, sentence
from analytics.records import Batch, Discreet

Json = Mapping[str, Any]

PSD2_SYNCS_MAX = 4  # in 24 hours, while the user is absent (Delegated Regulation (EU) 2018/389, Article 36(5)(b))


class Person(Struct, frozen=True, kw_only=True):
    """The user who asks for fresh data at this moment, as described to the bank: all of it is sent on, or nothing."""

    address: str
    user_agent: str
    accept: str
    accept_language: str


class Connection(Discreet, frozen=True, kw_only=True):
    """A bank connection as its connector sees it; `settings` are what was stored when it was connected.

    `secrets` are its passwords, tokens and keys. New values from the source, such as a refreshed token or the state of
    a dialogue, are passed to `keep_secrets` (with the unchanged ones), which stores them at once, whatever fails
    afterwards. `attended` is the user, None where they are absent; most banks limit accesses without one.
    """

    id: str
    user_id: str
    bank_name: str
    settings: Json
    secrets: Json = field(default_factory=dict)
    keep_secrets: Callable[[Json], None] = lambda _: None
    attended: Person | None = None


class Waiting(Struct, frozen=True, kw_only=True):
    """The answer that the source is not ready; it is not asked again before `seconds` have passed. `handle` replaces
    the stored one when given."""

    seconds: float = 1.0
    handle: Json | None = None  # replaces the stored handle when given


class Ready(Struct, frozen=True, kw_only=True):
    """The answer that the source has all data. `handle` and the end of the consent (UTC without a zone) each replace
    the stored one when given."""

    handle: Json | None = None
    consent_expires_at: datetime | None = None  # UTC without a zone; after it, the bank is not asked any more


class LeftOut(Struct, frozen=True, kw_only=True):
    """A part that the source did not give or not in full, such as one of several accounts; it may come beside a batch
    of the same account. The job reports it as a warning, or fails for this reason if nothing was imported. `reason` is
    a sentence for the user."""

    name: str
    reason: str


CUT_OFF = "The bank broke off its list of transactions. The next sync asks for all of it again."
"""The reason why an account is left out whose pages repeat, or whose next page the source refuses; its cursor stays."""


class Connector(Protocol):
    """One source of bank data. By default its data is ready at once and nothing has to be tidied up.

    `handle` and `cursor` are JSON and are stored between calls. `is_local` means that no other machine is asked; such
    sources are read one batch at a time in the whole server, which bounds its memory, while nobody waits for a network.
    """

    name: str
    is_local: bool

    @property
    def unattended_syncs_max(self) -> int | None:
        """The number of syncs in 24 hours that the source allows while its user is absent; None for no limit. More than
        the four of PSD2 mean that the source is no bank; syncs with the user present are then counted, too."""

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - those that ask need them
        """Ask the source for fresh data, and return the handle that later calls receive."""
        return {}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:  # noqa: ARG002 - as above
        """Ask the source once, in bounded time, whether its data is ready. The caller asks again after Waiting, and
        fetches after Ready."""
        return Ready()

    def fetch(
        self,
        connection: Connection,  # noqa: ARG002 - as above
        handle: Json,  # noqa: ARG002 - as above
        *,
        cursor: Json | None,  # noqa: ARG002 - as above
        today: date,  # noqa: ARG002 - as above
    ) -> Iterator[Batch | LeftOut]:
        """The batches that are new since `cursor` (all when None), lazily, overlaps included; by default none.

        Each batch is stored, with the cursor it names, before the next one is requested. An error of a single batch
        (`UNREADABLE`) refuses it and leaves the others, whose cursors are no longer stored, so that the refused one
        comes again; any other error ends the job, and what is stored stays.
        """
        return iter(())

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None:  # noqa: ARG002 - as above
        """Tidy up after the batch was stored or, with the reason in `refusal`, refused (a folder moves the file). An
        error here does not undo what is stored."""
        return


@runtime_checkable
class HasNews(Protocol):
    """A connector whose source can be checked for news without a request that costs or counts."""

    def has_news(self, connection: Connection, *, now: datetime) -> bool:
        """Whether a check that costs nobody anything shows news; the server then starts a sync by itself."""


class SourceError(Saying):
    """The bank's data could not be fetched; before `retry_after` seconds have passed the source is not asked again."""

    retry_after: float | None = None

    def __init__(
        self, template: str | None = None, *, detail: str = "", retry_after: float | None = None, **arguments: object
    ) -> None:
        super().__init__(template or self.__class__.__doc__ or "", **arguments)
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
"""Errors about a single file that say nothing about its source."""


def as_sentence(reason: Exception) -> Message:
    """The reason of a refusal as a sentence for people: with a capital letter, and a full stop unless it ends with a
    mark."""
    return sentence(str(reason))
