"""What banks and files state about an account as a whole: its balance, and the gaps between statements."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from analytics.day_totals import DayTotals
from analytics.frames import FIGURE, MONEY, MOVED, STATED, columns
from analytics.records import StatementRecord
from analytics.statements.chain import StatementChain
from analytics.statements.told import DAY, number, told_statements
from storage import connections
from storage.changes import feed
from storage.database import Row, Session, Transaction, set_values
from storage.importing.matching.booking_keys import transaction_id
from storage.importing.rows import AMOUNT_END, FLAGS
from storage.importing.teller import Teller
from storage.journal import Change

ADJUSTMENT = "Balance adjustment"
AHEAD_DAYS_MAX = 60  # a booking or balance of a later day is a mistake, or meant to hide all that follow
BY_THE_PERSON = "said by the person"
"""In place of the number of a statement: the account's person says its balance, where no bank and no file does."""
SAID = ("sequence", "opening", "opening_date", "closing", "closing_date")
KNOWN = f"{', '.join(SAID)}, batch_id, position, is_authoritative, connection_id, received_at, told IS NULL AS is_older"
STATEMENTS = columns(
    "user_id, account_id, batch_id, position, sequence, opening, opening_date, closing, closing_date, is_authoritative,"
    " adds_up, told, told_from, told_until, connection_id, received_at"
)
GAPS = columns("id, identity, booking_date, amount")


class Stated(NamedTuple):
    """What a source `said` of an account as a whole, whether it adds up, and the ids of the bookings that it told with
    both its balances, parted by blanks."""

    said: StatementRecord
    adds_up: bool | None = None
    told: str | None = None


def keep(teller: Teller, account_id: str, batch_id: str, stated: Sequence[Stated]) -> list[tuple[str, Change]]:
    """Store the statements, set the balance, and settle the gaps between statements. Returns the changes to adjusting
    entries, for the journal."""
    session, of_account = teller.session, (teller.user.id, account_id)
    reported = [
        (place, one)
        for place, one in enumerate(stated)
        if (one.said.closing, one.said.opening, one.said.told_from) != (None, None, None)
    ]
    known = _known(session, *of_account)
    if reported:
        again = {_fields_of(one.said) for _, one in reported if one.told is not None}
        for row in [row for row in known if row["is_older"] and _fields_of(row) in again]:
            known.remove(row)
            session.execute(
                "DELETE FROM statements WHERE user_id = $1 AND account_id = $2 AND batch_id = $3 AND position = $4",
                *(*of_account, row["batch_id"], row["position"]),
            )
        rows = [
            (
                *(*of_account, batch_id, place, *_fields_of(one.said)),
                *(one.said.is_authoritative and one.adds_up is True, one.adds_up, one.told),
                *(one.said.told_from, one.said.told_until, teller.connection.id, teller.now),
            )
            for place, one in _news(known, reported, None if teller.is_live else batch_id)
        ]
        session.append("statements", pl.DataFrame(rows, schema=STATEMENTS, orient="row"))
        known += [dict(zip(STATEMENTS, row, strict=True)) for row in rows]
    last_day = _last_day(teller.now)
    known = [row for row in known if row["closing_date"] is not None and row["closing_date"] <= last_day]
    _set_balance(session, *of_account, known, teller.file_connections, teller.now)
    for said in (one.said for _, one in reported if one.said.credit_line is not None):
        session.execute(
            "UPDATE accounts SET credit_line = $3 WHERE user_id = $1 AND id = $2"
            " AND coalesce(balance_date <= $4, TRUE)",
            *(*of_account, said.credit_line, said.closing_date or date.min),
        )
    are_several = sum(row["is_authoritative"] for row in known) > 1
    missing = _gaps(session, *of_account, last_day) if are_several else pl.DataFrame(schema=GAPS)
    return _settle(session, *of_account, missing, teller.now)


