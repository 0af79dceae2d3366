"""Downloads a small document from an address that a stranger names, but never from a machine that only this one can
reach.

`connectors/outgoing_http.py` asks hosts that the operator has named, through their proxy; here the name is resolved
first, each resulting address is checked, and the connection goes to a checked one.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from urllib.parse import urlsplit

from msgspec import Struct

from connectors.connector import ProviderUnavailable
from connectors.public_addresses import Address, is_public, plain

SECONDS_MAX = 5.0  # from resolving the name to the last byte
BYTES_MAX = 5 * 1024
AT_ONCE_MAX = 4
HTTPS_PORT = 443

_resolving = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="resolving")
_turns = threading.BoundedSemaphore(AT_ONCE_MAX)


class Downloaded(Struct, frozen=True, kw_only=True):
    """The document of an answer with status 200, its media type without parameters, and its Cache-Control header, both
    in lower case and empty where there is none."""

    body: bytes
    media_type: str
    cache_control: str


def download_checked(address: str, *, asks_loopback: bool = False, asks_private: bool = False) -> Downloaded:
    """The document at this https address, which may have at most 5 KB and take 5 seconds. Only addresses on the public
    internet are asked, and only at port 443; `asks_loopback` allows this machine, `asks_private` any address, both at
    any port. Raises ProviderUnavailable with one sentence that names the host, also where four downloads are under way
    already."""
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or HTTPS_PORT
    if not _turns.acquire(blocking=False):
        raise ProviderUnavailable(f"{host} cannot be asked now: too many others are being asked.")
    until = time.monotonic() + SECONDS_MAX
    try:
        addresses = _addresses(host, port, until)
        if not addresses or not all(is_allowed(each, asks_loopback, asks_private) for each in addresses):
            raise ProviderUnavailable(f"{host} is no host on the public internet.")
        if port != HTTPS_PORT and not (asks_private or (asks_loopback and addresses[0].is_loopback)):
            raise ProviderUnavailable(f"{host} is asked at port {HTTPS_PORT} only.")
        return _fetch(host, addresses[0], port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), until)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ProviderUnavailable(f"{host} did not answer as it should.", detail=type(error).__name__) from None
    finally:
        _turns.release()


def is_allowed(address: Address, asks_loopback: bool, asks_private: bool) -> bool:
    """Whether an address may be asked: one on the public internet, with `asks_loopback` also one of this machine, with
    `asks_private` any."""
    return asks_private or (asks_loopback and plain(address).is_loopback) or is_public(address)


def _addresses(host: str, port: int, until: float) -> list[Address]:
    looked_up = _resolving.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        answers = looked_up.result(max(0.0, until - time.monotonic()))
    except Late:
        looked_up.cancel()  # otherwise look-ups that still wait for their turn would delay the next ones, too
        raise ProviderUnavailable(f"{host} was not found in time.") from None
    return [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in answers]


class _PinnedConnection(http.client.HTTPSConnection):
    """A connection to a checked address, with the host name that the certificate must have."""

    def __init__(self, host: str, address: Address, port: int, until: float) -> None:
        self._tls = ssl.create_default_context()
        super().__init__(host, port, context=self._tls)
        self._address = address
        self._until = until
        self.opened: ssl.SSLSocket | None = None  # `sock` is None once the answer has begun

    def connect(self) -> None:
        # Once wrapped, `plain` has no descriptor of its own that its end would close
        with socket.create_connection((str(self._address), self.port), timeout=self._seconds_left()) as plain:
            plain.settimeout(self._seconds_left())
            self.sock = self.opened = self._tls.wrap_socket(plain, server_hostname=self.host)
        self.sock.settimeout(self._seconds_left())  # the time may have run out before there was anything to cut off

    def _seconds_left(self) -> float:
        """The seconds left. Raises TimeoutError where there are none."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _fetch(host: str, address: Address, port: int, target: str, until: float) -> Downloaded:
    connection = _PinnedConnection(host, address, port, until)
    deadline = threading.Timer(max(0.001, until - time.monotonic()), _cut_off, [connection])
    deadline.daemon = True
    deadline.start()
    try:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "bankdata"}
        connection.request("GET", target, headers=headers)
        with connection.getresponse() as answer:
            if answer.status != 200:
                raise ProviderUnavailable(f"{host} answered with status {answer.status} instead of the document.")
            if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise ProviderUnavailable(f"{host} sent a packed document, which was not asked for.")
            body = answer.read(BYTES_MAX + 1)
            if len(body) > BYTES_MAX:
                raise ProviderUnavailable(f"{host} sent a document of more than {BYTES_MAX} bytes.")
            if time.monotonic() >= until:
                raise ProviderUnavailable(f"{host} did not answer within {SECONDS_MAX:g} seconds.")
            return Downloaded(
                body=body,
                media_type=answer.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
                cache_control=answer.headers.get("Cache-Control", "").lower(),
            )
    finally:
        deadline.cancel()
        connection.close()


def _cut_off(connection: _PinnedConnection) -> None:
    """Shut the connection down when its time is over; a byte every few seconds would otherwise keep the reader
    waiting."""
    if connection.opened is not None:
        with suppress(OSError):
            connection.opened.shutdown(socket.SHUT_RDWR)
