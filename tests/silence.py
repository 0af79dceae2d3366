"""What lies between a service and its PostgreSQL: a proxy that falls silent, and PgBouncer."""

import os
import pwd
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from tests.engines import Cluster, _dies_with_us, free_port

PGBOUNCER = Path("/usr/sbin/pgbouncer")
KIT = Path(__file__).parents[1] / "docs" / "deploy" / "pgbouncer.ini"


class Between:
    """Hands on what goes to a port. The connections that are there when it has to `fall_silent` acknowledge every byte
    from then on and hand on none; later ones are handed on as before."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._silent: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_over = False
        self._thread.start()

    def fall_silent(self) -> None:
        """As a machine does whose network or program hangs."""
        self._silent |= set(self._pairs)

    def close(self) -> None:
        """Hang up."""
        self._is_over = True
        self._thread.join(60)
        for each in (self._listener, *self._pairs):
            each.close()

    def _run(self) -> None:
        while not self._is_over:
            for ready in select.select([self._listener, *self._pairs], [], [], 0.05)[0]:
                if ready is self._listener:
                    one, other = self._listener.accept()[0], socket.create_connection(("127.0.0.1", self._port))
                    self._pairs |= {one: other, other: one}
                elif ready in self._pairs:
                    self._hand_on(ready)

    def _hand_on(self, ready: socket.socket) -> None:
        heard = b""
        with suppress(OSError):
            heard = ready.recv(65536)
            if heard and ready not in self._silent:
                self._pairs[ready].sendall(heard)
        if not heard:
            for each in (ready, self._pairs[ready]):
                del self._pairs[each]
                each.close()


@contextmanager
def between(port: int) -> Iterator[Between]:
    """One that hangs up at the end of the block."""
    proxy = Between(port)
    try:
        yield proxy
    finally:
        proxy.close()


@contextmanager
def pooled(cluster: Cluster) -> Iterator[str]:
    """The address of a database behind the PgBouncer of docs/deploy, which gives each transaction any connection."""
    port, folder = free_port(), Path(mkdtemp(prefix="bankdata-pooler-", dir="/tmp"))
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    ini = ConfigParser()
    ini.read(KIT, "utf-8")
    del ini["pgbouncer"]["auth_file"]
    ini["pgbouncer"].update({"listen_addr": "127.0.0.1", "listen_port": str(port), "auth_type": "any"})
    ini["databases"] = {"postgres": f"host=127.0.0.1 port={cluster.port} user=bankdata"}
    with (folder / "pgbouncer.ini").open("w") as settings:
        ini.write(settings)
    if user:
        for each in (folder, folder / "pgbouncer.ini"):
            os.chown(each, pwd.getpwnam(user).pw_uid, -1)
    process = subprocess.Popen(
        [PGBOUNCER, "-q", folder / "pgbouncer.ini"],
        user=user,
        cwd="/",
        stderr=subprocess.DEVNULL,
        preexec_fn=_dies_with_us,
    )
    try:
        deadline = time.monotonic() + 30
        while is_closed(port):
            assert time.monotonic() < deadline, "PgBouncer does not start"
            time.sleep(0.05)
        yield f"postgresql://bankdata@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def is_closed(port: int) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
