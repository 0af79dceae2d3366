"""A connection to PostgreSQL that gives up on a silent other end: a machine that is gone, a stopped server, or
something in between that still acknowledges packets."""

import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

T = TypeVar("T")

SILENT_SECONDS = 5.0  # without a byte of the answer to a request, whose statement is then cancelled
PATIENT_SECONDS = 300.0  # the same, for imports and commands
CANCEL_SECONDS = 0.5  # for asking the server to stop and for its confirmation; a server silent for longer is dead
PEER = {  # milliseconds, seconds: a peer that acknowledges nothing for five seconds, busy or idle, is gone
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


class ServerSilent(psycopg.OperationalError):
    """The server says nothing and does not stop when it is told to."""


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that cancels a statement after hearing nothing for `patience` seconds; others may lower them.

    If the server confirms the cancelling, the connection is as good as before; otherwise it is closed.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.opened_at = time.monotonic()
        self.patience = SILENT_SECONDS

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
                    with suppress(psycopg.Error):
                        self.cancel_safe(timeout=CANCEL_SECONDS)
                    heard_at, is_cancelled = time.monotonic(), True
                wanted = asking.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer
