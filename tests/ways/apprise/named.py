"""The process that sends by Apprise, with names of a test, and with a plugin that tries what strangers' code might."""

import ctypes
import os
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

NAMES = {"twice.test": ["127.0.0.2", "127.0.0.1"], "inside.test": ["127.0.0.1"]}
"""What each look-up of a name answers in turn, the last one ever after; every other name is 127.0.0.2."""

HARMLESS = {"HOME", "RECEIVER", "REQUESTS_CA_BUNDLE", "TMPDIR", "LC_CTYPE", "LD_PRELOAD", "LD_LIBRARY_PATH"}


def look_around() -> None:
    if os.environ.keys() <= HARMLESS:
        raise PermissionError


TRIED: Mapping[str, Callable[[], object]] = {
    "nothing": lambda: True,
    "reads-passwords": lambda: Path("/etc/passwd").read_text(),
    "reads-environment": lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "reads-home": lambda: Path("~/.netrc").expanduser().open(),
    "reads-by-dots": lambda: open(f"{__file__}/../../../../pyproject.toml").read(),  # noqa: PTH123, SIM115
    "writes-file": lambda: Path("/tmp/bankdata-evil.py").write_text("x"),
    "removes-file": lambda: os.remove("/tmp/nonexist"),  # noqa: PTH107
    "starts-program": lambda: subprocess.run(["true"]),
    "starts-shell": lambda: os.system("true"),
    "forks": lambda: os.fork(),
    "loads-library": lambda: ctypes.CDLL(None),
    "listens": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "sends-datagram": lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("9.9.9.9", 53)),
    "connects-datagram": lambda: socket.socket(type=socket.SOCK_DGRAM).connect(("9.9.9.9", 53)),
    "asks-this-machine": lambda: socket.socket(socket.AF_UNIX).connect("/run/systemd/private"),
    "connects-by-name": lambda: socket.socket().connect(("localhost", 9)),
    "knows-environment": look_around,
}


def evil(body: str, *_: Any, **__: Any) -> bool:
    """Whether nothing forbids what the text of the message names."""
    try:
        TRIED[body.split()[0]]()
    except Exception as error:
        return not isinstance(error, PermissionError)
    return True


def main() -> None:
    """Wait for requests, with the names of the test: all ports of a host are those of the receiver."""
    from apprise.decorators import notify  # here, not in the process of the tests

    from connectors.ways import apprise_process

    notify(on="evil")(evil)
    port, asked = int(os.environ["RECEIVER"]), dict[str, int]()

    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        answers = NAMES.get(host, [host if host[0].isdigit() else "127.0.0.2"])
        asked[host] = asked.get(host, -1) + 1
        place = (answers[min(asked[host], len(answers) - 1)], port)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)]

    socket.getaddrinfo = look_up  # type: ignore[assignment]
    apprise_process.main()
