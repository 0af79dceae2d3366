"""What one batch does to one account: bookings compared, written and claimed, pending ones ended, balances kept."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from storage import journal
from storage.connections import StoredConnection
from storage.database import Transaction, as_json
from storage.importing import statements
from storage.importing.batches import AccountStatement
from storage.importing.derivation import Derivation, write
from storage.importing.matching.booking_keys import transaction_id
from storage.importing.matching.certain_matches import (
    MONEY,
    certain,
    claims_of,
    left_over,
    numbered,
    prepared,
    undecided,
)
from storage.importing.matching.compared_rows import Item
from storage.importing.matching.counted_merge import match_booked
from storage.importing.matching.pending_bookings import match_pending
from storage.importing.matching.stored_bookings import Reach, StoredBookings, days_around
from storage.importing.matching.stored_index import FILES
from storage.importing.rows import incoming
from storage.importing.spool import Spool

WRITTEN = ("place", "stored_id", "identity", "fingerprint", "created_at", "claims", *MONEY)
MODIFIED = pl.col("told_print") != pl.col("fingerprint")
NEWLY_CLAIMED = (
    pl.col("claim").is_not_null() & pl.col("told_print").is_null() & pl.col("own_id").ne_missing(pl.col("stored_id"))
)
FOUND = {"place": pl.UInt32(), "stored_id": pl.String(), "takes_over": pl.Boolean()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """What the import of one batch did to one account."""

    account_id: str
    new: int
    known: int


class AccountBatch:
    """One account (`account_id`) while one batch is merged into it; `changes` are the journal's."""

    def __init__(
        self,
        session: Transaction,
        *,
        user_id: str,
        account_id: str,
        connection: StoredConnection,
        batch_id: str,
        spool: Spool,
        derivation: Derivation,
        file_connections: Collection[str],
        now: datetime,
    ) -> None:
        self.changes: list[pl.DataFrame] = []
        self._session = session
        self._user_id = user_id
        self.account_id = account_id
        self._connection = connection
        self._batch_id = batch_id
        self._spool = spool
        self._derivation = derivation
        self._now = now
        self._file_connections = file_connections
        self._source = FILES if connection.id in file_connections else connection.id
        self._stored = StoredBookings(
            session, user_id=user_id, account_id=account_id, file_connections=file_connections
        )

    def merge(self, source: str, told: Sequence[AccountStatement]) -> AccountReport:
        """Bookings, balances and gaps of the account after what this source reported."""
        report = self._merge_booked(source, told)
        waiting = self._keys(told, ~pl.col("is_booked"))
        is_complete = any(each.statement.is_pending_complete for each in told)
        if is_complete or not waiting.is_empty():
            booked = self._keys(told, "is_booked")["provider_id"].drop_nulls().implode()
            still = waiting.filter(~pl.col("provider_id").is_in(booked).fill_null(value=False))
            self._merge_pending(prepared(still, self._source), is_complete=is_complete)
        changes = statements.keep(
            self._session,
            user_id=self._user_id,
            account_id=self.account_id,
            connection_id=self._connection.id,
            batch_id=self._batch_id,
            stated=[(each.statement, each.adds_up) for each in told],
            file_connections=self._file_connections,
            now=self._now,
        )
        self.changes.append(pl.DataFrame(changes, schema=journal.CHANGES, orient="row"))
        return report

    def settled(self, told: Sequence[AccountStatement]) -> tuple[int, Reach | None] | None:
        """How many bookings would be known, and within which reach they are found, if all of this came once more; None
        unless keys alone would tell all of them and nothing would be written."""
        keys = self._spool.keys(each.places for each in told)
        is_complete = any(each.statement.is_pending_complete for each in told)
        if is_complete or not keys["is_booked"].all() or keys["own_id"].null_count() < keys.height:
            return None  # our own ids are looked for in all accounts
        if keys.is_empty():
            return 0, None
        booked = prepared(keys, self._source)
        stored = self._stored.around("transactions", booked)
        found = certain(booked, stored, self._source)
        takes_over = pl.lit(value=False).alias("takes_over")
        known = self._with_rows(booked, found.with_columns(takes_over), stored.with_columns(takes_over))
        if not known["is_known"].all() or not known.filter(MODIFIED | NEWLY_CLAIMED).is_empty():
            return None
        first, last = days_around(booked)
        return known.height, Reach(first, last, is_far=booked["claim"].null_count() < booked.height)

    def _keys(self, told: Sequence[AccountStatement], kept: pl.Expr | str) -> pl.DataFrame:
        return self._spool.keys(each.places for each in told).filter(kept)

    def _merge_booked(self, source: str, told: Sequence[AccountStatement]) -> AccountReport:
        """New bookings and pending ones that booked are written, reworded ones are written again; of what is known as
        it is reported nothing is derived."""
        are_days_complete = any(each.statement.are_days_complete for each in told)
        booked = prepared(self._keys(told, "is_booked"), self._source)
        new, known = self._compared(source, booked, are_days_complete=are_days_complete)
        report = AccountReport(account_id=self.account_id, new=new.height, known=known.height)
        modified = known.filter(MODIFIED)
        self._claim(known.filter(NEWLY_CLAIMED))
        self._delete("pending_transactions", new["stored_id"].drop_nulls())
        self._delete("transactions", modified["stored_id"])
        new, modified = _to_write(new), _to_write(modified)
        del known  # what is written takes long, and needs the room
        self._write("transactions", new, "added")
        self._write("transactions", modified, "modified")
        return report

    def _compared(
        self, source: str, told: pl.DataFrame, *, are_days_complete: bool
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The bookings that are new, or were pending until now, and those that are known."""
        stored, waiting = self._stored.around("transactions", told), self._stored.around("pending_transactions")
        found = self._found(source, told, stored, waiting, are_days_complete=are_days_complete)
        takes_over = pl.lit(value=True).alias("takes_over")
        rows = pl.concat([stored.with_columns(~takes_over), waiting.with_columns(takes_over)])
        matched = self._with_rows(told, found, rows)
        return _numbered(matched.filter(~pl.col("is_known")), stored), matched.filter("is_known")

    def _found(
        self, source: str, told: pl.DataFrame, stored: pl.DataFrame, waiting: pl.DataFrame, *, are_days_complete: bool
    ) -> pl.DataFrame:
        """`place` and `stored_id` of the bookings that are rows already; `takes_over` where that was pending until now.
        What keys do not decide is looked at one by one."""
        known = certain(told, stored, self._source)
        rest, free = left_over(told, stored, known)
        rest, maybe = undecided(rest, pl.concat([free, waiting]), self._source)
        found = known.with_columns(takes_over=pl.lit(value=False))
        if rest.is_empty():
            return found
        reworded = maybe["id"].to_list() if are_days_complete else self._stored.told_elsewhere(source, told)
        matches = match_booked(
            self._items(rest),
            self._stored.rows("transactions", maybe["id"]),
            self._stored.rows("pending_transactions", maybe["id"]),
            source=self._source,
            reworded=set(reworded),
        )
        pairs = [(each.item.place, each.stored.id, each.takes_over) for each in matches if each.stored]
        return pl.concat([found, pl.DataFrame(pairs, schema=FOUND, orient="row")])

    def _with_rows(self, told: pl.DataFrame, found: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
        """The bookings with what is stored of the row that each is, and what its source last reported of it, by this
        very id (`told_print`)."""
        last = claims_of(rows.filter(~pl.col("takes_over")), self._source)
        as_stored = rows.select(
            "identity",
            "created_at",
            "claims",
            "takes_over",
            first_claim="claim",
            first_print="told_print",
            stored_id="id",
        )
        return (
            told.drop("is_part")
            .join(found, on="place", how="left", maintain_order="left")
            .join(as_stored, on=["stored_id", "takes_over"], how="left", maintain_order="left")
            .join(
                last.select("claim", "told_print", stored_id="id"),
                on=["stored_id", "claim"],
                how="left",
                maintain_order="left",
            )
            .with_columns(is_known=pl.col("stored_id").is_not_null() & ~pl.col("takes_over"))
        )

    def _merge_pending(self, told: pl.DataFrame, *, is_complete: bool) -> None:
        """What is still pending keeps its id; a complete set ends all others."""
        known = self._stored.around("pending_transactions")
        around = self._stored.around("transactions", told)
        _, booked = undecided(told, around, self._source)
        matches = match_pending(
            self._items(told),
            self._stored.rows("pending_transactions", known["id"]),
            self._stored.rows("transactions", booked["id"]),
            source=self._source,
        )
        pairs = [(each.item.place, each.stored.id if each.stored else None, False) for each in matches]
        found = pl.DataFrame(pairs, schema=FOUND, orient="row")
        waiting = told.filter(pl.col("place").is_in(found["place"].implode()))
        matched = self._with_rows(waiting, found, known.with_columns(takes_over=pl.lit(value=False)))
        new, kept = matched.filter(~pl.col("is_known")), matched.filter("is_known")
        new = _numbered(new, pl.concat([known, around]))  # it keeps its id when it books: no booked one may have it
        self._delete("pending_transactions", known["id"] if is_complete else kept["stored_id"])
        self._write("pending_transactions", _to_write(pl.concat([kept.drop("base"), new])))

    def _items(self, told: pl.DataFrame) -> list[Item]:
        keys = told.select("place", "base", "fingerprint", "claim").rows()
        records = self._spool.records(told["place"].to_list())
        return [Item(record, *of_booking) for record, of_booking in zip(records, keys, strict=True)]

    def _claim(self, matched: pl.DataFrame) -> None:
        """Remember by which ids the source knows these rows; what they say stays."""
        write(self._session, self._user_id, matched.select(_claims(matched), id="stored_id"))

    def _write(self, table: str, matched: pl.DataFrame, change: journal.Change | None = None) -> None:
        """Derive and append the rows of these bookings (as `_to_write`), a piece at a time."""
        done = 0
        for places, wordings in self._spool.pieces(matched["place"].to_list()):
            piece = matched.slice(done, len(places))
            done += len(places)
            ids = [
                id_ or transaction_id(self.account_id, identity)
                for id_, identity in piece.select("stored_id", "identity").iter_rows()
            ]
            keys = piece.with_columns(pl.Series("id", ids, dtype=pl.String), pl.col("created_at").fill_null(self._now))
            rows = self._derivation.derive(
                incoming(keys, wordings).with_columns(
                    user_id=pl.lit(self._user_id),
                    account_id=pl.lit(self.account_id),
                    connection_id=pl.lit(self._connection.id),
                    batch_id=pl.lit(self._batch_id),
                    is_adjusting_entry=False,
                )
            )
            self._session.append(table, rows.sort("booking_date", "id", descending=[True, False]))
            if change:
                self.changes.append(journal.changed(keys["id"], change))

    def _delete(self, table: str, ids: pl.Series) -> None:
        if not ids.is_empty():
            self._session.execute(
                f"DELETE FROM {table} WHERE user_id = $1 AND id = ANY($2::TEXT[])", self._user_id, ids.to_list()
            )


def _numbered(new: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    return new.with_columns(numbered(new, stored)).drop("base")


def _to_write(matched: pl.DataFrame) -> pl.DataFrame:
    """The bookings in the order of their places, with nothing but what is written of them."""
    return matched.with_columns(_claims(matched)).select(WRITTEN).sort("place")


def _claims(matched: pl.DataFrame) -> pl.Series:
    """By which ids sources know the rows that were stored before, this one included; null for the others."""
    if not (matched["is_known"] & matched["claim"].is_not_null()).any():
        return pl.Series("claims", [None], dtype=pl.String).new_from_index(0, matched.height)
    columns = matched.select("is_known", "claim", "fingerprint", "claims", "first_claim", "first_print")
    return pl.Series("claims", [_claims_with(*row) for row in columns.iter_rows()], dtype=pl.String)


def _claims_with(
    is_known: bool,
    claim: str | None,
    fingerprint: str,
    claims: str | None,
    first_claim: str | None,
    first_print: str | None,
) -> str | None:
    if not is_known or claim is None:
        return None
    before = json.loads(claims) if claims else {first_claim: first_print} if first_claim else {}
    return as_json({**before, claim: fingerprint})
