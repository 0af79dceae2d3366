"""Writes what a batch tells of an account: new rows, rows in other words, what each source said last."""

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

import polars as pl

from analytics import frames
from storage import journal
from storage.changes import feed
from storage.database import as_json
from storage.importing import duplicate_flags
from storage.importing.combined_texts import all_references, fuller_words
from storage.importing.derivation import Derivation, write
from storage.importing.matching.booking_keys import fingerprint, transaction_id
from storage.importing.matching.evidence import evidence
from storage.importing.matching.exact_matches import MONEY, NO_PAIRS, PAIRS
from storage.importing.matching.notified_days import on_days
from storage.importing.matching.stored_bookings import (
    STORED,
    WAITING,
    Item,
    StoredBookings,
    StoredRow,
    with_former,
)
from storage.importing.rows import incoming
from storage.importing.spool import PARTING, Spool
from storage.importing.teller import FILES, Teller

COMPARED_AT_ONCE = 20_000  # bookings that are compared field by field: bounds memory, changes no result
FORMER = {name: dtype for name, dtype in frames.FORMER.items() if name not in ("account_id", "ended_at")}
WRITTEN = (
    *("place", "stored_id", "identity", "fingerprint", "created_at", "claims"),
    *(*MONEY, "connection_id", "batch_id", "added_state"),
)


