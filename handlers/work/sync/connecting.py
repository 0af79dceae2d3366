"""Connects a bank through a live source, step by step, for the command and for the account page.

An attempt lives for 30 minutes and belongs to one user. One that began in a browser continues only in that browser
session, also after the return from the bank: else an attacker could have other people connect their banks to the
attacker's account. One that a command began needs no session, because whoever may give commands owns the store.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from secrets import token_hex, token_urlsafe
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from analytics.messages import pack, unpack
from auth.record import Deed
from connectors import connector as source
from connectors.connecting import Done, LiveSource, Question, Redirect, Reply, Step
from connectors.connector import SourceError, as_sentence
from handlers.work.clock import Clock
from handlers.work.sync.source_connections import source_connection
from handlers.work.sync.stored_secrets import StoredSecrets
from storage import connections, jobs, users
from storage.bank_access import connection_attempts, connection_secrets
from storage.bank_access.connection_attempts import CONNECTED, StoredAttempt
from storage.bank_access.connection_keys import ConnectionKeys, SecretsUnreadable
from storage.boundary import begin_thread, contain, join_threads
from storage.connections import NEED_USER, StoredConnection
from storage.database import Session, Store
from storage.users import User

RETURN_PATH = "/connect/return"
BANK_NAME_CHARACTERS_MAX = 70
# A step makes several requests of at most two minutes; after that its process must have ended
BEFORE = "before"  # in an attempt's content: the content with the question before its present step
STEP_LASTS_MAX = timedelta(minutes=5)
FAILED = "This did not work because of an internal error. Nothing was connected."
DISCONNECT_WITHIN = 30.0  # seconds to wait for providers when connections are ended
NO_ANSWER = "The provider did not answer in time."
INTERNAL = "An internal error came in between."
RENEWED = "The connection was renewed meanwhile."
BROKEN_OFF = "This was broken off. Begin again."

log = logging.getLogger("bankdata.sync")


class AttemptUnknown(Exception):
    """This attempt to connect a bank is over, or it was begun elsewhere. Begin again."""


class Attempt(Struct, frozen=True, kw_only=True):
    """The state of an attempt to connect a bank: a step that waits for the person, a connection, or the reason why
    there is none. `is_new` is True only for the caller whose step made or renewed the connection; `renewed` is the
    connection that a waiting attempt renews; with `can_go_back` there was a question before the present step."""

    id: str
    source: LiveSource
    step: Question | Redirect | None = None
    connection: StoredConnection | None = None
    is_new: bool = False
    renewed: StoredConnection | None = None
    can_go_back: bool = False
    refusal: str | None = None

    @property
    def waits_seconds(self) -> float | None:
        """The seconds after which to check whether the person has done elsewhere what the step asks; None where the
        person answers here or comes back with the browser, and where no step waits."""
        return self.step.again_after if self.step is not None else None


@dataclass(eq=False)
class Connecting:
    """Begins attempts to connect banks, takes them from step to step, and ends connections.

    `sources` are those that can be connected, by name; `return_url` is the address to which browsers come back; `did`
    is called with a user's id and a deed, for the access record.
    """

    _store: Store
    _clock: Clock
    _keys: ConnectionKeys
    _secrets: StoredSecrets
    sources: Mapping[str, LiveSource]
    return_url: str
    did: Callable[[str, Deed], object]

    def begin(
        self,
        user_id: str,
        source_name: str,
        *,
        given: Mapping[str, Any] | None = None,
        renewed: StoredConnection | None = None,
        browser: str | None,
    ) -> Attempt:
        """Store an attempt to make a new connection, or to renew `renewed`, and ask the source for its first step.
        `given` are answers that every step gets, such as the name of the bank; `browser` is the hash of the browser
        session, None for a command. Makes the first key for secrets where there is none."""
        now = self._clock.now()
        attempt = StoredAttempt(
            user_id=user_id,
            id=f"att_{token_hex(16)}",
            connector=source_name,
            connection_id=renewed.id if renewed is not None else None,
            browser_hash=browser,
            content={"given": dict(given or {}), "step": None},
            expires_at=now + connection_attempts.LIFETIME,
        )
        self._keys.get_ready()
        self._store.of(user_id).atomically(
            lambda session: connection_attempts.add(session, self._keys, attempt, state=_new_state(user_id), now=now)
        )
        return self._step(self._find(user_id, attempt.id, browser), {}, {})

    def find(self, user_id: str, attempt_id: str, *, browser: str | None) -> Attempt:
        """The present state of the attempt, without a step. Raises AttemptUnknown where it is unknown, has expired
        unfinished, or belongs to another browser."""
        return self._view(self._find(user_id, attempt_id, browser))

    def answer(self, user_id: str, attempt_id: str, given: Mapping[str, Any], *, browser: str | None) -> Attempt:
        """Give the person's answer to the source, and return the attempt after its next step, which may store the
        connection. An attempt that has ended, is just taking a step or waits for the browser's return is returned as it
        is. Raises AttemptUnknown, also where another answer came first."""
        stored = self._find(user_id, attempt_id, browser)
        if stored.outcome is not None or stored.taken_at is not None:
            return self._view(stored)
        step = _step_of(stored.content)
        if isinstance(step, Redirect) and step.again_after is None:
            return self._view(stored)  # only the browser's return continues this step
        asked = step.fields if isinstance(step, Question) else ()
        return self._step(stored, {each.name: given.get(each.name) or each.default for each in asked}, {})

    def back(self, user_id: str, attempt_id: str, *, browser: str | None) -> None:
        """Go back to the question before the present step, if there is one and no step is being taken; nothing is sent
        to the source. Raises AttemptUnknown."""
        stored = self._find(user_id, attempt_id, browser)
        before = stored.content.get(BEFORE)
        if stored.outcome is not None or stored.taken_at is not None or before is None:
            return
        now, state = self._clock.now(), _new_state(user_id)

        def work(session: Session) -> None:
            if not connection_attempts.take(session, self._keys, stored, state=state, now=now):
                raise AttemptUnknown(AttemptUnknown.__doc__)
            connection_attempts.go_on(session, self._keys, stored, before)

        self._store.of(user_id).atomically(work)

    def resume(self, returned: Mapping[str, str], *, browser: str | None) -> tuple[str, Attempt]:
        """Take the next step after a browser has come back from the provider with these parameters, and return the
        user's id and the attempt. Raises AttemptUnknown for a state that is unknown, used, expired, or another
        browser's."""
        state = returned.get("state", "")
        user_id = state.partition(".")[0]
        with _unknown_without_key():
            stored = connection_attempts.of_state(self._store.of(user_id), self._keys, user_id, state)
        if stored is None or not isinstance(_step_of(stored.content), Redirect):
            raise AttemptUnknown(AttemptUnknown.__doc__)
        self._check(stored, browser)
        parameters = {name: value for name, value in returned.items() if name != "state"}
        return user_id, self._step(stored, {}, parameters)

    def remove(self, ended: StoredConnection) -> Sequence[tuple[StoredConnection, str]]:
        """End the access at the provider of the connection `ended`, then, whether or not that worked, mark the
        connection as disconnected, end its running sync as failed, and delete its settings and secrets; its accounts
        and bookings stay. Returns as `disconnect` does."""
        left = self.disconnect([ended])
        self._store.of(ended.user_id).atomically(
            lambda session: connections.remove(session, ended.user_id, ended.id, now=self._clock.now())
        )
        return left

    def disconnect(
        self, ended: Sequence[StoredConnection], *, within: float = DISCONNECT_WITHIN
    ) -> Sequence[tuple[StoredConnection, str]]:
        """End the access to the connections `ended` at their providers, in parallel and within so many seconds; the
        store is not changed. Returns those for which that failed or took longer, each with the reason as a sentence.
        Connections of no live source have nothing to end."""
        why: dict[str, str] = {}
        threads = []
        for each in ended:
            live = self.sources.get(each.connector)
            if live is None:
                continue
            try:
                left = replace(source_connection(each, None), secrets=self._secrets.read(each))
            except SourceError as error:
                why[each.id] = as_sentence(error)
                continue
            why[each.id] = NO_ANSWER
            work = partial(_disconnect, live, left, now=self._clock.now(), why=why)
            threads.append(begin_thread("disconnect", work))
        join_threads(threads, within=within)
        reasons = dict(why)
        return [(each, reasons[each.id]) for each in ended if each.id in reasons]

    def _find(self, user_id: str, attempt_id: str, browser: str | None) -> StoredAttempt:
        with _unknown_without_key():
            stored = connection_attempts.find(self._store.of(user_id), self._keys, user_id, attempt_id)
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
            return Attempt(
                id=stored.id,
                source=live,
                step=step,
                renewed=self._connection_to_renew(stored),
                can_go_back=BEFORE in stored.content,
                refusal=None if step else BROKEN_OFF,
            )
        if stored.outcome != CONNECTED or stored.created_connection_id is None:
            return Attempt(id=stored.id, source=live, refusal=unpack(stored.outcome))
        made = connections.find(self._store.of(stored.user_id), stored.user_id, stored.created_connection_id)
        return Attempt(id=stored.id, source=live, connection=made)

    def _step(self, stored: StoredAttempt, given: Mapping[str, Any], returned: Mapping[str, Any]) -> Attempt:
        """Ask the source for the next step, and store it or the end of the attempt. Nothing is ever sent to the source
        twice: of two answers at once only one counts (AttemptUnknown for the other), and a crash ends the attempt,
        which shows five minutes later."""
        now, state = self._clock.now(), _new_state(stored.user_id)
        database = self._store.of(stored.user_id)
        taken = database.atomically(
            lambda session: connection_attempts.take(session, self._keys, stored, state=state, now=now)
        )
        if not taken:
            raise AttemptUnknown(AttemptUnknown.__doc__)
        live = self.sources[stored.connector]
        renewed = self._connection_to_renew(stored)
        before, all_given = _step_of(stored.content), {**stored.content["given"], **given}
        answer = Reply(
            return_url=self.return_url,
            state=state,
            given=all_given,
            returned=returned,
            memo=before.memo if before is not None else {},
        )
        step: Step | None = None
        with contain(log, "%s could not be connected", stored.connector):
            try:
                step = live.next_step(self._source_connection(stored, renewed), answer, now=now)
            except SourceError as error:
                log.warning("%s was not connected: %s %s", stored.connector, type(error).__name__, error.detail)
                return self._refuse(stored, as_sentence(error))
        if step is None:
            return self._refuse(stored, FAILED)
        if isinstance(step, Done):
            return self._connect(stored, step, all_given, renewed)
        kept = {"given": all_given, "step": to_builtins(step, enc_hook=pack), **_way_back(stored.content, step, given)}
        database.atomically(lambda session: connection_attempts.go_on(session, self._keys, stored, kept))
        return Attempt(id=stored.id, source=live, step=step)

    def _same_or_new(
        self, owner: User, stored: StoredAttempt, done: Done, name: str
    ) -> tuple[StoredConnection | None, str]:
        """The connection that this login renews although the person did not choose one, None if there is none; and the
        name for a new one, with a number behind where the bank's name is taken. A connection is renewed that is of the
        same login, as the source says; else a disconnected one or, where the source cannot tell logins apart, one that
        waits for its user."""
        waits: StoredConnection | None = None
        number, called = 1, name
        while (known := self._connection_named(owner, stored, called)) is not None:
            is_same = self.sources[stored.connector].is_same_login(self._source_connection(stored, known), done)
            if is_same and known.status != "DISCONNECTED":
                return known, called
            if waits is None and (known.status == "DISCONNECTED" or (is_same is None and known.status in NEED_USER)):
                waits = known
            number += 1
            called = f"{name} {number}"
        return waits, called

    def _connection_named(self, owner: User, stored: StoredAttempt, name: str) -> StoredConnection | None:
        id_ = connections.id_of(user_name=owner.name, connector=stored.connector, bank_name=name)
        return connections.find(self._store.of(owner.id), owner.id, id_)

    def _connection_to_renew(self, stored: StoredAttempt) -> StoredConnection | None:
        if stored.connection_id is None:
            return None
        return connections.find(self._store.of(stored.user_id), stored.user_id, stored.connection_id)

    def _source_connection(self, stored: StoredAttempt, renewed: StoredConnection | None) -> source.Connection:
        if renewed is None:
            return source.Connection(id=stored.id, user_id=stored.user_id, bank_name="", settings={})
        try:
            return source_connection(renewed, self._secrets)
        except source.UserActionRequired:  # its secrets are lost: connected like a new one
            return source_connection(renewed, None)

    def _refuse(self, stored: StoredAttempt, reason: str) -> Attempt:
        database = self._store.of(stored.user_id)
        database.atomically(lambda session: connection_attempts.end(session, self._keys, stored, outcome=pack(reason)))
        return Attempt(id=stored.id, source=self.sources[stored.connector], refusal=reason)

    def _connect(
        self, stored: StoredAttempt, done: Done, given: Mapping[str, Any], renewed: StoredConnection | None
    ) -> Attempt:
        """Store the new or renewed connection (`renewed` None: `_same_or_new` decides) with its secrets, and end the
        attempt, in one transaction; a job of it that is running fails. Records the deed for the user."""
        name = _bank_name(given.get("bank_name") or done.bank_name)

        def work(session: Session) -> tuple[StoredConnection, Deed]:
            owner = users.find(session, stored.user_id)
            assert owner is not None, "attempts go with their user"
            same, called = (renewed, name) if renewed is not None else self._same_or_new(owner, stored, done, name)
            connection = same or connections.add(
                session,
                user_id=owner.id,
                user_name=owner.name,
                connector=stored.connector,
                bank_name=called,
                settings=dict(done.settings),
                now=self._clock.now(),
            )
            # its job uses old secrets, and would set an outdated status
            jobs.end_running(session, owner.id, connection.id, error=RENEWED, now=self._clock.now())
            connection_secrets.keep(session, self._keys, owner.id, connection.id, done.secrets)
            connection_attempts.end(session, self._keys, stored, outcome=CONNECTED, connection_id=connection.id)
            made = connections.renew(
                session,
                connection,
                settings=dict(done.settings),
                consent_expires_at=done.consent_expires_at,
                is_synced_next=True,
            )
            return made, "connectBank" if same is None else "renewBank"

        with self._keys.hold():
            made, deed = self._store.of(stored.user_id).atomically(work)
        self.did(made.user_id, deed)
        log.info("connection=%s user=%s connected", made.id, made.user_id)
        return Attempt(id=stored.id, source=self.sources[stored.connector], connection=made, is_new=True)


