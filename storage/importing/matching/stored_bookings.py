"""The stored bookings of an account with which a batch is compared."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any

import polars as pl
from msgspec import Struct

from analytics.frames import columns, frame_of
from analytics.records import TransactionRecord
from storage.database import Row, as_json
from storage.importing import contributions
from storage.importing.matching.booking_keys import CONTENT, FORMER, PROVIDER, fingerprint
from storage.importing.matching.windows import HAS_REPORTED, ReportedWindow, is_asked_for, is_whole
from storage.importing.spool import record_of, wording_of
from storage.importing.teller import FILES, Teller

WAITING = ("pending_transactions", "taken_back_transactions")  # rows that a booking may take over, with their ids
PRINT = ':"[0-9a-f]{32}"'  # a fingerprint in `claims`
FORMER_MAX = 8  # corrections of a row that are kept, the last ones
NEIGHBOUR_DAYS = 7  # around a batch: a pending row books within a week or lapses, and so far a booking's day moves
NEIGHBOURHOOD = timedelta(days=NEIGHBOUR_DAYS)
_SELECTED = columns(
    "id, identity, booking_date, amount, currency, created_at, fingerprint, references, claims, connection_id, batch_id"
)
_COLUMNS = ", ".join(_SELECTED).replace("references", "reference_keys AS references")
STORED: dict[str, pl.DataType] = {
    **_SELECTED,
    **columns("claim, reported_print, first_claim"),
    **dict.fromkeys(("is_other_source", "has_its_references", "is_whole", "is_asked_for", "is_notified"), pl.Boolean()),
}
"""What stored bookings are compared by. `references` is JSON. `reported_print` is the fingerprint of the last report
of the row by the batch's own source, `claim` the id that the row had there. `claims` holds all such ids that are
stored; if it is empty, `first_claim` is that of the source that reported the row first. `is_other_source` says that
this was another source. `has_its_references` says that the row's references may be of the batch's own source: of a
live source it is known that it reported the row, of files only if they reported it first, under a reference.
`is_notified` says that a notification reported the row first. Whether
the row's day is reported completely or asked for is said by the windows of the batch."""
NO_BOOKINGS = pl.DataFrame(schema=STORED)
_OTHER_FIELDS = ("provider_id", "references", "status", "merchant_name", "detail", "words")
_SAID = tuple(name for name in TransactionRecord.__struct_fields__ if name not in _OTHER_FIELDS)
_PARTED = "length(identity) - strpos(reverse(identity), '#')"  # the length of the key before the ordinal
BASE, ORDINAL = f"substr(identity, 1, {_PARTED})", f"substr(identity, {_PARTED} + 2)"
IN_FULL = f"id, identity, reference_keys, source_merchant_name, {', '.join(_SAID)}"


class Item(Struct, frozen=True):
    """An incoming booking: `place` is its position in the batch, `claim` its provider's id within the source, None
    where it has none. `is_notified` says that it is told by a notification."""

    record: TransactionRecord
    place: int
    claim: str | None
    is_notified: bool = False


class StoredRow(Struct, frozen=True, kw_only=True):
    """A stored booking for comparisons one by one; its other fields are columns of STORED."""

    id: str
    identity: str
    created_at: datetime
    record: TransactionRecord
    claim: str | None
    is_other_source: bool
    has_its_references: bool
    is_whole: bool
    is_notified: bool = False


def as_record(row: Row, **others: Any) -> TransactionRecord:
    """The record for a row of the store (IN_FULL), as if a source had just reported it; `others` are fields that a row
    does not keep."""
    return TransactionRecord(
        merchant_name=row["source_merchant_name"],
        references=tuple(json.loads(row["reference_keys"])),
        **{name: row[name] for name in _SAID},
        **others,
    )


def base_of(identity: str) -> pl.Expr:
    """The key in the column that `identity` names, without its ordinal (`key` of `key#2`), as an expression."""
    return pl.col(identity).str.strip_chars_end("0123456789").str.head(-1)


def is_base_without_reference() -> pl.Expr:
    """Whether the column `identity` is made of a provider's id or of the content, and so of no reference, as an
    expression."""
    return pl.any_horizontal(pl.col("identity").str.starts_with(kind) for kind in (PROVIDER, CONTENT))


def reported_prints(stored: pl.DataFrame) -> pl.DataFrame:
    """The rows (STORED) that several sources have reported, once for each fingerprint (`reported`) of a source's last
    report."""
    several = stored.filter(pl.col("claims").is_not_null())
    several = several.with_columns(reported=pl.col("claims").str.extract_all(PRINT)).explode("reported")
    return several.drop_nulls("reported").with_columns(pl.col("reported").str.slice(2, 32))


