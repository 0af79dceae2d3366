"""The restore drill over a real PostgreSQL, which is backed up by the script of docs/deploy."""

import fcntl
import os
import pwd
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a package of their own

from handlers.commands import rehearsals
from handlers.commands.control_socket import CommandError
from handlers.commands.imports import import_files
from handlers.settings import Settings, load
from handlers.work.services import Services, open_services
from storage import users
from storage.bank_access import connection_secrets
from storage.engines import restored_server
from tests.cli.conftest import bankdata
from tests.conftest import NOW
from tests.engines import EMPTY, KEYS_SECRET, Cluster, programs
from tests.service.conftest import Said

SCRIPT = Path(__file__).parents[2] / "docs" / "deploy" / "base-backup.sh"
COMPOSE = SCRIPT.with_name("compose-company.yaml")
RESTORE = SCRIPT.with_name("restore.sh")

pytestmark = [pytest.mark.engine("postgresql"), pytest.mark.requirement("deploy.restore-drill")]


@dataclass
class BackedUp:
    """A database with a server's WAL archive, and its backups."""

    cluster: Cluster
    folder: Path
    backups: Path

    def settings(self, **more: str) -> Settings:
        given = {"BANKDATA_DATABASE_URL": self.cluster.url("bank"), "BANKDATA_KEYS_SECRET": KEYS_SECRET}
        return load({**given, **{f"BANKDATA_{name}": value for name, value in more.items()}}, data_dir=self.folder)

    def back_up(self, keep: int = 7) -> None:
        """As the timer does."""
        found = programs()
        assert found is not None
        user = "postgres" if os.geteuid() == 0 else None
        subprocess.run(
            ["sh", SCRIPT, self.backups, str(keep)],
            env={
                "PATH": f"{found}:{os.environ['PATH']}",
                "PGHOST": "127.0.0.1",
                "PGPORT": str(self.cluster.port),
                "PGUSER": "bankdata",
            },
            user=user,
            cwd="/",
            check=True,
            timeout=60,
        )

    def archive(self) -> None:
        """Have the archive hold all WAL of before."""
        (name,) = self.cluster.sql("SELECT pg_walfile_name(pg_switch_wal())")[0]
        deadline = time.monotonic() + 30
        while not (self.backups / "wal" / f"{name}.gz").exists():
            assert time.monotonic() < deadline, "the WAL is not archived"
            time.sleep(0.05)

    def drill(self, settings: Settings | None = None, at: datetime | None = None) -> list[str]:
        said = Said()
        rehearsals.restore_drill(settings or self.settings(), said, backups=self.backups, at=at)
        return said.lines


@contextmanager
def archiving(folder: Path) -> Iterator[BackedUp]:
    """A database that archives its WAL; none of it is left after the block."""
    cluster = Cluster()
    try:
        backups = cluster.folder / "backups"
        (backups / "wal").mkdir(parents=True)
        (backups / "base").mkdir()
        if os.geteuid() == 0:
            for each in (backups, backups / "wal", backups / "base"):
                os.chown(each, pwd.getpwnam("postgres").pw_uid, -1)
        (command,) = re.findall(r"archive_command=(.*)", COMPOSE.read_text("utf-8"))
        cluster.stop()
        with (cluster.folder / "data" / "postgresql.conf").open("a") as more:
            more.write(f"archive_mode = on\narchive_command = '{command.replace('/backups', str(backups))}'\n")
        cluster.start()
        cluster.sql(f"CREATE DATABASE bank {EMPTY}")
        yield BackedUp(cluster, folder, backups)
    finally:
        cluster.remove()


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackedUp]:
    with archiving(tmp_path_factory.mktemp("drill")) as made:
        yield made


def add(services: Services, name: str) -> None:
    users.add(services.everybody, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)


def imported(services: Services, file: Path) -> None:
    file.write_text("Date,Description,Amount,Currency\n2026-03-02,shop,-3.50,EUR\n2026-03-03,,4.00,EUR\n")
    import_files(
        services,
        Said(),
        user=users.get_by_name(services.everybody, "eva"),
        files=[str(file)],
        connection=None,
        account=None,
        is_dry_run=False,
        is_json=False,
    )


