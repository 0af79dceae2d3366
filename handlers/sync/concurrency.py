"""What may run at once: requests to sources within bounds of their own, and one import at a time.

Threads are daemons on purpose: those of an executor are joined when the process ends, and a source that does not answer
would keep a server from stopping.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

CALLS_MAX = 32  # threads that ask sources
CALLS_PER_PROVIDER_MAX = 12  # one source that hangs leaves the threads of the others
CALLS_PER_USER_MAX = 6


class Closed(Exception):
    """The process is about to end; what was asked for has not been begun."""


@dataclass(frozen=True, slots=True)
class _QueuedCall:
    provider: str
    user_id: str
    work: Callable[[], None]


class SourceCalls:
    """Runs calls in threads of their own: in all, per provider and per user at most so many at once, others wait."""

    def __init__(
        self,
        *,
        at_once: int = CALLS_MAX,
        per_provider: int = CALLS_PER_PROVIDER_MAX,
        per_user: int = CALLS_PER_USER_MAX,
    ) -> None:
        self._at_once, self._per_provider, self._per_user = at_once, per_provider, per_user
        self._lock = threading.Lock()
        self._waiting: deque[_QueuedCall] = deque()
        self._running: set[threading.Thread] = set()
        self._busy: Counter[tuple[str, str]] = Counter()
        self._is_closed = False

    def submit(self, work: Callable[[], None], *, provider: str, user_id: str) -> None:
        """Run `work`, which raises nothing, as soon as the bounds allow; after `close` never."""
        with self._lock:
            self._waiting.append(_QueuedCall(provider, user_id, work))
            self._begin()

    @property
    def running(self) -> int:
        """How many calls are under way."""
        return len(self._running)

    def close(self, *, within: float) -> bool:
        """Begin nothing more and wait so many seconds for what runs; whether all of it has ended."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
            running = list(self._running)
        until = time.monotonic() + within
        for thread in running:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in running)

    def _begin(self) -> None:
        """Start a thread for every waiting call that the bounds allow, in the order of their coming."""
        for call in list(self._waiting):
            if self._is_closed or len(self._running) >= self._at_once:
                return
            if self._is_within_bounds(call):
                self._waiting.remove(call)
                self._busy.update(_keys(call))
                thread = threading.Thread(target=self._run, args=(call,), name=f"source {call.provider}", daemon=True)
                self._running.add(thread)
                thread.start()

    def _is_within_bounds(self, call: _QueuedCall) -> bool:
        provider, user = _keys(call)
        return self._busy[provider] < self._per_provider and self._busy[user] < self._per_user

    def _run(self, call: _QueuedCall) -> None:
        try:
            call.work()
        finally:
            with self._lock:
                self._running.discard(threading.current_thread())
                self._busy.subtract(_keys(call))
                self._busy += Counter()  # forgets what is zero: users come and go
                self._begin()


def _keys(call: _QueuedCall) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("provider", call.provider), ("user", call.user_id)


class ImportLane:
    """One import at a time, in the order of asking: the memory of an import is large, and so is what it writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: deque[threading.Event] = deque()  # the first one has the turn
        self._jobs: set[str] = set()
        self._is_closed = False

    @property
    def length(self) -> int:
        """How many have the turn or wait for it."""
        return len(self._line)

    @contextmanager
    def turn(self, job_id: str = "") -> Iterator[None]:
        """Wait for the turn and keep it for the block; raises Closed when there will be none. `job_id` is the sync job
        that asks, if one does."""
        mine = threading.Event()
        with self._lock:
            self._jobs.add(job_id)
            self._line.append(mine)
            if self._line[0] is mine or self._is_closed:
                mine.set()
        try:
            mine.wait()
            if self._is_closed:
                raise Closed
            yield
        finally:
            with self._lock:
                self._jobs.discard(job_id)
                self._line.remove(mine)
                if self._line:
                    self._line[0].set()

    def holds(self, job_id: str) -> bool:
        """Whether the job waits for its turn or has it: neither is its source's time."""
        with self._lock:
            return job_id in self._jobs

    def close(self) -> None:
        """Nobody gets a turn any more; whoever has it keeps it to its end."""
        with self._lock:
            self._is_closed = True
            for waiting in self._line:
                waiting.set()
