"""How a record of a source becomes a row of the store: its columns and their types."""

from collections.abc import Sequence

import polars as pl

from analytics.frames import MONEY
from storage.database import as_json
from storage.importing.records import TransactionRecord

DIGITS_BEFORE_POINT_MAX = 15
DECIMALS_MAX = 5  # some banks state five

INCOMING: dict[str, pl.DataType] = {
    "id": pl.String(),
    "identity": pl.String(),
    "fingerprint": pl.String(),
    "reference_keys": pl.String(),
    "created_at": pl.Datetime("us"),
    "booking_date": pl.Date(),
    "value_date": pl.Date(),
    "amount": MONEY,
    "currency": pl.String(),
    "counterpart_name": pl.String(),
    "counterpart_iban": pl.String(),
    "counterpart_bic": pl.String(),
    "counterpart_bank_name": pl.String(),
    "creditor_id": pl.String(),
    "debitor_id": pl.String(),
    "mandate_reference": pl.String(),
    "end_to_end_id": pl.String(),
    "purpose": pl.String(),
    "bank_transaction_code": pl.String(),
    "purpose_code": pl.String(),
    "gvc": pl.String(),
    "swift_code": pl.String(),
    "mcc": pl.String(),
    "bank_text": pl.String(),
    "source_merchant_name": pl.String(),
    "original_amount": MONEY,
    "original_currency": pl.String(),
    "is_reversal": pl.Boolean(),
    "is_return": pl.Boolean(),
    "claims": pl.String(),
}
"""What the source says of a booking, with the identity that the merge gave it."""

CHARACTERS_MAX = {
    "counterpart_name": 1000,
    "counterpart_iban": 64,
    "counterpart_bic": 64,
    "counterpart_bank_name": 1000,
    "creditor_id": 256,
    "debitor_id": 256,
    "mandate_reference": 256,
    "purpose": 20_000,
    "bank_transaction_code": 64,
    "purpose_code": 64,
    "source_merchant_name": 1000,
}
"""The bounds of the contract (openapi.json); readers keep far below, and no other source may break an answer."""

FROM_KEYS = ("id", "identity", "fingerprint", "created_at", "claims")
FROM_RECORD = [name for name in INCOMING if name not in {*FROM_KEYS, "reference_keys", "source_merchant_name"}]


def incoming(keys: pl.DataFrame, records: Sequence[TransactionRecord]) -> pl.DataFrame:
    """One row per booking as INCOMING: what its record says, beside its keys and what the merge gave it."""
    said: dict[str, Sequence[object]] = {
        "reference_keys": [as_json(list(record.references)) if record.references else "[]" for record in records],
        "source_merchant_name": [record.merchant_name for record in records],
        **{name: [getattr(record, name) for record in records] for name in FROM_RECORD},
    }
    return keys.select(
        *FROM_KEYS, *(pl.Series(name, values, dtype=INCOMING[name]) for name, values in said.items())
    ).with_columns(pl.col(name).str.head(length) for name, length in CHARACTERS_MAX.items())
