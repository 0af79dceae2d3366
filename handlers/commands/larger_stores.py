"""Commands for a store that outgrows its place: move it from the embedded file into PostgreSQL, spread it over the
machines of a Citus cluster, build its missing indexes."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from auth.tokens.keys import FILE_NAME as KEYS
from auth.tokens.keys import KIND as SIGNING_KEYS
from connectors.bank_csv.profile import profile_texts
from connectors.reference.exchange_rates import FILE_NAME as RATES
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.commands.failures import failures_in_words
from handlers.settings import Settings
from handlers.work.clock import Clock
from handlers.work.own_profiles import PROFILES_FOLDER, SharedProfiles
from storage import documents
from storage.backup import STORE_NAME, working_folder
from storage.bank_access import connection_keys, connection_secrets
from storage.database import Store
from storage.engines import distribution, moving
from storage.engines.duckdb_file import check_free
from storage.engines.opening import open_database
from storage.keys.places import SealedKeys
from storage.migrations import later_indexes, runner


def migrate_store(settings: Settings, report: Report, *, folder: Path) -> None:
    """Move the store of another data folder, whose server is stopped, into the PostgreSQL of these settings: users,
    bookings, grants, keys, rates and profiles. A move that broke off is resumed; raises CommandError."""
    if settings.store_path is not None:
        raise CommandError("Set BANKDATA_DATABASE_URL to the PostgreSQL database that the store is to be moved into.")
    file = folder / STORE_NAME
    if not file.is_file():
        raise CommandError(f"{folder} holds no {STORE_NAME}.")
    with failures_in_words(folder):
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with working_folder(settings.data_dir, ".migrate-store-") as place:
            _copy(file, place)
            _move(settings, report, folder, place)


def _copy(file: Path, place: Path) -> None:
    """Copy a store's file and its write-ahead log (.wal), if there is one, into a folder, so that the move works on the
    copy and never writes to the original. Raises StoreInUse if another process has the store open, and
    StoreUnreadable."""
    check_free(file)
    for each in (file, file.with_name(file.name + ".wal")):
        if each.exists():
            shutil.copy2(each, place)


def _move(settings: Settings, report: Report, folder: Path, place: Path) -> None:
    clock = Clock(settings.time_zone)
    with (
        closing(open_database(f"duckdb:///{place / STORE_NAME}")) as source,
        closing(open_database(settings.database_url, prepare=settings.database_prepare)) as target,
    ):
        for each in (source, target):
            runner.migrate(each, now=clock.now())
        everybody = target.for_everybody()
        keys, of_banks = (
            SealedKeys(everybody, kind, settings.keys_secret, clock.now)
            for kind in (SIGNING_KEYS, connection_keys.KIND)
        )
        moving.begin(everybody)
        if (folder / KEYS).exists():  # with these keys, tokens of the old store stay valid in the new one
            content, stamp = (folder / KEYS).read_bytes(), keys.stamp()
            if stamp is None:
                keys.create(content)
            else:
                keys.replace(content, stamp)
        if (folder / connection_keys.FILE_NAME).exists():
            kept = connection_keys.ConnectionKeys(of_banks)
            connection_secrets.take_over(everybody, kept, folder / connection_keys.FILE_NAME)
        if (folder / RATES).exists():
            documents.add(everybody, RATES, (folder / RATES).read_text("utf-8"), now=clock.now())
        for name, text in profile_texts(folder / PROFILES_FOLDER).items():
            SharedProfiles(folder, target).keep(name, text, now=clock.now())
        number = moving.move(
            source.for_everybody(),
            everybody,
            progress=lambda done, total: report.progress("Moving users", done, total),
        )
    report.line(f"Moved {quantity(number, 'user')} and compared every row. The old store is as it was.")


def distribute(settings: Settings, report: Report) -> None:
    """Spread the store, fresh or filled, over its cluster, and report what was done; what an earlier run left
    unfinished is completed. Raises CommandError."""
    with _postgresql(settings, "that is to be spread") as store:
        moving.check_whole(store.for_everybody())
        done = distribution.distribute(store)
    say(done, report)  # pragma: no cover - on a Citus cluster alone


def build_indexes(settings: Settings, report: Report) -> None:
    """Build at once the indexes that an upgrade leaves to the servers' background work, and report each; raises
    CommandError if some are still missing, because another process is building."""
    with _postgresql(settings, "whose indexes are to be built") as store:
        for name in later_indexes.build(store):
            report.line(f"Built {name}.")
        missing = later_indexes.missing(store.for_everybody())
    if missing:
        raise CommandError(f"Another process is building indexes: {', '.join(missing)} are not there yet.")
    report.line("No index is missing.")


@contextmanager
def _postgresql(settings: Settings, meant: str) -> Iterator[Store]:
    """A context with the PostgreSQL store of these settings, brought up to date; its failures become CommandErrors.
    `meant` ends the sentence for settings that name none."""
    if settings.store_path is not None:
        raise CommandError(f"Set BANKDATA_DATABASE_URL to the PostgreSQL database {meant}.")
    with (
        failures_in_words(),
        closing(open_database(settings.database_url, pool=1, prepare=settings.database_prepare)) as store,
    ):
        runner.migrate(store, now=Clock(settings.time_zone).now())
        yield store


def say(done: distribution.Distributed, report: Report) -> None:
    """Report which tables were spread, which stay on the coordinator, and over how many shards and machines."""
    if done.spread:
        report.line(f"Spread by user: {', '.join(done.spread)}.")
    if done.local:
        report.line(f"On the coordinator: {', '.join(done.local)}.")
    report.line(
        f"{'Users are' if done.spread else 'Nothing was left to do: users are'} spread in"
        f" {quantity(done.shards, 'shard')} over {quantity(done.machines, 'machine')}."
    )
