"""A temporary PostgreSQL server, restored from a base backup and archived WAL, which nobody else can reach."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlsplit

from storage.database import StoreError

NAMED = re.compile(r"\d{8}-\d{6}")  # the time at which the backup ended, as docs/deploy/base-backup.sh writes it
LOOK_EVERY = 0.1  # seconds
LOG_BYTES = 5_000
PROGRAMS = "/usr/lib/postgresql/{}/bin"
CONFIGURATION = """
listen_addresses = ''
unix_socket_directories = '{place}'
hot_standby = off
fsync = off
max_connections = 50
archive_mode = off
restore_command = 'gunzip < "{wal}/%f.gz" > "%p" || cp "{wal}/%f" "%p"'
recovery_target_action = 'promote'
"""


class NotRestored(StoreError):
    """The backup cannot be restored."""


def base_backup(backups: Path, *, at: datetime | None) -> Path:
    """The newest base backup in the folder `base` of this folder, or the newest there that had ended by `at` (UTC).
    Raises NotRestored."""
    found = sorted(path for path in (backups / "base").glob("*") if NAMED.fullmatch(path.name))
    until = f"{at:%Y%m%d-%H%M%S}" if at is not None else "9"
    fitting = [path for path in found if path.name <= until]
    if not fitting:
        raise NotRestored(f"{backups / 'base'} holds no base backup" + (" that old." if found else "."))
    return fitting[-1]


@contextmanager
def restored_server(base: Path, wal: Path, url: str, *, until: str) -> Iterator[str]:
    """Start a temporary server restored from this base backup and archived WAL, and give its address for the `with`
    block; `url` tells the names of database and user.

    `until` are configuration lines that say where the restore stops; without any, it goes to the end of the WAL. Raises
    NotRestored. The backup is only read, and nothing of the server is left.
    """
    version = (base / "PG_VERSION").read_text("ascii").strip()
    programs = _programs(version)
    owner = pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else os.geteuid()  # not root: refused by PostgreSQL
    with TemporaryDirectory(prefix="bankdata-restored-") as name:
        place, data = Path(name), Path(name) / "data"
        os.chown(place, owner, -1)
        _run(owner, "cp", "-R", base, data)
        data.chmod(0o700)
        _run(owner, programs / "pg_verifybackup", "-q", data)
        _configure(owner, data, CONFIGURATION.format(place=place, wal=wal) + until)
        with (place / "log").open("wb") as log:
            server = subprocess.Popen(  # noqa: S603 - PostgreSQL's own programs, here and below
                [programs / "postgres", "-D", data], user=owner, cwd="/", stdout=log, stderr=log, start_new_session=True
            )
            try:
                _wait(server, programs, place)
                parts = urlsplit(url)
                yield f"postgresql://{parts.username or ''}@{parts.path}?host={quote(name, safe='')}"
            finally:
                server.send_signal(signal.SIGINT)  # a "fast shutdown"
                server.wait()


def _programs(version: str) -> Path:
    """The folder with the programs of this version of PostgreSQL: where PATH finds them, else where Debian has them.
    Raises NotRestored."""
    on_path = shutil.which("postgres")
    if on_path is not None:
        said = subprocess.run([on_path, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
        if re.search(rf"\) {version}\b", said):
            return Path(on_path).resolve().parent
    usual = Path(PROGRAMS.format(version))
    if not (usual / "postgres").exists():
        raise NotRestored(
            f"PostgreSQL {version} is not installed here, which made this backup: neither PATH nor {usual} has it."
        )
    return usual


def _configure(owner: int, data: Path, text: str) -> None:
    """Write a configuration of our own, which asks nobody for a password, because the addresses, certificates and sizes
    of the original server do not apply."""
    for name, content in (
        ("postgresql.conf", text),
        ("postgresql.auto.conf", ""),
        ("pg_hba.conf", "local all all trust\n"),
        ("pg_ident.conf", ""),
        ("recovery.signal", ""),
    ):
        (data / name).write_text(content, "utf-8")
        os.chown(data / name, owner, -1)


def _wait(server: "subprocess.Popen[bytes]", programs: Path, place: Path) -> None:
    """Wait until the server has read all WAL up to its target, however long that takes. Raises NotRestored."""
    while subprocess.run([programs / "pg_isready", "-q", "-U", "postgres", "-h", place], check=False).returncode:  # noqa: S603
        if server.poll() is not None:
            said = (place / "log").read_text("utf-8", errors="replace")[-LOG_BYTES:]
            reasons = re.findall(r"(?:FATAL|PANIC): +(?! |the database system is)(.*)", said)
            raise NotRestored(f"PostgreSQL does not restore it: {'; '.join(reasons) or said}.")
        time.sleep(LOOK_EVERY)


def _run(owner: int, *command: object) -> None:
    done = subprocess.run(  # noqa: S603
        [str(each) for each in command], user=owner, cwd="/", capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotRestored(f"The backup cannot be used: {done.stderr.strip()}")
