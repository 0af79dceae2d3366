"""First answers: one row per user with what first questions ask for, written in the transaction of each change and read
by its key, so that somebody not in memory is answered without reading their bookings.

It has the accounts with the states of their connections, the newest bookings, how many there are, their sums by month
and category, what a snapshot counts where that is not too much, and the recurring payments,
which whoever finds them adds (`remember`). It is true only
while its `state` is that of the user's data: a program that knows nothing of it raises the latter alone. Where it is
missing, past or of another form, everything is read from the tables instead.

`bookings_state` is the state in which bookings last changed. A note, a name or a sync without news raises `state`
alone; so whoever has the bookings of an equal `bookings_state` in memory need not read them again.
"""

import re
import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from io import BytesIO
from typing import Any, NamedTuple

import msgspec
import polars as pl
from msgspec import Struct

from analytics.cashflow import SUMMED, SUMS_MAX, sums_by_month
from analytics.frames import COUNTED
from analytics.recurring.payment import RecurringPayment, asked_until
from analytics.snapshot import recent_bookings
from storage import accounts, connections
from storage.accounts import StoredAccount
from storage.annotations import annotations
from storage.connections import Status
from storage.database import Database, Row, Session, put_row, set_values, state_in
from storage.recurring.known_until import KnownDays
from storage.transactions import LIST_COLUMNS, Selection, number_of, spans

FORM = 7  # raised when rows are written in another form
NEWEST_MAX = 100
SHOWING_BOOKINGS = frozenset(("transactions", "pending_transactions", "annotation_splits"))
"""The tables from which bookings are read; which accounts are hidden is compared."""
TOLD = SHOWING_BOOKINGS | {"accounts", "connections"}
"""The tables that first answers tell of, but for recurring payments."""
CHANGING_RECURRING = frozenset(("recurring_decisions", "recurring_added", "account_sources"))
"""The tables that recurring payments are told by, beside the bookings, of whose changes the data version tells."""
WRITING = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")

RECENT_DAYS = timedelta(days=62)  # before the newest booking: a snapshot of today and of a month from now
_Text = str | None
_Words = tuple[_Text, _Text, _Text, _Text, _Text, _Text, _Text, _Text]
_Line = tuple[str, str, Decimal, str, date, date | None, _Words]
"""The values of LIST_COLUMNS; the texts that may be missing stand together."""
_COLUMNS = LIST_COLUMNS.split(", ")
FACTS = 6  # of these columns that are no such texts


class Newest(Struct, frozen=True, array_like=True, dict=True):
    """The newest bookings in the order of the list, the number of all bookings of each account, and two frames: sums by
    month, and what a snapshot counts from the day `since` on. They are None where they would be very large, the latter
    also where some booking of the user is divided into parts. Hidden accounts are left out. Each is unpacked where it
    is asked for."""

    packed_lines: bytes
    counts: Mapping[str, int]
    packed_sums: bytes | None
    since: date | None
    packed_recent: bytes | None

    @cached_property
    def lines(self) -> Sequence[msgspec.Raw]:
        """The newest bookings, each a _Line, which takes the time of the others only where it is shown."""
        return _LINES.decode(zlib.decompress(self.packed_lines))

    @property
    def sums(self) -> pl.DataFrame | None:
        """The sums by month."""
        return _unpacked(self.packed_sums)

    @property
    def recent(self) -> pl.DataFrame | None:
        """What a snapshot counts."""
        return _unpacked(self.packed_recent)

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
        if wanted >= self.counts.keys():
            known, page = len(self.lines), [_LINE.decode(line) for line in self.lines[offset : offset + limit]]
        else:
            lines = [line for line in map(_LINE.decode, self.lines) if line[1] in wanted]
            known, page = len(lines), lines[offset : offset + limit]
        if known < min(offset + limit, total) and offset < total:
            return None
        return total, [dict(zip(_COLUMNS, (*facts, *words), strict=True)) for *facts, words in page]


class Recurring(Struct, frozen=True, array_like=True):
    """All recurring payments of these accounts, found with this data version, and until when the bookings of accounts
    are known, as was true from the `first` day to the `last`."""

    data_version: int
    account_ids: Sequence[str]
    first: date
    last: date
    payments: Sequence[RecurringPayment]
    known: KnownDays

    def on(self, today: date, owned: Sequence[StoredAccount]) -> Sequence[RecurringPayment] | None:
        """The recurring payments of this day, if these accounts are all; None where this does not tell."""
        if not self.first <= today <= self.last or [each.id for each in owned] != self.account_ids:
            return None
        return asked_until(self.payments, self.known.until(owned, today), today)


