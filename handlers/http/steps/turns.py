"""Whose turn it is to ask the store: each user once at a time, and few of them at once."""

import asyncio
from weakref import WeakValueDictionary

from anyio import CapacityLimiter

READS_AT_ONCE = 4  # two for each core of a small machine: more only take the interpreter from each other


class Turns:
    """The readers of one application.

    A user who opens ten connections waits in line with himself, not others with him; whoever waited mostly finds in
    memory what the one before has brought there, and needs no thread at all.
    """

    def __init__(self) -> None:
        self.threads = CapacityLimiter(READS_AT_ONCE)  # not those in which commands, syncs and sign-ins wait
        self.shaping = CapacityLimiter(1)  # what others wrote, for a model: nothing but the interpreter works at it
        self._of_user: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, user_id: str) -> asyncio.Lock:
        """What this user's readers take one after the other."""
        turn = self._of_user.get(user_id)
        if turn is None:
            turn = self._of_user[user_id] = asyncio.Lock()
        return turn