class WrittenBookings:
    """Writes bookings of one batch, which are in the spool, into the account `account_id`; `changes` has the rows for
    the journal (journal.CHANGES), `written` the rows written, of which some may be duplicates
    (duplicate_flags.WRITTEN), and `former` what the ledger held until now and no longer does."""

    def __init__(self, teller: Teller, account_id: str, batch_id: str, spool: Spool, derivation: Derivation) -> None:
        self.changes: list[pl.DataFrame] = []
        self.written: list[pl.DataFrame] = []
        self.former: list[tuple[date, Decimal, datetime]] = []
        self._teller, self._session, self._user_id = teller, teller.session, teller.user.id
        self._account_id = account_id
        self._batch_id = batch_id
        self._spool = spool
        self._derivation = derivation

    def keep_former(self) -> None:
        """Store what the ledger held until now and no longer does."""
        if self.former:
            former = pl.DataFrame(self.former, schema=FORMER, orient="row").with_columns(
                user_id=pl.lit(self._user_id), account_id=pl.lit(self._account_id), ended_at=pl.lit(self._teller.now)
            )
            self._session.append("former_amounts", former)

    def reword(self, known: pl.DataFrame) -> None:
        """Rewrite the rows that are reported differently now (`known`: bookings joined with their stored rows), either
        corrected by the source that reported them or in the fuller words of another one; and store what each source
        reported last, with its id and references."""
        if known.is_empty():
            return
        is_news = (pl.col("reported_print") != pl.col("fingerprint")).fill_null(value=True)
        is_live = self._teller.is_live
        changed = known.filter(
            (pl.col("fingerprint") != pl.col("stored_print")) & (is_news if is_live else pl.lit(value=True))
        )
        is_claimed = pl.col("claim").is_not_null() & pl.col("claim").ne_missing(pl.col("stored_claim"))
        is_own = pl.col("own_id").eq_missing(pl.col("stored_id"))
        claimed = known.filter(((is_claimed | is_news) if is_live else is_claimed) & ~is_own)
        if not claimed.is_empty():
            write(self._session, self._user_id, claimed.select(self._claims(claimed), id="stored_id"))
        write(self._session, self._user_id, with_other_references(known))
        for piece in changed.sort("place").iter_slices(COMPARED_AT_ONCE):
            self._rewrite(piece)

    def put_on(self, days: Mapping[str, date], stored: pl.DataFrame) -> None:
        """Put those of the stored rows (STORED) on another day for whose id one is given."""
        if not days:
            return
        moved = stored.filter(pl.col("id").is_in(list(days)))
        for id_, day, amount, created_at in moved.select("id", "booking_date", "amount", "created_at").iter_rows():
            self.former += [(day, amount, created_at), (days[id_], -amount, created_at)]
        write(self._session, self._user_id, on_days(moved, "id", days).select("id", "booking_date"))
        self.changes.append(journal.change_rows(moved["id"], "modified"))

    def _rewrite(self, changed: pl.DataFrame) -> None:
        before = StoredBookings(self._teller, self._account_id).records(changed["stored_id"])
        reported = self._spool.records(changed["place"].to_list())
        spool, rows = Spool(), []
        of_row = ("stored_id", "identity", "created_at", "reported_print", "is_correction")
        rows_now = changed.select(*of_row, "connection_id", "batch_id").iter_rows()
        for row, record, claim in zip(rows_now, reported, self._claims(changed), strict=True):
            id_, identity, created_at, reported_print, is_correction, *teller = row
            corrects = is_correction or (self._teller.is_live and reported_print is not None)
            words = fuller_words(before[id_], record, is_correction=corrects)
            if words != before[id_]:
                money = (words.booking_date, words.amount, words.currency)
                teller = [self._teller.connection.id, self._batch_id] if corrects else teller
                was = before[id_]
                is_other_money = money != (was.booking_date, was.amount, was.currency)
                if corrects and (is_other_money or evidence(was, words, is_other_source=False) is None):
                    claim = with_former(claim, was, self._teller.now)
                if is_other_money:
                    self.former += [(was.booking_date, was.amount, created_at), (money[0], -money[1], created_at)]
                rows.append((len(spool), id_, identity, fingerprint(words), created_at, claim, *money, *teller))
                spool.add(words)
        schema = {**PAIRS, **{name: STORED[name] for name in WRITTEN if name in STORED}}
        again = pl.DataFrame(rows, schema=schema, orient="row")
        added = feed.added_states(self._session, self._user_id, again["stored_id"].to_list())
        again = again.join(added, left_on="stored_id", right_on="id", how="left", maintain_order="left")
        self.delete("transactions", again["stored_id"])
        self.write("transactions", again, spool, "modified")

    def _claims(self, known: pl.DataFrame) -> pl.Series:
        """The `claims` of these rows after this batch: for each source the id under which it knows the row, with the
        fingerprint of what it reported last. A source of files is remembered only where it gives an id."""
        found = []
        rows = known.select("claims", "first_claim", "stored_print", "claim", "fingerprint").iter_rows()
        for claims, first, stored_print, claim, reported in rows:
            by_id: dict[str, str] = json.loads(claims) if claims else {first: stored_print}
            by_id.pop(f"{FILES}:", None)
            if name := self._name(claim):
                others = {id_: each for id_, each in by_id.items() if id_.partition(":")[0] != self._teller.source}
                by_id = {**others, name: reported}
            found.append(as_json(by_id) if by_id else None)
        return pl.Series("claims", found, dtype=pl.String)

    def claims_of_new(self, item: Item, row: StoredRow) -> str:
        """The `claims` of a row that this booking takes over. If day or amount differ from those that a bank reported
        while the booking was pending, its former wording is kept, because a file may still report the booking that
        way."""
        name = self._name(item.claim)
        claims = as_json({name: fingerprint(item.record)} if name else {})
        is_as_before = (item.record.booking_date, item.record.amount) == (row.record.booking_date, row.record.amount)
        return claims if is_as_before or not self._teller.is_live else with_former(claims, row.record, self._teller.now)

    def _name(self, claim: str | None) -> str | None:
        """The key in `claims` for this source's report of a row: the id that it gives the row, or the source alone;
        None for a file that gives none."""
        return claim or (f"{self._teller.source}:" if self._teller.is_live else None)

    def write(
        self, table: str, bookings: pl.DataFrame, spool: Spool, change: journal.Change | None = None
    ) -> pl.DataFrame:
        """Derive the rows of these bookings, whose wordings are in the spool, and append them to the table, a piece at
        a time; with a `change`, note them for the journal and the search for duplicates. Returns their ids (PAIRS)."""
        if bookings.is_empty():
            return NO_PAIRS
        done, written = 0, []
        state = self._session.coming_state(self._user_id)
        if "batch_id" not in bookings.columns:
            of_batch = {"connection_id": self._teller.connection.id, "batch_id": self._batch_id, "added_state": state}
            bookings = bookings.with_columns(**{name: pl.lit(value) for name, value in of_batch.items()})
        bookings = bookings[[*WRITTEN]].sort("place")
        for places, wordings in spool.pieces(bookings["place"].to_list()):
            piece = bookings.slice(done, len(places))
            done += len(places)
            ids = [
                id_ or transaction_id(self._account_id, identity)
                for id_, identity in piece[["stored_id", "identity"]].iter_rows()
            ]
            keys = piece.with_columns(
                pl.Series("id", ids, dtype=pl.String), pl.col("created_at").fill_null(self._teller.now)
            )
            rows = self._derivation.derive(
                incoming(keys, wordings).with_columns(
                    user_id=pl.lit(self._user_id),
                    account_id=pl.lit(self._account_id),
                    connection_id=piece["connection_id"],
                    batch_id=piece["batch_id"],
                    is_adjusting_entry=False,
                )
            )
            if change:
                rows = rows.with_columns(added_state=piece["added_state"], changed_state=pl.lit(state))
                self.changes.append(journal.change_rows(keys["id"], change))
                self.written.append(rows[[*duplicate_flags.WRITTEN]])
            self._session.append(table, rows.sort("booking_date", "id", descending=True))
            written.append(keys.select("place", stored_id="id"))
        return pl.concat(written)

    def add(self, new: pl.DataFrame, past: pl.DataFrame) -> pl.DataFrame:
        """Write new bookings in place of the waiting rows that they continue, and those that the bank has taken back
        before they were known (`past`) among those taken back. Returns the ids of both (PAIRS)."""
        for table in WAITING:
            self.delete(table, new["stored_id"].drop_nulls())
        added = self.write("transactions", new, self._spool, "added")
        aside = self.write("taken_back_transactions", past, self._spool)
        if not aside.is_empty():
            self._session.execute(
                "UPDATE taken_back_transactions SET taken_back_at = $3 WHERE user_id = $1 AND id = ANY($2::TEXT[])",
                *(self._user_id, aside["stored_id"].to_list(), self._teller.now),
            )
        return pl.concat([added, aside])

    def delete(self, table: str, ids: pl.Series) -> None:
        if not ids.is_empty():
            self._session.execute(
                f"DELETE FROM {table} WHERE user_id = $1 AND id = ANY($2::TEXT[])", self._user_id, ids.to_list()
            )


def with_other_references(known: pl.DataFrame) -> pl.DataFrame:
    """The stored rows whose bookings are now reported with further references, as `id` and `reference_keys`: all
    references, in JSON."""
    in_json = pl.col("references").str.replace_all(PARTING, '","', literal=True)  # as `as_json` has it
    as_stored = pl.format('"{}"', in_json)
    is_known = pl.col("stored_references").str.contains(as_stored, literal=True)
    reported = known.filter((pl.col("references") != "") & ~is_known)
    rows = [
        (id_, as_json(all_references(json.loads(stored), now.split(PARTING))))
        for id_, now, stored in reported.select("stored_id", "references", "stored_references").iter_rows()
    ]
    return pl.DataFrame(rows, schema={"id": pl.String(), "reference_keys": pl.String()}, orient="row")
