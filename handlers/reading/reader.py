"""How an operation comes to what it reads: a passbook in memory, made where there is none, else the store itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from handlers.reading.entries import Entries, Render
from handlers.reading.passbook import Passbook
from handlers.reading.shelf import Shelf
from handlers.reading.store import FromStore
from storage import accounts, connections, transactions, users
from storage.database import Database, Session, state_in

ROWS_MAX = 200_000  # of one user; beyond, the store answers

Needs = Literal["accounts", "list", "figures"]
Reading = Passbook | FromStore


class Reader:
    """Reads users' data; `bytes_max` 0 keeps nothing and reads everything from the store."""

    def __init__(self, database: Database, *, bytes_max: int, render: Render) -> None:
        self._database = database
        self.render = render
        self.shelf = Shelf(bytes_max=bytes_max, state=database.state, known_state=database.known_state)
        self._is_on = bytes_max > 0

    def at_hand(self, user_id: str) -> Passbook | None:
        """The user's passbook, if it is in memory and of the present state; costs no query and never waits."""
        return self.shelf.at_hand(user_id) if self._is_on else None

    def weigh(self, user_id: str, book: Passbook) -> None:
        """The passbook has grown."""
        self.shelf.weigh(user_id, book)

    @contextmanager
    def open(self, user_id: str, needs: Needs) -> Iterator[Reading]:
        """Everything that is read through it is of one state of the data."""
        book = self._passbook(user_id, needs) if self._is_on else None
        if book is not None:
            yield book
            self.shelf.weigh(user_id, book)
            return
        with self._database.transaction() as session:
            yield FromStore(session, user_id, self.render)

    def _passbook(self, user_id: str, needs: Needs) -> Passbook | None:
        book = self.shelf.fetch(
            user_id,
            is_enough=lambda book: book.is_too_large or _has(book, needs),
            read=lambda book: self._read(user_id, book, needs),
        )
        return book if book is not None and _has(book, needs) else None

    def _read(self, user_id: str, book: Passbook | None, needs: Needs) -> Passbook | None:
        with self._database.transaction() as session:
            state = state_in(session, user_id)
            if book is None or book.state != state:
                book = _opened(session, user_id, state)
            if book is None:
                return None
            if needs == "list":
                rows = transactions.entries(session, user_id, rows_max=ROWS_MAX + 1)
                if rows.height <= ROWS_MAX:
                    by_id = {account.id: account for account in book.accounts}
                    book.entries = Entries(rows, by_id, self.render)
                else:
                    book.is_too_large = True
            elif needs == "figures":
                if transactions.count(session, user_id, transactions.Selection()) <= ROWS_MAX:
                    book.figures = transactions.bookings(session, user_id, None, since=None)
                else:
                    book.is_too_large = True
        return book


def _opened(session: Session, user_id: str, state: int) -> Passbook | None:
    user = users.find(session, user_id)
    if user is None:
        return None
    return Passbook(
        state=state,
        home_currency=user.home_currency,
        accounts=accounts.of_user(session, user_id),
        statuses=connections.statuses(session, user_id),
    )


def _has(book: Passbook, needs: Needs) -> bool:
    if needs == "list":
        return book.entries is not None
    return needs == "accounts" or book.figures is not None
