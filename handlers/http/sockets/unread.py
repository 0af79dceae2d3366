"""Limits the memory that answers take up while they wait until their clients have read what was sent before."""

from typing import Protocol

from handlers.http.sockets.connection_limits import UNREAD_BYTES_MAX


class Awaited(Protocol):
    """A client to whom an answer is being sent."""

    def give_way(self) -> None: ...


class Unread:
    """Counts the bytes that wait for their readers. When they are too many, the reader that has taken nothing for
    longest is cut off; one that reads goes to the end of the line with each piece."""

    def __init__(self, most: int = UNREAD_BYTES_MAX) -> None:
        self._most = most
        self._waiting: dict[Awaited, int] = {}  # the one that has waited for longest first
        self._bytes = 0

    def waits(self, reader: Awaited, size: int) -> None:
        """Count so many bytes that are held for this reader alone; if it is the only one that waits, they may be more
        than `most`."""
        self._waiting[reader] = size
        self._bytes += size
        while self._bytes > self._most and (slowest := next(iter(self._waiting))) is not reader:
            self.goes_on(slowest)
            slowest.give_way()

    def goes_on(self, reader: Awaited) -> None:
        """Stop counting for a reader that has taken a piece or is gone; an unknown one is no error, for it may have
        given way before."""
        self._bytes -= self._waiting.pop(reader, 0)
