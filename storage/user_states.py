"""The present state of each user's data, in the memory of the one process that opens the store.

A state is a number that every commit raises which changes anything its user could read. What is kept of a user in
memory is kept under it: a state that is still the same proves that nothing has changed.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable


class States:
    """States by user, remembered while no change of theirs is under way.

    A change takes the user's state out of memory before it is committed and keeps it out until it has ended, so that
    whoever has seen what a commit brought never finds the state from before it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: int | None = None  # that was given to a change
        self._known: dict[str, int] = {}
        self._changing: Counter[str] = Counter()
        self._turns: dict[str, threading.RLock] = {}
        self._changes: Counter[str] = Counter()  # begun or ended; a state that was read meanwhile may be the old one

    def known(self, user_id: str) -> int | None:
        """The user's state, if it can be told without asking the store."""
        return self._known.get(user_id)

    def mark(self, user_id: str) -> int:
        """What `learn` has to be told of the time before the state was read."""
        return self._changes[user_id]

    def learn(self, user_id: str, state: int, *, mark: int) -> None:
        """The store said this state to somebody who took the mark before asking: known, unless it changed meanwhile."""
        with self._lock:
            if mark == self._changes[user_id] and not self._changing[user_id]:
                self._known[user_id] = state

    def present(self, user_id: str, read: Callable[[], int]) -> int:
        """The user's state; `read` asks the store for it where it is not known."""
        known = self._known.get(user_id)
        if known is not None:
            return known
        mark = self.mark(user_id)
        state = read()
        self.learn(user_id, state, mark=mark)
        return state

    def following(self, highest: Callable[[], int]) -> int:
        """A state that nobody's data ever had; `highest` asks the store for the highest one, once."""
        with self._lock:
            self._last = (highest() if self._last is None else self._last) + 1
            return self._last

    def turn(self, user_id: str) -> threading.RLock:
        """What a transaction that changes this user's data holds until it has ended."""
        return self._turns.setdefault(user_id, threading.RLock())

    def begin(self, user_id: str) -> None:
        """A transaction is about to change what this user can read."""
        with self._lock:
            self._changes[user_id] += 1
            self._changing[user_id] += 1
            self._known.pop(user_id, None)

    def end(self, user_ids: Iterable[str]) -> None:
        """The transaction that changed these users' data is committed or rolled back."""
        with self._lock:
            for user_id in user_ids:
                self._changes[user_id] += 1
                self._changing[user_id] -= 1
                if not self._changing[user_id]:
                    del self._changing[user_id]