def test_a_backup_is_restored_to_any_instant_since_and_checked(
    backed_up: BackedUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="holds no base backup\\."):
        backed_up.drill()
    with closing(open_services(backed_up.settings())) as services:
        backed_up.back_up()
        backed_up.archive()
        with pytest.raises(CommandError, match="1 problem found"):
            backed_up.drill()  # nobody is in it
        add(services, "eva")
        imported(services, tmp_path / "eva.csv")
        kid = services.authorization.keys.signing_key().kid
        connection_secrets.keep(services.everybody, services.connection_keys, "u", "con_1", {"pin": "12345"})
        time.sleep(1.1)  # an instant is told in whole seconds
        between = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
        add(services, "max")
        backed_up.archive()

    backup, steps, kept, restored, keys, accounts, ok = backed_up.drill()
    (base,) = (backed_up.backups / "base").iterdir()
    assert backup.startswith(f"backup     {base}, schema version ")
    assert steps == "steps      none: store and program belong together"
    assert kept.startswith("kept       2 users, 1 connections, 1 accounts, 2 transactions")
    assert re.fullmatch(r"restored   in \d+\.\d s, the last commit is of 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", restored)
    assert keys == f"keys       signing key {kid}"
    assert accounts == "accounts   1, their bookings compared with statements and balances"
    assert ok == "ok         this backup can be restored"

    assert backed_up.drill(at=between)[2].startswith("kept       1 users, ")
    with pytest.raises(CommandError, match="holds no base backup that old"):
        backed_up.drill(at=datetime(2026, 1, 1))  # noqa: DTZ001 - in UTC, as the command gives it
    with pytest.raises(CommandError, match="does not restore it: recovery ended before configured recovery target"):
        backed_up.drill(at=datetime(2099, 1, 1))  # noqa: DTZ001
    with pytest.raises(CommandError, match="does not open the keys"):
        backed_up.drill(backed_up.settings(KEYS_SECRET="another secret of 32 characters or more"))
    assert not list(Path("/tmp").glob("bankdata-restored-*"))

    with monkeypatch.context() as older:
        path = os.environ["PATH"]
        older.setattr(restored_server, "PROGRAMS", "/nowhere/{}")
        older.setenv("PATH", "/nowhere")
        with pytest.raises(CommandError, match=r"PostgreSQL \d+ is not installed here"):
            backed_up.drill()
        older.setenv("PATH", f"{programs()}:{path}")
        assert backed_up.drill()[-1] == ok, "programs that lie elsewhere are found by PATH"
    done = bankdata(
        "restore-drill", backed_up.backups, "--at", f"{between:%Y-%m-%dT%H:%M:%S}", "--data", backed_up.folder,
        settings={"DATABASE_URL": backed_up.cluster.url("bank"), "KEYS_SECRET": KEYS_SECRET},
    )  # fmt: skip
    assert done.lines[-1] == ok


def test_what_is_wrong_with_a_backup_is_said(backed_up: BackedUp, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_services(backed_up.settings())) as services:
        add(services, "ida")
        services.everybody.execute("INSERT INTO connection_secrets VALUES ('u', 'con_2', 'pin', 'gone.')")
    backed_up.archive()  # or it would come after the script has looked for what is too old
    backed_up.back_up(keep=1)
    (base,) = (backed_up.backups / "base").iterdir()
    said = Said()
    with pytest.raises(CommandError, match="1 problem found"):
        rehearsals.restore_drill(backed_up.settings(), said, backups=backed_up.backups, at=None)
    assert any(each.endswith(" s, no commit since the base backup") for each in said.lines)
    assert "does not hold the key of 1 of this store's bank connections" in said.lines[-1]
    needed = re.search(r"\(file (\w+)\)", (base / "backup_label").read_text())
    assert needed is not None
    archived = [path.stem for path in (backed_up.backups / "wal").iterdir() if path.name.count(".") == 1]
    assert min(archived) >= needed[1], "older WAL is gone"
    with (backed_up.backups / ".lock").open("w") as another:
        fcntl.flock(another, fcntl.LOCK_EX)
        with pytest.raises(subprocess.CalledProcessError):
            backed_up.back_up()
    assert [each.name for each in (backed_up.backups / "base").iterdir()] == [base.name]

    control = base / "global" / "pg_control"
    control.write_bytes(control.read_bytes()[::-1])
    with pytest.raises(CommandError, match=r"The backup cannot be used: pg_verifybackup: error: checksum mismatch"):
        backed_up.drill()
    (base / "PG_VERSION").unlink()
    with pytest.raises(CommandError, match="PG_VERSION: No such file"):
        backed_up.drill()


def test_of_an_embedded_store_there_is_another_rehearsal(tmp_path: Path) -> None:
    done = bankdata("restore-drill", tmp_path, "--data", tmp_path)
    assert done.failed_with("names no PostgreSQL. Of a DuckDB store: bankdata upgrade-check")


@pytest.mark.requirement("deploy.company")
def test_the_script_of_the_kit_restores_an_instant_and_keeps_what_was_there(tmp_path: Path) -> None:
    with archiving(tmp_path) as made:
        cluster, data = made.cluster, made.cluster.folder / "data"

        def restore(instant: str) -> "subprocess.CompletedProcess[str]":
            user = "postgres" if os.geteuid() == 0 else None
            command: list[str | Path] = ["sh", RESTORE, made.backups, data, instant]
            return subprocess.run(command, user=user, cwd="/", check=False, capture_output=True, text=True, timeout=60)

        with closing(open_services(made.settings())) as services:
            made.back_up()
            add(services, "eva")
            [(instant,)] = cluster.sql("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::TEXT || ' UTC'")
            add(services, "max")
        made.archive()
        assert "PostgreSQL runs in" in restore(instant).stderr
        cluster.stop()
        assert "is of before 2020" in restore("2020-01-01 00:00:00 UTC").stderr
        done = restore(instant)
        assert done.returncode == 0, done.stderr
        cluster.start()
        deadline = time.monotonic() + 60
        while cluster.sql("SELECT pg_is_in_recovery()") != [(False,)]:
            assert time.monotonic() < deadline, "the recovery does not end"
            time.sleep(0.05)
        with closing(open_services(made.settings())) as services:
            assert [each.name for each in users.everyone(services.everybody)] == ["eva"]
        assert (made.backups / "replaced" / "PG_VERSION").exists()
        [restoring] = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]["restore"]["entrypoint"][1:2]
        assert f"./{RESTORE.name}:{restoring}:ro" in COMPOSE.read_text("utf-8")
