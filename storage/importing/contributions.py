"""Contributions: what every import reported, kept word for word, so that it can be undone and accounts can be rebuilt.

A contribution is what one batch of one import reported about one account. Each wording of a booking (its record as
JSON) is stored once, however many overlapping answers of a bank repeat it.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import islice, zip_longest

import msgspec
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.frames import frame_of
from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from storage.database import Session, Transaction, add_row, names_of
from storage.importing.batches import AccountStatement
from storage.importing.spool import CHUNK_ROWS, Spool, record_of
from storage.importing.statements import BY_THE_PERSON
from storage.importing.teller import Teller

SAID_OF = "said:"  # how the key of a balance begins that the user says; the id of its account follows
NOTIFICATION = '%"is_notification":true%'  # in the blocks of a contribution
PENDING = '%"status":"pending"%'  # in the wording of a booking; a quotation mark in one of its texts has a backslash


class ContributedBlock(msgspec.Struct, frozen=True):
    """One statement of a batch: its account, what it says about the account as a whole, and its number of bookings."""

    account: AccountRecord
    statement: StatementRecord
    bookings: int


_blocks_as_json = msgspec.json.Encoder().encode
_blocks_of_json = msgspec.json.Decoder(list[ContributedBlock]).decode


class Contribution(Struct, frozen=True, kw_only=True):
    """What one batch of one import reported about one account, without its bookings (`records` reads them).
    `account_id` is the account that has the bookings now, `source_id` the id that the account would have by its source
    alone, `told_of` the account that had the bookings before any merge (None: never merged, or told since)."""

    sequence: int
    job_id: str
    connection_id: str
    account_id: str
    source_id: str
    batch_id: str
    label: str | None
    blocks: Sequence[ContributedBlock]
    imported_at: datetime
    told_of: str | None = None


def corrected(session: Session, user_id: str, account_id: str) -> dict[str, str]:
    """The ids of bookings of the account of which some file said that the bank has deleted them, or replaced them by
    another, with its id, else ""."""
    rows = session.rows(
        "SELECT blocks FROM contributions WHERE user_id = $1 AND account_id = $2 AND strpos(blocks, $3) > 0",
        *(user_id, account_id, '"corrected":['),
    )
    said = [block.statement for row in rows for block in _blocks_of_json(row["blocks"])]
    return {id_: other for each in said for id_, other in corrections_of(each)}


def said_balances(session: Session, user_id: str) -> dict[str, dict[date, Decimal]]:
    """What the user said that accounts, by their ids, held at the end of days; of one day the last."""
    rows = session.rows(
        "SELECT account_id, blocks FROM contributions WHERE user_id = $1 AND strpos(blocks, $2) > 0 ORDER BY sequence",
        *(user_id, f'"sequence":"{BY_THE_PERSON}"'),
    )
    said: dict[str, dict[date, Decimal]] = {}
    for row in rows:
        for block in _blocks_of_json(row["blocks"]):
            one = block.statement
            if one.sequence == BY_THE_PERSON and one.closing is not None and one.closing_date is not None:
                said.setdefault(row["account_id"], {})[one.closing_date] = one.closing
    return said


def key_of_said(account_id: str) -> str:
    """The key of the source by which the user says what this account held."""
    return f"{SAID_OF}{account_id}"


def said_of(contribution: Contribution) -> str | None:
    """The id of the account of which the user said a balance by this contribution; None for any other one."""
    key = contribution.blocks[0].account.stable_key
    return key.removeprefix(SAID_OF) if key.startswith(SAID_OF) else None


def corrections_of(said: StatementRecord) -> Iterator[tuple[str, str]]:
    """The ids of bookings that a statement says to be corrected, each with that of the other, else ""; an older version
    has kept none."""
    return zip_longest(said.corrected, said.replaced_by, fillvalue="")


def issues(
    session: Session, user_id: str, account_id: str, said: StatementRecord, now: datetime
) -> list[StatementRecord]:
    """What files that came until now have said of this very statement: its number, days and opening balance are the
    same, and it is known when the bank wrote each. Empty where it is not known of the statement itself."""
    if said.issued_at is None or said.opening_date is None:
        return []
    rows = session.rows(
        "SELECT blocks FROM contributions WHERE user_id = $1 AND account_id = $2 AND imported_at <= $3"
        " AND strpos(blocks, $4) > 0 AND strpos(blocks, $5) > 0",
        *(user_id, account_id, now, '"issued_at":"', f'"opening_date":"{said.opening_date}"'),
    )
    same = ("sequence", "opening", "opening_date", "closing_date")
    told = [block.statement for row in rows for block in _blocks_of_json(row["blocks"])]
    return [
        each for each in told if each.issued_at and all(getattr(each, name) == getattr(said, name) for name in same)
    ]


def newest_issues(
    teller: Teller, account_id: str, reported: Sequence[AccountStatement]
) -> tuple[list[AccountStatement], list[StatementRecord]]:
    """These statements without those of which a newer issue came before, and what older issues said of the rest:
    whatever the order of files, the bank's last word counts."""
    newest, older = [], []
    for each in reported:
        issued_at = each.statement.issued_at or ""
        known = issues(teller.session, teller.user.id, account_id, each.statement, teller.now)
        if all((other.issued_at or "") <= issued_at for other in known):
            newest.append(each)
            older += [other for other in known if (other.issued_at or "") < issued_at]
    return newest, older


