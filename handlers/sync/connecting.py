"""Connecting a bank to a live source, step by step: what the command and the account page have in common.

An attempt lives for 30 minutes and belongs to one user. One that began in a browser goes on in that browser session
alone, the return from the bank included: else somebody could have others connect their bank to his account. One that a
command began needs no session, for who may give commands owns the store.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from secrets import token_hex, token_urlsafe
from typing import Any

from msgspec import convert, to_builtins

from connectors import connector as source
from connectors.connecting import Done, LiveSource, Question, Redirect, Reply, Step
from connectors.connector import SourceError, as_sentence
from handlers.clock import Clock
from handlers.sync.stored_secrets import StoredSecrets
from storage import connections, users
from storage.bank_access import connection_attempts, connection_secrets
from storage.bank_access.connection_attempts import CONNECTED, StoredAttempt
from storage.bank_access.connection_keys import ConnectionKeys, SecretsUnreadable
from storage.connections import StoredConnection
from storage.database import Database, Session

RETURN_PATH = "/connect/return"
BANK_NAME_CHARACTERS_MAX = 70
STEP_LASTS_MAX = timedelta(minutes=5)  # several requests of two minutes at most; then whoever took it has ended
FAILED = "This did not work because of an internal error. Nothing was connected."
BROKEN_OFF = "This was broken off. Begin again."

log = logging.getLogger("bankdata.sync")


class AttemptUnknown(Exception):
    """This attempt to connect a bank is over, or it was begun elsewhere. Begin again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How an attempt stands: a step that waits for the person, a connection, or the reason why there is none."""

    id: str
    source: LiveSource
    step: Question | Redirect | None = None
    connection: StoredConnection | None = None
    refusal: str | None = None


class Connecting:
    """Carries attempts on."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        keys: ConnectionKeys,
        secrets: StoredSecrets,
        sources: Mapping[str, LiveSource],
        *,
        return_url: str,
    ) -> None:
        """`sources` are those that can be connected, by name; `return_url` is where browsers come back to."""
        self.sources = sources
        self.return_url = return_url
        self._database = database
        self._clock = clock
        self._keys = keys
        self._secrets = secrets

    def begin(
        self,
        user_id: str,
        source_name: str,
        *,
        given: Mapping[str, Any] | None = None,
        renewed: StoredConnection | None = None,
        browser: str | None,
    ) -> Attempt:
        """The first step towards a new connection, or towards renewing one. `given` is there in every step, such as
        the name of the bank; `browser` is the hash of the browser session, None for a command."""
        attempt_id, content = f"att_{token_hex(16)}", {"given": dict(given or {}), "step": None}
        self._database.atomically(
            lambda session: connection_attempts.add(
                session,
                self._keys,
                user_id=user_id,
                id_=attempt_id,
                connector=source_name,
                connection_id=renewed.id if renewed is not None else None,
                browser_hash=browser,
                state=_new_state(user_id),
                content=content,
                now=self._clock.now(),
            )
        )
        return self._step(self._found(user_id, attempt_id, browser), {}, {})

    def find(self, user_id: str, attempt_id: str, *, browser: str | None) -> Attempt:
        """How the attempt stands; raises AttemptUnknown."""
        return self._view(self._found(user_id, attempt_id, browser))

    def answer(self, user_id: str, attempt_id: str, given: Mapping[str, Any], *, browser: str | None) -> Attempt:
        """The next step, after the person has answered or has done what a step says; raises AttemptUnknown."""
        stored = self._found(user_id, attempt_id, browser)
        if stored.outcome is not None or stored.taken_at is not None:
            return self._view(stored)
        step = _step_of(stored.content)
        if isinstance(step, Redirect) and step.again_after is None:
            return self._view(stored)  # only the browser that comes back goes on
        asked = step.fields if isinstance(step, Question) else ()
        return self._step(stored, {each.name: given.get(each.name) or each.default for each in asked}, {})

    def returned(self, returned: Mapping[str, str], *, browser: str | None) -> tuple[str, Attempt]:
        """A browser has come back from the provider with these parameters: the user's id and the next step. Raises
        AttemptUnknown for a state that is unknown, used, expired, or another browser's."""
        state = returned.get("state", "")
        user_id = state.partition(".")[0]
        with _opened():
            stored = connection_attempts.of_state(self._database, self._keys, user_id, state)
        if stored is None or not isinstance(_step_of(stored.content), Redirect):
            raise AttemptUnknown(AttemptUnknown.__doc__)
        self._check(stored, browser)
        parameters = {name: value for name, value in returned.items() if name != "state"}
        return user_id, self._step(stored, {}, parameters)

    def disconnect(self, connection: StoredConnection) -> str | None:
        """End the access at the provider too; why that could not be done, None if it was or need not be."""
        live = self.sources.get(connection.connector)
        if live is None or connection.status == "DISCONNECTED":
            return None
        try:
            live.disconnect(self._asked(connection), now=self._clock.now())
        except SourceError as error:
            log.warning(
                "%s could not be ended at the provider: %s %s", connection.id, type(error).__name__, error.detail
            )
            return as_sentence(error)
        return None

    def _found(self, user_id: str, attempt_id: str, browser: str | None) -> StoredAttempt:
        with _opened():
            stored = connection_attempts.find(self._database, self._keys, user_id, attempt_id)
        if stored is None:
            raise AttemptUnknown(AttemptUnknown.__doc__)
        self._check(stored, browser)
        return stored

    def _check(self, stored: StoredAttempt, browser: str | None) -> None:
        is_elsewhere = stored.browser_hash is not None and stored.browser_hash != browser
        if is_elsewhere or (stored.outcome is None and stored.expires_at <= self._clock.now()):
            raise AttemptUnknown(AttemptUnknown.__doc__)

    def _view(self, stored: StoredAttempt) -> Attempt:
        live = self.sources[stored.connector]
        if stored.outcome is None:
            since = stored.taken_at
            is_broken_off = since is not None and since + STEP_LASTS_MAX <= self._clock.now()
            step = None if is_broken_off else _step_of(stored.content)
            return Attempt(id=stored.id, source=live, step=step, refusal=None if step else BROKEN_OFF)
        if stored.outcome != CONNECTED or stored.created_connection_id is None:
            return Attempt(id=stored.id, source=live, refusal=stored.outcome)
        made = connections.find(self._database, stored.user_id, stored.created_connection_id)
        return Attempt(id=stored.id, source=live, connection=made)

    def _step(self, stored: StoredAttempt, given: Mapping[str, Any], returned: Mapping[str, Any]) -> Attempt:
        """Ask the source for the next step. What a step has sent to the source is never sent again: of two answers at
        once one counts, and a crash ends the attempt, as everybody sees five minutes later."""
        now, state = self._clock.now(), _new_state(stored.user_id)
        taken = self._database.atomically(
            lambda session: connection_attempts.take(session, self._keys, stored, state=state, now=now)
        )
        if not taken:
            raise AttemptUnknown(AttemptUnknown.__doc__)
        live = self.sources[stored.connector]
        renewed = self._renewed(stored)
        before, all_given = _step_of(stored.content), {**stored.content["given"], **given}
        answer = Reply(
            return_url=self.return_url,
            state=state,
            given=all_given,
            returned=returned,
            memo=before.memo if before is not None else {},
        )
        try:
            step: Step = live.begin_connect(self._renewed_or_new(stored, renewed), answer, now=now)
        except SourceError as error:
            log.warning("%s was not connected: %s %s", stored.connector, type(error).__name__, error.detail)
            return self._refuse(stored, as_sentence(error))
        except Exception:
            log.exception("%s could not be connected", stored.connector)
            return self._refuse(stored, FAILED)
        if isinstance(step, Done):
            return self._connect(stored, step, all_given, renewed)
        kept = {"given": all_given, "step": to_builtins(step)}
        self._database.atomically(lambda session: connection_attempts.go_on(session, self._keys, stored, kept))
        return Attempt(id=stored.id, source=live, step=step)

    def _renewed(self, stored: StoredAttempt) -> StoredConnection | None:
        if stored.connection_id is None:
            return None
        return connections.find(self._database, stored.user_id, stored.connection_id)

    def _renewed_or_new(self, stored: StoredAttempt, renewed: StoredConnection | None) -> source.Connection:
        if renewed is None:
            return source.Connection(id=stored.id, user_id=stored.user_id, bank_name="", settings={})
        try:
            return self._asked(renewed)
        except source.UserActionRequired:  # what opened it is lost; it is connected anew
            return self._without_secrets(renewed)

    def _asked(self, connection: StoredConnection) -> source.Connection:
        return replace(
            self._without_secrets(connection),
            secrets=self._secrets.read(connection),
            keep_secrets=partial(self._secrets.keep, connection),
        )

    def _without_secrets(self, connection: StoredConnection) -> source.Connection:
        return source.Connection(
            id=connection.id,
            user_id=connection.user_id,
            bank_name=connection.bank_name,
            settings=connection.settings,
        )

    def _refuse(self, stored: StoredAttempt, reason: str) -> Attempt:
        self._database.atomically(lambda session: connection_attempts.end(session, self._keys, stored, outcome=reason))
        return Attempt(id=stored.id, source=self.sources[stored.connector], refusal=reason)

    def _connect(
        self, stored: StoredAttempt, done: Done, given: Mapping[str, Any], renewed: StoredConnection | None
    ) -> Attempt:
        """Store what the source gave, all at once."""
        name = renewed.bank_name if renewed is not None else _bank_name(given.get("bank_name") or done.bank_name)

        def work(session: Session) -> StoredConnection:
            owner = users.find(session, stored.user_id)
            assert owner is not None, "attempts go with their user"
            connection = renewed or connections.add(
                session,
                user_id=owner.id,
                user_name=owner.name,
                connector=stored.connector,
                bank_name=name,
                settings=dict(done.settings),
                now=self._clock.now(),
            )
            connection_secrets.keep(session, self._keys, owner.id, connection.id, done.secrets)
            connection_attempts.end(session, self._keys, stored, outcome=CONNECTED, connection_id=connection.id)
            return connections.renew(
                session, connection, settings=dict(done.settings), consent_expires_at=done.consent_expires_at
            )

        made = self._database.atomically(work)
        log.info("connection=%s user=%s connected", made.id, made.user_id)
        return Attempt(id=stored.id, source=self.sources[stored.connector], connection=made)


@contextmanager
def _opened() -> Iterator[None]:
    """What cannot be opened, for its key is gone, is as good as not there."""
    try:
        yield
    except SecretsUnreadable as error:
        raise AttemptUnknown(AttemptUnknown.__doc__) from error


def _new_state(user_id: str) -> str:
    """256 bits, with the user in front by whom the store finds the attempt."""
    return f"{user_id}.{token_urlsafe(32)}"


def _bank_name(text: str) -> str:
    """What a source calls a bank, as one line that clients may be shown."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:BANK_NAME_CHARACTERS_MAX] or "Bank"


def _step_of(content: Mapping[str, Any]) -> Question | Redirect | None:
    found = content.get("step")
    if found is None:
        return None
    return convert(found, Redirect) if "url" in found else convert(found, Question)
