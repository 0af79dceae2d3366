"""What banks and files said of an account as a whole: its balance, and the gaps between statements."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

import polars as pl

from analytics.frames import MONEY
from storage import accounts
from storage.database import Row, Session
from storage.importing.gaps import Stated, gaps, number
from storage.importing.identity import transaction_id
from storage.importing.journal import Change
from storage.importing.records import StatementRecord

ADJUSTMENT = "Balance adjustment"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """Money that moved between two statements without a booking that we know."""

    identity: str
    day: date
    amount: Decimal


def keep(
    session: Session,
    *,
    user_id: str,
    account_id: str,
    connection_id: str,
    batch_id: str,
    stated: Sequence[tuple[StatementRecord, bool | None]],
    now: datetime,
) -> list[tuple[str, Change]]:
    """Remember the statements (each with whether it adds up), set the balance, and settle the gaps between them;
    the adjusting entries that came and went."""
    for position, (statement, adds_up) in enumerate(stated):
        _keep_one(session, user_id, account_id, connection_id, batch_id, position, statement, adds_up, now)
    _set_balance(session, user_id, account_id)
    return _settle_gaps(session, user_id, account_id, connection_id, now)


def _keep_one(
    session: Session,
    user_id: str,
    account_id: str,
    connection_id: str,
    batch_id: str,
    position: int,
    statement: StatementRecord,
    adds_up: bool | None,
    now: datetime,
) -> None:
    if statement.closing is None and statement.opening is None:
        return
    session.execute(
        "INSERT INTO statements SELECT $1::TEXT, $2::TEXT, $3::TEXT, $4::INTEGER, $5::TEXT, $6::DECIMAL(20,5),"
        " $7::DATE, $8::DECIMAL(20,5), $9::DATE, $10::BOOLEAN, $11::TEXT, $12::TIMESTAMP WHERE NOT EXISTS"
        " (SELECT 1 FROM statements WHERE user_id = $1 AND account_id = $2 AND sequence IS NOT DISTINCT FROM $5"
        " AND opening IS NOT DISTINCT FROM $6::DECIMAL(20,5) AND opening_date IS NOT DISTINCT FROM $7"
        " AND closing IS NOT DISTINCT FROM $8::DECIMAL(20,5) AND closing_date IS NOT DISTINCT FROM $9)",
        user_id,
        account_id,
        batch_id,
        position,
        statement.sequence,
        statement.opening,
        statement.opening_date,
        statement.closing,
        statement.closing_date or now.date(),
        statement.is_authoritative and adds_up is True,
        connection_id,
        now,
    )


def _set_balance(session: Session, user_id: str, account_id: str) -> None:
    """The closing balance of the newest statement; see `_last_of_a_day` for several on one day."""
    rows = session.rows(
        "SELECT opening, closing, closing_date, sequence, is_authoritative, received_at, position FROM statements"
        " WHERE user_id = $1 AND account_id = $2 AND closing IS NOT NULL AND closing_date ="
        " (SELECT max(closing_date) FROM statements WHERE user_id = $1 AND account_id = $2 AND closing IS NOT NULL)",
        user_id,
        account_id,
    )
    if rows:
        newest = _last_of_a_day(rows)
        accounts.set_balance(
            session,
            user_id=user_id,
            account_id=account_id,
            balance=newest["closing"],
            day=newest["closing_date"],
        )


def _last_of_a_day(rows: Sequence[Row]) -> Row:
    """Of the statements that close on one day the one after which nothing follows, in whatever order they came: the
    day's statement before an interim report that does not prove its balance, then the one whose closing balance opens
    no other, then the highest number, then the last received."""

    def order(row: Row) -> tuple[bool, bool, tuple[tuple[int, ...], str], datetime, int]:
        is_last = not any(
            other is not row and other["opening"] == row["closing"] and other["closing"] != row["closing"]
            for other in rows
        )
        return row["is_authoritative"], is_last, number(row["sequence"]), row["received_at"], row["position"]

    return max(rows, key=order)


def _settle_gaps(
    session: Session, user_id: str, account_id: str, connection_id: str, now: datetime
) -> list[tuple[str, Change]]:
    """Write, resize or remove adjusting entries so that every gap between statements is explained, and no more."""
    missing = {transaction_id(account_id, gap.identity): gap for gap in _gaps(session, user_id, account_id)}
    stored = {
        row["id"]: row["amount"]
        for row in session.rows(
            "SELECT id, amount FROM transactions WHERE user_id = $1 AND account_id = $2 AND is_adjusting_entry",
            user_id,
            account_id,
        )
    }
    stale = [id_ for id_, amount in stored.items() if id_ not in missing or missing[id_].amount != amount]
    fresh = [id_ for id_, gap in missing.items() if stored.get(id_) != gap.amount]
    if stale:
        session.execute("DELETE FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, stale)
    if fresh:
        session.append(
            "transactions", _adjusting_rows(session, user_id, account_id, connection_id, missing, fresh, now)
        )
    changes: list[tuple[str, Change]] = [(id_, "removed") for id_ in stale if id_ not in missing]
    changes += [(id_, "modified" if id_ in stored else "added") for id_ in fresh]
    return changes


def _gaps(session: Session, user_id: str, account_id: str) -> list[_Gap]:
    rows = session.rows(
        "SELECT sequence, opening, opening_date, closing, closing_date FROM statements"
        " WHERE user_id = $1 AND account_id = $2 AND is_authoritative AND opening_date IS NOT NULL",
        user_id,
        account_id,
    )
    found = []
    for earlier, later in gaps([Stated(**row) for row in rows]):
        between = session.rows(
            "SELECT coalesce(sum(amount), 0) AS total FROM transactions WHERE user_id = $1 AND account_id = $2"
            " AND NOT is_adjusting_entry AND booking_date > $3 AND booking_date < $4",
            user_id,
            account_id,
            earlier.closing_date,
            later.opening_date,
        )[0]["total"]
        missing = later.opening - earlier.closing - between
        if missing:
            day = max(earlier.closing_date, later.opening_date - timedelta(days=1))
            identity = f"gap:{earlier.closing_date}:{later.opening_date}:{later.sequence or ''}#1"
            found.append(_Gap(identity=identity, day=day, amount=missing))
    return found


def _adjusting_rows(
    session: Session,
    user_id: str,
    account_id: str,
    connection_id: str,
    missing: dict[str, _Gap],
    ids: Sequence[str],
    now: datetime,
) -> pl.DataFrame:
    currency = session.rows("SELECT currency FROM accounts WHERE user_id = $1 AND id = $2", user_id, account_id)[0][
        "currency"
    ]
    return pl.DataFrame(
        {
            "id": list(ids),
            "booking_date": [missing[id_].day for id_ in ids],
            "amount": [missing[id_].amount for id_ in ids],
            "identity": [missing[id_].identity for id_ in ids],
        },
        schema_overrides={"amount": MONEY},
    ).with_columns(
        user_id=pl.lit(user_id),
        account_id=pl.lit(account_id),
        currency=pl.lit(currency),
        type=pl.lit("other"),
        category=pl.lit("OTHER"),
        purpose=pl.lit(ADJUSTMENT),
        type_rule=pl.lit("adjusting-entry"),
        category_rule=pl.lit("adjusting-entry"),
        is_potential_duplicate=False,
        is_adjusting_entry=True,
        is_reversal=False,
        is_return=False,
        created_at=pl.lit(now),
        search_text=pl.lit(ADJUSTMENT.lower()),
        fingerprint=pl.col("identity"),
        reference_keys=pl.lit("[]"),
        connection_id=pl.lit(connection_id),
        batch_id=pl.col("identity"),
    )
