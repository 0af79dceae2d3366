"""Limits the temporary files in which exports wait for their readers: how many there are, and their size together.

A reader takes as long as it likes, and what it has not read yet takes up disk space that all users share.
"""

import os
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from io import BufferedReader, FileIO
from typing import BinaryIO

from msgspec import Struct

from storage.boundary import undo_on_failure

PER_USER_MAX = 4
FILES_MAX = 16
BYTES_MAX = 1024**3  # together; one alone may be larger


class TooManyExports(Exception):
    """Too many exports are still being read. Try again when one of them is done."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


class _Place(Struct, eq=False):
    user_id: str
    bytes: int = 0


class _File(BufferedReader):
    """A file that calls `closed` when it is closed, be it by its reader or because nobody refers to it any more."""

    def __init__(self, descriptor: int, closed: Callable[[], None]) -> None:
        self._on_close = closed
        super().__init__(FileIO(descriptor))

    def close(self) -> None:
        super().close()
        self._on_close()


class UnreadExports:
    """The temporary files of one process in which exports are being written or read, limited in number and size."""

    def __init__(self) -> None:
        self._places: dict[_Place, None] = {}
        # Garbage collection may close a file at any point, also while this thread holds the lock
        self._lock = threading.RLock()

    def write(self, user_id: str, write: Callable[[BinaryIO], object]) -> BufferedReader:
        """A file, open at its beginning, with all that `write` writes. It has no name, so only this process can read
        it, and the caller closes it. Raises TooManyExports: before writing if there are too many exports or bytes,
        after it if this one makes them too large together."""
        place = self._take_place(user_id)
        leave = partial(self._leave, place)
        with undo_on_failure(leave), tempfile.TemporaryFile(prefix="bankdata-") as file:
            write(file)
            self._weigh(place, file.seek(0, os.SEEK_END))
            file.seek(0)
            return _File(os.dup(file.fileno()), leave)

    def _take_place(self, user_id: str) -> _Place:
        with self._lock:
            whose = [each.user_id for each in tuple(self._places)]
            if len(whose) >= FILES_MAX or whose.count(user_id) >= PER_USER_MAX or self._bytes >= BYTES_MAX:
                raise TooManyExports
            place = _Place(user_id)
            self._places[place] = None
        return place

    def _weigh(self, place: _Place, size: int) -> None:
        with self._lock:
            if self._bytes and self._bytes + size > BYTES_MAX:
                raise TooManyExports
            place.bytes = size

    def _leave(self, place: _Place) -> None:
        with self._lock:
            self._places.pop(place, None)

    @property
    def _bytes(self) -> int:
        return sum(each.bytes for each in tuple(self._places))
