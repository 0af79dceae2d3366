"""The order of the transactions table: bookings that came late are sorted in again."""

import functools
from collections.abc import Iterable, Iterator
from datetime import date, datetime

from msgspec import Struct

from storage import store_facts
from storage.database import Database, Row, Session, Transaction

ROWS_SORTED_AT_ONCE = 50_000  # some 30 MB of the 128 that the engine may use
LATE_ROWS_MAX = 200_000  # unsorted at the end of the table: they cost every query 0.3 ms
LATE_SHARE_MAX = 0.1  # of all rows, so that a row is moved ten times at most while the table grows
SORTED_UNTIL = "transactions sorted until"  # when the newest of them was stored


def compact(database: Database, *, rows_at_once: int = ROWS_SORTED_AT_ONCE) -> int:
    """Sort all transactions by user, and each user's by booking date, the latest first, without losing concurrent
    imports; returns how many rows were sorted."""
    return sum(steps(database, rows_at_once=rows_at_once))


def is_due(session: Session) -> bool:
    """Whether so many rows have come since the last sorting that reading becomes noticeably slower: more than
    LATE_ROWS_MAX and more than a tenth of all."""
    known = store_facts.recall(session, SORTED_UNTIL)
    counted = session.rows(
        "SELECT count(*) AS rows, count(CASE WHEN $1::TIMESTAMP IS NULL OR created_at > $1 THEN 1 END) AS late"
        " FROM transactions",
        datetime.fromisoformat(known) if known else None,
    )[0]
    return bool(counted["late"] > max(LATE_ROWS_MAX, counted["rows"] * LATE_SHARE_MAX))


def steps(database: Database, *, rows_at_once: int) -> Iterator[int]:
    """Sort one slice of the table after the other, yielding the number of rows of each; at the end, note for `is_due`
    what has been sorted.

    Rows imported since the last time lie unsorted at the end and are scanned by every query: about 1.5 ms for a million
    of them. Each slice moves to the end of the table in a transaction of its own, so that memory stays bounded and an
    interruption loses only what is still to do. Not `CREATE TABLE AS ... ORDER BY` and rename: that loses imports
    committed meanwhile.
    """
    newest = database.rows("SELECT max(created_at) AS newest FROM transactions")[0]["newest"]
    for each in _slices(database, rows_at_once):
        yield database.atomically(functools.partial(_move_to_the_end, slice_=each))
    if newest is not None:
        store_facts.remember(database, SORTED_UNTIL, newest.isoformat())


class _Slice(Struct, frozen=True, kw_only=True):
    """Neighbouring users, or neighbouring days of one user with very many rows; first and last included."""

    first_user: str
    last_user: str
    first_day: date = date.min
    last_day: date = date.max


def _slices(session: Session, rows_max: int) -> Iterator[_Slice]:
    users = session.rows("SELECT user_id, count(*) AS n FROM transactions GROUP BY user_id ORDER BY user_id")
    for group in _group(users, rows_max):
        first, last = group[0]["user_id"], group[-1]["user_id"]
        if len(group) > 1 or group[0]["n"] <= rows_max:
            yield _Slice(first_user=first, last_user=last)
            continue
        days = session.rows(
            "SELECT booking_date AS day, count(*) AS n FROM transactions WHERE user_id = $1"
            " GROUP BY booking_date ORDER BY booking_date DESC",
            first,
        )
        for piece in _group(days, rows_max):
            yield _Slice(first_user=first, last_user=last, first_day=piece[-1]["day"], last_day=piece[0]["day"])


def _group(counted: Iterable[Row], rows_max: int) -> Iterator[list[Row]]:
    """Groups of neighbouring counts that add up to at most `rows_max` rows (`n`); a larger count is a group by
    itself."""
    group: list[Row] = []
    rows = 0
    for each in counted:
        if group and rows + each["n"] > rows_max:
            yield group
            group, rows = [], 0
        group.append(each)
        rows += each["n"]
    if group:
        yield group


def _move_to_the_end(session: Transaction, slice_: _Slice) -> int:
    condition = "user_id BETWEEN $1 AND $2 AND booking_date BETWEEN $3 AND $4"
    ends = (slice_.first_user, slice_.last_user, slice_.first_day, slice_.last_day)
    session.execute(
        f"CREATE TEMP TABLE sorted AS SELECT * FROM transactions WHERE {condition}"
        " ORDER BY user_id, booking_date DESC, id DESC",
        *ends,
    )
    session.execute(f"DELETE FROM transactions WHERE {condition}", *ends)
    moved = session.execute("INSERT INTO transactions SELECT * FROM sorted")
    session.execute("DROP TABLE sorted")
    return moved
