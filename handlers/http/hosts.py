"""For which hosts the service answers: a page of a stranger whose name leads to this machine must not be one of them.

DNS rebinding: a stranger's name is made to lead to 127.0.0.1, and the browser takes what it finds there for a page of
that stranger, whose scripts read and sign in as they like. The Host header still has the stranger's name.
"""

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Scope

from handlers.http.addresses import parsed_address
from handlers.http.errors import BadRequest, MisdirectedRequest
from handlers.loopback import is_loopback

# Load balancers ask by the address of a machine, and are told nothing but that the service is up
UNCHECKED_PATHS = frozenset({"/healthz", "/readyz"})
METRICS_PATH = "/metrics"  # monitors use addresses too, by which no stranger's page is known


class Hosts:
    """The hosts of the public addresses, and the names of this machine where only this machine can connect."""

    def __init__(self, addresses: Iterable[str], *, is_loopback: bool) -> None:
        """`addresses` are those under which the service is known; `is_loopback` when it listens on
        loopback only."""
        self._names = frozenset(filter(None, (urlsplit(address).hostname for address in addresses)))
        self._is_loopback = is_loopback

    def check(self, scope: Scope) -> None:
        """Raises BadRequest for a request whose host cannot be known, MisdirectedRequest for that of somebody else."""
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
    """The host in a Host header without its port, which a tunnel may change; empty when there is none."""
    try:
        return urlsplit(f"//{header.decode('ascii')}").hostname or ""
    except ValueError:
        return ""