def remember(
    session: Transaction,
    reported: Sequence[AccountStatement],
    spool: Spool,
    *,
    user_id: str,
    is_first: bool = False,
    **named: str | datetime | None,
) -> None:
    """Store what a batch reports about an account, as the user's latest contribution or, with `is_first`, as the
    earliest; `named` are the other fields of a Contribution."""
    place = "coalesce(min(sequence), 1) - 1" if is_first else "coalesce(max(sequence), 0) + 1"
    free = session.rows(f"SELECT {place} AS sequence FROM contributions WHERE user_id = $1", user_id)
    sequence = int(free[0]["sequence"])
    blocks = _blocks_as_json([ContributedBlock(each.account, each.statement, len(each.places)) for each in reported])
    add_row(session, "contributions", user_id=user_id, sequence=sequence, blocks=blocks.decode(), **named)
    bookings = spool.keys(each.places for each in reported).select("place", "digest")
    numbers = _keep_wordings(session, user_id, bookings, spool)
    session.append(
        "contribution_bookings",
        bookings.join(numbers, on="digest", how="left", maintain_order="left").select(
            "booking", position=pl.int_range(pl.len()), user_id=pl.lit(user_id), contribution=pl.lit(sequence)
        ),
    )


def forget_repeat(
    teller: Teller, account_id: str, source_id: str, reported: list[AccountStatement]
) -> list[AccountStatement]:
    """Delete the last contribution of a live source to an account, with what it stated, if it only repeats the one
    before, so that any number of syncs without news leaves one contribution. Returns the present statements, which then
    also speak for the days of the deleted one."""
    session, user_id = teller.session, teller.user.id
    latest = _where(session, "account_id = $2 ORDER BY sequence DESC LIMIT 2", user_id, account_id)
    if len(latest) < 2:
        return reported
    last, before = latest
    if any((each.connection_id, each.source_id) != (teller.connection.id, source_id) for each in (last, before)):
        return reported
    days = _days_of_both(reported, last, before)
    if days is None or not _repeats(session, user_id, last, before):
        return reported
    _remove(session, user_id, [last])
    session.execute(
        "DELETE FROM statements WHERE user_id = $1 AND account_id = $2 AND batch_id = $3 AND received_at = $4",
        *(user_id, account_id, last.batch_id, last.imported_at),
    )
    return [replace(each, statement=replace(each.statement, **days)) for each in reported]


def _days_of_both(
    reported: Sequence[AccountStatement], last: Contribution, before: Contribution
) -> dict[str, date] | None:
    """The field `told_from` of the present statement, moved back to the first day for which only the `last`
    contribution, and not the one `before` it, spoke, so that the statement can replace `last`. Empty where
    contributions state no days; None where the present report states none, or is more than one statement."""
    first, until = _statement_of(last).told_from, _statement_of(before).told_until
    if first is None or until is None:
        return {}
    if len(reported) != 1 or (now := reported[0].statement.told_from) is None:
        return None
    return {"told_from": min(now, max(first, until + timedelta(days=1)))}


