"""The process that sends by Apprise: strangers' code that follows strangers' addresses, with nothing worth stealing.

It has no store, no keys, an empty environment and no home. A fork of it (`connectors.waiting_process`) reads one
request of JSON from standard input, sends one message, and writes what came of it. An audit hook, which nothing can
take out again, watches the fork: it connects to the public internet by TLS and to the networks that the operator named,
whatever a name, a redirect or a member of the address says; it opens no files but modules, writes none, and starts
nothing. Only the outcome is told, in words of ours; Apprise's own words, which may have the address, go nowhere.
"""

import ipaddress
import json
import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from apprise import Apprise, AppriseAsset, NotifyFormat
from apprise.manager_plugins import NotificationManager
from requests import Response, adapters, exceptions
from urllib3.exceptions import HTTPError, NameResolutionError

from connectors.public_addresses import Network, is_public, is_within
from connectors.waiting_process import fork_for_requests

MEMORY_BYTES_MAX = 512 * 1024**2
OPEN_FILES_MAX = 32
ANSWER_BYTES_MAX = 256 * 1024
SECONDS_MAX = 20
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 10.0  # Apprise's four are few for a sign-in at a small Matrix server
WAIT_MAX = 86_400  # seconds; the longest pause that a receiver can ask for
MODULES = (".py", ".pyc", ".so")


def main() -> None:
    """Send the message of each request in a fork, until nobody asks any more."""
    logging.disable(logging.CRITICAL)
    NotificationManager().schemas()  # loads all plugins
    fork_for_requests(_attend)


