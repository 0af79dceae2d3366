"""What the edges work with, opened once per process: store, clock, keys, connectors, sync engine."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl

from auth.apps.client_documents import Document, DocumentRefused
from auth.policy import Policy
from auth.server import AuthorizationServer
from auth.tokens.sealed_keys import SealedKeys
from connectors.bank_csv.profile import Profile
from connectors.connecting import LiveSource
from connectors.connector import Connector, Misconfigured, ProviderUnavailable
from connectors.reference import exchange_rates
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
from handlers.http.steps.turns import Turns
from handlers.loopback import is_loopback
from handlers.own_profiles import OwnProfiles
from handlers.settings import Settings
from handlers.sync import missing_keys
from handlers.sync.connecting import RETURN_PATH, Connecting
from handlers.sync.detection import detect_after_import, detect_for_new_day
from handlers.sync.engine import SyncEngine
from handlers.sync.scheduler import Scheduler
from handlers.sync.stored_secrets import StoredSecrets
from handlers.sync.uploaded_files import REPORTED_FOR, UploadedFiles
from handlers.unread_exports import UnreadExports
from storage import documents, jobs, store_facts, users
from storage.bank_access import connection_attempts, connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys
from storage.database import Database, StoreUnavailable, acting_for, open_database
from storage.engines import moving, second_wall
from storage.importing import file_imports
from storage.migrations import runner

CLOCK_OFFSET = "clock offset, seconds"
BACKUPS_FOLDER = "backups"
IS_DEMO = "made by bankdata demo"

log = logging.getLogger("bankdata")


@dataclass(slots=True)
class Services:
    """One open service. `close` it."""

    settings: Settings
    database: Database
    clock: Clock
    sync_engine: SyncEngine
    scheduler: Scheduler
    authorization: AuthorizationServer
    reader: Reader
    connection_keys: ConnectionKeys
    connecting: Connecting
    uploads: UploadedFiles
    own_profiles: OwnProfiles
    exports: Turns = field(default_factory=Turns)
    unread_exports: UnreadExports = field(default_factory=UnreadExports)
    _rates: pl.DataFrame | None = None

    @property
    def rates(self) -> pl.DataFrame:
        """The reference rates of the European Central Bank, read when a selection first mixes currencies."""
        if self._rates is None:
            self.fetch_rates()
            self._rates = current_rates(self.settings.data_dir)
        return self._rates

    @property
    def missing_key(self) -> str | None:
        """That this machine does not have the key of some bank connections, in a sentence for its operator."""
        closed = 0
        with suppress(StoreUnavailable):  # of many machines one is away: that is no reason not to serve
            closed = len(connection_secrets.unreadable(self.database, self.connection_keys))
        if not closed:
            return None
        return (
            f"{self.connection_keys.path} does not hold the key of {closed} of this store's bank connections, so they"
            " are not asked from here."
        )

    def fetch_rates(self) -> None:
        """Have the file of rates that all processes of a shared store use lie in the data folder of this one."""
        shared = documents.find(self.database, exchange_rates.FILE_NAME) if self.database.dialect.is_shared else None
        if shared is not None:
            self.settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            exchange_rates.install(shared.encode(), folder=self.settings.data_dir)

    def share_rates(self) -> None:
        """Newer rates have been installed here: other processes use them too, and answers made of older ones end."""
        self.forget_rates()
        if not self.database.dialect.is_shared:
            return
        content = (self.settings.data_dir / exchange_rates.FILE_NAME).read_text("utf-8")
        before = documents.find(self.database, exchange_rates.FILE_NAME)
        documents.replace(self.database, exchange_rates.FILE_NAME, content, before=before, now=self.clock.now())
        for user in users.everyone(self.database):
            self.database.changes(user.id)

    def forget_rates(self) -> None:
        """Newer rates have been installed."""
        self._rates = None
        self.reader.cache.clear()

    def is_ready(self) -> bool:
        """Whether the store answers; it was brought up to date when it was opened."""
        try:
            return runner.current_version(self.database) > 0
        except Exception as error:  # whatever it is, the answer to the monitor is no
            log.warning("not ready: %s", type(error).__name__)
            return False

    def close(self) -> bool:
        """Let go of the store, within seconds whatever sources do; whether nothing of the sync engine runs any more.
        Where something does, the process has to end at once: what that had not committed does not exist."""
        is_idle = self.sync_engine.close()
        self.authorization.record.close()
        self.database.close()
        return is_idle


def live_sources(settings: Settings) -> Mapping[str, LiveSource]:
    """The sources on other machines that a person can connect, by name."""
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
    """What an operator's file holds, such as a client's secret; raises Misconfigured."""
    try:
        text = file.read_text("utf-8").strip() if file is not None else ""
    except (OSError, ValueError) as error:
        raise Misconfigured(f"The file that {setting} names cannot be read.", detail=type(error).__name__) from error
    if not text:
        raise Misconfigured(f"{setting} has to name a file.")
    return text


def connectors(profiles: Callable[[], Sequence[Profile]]) -> Mapping[str, Connector]:
    """The kinds of bank connection that ask no other machine, by name; `profiles` are the user's own for CSV."""
    folder = Folder(lambda file: with_bank_names(read_records(file, profiles())))
    return {each.name: each for each in (DemoBank(), LiveDemoBank(), folder, Uploads())}