def _repeats(session: Session, user_id: str, last: Contribution, before: Contribution) -> bool:
    """Whether a contribution changed nothing and only repeats the one before: as many bookings of each wording, the
    same pending ones, the same balance."""
    if len(last.blocks) != 1 or len(before.blocks) != 1 or last.blocks[0].account != before.blocks[0].account:
        return False
    if _but_for_days(_statement_of(last)) != _but_for_days(_statement_of(before)):
        return False
    if (last.batch_id, last.imported_at) == (before.batch_id, before.imported_at):
        return False  # deleting the statements of one would delete those of the other
    if session.rows("SELECT job_id FROM journal WHERE user_id = $1 AND job_id = $2 LIMIT 1", user_id, last.job_id):
        return False
    rows = session.rows(
        "SELECT count(*) AS others FROM (SELECT booking,"
        " sum(CASE WHEN contribution = $2 THEN 1 ELSE 0 END) AS again,"
        " sum(CASE WHEN contribution = $3 THEN 1 ELSE 0 END) AS said"
        " FROM contribution_bookings WHERE user_id = $1 AND contribution IN ($2, $3) GROUP BY booking) AS told"
        " JOIN booking_wordings AS known ON known.user_id = $1 AND known.number = told.booking"
        f" WHERE told.again <> told.said AND (told.again > 0 OR known.wording LIKE '{PENDING}')",
        *(user_id, last.sequence, before.sequence),
    )
    return int(rows[0]["others"]) == 0


def _but_for_days(statement: StatementRecord) -> tuple[StatementRecord, bool]:
    """The statement without its days, and whether it states days."""
    has_days = statement.told_from is not None
    return replace(statement, closing_date=None, told_from=None, told_until=None, issued_at=None), has_days


def _statement_of(contribution: Contribution) -> StatementRecord:
    return contribution.blocks[0].statement


def _keep_wordings(session: Transaction, user_id: str, bookings: pl.DataFrame, spool: Spool) -> pl.DataFrame:
    """Store the wordings of these bookings (`place`, `digest`) that are new, each under a number, and return the
    numbers of all: `digest`, `booking`."""
    with session.stage("told", bookings):
        known = session.frame(
            "SELECT digest, number AS booking FROM booking_wordings WHERE user_id = $1"
            " AND digest IN (SELECT digest FROM told)",
            user_id,
            schema={"digest": pl.String(), "booking": pl.Int64()},
        )
    unknown = bookings.lazy().join(known.lazy(), on="digest", how="anti", maintain_order="left")
    new = frame_of(unknown.unique("digest", keep="first", maintain_order=True))
    if new.is_empty():
        return known
    [row] = session.rows("SELECT coalesce(max(number), 0) AS highest FROM booking_wordings WHERE user_id = $1", user_id)
    new = new.with_columns(booking=pl.int_range(1, pl.len() + 1) + row["highest"]).sort("place")
    done = 0
    for places, wordings in spool.pieces(new["place"].to_list()):
        texts = pl.Series("wording", [wording.decode() for wording in wordings], dtype=pl.String)
        piece = new.slice(done, len(places)).select("digest", texts, number="booking", user_id=pl.lit(user_id))
        session.append("booking_wordings", piece)
        done += len(places)
    return pl.concat([known, new.select(known.columns)])


def of_accounts(session: Session, user_id: str, account_ids: Sequence[str]) -> list[Contribution]:
    """The contributions to these accounts, in the order in which they were made."""
    return _where(session, "account_id = ANY($2::TEXT[]) ORDER BY sequence", user_id, list(account_ids))


def notifications(session: Session, user_id: str, account_id: str) -> list[str]:
    """The batches of notifications about the account."""
    rows = session.rows(
        "SELECT DISTINCT batch_id FROM contributions WHERE user_id = $1 AND account_id = $2 AND blocks LIKE $3",
        *(user_id, account_id, NOTIFICATION),
    )
    return [row["batch_id"] for row in rows]


def told_on(
    session: Session, user_id: str, account_id: str, day: date, *, besides: str, by_notifications: bool
) -> list[TransactionRecord]:
    """The bookings of this day that notifications about the account tell, or statements, but for this batch: each as
    often as one of them does."""
    rows = session.rows(
        "SELECT wording, max(n) AS n FROM (SELECT seen.contribution, known.wording, count(*) AS n"
        " FROM contributions AS told JOIN contribution_bookings AS seen"
        " ON seen.user_id = told.user_id AND seen.contribution = told.sequence"
        " JOIN booking_wordings AS known ON known.user_id = told.user_id AND known.number = seen.booking"
        " WHERE told.user_id = $1 AND told.account_id = $2 AND told.batch_id <> $3 AND (told.blocks LIKE $4) = $5"
        " AND known.wording LIKE $6 GROUP BY seen.contribution, known.wording) AS each_told GROUP BY wording",
        *(user_id, account_id, besides, NOTIFICATION, by_notifications, f'%"booking_date":"{day}"%'),
    )
    return [record_of(row["wording"]) for row in rows for _ in range(row["n"])]


def last(session: Session, user_id: str) -> int:
    """The sequence of the user's latest contribution; 0 where there is none."""
    rows = session.rows("SELECT coalesce(max(sequence), 0) AS last FROM contributions WHERE user_id = $1", user_id)
    return int(rows[0]["last"])


