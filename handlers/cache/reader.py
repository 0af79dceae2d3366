"""How an operation comes to what it reads: a user's data in memory, loaded where they are missing, else the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from handlers.cache.cache import Cache
from handlers.cache.entries import Entries, Render
from handlers.cache.from_store import FromStore
from handlers.cache.user_data import UserData
from storage import accounts, connections, transactions, users
from storage.database import Database, Session, state_in

ROWS_MAX = 200_000  # of one user; beyond, the store answers

Needs = Literal["accounts", "list", "figures"]
Reading = UserData | FromStore


class Reader:
    """Reads users' data; `bytes_max` 0 keeps nothing and reads everything from the store."""

    def __init__(self, database: Database, *, bytes_max: int, render: Render) -> None:
        self._database = database
        self.render = render
        self.cache = Cache(bytes_max=bytes_max, state=database.state, known_state=database.known_state)
        self._is_on = bytes_max > 0

    def at_hand(self, user_id: str) -> UserData | None:
        """The user's data, if they are in memory and of the present state; costs no query and never waits."""
        return self.cache.at_hand(user_id) if self._is_on else None

    def weigh(self, user_id: str, data: UserData) -> None:
        """The user's data in memory have grown."""
        self.cache.weigh(user_id, data)

    @contextmanager
    def open(self, user_id: str, needs: Needs) -> Iterator[Reading]:
        """Everything that is read through it is of one state of the data."""
        data = self._user_data(user_id, needs) if self._is_on else None
        if data is not None:
            yield data
            self.cache.weigh(user_id, data)
            return
        with self._database.transaction() as session:
            yield FromStore(session, user_id, self.render)

    def _user_data(self, user_id: str, needs: Needs) -> UserData | None:
        data = self.cache.fetch(
            user_id,
            is_enough=lambda data: data.is_too_large or _has(data, needs),
            read=lambda data: self._read(user_id, data, needs),
        )
        return data if data is not None and _has(data, needs) else None

    def _read(self, user_id: str, data: UserData | None, needs: Needs) -> UserData | None:
        with self._database.transaction() as session:
            state = state_in(session, user_id)
            if data is None or data.state != state:
                data = _opened(session, user_id, state)
            if data is None:
                return None
            if needs == "list":
                rows = transactions.entries(session, user_id, rows_max=ROWS_MAX + 1)
                if rows.height <= ROWS_MAX:
                    by_id = {account.id: account for account in data.accounts}
                    data.entries = Entries(rows, by_id, self.render)
                else:
                    data.is_too_large = True
            elif needs == "figures":
                if transactions.count(session, user_id, transactions.Selection()) <= ROWS_MAX:
                    data.figures = transactions.bookings(session, user_id, None, since=None)
                else:
                    data.is_too_large = True
        return data


def _opened(session: Session, user_id: str, state: int) -> UserData | None:
    user = users.find(session, user_id)
    if user is None:
        return None
    return UserData(
        state=state,
        home_currency=user.home_currency,
        accounts=accounts.of_user(session, user_id),
        statuses=connections.statuses(session, user_id),
    )


def _has(data: UserData, needs: Needs) -> bool:
    if needs == "list":
        return data.entries is not None
    return needs == "accounts" or data.figures is not None
