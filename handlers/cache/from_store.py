"""One user's data read from the store, by the methods of `UserData`: the slow way, by which the fast one is judged."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property

import orjson
import polars as pl

from analytics.classification.rules import Rule
from analytics.refunds import refund_ids
from handlers.cache.entries import Render, Shown, with_leaf
from storage import accounts, connections, rules, transactions, users
from storage.accounts import StoredAccount
from storage.connections import Status
from storage.database import Row, Session
from storage.transactions import Selection
from storage.words import annotations
from storage.words.annotations import OwnWords


class FromStore:
    """Reads in one transaction, so that everything is of one state; nothing is read before it is asked for."""

    def __init__(self, session: Session, user_id: str, render: Render) -> None:
        self._session = session
        self._user_id = user_id
        self._render = render

    @cached_property
    def _every_account(self) -> Sequence[StoredAccount]:
        return accounts.every(self._session, self._user_id)

    @cached_property
    def accounts(self) -> Sequence[StoredAccount]:
        """All accounts of the user in the order of the list."""
        return [account for account in self._every_account if not account.is_hidden]

    @cached_property
    def by_id(self) -> Mapping[str, StoredAccount]:
        """The accounts by id."""
        return {account.id: account for account in self.accounts}

    @cached_property
    def statuses(self) -> Mapping[str, Status]:
        """The state of each connection by id."""
        return connections.statuses(self._session, self._user_id)

    @cached_property
    def home_currency(self) -> str:
        """The currency into which the user's figures over several currencies are converted."""
        user = users.find(self._session, self._user_id)
        assert user is not None, "a request outlived its user"
        return user.home_currency

    @cached_property
    def own_rules(self) -> Sequence[Rule]:
        """The user's own rules of classification."""
        return rules.of_user(self._session, self._user_id)

    @cached_property
    def parts(self) -> pl.DataFrame:
        """The parts of bookings as analytics.searching.parts.PARTS."""
        return annotations.awake(self._session, self._user_id)

    @cached_property
    def words(self) -> OwnWords:
        """What the user says of single bookings."""
        return annotations.of_user(self._session, self._user_id)

    def page(
        self, selection: Selection, *, limit: int, offset: int, leaf: Shown | None = None
    ) -> tuple[int, list[bytes]]:
        """How many rows the selection holds, and the JSON of one page of them, with their finer categories as `leaf`
        shows them."""
        selection = self._seen(selection)
        total = transactions.count(self._session, self._user_id, selection)
        if offset >= total:
            return total, []
        rows = transactions.page(self._session, self._user_id, selection, limit=limit, offset=offset, total=total)
        shown = [orjson.dumps(self._render(row, self.by_id)) for row in rows]
        if leaf is None:
            return total, shown
        return total, [with_leaf(json, leaf(row["detailed_category"])) for json, row in zip(shown, rows, strict=True)]

    def matching(self, selection: Selection) -> pl.DataFrame:
        """All rows of the selection as analytics.frames.BOOKINGS."""
        return transactions.matching(self._session, self._user_id, self._seen(selection))

    def searched(self, selection: Selection, *, pending: bool = False) -> pl.DataFrame:
        """The same as analytics.frames.SEARCHED, or those that are not booked yet."""
        selection = self._seen(selection)
        return transactions.searched(self._session, self._user_id, selection, pending=pending)

    def refunds(self, account_ids: Sequence[str]) -> pl.Series:
        """The ids of the refunds among the booked rows of these accounts."""
        bookings = self.bookings(account_ids)
        return refund_ids(bookings, bookings, selection=account_ids)

    def bookings(
        self, account_ids: Sequence[str] | None, *, since: date | None = None, until: date | None = None
    ) -> pl.DataFrame:
        """The rows of these accounts from `since` to `until`, both included, as analytics.frames.BOOKINGS."""
        return self.matching(Selection(account_ids=account_ids, date_from=since, date_to=until))

    def pending(self, account_ids: Sequence[str] | None, *, since: date, until: date) -> pl.DataFrame:
        """The rows that are not booked yet, as `bookings` has those that are."""
        meant = Selection(account_ids=account_ids, date_from=since, date_to=until, may_be_hidden=self._has_hidden)
        return transactions.pending(self._session, self._user_id, meant)

    def listed(self, ids: Iterable[str], *, pending: bool = False) -> Mapping[str, Row]:
        """The rows of these ids as a page lists them, by id."""
        return transactions.listed(self._session, self._user_id, ids, pending=pending)

    def find(self, id_: str) -> Row | None:
        """One booked transaction with all its details and the rules that derived them."""
        return transactions.find(self._session, self._user_id, id_, may_be_hidden=self._has_hidden)

    def _seen(self, selection: Selection) -> Selection:
        """The selection completed: whether the user has hidden accounts, and for a category their split bookings."""
        selection = selection._replace(may_be_hidden=self._has_hidden)
        return selection.with_parts(self.parts) if selection.category or selection.detailed_category else selection

    @cached_property
    def _has_hidden(self) -> bool:
        return len(self.accounts) < len(self._every_account)
