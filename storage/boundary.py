"""The boundary at which threads begin and unforeseen failures end; everywhere else, exceptions are caught by name
(decision 146)."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from types import TracebackType

log = logging.getLogger("bankdata")


is_awaited = ContextVar("is_awaited", default=True)
"""Whether somebody waits for what is done here, as a client for its answer; False in a thread of its own."""


class Away(Exception):
    """Something that this program needs is of no use at present; logged without a traceback, because where that was
    noticed does not matter."""


def is_failure(raised: BaseException) -> bool:
    """Whether this is a failure of some work, and no order to end it. A panic of compiled code, such as that of Polars,
    is one, although it is no Exception."""
    return isinstance(raised, Exception) or type(raised).__module__ == "pyo3_runtime"


def carry(work: Callable[[], object]) -> Callable[[], object]:
    """The work bound to the caller's context, so that its log lines name the request that it is for; done later, when
    nobody waits for it."""
    context = copy_context()
    context.run(is_awaited.set, False)
    return partial(context.run, work)


def begin_thread(name: str, work: Callable[[], object]) -> threading.Thread:
    """Start a thread that does this work in the caller's context; an exception that escapes the work is logged.

    The thread is a daemon on purpose: at its end a process waits for all other threads, and a source that does not
    answer would keep a server from stopping.
    """

    def run() -> None:
        with contain(log, "the thread %s has ended", name):
            work()

    thread = threading.Thread(target=carry(run), name=name, daemon=True)
    thread.start()
    return thread


def join_threads(threads: Collection[threading.Thread], *, within: float) -> bool:
    """Wait up to `within` seconds until these threads have ended; returns whether all have."""
    until = time.monotonic() + within
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


class contain(AbstractContextManager[None, bool]):
    """A context that logs any failure (`is_failure`) of its block and does not raise it, so that the caller goes on
    after the block. Failures of the types in `passes` are raised, unlogged."""

    def __init__(
        self,
        logger: logging.Logger,
        message: str,
        *values: object,
        is_expected: Callable[[], bool] = lambda: False,
        passes: tuple[type[Exception], ...] = (),
    ) -> None:
        """`is_expected` says that a failure is no news, because it repeats the last one or the process is ending. Such
        a failure is logged in one line, at level info, or debug for an `Away`, which monitors cause each second. Any
        other failure is logged with its traceback, or as a warning for an `Away`."""
        self._logger, self._message, self._values = logger, message, values
        self._is_expected, self._passes = is_expected, passes

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, _where: TracebackType | None
    ) -> bool:
        if kind is None or failure is None or not is_failure(failure) or isinstance(failure, self._passes):
            return False
        is_away = isinstance(failure, Away)
        if self._is_expected():
            level = logging.DEBUG if is_away else logging.INFO
            self._logger.log(level, f"{self._message}: %s", *self._values, kind.__name__)
        elif is_away:
            self._logger.warning(self._message, *self._values)
        else:
            self._logger.error(self._message, *self._values, exc_info=failure)
        return True


@contextmanager
def undo_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """A context that calls `undo` if any exception leaves it; the exception goes on."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        stack.pop_all()
