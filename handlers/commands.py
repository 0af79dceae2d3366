"""What the command line can do, as functions over an open service: in this process or inside the running server."""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from analytics.currencies import EURO
from analytics.merchants import is_intermediary
from analytics.rules import InvalidRule, correction_key, parse_rules, render_rules
from auth.errors import OAuthError
from auth.passwords import LENGTH_MIN, Weakness, weakness
from auth.scopes import SCOPES
from auth.server import ClientUnknown
from connectors import limits
from connectors.connector import SourceError
from connectors.csv_profiles import ProfileError
from connectors.ecb import update_rates
from connectors.folder import Folder, checked_folder, is_waiting
from connectors.statements import format_name
from handlers.control import CommandError, Report
from handlers.detection import detect_after_import
from handlers.exports import export
from handlers.imports import import_files
from handlers.refresh import Started
from handlers.services import BACKUPS_FOLDER, CLOCK_OFFSET, IS_DEMO, Services
from storage import connections, jobs, journal, maintenance, memory, rules, schema, transactions, users
from storage.connections import StoredConnection
from storage.database import Conflict, Session, StoreError, Transaction
from storage.derivation import derive_again
from storage.jobs import Job
from storage.users import User

NAME_CHARACTERS_MAX = 64
WATCH_PAUSE = 0.5  # seconds between two looks at a sync that waits for its bank


Command = Callable[..., None]
"""`def name(services, report, *, ...)`; raises CommandError."""

WEAK: Mapping[Weakness, str] = {
    "short": f"The password is too short: use {LENGTH_MIN} characters or more.",
    "long": "The password is too long.",
    "common": "The password is one of the common ones that are tried first. Use another.",
    "name": "The password contains the user's name. Use another.",
}


def users_add(
    services: Services, report: Report, *, name: str, password: str, is_generated: bool, has_subscription: bool
) -> None:
    """A person who may sign in."""
    if not name.strip() or len(name) > NAME_CHARACTERS_MAX or not name.isprintable() or name != name.strip():
        raise CommandError(f"A name has 1 to {NAME_CHARACTERS_MAX} printable characters and no blanks around it.")
    fault = weakness(password, user_name=name)
    if fault:
        raise CommandError(WEAK[fault])
    users.add(
        services.database,
        name=name,
        password_hash=services.authorization.passwords.hash(password),
        has_subscription=has_subscription,
        home_currency=services.settings.home_currency,
        now=services.clock.now(),
    )
    report.note(f"Added user {name}. Connect a bank with `bankdata connect demo --user {name}`.")
    if is_generated:
        report.line(password)


def users_list(services: Services, report: Report) -> None:
    """Who there is."""
    everyone = users.everyone(services.database)
    for user in everyone:
        count = len(connections.of_user(services.database, user.id))
        state = "active subscription" if user.has_subscription else "no subscription"
        report.line(f"{user.name}\t{state}\t{count} bank connection{'' if count == 1 else 's'}")
    if not everyone:
        report.note("There are no users yet. Add one with `bankdata users add NAME`.")


def users_passwd(services: Services, report: Report, *, name: str, password: str, is_generated: bool) -> None:
    """Another password; signs the user's browsers out."""
    user = _user(services, name)
    fault = weakness(password, user_name=user.name)
    if fault:
        raise CommandError(WEAK[fault])
    users.set_password_hash(services.database, user.id, services.authorization.passwords.hash(password))
    services.authorization.password_was_set(user.id)
    report.note(f"Changed the password of {user.name}.")
    if is_generated:
        report.line(password)


def users_subscription(services: Services, report: Report, *, name: str, active: bool) -> None:
    """Whether the data endpoints answer or send the user to the billing page."""
    user = _user(services, name)
    users.set_subscription(services.database, user.id, active=active)
    services.authorization.user_changed()
    report.note(f"{user.name} has {'an active' if active else 'no'} subscription now.")


def users_currency(services: Services, report: Report, *, name: str, currency: str) -> None:
    """The currency of figures over several currencies (decision 19); raises CommandError for one without a rate."""
    user = _user(services, name)
    if currency != EURO and currency not in services.rates["currency"]:
        raise CommandError(f"{currency!r} has no reference rate of the European Central Bank. Try EUR, USD or CHF.")
    users.set_home_currency(services.database, user.id, currency)
    report.note(f"Figures over several currencies are in {currency} for {user.name} now.")


