"""What operators are told of the server: no recent backup, a disk that is almost full."""

import shutil
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path

from analytics.notices.found import Finding
from handlers.work.clock import Clock
from storage import store_facts, users
from storage.database import Database, Store, Transaction
from storage.migrations import soundness
from storage.notices import stored

KINDS = ("server.backup", "server.disk")
TURN = "operators were told of the server, UTC"
EVERY = timedelta(hours=1)
BACKUP_WITHIN = timedelta(days=8)
GB = 1_000_000_000
FREE_SHARE, FREE_MIN, FREE_LEAST = 0.1, 5 * GB, GB


def tell_operators(store: Store, clock: Clock, folder: Path, backups: Path) -> None:
    """Tell operators once an hour, by one of several processes, what the server lacks; `folder` is on the disk of the
    store. Of a database elsewhere its own operator knows."""
    everybody, now, today = store.for_everybody(), clock.now(), clock.today()
    if store.is_shared or not store_facts.take_turn(everybody, TURN, now=now, every=EVERY):
        return
    found = [*_backup(everybody, backups, now), *_disk(folder, today)]
    for user_id in users.operators(everybody):
        store.of(user_id).atomically(partial(_tell, user_id=user_id, found=found, today=today))


def _tell(session: Transaction, *, user_id: str, found: list[Finding], today: date) -> None:
    session.hold(user_id)
    stored.reconcile(session, user_id, KINDS, found, today=today)


def _backup(everybody: Database, backups: Path, now: datetime) -> Iterator[Finding]:
    made = soundness.backed_up_at(everybody, backups)
    since = made or min((each.created_at for each in users.everyone(everybody)), default=now)
    if now - since >= BACKUP_WITHIN:
        said = {"day": since.date().isoformat()}
        message = "server.backup" if made is not None else "server.backup.none"
        yield Finding(
            kind="server.backup", subject="", day=since.date(), is_lasting=True, message=message, arguments=said
        )


def _disk(folder: Path, today: date) -> Iterator[Finding]:
    disk = shutil.disk_usage(folder)
    if disk.free < FREE_LEAST or (disk.free < FREE_MIN and disk.free < disk.total * FREE_SHARE):
        said = {"size": f"{disk.free / GB:.1f} GB"}
        yield Finding(kind="server.disk", subject="", day=today, is_lasting=True, message="server.disk", arguments=said)
