"""What one batch does to one account: bookings compared, written and claimed, pending ones ended, balances kept."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from storage import journal
from storage.connections import StoredConnection
from storage.database import Transaction, as_json
from storage.importing import statements
from storage.importing.batches import AccountStatement
from storage.importing.derivation import Derivation, write
from storage.importing.matching.booking_keys import own_id, transaction_id
from storage.importing.matching.counted_merge import Match, claim_of, each_id_once, match_booked, match_pending
from storage.importing.matching.stored_bookings import StoredBookings
from storage.importing.matching.stored_index import FILES
from storage.importing.records import TransactionRecord
from storage.importing.rows import incoming

ROWS_AT_ONCE = 20_000  # derived and written in one go: bounds memory, changes no result


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """What the import of one batch did to one account."""

    account_id: str
    new: int
    known: int


class AccountBatch:
    """One account while one batch is merged into it; `changes` are the journal's."""

    def __init__(
        self,
        session: Transaction,
        *,
        user_id: str,
        account_id: str,
        connection: StoredConnection,
        batch_id: str,
        derivation: Derivation,
        file_connections: Container[str],
        now: datetime,
    ) -> None:
        self.changes: list[tuple[str, journal.Change]] = []
        self._session = session
        self._user_id = user_id
        self._account_id = account_id
        self._connection = connection
        self._batch_id = batch_id
        self._derivation = derivation
        self._now = now
        self._source = FILES if connection.id in file_connections else connection.id
        self._stored = StoredBookings(
            session, user_id=user_id, account_id=account_id, file_connections=file_connections
        )

    def merge(self, source: str, told: Sequence[AccountStatement]) -> AccountReport:
        """Bookings, balances and gaps of the account after what this source told."""
        booked = each_id_once([record for statement in told for record in statement.booked], self._source)
        pending = [record for statement in told for record in statement.transactions if record.status == "pending"]
        matches = match_booked(
            booked,
            self._stored.around("transactions", booked),
            self._stored.around("pending_transactions"),
            source=self._source,
            elsewhere=self._stored.told_elsewhere(source, booked),
        )
        new = [match for match in matches if match.stored is None or match.takes_over]
        modified = [match for match in matches if self._told_before(match) not in (None, match.fingerprint)]
        self._claim([match for match in matches if self._is_unclaimed(match)])
        self._delete("pending_transactions", [match.stored.id for match in new if match.stored])
        self._delete("transactions", [match.stored.id for match in modified if match.stored])
        ids = self._write("transactions", [*new, *modified])
        self.changes += [(id_, "added") for id_ in ids[: len(new)]]
        self.changes += [(id_, "modified") for id_ in ids[len(new) :]]
        is_complete = any(statement.statement.is_pending_complete for statement in told)
        if pending or is_complete:
            told_booked = {record.provider_id for record in booked} - {None}
            waiting = [record for record in pending if record.provider_id not in told_booked]
            self._merge_pending(each_id_once(waiting, self._source), is_complete=is_complete)
        changes = statements.keep(
            self._session,
            user_id=self._user_id,
            account_id=self._account_id,
            connection_id=self._connection.id,
            batch_id=self._batch_id,
            stated=[(statement.statement, statement.adds_up) for statement in told],
            now=self._now,
        )
        self.changes += changes
        return AccountReport(account_id=self._account_id, new=len(new), known=len(matches) - len(new))

    def _merge_pending(self, pending: Sequence[TransactionRecord], *, is_complete: bool) -> None:
        """What is still pending keeps its id; a complete set ends all others."""
        known = self._stored.around("pending_transactions")
        booked = self._stored.around("transactions", pending)
        matches = match_pending(pending, known, booked, source=self._source)
        kept = {match.stored.id for match in matches if match.stored}
        self._delete("pending_transactions", [row.id for row in known if is_complete or row.id in kept])
        self._write("pending_transactions", matches)

    def _told_before(self, match: Match) -> str | None:
        """What the source that guarantees its ids said of this booking when it told it last, by its fingerprint."""
        claim = claim_of(match.record, self._source)
        if match.stored is None or match.takes_over or claim is None:
            return None
        return match.stored.claims.get(claim)

    def _is_unclaimed(self, match: Match) -> bool:
        """Whether an id is told for the first time of a row that is known from elsewhere."""
        if match.stored is None or match.takes_over or match.record.provider_id is None:
            return False
        return self._told_before(match) is None and own_id(match.record) != match.stored.id

    def _claim(self, matches: Sequence[Match]) -> None:
        """Remember by which ids the source knows these rows; what they say stays."""
        claimed = [(match.stored.id, self._claims_with(match)) for match in matches if match.stored]
        frame = pl.DataFrame(claimed, schema={"id": pl.String(), "claims": pl.String()}, orient="row")
        write(self._session, self._user_id, frame)

    def _claims_with(self, match: Match) -> str | None:
        claim = claim_of(match.record, self._source)
        if match.stored is None or match.takes_over or claim is None:
            return None
        return as_json({**match.stored.claims, claim: match.fingerprint})

    def _write(self, table: str, matches: Sequence[Match]) -> list[str]:
        """Derive and append the rows of these matches, a piece at a time; their ids."""
        written: list[str] = []
        for start in range(0, len(matches), ROWS_AT_ONCE):
            written += self._write_piece(table, matches[start : start + ROWS_AT_ONCE])
        return written

    def _write_piece(self, table: str, matches: Sequence[Match]) -> list[str]:
        ids = [
            match.stored.id if match.stored else transaction_id(self._account_id, match.identity) for match in matches
        ]
        created = [match.stored.created_at if match.stored else self._now for match in matches]
        rows = self._derivation.derive(
            incoming(matches, ids, created).with_columns(
                pl.Series("claims", [self._claims_with(match) for match in matches], dtype=pl.String),
                user_id=pl.lit(self._user_id),
                account_id=pl.lit(self._account_id),
                connection_id=pl.lit(self._connection.id),
                batch_id=pl.lit(self._batch_id),
                is_potential_duplicate=False,
                is_adjusting_entry=False,
            )
        )
        self._session.append(table, rows.sort("booking_date", "id", descending=[True, False]))
        return ids

    def _delete(self, table: str, ids: Sequence[str]) -> None:
        if ids:
            self._session.execute(
                f"DELETE FROM {table} WHERE user_id = $1 AND id = ANY($2::TEXT[])", self._user_id, list(ids)
            )
