"""Checks for which host a request is meant, against DNS rebinding.

DNS rebinding: a stranger makes their name lead to 127.0.0.1, and the browser takes what it finds there for a page of
that stranger, whose scripts then read and sign in as they like. The Host header still has the stranger's name.
"""

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Scope

from handlers.loopback import is_loopback
from handlers.web.addresses import parsed_address
from handlers.web.errors import BadRequest, MisdirectedRequest

# Load balancers ask by a machine's IP address, and learn nothing but that the service is up
UNCHECKED_PATHS = frozenset({"/healthz", "/readyz"})
METRICS_PATH = "/metrics"  # monitors use IP addresses too; a stranger's page always comes under a name


class Hosts:
    """The hosts for which the service answers: those of its public addresses, and this machine's names if it listens on
    loopback only."""

    def __init__(self, addresses: Iterable[str], *, is_loopback: bool) -> None:
        """`addresses` are the public addresses of the service; `is_loopback` says that it listens on loopback only."""
        self._names = frozenset(filter(None, (urlsplit(address).hostname for address in addresses)))
        self._is_loopback = is_loopback

    def check(self, scope: Scope) -> None:
        """Raise BadRequest for several Host headers, or for none in HTTP/1.1, and MisdirectedRequest for another host.
        Any host will do for /healthz and /readyz, any IP address for /metrics."""
        sent = [value for name, value in scope["headers"] if name == b"host"]
        # "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request message that lacks a Host
        # header field and to any request message that contains more than one Host header field line" RFC 9112 3.2
        if len(sent) > 1 or (not sent and scope["http_version"] == "1.1"):
            raise BadRequest("There must be one Host header")
        if not sent or scope["path"] in UNCHECKED_PATHS:
            return
        name = host_name(sent[0])
        if scope["path"] == METRICS_PATH and parsed_address(name) is not None:
            return
        if name not in self._names and not (self._is_loopback and is_loopback(name)):
            raise MisdirectedRequest()


@lru_cache(maxsize=64)
def host_name(header: bytes) -> str:
    """The host in a Host header in lower case, without its port, which a tunnel may change; empty if the header names
    none or cannot be read."""
    try:
        return urlsplit(f"//{header.decode('ascii')}").hostname or ""
    except ValueError:
        return ""