class FirstAnswers(Struct, frozen=True, kw_only=True):
    """What a user's row says; `newest` is None if it was not asked for. `has_parts`: whether any booking of the user,
    gone ones included, is divided into parts."""

    bookings_state: int
    accounts: Sequence[StoredAccount]
    statuses: Mapping[str, Status]
    has_parts: bool
    newest: Newest | None
    data_version: int
    packed_recurring: bytes | None

    @property
    def recurring(self) -> Recurring | None:
        """The recurring payments; None where they are not told, or were found with other data."""
        found = _RECURRING.decode(self.packed_recurring) if self.packed_recurring is not None else None
        return found if found is not None and found.data_version == self.data_version else None


class Begun(NamedTuple):
    """The state of a user's data, their home currency, and the row of their first answers; None where that is missing,
    or not of this state."""

    state: int
    home_currency: str
    row: Row | None

    def answers(self) -> FirstAnswers | None:
        """What the row says."""
        if self.row is None:
            return None
        owned, statuses, has_parts = _ACCOUNTS.decode(self.row["accounts"])
        packed = self.row["bookings"]
        return FirstAnswers(
            bookings_state=self.row["bookings_state"],
            accounts=owned,
            statuses=statuses,
            has_parts=has_parts,
            newest=_NEWEST.decode(packed) if packed is not None else None,
            data_version=self.row["data_version"],
            packed_recurring=self.row["recurring"],
        )


_ACCOUNTS = msgspec.msgpack.Decoder(tuple[list[StoredAccount], dict[str, Status], bool])
_NEWEST = msgspec.msgpack.Decoder(Newest)
_LINES = msgspec.msgpack.Decoder(list[msgspec.Raw])
_LINE = msgspec.msgpack.Decoder(_Line)
_RECURRING = msgspec.msgpack.Decoder(Recurring)


def begin(session: Session, user_id: str, *, with_bookings: bool) -> Begun | None:
    """The state of the user's data and their first answers, with the newest bookings or without; None where there is no
    such user. Two look-ups by key in one statement, which DuckDB plans in two thirds of the time of two."""
    bookings = "f.bookings" if with_bookings else "NULL AS bookings"
    rows = session.rows(
        "SELECT u.state AS present, u.home_currency, u.data_version, f.state, f.form, f.bookings_state, f.accounts,"
        f" f.recurring, {bookings} FROM users AS u, first_answers AS f WHERE u.id = $1 AND f.user_id = $1",
        user_id,
    )
    if not rows:
        known = session.rows("SELECT state, home_currency FROM users WHERE id = $1", user_id)
        return Begun(int(known[0]["state"]), known[0]["home_currency"], None) if known else None
    [row] = rows
    is_true = (row["state"], row["form"]) == (row["present"], FORM)
    return Begun(int(row["present"]), row["home_currency"], row if is_true else None)


def settle(session: Session, user_id: str, *, before: int, state: int, written: Collection[str | None]) -> None:
    """Write the user's first answers for `state`, in which this transaction ends; it began with the state `before`, and
    has written rows of the tables `written`. Where no booking has changed, those of the row stay."""
    past: dict[str, Any] = {"recurring": None} if not CHANGING_RECURRING.isdisjoint(written) else {}
    of_before = {"user_id": user_id, "state": before, "form": FORM}
    if TOLD.isdisjoint(written) and set_values(session, "first_answers", of_before, state=state, **past):
        return
    owned = accounts.every(session, user_id)
    if not owned:
        session.execute("DELETE FROM first_answers WHERE user_id = $1", user_id)
        return
    shown = [account for account in owned if not account.is_hidden]
    has_parts = annotations.has_parts(session, user_id)
    said: dict[str, Any] = {
        "state": state,
        "accounts": msgspec.msgpack.encode((owned, connections.statuses(session, user_id), has_parts)),
        **past,
    }
    of_shown = {"shown": " ".join([*(each.id for each in shown), _currency_of(session, user_id, shown)])}
    if SHOWING_BOOKINGS.isdisjoint(written) and set_values(session, "first_answers", {**of_before, **of_shown}, **said):
        return
    bookings = newest_of(session, user_id, shown, has_parts=has_parts)
    said |= {**of_shown, "bookings_state": state, "bookings": bookings}
    if not set_values(session, "first_answers", of_before, **said):
        put_row(session, "first_answers", ["user_id"], **{**of_before, "recurring": None, **said})


