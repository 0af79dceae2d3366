"""Where threads begin, and where failures end that nobody foresaw. Every other place names the exceptions it catches
(decision 146)."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import copy_context
from functools import partial
from types import TracebackType

log = logging.getLogger("bankdata")


class Away(Exception):
    """Something that this program needs is away for a while; the log need not say where that was noticed."""


def carry(work: Callable[[], object]) -> Callable[[], object]:
    """The work in the context of the caller, so that what it logs names the request it is for."""
    return partial(copy_context().run, work)


def begin_thread(name: str, work: Callable[[], object]) -> threading.Thread:
    """Start a thread that does this work in the context of the caller; what escapes the work is logged.

    It is a daemon on purpose: a process waits at its end for other threads, and a source that does not answer would
    keep a server from stopping.
    """

    def run() -> None:
        with contain(log, "the thread %s has ended", name):
            work()

    thread = threading.Thread(target=carry(run), name=name, daemon=True)
    thread.start()
    return thread


class contain(AbstractContextManager[None, bool]):
    """A context that no exception leaves but those of `passes`: it is logged, and the caller goes on behind the
    context."""

    def __init__(
        self,
        logger: logging.Logger,
        message: str,
        *values: object,
        is_expected: Callable[[], bool] = lambda: False,
        passes: tuple[type[Exception], ...] = (),
    ) -> None:
        """`is_expected` says that a failure is no news: the same one again, or that of work which the end of the
        process cuts off. Of such a failure the log has a line of level info, of level debug where something is still
        `Away`, which monitors meet each second; of what is news a warning if it is `Away`, else its traceback."""
        self._logger, self._message, self._values = logger, message, values
        self._is_expected, self._passes = is_expected, passes

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, _where: TracebackType | None
    ) -> bool:
        if kind is None or not isinstance(failure, Exception) or isinstance(failure, self._passes):
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
    """A context that calls `undo` when it is left by an exception of any kind, which goes on."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        stack.pop_all()