def former_tellings(stored: pl.DataFrame) -> pl.DataFrame:
    """The rows (STORED) that were corrected, once for each former `wording`, with the day and amount in it. A live
    source that reports the corrected row means another booking if it uses the former words."""
    corrected = stored.filter(pl.col("claims").str.contains(FORMER, literal=True))
    known = [json.loads(claims) for claims in corrected["claims"]]
    wordings = [[wording for key, wording in each.items() if key.startswith(FORMER)] for each in known]
    rows = corrected.with_columns(pl.Series("wording", wordings, dtype=pl.List(pl.String))).explode("wording")
    was = [record_of(wording) for wording in rows["wording"]]
    return rows.with_columns(
        pl.Series(name, [getattr(each, name) for each in was], dtype=STORED[name])
        for name in ("booking_date", "amount", "currency")
    )


def with_former(claims: str | None, was: TransactionRecord, until: datetime) -> str:
    """The `claims` of a row that is being corrected, with the wording `was`, which it has had `until` now, added; of
    former wordings the last FORMER_MAX stay."""
    wording = wording_of(was).decode()
    known = {key: value for key, value in json.loads(claims or "{}").items() if value != wording}
    gone = sorted(key for key in known if key.startswith(FORMER))[: 1 - FORMER_MAX]
    return as_json({**{key: known[key] for key in known if key not in gone}, f"{FORMER}{until}": wording})


