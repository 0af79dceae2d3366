"""The engine that stores of tests are made on: DuckDB, or with `--engine postgresql` a private cluster of PostgreSQL,
or with `--engine citus` the coordinator that BANKDATA_TEST_CITUS_URL names.

A store is named by the file that it is on DuckDB, or by its data folder; on PostgreSQL that is a database of its own, a
copy of one that was migrated once.
"""

import ctypes
import fcntl
import hashlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any, Protocol, cast
from unittest.mock import patch

import duckdb

from auth.tokens.keys import FILE_NAME as KEYS_FILE
from auth.tokens.keys import KIND, KeyRing
from handlers.settings import Settings, load
from storage.database import Database, Session, Store
from storage.engines import duckdb_file
from storage.engines.duckdb_file import _harden
from storage.engines.opening import open_database
from storage.keys.places import SealedKeys
from tests.citus import Citus
from tests.tracing import untraced

if TYPE_CHECKING:
    import psycopg

STORE = "bankdata.duckdb"
TEMPLATE = "migrated"
STARTED = "started"  # the same once a server has started over it
APP_ROLE = "bankdata_app"  # of requests, which sees rows of one user at a time
KEYS_SECRET = "a secret of these tests, of 32 characters or more"
NONE = "PostgreSQL is not installed here: apt-get install postgresql"
MEMORY = Path("/dev/shm")  # a folder of tmpfs: the 570 files of a database take 0.4 s of CPU to copy on a disk
CLUSTER_BYTES = 2**31  # more than all stores that a run has open
COPIED = "STRATEGY FILE_COPY"  # the other way writes every page twice: 0.05 instead of 0.036 s of CPU for each store
EMPTY = "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'"


class OpenStore(Store, Database, Protocol):
    """A store and all its rows in one: tests hand it to what takes either."""


def whole(store: Store) -> OpenStore:
    """The store, which now also answers what everybody's database does."""
    everybody = store.for_everybody()
    for name in ("rows", "execute", "frame", "append", "changes", "transaction", "atomically"):
        setattr(store, name, getattr(everybody, name))
    return cast(OpenStore, store)


def opened(url: str, **more: Any) -> OpenStore:
    """The store of this URL and all its rows."""
    return whole(open_database(url, **more))


