"""Bounds what runs at once: requests to sources in threads of their own, and imports by turns."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from msgspec import field

from handlers.work.sync.fair_order import FairOrder, Work
from storage.boundary import begin_thread, carry, join_threads

CALLS_MAX = 32  # threads that ask sources
CALLS_PER_PROVIDER_MAX = 12  # a source that hangs leaves threads for the others
CALLS_PER_USER_MAX = 6


class Closed(Exception):
    """This process is about to end, so the requested work has not begun."""


class _QueuedCall(Work, kw_only=True):
    provider: str
    work: Callable[[], object]


class SourceCalls:
    """Runs steps of sync jobs, which call sources, in threads: only so many at once in all, per provider and per user.
    Others wait in line, and users take turns (`FairOrder`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: FairOrder[_QueuedCall] = FairOrder()
        self._running: set[threading.Thread] = set()
        self._busy: Counter[tuple[str, str]] = Counter()
        self._is_closed = False

    def submit(self, work: Callable[[], None], *, provider: str, user_id: str) -> None:
        """Have `work` done in a thread, with the context variables of the caller, as soon as the bounds allow; does not
        wait for it. After `close`, it is never done, and no error says so."""
        with self._lock:
            self._waiting.add(_QueuedCall(provider=provider, user_id=user_id, work=carry(work), cost=0))
            self._begin()

    @property
    def running(self) -> int:
        """The number of calls now running in threads."""
        return len(self._running)

    def close(self, *, within: float) -> bool:
        """Start no more calls, wait up to `within` seconds for those that are running, and return whether all of them
        have ended. Calls still in line, and any submitted later, are never run; no error says so."""
        with self._lock:
            self._is_closed = True
            running = list(self._running)
        return join_threads(running, within=within)

    def _begin(self) -> None:
        """Start a thread for each waiting call that the bounds allow; the caller holds the lock."""
        while (call := self._waiting.take(self._may_begin)) is not None:
            self._busy.update(_keys(call))
            # The thread takes the lock at its end, so it is in the set before
            self._running.add(begin_thread(f"source {call.provider}", partial(self._run, call)))

    def _may_begin(self, call: _QueuedCall) -> bool:
        if self._is_closed or len(self._running) >= CALLS_MAX:
            return False
        provider, user = _keys(call)
        return self._busy[provider] < CALLS_PER_PROVIDER_MAX and self._busy[user] < CALLS_PER_USER_MAX

    def _run(self, call: _QueuedCall) -> None:
        try:
            call.work()
        finally:
            with self._lock:
                self._running.discard(threading.current_thread())
                self._busy.subtract(_keys(call))
                self._busy += Counter()  # drops counts of zero: users come and go
                self._begin()


def _keys(call: _QueuedCall) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("provider", call.provider), ("user", call.user_id)


SMALL_BYTES = 256 * 1024
UNKNOWN_BYTES = 1024 * 1024  # assumed for a source's answer whose size is unknown
LOOK_EVERY = 0.25  # seconds between checks whether a waiting import is still wanted


class _Turn(Work, kw_only=True):
    begun: threading.Event = field(default_factory=threading.Event)


class ImportLane:
    """Lets imports run by turns: at most one large import at once, since it takes much memory and writes much, with one
    of at most 256 KiB beside it, and only one of each user. Users take turns (`FairOrder`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: FairOrder[_Turn] = FairOrder()
        self._running: list[_Turn] = []
        self._jobs: set[str] = set()
        self._is_closed = False

    def is_closed(self) -> bool:
        """Whether there will be no more turns, for the process is about to end."""
        return self._is_closed

    @property
    def length(self) -> int:
        """The number of imports that have a turn or wait for one."""
        return len(self._running) + len(self._line)

    @contextmanager
    def turn(
        self,
        user_id: str,
        *,
        size: int = UNKNOWN_BYTES,
        job_id: str = "",
        check: Callable[[], None] = lambda: None,
    ) -> Iterator[None]:
        """A context that waits for a turn and keeps it until its end. `size` is that of the file in bytes, `job_id` the
        sync job that asks, if one does. Raises Closed once `close` was called, and whatever `check`, called four times
        a second while waiting, raises."""
        mine = _Turn(user_id=user_id, cost=size)
        with self._lock:
            self._jobs.add(job_id)
            self._line.add(mine)
            self._begin()
        try:
            while not self._is_closed and not mine.begun.wait(LOOK_EVERY):
                check()
            if self._is_closed:
                raise Closed
            yield
        finally:
            with self._lock:
                self._jobs.discard(job_id)
                if mine in self._running:
                    self._running.remove(mine)
                else:
                    self._line.leave(mine)
                self._begin()

    def holds(self, job_id: str) -> bool:
        """Whether the sync job has a turn or waits for one; that time does not count against its source."""
        with self._lock:
            return job_id in self._jobs

    def close(self) -> None:
        """Give no more turns; an import that has one keeps it to its end, and those that wait for one raise Closed."""
        with self._lock:
            self._is_closed = True

    def _begin(self) -> None:
        """Give a turn to every waiting import that may have one now; the caller holds the lock."""
        while (turn := self._line.take(self._may_begin)) is not None:
            self._running.append(turn)
            turn.begun.set()

    def _may_begin(self, turn: _Turn) -> bool:
        return not any(other.user_id == turn.user_id or _is_small(other) == _is_small(turn) for other in self._running)


def _is_small(turn: _Turn) -> bool:
    return turn.cost <= SMALL_BYTES