class StoredBookings:
    """The stored bookings of one account, as they look to one source: a connection, or FILES."""

    def __init__(self, teller: Teller, account_id: str) -> None:
        self._teller, self._session, self._user_id = teller, teller.session, teller.user.id
        self._account_id = account_id

    def reported_elsewhere(self, source: str, stored: pl.DataFrame) -> set[str]:
        """The ids of those rows (STORED) that were reported for another account than `source`, as their sources alone
        would number accounts: two such accounts may have been merged into this one."""
        if stored.is_empty():
            return set()
        reported_by = contributions.sources_of_batches(self._session, self._user_id, self._account_id)
        if {self._account_id, *reported_by.values()} == {source}:
            return set()
        rows = stored.select("id", "batch_id").iter_rows()
        return {id_ for id_, batch_id in rows if reported_by.get(batch_id, self._account_id) != source}

    def around(self, table: str, reported: pl.DataFrame, windows: Sequence[ReportedWindow] = ()) -> pl.DataFrame:
        """The account's rows of the table on and between the days of these bookings and windows, and a week before and
        after, as STORED, the first stored first: apps know the older one of two equal rows. Adjusting entries are left
        out."""
        days = [day for each in windows for day in (each.first, each.last)]
        if not reported.is_empty():
            days += reported.select(pl.min("booking_date"), last=pl.max("booking_date")).row(0)
        if not days:
            return NO_BOOKINGS
        first, last = min(days) - NEIGHBOURHOOD, max(days) + NEIGHBOURHOOD
        return self._frame(table, windows, "booking_date BETWEEN $3 AND $4", first, last)

    @cached_property
    def _waiting(self) -> list[str]:
        """Those of the tables WAITING in which the account has rows."""
        asked = "SELECT id FROM {} WHERE user_id = $1 AND account_id = $2 LIMIT 1"
        return [name for name in WAITING if self._session.rows(asked.format(name), self._user_id, self._account_id)]

    @cached_property
    def _notifications(self) -> list[str]:
        """The batches that are notifications about the account."""
        return contributions.notifications(self._session, self._user_id, self._account_id)

    def every(self, table: str) -> pl.DataFrame:
        """All rows of the account in this table, as STORED, the first stored first."""
        return self._frame(table, (), "TRUE")

    def taken_back_after(self, day: date) -> pl.DataFrame:
        """The rows that the bank has taken back after this day, as STORED, the first stored first."""
        return self._frame("taken_back_transactions", (), "taken_back_at >= $3", day + timedelta(days=1))

    def highest(self, bases: pl.Series) -> dict[str, int]:
        """The highest ordinal now in use under each of these keys, among the account's bookings, pending
        ones and those taken back; keys without any are absent. The ordinal of a pending row that lapsed is free
        again."""
        tables = ("transactions", *self._waiting)
        each = (f"SELECT identity FROM {name} WHERE user_id = $1 AND account_id = $2" for name in tables)
        with self._session.stage("wanted", bases.unique().alias("base").to_frame()):
            rows = self._session.rows(
                f"SELECT {BASE} AS base, max({ORDINAL}::BIGINT) AS highest FROM ({' UNION ALL '.join(each)}) AS stored"
                f" WHERE {BASE} IN (SELECT base FROM wanted) GROUP BY 1",
                *(self._user_id, self._account_id),
            )
        return {row["base"]: row["highest"] for row in rows}

    def rows(self, table: str, stored: pl.DataFrame) -> list[StoredRow]:
        """The rows (STORED), in their order, for comparisons one by one."""
        said = self.records(stored["id"], table)
        columns = [name for name in StoredRow.__struct_fields__ if name != "record"]
        return [StoredRow(record=said[row["id"]], **row) for row in stored.select(columns).iter_rows(named=True)]

    def records(self, ids: pl.Series, table: str = "transactions") -> dict[str, TransactionRecord]:
        """The records of these rows, by id."""
        with self._session.stage("looked_at", ids.alias("id").to_frame()):
            rows = self._session.rows(
                f"SELECT {IN_FULL} FROM {table} WHERE user_id = $1 AND account_id = $2"
                " AND id IN (SELECT id FROM looked_at)",
                *(self._user_id, self._account_id),
            )
        return {row["id"]: as_record(row) for row in rows}

    def other_tellings(self, stored: pl.DataFrame) -> pl.DataFrame:
        """The rows (STORED) once for each other wording: those in which a source reported them last (`reported`, a
        fingerprint), and those before a correction (`wording`), with the day and amount of that time. The latter are
        left out for a live source that has reported the row itself."""
        if stored["claims"].null_count() == stored.height:
            return NO_BOOKINGS
        reported = reported_prints(stored).filter(pl.col("reported") != pl.col("fingerprint"))
        is_news = pl.col("reported_print").is_null() if self._teller.is_live else pl.lit(value=True)
        return pl.concat([reported, former_tellings(stored.filter(is_news))], how="diagonal")

    def other_words(self, tellings: pl.DataFrame) -> dict[str, list[TransactionRecord]]:
        """The records of these other wordings (of `other_tellings`), by the row's id."""
        by_print: dict[str, list[TransactionRecord]] = defaultdict(list)
        for record in contributions.of_days(self._session, self._user_id, tellings.drop_nulls("reported")):
            by_print[fingerprint(record)].append(record)
        found: dict[str, list[TransactionRecord]] = defaultdict(list)
        for id_, print_, wording in tellings.select("id", "reported", "wording").iter_rows():
            found[id_] += [record_of(wording)] if wording else by_print.get(print_, ())
        return found

    def _frame(
        self, table: str, windows: Sequence[ReportedWindow], condition: str, *parameters: object
    ) -> pl.DataFrame:
        if table in WAITING and table not in self._waiting:
            return NO_BOOKINGS
        rows = self._session.frame(
            f"SELECT {_COLUMNS} FROM {table} WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry"
            f" AND {condition}",
            *(self._user_id, self._account_id, *parameters),
            schema=_SELECTED,
        )
        if rows.is_empty():
            return NO_BOOKINGS
        is_file = pl.col("connection_id").is_in(list(self._teller.file_connections))
        source = pl.when(is_file).then(pl.lit(FILES)).otherwise("connection_id")
        own_id = pl.when(pl.col("identity").str.starts_with(PROVIDER)).then(
            base_of("identity").str.strip_prefix(PROVIDER)
        )
        first = pl.format("{}:{}", source, own_id.fill_null(""))
        name = f"{self._teller.source}:"
        is_ours = pl.col("first_claim").str.starts_with(name)
        first_claim = pl.when(pl.col("claims").is_null()).then(first)
        plan = (
            rows.lazy()
            .with_columns(first_claim=first_claim)
            .with_columns(
                claim=pl.when(is_ours).then("first_claim"),
                reported_print=pl.when(is_ours).then("fingerprint"),
                is_other_source=source != self._teller.source,
            )
        )
        several = rows.filter(pl.col("claims").is_not_null()).select("id", "claims").iter_rows()
        claims = ((id_, *claim) for id_, known in several for claim in json.loads(known).items())
        ours = [claim for claim in claims if claim[1].startswith(name)]
        if ours:
            schema = {"id": pl.String, "claim": pl.String, "reported_print": pl.String}
            last = pl.DataFrame(ours, schema=schema, orient="row").unique("id", keep="last")
            plan = plan.update(last.lazy(), on="id", how="left")
        is_first_under_reference = ~pl.col("is_other_source") & ~is_base_without_reference()
        plan = plan.with_columns(
            has_its_references=HAS_REPORTED if self._teller.is_live else is_first_under_reference,
            is_whole=is_whole(windows),
            is_asked_for=is_asked_for(windows),
            is_notified=pl.col("batch_id").is_in(self._notifications),
        )
        return frame_of(plan.select(*STORED).sort("created_at", pl.col("identity").str.len_chars(), "identity"))
