"""Keeps track of the connected clients: how many there may be, in all and from one address, and which gives way to a
new one."""

import resource
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Protocol

from starlette.types import Scope

from handlers.web.addresses import Addresses, Network, address_key
from handlers.web.sockets.connection_limits import (
    CONNECTIONS_MAX,
    CONNECTIONS_MAX_PER_ADDRESS,
    OPEN_FILES_SHARE,
    UNREAD_BYTES_MAX,
)


class Occupation(IntEnum):
    """What happens on a connection. The first gives way soonest; up to SERVED, those without a valid token give way
    before those with one."""

    IDLE = 0
    """Nothing has happened on the connection for a while."""
    OWING = 1
    """The client has begun a request and not ended it, or does not read its answer."""
    NEW = 2
    """The connection has just opened, and nothing has arrived on it."""
    SERVED = 3
    """The client has just got an answer."""
    LISTENING = 4
    """It carries a stream of events, whose client comes back by itself."""
    LATE = 5
    """Its request has been answered for longer than most: something else is waited for."""
    ANSWERED = 6
    """Its request is being answered: the connection never gives way."""


def note_sign_in(scope: Scope) -> None:
    """Note on the connection of this request, if it came over one, that its sender has shown a valid token."""
    peer = _peer(scope)
    if peer is not None:
        peer.is_signed_in = True


def note_listening(scope: Scope) -> None:
    """Note on the connection of this request, if it came over one, that its answer is a stream of events."""
    peer = _peer(scope)
    if peer is not None:
        peer.is_listening = True


def _peer(scope: Scope) -> "Peer | None":
    peer: Peer | None = scope.get("extensions", {}).get("bankdata.connection", {}).get("peer")
    return peer


class Awaited(Protocol):
    """A client to whom an answer is being sent; `give_way` cuts it off."""

    def give_way(self) -> None: ...


class Peer(Awaited, Protocol):
    """The connection of one client. `unchanged_since` is since when it has owed, or done, the same thing, in seconds of
    a monotonic clock; `is_signed_in` says whether a request on it has shown a valid token, `is_listening` whether the
    present answer is a stream of events."""

    unchanged_since: float
    is_signed_in: bool
    is_listening: bool

    @property
    def occupation(self) -> Occupation: ...
    def close_if_overdue(self, now: float) -> None: ...


class Unread:
    """Counts the bytes of answers that are held in memory until clients read. Beyond `most`, the client that has taken
    nothing for longest is cut off; one that reads goes to the end of the line with each piece."""

    def __init__(self, most: int = UNREAD_BYTES_MAX) -> None:
        self._most = most
        self._waiting: dict[Awaited, int] = {}  # the one that has waited for longest first
        self._bytes = 0

    def waits(self, reader: Awaited, size: int) -> None:
        """Count `size` bytes that are held for this reader alone. While all that are held are more than `most`, cut off
        the reader that has waited for longest; this one stays, even if it alone holds more."""
        self._waiting[reader] = size
        self._bytes += size
        while self._bytes > self._most and (slowest := next(iter(self._waiting))) is not reader:
            self.goes_on(slowest)
            slowest.give_way()

    def goes_on(self, reader: Awaited) -> None:
        """Stop counting for a reader that has taken a piece or is gone; an unknown one is no error, for it may have
        given way before."""
        self._bytes -= self._waiting.pop(reader, 0)


class Peers:
    """Every connection of the server.

    When there are too many, in all or from one address, one of these gives way to the new one: connections without a
    token first, idle ones first among them; among equals, those of the address that has most, so that whoever opens
    many pushes out their own; among these, the one on which nothing has happened for longest. Last come streams and
    answers that take long. Proxies are bounded by the total only; of theirs only these last ones give way, since others
    carry the requests of many.
    """

    def __init__(
        self,
        trusted_proxies: Iterable[str | Network] = (),
        *,
        most: int | None = None,
        most_per_address: int = CONNECTIONS_MAX_PER_ADDRESS,
    ) -> None:
        """`most` connections in all: None means half of the files that this process may open, and no more than
        CONNECTIONS_MAX. `most_per_address` is for each IPv4 address or IPv6 network of 64 bits."""
        self._addresses = Addresses(trusted_proxies)
        self._most = most_connections() if most is None else most
        self._most_per_address = most_per_address
        self._keys: dict[Peer, str | None] = {}  # the oldest connection first; None for a proxy's
        self._of: dict[str, dict[Peer, None]] = {}
        self.unread = Unread()

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._keys)

    def is_proxy(self, host: str) -> bool:
        """Whether connections from this address carry the requests of others."""
        return self._addresses.is_trusted(host)

    def admit(self, peer: Peer, host: str | None) -> bool:
        """Register a new connection and return True, closing another one for it if there are too many. False, and not
        registered, if none can give way. `host` None is a Unix socket, which counts as a proxy."""
        key = None if host is None or self.is_proxy(host) else address_key(host)
        same = self._of.get(key, {}) if key is not None else {}
        if len(same) >= self._most_per_address and not self._make_room(same):
            return False
        if len(self._keys) >= self._most and not self._make_room(
            each
            for each, its_key in self._keys.items()
            if its_key is not None or each.occupation in (Occupation.LISTENING, Occupation.LATE)
        ):
            return False
        self._keys[peer] = key
        if key is not None:
            self._of.setdefault(key, {})[peer] = None
        return True

    def forget(self, peer: Peer) -> None:
        """Remove a connection that has ended; an unknown one is no error, for it may have given way before."""
        key = self._keys.pop(peer, None)
        if key is not None:
            same = self._of[key]
            del same[peer]
            if not same:
                del self._of[key]

    def close_overdue(self, now: float) -> None:
        """Close the connections whose clients have been owing something, or have been idle, for too long; `now` is in
        seconds of a monotonic clock."""
        for peer in list(self):
            peer.close_if_overdue(now)

    def _make_room(self, peers: Iterable[Peer]) -> bool:
        leaving = min(peers, key=self._order, default=None)
        if leaving is None or leaving.occupation is Occupation.ANSWERED:
            return False
        self.forget(leaving)
        leaving.give_way()
        return True

    def _order(self, peer: Peer) -> tuple[Occupation, bool, Occupation, int, float]:
        """The sort key of a connection: the smaller, the sooner it gives way."""
        occupation, key = peer.occupation, self._keys[peer]
        of_address = len(self._of[key]) if key is not None else 0
        group = max(occupation, Occupation.SERVED)  # nothing is being answered, or each of the others by itself
        return group, peer.is_signed_in, occupation, -of_address, peer.unchanged_since


def most_connections() -> int:
    """The number of connections that one process takes."""
    return min(CONNECTIONS_MAX, open_files() // OPEN_FILES_SHARE)


def open_files() -> int:
    """The number of files and sockets that this process may have open (`ulimit -n`, LimitNOFILE)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
