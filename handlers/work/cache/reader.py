"""Reads the data that operations need of a user: from memory where they are up to date, else from the store."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from analytics.frames import BOOKINGS, COUNTED
from handlers.work.cache.cache import Cache
from handlers.work.cache.entries import Entries, Render
from handlers.work.cache.user_data import OF_BOOKINGS, Need, UserData
from storage import accounts, connections, rules, transactions
from storage.annotations import annotations
from storage.changes import first_answers
from storage.changes.first_answers import Begun
from storage.database import Conflict, Session, Store, StoreError, state_in
from storage.transactions import DETAILS, KEPT

TOLD_AT_ONCE = Need.ACCOUNTS | Need.STATUSES
"""What first answers always have."""
Take = Callable[[int | None], UserData | None]
"""Gives the data in memory for a state of the user's data, which is None if there is no such user."""


def _nothing(_state: int | None) -> None:
    return None


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
        `only` is given and the user's bookings are not in memory, just the one with this id is read, and nothing is
        kept: somebody who wants more of them asks again (`UserData.reads_alone`)."""

        def read() -> UserData:
            take = partial(self.cache.take, user_id)
            if needs in TOLD_AT_ONCE and (told := self._told_at_once(user_id, take)) is not None:
                return told
            is_apart = not self._store.is_shared
            if only is not None and (alone := self._alone(user_id, needs, only, is_apart=is_apart)) is not None:
                return alone
            with self._store.reading(user_id) as (session, learn):
                data = self.read(session, user_id, needs, take=take)
                if data.state is not None:
                    learn(data.state)
            return data

        data = self.cache.fetch(user_id, is_enough=lambda data: data.has(needs), read=read) if self._is_on else read()
        yield data
        self.cache.weigh(user_id, data)

    def _told_at_once(self, user_id: str, take: Take) -> UserData | None:
        """The user's data as far as their first answers go, read by one statement. Where these are missing, as after an
        upgrade, they are written first; None where they are still missing, as for somebody without accounts."""
        for is_written in (False, True):
            with self._store.reading(user_id, in_one_statement=True) as (session, learn):
                begun = first_answers.begin(session, user_id, with_bookings=True)
                if begun is not None and begun.row is not None:
                    learn(begun.state)
                    return self._of_state(session, user_id, begun, take(begun.state))
            if begun is None or is_written:
                break
            with suppress(Conflict, StoreError):  # somebody changes the data, or nothing can be written now
                first_answers.write(self._store.of(user_id), user_id)
        return None

    def _alone(self, user_id: str, needs: Need, only: str, *, is_apart: bool) -> UserData | None:
        """The user's data with this booking alone, which are not kept; None where others are to be read, too. In a
        store that no other process changes, the statements need no transaction (`is_apart`): they have read one state
        if that is still the present one afterwards."""
        known = self.cache.at_hand(user_id)
        if known is not None and not known.reads_alone():
            return None
        with self._store.reading(user_id, in_one_statement=is_apart) as (session, learn):
            present = partial(self._store.state, user_id) if is_apart else partial(state_in, session, user_id)
            if known is not None and known.state == present():
                data = known.without_bookings()
            else:
                begun = first_answers.begin(session, user_id, with_bookings=False)
                if begun is None:
                    return None
                learn(begun.state)
                data = self._begun(session, user_id, begun)
                data.is_whole = False
            data.alone = transactions.find(session, user_id, only, may_be_hidden=False, with_rules=Need.RULES in needs)
            self._load(session, user_id, needs & ~OF_BOOKINGS & ~data.loaded, data)
            is_of_one_state = not is_apart or data.state == present()
        return data if is_of_one_state else self._alone(user_id, needs, only, is_apart=False)

    def read(self, session: Session, user_id: str, needs: Need, *, take: Take = _nothing) -> UserData:
        """The user's data as this session sees them, with these needs loaded. `take` gives the data in memory for the
        state that it is told: they are completed if they are of that state; else new ones are returned, with their
        bookings if these have not changed since. The data of a user who does not exist are empty."""
        begun = first_answers.begin(session, user_id, with_bookings=True)
        data = self._of_state(session, user_id, begun, take(begun.state if begun is not None else None))
        if needs & OF_BOOKINGS and data.has_parts is not False and data.parts.is_empty():
            data.parts = annotations.parts_of_user(session, user_id)
            data.has_parts = not data.parts.is_empty()
        self._load(session, user_id, needs & ~data.loaded, data)
        return data

    def _of_state(self, session: Session, user_id: str, begun: Begun | None, known: UserData | None) -> UserData:
        """What is in memory if it is of the present state; else new data, with the bookings of those if these have not
        changed since."""
        if known is not None and begun is not None and known.state == begun.state:
            return known
        data = self._begun(session, user_id, begun)
        data.is_whole = begun is not None
        if known is not None:
            data.keep_bookings_of(known)
        return data

    def _begun(self, session: Session, user_id: str, begun: Begun | None) -> UserData:
        """New data, from the user's first answers if these are true."""
        first = begun.answers() if begun is not None else None
        every = first.accounts if first is not None else accounts.every(session, user_id)
        state, home_currency = (begun.state, begun.home_currency) if begun is not None else (None, "")
        data = UserData(state=state, home_currency=home_currency, accounts=every)
        if first is not None:
            data.begin_with(first, self.render)
        return data

    def _load(self, session: Session, user_id: str, missing: Need, data: UserData) -> None:
        """Load these parts into the data."""
        if Need.STATUSES in missing:
            data.statuses = connections.statuses(session, user_id)
        if Need.RULES in missing:
            data.own_rules = rules.of_user(session, user_id)
        if Need.WORDS in missing:
            data.words = annotations.of_user(session, user_id)
        if Need.LIST in missing:
            columns = KEPT | DETAILS if Need.DETAILS in missing else KEPT
            rows = transactions.newest_first(session, user_id, columns, number=data.number, hidden=data.hidden)
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
