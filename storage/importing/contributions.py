"""What every import said, kept word for word, so that it can be undone and accounts can be rebuilt.

A contribution is what one batch of one import said of one account. Each wording of a booking is kept once, however many
overlapping answers of a bank repeat it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from storage.database import Row, Session, Transaction
from storage.importing.records import AccountRecord, StatementRecord, TransactionRecord

WORDINGS_AT_ONCE = 20_000  # kept in one go: bounds memory, changes no result
COLUMNS = "sequence, job_id, connection_id, account_id, source_id, batch_id, label, blocks, imported_at"
DECIMALS = frozenset({"amount", "original_amount", "opening", "closing"})
DAYS = frozenset({"booking_date", "value_date", "opening_date", "closing_date"})
DEFAULTS: Mapping[type, Mapping[str, object]] = {
    kind: {field.name: None if field.default is MISSING else field.default for field in fields(kind)}
    for kind in (AccountRecord, StatementRecord, TransactionRecord)
}


class ContributedBlock(NamedTuple):
    """One statement of a batch: account, bookings, what it says of the account as a whole."""

    account: AccountRecord
    transactions: Sequence[TransactionRecord]
    statement: StatementRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one batch of one import said of one account, without its bookings (`blocks_of` reads them)."""

    sequence: int
    job_id: str
    connection_id: str
    account_id: str
    source_id: str
    batch_id: str
    label: str | None
    blocks: Sequence[tuple[AccountRecord, StatementRecord, int]]
    imported_at: datetime


def remember(
    session: Transaction,
    *,
    user_id: str,
    job_id: str,
    connection_id: str,
    account_id: str,
    source_id: str,
    batch_id: str,
    label: str | None,
    blocks: Sequence[ContributedBlock],
    now: datetime,
    is_first: bool = False,
) -> None:
    """Keep what this batch says of the account, after everything that the user's imports have told before, or with
    `is_first` before all that."""
    heads = [
        {"account": _said(block.account), "statement": _said(block.statement), "bookings": len(block.transactions)}
        for block in blocks
    ]
    place = "coalesce(min(sequence), 1) - 1" if is_first else "coalesce(max(sequence), 0) + 1"
    sequence = session.rows(
        f"INSERT INTO contributions (user_id, {COLUMNS})"
        f" SELECT $1, {place}, $2, $3, $4, $5, $6, $7, $8, $9 FROM contributions WHERE user_id = $1"
        " RETURNING sequence",
        user_id,
        job_id,
        connection_id,
        account_id,
        source_id,
        batch_id,
        label,
        json.dumps(heads, ensure_ascii=False),
        now,
    )[0]["sequence"]
    records = [record for block in blocks for record in block.transactions]
    for start in range(0, len(records), WORDINGS_AT_ONCE):
        _keep(session, user_id, sequence, records[start : start + WORDINGS_AT_ONCE], start)


def _keep(
    session: Transaction, user_id: str, sequence: int, records: Sequence[TransactionRecord], first_position: int
) -> None:
    """The wordings that are new, and which booking of the contribution has which."""
    told = pl.DataFrame(
        {"wording": [json.dumps(_said(record), ensure_ascii=False) for record in records]},
        schema={"wording": pl.String},
    ).with_row_index("position", offset=first_position)
    with session.staged("told", told):
        session.execute(
            "INSERT INTO booking_wordings SELECT $1::TEXT, (SELECT coalesce(max(number), 0) FROM booking_wordings"
            " WHERE user_id = $1) + row_number() OVER (ORDER BY first), wording FROM"
            " (SELECT wording, min(position) AS first FROM told GROUP BY wording) AS once WHERE NOT EXISTS"
            " (SELECT 1 FROM booking_wordings AS known WHERE known.user_id = $1 AND known.wording = once.wording)",
            user_id,
        )
        session.execute(
            "INSERT INTO contribution_bookings SELECT $1::TEXT, $2::BIGINT, told.position, known.number FROM told"
            " JOIN booking_wordings AS known ON known.user_id = $1 AND known.wording = told.wording",
            user_id,
            sequence,
        )


def of_accounts(session: Session, user_id: str, account_ids: Sequence[str]) -> list[Contribution]:
    """What was told of these accounts, in the order in which it was told."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM contributions WHERE user_id = $1 AND account_id = ANY($2::TEXT[]) ORDER BY sequence",
        user_id,
        list(account_ids),
    )
    return [_contribution(row) for row in rows]


def of_job(session: Session, user_id: str, job_id: str) -> list[Contribution]:
    """What one import told."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM contributions WHERE user_id = $1 AND job_id = $2 ORDER BY sequence", user_id, job_id
    )
    return [_contribution(row) for row in rows]


def blocks_of(session: Session, user_id: str, contribution: Contribution) -> Iterator[ContributedBlock]:
    """The contribution with its bookings, as its source told them."""
    rows = session.rows(
        "SELECT known.wording FROM contribution_bookings AS seen JOIN booking_wordings AS known"
        " ON known.user_id = seen.user_id AND known.number = seen.booking"
        " WHERE seen.user_id = $1 AND seen.contribution = $2 ORDER BY seen.position",
        user_id,
        contribution.sequence,
    )
    bookings = iter(rows)
    for account, statement, count in contribution.blocks:
        yield ContributedBlock(
            account, [TransactionRecord(**_read(next(bookings)["wording"])) for _ in range(count)], statement
        )


def forget(session: Session, user_id: str, sequences: Sequence[int]) -> None:
    """These have never been told."""
    for sql in (
        "DELETE FROM contribution_bookings WHERE user_id = $1 AND contribution = ANY($2::BIGINT[])",
        "DELETE FROM contributions WHERE user_id = $1 AND sequence = ANY($2::BIGINT[])",
    ):
        session.execute(sql, user_id, list(sequences))
    session.execute(
        "DELETE FROM booking_wordings WHERE user_id = $1 AND number NOT IN"
        " (SELECT booking FROM contribution_bookings WHERE user_id = $1)",
        user_id,
    )


def sources_of_batches(session: Session, user_id: str, account_id: str) -> dict[str, str]:
    """Under which source's name for the account each batch told of it; empty where all used one."""
    rows = session.rows(
        "SELECT DISTINCT batch_id, source_id FROM contributions WHERE user_id = $1 AND account_id = $2"
        " AND EXISTS (SELECT 1 FROM contributions AS other WHERE other.user_id = $1 AND other.account_id = $2"
        " AND other.source_id <> $2)",
        user_id,
        account_id,
    )
    return {row["batch_id"]: row["source_id"] for row in rows}


def _said(record: AccountRecord | StatementRecord | TransactionRecord) -> dict[str, Any]:
    """What the record says, without what it leaves open."""
    said = {}
    for name, default in DEFAULTS[type(record)].items():
        value = getattr(record, name)
        if value != default:
            said[name] = str(value) if isinstance(value, Decimal | date) else value
    return said


def _read(wording: str | Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(wording) if isinstance(wording, str) else dict(wording)
    for name, value in said.items():
        if name in DECIMALS:
            said[name] = Decimal(value)
        elif name in DAYS:
            said[name] = date.fromisoformat(value)
        elif name == "references":
            said[name] = tuple(value)
    return said


def _contribution(row: Row) -> Contribution:
    heads = json.loads(row.pop("blocks"))
    blocks = [
        (AccountRecord(**_read(head["account"])), StatementRecord(**_read(head["statement"])), head["bookings"])
        for head in heads
    ]
    return Contribution(blocks=blocks, **row)
