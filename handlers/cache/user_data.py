"""What is kept of one user at one state of the data: accounts, bookings, answers. Never changed, only completed."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from datetime import date

import polars as pl

from handlers.cache.entries import Entries
from handlers.http.request import Answer
from storage.accounts import StoredAccount
from storage.connections import Status
from storage.transactions import Selection

ANSWERS_MAX = 256  # of one user; the oldest go first
ANSWER_OVERHEAD_BYTES = 500
BASE_BYTES = 4_000


class UserData:
    """One user's accounts and, as far as somebody asked for them, the bookings of the list and those of the figures."""

    def __init__(
        self,
        *,
        state: int,
        home_currency: str,
        accounts: Sequence[StoredAccount],
        statuses: Mapping[str, Status],
    ) -> None:
        self.state = state
        self.home_currency = home_currency
        self.accounts = accounts
        self.statuses = statuses
        self.entries: Entries | None = None
        self.figures: pl.DataFrame | None = None  # analytics.frames.BOOKINGS
        self.is_too_large = False  # its rows are read from the store
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._answer_bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """About how much memory all of it takes."""
        of_entries = self.entries.size if self.entries is not None else 0
        of_figures = int(self.figures.estimated_size()) if self.figures is not None else 0
        return BASE_BYTES + 500 * len(self.accounts) + of_entries + of_figures + self._answer_bytes

    def answer(self, key: Hashable) -> Answer | None:
        """An answer that was given before, at this very state."""
        return self._answers.get(key)

    def keep_answer(self, key: Hashable, answer: Answer) -> None:
        """Keep an answer whose body is bytes."""
        assert isinstance(answer.body, bytes), "only finished bytes are kept"
        size = len(answer.body) + ANSWER_OVERHEAD_BYTES
        with self._lock:
            if key in self._answers:
                return
            self._answers[key] = answer
            self._answer_bytes += size
            while len(self._answers) > ANSWERS_MAX:
                _, dropped = self._answers.popitem(last=False)
                self._answer_bytes -= len(dropped.body) + ANSWER_OVERHEAD_BYTES

    def page(self, selection: Selection, *, limit: int, offset: int) -> tuple[int, list[bytes]]:
        """How many rows the selection holds, and the JSON of one page of them."""
        assert self.entries is not None, "the list was not loaded"
        positions = self.entries.positions(selection)
        return len(positions), self.entries.json(positions[offset : offset + limit])

    def bookings(self, account_ids: Sequence[str] | None, *, since: date | None) -> pl.DataFrame:
        """The rows of these accounts from `since` on, as analytics.frames.BOOKINGS."""
        assert self.figures is not None, "the figures' rows were not loaded"
        wanted = []
        if account_ids is not None:
            wanted.append(pl.col("account_id").is_in(list(account_ids)))
        if since is not None:
            wanted.append(pl.col("booking_date") >= since)
        return self.figures.filter(*wanted) if wanted else self.figures
