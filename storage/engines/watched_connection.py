"""A connection to PostgreSQL whose other end may fall silent without a word, or without a word that counts: a machine
that is gone, a server that is stopped, something between that still acknowledges."""

import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

T = TypeVar("T")

SILENT_SECONDS = 5.0  # without a byte of what a request has asked for, which is cancelled then
PATIENT_SECONDS = 300.0  # the same in imports and commands
CANCEL_SECONDS = 0.5  # for telling the server to stop, and for its word that it has: who keeps silent then is dead
PEER = {  # milliseconds, seconds: a peer that acknowledges nothing for five seconds, asked or not, is gone
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


class FellSilent(psycopg.OperationalError):
    """Nothing comes any more, and nobody stops when told to."""


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up a statement of which it has heard nothing for as long as its `patience`. One that the server stops when
    it is told to leaves the connection as good as before; else the connection is closed. Its patience may be lowered
    meanwhile."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.opened_at = time.monotonic()
        self.patience = SILENT_SECONDS

    def wait(self, gen: PQGen[T], *arguments: Any, **named: Any) -> T:
        """What comes of a question to the server; raises OperationalError when it is given up."""
        return super().wait(self._watched(gen), *arguments, **named)

    def _watched(self, asking: PQGen[T]) -> Generator[Any, Any, T]:
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
                        raise FellSilent("it says nothing, and does not stop when it is told to")
                    with suppress(psycopg.Error):
                        self.cancel_safe(timeout=CANCEL_SECONDS)
                    heard_at, is_cancelled = time.monotonic(), True
                wanted = asking.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer
