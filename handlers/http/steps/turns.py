"""Limits reads of the store: one at a time for each user, and a few in all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from msgspec import Struct, field

READS_AT_ONCE = 4  # two for each core of a small machine; more would only compete for the interpreter


class _ReadersLine(Struct, eq=False, weakref=True):
    """The line of one user's readers; `failed` counts those for whom the store did not answer."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failed: int = 0


class Turns:
    """The lines in which the readers of one application wait for the store.

    A user who opens ten connections waits behind their own requests, and delays nobody else. A reader who has waited
    mostly finds the data in memory, brought by the request before, and needs no thread at all.
    """

    def __init__(self, away: type[Exception] | None = None) -> None:
        """`away` is the exception of a reader for whom the store did not answer in time. Readers who wait behind that
        one raise it too, without trying: otherwise the tenth would wait ten times as long."""
        # Apart from the threads in which commands, syncs and sign-ins wait
        self.threads = CapacityLimiter(READS_AT_ONCE)
        # For shaping strangers' texts for a model: pure Python, so a second thread gains nothing
        self.shaping = CapacityLimiter(1)
        self._away = away or ()
        self._of_user: WeakValueDictionary[str, _ReadersLine] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, user_id: str) -> AsyncIterator[None]:
        """A context for one reader of this user at a time; others wait for it to end. Raises `away` at once for a
        reader who was waiting when another one of this user failed with it."""
        turn = self._of_user.get(user_id)
        if turn is None:
            turn = self._of_user[user_id] = _ReadersLine()
        failed_before = turn.failed
        async with turn.lock:
            if self._away and turn.failed > failed_before:
                raise self._away(self._away.__doc__)
            try:
                yield
            except self._away:
                turn.failed += 1
                raise
