"""Commands on bank connections: make one with a first sync, renew, list, end."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from connectors import limits
from connectors.connecting import FormField, Question, Redirect
from connectors.exchange_protocol import as_text
from connectors.outgoing_http import WATCHED_BY, Exchange
from connectors.sources.folder import Folder, checked_folder, is_waiting
from connectors.statements import format_name
from handlers.commands.accounts import note_questions
from handlers.commands.control_socket import CommandError, Dialogue, Report
from handlers.commands.counts import quantity
from handlers.commands.syncs import WATCH_PAUSE, check_completeness, first_sync, new_transactions
from handlers.work.services import Services
from handlers.work.sync.connecting import Attempt, AttemptUnknown, Connecting
from handlers.work.sync.reminders import consent_reminder
from storage import accounts, connections, users
from storage.connections import StoredConnection
from storage.database import Session
from storage.users import User


def connect_bank(
    services: Services,
    report: Report,
    *,
    connector: str,
    user: User,
    bank: str | None,
    settings: Mapping[str, Any],
    fault: str | None,
    consent_days: int | None = None,
) -> None:
    """Make a connection of this connector (on the command line the demo bank's) with its first sync, or renew it;
    `bank` is its name, by default Musterbank. `fault` is simulated from the next sync on, and the consent ends after
    `consent_days`."""
    name = bank_name(bank or "Musterbank")
    wanted = {**settings, "bank_name": name}
    stored = _make_or_renew(services, user, connector=connector, bank_name=name, settings=wanted)
    if not _sync_and_say(services, report, user, stored):
        report.note(f"{name} was synced recently and is up to date.")
    if consent_days is not None:
        end = services.clock.now() + timedelta(days=consent_days)
        services.everybody.atomically(lambda session: _end_consent(session, stored, end))
        report.note(f"The consent ends on {end:%Y-%m-%d}.")
    if fault:
        connections.set_settings(services.everybody, user.id, stored.id, {**stored.settings, "fault": fault})
        report.note(f"The next sync of {name} will show: {fault}.")


def _end_consent(session: Session, connection: StoredConnection, end: datetime) -> None:
    session.changes(connection.user_id)  # cached answers end, so that clients see at once that it ends soon
    connections.keep_consent(session, connection.user_id, connection.id, expires_at=end)


def connect_folder(
    services: Services, report: Report, *, folder: str, user: User, bank: str | None, account: str | None = None
) -> None:
    """Connect a folder whose statement files every sync reads and moves away, or renew that connection, and sync it.
    The connection is called `bank`, or like the folder; files that do not name their account are about `account`.
    CommandError for a folder that holds other files, or a name that is in use."""
    path = checked_folder(folder)
    name = bank_name(bank or path.name)
    _check_that_all_may_be_moved(services, path)
    for each in connections.of_user(services.everybody, user.id):
        if (each.connector, each.bank_name) == (Folder.name, name) and each.settings["folder"] != str(path):
            raise CommandError(
                f"{name} is already connected to {each.settings['folder']}. Give this one another name with --bank."
            )
    settings = {"folder": str(path)}
    if account is not None:
        settings["account"] = accounts.resolve(services.everybody, user.id, account).id
    stored = _make_or_renew(services, user, connector=Folder.name, bank_name=name, settings=settings)
    if not _sync_and_say(services, report, user, stored):
        report.note(f"{name} was synced recently; its next sync reads what is new.")


def connect_live(
    services: Services,
    report: Dialogue,
    *,
    source: str,
    user: User,
    bank: str | None = None,
    given: Mapping[str, Any] | None = None,
    trace: str | None = None,
) -> None:
    """Connect or renew a live source (a bank or provider that is asked over the network), then sync it for the first
    time. `bank` is the name of the connection, and renews one of that name; `given` are answers for which the source
    then need not ask. Its questions are asked here; a sign-in happens in the person's browser. `trace` is a new file
    for the masked requests to the provider. CommandError if nothing was connected."""
    with _trace_into(trace) if trace is not None else nullcontext():
        named = {"bank_name": bank_name(bank)} if bank else {}
        known = [each for each in connections.of_user(services.everybody, user.id) if each.connector == source]
        attempt = services.connecting.begin(
            user.id,
            source,
            given={**(given or {}), **named},
            renewed=next((each for each in known if each.bank_name == bank), None),
            browser=None,
        )
        while attempt.connection is None:
            if attempt.step is None:
                raise CommandError(attempt.refusal or "Nothing was connected.")
            attempt = _next_step(services.connecting, report, user.id, attempt, attempt.step)
        report.note(f"{attempt.connection.bank_name} is connected.")
        _sync_and_say(services, report, user, attempt.connection)  # whoever connects or renews may always sync


@contextmanager
def _trace_into(path: str) -> Iterator[None]:
    """A context that writes the masked requests to providers, and their answers, into a new file, readable by its owner
    only. Raises FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:

        def write(exchange: Exchange) -> None:
            if not file.closed:  # a sync may go on after the command and still write
                file.write(as_text(exchange))
                file.flush()

        before = WATCHED_BY.set(write)
        try:
            yield
        finally:
            WATCHED_BY.reset(before)


def list_connections(services: Services, report: Report, *, user: User | None) -> None:
    """List the bank connections of one user or of everybody with their state, one a line, and note consents that end
    soon."""
    for each in [user] if user else users.everyone(services.everybody):
        for connection in connections.of_user(services.everybody, each.id):
            report.line(
                f"{connection.id}\t{each.name}\t{connection.bank_name}\t{connection.connector}\t{connection.status}"
            )
            if (reminder := consent_reminder(connection, now=services.clock.now())) is not None:
                report.note(reminder)


def remove_connection(services: Services, report: Report, *, user: User, connection_id: str) -> None:
    """End the access at a connection's provider, then the connection, and note that in the user's access record; a
    provider that failed is reported. The accounts and bookings that it brought stay readable. CommandError for an
    unknown id."""
    ended = [each for each in connections.of_user(services.everybody, user.id) if each.id == connection_id]
    if not ended:
        raise CommandError("The user has no connection with this id. `bankdata connections list` shows them.")
    say_what_is_left(report, services.connecting.remove(ended[0]))
    services.authorization.record.note(user.id, "disconnectBank")
    report.note("Removed. Its accounts and transactions stay; connecting the bank again renews it.")


def say_what_is_left(report: Report, left: Iterable[tuple[StoredConnection, str]]) -> None:
    """Note the connections whose access could not be ended at the provider, with the reason."""
    for each, why in left:
        report.note(f"The access to {each.bank_name} could not be ended at the provider: {why} End it there.")


def _next_step(
    connecting: Connecting, report: Dialogue, user_id: str, attempt: Attempt, step: Question | Redirect
) -> Attempt:
    if isinstance(step, Redirect):
        report.note("Open this address in a browser and sign in there:")
        report.line(step.url)
        if step.again_after is None:
            return _come_back(connecting, report, user_id, attempt)
        report.ask("", seconds=step.again_after)
        return connecting.answer(user_id, attempt.id, {}, browser=None)
    if step.problem is not None:
        report.note(step.problem)
    report.note(step.text)
    if not step.fields:
        report.ask("", seconds=step.again_after or WATCH_PAUSE)
    return connecting.answer(
        user_id, attempt.id, {each.name: _ask_for(report, each) for each in step.fields}, browser=None
    )


def _come_back(connecting: Connecting, report: Dialogue, user_id: str, attempt: Attempt) -> Attempt:
    """Wait until the browser has come back to this server, or until the person pastes the address at which it ended,
    and return the attempt in its next step. CommandError for an attempt that has ended."""
    report.note(
        "Waiting for the browser to come back. If it ends at a page that cannot be shown, paste its address here."
    )
    try:
        while isinstance(attempt.step, Redirect):
            pasted = report.ask("", seconds=WATCH_PAUSE)
            if pasted:
                _, attempt = connecting.resume(dict(parse_qsl(urlsplit(pasted).query)), browser=None)
            else:
                attempt = connecting.find(user_id, attempt.id, browser=None)
    except (AttemptUnknown, ValueError) as error:
        raise CommandError(AttemptUnknown.__doc__ or "") from error
    return attempt


def _ask_for(report: Dialogue, asked: FormField) -> str:
    if asked.choices:
        chosen = report.choose(asked.label, [label for _, label in asked.choices])
        if chosen is not None:
            return asked.choices[chosen][0]
    typed = report.ask(asked.label, is_secret=asked.is_secret)
    if typed is None and not (asked.default or asked.is_optional):
        raise CommandError(f"There is nobody to ask. Give this on standard input: {asked.label}.")
    return typed or asked.default


def bank_name(text: str) -> str:
    """The name as given, once checked: one printable line, no longer than a name in a statement may be. Clients see it
    as bankName. Raises CommandError."""
    if len(text) > limits.NAME_CHARACTERS_MAX or not text.isprintable():
        raise CommandError(f"The name of a bank has at most {limits.NAME_CHARACTERS_MAX} characters, all printable.")
    return text


def holds_more_than_statements(folder: Path, kept: Iterable[Path]) -> bool:
    """Whether the folder is one of `kept`, or contains one: a sync would move all files in it away."""
    return any(each.resolve().is_relative_to(folder) for each in kept)


def _check_that_all_may_be_moved(services: Services, folder: Path) -> None:
    settings = services.settings
    kept = [Path.home(), settings.data_dir, *([settings.store_path.parent] if settings.store_path else [])]
    if holds_more_than_statements(folder, kept):
        raise CommandError(f"Every file in {folder} would be moved. Give the connection a folder of its own.")
    strangers = [each.name for each in sorted(folder.iterdir()) if is_waiting(each) and format_name(each) is None]
    if strangers:
        raise CommandError(
            f"{folder} holds files that are not statements, such as {strangers[0]!r}, and a sync would move them away."
            " Give the connection a folder of its own."
        )


def _make_or_renew(
    services: Services, owner: User, *, connector: str, bank_name: str, settings: Mapping[str, Any]
) -> StoredConnection:
    """The connection of this name, new or renewed (decision 62), without a simulated fault; noted in the user's access
    record."""

    known_before = {each.id for each in connections.of_user(services.everybody, owner.id)}

    def work(session: Session) -> StoredConnection:
        known = connections.add(
            session,
            user_id=owner.id,
            user_name=owner.name,
            connector=connector,
            bank_name=bank_name,
            settings=dict(settings),
            now=services.clock.now(),
        )
        kept = {name: value for name, value in known.settings.items() if name != "fault"}
        return connections.renew(session, known, settings={**kept, **settings})

    made = services.everybody.atomically(work)
    services.authorization.record.note(owner.id, "renewBank" if made.id in known_before else "connectBank")
    return made


def _sync_and_say(services: Services, report: Report, owner: User, connection: StoredConnection) -> bool:
    """Sync the connection, and report what came and which accounts may be the same as others; False if it was synced
    too recently for another sync. CommandError if the sync failed, refused a file or left something of the bank out."""
    known = {each.id for each in accounts.every(services.everybody, owner.id)}
    job = first_sync(services, report, connection)
    if job is None:
        return False
    new = sum(each.id not in known for each in accounts.every(services.everybody, owner.id))
    report.line(f"{connection.bank_name}: {quantity(new, 'new account')}, {new_transactions(job)}")
    note_questions(services.everybody, report, owner)
    check_completeness(services, [(connection, job)])
    return True
