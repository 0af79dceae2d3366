"""The present state of each user's data, in the memory of the one process that opens the store.

A state is a number that rises with every commit that changes anything the user can read. Cached data of a user is kept
under the state, and an equal state proves that nothing has changed.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from storage.database import UserBusy
from storage.engines.held_users import HeldUsers


class States:
    """States by user, kept in memory while no change to the user's data is under way.

    A change removes the user's state from memory before the commit and keeps it out until the transaction has ended, so
    that nobody who has seen the result of a commit finds the state from before it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: int | None = None  # state given to a change
        self._known: dict[str, int] = {}
        self._changing: Counter[str] = Counter()
        self._turns: dict[str, threading.RLock] = {}
        self._held = HeldUsers()
        self._changes: Counter[str] = Counter()  # begun or ended; a state read in between may be outdated

    def in_memory(self, user_id: str) -> int | None:
        """The user's state if it is in memory, else None."""
        return self._known.get(user_id)

    def mark(self, user_id: str) -> int:
        """A number to take before reading a state from the store, and to pass to `learn` afterwards."""
        return self._changes[user_id]

    def learn(self, user_id: str, state: int, *, mark: int) -> None:
        """Keep a state that was read from the store after `mark` was taken, unless the user's data have changed or
        begun to change in between."""
        with self._lock:
            if mark == self._changes[user_id] and not self._changing[user_id]:
                self._known[user_id] = state

    def present(self, user_id: str, read: Callable[[], int]) -> int:
        """The user's state; where it is not in memory, `read` gets it from the store."""
        known = self._known.get(user_id)
        if known is not None:
            return known
        mark = self.mark(user_id)
        state = read()
        self.learn(user_id, state, mark=mark)
        return state

    def following(self, highest: Callable[[], int]) -> int:
        """A state that no user's data has ever had, one higher than the last given; `highest` reads the highest one
        from the store, on the first call only."""
        with self._lock:
            self._last = (highest() if self._last is None else self._last) + 1
            return self._last

    def forget(self) -> None:
        """Forget all states, because the store was opened again."""
        with self._lock:
            self._known.clear()
            self._last = None

    def turn(self, user_id: str) -> threading.RLock:
        """The user's lock, taken for the caller: a transaction holds it from before it changes this user's data until
        it has ended. Raises UserBusy where another one keeps it for too long."""
        turn = self._turns.setdefault(user_id, threading.RLock())
        if not turn.acquire(blocking=False):
            with self._held.waiting(user_id) as until:
                if not turn.acquire(timeout=max(0.0, until - time.monotonic())):
                    raise UserBusy(user_id)
        return turn

    def begin(self, user_id: str) -> None:
        """Note that a transaction is about to change this user's data; their state is unknown until `end`."""
        with self._lock:
            self._changes[user_id] += 1
            self._changing[user_id] += 1
            self._known.pop(user_id, None)

    def end(self, user_ids: Iterable[str]) -> None:
        """Note that a transaction that changed these users' data has been committed or rolled back, so that their
        states may be kept in memory again."""
        with self._lock:
            for user_id in user_ids:
                self._changes[user_id] += 1
                self._changing[user_id] -= 1
                if not self._changing[user_id]:
                    del self._changing[user_id]
