"""Finds the client address by which limits count; forwarded addresses are believed only from configured proxies."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.types import Scope

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

IPV6_PREFIX_BITS = 64  # decision 32: one customer has a whole /64
PROXIES_MAX = 10  # in a chain before us; a client may list thousands in the header
UNNAMED = "local"  # a Unix socket has no address


class Addresses:
    """Finds the address under which a client is counted. Only `trusted_proxies`, single addresses or networks such as
    10.0.0.0/8, are believed about the clients whose requests they pass on."""

    def __init__(self, trusted_proxies: Iterable[str | Network] = ()) -> None:
        self._trusted: tuple[Network, ...] = tuple(ip_network(text, strict=False) for text in trusted_proxies)

    def client(self, scope: Scope) -> str:
        """The key by which the sender of a request is counted: its IPv4 address or IPv6 network of 64 bits, behind
        trusted proxies that of the client they name; "local" for a Unix socket."""
        peer = scope.get("client")
        if peer is None:
            return UNNAMED
        host: str = peer[0]
        if self._trusted:
            host = self._forwarded_for(host, scope["headers"])
        return address_key(host)

    def is_trusted(self, host: str) -> bool:
        """Whether this is the address of a configured proxy, or in a configured network; False for a name."""
        return is_in(host, self._trusted)

    def _forwarded_for(self, peer: str, headers: list[tuple[bytes, bytes]]) -> str:
        """The address that X-Forwarded-For states for the client behind `peer`: the header is read from its end while
        each sender is a trusted proxy and the entry is an address, since entries further left may be forged. `peer`
        itself if it is not trusted."""
        sent = b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")
        host = peer
        named = [part.strip() for part in sent.rsplit(",", PROXIES_MAX)[-PROXIES_MAX:]]
        for text in reversed([part for part in named if part]):
            if not self.is_trusted(host):
                break
            stated = _without_port(text)
            if parsed_address(stated) is None:
                break
            host = stated
        return host


@lru_cache(maxsize=4096)
def address_key(host: str) -> str:
    """The key by which requests from this address are counted: the IPv4 address (also if written as IPv6), or the IPv6
    network of 64 bits. A host that is no address stays as it is (the in-process test client has names)."""
    address = parsed_address(host)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX_BITS), strict=False))
    return host if address is None else str(address)


def is_in(host: str, networks: Iterable[Network]) -> bool:
    """Whether this is an address in one of these networks; False for a name."""
    address = parsed_address(host)
    return address is not None and any(address in network for network in networks)


def parsed_address(host: str) -> Address | None:
    """The IP address that a text states, without its zone (`%eth0`), and an IPv4-mapped IPv6 address as IPv4. None for
    a name."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