def users_remove(services: Services, report: Report, *, name: str) -> None:
    """Delete a user with accounts, transactions and grants."""
    user = _user(services, name)
    services.authorization.remove_user(user.id)
    services.database.atomically(lambda session: users.remove(session, user.id))
    report.note(f"Removed user {user.name} with all data.")


def token(services: Services, report: Report, *, user: str, scope: str, seconds: int) -> None:
    """An access token, alone on standard output."""
    scopes = frozenset(scope.split())
    if not scopes or not scopes <= frozenset(SCOPES):
        raise CommandError(f"--scope takes one or more of {', '.join(SCOPES)}, separated by blanks.")
    try:
        issued = services.authorization.issue_token(_user(services, user).id, scopes, timedelta(seconds=seconds))
    except OAuthError as error:
        raise CommandError(error.description) from error
    report.line(issued)


def connect(
    services: Services,
    report: Report,
    *,
    connector: str,
    user: str,
    bank: str | None,
    settings: Mapping[str, Any],
    fault: str | None,
) -> None:
    """A bank connection with its first sync; a fault shows from the next sync on. Connecting again renews it."""
    bank_name = _bank_name(bank or "Musterbank")
    wanted = {**settings, "bank_name": bank_name}
    stored = _connected(services, _user(services, user), connector=connector, bank_name=bank_name, settings=wanted)
    if first_sync(services, report, stored) is None:
        report.note(f"{bank_name} was synced recently and is up to date.")
    if fault:
        connections.set_settings(services.database, stored.id, {**stored.settings, "fault": fault})
        report.note(f"The next sync of {bank_name} will show: {fault}.")


def connect_folder(services: Services, report: Report, *, folder: str, user: str, bank: str | None) -> None:
    """A folder whose statement files every sync reads. Connecting it again renews the connection."""
    owner = _user(services, user)
    try:
        path = checked_folder(folder)
    except SourceError as error:
        raise CommandError(str(error)) from error
    bank_name = _bank_name(bank or path.name)
    if holds_more_than_statements(path, [Path.home(), services.settings.data_dir, services.settings.store_path.parent]):
        raise CommandError(f"Every file in {path} would be moved. Give the connection a folder of its own.")
    strangers = [each.name for each in sorted(path.iterdir()) if is_waiting(each) and format_name(each) is None]
    if strangers:
        raise CommandError(
            f"{path} holds files that are no statements, {strangers[0]!r} for one, and a sync puts away all it finds."
            " Give the connection a folder of its own."
        )
    for each in connections.of_user(services.database, owner.id):
        if (each.connector, each.bank_name) == (Folder.name, bank_name) and each.settings["folder"] != str(path):
            raise CommandError(
                f"{bank_name} is connected to {each.settings['folder']} already. Name this one otherwise with --bank."
            )
    stored = _connected(services, owner, connector=Folder.name, bank_name=bank_name, settings={"folder": str(path)})
    job = first_sync(services, report, stored)
    if job is None:
        report.note(f"{bank_name} was synced recently; its next sync reads what is new.")
        return
    report.line(f"{stored.bank_name}: {job.new_transactions} new transactions")


def _connected(
    services: Services, owner: User, *, connector: str, bank_name: str, settings: Mapping[str, Any]
) -> StoredConnection:
    """The connection of this name, new or renewed (decision 62), without a fault."""

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

    return services.database.atomically(work)


def holds_more_than_statements(folder: Path, kept: Iterable[Path]) -> bool:
    """Whether the folder is one of those that must stay as they are, or one above them: a sync puts away all files."""
    return any(each.resolve().is_relative_to(folder) for each in kept)


def _bank_name(text: str) -> str:
    """What clients see as bankName: one line, and no longer than a name that a statement may hold."""
    if len(text) > limits.NAME_CHARACTERS_MAX or not text.isprintable():
        raise CommandError(f"The name of a bank has at most {limits.NAME_CHARACTERS_MAX} characters, all printable.")
    return text


def import_(
    services: Services,
    report: Report,
    *,
    user: str,
    files: list[str],
    connection: str | None,
    is_dry_run: bool,
    is_json: bool,
) -> None:
    """Statement files of any known format."""
    import_files(
        services,
        report,
        user=_user(services, user),
        files=files,
        connection=_bank_name(connection) if connection else None,
        is_dry_run=is_dry_run,
        is_json=is_json,
    )