def _attend(channel: int) -> None:
    signal.alarm(SECONDS_MAX)  # nothing catches it: the kernel ends a fork that takes longer
    os.dup2(channel, 0)
    request = json.loads(b"".join(iter(lambda: os.read(0, 1 << 16), b"")))
    signal.alarm(request["seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES_MAX, OPEN_FILES_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    exchange, is_taken = _Asked(), None
    _Bounds([ipaddress.ip_network(each) for each in request["allowed"]], exchange).begin()
    exchange.watch()
    try:
        is_taken = _is_taken(request, exchange)
    finally:  # a plugin may fail in any way, of which nobody hears more
        os.write(0, json.dumps(_outcome(exchange, is_taken)).encode())


def _is_taken(request: dict[str, Any], exchange: "_Asked") -> bool:
    """Whether the message was taken; of one without text, whether the address can be written to."""
    server = _server(request["url"])
    if server is None:
        return False
    exchange.is_safe = request["url"].partition(":")[0] in _schemes(server.secure_protocol)
    return request["text"] is None or bool(_sent(server, request["title"], request["text"]))


def _outcome(exchange: "_Asked", is_taken: bool | None) -> dict[str, Any]:
    """What came of a request: whether the message was taken (None: it failed), the last HTTP status, the seconds that
    the receiver wants us to wait, and an error word of the contract."""
    error = exchange.error or ("no_answer" if is_taken is None else None)
    return {
        "isTaken": bool(is_taken),
        "status": exchange.status,
        "wait": exchange.wait,
        "error": "address_not_allowed" if exchange.was_refused else error,
    }


def _sent(server: Any, title: str, text: str) -> Any:
    """Send plain text; where a service has no titles (Telegram, Matrix) Apprise would mark it up."""
    if server.title_maxlen <= 0 or hasattr(server, "rooms"):
        title, text = "", f"{title}\n{text}"
    return server.notify(title=title, body=text, body_format=NotifyFormat.TEXT)


def _server(url: str) -> Any:
    """Apprise's plugin for an address with one receiver; None for any other address."""
    asset = AppriseAsset(
        app_id="bankdata",
        app_desc="bankdata",
        app_url="",
        image_url_mask="",
        image_url_logo="",
        async_mode=False,
        http_redirects=False,
        interpret_emojis=False,
        storage_mode="memory",
        pgp_autogen=False,
        pem_autogen=False,
    )
    server, kind = Apprise.instantiate(url, asset=asset), NotificationManager()[url.partition(":")[0]]
    if type(server) is not kind or len(server) != 1 or _writes_to_whoever_is_there(server):
        return None
    server.socket_connect_timeout, server.socket_read_timeout = CONNECT_SECONDS, ANSWER_SECONDS
    if hasattr(server, "_register"):
        server._register = lambda: False  # Matrix would make an account where a sign-in fails
    return server


def _writes_to_whoever_is_there(server: Any) -> bool:
    """Whether it would write to who wrote to the bot last (Telegram), or to all rooms that it was led into (Matrix)."""
    if hasattr(server, "detect_owner"):
        return not server.targets
    return hasattr(server, "rooms") and not server.rooms and not server.users


def _schemes(named: str | Sequence[str] | None) -> Sequence[str]:
    return (named,) if isinstance(named, str) else named or ()


class _Asked:
    """What the HTTP requests of a plugin came to, of which it tells only whether all went well."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.wait = 0
        self.error: str | None = None
        self.is_safe = False  # by TLS alone
        self.was_refused = False

    def watch(self) -> None:
        """Watch what requests sends from now on: answers are bounded, and no redirect is followed."""
        send = adapters.HTTPAdapter.send

        def watched(adapter: adapters.HTTPAdapter, request: Any, *_: Any, **options: Any) -> Response:
            self.status, self.wait, self.error = None, 0, None
            try:
                response = send(adapter, request, **{**options, "stream": True})
                response._content = response.raw.read(ANSWER_BYTES_MAX, decode_content=True)
                response._content_consumed = True  # type: ignore[attr-defined]
            except (exceptions.RequestException, HTTPError) as error:
                self.error = _word(error)
                raise
            response.headers.pop("Location", None)
            self.status = response.status_code
            asked = response.headers.get("Retry-After", "")
            self.wait = min(int(asked[:9]), WAIT_MAX) if asked.isascii() and asked.isdecimal() else 0
            return response

        adapters.HTTPAdapter.send = watched  # type: ignore[assignment,method-assign]


def _word(error: Exception) -> str:
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(error, exceptions.Timeout):
        return "timeout"
    if isinstance(error, exceptions.SSLError):
        return "certificate"
    if isinstance(reason, NameResolutionError):
        return "name_not_found"
    return "not_connected" if isinstance(error, exceptions.ConnectionError) and reason is not None else "no_answer"


class _Bounds:
    """What code in this process may do, asked by Python's own audit events before each of them."""

    def __init__(self, allowed: Sequence[Network], exchange: _Asked) -> None:
        self._allowed, self._exchange = allowed, exchange
        self._modules = tuple(str(Path(each).absolute()) + os.sep for each in sys.path if each)

    def begin(self) -> None:
        """Ask from now on, until the process ends."""
        sys.addaudithook(self._ask)

    def _ask(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._ask_open(*arguments)
        elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            self._ask_connect(*arguments)
        elif event == "http.client.send":
            self._ask_clear(arguments[0].sock)
        elif event == "socket.bind" or (
            event.startswith(("os.", "subprocess.", "pty.", "shutil.", "tempfile.", "ctypes."))
            and event not in ("os.listdir", "os.scandir")
        ):
            raise PermissionError(event)

    def _ask_open(self, path: object, mode: str | None, flags: int) -> None:
        if isinstance(path, int):
            return
        name = os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]  # noqa: PTH100 - pathlib follows no dots
        is_read = not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and not set(mode or "") & set("wax+")
        if not (is_read and name.endswith(MODULES) and name.startswith(self._modules)):
            raise PermissionError("no files")

    def _ask_connect(self, connection: socket.socket, place: Any) -> None:
        if place is None:
            return  # a message on a connection that was asked about
        try:
            address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        except (
            ValueError,
            IndexError,
        ):  # a name, which would be looked up after the question, or a socket of this machine
            self._refuse()
        is_safe = self._exchange.is_safe and connection.type == socket.SOCK_STREAM
        if not (is_within(address, self._allowed) or (is_safe and is_public(address))):
            self._refuse()

    def _ask_clear(self, connection: socket.socket | None) -> None:
        if connection is None or isinstance(connection, ssl.SSLSocket):
            return
        if not is_within(ipaddress.ip_address(connection.getpeername()[0].partition("%")[0]), self._allowed):
            self._refuse()

    def _refuse(self) -> NoReturn:
        self._exchange.was_refused = True
        raise PermissionError("not allowed")
