"""The stored bookings of an account that a batch may speak of, as the merge compares them."""

import json
from array import array
from collections.abc import Collection, Mapping
from datetime import date, timedelta
from hashlib import blake2b

import polars as pl
from msgspec import Struct

from analytics.frames import MONEY
from storage.database import Session, Transaction
from storage.importing import contributions
from storage.importing.matching.booking_keys import PROVIDER
from storage.importing.matching.compared_rows import StoredRow
from storage.importing.matching.stored_index import FILES

NEIGHBOUR_DAYS = 60  # how far around a batch stored rows can be the same bookings (dates move, pending rows book)
NO_CLAIMS: Mapping[str, str] = {}
STORED: dict[str, pl.DataType] = {
    "id": pl.String(),
    "identity": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
    "currency": pl.String(),
    "created_at": pl.Datetime("us"),
    "claim": pl.String(),
    "told_print": pl.String(),
    "claims": pl.String(),
    "is_part": pl.Boolean(),
}
"""What stored bookings are compared by. `claim` is the id by which one source knows the row, with the fingerprint of
what it last reported; a row that several ids stand for has all of them in `claims`, as JSON, and null there."""
_SELECTED = (
    "id, identity, booking_date, amount, currency, created_at, claims, strpos(reference_keys, '/') > 0 AS is_part,"
    f" CASE WHEN claims IS NULL AND starts_with(identity, '{PROVIDER}') THEN connection_id END AS connection_id,"
    f" CASE WHEN claims IS NULL AND starts_with(identity, '{PROVIDER}') THEN fingerprint END AS told_print"
)
_AS_SELECTED = {**{name: dtype for name, dtype in STORED.items() if name != "claim"}, "connection_id": pl.String()}
_IN_FULL = (
    "id, identity, fingerprint, reference_keys, booking_date, amount, currency, counterpart_iban, counterpart_name,"
    " purpose, created_at, claims, connection_id"
)


def base_of(identity: str) -> pl.Expr:
    """The key in a column of identities, without its ordinal."""
    return pl.col(identity).str.strip_chars_end("0123456789").str.head(-1)


class Reach(Struct, frozen=True):
    """Which rows of an account are compared with some bookings: those of these days, and with `is_far` all others."""

    first: date
    last: date
    is_far: bool


class StoredBookings:
    """What one account of the user has."""

    def __init__(
        self, session: Transaction, *, user_id: str, account_id: str, file_connections: Collection[str]
    ) -> None:
        self._session = session
        self._user_id = user_id
        self._account_id = account_id
        self._file_connections = file_connections

    def told_elsewhere(self, source: str, told: pl.DataFrame) -> set[str]:
        """Ids of the account's bookings that another source of it reported first."""
        told_by = contributions.sources_of_batches(self._session, self._user_id, self._account_id)
        if told.is_empty() or {self._account_id, *told_by.values()} == {source}:
            return set()
        rows = self._session.rows(
            "SELECT id, batch_id FROM transactions WHERE user_id = $1 AND account_id = $2"
            " AND booking_date BETWEEN $3 AND $4",
            self._user_id,
            self._account_id,
            *told.select(pl.min("booking_date"), last=pl.max("booking_date")).row(0),
        )
        return {row["id"] for row in rows if told_by.get(row["batch_id"], self._account_id) != source}

    def around(self, table: str, told: pl.DataFrame | None = None) -> pl.DataFrame:
        """The account's rows as STORED, in the order of their identities: those that these bookings may be, or all."""
        if told is None:
            return self._frame(table, "TRUE")
        if told.is_empty():
            return pl.DataFrame(schema=STORED)
        first, last = days_around(told)
        near = self._frame(table, "booking_date BETWEEN $3 AND $4", first, last)
        wanted = told.filter(pl.col("claim").is_not_null()).select("base").unique()
        if wanted.is_empty():
            return near
        with self._session.staged("wanted", wanted):  # a provider's id is the booking, however far its date has moved
            far = self._frame(
                table,
                "NOT booking_date BETWEEN $3 AND $4 AND (claims IS NOT NULL OR"
                " substr(identity, 1, length(identity) - strpos(reverse(identity), '#')) IN (SELECT base FROM wanted))",
                first,
                last,
            )
        return _in_order(pl.concat([near, far]))

    def rows(self, table: str, ids: pl.Series) -> list[StoredRow]:
        """These rows with all that a comparison one by one looks at."""
        with self._session.staged("looked_at", ids.alias("id").to_frame()):
            rows = self._session.rows(
                f"SELECT {_IN_FULL} FROM {table} WHERE user_id = $1 AND account_id = $2"
                " AND id IN (SELECT id FROM looked_at)",
                self._user_id,
                self._account_id,
            )
        return [
            StoredRow(
                source=(source := self._source_of(row.pop("connection_id"))),
                claims=_claims(row.pop("claims"), source, row["identity"], row["fingerprint"]),
                references=tuple(json.loads(row.pop("reference_keys"))),
                **row,
            )
            for row in rows
        ]

    def _frame(self, table: str, condition: str, *parameters: object) -> pl.DataFrame:
        rows = self._session.frame(
            f"SELECT {_SELECTED} FROM {table} WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry"
            f" AND {condition}",
            self._user_id,
            self._account_id,
            *parameters,
            schema=_AS_SELECTED,
        )
        source = pl.when(pl.col("connection_id").is_in(self._file_connections)).then(pl.lit(FILES))
        claim = pl.format("{}:{}", source.otherwise("connection_id"), base_of("identity").str.strip_prefix(PROVIDER))
        return _in_order(rows.with_columns(claim=claim).select(*STORED))

    def _source_of(self, connection_id: str) -> str:
        return FILES if connection_id in self._file_connections else connection_id


def days_around(told: pl.DataFrame) -> tuple[date, date]:
    """The first and the last day on which rows can be the same bookings as these."""
    margin = timedelta(days=NEIGHBOUR_DAYS)
    first, last = told.select(pl.min("booking_date") - margin, last=pl.max("booking_date") + margin).row(0)
    return first, last


def print_of(session: Session, user_id: str, account_id: str, reach: Reach) -> bytes:
    """Another one as soon as anything changes by which a row within this reach is compared."""
    rows = session.frame(
        f"SELECT {_SELECTED} FROM transactions WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry"
        " AND ($5 OR booking_date BETWEEN $3 AND $4) ORDER BY id",
        user_id,
        account_id,
        reach.first,
        reach.last,
        reach.is_far,
        schema=_AS_SELECTED,
    )
    return blake2b(array("Q", rows.hash_rows())).digest()


def _claims(stored: str | None, source: str, identity: str, fingerprint: str) -> Mapping[str, str]:
    """By which ids of which sources a row is known; a row's first id is in its identity."""
    if stored is not None:
        found: dict[str, str] = json.loads(stored)
        return found
    if not identity.startswith(PROVIDER):
        return NO_CLAIMS
    return {f"{source}:{identity.removeprefix(PROVIDER).rpartition('#')[0]}": fingerprint}


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(pl.col("identity").str.len_chars(), "identity")
