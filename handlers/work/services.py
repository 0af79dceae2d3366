"""Opens, once per process, everything that the edges work with: store, clock, keys, connectors, sync engine."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl
from msgspec import Struct, field

from auth.policy import Policy
from auth.server import AuthorizationServer
from connectors.connector import Connector
from connectors.reference.exchange_rates import current_rates
from connectors.sources.demo.live import LiveDemoBank
from connectors.ways import Way
from handlers import json_shapes
from handlers.settings import Settings
from handlers.web.open_streams import OpenStreams
from handlers.web.steps.turns import Turns
from handlers.work.app_documents import app_document
from handlers.work.cache.reader import Reader
from handlers.work.clock import Clock
from handlers.work.clock_watch import ClockWatch
from handlers.work.housekeeping import Housekeeping, watch_clock
from handlers.work.identity_provider import Asking, provider_of
from handlers.work.operator_notices import tell_operators
from handlers.work.own_profiles import OwnProfiles
from handlers.work.sources import connectors, live_sources
from handlers.work.store_sharing import StoreSharing, sharing_of
from handlers.work.sync.connecting import RETURN_PATH, Connecting
from handlers.work.sync.detection import detect_after_import
from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.household import Households
from handlers.work.sync.scheduler import Scheduler
from handlers.work.sync.statement_files import UploadedFiles
from handlers.work.sync.stored_secrets import StoredSecrets
from handlers.work.unread_exports import UnreadExports
from handlers.work.ways import ways_of
from storage import detections, store_facts, users
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys
from storage.boundary import contain, undo_on_failure
from storage.changes.incarnation import Incarnation, Life
from storage.database import Database, Store, StoreUnavailable, Transaction, UserBusy, atomically
from storage.engines import moving, second_wall
from storage.engines.opening import open_database
from storage.migrations import runner, soundness
from storage.users import User

CLOCK_OFFSET = "clock offset, seconds"
BACKUPS_FOLDER = "backups"
IS_DEMO = "made by bankdata demo"

log = logging.getLogger("bankdata")
T = TypeVar("T")


class Services(Struct):
    """One open service with all its parts; `close` has to be called at the end."""

    settings: Settings
    store: Store
    sharing: StoreSharing
    clock: Clock
    sync_engine: SyncEngine
    scheduler: Scheduler
    authorization: AuthorizationServer
    reader: Reader
    connection_keys: ConnectionKeys
    connecting: Connecting
    uploads: UploadedFiles
    own_profiles: OwnProfiles
    clock_watch: ClockWatch
    life: Life
    households: Households
    ways: Mapping[str, Way]
    sends_webhooks: bool = False
    streams: OpenStreams = field(default_factory=OpenStreams)
    exports: Turns = field(default_factory=Turns)
    unread_exports: UnreadExports = field(default_factory=UnreadExports)
    _rates: pl.DataFrame | None = None
    _was_ready: bool = True

    def of(self, user_id: str) -> Database:
        """The store, limited to this user's rows: the access of operations, tools, pages and their threads to a user's
        data."""
        return self.store.of(user_id)

    def user(self, user_id: str) -> User:
        """The user with this id, who is sending the present request; AssertionError if they are gone."""
        user = users.find(self.of(user_id), user_id)
        assert user is not None, "a request outlived its user"
        return user

    def alone(self, user_id: str, work: Callable[[Transaction], T], *, is_dry_run: bool = False) -> T:
        """The result of this work, done in one transaction, during which nobody else changes the user's data. A dry run
        has the same result and is rolled back."""

        def hold_and_work(session: Transaction) -> T:
            session.hold(user_id)
            return work(session)

        return atomically(self.of(user_id), hold_and_work, is_dry_run=is_dry_run)

    def change(
        self, user_id: str, work: Callable[[Transaction], T], *, is_dry_run: bool = False, is_of_one: bool = False
    ) -> T:
        """The result of this work on the user's bookings, done as by `alone`; afterwards recurring payments are
        detected again if it has raised the data version, and was no dry run. The bookings in memory, which may be a
        long history, are let go before, also for a dry run, unless the work is on a single one (`is_of_one`)."""

        def work_and_look(session: Transaction) -> tuple[T, bool]:
            before = detections.present_version(session, user_id)
            result = work(session)
            return result, detections.present_version(session, user_id) != before

        if not is_of_one:
            self.reader.cache.take(user_id, None)
        result, is_outdated = self.alone(user_id, work_and_look, is_dry_run=is_dry_run)
        if is_outdated and not is_dry_run:
            with suppress(UserBusy):  # who holds the user detects them again
                detect_after_import(self.of(user_id), [user_id], today=self.clock_watch.today())
        return result

    @property
    def everybody(self) -> Database:
        """The store with the rows of all users, for commands, signing in and the background worker."""
        return self.store.for_everybody()

    @property
    def incarnation(self) -> Incarnation:
        """The incarnation of the store, as it was seen last."""
        return self.life.present

    @property
    def rates(self) -> pl.DataFrame:
        """The reference rates of the European Central Bank, loaded when they are first needed and kept until
        `forget_rates`."""
        if self._rates is None:
            self.sharing.fetch_rates()
            self._rates = current_rates(self.settings.data_dir)
        return self._rates

    @property
    def missing_key(self) -> str | None:
        """A sentence for the operator where this machine lacks the key of some bank connections; None where it has all,
        or a part of the store does not answer."""
        closed = 0
        with suppress(StoreUnavailable):  # one of a cluster's machines is away, which is no reason not to serve
            closed = len(connection_secrets.unreadable_connections(self.everybody, self.connection_keys))
        if not closed:
            return None
        return (
            f"{self.connection_keys.place} does not hold the key of {closed} of this store's bank connections, so they"
            " are not asked from here."
        )

    def backed_up_at(self) -> datetime | None:
        """The time (UTC) of the newest backup; None where none is known."""
        return soundness.backed_up_at(self.everybody, self.settings.data_dir / BACKUPS_FOLDER)

    def forget_rates(self) -> None:
        """Drop the loaded rates and every cached answer, after newer rates have been installed."""
        self._rates = None
        self.reader.cache.clear()

    def is_ready(self) -> bool:
        """Whether the store answers and, if it is a database elsewhere, can be written to; False whatever goes wrong.
        Logs when it stops answering and when it answers again. Its schema needs no check: it was brought up to date
        when it was opened."""
        answers = is_ready = False
        # Whatever goes wrong, the answer to the monitor is no
        with contain(log, "not ready", is_expected=lambda: not self._was_ready):
            is_ready = runner.current_version(self.everybody) > 0
            self.sharing.check_writable()
            answers = True
        if answers and not self._was_ready:
            log.warning("ready again")
        self._was_ready = answers
        return answers and is_ready

    def close(self) -> bool:
        """Write the access record and close the store, within seconds, whatever the sources do. Returns whether syncs
        and imports have ended; if not, the process has to exit at once, and whatever was not committed is lost."""
        is_idle = self.sync_engine.close(self.uploads.at_work)
        self.authorization.record.close()
        self.store.close()
        return is_idle


def open_services(
    settings: Settings,
    *,
    more_connectors: Mapping[str, Connector] | None = None,
    has_live_demo: bool = False,
    for_server: bool = False,
    sends_webhooks: bool = False,
) -> Services:
    """Open the store of these settings, which is created or brought up to date where needed. Raises StoreError.

    `for_server`: the process is to serve requests. If only this machine opens the store, connections whose key it lacks
    are then marked as needing their user. `more_connectors` are sources besides the product's own, by name, for tests
    and measurements. `has_live_demo`: people can connect a demo bank that asks for a sign-in. `sends_webhooks`: the
    server sends webhooks.
    """
    opened = _open_store(settings, for_server=for_server)
    store, clock = opened.store, opened.clock
    live = {**({LiveDemoBank.name: LiveDemoBank()} if has_live_demo else {}), **live_sources(settings)}
    own_profiles = opened.sharing.own_profiles()
    sources = {**connectors(own_profiles.of_user), **live, **(more_connectors or {})}
    secrets = StoredSecrets(store, opened.keys)
    reader = Reader(store, bytes_max=settings.cache_mb * 2**20, render=json_shapes.transaction)
    authorization = _authorization(settings, store.for_everybody(), opened.sharing, clock)
    stopped = threading.Event()
    housekeeping = _housekeeping(opened, settings.data_dir, reader, authorization, stopped)
    sync_engine = SyncEngine(
        store,
        sources,
        clock,
        cooldown=settings.sync_cooldown_seconds,
        after_import=housekeeping.after_import,
        secrets=secrets,
        plan=settings.schedule,
        stopped=stopped,
    )
    return_url, did = f"{settings.auth_url}{RETURN_PATH}", authorization.record.note
    households = _households(opened, authorization, housekeeping)
    services = Services(
        settings=settings,
        store=store,
        sharing=opened.sharing,
        clock=clock,
        sync_engine=sync_engine,
        scheduler=_scheduler(sync_engine, opened, sources, housekeeping, households, plan=settings.schedule),
        authorization=authorization,
        reader=reader,
        connection_keys=opened.keys,
        connecting=Connecting(store, clock, opened.keys, secrets, live, return_url=return_url, did=did),
        uploads=_uploads(sync_engine, opened, own_profiles, housekeeping),
        own_profiles=own_profiles,
        clock_watch=opened.clock_watch,
        life=opened.life,
        households=households,
        ways=ways_of(settings, store.for_everybody(), opened.keys),
        sends_webhooks=sends_webhooks,
    )
    if for_server:
        _begin_serving(services)
    return services


def _begin_serving(services: Services) -> None:
    with suppress(StoreUnavailable):  # the scheduler does it later
        services.households.round()  # what has ended while no server ran is gone before anybody asks
    if services.missing_key is not None:
        log.warning("%s", services.missing_key)


class _OpenedStore(Struct, frozen=True, kw_only=True):
    """The store, brought up to date, with its keys and the clock by which it is used. `settle_keys` is called each
    minute (`StoreSharing.look_after`)."""

    store: Store
    clock: Clock
    clock_watch: ClockWatch
    sharing: StoreSharing
    keys: ConnectionKeys
    settle_keys: Callable[[], object]
    life: Life


def _open_store(settings: Settings, *, for_server: bool) -> _OpenedStore:
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.store_path is not None:
        settings.store_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    clock = Clock(settings.time_zone)
    store = open_database(
        settings.database_url,
        now=clock.now,
        export_folder=settings.data_dir / BACKUPS_FOLDER,
        app_url=settings.database_app_url,
        pool=settings.database_pool,
        prepare=settings.database_prepare,
        is_serving=for_server,
    )
    everybody = store.for_everybody()
    with undo_on_failure(store.close):
        runner.migrate(store, now=clock.now())
        moving.check_whole(everybody)
        if settings.database_app_url:
            second_wall.build(store)
        clock.offset = timedelta(seconds=float(store_facts.recall(everybody, CLOCK_OFFSET) or 0))
        sharing = sharing_of(store, settings, clock)
        keys = sharing.connection_keys()
        life = Life(store)
        settle_keys = sharing.look_after(keys, for_server=for_server)
        settle_keys()
        sharing.begin()
        watch, forget_impossible_moments = watch_clock(everybody, clock, cooldown=settings.sync_cooldown_seconds)
        if for_server:
            watch.look()
        if for_server or not sharing.has_other_processes:
            with suppress(StoreUnavailable):  # one of a cluster's machines is away: the next start does it
                forget_impossible_moments()
    return _OpenedStore(
        store=store, clock=clock, clock_watch=watch, sharing=sharing, keys=keys, settle_keys=settle_keys, life=life
    )


def _housekeeping(
    opened: _OpenedStore, folder: Path, reader: Reader, authorization: AuthorizationServer, stopped: threading.Event
) -> Housekeeping:
    return Housekeeping(
        store=opened.store,
        clock=opened.clock,
        clock_watch=opened.clock_watch,
        life=opened.life,
        looking=reader.cache.users,
        tell_operators=partial(tell_operators, opened.store, opened.clock, folder, folder / BACKUPS_FOLDER),
        settle_keys=opened.settle_keys,
        sweep=authorization.cleanup.sweep_when_due,
        stopped=stopped,
    )


def _households(opened: _OpenedStore, authorization: AuthorizationServer, housekeeping: Housekeeping) -> Households:
    return Households(
        store=opened.store,
        clock=opened.clock,
        life=opened.life,
        sharing=authorization.shares,
        forget_access=authorization.access.forget,
        after_import=housekeeping.after_import,
    )


def _scheduler(
    sync_engine: SyncEngine,
    opened: _OpenedStore,
    sources: Mapping[str, Connector],
    housekeeping: Housekeeping,
    households: Households,
    *,
    plan: Sequence[time],
) -> Scheduler:
    def each_round() -> None:
        households.round()
        housekeeping.look_due()

    return Scheduler(
        sync_engine,
        opened.store,
        sources,
        opened.clock,
        on_new_day=housekeeping.begin_day,
        each_minute=housekeeping.each_minute,
        each_round=each_round,
        is_clock_off=opened.clock_watch.is_off,
        plan=plan,
    )


def _uploads(
    sync_engine: SyncEngine, opened: _OpenedStore, own_profiles: OwnProfiles, housekeeping: Housekeeping
) -> UploadedFiles:
    return UploadedFiles(
        opened.store,
        opened.clock,
        sync_engine.import_lane,
        sync_engine.leases,
        profiles=own_profiles.of_user,
        after_import=housekeeping.after_import,
    )


def _authorization(settings: Settings, database: Database, sharing: StoreSharing, clock: Clock) -> AuthorizationServer:
    return AuthorizationServer(
        database,
        sharing.signing_keys(),
        Policy(
            public_url=settings.public_url,
            auth_url=settings.auth_url,
            registration=settings.registration,
            registration_limit=settings.registration_limit,
            refresh_reuse_seconds=settings.refresh_reuse_seconds,
            shows_addresses=settings.log_addresses,
            writing_clients=settings.writing_clients,
            document_hosts=settings.client_documents,
        ),
        clock.now_in_utc,
        has_other_processes=sharing.has_other_processes,
        fetch=partial(app_document, settings),
        provider=provider_of(settings),
        ask=Asking(settings.oidc_ca_file),
    )
