"""The stored bookings of an account that a batch may speak of, as the merge compares them."""

import json
from collections.abc import Container, Mapping, Sequence
from datetime import timedelta

import polars as pl

from storage.database import Row, Transaction
from storage.importing import contributions
from storage.importing.matching.booking_keys import PROVIDER
from storage.importing.matching.compared_rows import StoredRow
from storage.importing.matching.stored_index import FILES
from storage.importing.records import TransactionRecord

NEIGHBOUR_DAYS = 60  # how far around a batch stored rows can be the same bookings (dates move, pending rows book)
NO_CLAIMS: Mapping[str, str] = {}
STORED_COLUMNS = (
    "id, identity, fingerprint, reference_keys, booking_date, amount, currency, counterpart_iban, counterpart_name,"
    " purpose, created_at, claims, connection_id"
)


class StoredBookings:
    """What one account of the user has."""

    def __init__(
        self, session: Transaction, *, user_id: str, account_id: str, file_connections: Container[str]
    ) -> None:
        self._session = session
        self._user_id = user_id
        self._account_id = account_id
        self._file_connections = file_connections

    def told_elsewhere(self, source: str, around: Sequence[TransactionRecord]) -> set[str]:
        """Ids of the account's bookings that another source of it told first."""
        told_by = contributions.sources_of_batches(self._session, self._user_id, self._account_id)
        if not around or {self._account_id, *told_by.values()} == {source}:
            return set()
        days = [record.booking_date for record in around]
        rows = self._session.rows(
            "SELECT id, batch_id FROM transactions WHERE user_id = $1 AND account_id = $2"
            " AND booking_date BETWEEN $3 AND $4",
            self._user_id,
            self._account_id,
            min(days),
            max(days),
        )
        return {row["id"] for row in rows if told_by.get(row["batch_id"], self._account_id) != source}

    def around(self, table: str, records: Sequence[TransactionRecord] | None = None) -> list[StoredRow]:
        if records is not None and not records:
            return []
        days = [record.booking_date for record in records or ()]
        margin = timedelta(days=NEIGHBOUR_DAYS)
        rows = self._session.rows(
            f"SELECT {STORED_COLUMNS} FROM {table} WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry"
            " AND ($3::DATE IS NULL OR booking_date BETWEEN $3 AND $4)",
            self._user_id,
            self._account_id,
            min(days) - margin if days else None,
            max(days) + margin if days else None,
        )
        if records is not None:
            rows += self._far_away(table, records, {row["id"] for row in rows})
        return [
            StoredRow(
                claims=self._claims(row.pop("claims"), row.pop("connection_id"), row["identity"], row["fingerprint"]),
                references=tuple(json.loads(row.pop("reference_keys"))),
                **row,
            )
            for row in rows
        ]

    def _far_away(self, table: str, records: Sequence[TransactionRecord], near: Container[str]) -> list[Row]:
        """Rows of any day that the ids of these records may stand for: a provider's id is the booking, however far its
        date has moved."""
        ids = sorted({record.provider_id for record in records if record.provider_id is not None})
        if not ids:
            return []
        wanted = pl.DataFrame({"base": [f"{PROVIDER}{id_}" for id_ in ids]})
        with self._session.staged("wanted", wanted):
            rows = self._session.rows(
                f"SELECT {STORED_COLUMNS} FROM {table} WHERE user_id = $1 AND account_id = $2 AND (claims IS NOT NULL"
                " OR substr(identity, 1, length(identity) - strpos(reverse(identity), '#')) IN"
                " (SELECT base FROM wanted))",
                self._user_id,
                self._account_id,
            )
        return [row for row in rows if row["id"] not in near]

    def _claims(self, stored: str | None, connection_id: str, identity: str, fingerprint: str) -> Mapping[str, str]:
        """By which ids of which sources a row is known; a row's first id is in its identity."""
        if stored is not None:
            found: dict[str, str] = json.loads(stored)
            return found
        if not identity.startswith(PROVIDER):
            return NO_CLAIMS
        source = FILES if connection_id in self._file_connections else connection_id
        return {f"{source}:{identity.removeprefix(PROVIDER).rpartition('#')[0]}": fingerprint}
