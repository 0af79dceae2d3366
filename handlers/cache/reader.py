"""How an operation comes to what it reads: a user's data in memory, loaded where they are missing, else the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import polars as pl

from analytics.frames import BOOKINGS, COUNTED
from handlers.cache.cache import Cache
from handlers.cache.entries import Entries, Render, frame_bytes
from handlers.cache.from_store import FromStore
from handlers.cache.user_data import TransactionDetails, UserData
from storage import accounts, connections, rules, transactions, users
from storage.database import Session, Store
from storage.words import annotations

ROWS_MAX = 200_000  # of one user; beyond, the store answers
SHARE_MAX = 0.5  # of the cache for one user; with more, whoever has a long history would drive out everybody else

Needs = Literal["accounts", "statuses", "figures", "list", "details", "explained", "served", "searched"]
"""What an operation reads of a user besides the accounts: states of connections, rows of figures, pages, single
transactions, figures with the rows behind them, all rows with the states of their connections, or all that a search
looks at."""
Reading = UserData | FromStore


class Reader:
    """Reads users' data; `bytes_max` 0 keeps nothing and reads everything from the store."""

    def __init__(self, store: Store, *, bytes_max: int, render: Render) -> None:
        self._store = store
        self.render = render
        self.cache = Cache(bytes_max=bytes_max, state=store.state)
        self._is_on = bytes_max > 0
        self._bytes_each_max = SHARE_MAX * bytes_max

    def at_hand(self, user_id: str) -> UserData | None:
        """The user's data, if they are in memory, of whatever state; never waits."""
        return self.cache.at_hand(user_id)

    async def is_present(self, user_id: str, data: UserData) -> bool:
        """Whether these data are of the present state, as far as the event loop can tell without a thread."""
        if await self._store.known_state(user_id) != data.state:
            return False
        self.cache.used(user_id)
        return True

    def weigh(self, user_id: str, data: UserData) -> None:
        """The user's data in memory have grown."""
        self.cache.weigh(user_id, data)

    @contextmanager
    def open(self, user_id: str, needs: Needs, *, with_words: bool = False) -> Iterator[Reading]:
        """Everything that is read through it is of one state of the data; what the user says of single bookings is
        there `with_words`."""
        data = self._user_data(user_id, needs, with_words=with_words) if self._is_on else None
        if data is not None:
            yield data
            self.cache.weigh(user_id, data)
            return
        with self._store.of(user_id).transaction() as session:
            yield FromStore(session, user_id, self.render)

    def _user_data(self, user_id: str, needs: Needs, *, with_words: bool) -> UserData | None:
        def is_enough(data: UserData) -> bool:
            return data.is_too_large or (has(data, needs) and (data.known_words is not None or not with_words))

        data = self.cache.fetch(
            user_id, is_enough=is_enough, read=lambda data: self._read(user_id, data, needs, with_words=with_words)
        )
        return data if data is not None and has(data, needs) else None

    def _read(self, user_id: str, data: UserData | None, needs: Needs, *, with_words: bool) -> UserData | None:
        if data is None and needs == "details":
            return None  # one row alone is read from the store; whoever has seen the list will want more of them
        with self._store.reading(user_id) as (session, learn):
            known = users.state_and_currency(session, user_id)
            if known is None:
                return None
            state, home_currency, has_parts = known
            learn(state)
            if data is None or data.state != state:
                data = UserData(state=state, home_currency=home_currency, accounts=accounts.every(session, user_id))
                if has_parts:
                    data.parts = annotations.awake(session, user_id)
            self._complete(session, user_id, data, needs)
            if with_words:
                data.known_words = annotations.of_user(session, user_id)
            data.weigh_frames()
        return data

    def _complete(self, session: Session, user_id: str, data: UserData, needs: Needs) -> None:
        if needs in ("statuses", "served"):
            data.known_statuses = connections.statuses(session, user_id)
        if needs == "figures":
            columns = COUNTED if data.parts.is_empty() else BOOKINGS
            rows = transactions.everything(session, user_id, columns, hidden=data.hidden, rows_max=ROWS_MAX + 1)
            data.is_too_large = not self._fits(data, rows)
            data.figures = None if data.is_too_large else rows
        if needs in ("list", "details", "explained", "served", "searched") and data.entries is None:
            rows = transactions.entries(session, user_id, hidden=data.hidden, rows_max=ROWS_MAX + 1)
            data.is_too_large = not self._fits(data, rows)
            if not data.is_too_large:
                data.entries = Entries(rows, data.by_id, self.render, data.parts)
                data.figures = data.entries.bookings
        if data.entries is not None and needs == "details":
            rows = transactions.everything(
                session, user_id, transactions.DETAILS, hidden=data.hidden, rows_max=ROWS_MAX + 1
            )
            data.is_too_large = not self._fits(data, rows)
            if not data.is_too_large:
                ids = data.entries.rows.select("id")
                data.details = TransactionDetails(
                    rows=ids.join(rows, on="id", how="left", maintain_order="left"),
                    own_rules=rules.of_user(session, user_id),
                )
        if data.entries is not None and needs == "searched" and data.entries.marked is None:
            data.entries.mark(
                transactions.everything(session, user_id, transactions.MARKS, hidden=data.hidden, rows_max=ROWS_MAX + 1)
            )
        if data.entries is not None and needs in ("details", "explained", "served", "searched"):
            data.entries.places  # noqa: B018 - made here, in a thread, and not by the first request that looks one up
        if needs in ("explained", "served", "searched"):
            data.waiting = transactions.waiting(session, user_id, hidden=data.hidden)

    def _fits(self, data: UserData, rows: pl.DataFrame) -> bool:
        """Whether these rows may be kept beside what is there of the user."""
        return rows.height <= ROWS_MAX and data.size + frame_bytes(rows) <= self._bytes_each_max


def has(data: UserData, needs: Needs) -> bool:
    """Whether everything is there that an operation reads."""
    if needs == "statuses":
        return data.known_statuses is not None
    if needs == "figures":
        return data.figures is not None
    if needs == "list":
        return data.entries is not None
    if needs == "details":
        return data.details is not None
    if needs == "served" and data.known_statuses is None:
        return False
    if needs == "searched" and (data.entries is None or data.entries.marked is None):
        return False
    return needs == "accounts" or (data.entries is not None and data.waiting is not None)