def write(database: Database, user_id: str) -> None:
    """Write the first answers of a user who has none, or none that are true."""
    database.atomically(lambda session: settle_anew(session, user_id))


def settle_anew(session: Session, user_id: str) -> None:
    """Write the first answers of a user in a transaction that changes nothing else of them, or that has filled an empty
    store."""
    settle(session, user_id, before=-1, state=state_in(session, user_id), written=SHOWING_BOOKINGS)


def remember(session: Session, user_id: str, state: int, found: Recurring) -> None:
    """Add recurring payments, as found in this state, to the user's first answers, if these are still of that state;
    raises Conflict where somebody is changing them."""
    of_state = {"user_id": user_id, "state": state, "form": FORM}
    set_values(session, "first_answers", of_state, recurring=msgspec.msgpack.encode(found))


def newest_of(session: Session, user_id: str, shown: Sequence[StoredAccount], *, has_parts: bool) -> bytes:
    """The newest bookings of these accounts, read from the tables, as MessagePack (Newest)."""
    ids = [account.id for account in shown]
    rows = session.rows(
        f"SELECT {LIST_COLUMNS} FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
        f" ORDER BY booking_date DESC, id DESC LIMIT {NEWEST_MAX}",
        *(user_id, ids),
    )
    until = rows[0]["booking_date"] if rows else date.min
    since = until - min(RECENT_DAYS, until - date.min)
    lines = [[row[name] for name in _COLUMNS] for row in rows]
    currency = _currency_of(session, user_id, shown)
    in_currency = [account.id for account in shown if account.currency == currency]
    number = number_of(session, user_id) if len(rows) == NEWEST_MAX else len(rows)
    numbers: Counter[str] = Counter()
    sums: list[pl.DataFrame | None] = []
    recent: pl.DataFrame | None = pl.DataFrame(schema=COUNTED)
    for first, last in spans(session, user_id, number):
        is_whole = (first, last) == (date.min, date.max)
        selection = Selection(ids) if is_whole else Selection(ids, date_from=first, date_to=last)
        condition, values = selection.condition(user_id)
        query = f"SELECT {', '.join(COUNTED)} FROM transactions WHERE {condition}"
        bookings = session.frame(query, *values, schema=COUNTED)
        numbers.update(dict(bookings["account_id"].value_counts().iter_rows()))
        sums.append(sums_by_month(bookings, currency=currency, accounts=in_currency))
        # Of later spans it has what is recent and the first payments, which are the same in all spans together
        recent = recent_bookings(pl.concat([recent, bookings]), since) if recent is not None else None
    return msgspec.msgpack.encode(
        (
            zlib.compress(msgspec.msgpack.encode([(*line[:FACTS], line[FACTS:]) for line in lines]), 1),
            dict(sorted(numbers.items())),
            _packed(_together(sums)),
            since,
            _packed(recent) if not has_parts else None,
        )
    )


def _currency_of(session: Session, user_id: str, shown: Sequence[StoredAccount]) -> str:
    """The currency whose amounts are added up: that of all accounts, else the user's home currency."""
    currencies = {account.currency for account in shown}
    if len(currencies) == 1:
        return currencies.pop()
    [user] = session.rows("SELECT home_currency FROM users WHERE id = $1", user_id)
    return str(user["home_currency"])


def _together(sums: Sequence[pl.DataFrame | None]) -> pl.DataFrame | None:
    """The sums of spans of whole months in one frame, as `sums_by_month` gives them; None where these are very many."""
    if len(sums) == 1:
        return sums[0]
    found = [each for each in sums if each is not None]
    together = pl.concat(found).sort(*SUMMED) if len(found) == len(sums) else None
    return together if together is not None and together.height <= SUMS_MAX else None


def _packed(frame: pl.DataFrame | None) -> bytes | None:
    if frame is None:
        return None
    packed = BytesIO()
    frame.write_ipc_stream(packed)
    return zlib.compress(packed.getvalue(), 1)


def _unpacked(packed: bytes | None) -> pl.DataFrame | None:
    return pl.read_ipc_stream(BytesIO(zlib.decompress(packed))) if packed is not None else None


@lru_cache(maxsize=1_000)
def written_table(sql: str) -> str | None:
    """The table of which a statement writes rows; None for one that only reads."""
    found = WRITING.match(sql)
    return found[1] if found is not None else None
