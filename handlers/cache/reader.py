"""Reads the data that operations need of a user: from memory where they are up to date, else from the store."""

from collections.abc import Iterator
from contextlib import contextmanager

from analytics.frames import BOOKINGS, COUNTED
from handlers.cache.cache import Cache
from handlers.cache.entries import Entries, Render
from handlers.cache.user_data import Need, UserData
from storage import accounts, connections, rules, transactions, users
from storage.database import Session, Store
from storage.transactions import DETAILS, KEPT
from storage.words import annotations

OF_BOOKINGS = Need.FIGURES | Need.LIST | Need.DETAILS | Need.PENDING


class Reader:
    """Reads users' data from memory or the store; with `bytes_max` 0, nothing is kept for the next request. `render`
    makes the JSON of a booking in a list."""

    def __init__(self, store: Store, *, bytes_max: int, render: Render) -> None:
        self._store = store
        self.render = render
        self._is_on = bytes_max > 0
        self.cache = Cache(bytes_max=bytes_max, state=store.state)

    async def is_present(self, user_id: str, data: UserData) -> bool:
        """Whether these data are certainly of the present state, as far as the event loop can tell without a thread;
        False if it cannot tell. If True, they count as used (`Cache.touch`)."""
        if await self._store.state_without_thread(user_id) != data.state:
            return False
        self.cache.touch(user_id)
        return True

    @contextmanager
    def open(self, user_id: str, needs: Need, *, only: str | None = None) -> Iterator[UserData]:
        """A context with the user's data, all of one state, with these needs loaded; they stay in memory afterwards. If
        `only` is given and nothing of the present state is in memory, just the booking with this id is read, and
        nothing is kept: somebody who wants more of the user's bookings has mostly listed them before."""

        def read(data: UserData | None) -> UserData:
            with self._store.reading(user_id) as (session, learn):
                data = self.read(session, user_id, needs, data=data, only=only if data is None else None)
                if data.state is not None:
                    learn(data.state)
            return data

        if self._is_on:
            data = self.cache.fetch(user_id, is_enough=lambda data: data.has(needs), read=read)
        else:
            data = read(None)
        yield data
        self.cache.weigh(user_id, data)

    def read(
        self,
        session: Session,
        user_id: str,
        needs: Need,
        *,
        data: UserData | None = None,
        only: str | None = None,
    ) -> UserData:
        """The user's data as this session sees them, with these needs loaded; `data` are completed if they are of the
        same state, else new ones are returned. With `only`, new data have no booking but the one with this id, and are
        not whole. The data of a user who does not exist are empty."""
        known = users.state_and_currency(session, user_id, with_parts=only is None and bool(needs & OF_BOOKINGS))
        state, home_currency, has_parts = known or (None, "", False)
        if data is None or data.state != state:
            data = UserData(
                state=state,
                home_currency=home_currency,
                accounts=accounts.every(session, user_id),
                is_whole=known is not None and only is None,
            )
        if has_parts and data.parts.is_empty():
            data.parts = annotations.parts_of_user(session, user_id)
        missing = needs & ~data.loaded
        if Need.STATUSES in missing:
            data.statuses = connections.statuses(session, user_id)
        if Need.RULES in missing:
            data.own_rules = rules.of_user(session, user_id)
        if Need.WORDS in missing:
            data.words = annotations.of_user(session, user_id)
        if Need.LIST in missing:
            columns = KEPT | DETAILS if Need.DETAILS in missing else KEPT
            rows = transactions.everything(session, user_id, columns, hidden=data.hidden, only=only)
            rows = rows.sort("booking_date", "id", descending=True)
            data.entries = Entries(rows, data.by_id, self.render, data.parts)
            data.figures = data.entries.bookings
            missing |= Need.FIGURES
        elif Need.FIGURES in missing:
            columns = COUNTED if data.parts.is_empty() else BOOKINGS
            data.figures = transactions.everything(session, user_id, columns, hidden=data.hidden)
        if Need.DETAILS in missing and not data.entries.has_details:
            data.entries.add_details(transactions.everything(session, user_id, DETAILS, hidden=data.hidden))
        if Need.PENDING in missing:
            data.waiting = transactions.waiting(session, user_id, hidden=data.hidden)
        data.now_has(missing)
        return data