def export_(services: Services, report: Report, *, user: str, format_: str, path: str) -> None:
    """All booked transactions of a user, into a file."""
    count = export(services.database, _user(services, user).id, format_, Path(path), now=services.clock.now())
    report.note(f"Exported {count} transactions.")


def rules_add(services: Services, report: Report, *, user: str, text: str) -> None:
    """Append rules (JSON lines); each keeps or gets an id."""
    owner = _user(services, user)
    known = rules.of_user(services.database, owner.id)
    try:
        added = parse_rules(text)
        taken = {rule.id for rule in known}
        numbered = [replace(rule, id=_free_id(rule.id, taken)) for rule in added]
        parse_rules(render_rules([*known, *numbered]))  # the whole must be a valid file, too
    except InvalidRule as error:
        raise CommandError(str(error)) from error
    rules.keep(services.database, owner.id, [*known, *numbered])
    report.note(f"Added {len(added)}. They act from now on; `bankdata rules apply` rereads what is stored.")


def rules_list(services: Services, report: Report, *, user: str) -> None:
    """The rules in their order, as JSON lines that can be added again."""
    for line in render_rules(rules.of_user(services.database, _user(services, user).id)).splitlines():
        report.line(line)


def rules_remove(services: Services, report: Report, *, user: str, rule_id: str) -> None:
    """Forget a rule."""
    owner = _user(services, user)
    known = rules.of_user(services.database, owner.id)
    kept = [rule for rule in known if rule.id != rule_id]
    if len(kept) == len(known):
        raise CommandError("There is no rule of this id. `bankdata rules list` shows them.")
    rules.keep(services.database, owner.id, kept)
    report.note("Removed.")


def rules_apply(services: Services, report: Report, *, user: str) -> None:
    """Read all stored bookings anew under the rules of today."""
    owner = _user(services, user)
    changed = services.database.atomically(lambda session: _derive_all(session, owner.id, services.clock.now()))
    detect_after_import(services.database, [owner.id], today=services.clock.today())
    report.line(f"{changed} bookings changed.")


def correct(services: Services, report: Report, *, user: str, transaction_id: str, category: str) -> None:
    """Remember the category of a booking for all bookings of its counterpart, past and to come."""
    owner = _user(services, user)
    row = transactions.find(services.database, owner.id, transaction_id)
    if row is None:
        raise CommandError("The user has no transaction of this id.")
    carries_for_others = is_intermediary(row["counterpart_name"])
    key = correction_key(
        creditor_id=None if carries_for_others else row["creditor_id"],
        counterpart_iban=None if carries_for_others else row["counterpart_iban"],
        merchant_name=row["merchant_name"],
    )
    if key is None:
        raise CommandError("This booking names no counterpart to remember. Write a rule: bankdata rules add.")
    rules.correct(services.database, owner.id, key, category)
    rules_apply(services, report, user=user)


def rates_update(services: Services, report: Report, *, file: str) -> None:
    """Newer reference rates of the European Central Bank."""
    try:
        rates = update_rates(Path(file), folder=services.settings.data_dir)
    except SourceError as error:
        raise CommandError(f"{file}: {error}") from error
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}.") from error
    services.forget_rates()
    report.line(f"Reference rates up to {rates['day'].max()!s}.")


def _free_id(wanted: str, taken: set[str]) -> str:
    number = int(wanted) if wanted.isdigit() else 0
    while wanted in taken:
        number += 1
        wanted = str(number)
    taken.add(wanted)
    return wanted


def _derive_all(session: Transaction, user_id: str, now: datetime) -> int:
    changed = derive_again(session, user_id)
    journal.record(session, user_id=user_id, job_id="rules", changes=[(id_, "modified") for id_ in changed], now=now)
    return len(changed)


def first_sync(
    services: Services, report: Report, connection: StoredConnection, job_id: str | None = None
) -> Job | None:
    """The sync that belongs to connecting: it takes nobody's turn (decision 25). One that was cut off goes on; None
    when the connection was synced too recently for another one."""
    started = services.refresher.start(connection, cooldown=timedelta(0), job_id=job_id)
    if started.job is None and started.error is None:
        started = Started(job=jobs.running(services.database, connection.id))
        if started.job is None:
            return None
    return _watch(services, report, connection, started)


