"""Password hashing: argon2id, with a limited number of hashes computed at a time (oauth.md 3.3)."""

import threading
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from secrets import token_bytes
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

BYTES_MAX = 1024  # longer ones are refused, never cut
MEMORY_KIB, TIME_COST, LANES = 19 * 1024, 2, 1  # OWASP's first choice; 64 MiB and 4 lanes cost six times as long
AT_ONCE = 2  # threads of 19 MiB each, so that sign-ins cannot use up the machine
WAITING_MAX = 18  # about a second of sign-ins; more would hold the threads (40) that the data interface needs, too
WAIT_SECONDS = 10.0

T = TypeVar("T")


class Busy(Exception):
    """Too many sign-ins at once; try again in a moment."""


class Passwords:
    """Hashes and verifies passwords (argon2id), two at a time; verifying takes as long where no hash is stored."""

    def __init__(self, *, memory_kib: int = MEMORY_KIB, time_cost: int = TIME_COST, lanes: int = LANES) -> None:
        self._hasher = PasswordHasher(time_cost=time_cost, memory_cost=memory_kib, parallelism=lanes)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="passwords")
        self._places = threading.BoundedSemaphore(AT_ONCE + WAITING_MAX)
        salt, digest = (b64encode(token_bytes(size)).rstrip(b"=").decode() for size in (16, 32))
        # A hash that no password has, made up because computing one would take as long as a sign-in, at every start
        self._nobodys = f"$argon2id$v=19$m={memory_kib},t={time_cost},p={lanes}${salt}${digest}"

    def hash(self, password: str) -> str:
        """The hash of a password, with its salt and parameters, to be stored. Raises Busy."""
        return self._in_turn(lambda: self._hasher.hash(password))

    def is_right(self, password: str, stored: str | None) -> bool:
        """Whether the password has the stored hash. False also where `stored` is None, after as long as for a wrong
        password, and at once for a text that cannot be a password (`is_usable`). Raises Busy."""

        def verify() -> bool:
            try:
                return self._hasher.verify(stored or self._nobodys, password)
            except (VerificationError, InvalidHashError):
                return False

        return is_usable(password) and self._in_turn(verify) and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Whether the hash has other parameters than new ones, so that it should be made anew at the next sign-in."""
        return self._hasher.check_needs_rehash(stored)

    def _in_turn(self, work: Callable[[], T]) -> T:
        """The result of `work`, run in one of two threads. Each thread keeps the memory of its last hash, so that forty
        would keep twenty times as much. Raises Busy when the queue is full or `work` has not begun within ten
        seconds."""
        if not self._places.acquire(blocking=False):
            raise Busy(Busy.__doc__)
        future = self._threads.submit(work)
        future.add_done_callback(lambda _: self._places.release())
        wait([future], timeout=WAIT_SECONDS)
        if future.cancel():
            raise Busy(Busy.__doc__)
        return future.result()


def is_usable(password: str) -> bool:
    """Whether a text can be a password at all: not empty, at most 1024 bytes in UTF-8, valid Unicode."""
    try:
        return 0 < len(password.encode("utf-8")) <= BYTES_MAX
    except UnicodeEncodeError:
        return False