def settle_again(session: Transaction, user_id: str, account_id: str, *, now: datetime) -> list[tuple[str, Change]]:
    """Set the balance and settle the gaps between the statements of an account that shows bookings of another one, or
    shows them no more. Returns the changes to adjusting entries, for the journal."""
    of_account, last_day = (user_id, account_id), _last_day(now)
    known = [row for row in _known(session, *of_account) if (row["closing_date"] or date.max) <= last_day]
    _set_balance(session, *of_account, known, connections.of_files(session, user_id), now)
    return _settle(session, *of_account, _gaps(session, *of_account, last_day), now)


def _known(session: Session, user_id: str, account_id: str) -> list[Row]:
    return session.rows(f"SELECT {KNOWN} FROM statements WHERE user_id = $1 AND account_id = $2", user_id, account_id)


def told_of(session: Session, user_id: str, account_id: str) -> list[str]:
    """The ids of all bookings that statements with both balances told of the account."""
    asked = "SELECT DISTINCT told FROM statements WHERE user_id = $1 AND account_id = $2 AND told <> ''"
    return [id_ for row in session.rows(asked, user_id, account_id) for id_ in row["told"].split()]


def told_by_details(teller: Teller, account_id: str, details: Mapping[str, Sequence[str]]) -> None:
    """Let the account's statements that told one of these bookings tell its details instead, by their ids."""
    of_account = {"user_id": teller.user.id, "account_id": account_id}
    query = "SELECT DISTINCT told FROM statements WHERE user_id = $1 AND account_id = $2 AND strpos(told, $3) > 0"
    for whole in details:
        for row in teller.session.rows(query, *of_account.values(), whole):
            ids = dict.fromkeys(id_ for told in row["told"].split() for id_ in details.get(told, [told]))
            set_values(teller.session, "statements", of_account | row, told=" ".join(ids))


def _news(
    known: Sequence[Row], reported: Sequence[tuple[int, Stated]], file: str | None
) -> Iterator[tuple[int, Stated]]:
    """The statements that say something new. A statement with an opening balance or a number is new once, however often
    its file is imported. A balance alone, as live sources report it, is true at the time of the report: it is new
    unless it was the last one reported for its day, or the same `file` (a batch id; None for a live source) has
    reported it before. The days that a source states are always new; what else is known is left out then."""
    seen = {_fields_of(row) for row in known}
    of_batch = {_fields_of(row) for row in known if row["batch_id"] == file}
    last: dict[date | None, tuple[Any, ...]] = {}
    for row in sorted(known, key=lambda row: (row["received_at"], row["position"])):
        if row["sequence"] is None and row["opening"] is None:
            last[row["closing_date"]] = _fields_of(row)
    for place, one in reported:
        statement, said = one.said, _fields_of(one.said)
        if statement.opening is None and statement.sequence is None:
            is_known = said in of_batch or last.get(statement.closing_date) == said
            last[statement.closing_date] = said
        else:
            is_known = said in seen
            seen.add(said)
        if not is_known:
            yield place, one
        elif statement.told_from is not None:
            yield place, Stated(StatementRecord(told_from=statement.told_from, told_until=statement.told_until))


def _fields_of(one: StatementRecord | Row) -> tuple[Any, ...]:
    return tuple(one[name] if isinstance(one, dict) else getattr(one, name) for name in SAID)


def _set_balance(
    session: Session, user_id: str, account_id: str, known: Sequence[Row], files: Collection[str], now: datetime
) -> None:
    """Set the account's balance to the closing balance of the newest of these statements; see `_last_of_a_day` for
    several on one day. A statement that is dated ahead is one of the day on which it came, because later ones know
    more. What a person says of a day goes on with all that is booked since, as far as the store holds the sum, because
    nobody says it anew."""
    by_day: dict[date, list[Row]] = defaultdict(list)
    for row in (row for row in known if row["closing"] is not None):
        by_day[min(row["closing_date"], row["received_at"].date())].append(row)
    if by_day:
        rows = by_day[max(by_day)]
        proven = _with_all_of_its_day(session, user_id, account_id, rows)
        newest = _last_of_a_day(rows, files, proven)
        stated = {"balance": newest["closing"], "balance_date": newest["closing_date"]}
        if newest["sequence"] == BY_THE_PERSON:
            (since,) = session.rows(
                "SELECT sum(amount) AS moved, max(booking_date) AS last FROM transactions WHERE user_id = $1"
                " AND account_id = $2 AND NOT is_adjusting_entry AND booking_date > $3 AND booking_date <= $4",
                *(user_id, account_id, newest["closing_date"], now.date()),
            )
            balance = newest["closing"] + (since["moved"] or 0)
            if since["last"] is not None and abs(balance) < AMOUNT_END:
                stated = {"balance": balance, "balance_date": since["last"]}
        set_values(session, "accounts", {"user_id": user_id, "id": account_id}, **stated)


