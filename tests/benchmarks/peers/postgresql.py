"""A private PostgreSQL server: its own folder, a Unix socket in it, nothing else of the machine."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
USER = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
SETTINGS = ("listen_addresses=", "shared_buffers=512MB", "max_connections=80", "jit=off", "random_page_cost=1.1")


def program(name: str) -> str:
    found = PROGRAMS[0] / name if PROGRAMS else shutil.which(name)
    if found is None:
        raise SystemExit("PostgreSQL is not installed")
    return str(found)


def make(folder: Path) -> None:
    """A new cluster in the folder."""
    place = folder / "postgresql"
    place.mkdir(mode=0o700)
    if USER:
        shutil.chown(place, USER, USER)
        folder.chmod(0o711)  # it has to get there, and need not look around
    subprocess.run(
        [program("initdb"), "-D", place / "data", "-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C", "-N"],
        check=True, user=USER, group=USER, stdout=subprocess.DEVNULL, cwd="/",
    )  # fmt: skip


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Start it and yield its address."""
    place = folder / "postgresql"
    settings = [part for each in (*SETTINGS, f"unix_socket_directories={place}") for part in ("-c", each)]
    command = [program("postgres"), "-D", place / "data", *settings]
    process = subprocess.Popen(command, user=USER, group=USER, stderr=subprocess.DEVNULL, cwd="/")
    try:
        while not (place / ".s.PGSQL.5432").exists() and process.poll() is None:
            time.sleep(0.05)
        ready = [program("pg_isready"), "-q", "-h", place]
        while subprocess.run(ready).returncode:
            if process.poll() is not None:
                raise SystemExit("PostgreSQL did not start")
            time.sleep(0.05)
        yield f"host={place} user=bench dbname=postgres"
    finally:
        process.terminate()  # "smart": it waits for clients, which are gone by now
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
