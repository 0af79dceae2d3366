"""Limits reads of the store: one at a time for each user, and few at once in all."""

import asyncio
from weakref import WeakValueDictionary

from anyio import CapacityLimiter

READS_AT_ONCE = 4  # two for each core of a small machine; more would only compete for the interpreter


class Turns:
    """The lines in which readers of one application wait for the store.

    A user who opens ten connections waits behind their own requests, and delays nobody else. Whoever waited mostly
    finds the data in memory, brought by the request before, and needs no thread at all.
    """

    def __init__(self) -> None:
        # Apart from the threads in which commands, syncs and sign-ins wait
        self.threads = CapacityLimiter(READS_AT_ONCE)
        # For shaping strangers' texts for a model: pure Python, so a second thread gains nothing
        self.shaping = CapacityLimiter(1)
        self._of_user: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, user_id: str) -> asyncio.Lock:
        """The lock that this user's readers take one after the other."""
        turn = self._of_user.get(user_id)
        if turn is None:
            turn = self._of_user[user_id] = asyncio.Lock()
        return turn
