"""Turns a record of a source into a row of the store: its columns and their types."""

from collections.abc import Sequence
from decimal import Decimal

import polars as pl
from msgspec.json import Encoder

from analytics.frames import MONEY
from analytics.records import TEXTS

as_json = Encoder().encode
DIGITS_BEFORE_POINT_MAX = 15
DECIMALS_MAX = 5  # some banks state five
AMOUNT_END = 10**DIGITS_BEFORE_POINT_MAX  # of what the store holds

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

FROM_KEYS = ("id", "identity", "fingerprint", "created_at", "claims", "booking_date", "amount", "currency")
SAME_NAMES = tuple(name for name in TEXTS if name not in ("provider_id", "merchant_name"))  # texts and their columns
FLAGS = ("is_reversal", "is_return", "is_potential_duplicate")
IN_JSON: dict[str, pl.DataType] = {
    **dict.fromkeys((*SAME_NAMES, "value_date", "original_amount", "merchant_name"), pl.String()),
    **dict.fromkeys(FLAGS, pl.Boolean()),
    "references": pl.List(pl.String()),
}
"""What is read of a wording (the JSON of a TransactionRecord, which leaves out what is not said); amounts and days are
texts there."""


_TEXTS = {**{name: name for name in SAME_NAMES}, "source_merchant_name": "merchant_name"}
_READ = [
    *map(pl.col, FROM_KEYS),
    *(pl.col(said).str.head(CHARACTERS_MAX.get(name, 2**32)).alias(name) for name, said in _TEXTS.items()),
    pl.col("value_date").str.to_date("%Y-%m-%d"),
    pl.col(FLAGS).fill_null(value=False),
]


def incoming(keys: pl.DataFrame, wordings: Sequence[bytes]) -> pl.DataFrame:
    """One row per booking: its wording as columns, with its keys (day and amount among them) and what the merge added;
    texts are cut to CHARACTERS_MAX. The wordings are read as columns, because an object for each booking would take
    longer."""
    said = pl.read_ndjson(b"\n".join(wordings), schema=IN_JSON)
    references = [as_json(each).decode() if each else "[]" for each in said["references"].to_list()]
    original_amounts = [text and Decimal(text) for text in said["original_amount"].to_list()]
    return pl.concat([keys[[*FROM_KEYS]], said], how="horizontal").select(
        *_READ,
        pl.Series("reference_keys", references, dtype=pl.String),
        pl.Series("original_amount", original_amounts, dtype=MONEY),
    )
