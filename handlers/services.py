"""Opens, once per process, everything that the edges work with: store, clock, keys, connectors, sync engine."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import urlsplit

import polars as pl
from msgspec import Struct, field

from analytics.records import Record
from auth.apps.client_documents import Document, DocumentRefused
from auth.policy import Policy
from auth.server import AuthorizationServer
from connectors.bank_csv.layouts import CsvLayout, check_layouts, guesses_in_words
from connectors.bank_csv.profile import Profile
from connectors.connecting import LiveSource
from connectors.connector import Connector, Misconfigured, ProviderUnavailable
from connectors.reference.bank_names import with_bank_names
from connectors.reference.checked_download import download_checked
from connectors.reference.exchange_rates import current_rates
from connectors.sources.demo.connector import DemoBank
from connectors.sources.demo.live import LiveDemoBank
from connectors.sources.enable_banking.connector import EnableBanking
from connectors.sources.finapi.connector import FinApi
from connectors.sources.fints.connector import FinTs
from connectors.sources.folder import Folder
from connectors.sources.simplefin import SimpleFin
from connectors.sources.uploads import Uploads
from connectors.statements import read_records
from handlers import json_shapes
from handlers.cache.reader import Reader
from handlers.clock import Clock
from handlers.clock_watch import ClockWatch
from handlers.http.open_streams import OpenStreams
from handlers.http.steps.turns import Turns
from handlers.loopback import is_loopback
from handlers.own_profiles import OwnProfiles
from handlers.settings import Settings
from handlers.store_sharing import StoreSharing, sharing_of
from handlers.sync.connecting import RETURN_PATH, Connecting
from handlers.sync.detection import detect_after_import, detect_for_new_day
from handlers.sync.engine import SyncEngine
from handlers.sync.forecasts.basis import find_ahead
from handlers.sync.scheduler import Scheduler
from handlers.sync.statement_files import UploadedFiles
from handlers.sync.stored_secrets import StoredSecrets
from handlers.unread_exports import UnreadExports
from storage import jobs, store_facts, users
from storage.bank_access import connection_attempts, connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys
from storage.boundary import contain, undo_on_failure
from storage.changes import feed
from storage.changes.incarnation import Incarnation, Life
from storage.database import Database, Store, StoreUnavailable, Transaction, UserBusy, atomically
from storage.engines import moving, second_wall
from storage.engines.opening import open_database
from storage.events import outbox
from storage.importing import file_imports
from storage.migrations import runner
from storage.users import User
from storage.webhooks import deliveries

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

    def change(self, user_id: str, work: Callable[[Transaction], T], *, is_dry_run: bool = False) -> T:
        """The result of this work on the user's bookings, done as by `alone`; afterwards, unless it is a dry run,
        recurring payments are detected again."""
        result = self.alone(user_id, work, is_dry_run=is_dry_run)
        if not is_dry_run:
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


def live_sources(settings: Settings) -> Mapping[str, LiveSource]:
    """The sources on other machines that a person can connect with a sign-in or a token, by name; also those that the
    settings do not set up (`is_set_up`)."""
    enable_banking = EnableBanking(
        settings.enable_banking_url,
        application=settings.enable_banking_application,
        key_file=settings.enable_banking_key_file,
    )
    finapi = FinApi(
        settings.finapi_url,
        settings.finapi_webform_url,
        settings.finapi_client,
        lambda: content_of("BANKDATA_FINAPI_SECRET_FILE", settings.finapi_secret_file),
    )
    fints = FinTs(
        settings.fints_product, lambda document: with_bank_names(read_records(document)), dict(settings.fints_banks)
    )
    return {each.name: each for each in (SimpleFin(settings.simplefin_url), enable_banking, fints, finapi)}


def content_of(setting: str, file: Path | None) -> str:
    """The content of a file that the operator named in a setting, such as a client's secret, trimmed; raises
    Misconfigured if none is named, and for a file that is missing, unreadable or empty."""
    try:
        text = file.read_text("utf-8").strip() if file is not None else ""
    except (OSError, ValueError) as error:
        raise Misconfigured(f"The file that {setting} names cannot be read.", detail=type(error).__name__) from error
    if not text:
        raise Misconfigured(f"{setting} has to name a file.")
    return text


def connectors(profiles: Callable[[str], Sequence[Profile]]) -> Mapping[str, Connector]:
    """The connectors that ask no other machine (demo banks, folders, uploads), by name; `profiles` gives the CSV
    profiles for a user id."""

    def read_file(file: BinaryIO, user_id: str, warn: Callable[[str], None]) -> Iterator[Record]:
        layouts: list[CsvLayout] = []
        yield from with_bank_names(read_records(file, profiles(user_id), layouts.append))
        check_layouts(layouts)
        for each in guesses_in_words(layouts):
            warn(each)

    folder = Folder(read_file)
    return {each.name: each for each in (DemoBank(), LiveDemoBank(), folder, Uploads())}


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

        def forget_impossible_moments() -> None:
            now = clock.now() - clock_watch.apart()
            jobs.forget_impossible_pauses(everybody, now=now, cooldown=settings.sync_cooldown_seconds)

        def note_set_clock() -> None:
            forget_impossible_moments()
            deliveries.make_due(everybody, now=clock.now())

        clock_watch = ClockWatch(everybody, clock, on_set=note_set_clock)
        if for_server:
            clock_watch.look()
        if for_server or not sharing.has_other_processes:
            with suppress(StoreUnavailable):  # one of a cluster's machines is away: the next start does it
                forget_impossible_moments()
    live = {**({LiveDemoBank.name: LiveDemoBank()} if has_live_demo else {}), **live_sources(settings)}
    own_profiles = sharing.own_profiles()
    sources = {**connectors(own_profiles.of_user), **live, **(more_connectors or {})}
    secrets = StoredSecrets(store, keys)
    reader = Reader(store, bytes_max=settings.cache_mb * 2**20, render=json_shapes.transaction)

    def after_import(user_id: str) -> None:
        """Detect the user's recurring payments again; and if their data are in memory, so that they are likely to ask
        soon, find the flows for their forecast, too."""
        today, looking = clock_watch.today(), reader.cache.users()
        detect_after_import(store.of(user_id), [user_id], today=today)
        find_ahead(store.of, [user_id] if user_id in looking else [], today=today, is_over=sync_engine.stopped.is_set)

    sync_engine = SyncEngine(
        store,
        sources,
        clock,
        cooldown=settings.sync_cooldown_seconds,
        after_import=after_import,
        secrets=secrets,
        plan=settings.schedule,
    )

    def begin_day(today: date) -> None:
        file_imports.forget(everybody, before=clock.now() - file_imports.KEPT_FOR)
        connection_attempts.forget(everybody, now=clock.now())
        feed.forget_removed(everybody, before=clock.now() - feed.REMEMBERED_FOR)
        outbox.forget(everybody, before=clock.now() - outbox.REMEMBERED_FOR)
        deliveries.forget(everybody, before=clock.now() - outbox.REMEMBERED_FOR, now=clock.now())
        looking = reader.cache.users()
        detect_for_new_day(everybody, looking, today=today, is_over=sync_engine.stopped.is_set)
        find_ahead(store.of, looking, today=today, is_over=sync_engine.stopped.is_set)

    authorization = _authorization(settings, everybody, sharing, clock)

    def each_minute() -> None:
        clock_watch.look()
        life.look_again()
        settle_keys()
        if not clock_watch.is_off():
            authorization.cleanup.sweep_when_due()

    services = Services(
        settings=settings,
        store=store,
        sharing=sharing,
        clock=clock,
        sync_engine=sync_engine,
        scheduler=Scheduler(
            sync_engine,
            store,
            sources,
            clock,
            on_new_day=begin_day,
            each_minute=each_minute,
            is_clock_off=clock_watch.is_off,
            plan=settings.schedule,
        ),
        authorization=authorization,
        reader=reader,
        connection_keys=keys,
        connecting=Connecting(
            store,
            clock,
            keys,
            secrets,
            live,
            return_url=f"{settings.auth_url}{RETURN_PATH}",
            did=authorization.record.note,
        ),
        uploads=UploadedFiles(
            store,
            clock,
            sync_engine.import_lane,
            sync_engine.leases,
            profiles=own_profiles.of_user,
            after_import=after_import,
        ),
        own_profiles=own_profiles,
        clock_watch=clock_watch,
        life=life,
        sends_webhooks=sends_webhooks,
    )
    if for_server and services.missing_key is not None:
        log.warning("%s", services.missing_key)
    return services


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
        fetch=partial(_app_document, settings),
    )


def _app_document(settings: Settings, address: str) -> Document:
    """The metadata document of an app, downloaded from this address. A service whose own address is this machine's may
    fetch from this machine, and if the operator named hosts, these may have private addresses. Raises
    DocumentRefused."""
    try:
        answer = download_checked(
            address,
            asks_loopback=is_loopback(urlsplit(settings.public_url).hostname or ""),
            asks_private=settings.client_documents is not None,
        )
    except ProviderUnavailable as error:
        raise DocumentRefused(str(error)) from None
    return Document(body=answer.body, media_type=answer.media_type, cache_control=answer.cache_control)
