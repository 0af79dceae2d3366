"""The differences between a store that one process has for itself and one in which other processes work, too: where its
keys and rates are, what a start may release, and which threads a server needs."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from auth.tokens.keys import KIND as SIGNING_KEYS
from connectors.reference import exchange_rates
from handlers.settings import Settings
from handlers.work.clock import Clock
from handlers.work.index_building import keep_building
from handlers.work.own_profiles import OwnProfiles, SharedProfiles
from handlers.work.sync import missing_keys
from handlers.work.sync.engine import SyncEngine
from storage import documents, jobs, store_facts, users
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import KIND as CONNECTION_KEYS
from storage.bank_access.connection_keys import ConnectionKeys
from storage.database import NOBODY, Store, StoreUnavailable
from storage.keys.places import SealedKeys
from storage.migrations import later_leaves
from storage.notices.ways import deliveries as letters
from storage.webhooks import deliveries

IS_WRITABLE = "written by whoever asks whether it can be"

log = logging.getLogger("bankdata")


class StoreSharing:
    """What a process does depending on who else works in its store. These methods are for a store that no other process
    has open: a DuckDB file, with keys and rates in files beside it."""

    has_other_processes = False

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._everybody = store.for_everybody()
        self._settings = settings
        self._clock = clock

    def begin(self) -> None:
        """Finish what an upgrade has left to do, and release the sync jobs and webhook deliveries of a process that was
        killed."""
        later_leaves.fill(self._store)
        jobs.release_all(self._everybody)
        deliveries.release_all(self._everybody, now=self._clock.now())
        letters.release_all(self._everybody, now=self._clock.now())

    def connection_keys(self) -> ConnectionKeys:
        """The keys that encrypt the secrets of bank connections, in a file."""
        return ConnectionKeys(self._settings.connection_keys)

    def signing_keys(self) -> Path | SealedKeys:
        """Where the keys that sign access tokens are: the data folder."""
        return self._settings.data_dir

    def own_profiles(self) -> OwnProfiles:
        """The operator's CSV profiles."""
        return OwnProfiles(self._settings.data_dir, self._store)

    def look_after(self, keys: ConnectionKeys, *, for_server: bool) -> Callable[[], object]:
        """The function to call each minute for the keys of bank connections: a server's marks connections whose key is
        gone as needing their user, and unmarks them once it is back; another process's reads the keys again."""
        return partial(missing_keys.settle, self._everybody, keys) if for_server else keys.look_again

    def fetch_rates(self) -> None:
        """Copy the rates that all processes use into the data folder of this one; nothing to do here."""

    def share_rates(self) -> None:
        """Give rates that were just installed here to all processes of the store; nothing to do here."""

    def check_writable(self) -> None:
        """Raise StoreError where the store cannot be written to; this one always can."""

    def background(self, sync_engine: SyncEngine) -> Sequence[tuple[str, Callable[[], object]]]:  # noqa: ARG002 - as below
        """The names and functions of the additional threads of a server; none here."""
        return ()


class SharedStore(StoreSharing):
    """What a process does with a PostgreSQL store: keys (sealed) and rates are in it, and leases say who works on
    what."""

    has_other_processes = True

    def begin(self) -> None:
        """Release nothing, because other processes may be at work."""

    def connection_keys(self) -> ConnectionKeys:
        """The keys that encrypt the secrets of bank connections; those of the file that an earlier version wrote are
        moved into the store."""
        file, everybody = self._settings.connection_keys, self._everybody
        keys = ConnectionKeys(
            self._sealed(CONNECTION_KEYS), may_begin=lambda: not connection_secrets.is_any_kept(everybody)
        )
        with suppress(StoreUnavailable):  # one of a cluster's machines is away: the next start takes the file over
            if file.exists() and connection_secrets.take_over(everybody, keys, file):
                log.warning("the keys of bank connections are in the store now, sealed: %s is read no more", file)
        return keys

    def signing_keys(self) -> SealedKeys:
        """Where the keys that sign access tokens are: sealed in the store."""
        return self._sealed(SIGNING_KEYS)

    def own_profiles(self) -> SharedProfiles:
        """The operator's CSV profiles, which are documents in the store."""
        return SharedProfiles(self._settings.data_dir, self._store)

    def look_after(self, keys: ConnectionKeys, *, for_server: bool) -> Callable[[], object]:  # noqa: ARG002 - as there
        """The function to call each minute for the keys of bank connections: it reads them again if others have changed
        them."""
        return keys.look_again

    def fetch_rates(self) -> None:
        """Copy the rates that all processes use, if any were installed, into the data folder of this one."""
        shared = documents.find(self._store.of(NOBODY), exchange_rates.FILE_NAME)
        if shared is not None:
            self._settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            exchange_rates.install(shared.encode(), folder=self._settings.data_dir)

    def share_rates(self) -> None:
        """Give rates that were just installed here to all processes of the store, and have them drop the answers they
        keep."""
        content = (self._settings.data_dir / exchange_rates.FILE_NAME).read_text("utf-8")
        before = documents.find(self._everybody, exchange_rates.FILE_NAME)
        documents.replace(self._everybody, exchange_rates.FILE_NAME, content, before=before, now=self._clock.now())
        for user in users.everyone(self._everybody):
            self._everybody.changes(user.id)

    def check_writable(self) -> None:
        """Raise StoreError where the store cannot be written to, such as a standby, by writing a fact into it."""
        store_facts.remember(self._everybody, IS_WRITABLE, "yes")

    def background(self, sync_engine: SyncEngine) -> Sequence[tuple[str, Callable[[], object]]]:
        """The names and functions of the threads that renew leases, and finish what an upgrade has left to do."""
        return (
            ("leases", sync_engine.leases.keep_renewing),
            ("indexes", partial(keep_building, self._store, sync_engine.stopped)),
        )

    def _sealed(self, kind: str) -> SealedKeys:
        return SealedKeys(self._everybody, kind, self._settings.keys_secret, self._clock.now)


def sharing_of(store: Store, settings: Settings, clock: Clock) -> StoreSharing:
    """The StoreSharing for this store: SharedStore for PostgreSQL."""
    return (SharedStore if store.is_shared else StoreSharing)(store, settings, clock)
