"""Who is connected: how many clients at once, in all and from one address, and who makes room for the next one."""

import resource
from collections.abc import Iterable
from typing import Protocol

from handlers.http.addresses import Addresses, Network, address_key
from handlers.http.sockets.connection_limits import CONNECTIONS_MAX, CONNECTIONS_MAX_PER_ADDRESS, OPEN_FILES_SHARE


class Peer(Protocol):
    """A connected client."""

    unchanged_since: float

    @property
    def is_sending(self) -> bool: ...
    @property
    def is_idle(self) -> bool: ...
    def give_way(self) -> None: ...
    def close_if_overdue(self, now: float) -> None: ...


class Peers:
    """Every connection of the server.

    When there are too many, the oldest one whose client owes us something gives way to the new one, else the one that
    has been idle for longest: whoever opens connections and sends nothing pushes out their own. Proxies are bounded by
    the total only, and never give way, since they carry the requests of many.
    """

    def __init__(
        self,
        trusted_proxies: Iterable[str | Network] = (),
        *,
        most: int | None = None,
        most_per_address: int = CONNECTIONS_MAX_PER_ADDRESS,
    ) -> None:
        """`most` None is half of the files that may be open, and no more than CONNECTIONS_MAX."""
        self._addresses = Addresses(trusted_proxies)
        self._most = min(CONNECTIONS_MAX, open_files() // OPEN_FILES_SHARE) if most is None else most
        self._most_per_address = most_per_address
        self._keys: dict[Peer, str | None] = {}  # the oldest first; None for those of proxies
        self._of: dict[str, dict[Peer, None]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def is_proxy(self, host: str) -> bool:
        """Whether connections from here carry the requests of others."""
        return self._addresses.is_trusted(host)

    def admit(self, peer: Peer, host: str | None) -> bool:
        """Whether a new connection may stay; another one may have to give way. `host` None is a Unix socket."""
        key = None if host is None or self.is_proxy(host) else address_key(host)
        same = self._of.get(key, {}) if key is not None else {}
        if len(same) >= self._most_per_address and not self._make_room(same):
            return False
        if len(self._keys) >= self._most and not self._make_room(
            each for each, its_key in self._keys.items() if its_key is not None
        ):
            return False
        self._keys[peer] = key
        if key is not None:
            self._of.setdefault(key, {})[peer] = None
        return True

    def forget(self, peer: Peer) -> None:
        """A connection has ended; one that is not known is no error, for it may have given way before."""
        key = self._keys.pop(peer, None)
        if key is not None:
            same = self._of[key]
            del same[peer]
            if not same:
                del self._of[key]

    def close_overdue(self, now: float) -> None:
        """End the connections whose clients have been owing something for too long; `now` in seconds of a clock that
        only goes forward."""
        for peer in list(self._keys):
            peer.close_if_overdue(now)

    def _make_room(self, peers: Iterable[Peer]) -> bool:
        candidates = list(peers)
        leaving = next((peer for peer in candidates if peer.is_sending), None)
        if leaving is None:
            idle = (peer for peer in candidates if peer.is_idle)
            leaving = min(idle, key=lambda peer: peer.unchanged_since, default=None)
        if leaving is None:
            return False
        self.forget(leaving)
        leaving.give_way()
        return True


def open_files() -> int:
    """How many files and sockets this process may have open (`ulimit -n`, LimitNOFILE)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
