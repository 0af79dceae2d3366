"""Limits the use of the store: one read and one change at a time for each user, and a few reads in all."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from msgspec import Struct, field

from handlers.web.errors import ChangeWaits, TooManyAtOnce

READS_AT_ONCE = 4  # two for each core of a small machine; more would only compete for the interpreter
OF_USER_MAX = 64  # requests that are answered at once: each has one of the connections, however long it takes
CHANGE_SECONDS = 5  # for the changes of the same user before this one


class _UsersLine(Struct, eq=False, weakref=True):
    """The line of one user's requests; `failures` are those for whom the store did not answer."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failed: int = 0
    failure: Exception | None = None


_UsersLines = WeakValueDictionary[str, _UsersLine]


class Turns:
    """The lines in which the requests of one application wait for the store.

    A user who opens ten connections waits behind their own requests, and delays nobody else. A reader who has waited
    mostly finds the data in memory, brought by the request before, and needs no thread at all. Changes have a line of
    their own, since one may wait for an import.
    """

    def __init__(self, away: type[Exception] | None = None) -> None:
        """`away` is the exception of a request for which the store did not answer in time. Requests that wait behind
        that one raise it too, without trying: otherwise the tenth would wait ten times as long."""
        # Apart from the threads in which commands, syncs and sign-ins wait
        self.threads = CapacityLimiter(READS_AT_ONCE)
        # For shaping strangers' texts for a model: pure Python, so a second thread gains nothing
        self.shaping = CapacityLimiter(1)
        self._away = away or ()
        self._answered: Counter[str] = Counter()
        self._readers = _UsersLines()
        self._changers = _UsersLines()

    @contextmanager
    def answering(self, user_id: str) -> Iterator[None]:
        """A context in which a request of this user is answered, all that it waits for included; raises TooManyAtOnce
        where that many of the user's are."""
        if self._answered[user_id] >= OF_USER_MAX:
            raise TooManyAtOnce
        self._answered[user_id] += 1
        try:
            yield
        finally:
            self._answered[user_id] -= 1
            if not self._answered[user_id]:
                del self._answered[user_id]

    def of(self, user_id: str) -> AbstractAsyncContextManager[None]:
        """A context for one reader of this user at a time; others wait for it to end. Raises `away` at once for a
        reader who was waiting when another one of this user failed with it."""
        return self._turn(self._readers, user_id, None)

    def to_change(self, user_id: str) -> AbstractAsyncContextManager[None]:
        """The same for one change of this user at a time; raises ChangeWaits for one that waits for too long."""
        return self._turn(self._changers, user_id, CHANGE_SECONDS)

    @asynccontextmanager
    async def _turn(self, lines: _UsersLines, user_id: str, seconds: float | None) -> AsyncIterator[None]:
        turn = lines.get(user_id)
        if turn is None:
            turn = lines[user_id] = _UsersLine()
        failed_before = turn.failed
        try:
            async with asyncio.timeout(seconds):
                await turn.lock.acquire()
        except TimeoutError:
            raise ChangeWaits from None
        try:
            if turn.failure is not None and turn.failed > failed_before:
                raise turn.failure
            try:
                yield
            except self._away as error:
                turn.failed, turn.failure = turn.failed + 1, error
                raise
        finally:
            turn.lock.release()
