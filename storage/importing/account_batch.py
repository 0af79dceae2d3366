"""The merge of one batch into one account: bookings are compared and written, pending ones end, balances are kept."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

import polars as pl

from analytics.records import StatementRecord
from storage import journal
from storage.importing import contributions, statements, taken_back
from storage.importing.batches import AccountReport, AccountStatement
from storage.importing.derivation import Derivation
from storage.importing.matching.balances import StatementsNearby
from storage.importing.matching.exact_matches import (
    MONEY,
    NO_PAIRS,
    PAIRS,
    exact_matches,
    left_over,
    new_identities,
    prepare_bookings,
)
from storage.importing.matching.likely_matches import AFTER, BEFORE, FOUND, SAME_DAY, Pair, Remaining, as_found, on_day
from storage.importing.matching.notified_days import BookedDays, on_days
from storage.importing.matching.stored_bookings import (
    NEIGHBOURHOOD,
    NO_BOOKINGS,
    STORED,
    WAITING,
    Item,
    StoredBookings,
)
from storage.importing.matching.windows import ReportedWindow, is_whole, windows
from storage.importing.spool import Spool, days_at_once
from storage.importing.teller import FILES, Teller
from storage.importing.written_bookings import COMPARED_AT_ONCE, WrittenBookings

CONTENT_BEHIND_ID = r"\|\d{4}-\d\d-\d\d\|[^|]*(\|\d+)?$"  # day, amount, count in ids of OFX (connectors/ofx)
LINE_NUMBER = r":\d{1,4}$"
NAME = pl.col("provider_id").str.replace(CONTENT_BEHIND_ID, "")
AMOUNT = ("amount", "currency")
STORED_AS = {
    "id": "stored_id",
    "amount": "was",
    "fingerprint": "stored_print",
    "claim": "stored_claim",
    "references": "stored_references",
}


class AccountBatch:
    """Merges one batch into the account `account_id`, by one call of `merge`; `changes` then has the rows for the
    journal (journal.CHANGES), and `written` the rows written, of which some may be duplicates
    (duplicate_flags.WRITTEN)."""

    def __init__(self, teller: Teller, account_id: str, batch_id: str, spool: Spool, derivation: Derivation) -> None:
        self._rows = WrittenBookings(teller, account_id, batch_id, spool, derivation)
        self.changes, self.written = self._rows.changes, self._rows.written
        self._teller, self._session, self._user_id = teller, teller.session, teller.user.id
        self._account_id, self._batch_id, self._spool = account_id, batch_id, spool
        self._notified: set[int] = set()  # places of bookings that notifications tell
        self._days = dict[int, date]()  # of these, on which statements book them, where it is another one
        self._corrected = dict[str, str]()  # ids that the bank has deleted, or replaced by another
        self._replaced = as_found([])  # bookings with the stored rows that they replace
        self._replaced_rows = NO_BOOKINGS
        self._counted = set[str]()  # ids of rows that were matched with a booking by counting alone
        self._ids = NO_PAIRS  # as which each booking is stored
        self._stored = StoredBookings(teller, account_id)

    def merge(self, source: str, reported: Sequence[AccountStatement]) -> AccountReport:
        """Merge these statements into the account: bookings, also those that the bank has corrected or taken back,
        pending ones, balances, and the gaps between statements. `source` is the id that the account would have by its
        source alone; stored rows of another source match by day and amount alone where nothing surer does."""
        reported, older = contributions.newest_issues(self._teller, self._account_id, reported)
        given = windows(reported)
        self._notified = {place for each in reported if each.statement.is_notification for place in each.places}
        self._take_back_corrected(reported)
        report = self._merge_booked(source, reported, given, older)
        waiting = self._keys(reported, ~pl.col("is_booked"))
        is_complete = any(each.statement.is_pending_complete for each in reported)
        if is_complete or not waiting.is_empty():
            booked = self._keys(reported, "is_booked")["provider_id"].drop_nulls().implode()
            still = waiting.filter(~pl.col("provider_id").is_in(booked).fill_null(value=False))
            self._merge_pending(prepare_bookings(still, self._teller.source), is_complete=is_complete)
        stated = [
            statements.Stated(each.statement, each.adds_up, each.told(self._ids))
            for each in reported
            if not self._is_older_balance(each)
        ]
        changes = statements.keep(self._teller, self._account_id, self._batch_id, stated)
        self.changes.append(pl.DataFrame(changes, schema=journal.CHANGES, orient="row"))
        self._rows.keep_former()
        return report

    def _is_older_balance(self, reported: AccountStatement) -> bool:
        """Whether a file states a balance alone that was exported before one that is known: it tells bookings that the
        bank has corrected since; or it is of the day of the account's balance, and differs from it by exactly what the
        account has of the file's last days and the file lacks."""
        said = reported.statement
        day, is_alone = said.closing_date, (said.opening, said.sequence) == (None, None)
        if self._teller.is_live or said.closing is None or day is None or not is_alone:
            return False
        first = min(reported.last_day or day, day)
        rows = self._session.rows(
            "SELECT balance, balance_date, (SELECT sum(amount) FROM transactions WHERE user_id = $1 AND account_id = $2"
            " AND NOT is_adjusting_entry AND booking_date BETWEEN $3 AND $4) AS moved FROM accounts WHERE user_id = $1"
            " AND id = $2 AND balance_date >= $4",
            *(self._user_id, self._account_id, first, day),
        )
        if not rows:
            return False
        outdated = self._spool.keys([reported.places]).filter(self._is_outdated()).select(NAME).to_series()
        if not set(outdated) <= set(said.corrected):
            return True
        if rows[0]["balance_date"] > day:
            return False
        told = self._keys([reported], pl.col("is_booked") & pl.col("booking_date").is_between(first, day))
        lacking = (rows[0]["moved"] or 0) - told["amount"].sum()
        return bool(rows[0]["balance"] - said.closing == lacking != 0)

    def _take_back_corrected(self, reported: Sequence[AccountStatement]) -> None:
        """Put aside the stored rows that a file says to be deleted, note those that are replaced by one of its
        bookings, and note the ids of them, so that no older file brings them again."""
        if self._teller.is_live:
            return
        named = {id_: other for each in reported for id_, other in contributions.corrections_of(each.statement)}
        self._corrected = contributions.corrected(self._session, self._user_id, self._account_id) | named
        if not named:
            return
        every = self._stored.every("transactions")
        claimed = every.with_columns(provider_id=pl.col("claim").str.strip_prefix(f"{FILES}:"))
        back = claimed.filter(self._is_outdated(), NAME.is_in(list(named)))
        others = back.with_columns(provider_id=NAME.replace_strict(list(named), list(named.values())))
        new = self._keys(reported, "is_booked").join(claimed, on="provider_id", how="anti")
        self._replaced = as_found(
            new.join(others, on="provider_id").select("place", stored_id="id"), is_correction=True
        )
        is_replaced = pl.col("id").is_in(self._replaced["stored_id"].implode())
        self._replaced_rows, gone = back.filter(is_replaced).select(*STORED), back.filter(~is_replaced)
        self._rows.former += gone.select("booking_date", "amount", "created_at").rows()
        self.changes.append(taken_back.put_aside(self._teller, self._account_id, gone["id"].to_list()))

    def _is_outdated(self) -> pl.Expr:
        """Whether the bank has deleted the booking with this `provider_id`, or replaced it by another, as an
        expression."""
        if not self._corrected:
            return pl.lit(value=False)
        other = NAME.replace_strict(list(self._corrected), list(self._corrected.values()), default=None)
        return (other != pl.col("provider_id")).fill_null(value=False)

    def _keys(self, reported: Sequence[AccountStatement], kept: pl.Expr | str) -> pl.DataFrame:
        return self._spool.keys(each.places for each in reported).filter(kept, ~self._is_outdated())

    def _merge_booked(
        self,
        source: str,
        reported: Sequence[AccountStatement],
        given: Sequence[ReportedWindow],
        older: Sequence[StatementRecord],
    ) -> AccountReport:
        """Write new bookings and pending ones that have booked, rewrite rows that are reported differently now, and put
        aside those that the bank has taken back; returns the counts. Nothing is derived anew for rows that are reported
        as before."""
        booked = prepare_bookings(self._keys(reported, "is_booked"), self._teller.source)
        stored = self._stored.around("transactions", booked, given)
        others, stored = left_over(booked, stored, self._replaced)
        stated = StatementsNearby(self._teller, self._account_id, reported, self._spool, others, older)
        stored = stated.without_apart(stored, others).with_columns(
            is_whole=pl.col("is_whole") | pl.col("id").is_in(stated.reissued)
        )
        others, stored = self._on_booked_days(source, others, stored, given)
        booked = on_days(booked, "place", self._days)
        found, gone, replaced = self._matches(source, others, stored, given)
        while beyond := stated.beyond_room(others, stored, found, self._counted):
            stored = stored.filter(~pl.col("id").is_in(list(beyond)))
            found, gone, replaced = self._matches(source, others, stored, given)
        before = self._reported_before_taken_back(others, found, windows(stated.latest(reported)))
        found = pl.concat([found, self._replaced, before])
        stored = pl.concat([stored, self._replaced_rows])
        known = booked.join(found.filter(~pl.col("is_part")), on="place").join(
            stored.rename(STORED_AS).drop("booking_date", "currency"), on="stored_id", maintain_order="left"
        )
        is_past = stated.told_no_more()
        left = self._with_identities(self._take_over(left_over(booked, stored, found)[0], is_past))
        new, past = left.filter(~is_past), left.filter(is_past)
        self._ids = found[[*PAIRS]].sort("place")
        wholes = stored.filter(pl.col("id").is_in(replaced["stored_id"].implode()))
        back = taken_back.prove(
            self._teller,
            self._account_id,
            gone=gone.filter(~pl.col("id").is_in(stated.beside(gone, booked, stored, self._ids))),
            arrived=new.select("booking_date", "amount"),
            corrected=(known.select((pl.col("amount") - pl.col("was")).sum()).item() or Decimal(0))
            - (wholes.select(pl.sum("amount")).item() or Decimal(0)),
            reported=[each.statement for each in reported],
            given=given,
            reissued=stated.reissued,
        )
        self._rows.former += pl.concat([back, wholes]).select("booking_date", "amount", "created_at").rows()
        self.changes.append(taken_back.put_aside(self._teller, self._account_id, back["id"].to_list()))
        self.changes.append(taken_back.remove(self._teller, self._account_id, wholes["id"].to_list()))
        self._rows.reword(known)
        report = AccountReport(account_id=self._account_id, new=new.height, known=found["place"].n_unique())
        del booked, known, stored, found, left  # what is written takes long, and needs the room
        self._ids = pl.concat([self._ids, self._rows.add(new, past)]).sort("place")
        details = replaced.join(self._ids, on="place").rows_by_key("stored_id", named=True)
        ids = {whole: [row["stored_id_right"] for row in of_whole] for whole, of_whole in details.items()}
        statements.told_by_details(self._teller, self._account_id, ids)
        return report

    def _with_identities(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows, without `base`, each with the identity that its id is made of: the one it has, else its key
        (`base`) with the next free ordinal. A row must not get another one than its id is made of: the next booking
        would get the unused one, and with it the same id."""
        new = rows["base"].filter(rows["identity"].is_null())
        if new.is_empty():
            return rows.drop("base")
        added = new_identities(new, self._stored.highest(new))
        identities = [identity or next(added) for identity in rows["identity"]]
        return rows.with_columns(identity=pl.Series(identities, dtype=pl.String)).drop("base")

    def _matches(
        self, source: str, reported: pl.DataFrame, stored: pl.DataFrame, given: Sequence[ReportedWindow]
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """The pairs (FOUND) of a booking and the row as which it is stored already; the stored rows that the source no
        longer reports although it reports everything of their days; and the pairs of a detail and the row that is its
        whole."""
        self._counted.clear()
        pairs, left, rows, are_lasting = exact_matches(reported, stored)
        found, replaced = [as_found(pairs)], as_found([])
        if left.is_empty() or rows.is_empty():
            return found[0], rows.filter("is_whole"), replaced
        elsewhere = self._stored.reported_elsewhere(source, rows.join(left, on=MONEY, how="semi"))
        for items, near in self._by_day(left, rows):
            remaining = self._remaining(items, near, are_lasting=are_lasting)
            remaining.match_by_day(elsewhere)
            self._counted |= remaining.counted
            found += [as_found(remaining.pairs), as_found(remaining.parts, is_part=True)]
            replaced = pl.concat([replaced, as_found(remaining.replaced)])
        rows = left_over(left, rows, replaced)[1]
        left, rows = left_over(left, rows, pl.concat(found))
        for items, near in self._by_day(left, self._stored.other_tellings(rows)):
            remaining = self._remaining(items, near.unique("id", maintain_order=True), are_lasting=are_lasting)
            remaining.match_other_words(self._stored.other_words(near))
            found.append(as_found(remaining.pairs))
        left, rows = left_over(left, rows, pl.concat(found))
        if not (left["claim"].is_null().all() or rows["claim"].is_null().all()):
            known = pl.concat(found).join(reported, on="place").join(stored, left_on="stored_id", right_on="id")
            found.append(self._moved(left, rows, known))
        left, rows = left_over(left, rows, found_by_day := pl.concat(found))
        gone = rows.filter("is_whole")
        corrected = self._corrections(left, rows, gone, given)
        gone = gone.filter(~pl.col("id").is_in(corrected["stored_id"].implode()))
        return pl.concat([found_by_day, corrected]), gone, replaced

    def _on_booked_days(
        self, source: str, reported: pl.DataFrame, stored: pl.DataFrame, given: Sequence[ReportedWindow]
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The bookings and the rows, those that only notifications tell on the day on which a statement books them,
        where nothing on their own day is them; rows are put there in the store, too."""
        if not self._notified and not stored["is_notified"].any():
            return reported, stored
        found, _, replaced = self._matches(source, reported, stored, given)
        left, rows = left_over(reported, stored, pl.concat([found, replaced]))
        days = BookedDays(self._teller, self._account_id, self._batch_id, self._remaining)
        if self._notified:
            self._days = days.of_items(left, rows, stored)
            return on_days(reported, "place", self._days), stored
        moved = days.of_rows(left, rows, stored)
        self._rows.put_on(moved, stored)
        is_moved = pl.col("id").is_in(list(moved))
        return reported, on_days(stored, "id", moved).with_columns(is_whole=pl.col("is_whole") & ~is_moved)

    def _by_day(self, reported: pl.DataFrame, stored: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """The bookings and rows that may match by day and amount, or as a batch and its details; some days at a
        time."""
        if not stored["booking_date"].is_in(reported["booking_date"].implode()).any():
            return
        is_part = (each["references"].str.contains(r"/\d+(\x1f|\"|$)").any() for each in (reported, stored))
        has_parts = bool(self._notified) or stored["is_notified"].any() or any(is_part)
        keys = ("booking_date", "currency") if has_parts else MONEY
        reported, stored = reported.join(stored, on=keys, how="semi"), stored.join(reported, on=keys, how="semi")
        for days in days_at_once(reported, COMPARED_AT_ONCE):
            yield reported.join(days, on="booking_date", how="semi"), stored.join(days, on="booking_date", how="semi")

    def _moved(self, left: pl.DataFrame, rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        """The pairs (FOUND) of a booking of a file and a row with the same id, amount and words, a few days apart: the
        bank has moved its day. A short number may only count the lines of a file, unless it is that of bookings that
        are `known` (with the claims of both), too."""
        name = pl.col("claim").str.replace(CONTENT_BEHIND_ID, "")
        is_id = (name != pl.col("claim")) & ~name.str.contains(LINE_NUMBER)
        is_id |= pl.lit((known["claim"] == known["claim_right"]).any())
        keys = ("name", *AMOUNT)
        items, moved = (each.with_columns(name=name).filter(is_id) for each in (left, rows))
        items = items.join(moved, on=keys, how="semi").unique(keys, keep="none", maintain_order=True)
        if items.is_empty():
            return as_found([])
        remaining = self._remaining(items, moved.join(items, on=keys, how="semi").drop("name"))
        remaining.match_moved()
        return as_found(remaining.pairs, is_correction=True)

    def _corrections(
        self, reported: pl.DataFrame, stored: pl.DataFrame, gone: pl.DataFrame, given: Sequence[ReportedWindow]
    ) -> pl.DataFrame:
        """The pairs (FOUND) of a booking and the stored row that it corrects, which has another amount or another
        day."""
        claimed = stored.join(reported, on="claim", how="semi")
        rows = pl.concat([gone, claimed]).unique("id", maintain_order=True)
        if rows.is_empty():
            return pl.DataFrame(schema=FOUND)
        first, last = rows.select(pl.min("booking_date"), last=pl.max("booking_date")).row(0)
        near = pl.col("booking_date").is_between(first - NEIGHBOURHOOD, last + NEIGHBOURHOOD)
        items = reported.filter(near | pl.col("claim").is_in(claimed["claim"].implode()).fill_null(value=False))
        remaining = self._remaining(items, rows)
        remaining.match_corrections(set(items.filter(is_whole(given, is_ours=pl.lit(value=True)))["place"]))
        return as_found(remaining.pairs, is_correction=True)

    def _reported_before_taken_back(
        self, reported: pl.DataFrame, found: pl.DataFrame, given: Sequence[ReportedWindow]
    ) -> pl.DataFrame:
        """The pairs (FOUND) of a booking of an older file and a row that the bank took back after the last day of that
        file; such bookings stay taken back. Days that the file proves complete by balances are left out. Empty for a
        live source."""
        if self._teller.is_live or reported.is_empty():
            return found.clear()
        stored = self._stored.taken_back_after(reported.select(pl.max("booking_date")).item())
        if stored.is_empty():
            return found.clear()
        left, _ = left_over(reported.filter(~is_whole(given, is_ours=pl.lit(value=True))), stored, found)
        return as_found(self._among(left, "taken_back_transactions", stored, MONEY, SAME_DAY), is_part=True)

    def _take_over(self, new: pl.DataFrame, is_past: pl.Expr) -> pl.DataFrame:
        """The bookings of `new`, with the columns `stored_id`, `identity`, `created_at` and `claims`: those of the row
        that a booking continues, a pending one of the same amount or one taken back of the same day and amount; null
        where it continues none or `is_past`. Notes in `_former` that the ledger lacked it; the caller deletes rows."""
        pairs: list[Pair] = []
        left = new.filter(~is_past)
        for table, keys, days in zip(WAITING, (AMOUNT, MONEY), (BEFORE, SAME_DAY), strict=True):
            if left.is_empty():
                break
            stored = self._stored.every(table)
            found = self._among(left, table, stored, keys, days)
            left, _ = left_over(left, stored, as_found(found))
            pairs += found
        self._rows.former += [(item.record.booking_date, -item.record.amount, row.created_at) for item, row in pairs]
        return self._as_rows(new, pairs)

    def _among(
        self, reported: pl.DataFrame, table: str, stored: pl.DataFrame, keys: Sequence[str], days: range
    ) -> list[Pair]:
        """The pairs of a booking and a row of the table (STORED) that are the same, where one of the two is pending or
        taken back: only rows with the same `keys` and, where no more than words are alike, on one of the `days` counted
        from the booking's. Sources report such bookings anew each time, under any id."""
        if stored.is_empty():
            return []
        reported, stored = reported.join(stored, on=keys, how="semi"), stored.join(reported, on=keys, how="semi")
        if reported.is_empty():
            return []
        stored = stored.with_columns(pl.lit(value=True).alias(name) for name in ("is_whole", "is_asked_for"))
        known = exact_matches(reported, stored).pairs
        remaining = self._remaining(reported, stored, table)
        remaining.match_waiting(known.iter_rows(), days)
        return remaining.pairs

    def _remaining(
        self, reported: pl.DataFrame, stored: pl.DataFrame, table: str = "transactions", *, are_lasting: bool = False
    ) -> Remaining:
        """The matcher of these bookings and rows of the table (STORED), with the full records of both."""
        keys = reported.select("place", "claim").rows()
        records = self._spool.records([place for place, _ in keys])
        items = [
            Item(on_day(record, self._days.get(place)), place, claim, place in self._notified)
            for record, (place, claim) in zip(records, keys, strict=True)
        ]
        return Remaining(items, self._stored.rows(table, stored), are_references_lasting=are_lasting)

    def _as_rows(self, reported: pl.DataFrame, pairs: Sequence[Pair]) -> pl.DataFrame:
        """The bookings, each with `stored_id`, `identity` and `created_at` of its row in `pairs`, and the `claims` for
        that row; null in all of them for a booking in no pair."""
        found = [
            (item.place, row.id, row.identity, row.created_at, self._rows.claims_of_new(item, row))
            for item, row in pairs
        ]
        schema = {**PAIRS, **{name: STORED[name] for name in ("identity", "created_at", "claims")}}
        known = pl.DataFrame(found, schema=schema, orient="row")
        return reported.join(known, on="place", how="left", maintain_order="left")

    def _merge_pending(self, reported: pl.DataFrame, *, is_complete: bool) -> None:
        """Store what is pending and not booked already; a row that is still pending keeps its id. If the list is
        complete, all other pending rows of the account are deleted."""
        self._stored = StoredBookings(self._teller, self._account_id)  # bookings may have been taken back since
        stored = self._stored.every("pending_transactions")
        known = self._among(reported, "pending_transactions", stored, ["currency"], SAME_DAY)
        left, _ = left_over(reported, stored, as_found(known))
        booked = self._among(left, "transactions", self._stored.around("transactions", left), AMOUNT, AFTER)
        waiting, _ = left_over(reported, stored, as_found(booked))
        rows = self._with_identities(self._as_rows(waiting, known)).with_columns(claims=pl.lit(None, dtype=pl.String))
        self._rows.delete("pending_transactions", stored["id"] if is_complete else rows["stored_id"].drop_nulls())
        self._rows.write("pending_transactions", rows, self._spool)
