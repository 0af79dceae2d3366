"""Rehearsals of an upgrade (of the newest backup or a restored dump) and of a restore (of a PostgreSQL backup): the
copy is opened by this program and compared with what it held before."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.commands.failures import failures_in_words
from handlers.commands.upkeep import contradictions
from handlers.settings import Settings
from handlers.work.services import BACKUPS_FOLDER, Services, open_services
from storage import backup, store_facts, users
from storage.database import Row, Store
from storage.engines import distribution
from storage.engines.opening import NO_POSTGRESQL, open_database
from storage.engines.restored_server import base_backup, restored_server
from storage.holdings import holdings
from storage.migrations import later_indexes, runner

MB = 2**20
UPGRADES = "ok         this program can take over the store: stop the old one, start this one"


def upgrade_check(settings: Settings, report: Report, *, folder: Path | None = None, is_restored: bool = False) -> None:
    """Open a copy of a backup, by default the newest, with this program, and report the outcome; neither store nor
    backup is touched. With `is_restored`, the database of the settings is itself a restored dump, and is changed.
    Raises CommandError where this program could not take over the store."""
    if is_restored:
        _check_restored(settings, report)
        return
    if folder is None and settings.store_path is None:
        raise CommandError(
            "Restore the last dump into a database of its own, set BANKDATA_DATABASE_URL to that, and say --restored."
        )
    chosen = folder or _newest_backup(settings.data_dir / BACKUPS_FOLDER)
    with failures_in_words(chosen), _copy(chosen, settings.data_dir) as copy:
        store = copy / backup.STORE_NAME
        if not store.is_file():
            raise CommandError(f"{chosen} is no backup: it holds no {backup.STORE_NAME}.")
        own = replace(settings, data_dir=copy, database_url=f"duckdb:///{store}", database_app_url="")
        with open_restored(f"backup     {chosen}", own, report):
            report.line(UPGRADES)


def _check_restored(settings: Settings, report: Report) -> None:
    if settings.store_path is not None:
        raise CommandError("Set BANKDATA_DATABASE_URL to the PostgreSQL database that the dump was restored into.")
    with failures_in_words():
        with closing(open_database(settings.database_url, pool=1, prepare=settings.database_prepare)) as store:
            others = distribution.others_of(store.for_everybody())
        if others:
            raise CommandError(
                f"{settings.store_name} has {quantity(others, 'other open connection')}. It would be changed: restore"
                " the dump into a database that nobody uses."
            )
        with TemporaryDirectory(prefix="bankdata-upgrade-check-") as place:
            own = replace(settings, data_dir=Path(place), database_app_url="")
            with open_restored(f"restored   {settings.store_name}", own, report):
                report.line(UPGRADES)


def _newest_backup(backups: Path) -> Path:
    found = backup.list_backups(backups) if backups.is_dir() else []
    if not found:
        raise CommandError(f"There is no backup in {backups} to rehearse with. Make one: bankdata backup")
    return found[-1]


@contextmanager
def _copy(folder: Path, data_dir: Path) -> Iterator[Path]:
    with backup.working_folder(data_dir, ".upgrade-check-") as place:
        needed = 2 * sum(path.stat().st_size for path in folder.iterdir()) + backup.FREE_BYTES_MIN
        free = shutil.disk_usage(data_dir).free
        if free < needed:
            raise CommandError(
                f"The rehearsal needs {needed // MB} MB on the disk of {data_dir}; {free // MB} MB are free."
            )
        for path in folder.iterdir():
            shutil.copy2(path, place)
        yield place


@contextmanager
def open_restored(what: str, settings: Settings, report: Report) -> Iterator[Services]:
    """A context with the service that this program opens over a restored store, which the report calls `what`. It
    reports the migration steps and what the store holds, builds the missing indexes, and raises CommandError where the
    steps changed what the store holds."""
    with closing(open_database(settings.database_url, prepare=settings.database_prepare)) as store:
        version, size = runner.current_version(store.for_everybody()), store.bytes
        before = _holdings(store)
    report.line(f"{what}, schema version {version}")
    started = time.monotonic()
    with closing(open_services(settings)) as services:
        took = time.monotonic() - started
        services.authorization.keys.signing_key()
        steps = [each for each in runner.migrations() if each.number > version]
        after, grown = _holdings(services.store), (services.store.bytes - size) // MB
        report.line(
            f"steps      {quantity(len(steps), 'step')} in {took:.1f} s, {grown:+d} MB"
            if steps
            else "steps      none: store and program belong together"
        )
        for step in steps:
            report.line(f"           {step.name}")
        started = time.monotonic()
        for name in later_indexes.build(services.store):
            took, started = time.monotonic() - started, time.monotonic()
            report.line(f"index      {name} in {took:.1f} s, which servers build beside their work")
        if after != before:
            raise CommandError(f"The upgrade changed what the store holds: {before} became {after}. Do not upgrade.")
        report.line("kept       " + ", ".join(f"{each['figure']} {each['what']}" for each in after))
        if steps and runner.version_needed_after(version) <= version:
            report.line("way back   the old program can be started again on the new store")
        elif steps:
            report.line("way back   the backup alone: the old program cannot use the new store")
        yield services


def _holdings(store: Store) -> list[Row]:
    with store.migrating() as session:  # counting all rows may take longer than other statements may
        return holdings(session)


INSTANT = "recovery_target_time = '{} UTC'\n"


def restore_drill(
    settings: Settings, report: Report, *, backups: Path, at: datetime | None, point: str | None = None
) -> None:
    """Restore a PostgreSQL backup on the side, and report how long that takes, how recent its data are, what it holds,
    whether its keys open it and its bookings add up. `at` is an instant in UTC, by default the end of the WAL; for a
    Citus cluster `point` is a restore point. Raises CommandError where something is wrong; neither store nor backup is
    touched."""
    if settings.store_path is not None:
        raise CommandError("BANKDATA_DATABASE_URL names no PostgreSQL. Of a DuckDB store: bankdata upgrade-check")
    started = time.monotonic()
    with (
        failures_in_words(backups),
        _restore(backups, settings.database_url, at=at, point=point) as (base, url),
        TemporaryDirectory(prefix="bankdata-drill-") as folder,
    ):
        seconds, place = time.monotonic() - started, Path(folder)
        own = replace(
            settings,
            data_dir=place,
            connection_keys=place / "none",
            database_url=url,
            database_app_url="",
            database_prepare=True,
        )
        _check(own, report, base=base, seconds=seconds)


@contextmanager
def _restore(backups: Path, url: str, *, at: datetime | None, point: str | None) -> Iterator[tuple[Path, str]]:
    """A context with the folder of the restored backup and the address of the database server that was started over
    it."""
    try:
        from storage.engines.restored_cluster import node_folders, restored_cluster
    except ImportError as error:
        raise CommandError(NO_POSTGRESQL) from error
    if not node_folders(backups):
        if point is not None:
            raise CommandError("A point is of a cluster, whose nodes have a folder each. Of one server say --at.")
        base = base_backup(backups, at=at)
        until = INSTANT.format(at) if at is not None else ""
        with restored_server(base, backups / "wal", url, until=until) as address:
            yield base, address
        return
    if point is None:
        raise CommandError("Several nodes are restored to a point that was set on all of them: say which by --point.")
    with restored_cluster(backups, url, point=point, at=at) as address:
        yield backups, address


def _check(settings: Settings, report: Report, *, base: Path, seconds: float) -> None:
    with open_restored(f"backup     {base}", settings, report) as services:
        until = store_facts.restored_until(services.everybody)
        last = f"the last commit is of {until:%Y-%m-%d %H:%M:%S} UTC" if until else "no commit since the base backup"
        report.line(f"restored   in {seconds:.1f} s, {last}")
        report.line(f"keys       signing key {services.authorization.keys.signing_key().kid}")
        faults = contradictions(services, report)
        if services.missing_key is not None:
            faults.append(services.missing_key)
        if not users.everyone(services.everybody):
            faults.append("There are no users in it.")
        for fault in faults:
            report.line(f"WRONG      {fault}")
        if faults:
            raise CommandError(f"{quantity(len(faults), 'problem')} found.")
    report.line("ok         this backup can be restored")
