"""First answers: one row per user with what first questions ask for, written in the transaction of each change and read
by its key, so that somebody not in memory is answered without reading their bookings.

It has the accounts with the states of their connections, the newest bookings, how many there are, and where all amounts
are of one currency their sums by month. It is true only
while its `state` is that of the user's data: a program that knows nothing of it raises the latter alone. Where it is
missing, past or of another form, everything is read from the tables instead.

`bookings_state` is the state in which bookings last changed. A note, a name or a sync without news raises `state`
alone; so whoever has the bookings of an equal `bookings_state` in memory need not read them again.
"""

import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec import Struct

from storage import accounts, connections
from storage.accounts import StoredAccount
from storage.connections import Status
from storage.database import Row, Session, put_row, set_values
from storage.transactions import LIST_COLUMNS, Selection

FORM = 2  # raised when rows are written in another form
NEWEST_MAX = 100
SHOWING_BOOKINGS = frozenset(("transactions", "pending_transactions", "annotation_splits"))
"""The tables from which bookings are read; which accounts are hidden is compared."""
WRITING = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")

SUMS = (
    "SELECT account_id, date_trunc('month', booking_date)::DATE AS booking_date, sum(amount) AS amount, currency,"
    " is_adjusting_entry, transfer_account_id, min(transfer_id) AS transfer_id, transfer_fee FROM transactions"
    " WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
    " GROUP BY account_id, date_trunc('month', booking_date), amount >= 0, currency, is_adjusting_entry,"
    " transfer_account_id, transfer_id IS NULL, transfer_fee, CASE WHEN transfer_fee IS NOT NULL THEN id END"
    " ORDER BY account_id, booking_date, amount, currency, is_adjusting_entry, transfer_account_id, transfer_id"
)
AMOUNT_END = Decimal(10) ** 15  # amounts are below it, and so are sums that can stand for them
_Text = str | None
_Words = tuple[_Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text]
_Line = tuple[str, str, Decimal, str, date, date | None, _Words]
"""The values of LIST_COLUMNS; the texts that may be missing stand together."""
_COLUMNS = LIST_COLUMNS.split(", ")
FACTS = 6  # of these columns that are no such texts


class Sum(NamedTuple):
    """The sum of the incoming or of the outgoing amounts of an account in one month, apart for each account on the
    other side, for legs whose other one is there (`transfer_id` is that of any of them) and for adjusting entries; or a
    single transfer that lost a fee on its way. The `booking_date` is the first of the month."""

    account_id: str
    booking_date: date
    amount: Decimal
    currency: str
    is_adjusting_entry: bool
    transfer_account_id: str | None
    transfer_id: str | None
    transfer_fee: Decimal | None


class Newest(Struct, frozen=True, array_like=True):
    """The newest bookings in the order of the list, the number of all bookings of each account, and (None where
    amounts are of several currencies) the sums by month; hidden accounts are left out."""

    lines: Sequence[_Line]
    counts: Mapping[str, int]
    sums: Sequence[Sum] | None

    def __len__(self) -> int:
        """The number of all bookings, those included that are not here."""
        return sum(self.counts.values())

    def page(self, selection: Selection, *, limit: int, offset: int) -> tuple[int, list[Row]] | None:
        """The number of bookings in the selection, and those of one page, with LIST_COLUMNS; None where these are not
        enough to tell."""
        if selection._replace(account_ids=None, search=(selection.search or "").strip() or None) != Selection():
            return None
        wanted = self.counts.keys() if selection.account_ids is None else set(selection.account_ids)
        total = sum(self.counts.get(account_id, 0) for account_id in wanted)
        lines = [line for line in self.lines if line[1] in wanted]
        if len(lines) < min(offset + limit, total) and offset < total:
            return None
        page = lines[offset : offset + limit]
        return total, [dict(zip(_COLUMNS, (*facts, *words), strict=True)) for *facts, words in page]


class FirstAnswers(Struct, frozen=True, kw_only=True):
    """What a user's row says; `newest` is None if it was not asked for."""

    bookings_state: int
    accounts: Sequence[StoredAccount]
    statuses: Mapping[str, Status]
    newest: Newest | None


_ACCOUNTS = msgspec.msgpack.Decoder(tuple[list[StoredAccount], dict[str, Status]])
_NEWEST = msgspec.msgpack.Decoder(Newest)


def find(session: Session, user_id: str, state: int, *, with_bookings: bool) -> FirstAnswers | None:
    """The user's first answers if they belong to this state of the data; else None."""
    bookings = "bookings" if with_bookings else "NULL AS bookings"
    query = f"SELECT state, form, bookings_state, accounts, {bookings} FROM first_answers WHERE user_id = $1"
    rows = session.rows(query, user_id)
    if not rows or (rows[0]["state"], rows[0]["form"]) != (state, FORM):
        return None
    owned, statuses = _ACCOUNTS.decode(rows[0]["accounts"])
    newest = _NEWEST.decode(zlib.decompress(rows[0]["bookings"])) if with_bookings else None
    return FirstAnswers(bookings_state=rows[0]["bookings_state"], accounts=owned, statuses=statuses, newest=newest)


def settle(session: Session, user_id: str, *, before: int, state: int, written: Collection[str | None]) -> None:
    """Write the user's first answers for `state`, in which this transaction ends; it began with the state `before`, and
    has written rows of the tables `written`. Where no booking has changed, those of the row stay."""
    owned = accounts.every(session, user_id)
    if not owned:
        session.execute("DELETE FROM first_answers WHERE user_id = $1", user_id)
        return
    shown = [account.id for account in owned if not account.is_hidden]
    said = {
        "state": state,
        "accounts": msgspec.msgpack.encode((owned, connections.statuses(session, user_id))),
    }
    of_before = {"user_id": user_id, "state": before, "form": FORM, "shown": " ".join(shown)}
    if SHOWING_BOOKINGS.isdisjoint(written) and set_values(session, "first_answers", of_before, **said):
        return
    bookings = zlib.compress(msgspec.msgpack.encode(newest_of(session, user_id, shown)), 1)
    put_row(
        session,
        "first_answers",
        ["user_id"],
        **{**of_before, **said, "bookings_state": state, "bookings": bookings},
    )


def newest_of(session: Session, user_id: str, account_ids: Sequence[str]) -> Newest:
    """The newest bookings of these accounts, read from the tables."""
    which, values = "user_id = $1 AND account_id = ANY($2::TEXT[])", (user_id, list(account_ids))
    counts = session.rows(
        f"SELECT account_id, count(*) AS bookings FROM transactions WHERE {which} GROUP BY account_id", *values
    )
    rows = session.rows(
        f"SELECT {LIST_COLUMNS} FROM transactions WHERE {which} ORDER BY booking_date DESC, id DESC LIMIT {NEWEST_MAX}",
        *values,
    )
    lines = [[row[name] for name in _COLUMNS] for row in rows]
    sums = [Sum(*(row[name] for name in Sum._fields)) for row in session.rows(SUMS, *values)]
    is_simple = len({each.currency for each in sums}) <= 1 and all(abs(each.amount) < AMOUNT_END for each in sums)
    return msgspec.convert(
        (
            [(*line[:FACTS], line[FACTS:]) for line in lines],
            {row["account_id"]: row["bookings"] for row in counts},
            sums if is_simple else None,
        ),
        Newest,
    )


@lru_cache(maxsize=1_000)
def written_table(sql: str) -> str | None:
    """The table of which a statement writes rows; None for one that only reads."""
    found = WRITING.match(sql)
    return found[1] if found is not None else None
