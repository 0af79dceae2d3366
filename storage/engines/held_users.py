"""How long a transaction waits for a user whom another one holds, and how many requests may wait so at once.

Who waits keeps a thread that others need, so a request gives up soon; an import, a sync or a command has time.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from storage.boundary import is_awaited
from storage.database import UserBusy

AWAITED_SECONDS = 5.0
UNAWAITED_SECONDS = 300.0
WAITING_MAX = 20  # requests of all users, of the 40 threads in which requests are answered
WAITING_MAX_PER_USER = 8


class HeldUsers:
    """The requests of one process that wait for a user."""

    def __init__(self, *, is_patient: bool = False) -> None:
        """With `is_patient`, nobody waits for answers of this process, as nobody does for a thread of its own."""
        self._is_patient = is_patient
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()

    @contextmanager
    def waiting(self, user_id: str) -> Iterator[float]:
        """A context in which the caller waits for this user, and the moment of the monotonic clock at which to give up.
        Raises UserBusy at once where too many requests wait."""
        if self._is_patient or not is_awaited.get():
            yield time.monotonic() + UNAWAITED_SECONDS
            return
        with self._lock:
            if self._waiting[user_id] >= WAITING_MAX_PER_USER or self._waiting.total() >= WAITING_MAX:
                raise UserBusy(user_id)
            self._waiting[user_id] += 1
        try:
            yield time.monotonic() + AWAITED_SECONDS
        finally:
            with self._lock:
                self._waiting[user_id] -= 1
                self._waiting += Counter()  # drops users for whom nobody waits
