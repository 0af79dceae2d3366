"""The passbooks in memory: of the users that were seen last, within a bound of bytes, each read by one caller only."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from handlers.reading.passbook import Passbook

LOCKS = 64  # callers who miss the same user wait for each other; others hardly ever


class Shelf:
    """Passbooks by user, least recently used out first.

    `state` is the present state of a user's data, `known_state` the same where memory can tell. A passbook of another
    state is never handed out.
    """

    def __init__(
        self, *, bytes_max: int, state: Callable[[str], int], known_state: Callable[[str], int | None]
    ) -> None:
        self._bytes_max = bytes_max
        self._state = state
        self._known_state = known_state
        self._books: OrderedDict[str, Passbook] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()
        self._reading = [threading.Lock() for _ in range(LOCKS)]
        self.bytes = 0
        self.hits = self.misses = self.evictions = 0

    def at_hand(self, user_id: str) -> Passbook | None:
        """The user's passbook of the present state, if that can be told from memory alone; never waits."""
        book = self._books.get(user_id)
        if book is None or self._known_state(user_id) != book.state:
            return None
        with self._lock:
            self.hits += 1
            if user_id in self._books:
                self._books.move_to_end(user_id)
        return book

    def fetch(
        self, user_id: str, *, is_enough: Callable[[Passbook], bool], read: Callable[[Passbook | None], Passbook | None]
    ) -> Passbook | None:
        """The user's passbook of the present state with what `is_enough` asks for.

        `read` completes the one of the present state, or makes another; None where the user is better served by the
        store. One caller reads, others of the same user wait for what it brings.
        """
        with self._reading[hash(user_id) % LOCKS]:
            book = self._books.get(user_id)
            if book is not None and book.state != self._state(user_id):
                book = None
            if book is not None and is_enough(book):
                self.hits += 1
                return book
            self.misses += 1
            book = read(book)
            if book is not None:
                self._put(user_id, book)
            return book

    def weigh(self, user_id: str, book: Passbook) -> None:
        """A passbook has grown: the shelf stays within its bound."""
        if self._books.get(user_id) is book:
            self._put(user_id, book)

    def clear(self) -> None:
        """Something that all answers rest on has changed, such as the rates of currencies."""
        with self._lock:
            self._books.clear()
            self._sizes.clear()
            self.bytes = 0

    def _put(self, user_id: str, book: Passbook) -> None:
        size = book.size
        with self._lock:
            self.bytes += size - self._sizes.pop(user_id, 0)
            self._sizes[user_id] = size
            self._books[user_id] = book
            self._books.move_to_end(user_id)
            while self.bytes > self._bytes_max and self._books:
                evicted, _ = self._books.popitem(last=False)
                self.bytes -= self._sizes.pop(evicted)
                self.evictions += 1
