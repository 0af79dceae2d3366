"""The streams of events that one process keeps open: bounded for each grant, for each person and in all."""

from collections import Counter
from collections.abc import Hashable
from typing import Protocol

from auth.principal import Principal
from handlers.web.errors import TooManyRequests
from handlers.web.sockets.peers import most_connections

OF_GRANT_MAX = 5
OF_PERSON_MAX = 20
SHARE = 2  # streams may take up one half of the connections: the other half is for requests


class OpenStream(Protocol):
    """A stream that can be asked to end at once, whose client then comes back later."""

    def give_way(self) -> None: ...


class OpenStreams:
    """All open streams. Whoever opens one too many of a grant is refused. Of a person's and of all, another one gives
    way: the oldest of this person, or of who has most."""

    def __init__(self, most: int | None = None) -> None:
        """`most` streams in all; None means half of the connections that the server takes."""
        self._most = most_connections() // SHARE if most is None else most
        self._grants: dict[OpenStream, tuple[str, Hashable]] = {}  # the oldest stream first
        self._of_grant: Counter[Hashable] = Counter()
        self._of_person: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._grants)

    def check(self, caller: Principal) -> None:
        """Raise TooManyRequests for a grant that has as many streams as it may have."""
        if self._of_grant[_grant(caller)] >= OF_GRANT_MAX:
            raise TooManyRequests(
                "At most {limit} streams may be open. Close one first", limit=OF_GRANT_MAX, retry_after=5
            )

    def add(self, stream: OpenStream, caller: Principal) -> None:
        """Count a stream from now on, and have another one give way to it if there are too many."""
        person = caller.user_id
        if self._of_person[person] >= OF_PERSON_MAX:
            self._make_room(person)
        elif len(self) >= self._most:
            self._make_room(max(self._of_person, key=self._of_person.__getitem__))
        self._grants[stream] = person, _grant(caller)
        self._of_grant[_grant(caller)] += 1
        self._of_person[person] += 1

    def remove(self, stream: OpenStream) -> None:
        """Stop counting a stream; an unknown one is no error, for it may have given way before."""
        if stream in self._grants:
            person, grant = self._grants.pop(stream)
            self._of_grant -= Counter([grant])  # which drops what has none
            self._of_person -= Counter([person])

    def _make_room(self, person: str) -> None:
        oldest = next(each for each, (whose, _) in self._grants.items() if whose == person)
        self.remove(oldest)
        oldest.give_way()


def _grant(caller: Principal) -> Hashable:
    return caller.user_id, caller.client_id, caller.grant_id