def next_moment(session: Session, user_id: str, now: datetime) -> datetime:
    """When an import of the user is made: now, or right after the latest one where the clock was ahead then, since what
    comes later is told later."""
    [row] = session.rows("SELECT max(imported_at) AS latest FROM contributions WHERE user_id = $1", user_id)
    latest = row["latest"]
    return now if latest is None or latest <= now else latest + timedelta(microseconds=1)


def of_job(session: Session, user_id: str, job_id: str) -> list[Contribution]:
    """The contributions of one import (`job_id`), in the order in which they were made."""
    return _where(session, "job_id = $2 ORDER BY sequence", user_id, job_id)


def records(session: Session, user_id: str, contribution: Contribution) -> Iterator[Record]:
    """The records of a contribution in their order, as its source reported them; read in pieces."""
    bookings = bookings_of(session, user_id, [contribution])
    for block in contribution.blocks:
        yield block.account
        yield from islice(bookings, block.bookings)
        yield block.statement


def bookings_of(session: Session, user_id: str, reported: Sequence[Contribution]) -> Iterator[TransactionRecord]:
    """The bookings of these contributions, one after the other, in their order; read in pieces."""
    place, sequences = (-1, -1), [each.sequence for each in reported]
    while True:
        rows = session.rows(
            "SELECT seen.contribution, seen.position, known.wording FROM contribution_bookings AS seen"
            " JOIN booking_wordings AS known ON known.user_id = seen.user_id AND known.number = seen.booking"
            " WHERE seen.user_id = $1 AND seen.contribution = ANY($2::BIGINT[])"
            " AND (seen.contribution, seen.position) > ($3, $4) ORDER BY seen.contribution, seen.position LIMIT $5",
            *(user_id, sequences, *place, CHUNK_ROWS),
        )
        yield from (record_of(row["wording"]) for row in rows)
        if len(rows) < CHUNK_ROWS:
            return
        place = (rows[-1]["contribution"], rows[-1]["position"])


def of_days(session: Transaction, user_id: str, days: pl.DataFrame) -> list[TransactionRecord]:
    """The records of the user's bookings of these days (`booking_date`), in every wording in which sources reported
    them, in no order."""
    day = pl.format('%"booking_date":"{}"%', pl.col("booking_date").dt.to_string("%Y-%m-%d"))
    with session.stage("wanted", days.select(pattern=day).unique()):
        rows = session.rows(
            "SELECT DISTINCT known.wording FROM booking_wordings AS known"
            " JOIN wanted ON known.wording LIKE wanted.pattern WHERE known.user_id = $1",
            user_id,
        )
    return [record_of(row["wording"]) for row in rows]


def forget(session: Session, user_id: str, reported: Sequence[Contribution]) -> None:
    """Delete these contributions, and the wordings that no other one has. What was stored because of them stays until
    the account is rebuilt."""
    _remove(session, user_id, reported)
    session.execute(
        "DELETE FROM booking_wordings WHERE user_id = $1 AND number NOT IN"
        " (SELECT booking FROM contribution_bookings WHERE user_id = $1)",
        user_id,
    )


def _remove(session: Session, user_id: str, reported: Sequence[Contribution]) -> None:
    for table, sequence in (("contribution_bookings", "contribution"), ("contributions", "sequence")):
        session.execute(
            f"DELETE FROM {table} WHERE user_id = $1 AND {sequence} = ANY($2::BIGINT[])",
            *(user_id, [each.sequence for each in reported]),
        )


def sources_of_batches(session: Session, user_id: str, account_id: str) -> dict[str, str]:
    """The source account (`source_id`) as which each batch reported the account, by batch; empty if it was always the
    account itself."""
    rows = session.rows(
        "SELECT DISTINCT batch_id, source_id FROM contributions WHERE user_id = $1 AND account_id = $2"
        " AND EXISTS (SELECT 1 FROM contributions AS other WHERE other.user_id = $1 AND other.account_id = $2"
        " AND other.source_id <> $2)",
        *(user_id, account_id),
    )
    return {row["batch_id"]: row["source_id"] for row in rows}


def _where(session: Session, condition: str, *parameters: object) -> list[Contribution]:
    """The user's contributions that meet the condition; `parameters` are the user's id and the values in the
    condition."""
    rows = session.rows(
        f"SELECT {names_of(Contribution)} FROM contributions WHERE user_id = $1 AND {condition}", *parameters
    )
    return [Contribution(blocks=_blocks_of_json(row.pop("blocks")), **row) for row in rows]
