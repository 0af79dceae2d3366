"""A connection to PostgreSQL that gives up on a silent other end: a machine that is gone, a stopped server, or
something in between that still acknowledges packets."""

import time
from collections.abc import Generator
from contextlib import closing, suppress
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen

T = TypeVar("T")

SILENT_SECONDS = 5.0  # without a byte of the answer to a request, whose statement is then cancelled
PATIENT_SECONDS = 300.0  # the same, for commands; and how long a statement of an import may take
LOOK_SECONDS = 2.0  # the same, for imports and migrations, which go on if the server is seen to be at work
SEEN_SECONDS = 3.0  # for each step of that look
CANCEL_SECONDS = 0.5  # for asking the server to stop and for its confirmation; a server silent for longer is dead
PEER = {  # milliseconds, seconds: a peer that acknowledges nothing for five seconds, busy or idle, is gone
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
# An idle server process means that our question or its answer was lost, unless the answer is still on its way. Wait
# events are no help: in a cluster, a process that waits for another machine seems to wait for us
AT_WORK = (
    b"SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    b" AND (state = 'active' OR state_change > clock_timestamp() - INTERVAL '1 second')"
)
REACHES = b"SELECT state FROM users WHERE id = %s"


class LongStatement(NamedTuple):
    """A statement that may take long: the server's process that runs it, and the user whose rows it needs, if it is one
    user."""

    pid: int
    user_id: str | None


class ServerSilent(psycopg.OperationalError):
    """The server says nothing, and does not stop when told to."""


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that cancels a statement after hearing nothing for `patience` seconds, unless the server is at work
    on a long one that is `awaited`.

    If the server confirms the cancelling, the connection is as good as before; otherwise it is closed.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.opened_at = time.monotonic()
        self.patience = SILENT_SECONDS
        self.awaited: LongStatement | None = None

    def wait(self, gen: PQGen[T], *arguments: Any, **named: Any) -> T:
        """The result of a question to the server. Raises OperationalError when the server is given up."""
        return super().wait(self._watch(gen), *arguments, **named)

    def _watch(self, asking: PQGen[T]) -> Generator[Any, Any, T]:
        heard_at, is_cancelled = time.monotonic(), False
        try:
            wanted = next(asking)
            while True:
                ready = yield wanted
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > (CANCEL_SECONDS if is_cancelled else self.patience):
                    if is_cancelled:
                        self.pgconn.finish()
                        raise ServerSilent("it says nothing, and does not stop when it is told to")
                    if not self._is_at_work():
                        is_cancelled = True
                        with suppress(psycopg.Error):
                            self.cancel_safe(timeout=CANCEL_SECONDS)
                    heard_at = time.monotonic()
                wanted = asking.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer

    def _is_at_work(self) -> bool:
        """Whether the server is working on the awaited statement and the machine of its user answers, as seen by
        another connection: a long statement is as silent as a dead server. False if none is awaited, True if the server
        answers but has no connection to spare."""
        if self.awaited is None:
            return False
        try:
            with closing(
                WatchedConnection.connect(self.info.dsn, password=self.info.password, autocommit=True)
            ) as other:
                other.patience = SEEN_SECONDS
                if self.awaited.user_id is not None:
                    other.execute(REACHES, [self.awaited.user_id])
                return other.execute(AT_WORK, [self.awaited.pid]).fetchone() is not None
        except (errors.ConnectionTimeout, errors.QueryCanceled, ServerSilent):
            return False
        except psycopg.OperationalError:
            return True  # it answers, though it has no connection to spare