def _with_all_of_its_day(session: Session, user_id: str, account_id: str, rows: Sequence[Row]) -> set[Decimal]:
    """The balances of a day's statements that include every booking of it: the opening balance of the first of them and
    all that is booked since. The day on which it opens may belong to the one before. Empty where all agree."""
    stated = [row for row in rows if row["is_authoritative"] and row["opening_date"] is not None]
    if not stated or len({row["closing"] for row in rows}) < 2:
        return set()
    moved = session.frame(
        "SELECT booking_date, sum(amount) AS amount, max(created_at) AS created_at FROM transactions"
        " WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry GROUP BY booking_date",
        *(user_id, account_id),
        schema={**columns("booking_date, created_at"), "amount": FIGURE},  # of all bookings of a day
    )
    totals, closings = DayTotals(moved), {row["closing"] for row in stated}
    firsts = [row for row in stated if row["opening"] not in closings - {row["closing"]}]
    return {
        row["opening"] + totals.between(since, row["closing_date"])
        for row in firsts or stated  # a day may return to the balance with which it began
        for since in (row["opening_date"], row["opening_date"] + DAY)
        if since <= row["closing_date"]
    }


def _last_of_a_day(rows: Sequence[Row], file_connections: Collection[str], proven: Collection[Decimal]) -> Row:
    """The last of the statements that close on one day, in whatever order they came: those dated ahead first; the one
    that includes every booking of the day (`proven`); then the day's statement before an interim report that does not
    prove its balance; then the one whose closing balance opens no other; then the highest number; then the last
    received. The last report of a live source counts until the day's statement or the balance of a later day comes,
    whatever came before. How far a balance is dated ahead says nothing, and one of the day after may be of today where
    the person lives."""

    def arrival(row: Row) -> tuple[datetime, int]:
        return row["received_at"], row["position"]

    def day(row: Row) -> date:
        stated: date = row["closing_date"]
        return min(stated, arrival(row)[0].date() + DAY)

    live = [row for row in rows if row["opening"] is None and row["connection_id"] not in file_connections]
    if live:
        reported = max(live, key=arrival)
        later = [row for row in rows if arrival(row) > arrival(reported)]
        rows = [reported, *(row for row in later if row["is_authoritative"] or day(row) > day(reported))]
    closings: dict[Decimal | None, set[Decimal]] = defaultdict(set)
    for row in rows:
        closings[row["opening"]].add(row["closing"])

    def order(row: Row) -> tuple[date, bool, bool, bool, tuple[tuple[int, ...], str], datetime, int]:
        is_last = closings.get(row["closing"], set()) <= {row["closing"]}
        is_proven = row["closing"] in proven
        return day(row), is_proven, row["is_authoritative"], is_last, number(row["sequence"]), *arrival(row)

    return max(rows, key=order)


def _last_day(now: datetime) -> date:
    return now.date() + timedelta(days=AHEAD_DAYS_MAX)


