"""The restore drill over a real Citus cluster, whose nodes are backed up while it serves."""

import os
import pwd
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from handlers.commands import rehearsals
from handlers.commands.control_socket import CommandError
from handlers.settings import Settings, load
from handlers.work.services import open_services
from storage.engines import distribution, restored_server
from storage.engines.opening import open_database
from tests.engines import EMPTY, ENGINE, KEYS_SECRET
from tests.service.conftest import Said
from tests.service.test_restore_drill import add, imported

pytestmark = [pytest.mark.engine("citus"), pytest.mark.requirement("deploy.restore-drill")]
NAME = "bankdata_drill"


@dataclass
class BackedUpNodes:
    """A cluster with a database of its own, the address of each node, and the folder of each one's backups."""

    url: str
    backups: Path
    programs: str
    nodes: dict[str, str] = field(default_factory=dict)

    def settings(self, folder: Path) -> Settings:
        given = {"BANKDATA_DATABASE_URL": self.url, "BANKDATA_KEYS_SECRET": KEYS_SECRET}
        return load(given, data_dir=folder)

    @contextmanager
    def archived(self) -> Iterator[Callable[[], None]]:
        """Base backups of all nodes, and from here on their WAL; has it arrive."""
        with ExitStack() as stack:
            for node, address in self.nodes.items():
                folder = self.backups / node
                self._run("pg_basebackup", address, "--checkpoint=fast", f"--pgdata={folder}/base/20260101-000000")
                command = [f"{self.programs}/pg_receivewal", f"--dbname={address}", f"--directory={folder}/wal"]
                receiver = subprocess.Popen([*command, "--synchronous"], user=_owner(), cwd="/")
                stack.callback(receiver.wait)
                stack.callback(receiver.terminate)

            yield self._fill_up

    def _fill_up(self) -> None:
        """Have each node begin another file, so that the one before is whole."""
        for node, address in self.nodes.items():
            with psycopg.connect(address, autocommit=True) as connection:
                (name,) = connection.execute("SELECT pg_walfile_name(pg_current_wal_lsn())").fetchone() or ("",)
                connection.execute("SELECT pg_switch_wal()")
                while not (self.backups / node / "wal" / name).exists():
                    connection.execute("SELECT pg_logical_emit_message(false, 'test', 'on'), pg_sleep(0.1)")

    def _run(self, program: str, address: str, *arguments: str) -> None:
        subprocess.run(
            [f"{self.programs}/{program}", f"--dbname={address}", *arguments], user=_owner(), cwd="/", check=True
        )


def _owner() -> int:
    return pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else os.geteuid()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BackedUpNodes]:
    """Its database is there while a test runs; nobody else writes into the cluster then."""
    assert ENGINE.citus is not None
    first = urlsplit(ENGINE.citus.address)
    with psycopg.connect(first.geturl(), autocommit=True) as connection:
        rows = connection.execute("SELECT groupid, nodename, nodeport FROM pg_dist_node WHERE groupid > 0").fetchall()
        (programs,) = connection.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").fetchone() or ("",)
    netlocs = {"db0": first.netloc, **{f"db{row[0]}": f"{first.username}@{row[1]}:{row[2]}" for row in rows}}
    backups = Path(os.environ.get("TMPDIR", "/tmp")) / f"bankdata-backups-{os.getpid()}"  # where postgres may look
    made = BackedUpNodes(first._replace(path=f"/{NAME}").geturl(), backups, programs)
    monkeypatch.setattr(restored_server, "PROGRAMS", f"{programs}{{:.0}}")  # whatever the version
    try:
        for node, netloc in netlocs.items():
            made.nodes[node] = first._replace(netloc=netloc, path=f"/{NAME}").geturl()
            for folder in (backups, backups / node, backups / node / "base", backups / node / "wal"):
                folder.mkdir(exist_ok=True)
                os.chown(folder, _owner(), -1)
            with psycopg.connect(first._replace(netloc=netloc).geturl(), autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
                connection.execute(f"CREATE DATABASE {NAME} {EMPTY}")
            with psycopg.connect(made.nodes[node], autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
        with psycopg.connect(made.url, autocommit=True) as connection:
            connection.execute("SELECT citus_set_coordinator_host(%s, %s)", (first.hostname, first.port))
            for _, name, port in rows:
                connection.execute("SELECT citus_add_node(%s, %s)", (name, port))
        yield made
    finally:
        subprocess.run(["rm", "-rf", backups], check=True)
        for netloc in netlocs.values():
            with psycopg.connect(first._replace(netloc=netloc).geturl(), autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")


def test_all_nodes_of_a_cluster_are_restored_to_one_point_and_checked(cluster: BackedUpNodes, tmp_path: Path) -> None:
    settings = cluster.settings(tmp_path / "data")
    open_services(settings).close()
    with closing(open_database(cluster.url)) as store:
        distribution.distribute(store, alone=False)
    with cluster.archived() as arrived:
        with closing(open_services(settings)) as services:
            add(services, "eva")
            imported(services, tmp_path / "eva.csv")
            services.everybody.rows("SELECT citus_create_restore_point('before_max')")
            add(services, "max")
        arrived()

    def drilled(point: str | None) -> list[str]:
        said = Said()
        rehearsals.restore_drill(settings, said, backups=cluster.backups, at=None, point=point)
        return said.lines

    backup, steps, kept, *_, accounts, ok = drilled("before_max")
    assert backup.startswith(f"backup     {cluster.backups}, schema version ")
    assert steps == "steps      none: store and program belong together"
    assert kept.startswith("kept       1 users, 1 connections, 1 accounts, 2 transactions")
    assert accounts == "accounts   1, their bookings compared with statements and balances"
    assert ok == "ok         this backup can be restored"
    assert not list(Path("/tmp").glob("bankdata-restored-*"))
    with pytest.raises(CommandError, match="say which by --point"):
        drilled(None)
    with pytest.raises(CommandError, match="'a b' is no name of a restore point"):
        drilled("a b")
    with pytest.raises(CommandError, match="recovery ended before configured recovery target was reached"):
        drilled("never")
    subprocess.run(["rm", "-rf", cluster.backups / "db2"], check=True)
    with pytest.raises(CommandError, match="1 of 3 nodes have no backup here"):
        drilled("before_max")
    subprocess.run(["rm", "-rf", cluster.backups / "db0"], check=True)
    with pytest.raises(CommandError, match="is of the coordinator"):
        drilled("before_max")
