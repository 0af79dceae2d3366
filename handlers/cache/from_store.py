"""One user's data read from the store, by the methods of `UserData`: the slow way, by which the fast one is judged."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property

import orjson
import polars as pl

from handlers.cache.entries import Render
from storage import accounts, connections, transactions, users
from storage.accounts import StoredAccount
from storage.connections import Status
from storage.database import Session
from storage.transactions import Selection


class FromStore:
    """Reads in one transaction, so that everything is of one state; nothing is read before it is asked for."""

    def __init__(self, session: Session, user_id: str, render: Render) -> None:
        self._session = session
        self._user_id = user_id
        self._render = render

    @cached_property
    def accounts(self) -> Sequence[StoredAccount]:
        """All accounts of the user in the order of the list."""
        return accounts.of_user(self._session, self._user_id)

    @cached_property
    def statuses(self) -> Mapping[str, Status]:
        """The state of each connection by id."""
        return connections.statuses(self._session, self._user_id)

    @cached_property
    def home_currency(self) -> str:
        """The currency of figures over several currencies."""
        user = users.find(self._session, self._user_id)
        assert user is not None, "a request outlived its user"
        return user.home_currency

    def page(self, selection: Selection, *, limit: int, offset: int) -> tuple[int, list[bytes]]:
        """How many rows the selection holds, and the JSON of one page of them."""
        total = transactions.count(self._session, self._user_id, selection)
        if offset >= total:
            return total, []
        rows = transactions.page(self._session, self._user_id, selection, limit=limit, offset=offset, total=total)
        by_id = {account.id: account for account in self.accounts}
        return total, [orjson.dumps(self._render(row, by_id)) for row in rows]

    def bookings(self, account_ids: Sequence[str] | None, *, since: date | None) -> pl.DataFrame:
        """The rows of these accounts from `since` on, as analytics.frames.BOOKINGS."""
        return transactions.bookings(self._session, self._user_id, account_ids, since=since)