def _settle(
    session: Transaction, user_id: str, account_id: str, missing: pl.DataFrame, now: datetime
) -> list[tuple[str, Change]]:
    """Write, resize or remove adjusting entries (rows of our own for money that moved between two statements without a
    known booking) so that every gap (`missing`, as GAPS) is explained, and no more. Returns their ids, each with what
    was done."""
    rows = session.rows(
        "SELECT id, amount AS was, added_state FROM transactions"
        " WHERE user_id = $1 AND account_id = $2 AND is_adjusting_entry",
        *(user_id, account_id),
    )
    if missing.is_empty() and not rows:
        return []
    stored = pl.DataFrame(rows, schema={"id": pl.String(), "was": MONEY, "added_state": feed.STATES["added_state"]})
    gone = stored.join(missing, on="id", how="anti").select("id", account_id=pl.lit(account_id))
    settled = missing.join(stored, on="id", how="left", maintain_order="left")
    fresh = settled.filter(pl.col("amount").ne_missing(pl.col("was")))
    feed.record_removed(session, user_id, gone)
    if stale := [*gone["id"], *fresh.drop_nulls("was")["id"]]:
        session.execute("DELETE FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, stale)
    if not fresh.is_empty():
        session.append("transactions", _adjusting_rows(session, user_id, account_id, fresh.drop("was"), now))
    changes: list[tuple[str, Change]] = [(id_, "removed") for id_ in gone["id"]]
    changes += [(id_, "added" if was is None else "modified") for id_, was in fresh.select("id", "was").iter_rows()]
    return changes


def _gaps(session: Session, user_id: str, account_id: str, last_day: date) -> pl.DataFrame:
    """The adjusting entries that the account needs, as GAPS: one for each amount that moved between two statements
    without a known booking, but for those beyond what the store holds. Statements that close after `last_day` do not
    count."""
    stated = session.frame(
        f"SELECT {', '.join(STATED)} FROM statements WHERE user_id = $1 AND account_id = $2 AND is_authoritative"
        " AND closing_date <= $3 ORDER BY closing_date, opening_date, sequence, received_at, position",
        *(user_id, account_id, last_day),
        schema=STATED,
    )
    if (stated["opening"][1:] == stated["closing"][:-1]).all():
        return pl.DataFrame(schema=GAPS)
    moved = session.frame(
        f"SELECT {', '.join(MOVED)} FROM transactions WHERE user_id = $1 AND account_id = $2"
        " AND NOT is_adjusting_entry ORDER BY booking_date, id",
        *(user_id, account_id),
        schema=MOVED,
    )
    found = []
    for gap in StatementChain(told_statements(stated, moved), moved).gaps:
        identity = f"gap:{gap.earlier.last}:{gap.later.first}:{gap.later.sequence or ''}#1"
        day = max(gap.earlier.last, gap.later.first - DAY)
        found.append((transaction_id(account_id, identity), identity, day, gap.amount))
    missing = pl.DataFrame(found, schema={**GAPS, "amount": FIGURE}, orient="row")
    missing = missing.group_by(pl.exclude("amount"), maintain_order=True).agg(pl.col("amount").sum())
    return missing.filter(pl.col("amount").abs() < AMOUNT_END).cast({"amount": MONEY})


def _adjusting_rows(
    session: Transaction, user_id: str, account_id: str, missing: pl.DataFrame, now: datetime
) -> pl.DataFrame:
    (of_account,) = session.rows(
        "SELECT currency, connection_id FROM accounts WHERE user_id = $1 AND id = $2", user_id, account_id
    )
    state = pl.lit(session.coming_state(user_id))
    common = {
        **of_account,
        "user_id": user_id,
        "account_id": account_id,
        "type": "other",
        "category": "OTHER",
        **dict.fromkeys(("type_rule", "category_rule"), "adjusting-entry"),
        "purpose": ADJUSTMENT,
        "search_text": ADJUSTMENT.lower(),
        "reference_keys": "[]",
        **dict.fromkeys(FLAGS, False),
        "is_adjusting_entry": True,
        "created_at": now,
    }
    return missing.with_columns(
        *(pl.lit(value).alias(name) for name, value in common.items()),
        *(pl.col("identity").alias(name) for name in ("fingerprint", "batch_id")),
        added_state=pl.col("added_state").fill_null(state),
        changed_state=state,
    )
