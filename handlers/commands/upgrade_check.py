"""The rehearsal of an upgrade: the newest backup, copied, opened by this program, and compared with what it was."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from auth.errors import KeysUnusable
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import counted
from handlers.services import BACKUPS_FOLDER, open_services
from handlers.settings import Settings
from storage import backup
from storage.database import StoreError, open_database
from storage.holdings import holdings
from storage.migrations import runner

MB = 2**20


def upgrade_check(settings: Settings, report: Report, *, folder: Path | None = None) -> None:
    """Open a copy of a backup, by default the newest, with this program, and say what became of it; raises
    CommandError where this program could not take over the store. Neither store nor backup is touched."""
    chosen = folder or _newest(settings.data_dir / BACKUPS_FOLDER)
    try:
        with _copied(chosen, settings.data_dir) as copy:
            store = copy / backup.STORE_NAME
            _rehearse(chosen, replace(settings, data_dir=copy, database_url=f"duckdb:///{store}"), store, report)
    except (StoreError, KeysUnusable) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or chosen}: {error.strerror or error}.") from error


def _newest(backups: Path) -> Path:
    found = backup.found_in(backups) if backups.is_dir() else []
    if not found:
        raise CommandError(f"There is no backup in {backups} to rehearse with. Make one: bankdata backup")
    return found[-1]


@contextmanager
def _copied(folder: Path, data_dir: Path) -> Iterator[Path]:
    needed = sum(path.stat().st_size for path in folder.iterdir())
    free = shutil.disk_usage(data_dir).free
    if free < 2 * needed + backup.FREE_BYTES_MIN:
        raise CommandError(
            f"The rehearsal needs {(2 * needed + backup.FREE_BYTES_MIN) // MB} MB on the disk of {data_dir};"
            f" {free // MB} MB are free."
        )
    with TemporaryDirectory(dir=data_dir, prefix=".upgrade-check-") as place:
        for path in folder.iterdir():
            shutil.copy2(path, place)
        yield Path(place)


def _rehearse(chosen: Path, settings: Settings, store: Path, report: Report) -> None:
    if not store.is_file():
        raise CommandError(f"{chosen} is no backup: it holds no {backup.STORE_NAME}.")
    size = store.stat().st_size
    with closing(open_database(settings.database_url)) as database:
        version, before = runner.current_version(database), holdings(database)
    report.line(f"backup     {chosen}, schema version {version}")
    started = time.monotonic()
    with closing(open_services(settings)) as services:
        steps = [each for each in runner.migrations() if each.number > version]
        after = holdings(services.database)
    grown = (store.stat().st_size - size) // MB
    report.line(
        f"steps      {counted(len(steps), 'step')} in {time.monotonic() - started:.1f} s, {grown:+d} MB"
        if steps
        else "steps      none: store and program belong together"
    )
    for step in steps:
        report.line(f"           {step.name}")
    if after != before:
        raise CommandError(f"The upgrade changed what the store holds: {before} became {after}. Do not upgrade.")
    report.line("kept       " + ", ".join(f"{each['figure']} {each['what']}" for each in after))
    report.line("ok         this program can take over the store: stop the old one, start this one")