class Cluster:
    """A PostgreSQL of these tests alone, on loopback, in a folder that goes with it."""

    def __init__(self) -> None:
        self._programs = programs()
        if self._programs is None:
            raise FileNotFoundError(NONE)
        self.folder = Path(mkdtemp(prefix="bankdata-pg-", dir=_fastest_folder()))
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._user = "postgres" if os.geteuid() == 0 else None  # which refuses to run as root
        if self._user:
            os.chown(self.folder, pwd.getpwnam(self._user).pw_uid, -1)
        self.port = free_port()
        how = ("-U", "bankdata", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8")
        self._run("initdb", "-D", self.folder / "data", *how)
        with (self.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n"
                "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmax_connections = 300\n"
                "shared_buffers = 64MB\nautovacuum = off\nlog_min_messages = fatal\n"
            )
        self.start()
        self.sql(f"CREATE ROLE {APP_ROLE} LOGIN")

    def start(self) -> None:
        """Have it answer."""
        assert self._programs is not None
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self.folder / "data"],
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_dies_with_us,
        )
        deadline = time.monotonic() + 60
        while subprocess.run([self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode:
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.05)

    def stop(self) -> None:
        """As if its machine died."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """As if its machine stood still meanwhile: nothing answers, not even to who connects anew."""
        assert self._process is not None
        pids = [self._process.pid, *(int(pid) for (pid,) in self.sql("SELECT pid FROM pg_stat_activity"))]
        try:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def remove(self) -> None:
        """Nothing of it is left."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, name: str) -> str:
        """Of the database of this name."""
        return f"postgresql://bankdata@127.0.0.1:{self.port}/{name}"

    def app_url(self, name: str) -> str:
        """The same for the role of requests."""
        return f"postgresql://{APP_ROLE}@127.0.0.1:{self.port}/{name}"

    def sql(self, statement: str, database: str = "postgres") -> list[Any]:
        """What a statement brings, outside any transaction."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            return _rows(connection, statement)

    def of_stores(self, statement: str) -> list[Any]:
        """The same for what makes and looks for stores, thousands of times: over one connection, since a new one takes
        7 ms of processor time."""
        import psycopg

        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.url("postgres"), autocommit=True)
        return _rows(self._connection, statement)

    def _run(self, program: str, *arguments: object) -> None:
        assert self._programs is not None
        subprocess.run(
            [str(self._programs / program), *map(str, arguments)],
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )


def _fastest_folder() -> Path:
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > CLUSTER_BYTES
    return MEMORY if has_room else Path("/tmp")


def _rows(connection: "psycopg.Connection[Any]", statement: str) -> list[Any]:
    cursor = connection.execute(statement.encode())
    return cursor.fetchall() if cursor.description else []


class Engine:
    """Makes stores. One object for a run of tests; `choose` says which engine."""

    def __init__(self) -> None:
        self.name = "duckdb"
        self.citus: Citus | None = None  # then the name is postgresql
        self._cluster: Cluster | None = None
        self._databases: dict[Path, str] = {}  # on one PostgreSQL, by their files

    @property
    def cluster(self) -> Cluster:
        """Started when the first test needs it."""
        if self._cluster is None:
            self._cluster = Cluster()
        return self._cluster

    def url(self, file: Path) -> str:
        """Of the store that is this file on DuckDB; its database is made where it is missing."""
        if self.name == "duckdb":
            return f"duckdb:///{file}"
        name = self._database(file)
        if self.citus is not None:
            return self.citus.url(file)
        if not self.cluster.of_stores(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            self.cluster.of_stores(f"CREATE DATABASE {name} {EMPTY}")
        return self.cluster.url(name)

    def environment(self, folder: Path) -> Mapping[str, str]:
        """The settings of a service in this data folder, with the second wall on PostgreSQL."""
        if self.name == "duckdb":
            return {}
        read = {"BANKDATA_DATABASE_URL": self.url(folder / STORE), "BANKDATA_KEYS_SECRET": KEYS_SECRET}
        if self.citus is not None:
            return read
        return {**read, "BANKDATA_DATABASE_APP_URL": self.cluster.app_url(self._database(folder / STORE))}

    def settings(self, folder: Path, **more: str) -> Settings:
        """The same, read."""
        given = {f"BANKDATA_{name}": value for name, value in more.items()}
        return load({**self.environment(folder), **given}, data_dir=folder)

    def copy(self, source: Path, target: Path) -> Path:
        """A copy of a data folder, with its store; nobody may have it open."""
        shutil.copytree(source, target)
        if self.citus is not None:
            self.citus.copy(source / STORE, target / STORE)
        elif self.name != "duckdb":
            self._make_database(target / STORE, like=self._database(source / STORE))
        return target

    def empty_store(self, file: Path) -> "OpenStore":
        """An empty, migrated store in a new file."""
        if self.name == "duckdb":
            file.write_bytes(_migrated_file())
        elif self.citus is None:
            _migrated_database(self)
            self._make_database(file, like=TEMPLATE)
        return opened(self.url(file))

    @contextmanager
    def passing_store(self, file: Path) -> Iterator["OpenStore"]:
        """The same, whose file nobody opens after the block: of DuckDB's 30 ms for the end, most are for the file."""
        with patch.object(duckdb_file, "_harden", _harden_passing):
            store: Any = self.empty_store(file)
        try:
            yield store
        finally:
            if store.is_shared:
                store.close()
            else:
                while store._idle:
                    store._idle.pop().close()
                store._root.close()

    def empty_folder(self, folder: Path) -> None:
        """A new data folder with such a store and the keys of a first start, which take a tenth of a second to make. On
        PostgreSQL keys and second wall are in the store."""
        folder.mkdir(mode=0o700)
        if self.name == "duckdb":
            (folder / STORE).write_bytes(_migrated_file())
            (folder / KEYS_FILE).touch(mode=0o600)
            (folder / KEYS_FILE).write_bytes(_keys())
        elif self.citus is None:
            _started_database(self)
            self._make_database(folder / STORE, like=STARTED)
        else:
            self.empty_store(folder / STORE).close()

    def free(self, folder: Path) -> None:
        """The stores in this folder are needed no more."""
        if self.citus is not None:
            self.citus.free(folder)
        elif self._cluster is not None:
            for file in [each for each in self._databases if each.is_relative_to(folder)]:
                self._cluster.of_stores(f"DROP DATABASE IF EXISTS {self._databases.pop(file)} WITH (FORCE)")

    def end(self) -> None:
        """Stop what was started."""
        if self._cluster is not None:
            self._cluster.remove()
        if self.citus is not None:
            self.citus.remove()

    def _make_database(self, file: Path, *, like: str) -> None:
        self.cluster.of_stores(f"CREATE DATABASE {self._database(file)} TEMPLATE {like} {COPIED}")

    def _database(self, file: Path) -> str:
        self._databases[file] = name = f"t_{hashlib.sha256(str(file).encode()).hexdigest()[:24]}"
        return name


ENGINE = Engine()
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def made_once(basetemp: Path, name: str, make: Callable[[Path], object]) -> Path:
    """The data folder of this name, filled by the first test of a run that needs it: nobody may open it, everybody may
    copy it. Workers of pytest-xdist share a file of DuckDB, while each has a PostgreSQL of its own."""
    is_shared = ENGINE.name == "duckdb" and "PYTEST_XDIST_WORKER" in os.environ
    around = (basetemp.parent if is_shared else basetemp) / name
    around.mkdir(exist_ok=True)
    with (around / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (around / "is-made").exists():
            with untraced():
                make(around / "data")
            (around / "is-made").touch()
    return around / "data"


def _dies_with_us() -> None:
    """However the tests end, the cluster does not outlive them."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def programs() -> Path | None:
    """Where the newest PostgreSQL of this machine has its programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _harden_passing(root: duckdb.DuckDBPyConnection, export_folder: Path) -> None:
    root.execute("PRAGMA disable_checkpoint_on_shutdown")
    _harden(root, export_folder)


@cache
def _migrated_file() -> bytes:
    """The file of an empty store: the migrations run once, and not for each of a thousand tests."""
    from storage.migrations import runner
    from tests.conftest import NOW

    with TemporaryDirectory() as folder:
        made = open_database(f"duckdb:///{Path(folder) / STORE}")
        runner.migrate(made, now=NOW)
        made.close()
        return (Path(folder) / STORE).read_bytes()


@cache
def _migrated_database(engine: Engine) -> None:
    from storage.migrations import runner
    from tests.conftest import NOW

    engine.cluster.of_stores(f"CREATE DATABASE {TEMPLATE} {EMPTY}")
    made = open_database(engine.cluster.url(TEMPLATE))
    runner.migrate(made, now=NOW)
    made.close()


@cache
def _started_database(engine: Engine) -> None:
    from storage.engines import second_wall
    from tests.conftest import NOW

    _migrated_database(engine)
    engine.cluster.of_stores(f"CREATE DATABASE {STARTED} TEMPLATE {TEMPLATE} {COPIED}")
    made = open_database(engine.cluster.url(STARTED), app_url=engine.cluster.app_url(STARTED))
    second_wall.build(made)
    KeyRing(SealedKeys(made.for_everybody(), KIND, KEYS_SECRET, lambda: NOW), now=NOW)
    made.close()


@cache
def _keys() -> bytes:
    from tests.conftest import NOW

    with TemporaryDirectory() as folder:
        KeyRing(Path(folder), now=NOW)
        return (Path(folder) / KEYS_FILE).read_bytes()


def tables_of(database: Session) -> list[str]:
    """The names of all tables of a store."""
    rows = database.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name"
    )
    return [row["table_name"] for row in rows]
