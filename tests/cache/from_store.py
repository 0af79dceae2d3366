"""One user's data read by SQL, each time anew, by the methods of `UserData`: the slow way, by which the reading of the
product is judged."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cached_property
from typing import Self, cast

import orjson
import polars as pl

from analytics.classification.rules import Rule
from analytics.frames import BOOKINGS
from analytics.refunds import refund_ids
from handlers.web.request import Answer
from handlers.work.cache.entries import Render, Shown, with_leaf
from handlers.work.cache.reader import Reader
from handlers.work.cache.user_data import Need, UserData
from storage import accounts, connections, rules, transactions, users
from storage.accounts import StoredAccount
from storage.annotations import annotations
from storage.annotations.annotation import OwnWords
from storage.connections import Status
from storage.database import Row, Session, Store
from storage.transactions import KEPT, LIST_COLUMNS, Selection, for_search


class FromStore:
    """Reads in one transaction, so that everything is of one state; nothing is read before it is asked for."""

    def __init__(self, session: Session, user_id: str, render: Render) -> None:
        self._session = session
        self._user_id = user_id
        self._render = render
        self.state = self.recurring = None  # recurring payments are found anew

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
        return annotations.parts_of_user(self._session, self._user_id)

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
        rows = page(self._session, self._user_id, selection, limit=limit, offset=offset)
        shown = [orjson.dumps(self._render(row, self.by_id)) for row in rows]
        if leaf is None:
            return total, shown
        return total, [with_leaf(json, leaf(row["detailed_category"])) for json, row in zip(shown, rows, strict=True)]

    def matching(self, selection: Selection) -> pl.DataFrame:
        """All rows of the selection as analytics.frames.BOOKINGS."""
        return matching(self._session, self._user_id, self._seen(selection))

    def search_rows(self, selection: Selection, *, pending: bool = False) -> pl.DataFrame:
        """The same as analytics.frames.SEARCHED with their places, or those that are not booked yet."""
        selection = self._seen(selection)
        return searched(self._session, self._user_id, selection, pending=pending)

    def refunds(self, account_ids: Sequence[str]) -> pl.Series:
        """The ids of the refunds among the booked rows of these accounts."""
        return refund_ids(self.figures, self.figures, selection=account_ids)

    @cached_property
    def figures(self) -> pl.DataFrame:
        """The rows of all accounts as analytics.frames.BOOKINGS."""
        return self.matching(Selection())

    @property
    def flows(self) -> pl.DataFrame:
        """The same: what a cashflow is counted from."""
        return self.figures

    @property
    def spendings(self) -> pl.DataFrame:
        """The same: what is counted by category."""
        return self.figures

    @property
    def bookings(self) -> pl.DataFrame:
        """The same: the columns of the entries that figures read."""
        return self.figures

    def figures_since(self, _first: date) -> pl.DataFrame:
        """The same: what a snapshot is counted from."""
        return self.figures

    @cached_property
    def pending(self) -> pl.DataFrame:
        """The rows that are not booked yet, as `figures` has those that are."""
        return pending_rows(self._session, self._user_id, Selection())

    @property
    def entries(self) -> Self:
        """What `Entries` has of the booked rows."""
        return self

    def rows_by_id(self, ids: Iterable[str], *, pending: bool = False) -> Mapping[str, Row]:
        """The rows of these ids as a page lists them, by id."""
        return transactions.rows_by_id(self._session, self._user_id, ids, pending=pending)

    def listed(self, places: Iterable[int], *, pending: bool = False, leaf: Shown | None = None) -> Mapping[int, bytes]:
        """The JSON of the rows at these places of `search_rows`, by place."""
        of_place = dict(places_of(self._session, self._user_id, pending=pending).iter_rows())
        rows = self.rows_by_id([of_place[place] for place in places], pending=pending)
        shown = {place: orjson.dumps(self._render(rows[of_place[place]], self.by_id)) for place in places}
        if leaf is None:
            return shown
        codes = {place: rows[of_place[place]]["detailed_category"] for place in places}
        return {place: with_leaf(json, leaf(codes[place])) for place, json in shown.items()}

    def find(self, id_: str) -> Row | None:
        """One booked transaction with all its details and the rules that derived them."""
        return transactions.find(self._session, self._user_id, id_)

    def keep_answer(self, key: Hashable, answer: Answer) -> None:
        """Keep nothing."""

    def _seen(self, selection: Selection) -> Selection:
        """The selection completed, for a category, by the user's split bookings."""
        return selection.with_parts(self.parts) if selection.category or selection.detailed_category else selection


class FromStoreReader(Reader):
    """Reads every user by `FromStore`."""

    def __init__(self, store: Store, render: Render) -> None:
        super().__init__(store, bytes_max=0, render=render)

    @contextmanager
    def open(self, user_id: str, _needs: Need, *, only: str | None = None) -> Iterator[UserData]:  # noqa: ARG002 - the store is asked for what is wanted
        """What is read through it, in one transaction."""
        with self._store.of(user_id).transaction() as session:
            yield self.read(session, user_id)

    def read(self, session: Session, user_id: str, *_needs: Need, **_more: object) -> UserData:
        """What is read through it, in this session."""
        return cast(UserData, FromStore(session, user_id, self.render))


def page(session: Session, user_id: str, selection: Selection, *, limit: int, offset: int) -> list[Row]:
    """One page of a selection, newest first, then by id descending: a total order (decision 1)."""
    condition, values = selection.condition(user_id)
    query = f"SELECT {LIST_COLUMNS} FROM transactions WHERE {condition} ORDER BY booking_date DESC, id DESC"
    return session.rows(f"{query} LIMIT {int(limit)} OFFSET {int(offset)}", *values)


def searched(session: Session, user_id: str, selection: Selection, *, pending: bool = False) -> pl.DataFrame:
    """The booked (or pending) transactions of the selection as analytics.frames.SEARCHED with their places, in the
    order of a page."""
    condition, values = selection.condition(user_id)
    table = "pending_transactions" if pending else "transactions"
    rows = session.frame(f"SELECT {', '.join(KEPT)} FROM {table} WHERE {condition}", *values, schema=KEPT)
    placed = rows.join(places_of(session, user_id, pending=pending), on="id", how="left")
    return for_search(placed, pending=pending).sort("booking_date", "id", descending=True)


def places_of(session: Session, user_id: str, *, pending: bool) -> pl.DataFrame:
    """A place for each of the user's transactions: its number in the order of the ids."""
    table = "pending_transactions" if pending else "transactions"
    query = f"SELECT id FROM {table} WHERE user_id = $1"
    return session.frame(query, user_id, schema={"id": pl.String()}).sort("id").with_row_index("kept_at")


def matching(session: Session, user_id: str, selection: Selection) -> pl.DataFrame:
    """The booked transactions of the selection as analytics.frames.BOOKINGS."""
    condition, values = selection.condition(user_id)
    return session.frame(f"SELECT {', '.join(BOOKINGS)} FROM transactions WHERE {condition}", *values, schema=BOOKINGS)


def pending_rows(session: Session, user_id: str, selection: Selection) -> pl.DataFrame:
    """The pending transactions of the selection as analytics.frames.BOOKINGS."""
    condition, values = selection.condition(user_id)
    query = f"SELECT {', '.join(BOOKINGS)} FROM pending_transactions WHERE {condition}"
    return session.frame(query, *values, schema=BOOKINGS)
