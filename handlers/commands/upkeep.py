"""Commands that maintain store and keys: check, back up, sort the rows, install rates, move a demo's clock."""

import shutil
from datetime import timedelta
from pathlib import Path

from connectors.connector import SourceError
from connectors.reference.exchange_rates import update_rates
from handlers import integrity_sentences
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.settings import IN_CLEAR
from handlers.work.services import BACKUPS_FOLDER, CLOCK_OFFSET, IS_DEMO, Services
from storage import accounts, backup, compaction, store_facts, users
from storage.bank_access.connection_keys import how_to_bring
from storage.migrations import later_indexes, runner, soundness

ANYBODY = "Whoever has an account at the provider can come in: say which groups may, BANKDATA_OIDC_GROUPS."
BACKUP_AGE_MAX = timedelta(days=8)
WAL_KEPT_MAX = 5 * 2**30  # bytes


def check(services: Services, report: Report, *, has_accounts: bool = False) -> None:
    """Check settings, store and keys, report how to fix what is wrong, and raise CommandError if anything is; with
    `has_accounts`, also check everybody's bookings against statements and balances."""
    settings, faults = services.settings, []
    mode = settings.data_dir.stat().st_mode & 0o777
    if mode & 0o077:
        faults.append(f"The data folder is open to others (mode {mode:o}): chmod 700 {settings.data_dir}")
    free = shutil.disk_usage(settings.store_path.parent).free if settings.store_path is not None else None
    if free is not None and free < backup.FREE_BYTES_MIN:
        faults.append(f"Only {free // 2**20} MB are free on the disk of the store; keep 500 MB.")
    if services.own_profiles.is_unread:
        faults.append(
            f"{services.own_profiles.folder} is not read: `bankdata profiles add FILE` keeps it in the store."
        )
    if services.missing_key is not None:
        how = how_to_bring(services.connection_keys.place)
        faults.append(f"{services.missing_key} {how.capitalize()}; the connections then go on by themselves.")
    if (off := services.clock_watch.wrong()) is not None:
        faults.append(off)
    if gone := soundness.missing(services.everybody):
        faults.append(f"The store lacks {', '.join(gone)}, which a migration has made: restore a backup.")
    found = len(users.everyone(services.everybody))
    report.line(f"settings   ok, public address {settings.public_url}, today is {services.clock.today()}")
    report.line(f"store      schema version {runner.current_version(services.everybody)}, {settings.store_name}")
    missing = later_indexes.missing(services.everybody)
    if missing:
        report.line(f"indexes    {', '.join(missing)} not there yet: a server builds them, or `bankdata build-indexes`")
    report.line(f"keys       signing key {services.authorization.keys.signing_key().kid}")
    report.line(f"users      {found}" + ("" if found else ": add one with `bankdata users add NAME`"))
    faults += _kept_safe(services, report)
    if has_accounts:
        faults += contradictions(services, report)
    if settings.oidc_new_people and settings.oidc_groups is None:
        faults.append(ANYBODY)
    if settings.is_in_clear:
        faults.append(IN_CLEAR)
    for fault in faults:
        report.line(f"WRONG      {fault}")
    if faults:
        raise CommandError(f"{quantity(len(faults), 'problem')} found.")


def _kept_safe(services: Services, report: Report) -> list[str]:
    """Report the newest backup and, of PostgreSQL, its size and the WAL that it keeps; returns what is wrong there."""
    faults, database = [], services.everybody
    if (archive := soundness.archive(database)) is not None:
        stored, kept = (f"{size / 2**20:,.0f} MB" for size in (services.store.bytes, archive.kept_bytes))
        report.line(f"database   {stored}, and {kept} of WAL that nobody has fetched yet")
        if archive.is_failing:
            faults.append(
                "PostgreSQL fails to archive its WAL: its log says why, and it keeps all of it until that works."
            )
        elif archive.kept_bytes > WAL_KEPT_MAX:
            faults.append(f"PostgreSQL keeps {kept} of WAL: archive_command or a replication slot is behind.")
    made = services.backed_up_at()
    report.line(f"backup     {f'{made:%Y-%m-%d %H:%M} UTC' if made is not None else 'none is known'}")
    if made is not None and services.clock.now() - made > BACKUP_AGE_MAX:
        faults.append(f"The newest backup is of {made:%Y-%m-%d}: see why the nightly one fails.")
    return faults


def contradictions(services: Services, report: Report) -> list[str]:
    """A sentence, beginning with the user's name, for everything that does not add up in anybody's accounts, as `GET
    /integrity` says it. Reports how many accounts were compared."""
    faults, today, count = [], services.clock.today(), 0
    for user in users.everyone(services.everybody):
        owned = accounts.every(services.everybody, user.id)
        found = integrity_sentences.of_accounts(services.everybody, user.id, owned, today=today)
        wrong = integrity_sentences.warnings(found, owned)
        faults += [f"{user.name}: {text}" for texts in wrong.values() for text in texts]
        count += len(owned)
    report.line(f"accounts   {count}, their bookings compared with statements and balances")
    return faults


def back_up(services: Services, report: Report, *, keep: int | None = None) -> None:
    """Make a consistent copy of store and keys, also while the server runs, and report its folder. With `keep`, delete
    all but that many of the newest backups afterwards."""
    folder = services.settings.data_dir / BACKUPS_FOLDER
    name = services.clock.now().strftime("%Y%m%d-%H%M%S")
    keys = services.authorization.keys.path
    made = backup.backup(services.store, folder / name, also=[keys] if keys is not None else [])
    report.line(str(made))
    if keep is not None:
        for path in backup.remove_older(made, keep=keep):
            report.note(f"Deleted {path}.")


def compact(services: Services, report: Report) -> None:
    """Sort the stored transactions again into the order that makes reading them fast, and report how many; CommandError
    for PostgreSQL, which does so by itself."""
    if services.store.is_shared:
        raise CommandError("PostgreSQL keeps its tables in order by itself (autovacuum).")
    report.line(f"Sorted {quantity(compaction.compact(services.everybody), 'transaction')}.")


def advance_clock(services: Services, report: Report, *, seconds: int) -> None:
    """Move the clock of a demo server forward: tokens expire, cool-downs end, the demo bank grows new days.
    CommandError for a store of real users."""
    if store_facts.recall(services.everybody, IS_DEMO) is None:
        raise CommandError("Only a store made by `bankdata demo` has a clock that can be moved; this one is real.")
    offset = services.clock.offset + timedelta(seconds=seconds)
    store_facts.remember(services.everybody, CLOCK_OFFSET, str(int(offset.total_seconds())))
    services.clock.offset = offset
    report.line(f"It is now {services.clock.now().isoformat(sep=' ', timespec='seconds')} UTC in the demo.")


def install_rates(services: Services, report: Report, *, file: str, origin: str | None = None) -> None:
    """Install newer reference rates of the European Central Bank from a file, for all processes of the store, and drop
    cached answers; `origin` is the address it was downloaded from. CommandError for a file that is not usable."""
    try:
        services.sharing.fetch_rates()
        rates = update_rates(Path(file), folder=services.settings.data_dir)
    except SourceError as error:
        raise CommandError(f"{origin or file}: {error}") from error
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}.") from error
    services.forget_rates()
    services.sharing.share_rates()
    report.line(f"Reference rates up to {rates['day'].max()!s}.")
