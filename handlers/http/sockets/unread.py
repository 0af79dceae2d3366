"""Answers that wait until their readers have taken what was sent before: how much memory they may hold together."""

from typing import Protocol

from handlers.http.sockets.connection_limits import UNREAD_BYTES_MAX


class Awaited(Protocol):
    """A client that is sent an answer."""

    def give_way(self) -> None: ...


class Unread:
    """What waits for its readers. When it is too much, the reader that has taken nothing for longest is let go:
    whoever reads goes to the end of the line with each piece."""

    def __init__(self, most: int = UNREAD_BYTES_MAX) -> None:
        self._most = most
        self._waiting: dict[Awaited, int] = {}  # the one that has waited for longest first
        self._bytes = 0

    def waits(self, reader: Awaited, size: int) -> None:
        """Hold so many bytes for this reader, for nobody else; an answer that waits alone may be larger than `most`."""
        self._waiting[reader] = size
        self._bytes += size
        while self._bytes > self._most and (slowest := next(iter(self._waiting))) is not reader:
            self.goes_on(slowest)
            slowest.give_way()

    def goes_on(self, reader: Awaited) -> None:
        """Its reader has taken a piece, or is gone; one that does not wait is no error, for it may have given way."""
        self._bytes -= self._waiting.pop(reader, 0)