def open_services(
    settings: Settings,
    *,
    more_connectors: Mapping[str, Connector] | None = None,
    has_live_demo: bool = False,
    for_server: bool = False,
) -> Services:
    """Open the store of these settings, made or brought up to date where needed; raises StoreError. `for_server`: for
    the one process that serves a store of its own, where a key that is missing is missing everywhere.

    `more_connectors` are sources besides the product's own, by name: tests and measurements bring theirs.
    `has_live_demo`: people can connect a demo bank that wants to see them.
    """
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.store_path is not None:
        settings.store_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = open_database(
        settings.database_url,
        export_folder=settings.data_dir / BACKUPS_FOLDER,
        app_url=settings.database_app_url,
        pool=settings.database_pool,
        prepare=settings.database_prepare,
    )
    clock = Clock(settings.time_zone)
    try:
        runner.migrate(database, now=clock.now())
        moving.check_whole(database)
        if settings.database_app_url:
            second_wall.build(database)
        clock.offset = timedelta(seconds=float(store_facts.recall(database, CLOCK_OFFSET) or 0))
        keys = ConnectionKeys(settings.connection_keys, may_begin=lambda: _may_begin_keys(database))
        has_own_store = for_server and not database.dialect.is_shared
        if has_own_store:
            missing_keys.settle(database, keys)
        if not database.dialect.is_shared:
            jobs.release_all(database)
    except BaseException:
        database.close()
        raise
    live = {**({LiveDemoBank.name: LiveDemoBank()} if has_live_demo else {}), **live_sources(settings)}
    own_profiles = OwnProfiles(settings.data_dir, database)
    sources = {**connectors(own_profiles.read), **live, **(more_connectors or {})}
    secrets = StoredSecrets(database, keys)
    sync_engine = SyncEngine(
        database,
        sources,
        clock,
        cooldown=settings.sync_cooldown_seconds,
        after_import=lambda user_id: detect_after_import(database, [user_id], today=clock.today()),
        secrets=secrets,
        plan=settings.schedule,
    )
    reader = Reader(database, bytes_max=settings.cache_mb * 2**20, render=json_shapes.transaction)

    def begin_day(today: date) -> None:
        file_imports.forget(database, before=clock.now() - REPORTED_FOR)
        connection_attempts.forget(database, now=clock.now())
        detect_for_new_day(database, reader.cache.users(), today=today, is_over=sync_engine.stopped.is_set)

    authorization = _authorization(settings, database, clock)
    services = Services(
        settings=settings,
        database=database,
        clock=clock,
        sync_engine=sync_engine,
        scheduler=Scheduler(
            sync_engine,
            database,
            sources,
            clock,
            on_new_day=begin_day,
            each_minute=partial(missing_keys.settle, database, keys) if has_own_store else lambda: None,
            plan=settings.schedule,
        ),
        authorization=authorization,
        reader=reader,
        connection_keys=keys,
        connecting=Connecting(
            database,
            clock,
            keys,
            secrets,
            live,
            return_url=f"{settings.auth_url}{RETURN_PATH}",
            did=authorization.record.note,
        ),
        uploads=UploadedFiles(
            database,
            clock,
            sync_engine.import_lane,
            profiles=own_profiles.read,
            after_import=lambda user_id: detect_after_import(database, [user_id], today=clock.today()),
        ),
        own_profiles=own_profiles,
    )
    if for_server and services.missing_key is not None:
        log.warning("%s", services.missing_key)
    return services


def _may_begin_keys(database: Database) -> bool:
    """Whether no other machine can have the keys of this store; the secrets of all users tell."""
    with acting_for(None):
        return not database.dialect.is_shared or not connection_secrets.is_any_kept(database)


def _authorization(settings: Settings, database: Database, clock: Clock) -> AuthorizationServer:
    return AuthorizationServer(
        database,
        SealedKeys(database, settings.keys_secret, clock.now) if database.dialect.is_shared else settings.data_dir,
        Policy(
            public_url=settings.public_url,
            auth_url=settings.auth_url,
            registration=settings.registration,
            registration_limit=settings.registration_limit,
            refresh_reuse_seconds=int(settings.refresh_reuse_seconds.total_seconds()),
            shows_addresses=settings.log_addresses,
            writing_clients=settings.writing_clients,
            document_hosts=settings.client_documents,
        ),
        clock.now_in_utc,
        has_other_processes=database.dialect.is_shared,
        fetch=partial(_fetched, settings) if settings.client_documents != frozenset() else None,
    )


def _fetched(settings: Settings, address: str) -> Document:
    """The document of an app; a service on this machine may ask this machine, and hosts that are named may be inner
    ones."""
    try:
        found = download_checked(
            address,
            asks_loopback=is_loopback(urlsplit(settings.public_url).hostname or ""),
            asks_private=settings.client_documents is not None,
        )
    except ProviderUnavailable as error:
        raise DocumentRefused(str(error)) from None
    return Document(body=found.body, media_type=found.media_type, cache_control=found.cache_control)
