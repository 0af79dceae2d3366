"""What banks and files said of an account as a whole: its balance, and the gaps between statements."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from analytics.day_totals import DayTotals
from analytics.frames import FORMER, MONEY, MOVED
from analytics.statement_gaps import OF_ONE_DAY_MAX, Stated, gaps, number
from storage import accounts
from storage.changes import feed
from storage.database import Row, Session
from storage.importing.matching.booking_keys import transaction_id
from storage.importing.records import StatementRecord
from storage.importing.teller import Teller
from storage.journal import Change

ADJUSTMENT = "Balance adjustment"
DAY = timedelta(days=1)
AHEAD_DAYS_MAX = 60  # a booking or balance of a later day is a mistake, or meant to hide all that follow
SAID = ("sequence", "opening", "opening_date", "closing", "closing_date")
STATEMENTS: dict[str, pl.DataType] = {
    "user_id": pl.String(),
    "account_id": pl.String(),
    "batch_id": pl.String(),
    "position": pl.Int32(),
    "sequence": pl.String(),
    "opening": MONEY,
    "opening_date": pl.Date(),
    "closing": MONEY,
    "closing_date": pl.Date(),
    "is_authoritative": pl.Boolean(),
    "adds_up": pl.Boolean(),
    "told_from": pl.Date(),
    "told_until": pl.Date(),
    "connection_id": pl.String(),
    "received_at": pl.Datetime("us"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """Money that moved between two statements without a booking that we know."""

    identity: str
    day: date
    amount: Decimal


def keep(
    teller: Teller, account_id: str, batch_id: str, stated: Sequence[tuple[StatementRecord, bool | None]]
) -> list[tuple[str, Change]]:
    """Remember the statements (each with whether it adds up), set the balance, and settle the gaps between them;
    the adjusting entries that came and went."""
    session, user_id = teller.session, teller.user.id
    told = [
        (place, *one)
        for place, one in enumerate(stated)
        if (one[0].closing, one[0].opening, one[0].told_from) != (None, None, None)
    ]
    if told:
        known = session.rows(
            f"SELECT {', '.join(SAID)}, batch_id, received_at, position FROM statements"
            " WHERE user_id = $1 AND account_id = $2",
            *(user_id, account_id),
        )
        rows = [
            (
                *(user_id, account_id, batch_id, place, *_said(statement)),
                *(statement.is_authoritative and adds_up is True, adds_up, statement.told_from, statement.told_until),
                *(teller.connection.id, teller.now),
            )
            for place, statement, adds_up in _news(known, told, None if teller.is_live else batch_id)
        ]
        session.append("statements", pl.DataFrame(rows, schema=STATEMENTS, orient="row"))
    last_day = teller.now.date() + timedelta(days=AHEAD_DAYS_MAX)
    _set_balance(teller, account_id, last_day)
    return _settle_gaps(teller, account_id, last_day)


def _news(
    known: Sequence[Row], told: Sequence[tuple[int, StatementRecord, bool | None]], file: str | None
) -> Iterator[tuple[int, StatementRecord, bool | None]]:
    """Those that say something new. A statement says it once, however often its file is imported. A balance alone
    (neither opening nor number, as live sources report it) is true when it is reported: what was reported last is not
    news, and what was reported before something else is, unless the same `file` (batch) comes again: None for a live
    source, which says what is true now. Which days a source has told is always news, without what is none."""
    seen = {_said(row) for row in known}
    of_batch = {_said(row) for row in known if row["batch_id"] == file}
    last: dict[date | None, tuple[Any, ...]] = {}
    for row in sorted(known, key=lambda row: (row["received_at"], row["position"])):
        if row["sequence"] is None and row["opening"] is None:
            last[row["closing_date"]] = _said(row)
    for place, statement, adds_up in told:
        said = _said(statement)
        if statement.opening is None and statement.sequence is None:
            is_known = said in of_batch or last.get(statement.closing_date) == said
            last[statement.closing_date] = said
        else:
            is_known = said in seen
            seen.add(said)
        if not is_known:
            yield place, statement, adds_up
        elif statement.told_from is not None:
            yield place, StatementRecord(told_from=statement.told_from, told_until=statement.told_until), None


def _said(one: StatementRecord | Row) -> tuple[Any, ...]:
    return tuple(one[name] if isinstance(one, dict) else getattr(one, name) for name in SAID)


def _set_balance(teller: Teller, account_id: str, last_day: date) -> None:
    """The closing balance of the newest statement; see `_last_of_a_day` for several on one day."""
    rows = teller.session.rows(
        "SELECT connection_id, opening, closing, closing_date, sequence, is_authoritative, received_at, position"
        " FROM statements WHERE user_id = $1 AND account_id = $2 AND closing IS NOT NULL"
        " AND closing_date = (SELECT max(closing_date) FROM statements WHERE user_id = $1 AND account_id = $2"
        " AND closing IS NOT NULL AND closing_date <= $3)",
        *(teller.user.id, account_id, last_day),
    )
    if rows:
        newest = _last_of_a_day(rows, teller.file_connections)
        accounts.set_balance(
            teller.session,
            user_id=teller.user.id,
            account_id=account_id,
            balance=newest["closing"],
            day=newest["closing_date"],
        )


def _last_of_a_day(rows: Sequence[Row], file_connections: Collection[str]) -> Row:
    """Of the statements that close on one day the one after which nothing follows, in whatever order they came: the
    day's statement before an interim report that does not prove its balance, then the one whose closing balance opens
    no other, then the highest number, then the last received. What a live source said last is true until the day's
    statement comes, whatever had been received before it."""

    def received(row: Row) -> tuple[datetime, int]:
        return row["received_at"], row["position"]

    live = [row for row in rows if row["opening"] is None and row["connection_id"] not in file_connections]
    if live:
        told = max(live, key=received)
        rows = [told, *(row for row in rows if row["is_authoritative"] and received(row) > received(told))]
    closings: dict[Decimal | None, set[Decimal]] = defaultdict(set)
    for row in rows:
        closings[row["opening"]].add(row["closing"])

    def order(row: Row) -> tuple[bool, bool, tuple[tuple[int, ...], str], datetime, int]:
        is_last = closings.get(row["closing"], set()) <= {row["closing"]}
        return row["is_authoritative"], is_last, number(row["sequence"]), *received(row)

    return max(rows, key=order)


def _settle_gaps(teller: Teller, account_id: str, last_day: date) -> list[tuple[str, Change]]:
    """Write, resize or remove adjusting entries so that every gap between statements is explained, and no more."""
    session, user_id = teller.session, teller.user.id
    found = _gaps(session, user_id, account_id, last_day)
    missing = {transaction_id(account_id, gap.identity): gap for gap in found}
    rows = session.rows(
        "SELECT id, amount, added_state FROM transactions"
        " WHERE user_id = $1 AND account_id = $2 AND is_adjusting_entry",
        *(user_id, account_id),
    )
    stored = {row["id"]: row["amount"] for row in rows}
    stale = [id_ for id_, amount in stored.items() if id_ not in missing or missing[id_].amount != amount]
    fresh = {id_: gap for id_, gap in missing.items() if stored.get(id_) != gap.amount}
    gone = [id_ for id_ in stale if id_ not in missing]
    feed.bury(
        session,
        user_id,
        pl.DataFrame({"id": gone}, schema={"id": pl.String}).with_columns(account_id=pl.lit(account_id)),
    )
    if stale:
        session.execute("DELETE FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, stale)
    if fresh:
        state = session.coming_state(user_id)
        since = dict.fromkeys(fresh, state) | {row["id"]: row["added_state"] for row in rows if row["id"] in fresh}
        adjusting = _adjusting_rows(teller, account_id, fresh)
        session.append(
            "transactions",
            adjusting.with_columns(pl.Series("added_state", [*since.values()]), changed_state=pl.lit(state)),
        )
    changes: list[tuple[str, Change]] = [(id_, "removed") for id_ in gone]
    changes += [(id_, "modified" if id_ in stored else "added") for id_ in fresh]
    return changes


def _gaps(session: Session, user_id: str, account_id: str, last_day: date) -> list[_Gap]:
    rows = session.rows(
        "SELECT DISTINCT sequence, opening, opening_date, closing, closing_date FROM statements"
        " WHERE user_id = $1 AND account_id = $2 AND is_authoritative AND opening_date IS NOT NULL"
        " AND closing_date <= $3",
        *(user_id, account_id, last_day),
    )
    stated = [Stated(**row) for row in rows]
    between = list(gaps(stated))
    if not between:
        return []
    moved = session.frame(
        "SELECT account_id, booking_date, sum(amount) AS amount, max(created_at) AS created_at FROM transactions"
        " WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry GROUP BY account_id, booking_date",
        *(user_id, account_id),
        schema={**MOVED, "amount": pl.Decimal(38, 5)},  # of all bookings of a day
    )
    totals = DayTotals(moved, pl.DataFrame(schema=FORMER))
    found = []
    for earlier, later in between:
        closings = _at_the_end([one for one in stated if one.closing_date == earlier.closing_date], totals)
        if len(closings) != 1:
            continue  # what follows within that day is told, or something of it is not
        closing, day = closings.pop(), earlier.closing_date
        missing = later.opening - closing - totals.between(day + DAY, later.opening_date - DAY)
        tells_day_again = day == later.opening_date and totals.between(day, day) == -missing
        if missing and not tells_day_again:
            day = max(earlier.closing_date, later.opening_date - DAY)
            identity = f"gap:{earlier.closing_date}:{later.opening_date}:{later.sequence or ''}#1"
            found.append(_Gap(identity=identity, day=day, amount=missing))
    return found


def _at_the_end(of_day: Sequence[Stated], totals: DayTotals) -> set[Decimal]:
    """The closing balances, among these statements that close on one day, that include every booking of that day.

    A statement proves it by its sum, alone or with those of the same day before it. The day on which it opens may
    be that of the statement before, whose bookings it then does not hold."""
    found = set()
    for one in of_day:
        first, opening = one.opening_date, one.opening
        for _ in range(min(len(of_day), OF_ONE_DAY_MAX)):
            if one.closing - opening in {totals.between(day, one.closing_date) for day in (first, first + DAY)}:
                found.add(one.closing)
            before = next((each for each in of_day if each.closing == opening), None)
            if first != one.closing_date or before is None:
                break
            first, opening = before.opening_date, before.opening
    return found


def _adjusting_rows(teller: Teller, account_id: str, missing: Mapping[str, _Gap]) -> pl.DataFrame:
    (account,) = teller.session.rows(
        "SELECT currency FROM accounts WHERE user_id = $1 AND id = $2", teller.user.id, account_id
    )
    common = {
        "user_id": teller.user.id,
        "account_id": account_id,
        "currency": account["currency"],
        "type": "other",
        "category": "OTHER",
        "purpose": ADJUSTMENT,
        "type_rule": "adjusting-entry",
        "category_rule": "adjusting-entry",
        "is_potential_duplicate": False,
        "is_adjusting_entry": True,
        "is_reversal": False,
        "is_return": False,
        "created_at": teller.now,
        "search_text": ADJUSTMENT.lower(),
        "reference_keys": "[]",
        "connection_id": teller.connection.id,
    }
    rows = [
        {**common, "id": id_, "booking_date": gap.day, "amount": gap.amount}
        | dict.fromkeys(("identity", "fingerprint", "batch_id"), gap.identity)
        for id_, gap in missing.items()
    ]
    return pl.DataFrame(rows, schema_overrides={"amount": MONEY})
