"""Writes to a connection that follow each other at once go out together: a call of the system costs more than a header.

uvicorn writes the head of an answer and its content one after the other, and each of them wakes the client.
"""

import asyncio
from typing import Any


class GatheredWrites:
    """A transport whose first write waits for the second one, but no longer than what the loop is just doing."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: bytes | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Now, if there is something to go out with; else with what comes next."""
        if self._waiting is None:
            self._waiting = data
            self._loop.call_soon(self._flush)
        else:
            waiting, self._waiting = self._waiting, None
            self._transport.writelines((waiting, data))

    def write_eof(self) -> None:
        """The last byte of this side, after everything that was written."""
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        """The end, after everything that was written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not self._transport.is_closing():  # a client that has gone is sent no more
            self._transport.write(waiting)