def connections_list(services: Services, report: Report, *, user: str | None) -> None:
    """The bank connections with their state."""
    for each in [_user(services, user)] if user else users.everyone(services.database):
        for connection in connections.of_user(services.database, each.id):
            report.line(
                f"{connection.id}\t{each.name}\t{connection.bank_name}\t{connection.connector}\t{connection.status}"
            )


def connections_remove(services: Services, report: Report, *, user: str, connection_id: str) -> None:
    """End a connection; what it brought stays readable."""
    owner = _user(services, user)
    if connection_id not in {each.id for each in connections.of_user(services.database, owner.id)}:
        raise CommandError("The user has no connection of this id. `bankdata connections list` shows them.")
    connections.remove(services.database, owner.id, connection_id)
    report.note("Removed. Its accounts and transactions stay; connecting the bank again renews it.")


def sync(services: Services, report: Report, *, user: str | None) -> None:
    """Sync the connections of one user or of everybody, under the same rate rule as POST /sync."""
    who = [_user(services, user)] if user else users.everyone(services.database)
    failed = 0
    for each in who:
        for connection in connections.of_user(services.database, each.id):
            started = services.refresher.start(connection)
            if started.job is None and started.error is None:
                report.line(f"{each.name}\t{connection.bank_name}\tskipped: synced recently")
                continue
            try:
                job = _watch(services, report, connection, started)
                report.line(f"{each.name}\t{connection.bank_name}\t{job.new_transactions} new transactions")
            except CommandError as error:
                failed += 1
                report.line(f"{each.name}\t{connection.bank_name}\tfailed: {error}")
    if failed:
        raise CommandError(f"{failed} of the syncs failed.")


def clock_advance(services: Services, report: Report, *, seconds: int) -> None:
    """Move the clock of a demo server: tokens expire, cool-downs end, the bank grows new days."""
    if memory.recall(services.database, IS_DEMO) is None:
        raise CommandError("The clock moves in a store made by `bankdata demo` only; this one is real.")
    offset = services.clock.offset + timedelta(seconds=seconds)
    memory.remember(services.database, CLOCK_OFFSET, str(int(offset.total_seconds())))
    services.clock.offset = offset
    report.line(f"It is now {services.clock.now().isoformat(sep=' ', timespec='seconds')} UTC in the demo.")


def clients_list(services: Services, report: Report) -> None:
    """The OAuth clients that are registered."""
    for client in services.authorization.clients():
        report.line(f"{client.id}\t{client.name}\t{client.registered_by}\t{' '.join(client.redirect_uris)}")


def clients_add(services: Services, report: Report, *, name: str, redirect_uris: list[str]) -> None:
    """A client that the operator vouches for; its id."""
    try:
        report.line(services.authorization.add_client(name, tuple(redirect_uris)).id)
    except OAuthError as error:
        raise CommandError(error.description) from error


def clients_remove(services: Services, report: Report, *, client_id: str) -> None:
    """Delete a client and end its grants."""
    try:
        ended = services.authorization.remove_client(client_id)
    except ClientUnknown as error:
        raise CommandError("There is no client of this id. `bankdata clients list` shows them.") from error
    report.note(f"Removed the client and ended {ended} grant{'' if ended == 1 else 's'}.")


def grants_list(services: Services, report: Report, *, user: str | None) -> None:
    """Which apps are connected to whom."""
    wanted = _user(services, user).id if user else None
    for each in services.authorization.connections(wanted):
        report.line(f"{each.grant.id}\t{each.user_name}\t{each.client_name}\t{each.grant.scope}")


def grants_revoke(services: Services, report: Report, *, grant_id: str) -> None:
    """End a grant: its tokens stop working at once."""
    if not services.authorization.revoke_grant(grant_id):
        raise CommandError("There is no live grant of this id. `bankdata grants list` shows them.")
    report.note("Revoked.")


def keys_rotate(services: Services, report: Report) -> None:
    """A new signing key; tokens of the old one live out their hour."""
    report.line(services.authorization.rotate_keys())


def registration_token(services: Services, report: Report) -> None:
    """The initial access token that BANKDATA_REGISTRATION=token asks for."""
    report.line(services.authorization.registration_token())


def check(services: Services, report: Report) -> None:
    """Whether settings, store and keys are as they should be, and how to mend what is not."""
    settings, faults = services.settings, []
    mode = settings.data_dir.stat().st_mode & 0o777
    if mode & 0o077:
        faults.append(f"The data folder is open to others (mode {mode:o}): chmod 700 {settings.data_dir}")
    free = shutil.disk_usage(settings.store_path.parent).free
    if free < maintenance.FREE_BYTES_MIN:
        faults.append(f"Only {free // 2**20} MB are free on the disk of the store; keep 500 MB.")
    if not os.access(settings.store_path, os.W_OK):
        faults.append(f"The store cannot be written: {settings.store_path}")
    found = len(users.everyone(services.database))
    report.line(f"settings   ok, public address {settings.public_url}, today is {services.clock.today()}")
    report.line(f"store      schema version {schema.current_version(services.database)}, {settings.store_path}")
    report.line(f"keys       signing key {services.authorization.keys.active().kid}")
    report.line(f"users      {found}" + ("" if found else ": add one with `bankdata users add NAME`"))
    if settings.public_url.startswith("http://") and "127.0.0.1" not in settings.public_url:
        faults.append("BANKDATA_PUBLIC_URL is http: tokens would travel in clear. Put TLS in front and say https.")
    for fault in faults:
        report.line(f"WRONG      {fault}")
    if faults:
        raise CommandError(f"{len(faults)} thing{'' if len(faults) == 1 else 's'} to mend.")


def backup(services: Services, report: Report) -> None:
    """A consistent copy of store and keys, also while the server runs; the folder it stands in."""
    folder = services.settings.data_dir / BACKUPS_FOLDER
    name = services.clock.now().strftime("%Y%m%d-%H%M%S")
    report.line(str(maintenance.backup(services.database, folder / name, also=[services.authorization.keys.path])))


def compact(services: Services, report: Report) -> None:
    """Put the transactions back into their order, which reads rely on for speed."""
    report.line(f"Sorted {maintenance.compact(services.database)} transactions.")


def _user(services: Services, name: str) -> User:
    return users.named(services.database, name)


def _watch(services: Services, report: Report, connection: StoredConnection, started: Started) -> Job:
    """Follow a sync to its end; raises CommandError when it fails."""
    job = started.job
    if job is None:
        raise CommandError(started.error or f"{connection.bank_name} was synced recently. Try again later.")
    steps = {"pending": 0, "syncing": 1, "importing": 2, "completed": 3, "failed": 3}
    while not job.is_final:
        report.progress(f"{connection.bank_name}: {job.status}", steps[job.status], 3)
        read = services.refresher.read(job.user_id, job.id)
        assert read is not None, "a job vanished"
        if read.status == job.status:
            time.sleep(WATCH_PAUSE)
        job = read
    report.progress(f"{connection.bank_name}: {job.status}", 3, 3)
    if job.status == "failed":
        raise CommandError(f"{connection.bank_name}: {job.error}")
    return job


COMMANDS: Mapping[str, Command] = {
    "users add": users_add,
    "users list": users_list,
    "users passwd": users_passwd,
    "users subscription": users_subscription,
    "users currency": users_currency,
    "users remove": users_remove,
    "token": token,
    "connect": connect,
    "connect folder": connect_folder,
    "import": import_,
    "export": export_,
    "rules add": rules_add,
    "rules list": rules_list,
    "rules remove": rules_remove,
    "rules apply": rules_apply,
    "correct": correct,
    "rates update": rates_update,
    "connections list": connections_list,
    "connections remove": connections_remove,
    "sync": sync,
    "clock advance": clock_advance,
    "clients list": clients_list,
    "clients add": clients_add,
    "clients remove": clients_remove,
    "grants list": grants_list,
    "grants revoke": grants_revoke,
    "keys rotate": keys_rotate,
    "registration-token": registration_token,
    "check": check,
    "backup": backup,
    "compact": compact,
}


def perform(services: Services, name: str, arguments: Mapping[str, Any], report: Report) -> None:
    """Carry out a command by name; every expected failure becomes a CommandError."""
    try:
        COMMANDS[name](services, report, **arguments)
    except (StoreError, ProfileError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        raise CommandError(f"{named}{error.strerror or error}.") from error
    except Conflict as error:
        raise CommandError("Something else changed the same data at the same time. Try again.") from error