def _way_back(content: Mapping[str, Any], step: Question | Redirect, given: Mapping[str, Any]) -> source.Json:
    """What can be gone back to from this step, as a member of its content: the question just answered, with the answers
    except secrets; the one before that if nothing could be answered or the answer was wrong. Empty without any."""
    asked = _step_of(content)
    if not isinstance(asked, Question) or not asked.fields or (isinstance(step, Question) and step.problem):
        return {BEFORE: content[BEFORE]} if BEFORE in content else {}
    fields = [each if each.is_secret else replace(each, default=given.get(each.name, "")) for each in asked.fields]
    return {BEFORE: {**content, "step": to_builtins(replace(asked, fields=fields, problem=None), enc_hook=pack)}}


def _disconnect(live: LiveSource, left: source.Connection, *, now: datetime, why: dict[str, str]) -> None:
    """End the access to the connection `left` at its provider, and delete its entry in `why` or, on failure, set that
    to the reason. Does not use the store, because a slow provider may take longer than the process keeps the store
    open."""
    with contain(log, "%s could not be ended at the provider", left.id):
        try:
            live.disconnect(left, now=now)
            del why[left.id]
        except SourceError as error:
            log.info("%s could not be ended at the provider: %s %s", left.id, type(error).__name__, error.detail)
            why[left.id] = as_sentence(error)
        return
    why[left.id] = INTERNAL


@contextmanager
def _unknown_without_key() -> Iterator[None]:
    """A context that raises AttemptUnknown where an attempt's content cannot be decrypted because the key is gone."""
    try:
        yield
    except SecretsUnreadable as error:
        raise AttemptUnknown(AttemptUnknown.__doc__) from error


def _new_state(user_id: str) -> str:
    """A random OAuth state of 256 bits, with the user's id before it, by which the store finds the attempt."""
    return f"{user_id}.{token_urlsafe(32)}"


def _bank_name(text: str) -> str:
    """The bank's name, as the person or the source gives it, as one printable line of at most 70 characters that
    clients may show; `Bank` where nothing is left."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:BANK_NAME_CHARACTERS_MAX] or "Bank"


def _step_of(content: Mapping[str, Any]) -> Question | Redirect | None:
    found = content.get("step") or {}
    kind: type[Question | Redirect] = Redirect if "url" in found else Question
    return convert(found, kind, dec_hook=lambda _, text: unpack(text)) if found else None
