"""The bookings that may belong to a recurring payment at all (docs/recurring.md, "What is left out")."""

from functools import cache

import polars as pl

from analytics.frames import frame_of
from analytics.recurring.left_out_words import DEPOT, LEFT_OUT, RETURN, SHOP_DEPOT
from analytics.search_text import fold_column, in_ascii
from analytics.transfers import is_between_own

EVIDENCE_MONTHS = 25  # two yearly charges and a month of delay; shorter evidence can never show a yearly rhythm
PIECE_ROWS = 25_000  # rows whose texts are folded at a time: limits memory, changes no result
RETURN_DAYS = 10  # a returned direct debit is booked back within ten days

TEXTS = {"counterpart_name": "name", "purpose": "note", "merchant_name": "brand"}
EXCLUDED_TYPES = ["cash_withdrawal", "cash_deposit", "salary", "interest", "fee"]


def eligible(charges: pl.DataFrame, users: pl.DataFrame, *, of_any_kind: bool = False) -> pl.DataFrame:
    """The outgoing bookings of the evidence that may recur, oldest first, each with its `row` number; `of_any_kind`
    includes those that pay for nothing, such as savings."""
    payments, returns = [], []
    for piece in [*charges.iter_slices(PIECE_ROWS)] or [charges]:
        rows = _with_texts(_evidence(piece, users))
        payments.append(_that_may_recur(rows, of_any_kind=of_any_kind))
        returns.append(rows.filter(pl.col("amount") > 0, "is_return"))
    outgoing = pl.concat(payments).sort("booking_date", "id")
    del payments
    return without_returned(outgoing, pl.concat(returns)).with_row_index("row")


def _evidence(charges: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    return (
        charges.lazy()
        .join(users.lazy().select("user_id", "today"), on="user_id")
        .filter(
            pl.col("booking_date") <= pl.col("today"),
            pl.col("booking_date") > pl.col("today").dt.offset_by(f"-{EVIDENCE_MONTHS}mo"),
            ~pl.col("is_potential_duplicate").fill_null(False),
            ~pl.col("is_adjusting_entry").fill_null(False),
            pl.col("amount") != 0,
        )
        .pipe(frame_of)
    )


def _with_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the folded texts `name`, `note` and `brand`, and `is_return`: whether the purpose says that money
    of a charge came back. Each text is folded once, however many rows have it."""
    texts = pl.concat([rows[column] for column in TEXTS]).unique().drop_nulls().to_frame("text")
    said = texts.lazy().select("text", said=_folded_text("text"))
    said = said.with_columns(is_return=in_ascii(pl.col("said")).str.contains(RETURN)).pipe(frame_of).lazy()
    texted = rows.lazy()
    for column, name in TEXTS.items():
        added = [pl.col("said").alias(name), *(["is_return"] if name == "note" else [])]
        texts_of = said.select(pl.col("text").alias(column), *added)
        texted = texted.join(texts_of, on=column, how="left", maintain_order="left")
    return texted.pipe(frame_of)


def _that_may_recur(rows: pl.DataFrame, *, of_any_kind: bool) -> pl.DataFrame:
    outgoing = rows.lazy().filter(pl.col("amount") < 0)
    if not of_any_kind:
        outgoing = outgoing.filter(~pl.col("type").is_in(EXCLUDED_TYPES).fill_null(False), ~is_between_own())
    outgoing = outgoing.with_columns(price=pl.col("amount").abs().cast(pl.Float64)).drop(
        "account_id", "transfer_account_id", "is_potential_duplicate", "is_adjusting_entry", "is_return"
    )
    return (outgoing if of_any_kind else outgoing.filter(~_is_no_payment())).pipe(frame_of)


@cache
def _is_no_payment() -> pl.Expr:
    """Whether the wording says that money was saved, settled, lent, withdrawn in cash or charged by the bank itself."""
    wording = in_ascii(pl.concat_str([pl.col("name"), pl.col("note")], separator=" | ", ignore_nulls=True))
    return wording.str.contains(LEFT_OUT) | (wording.str.contains(DEPOT) & ~wording.str.contains(SHOP_DEPOT))


def _folded_text(column: str) -> pl.Expr:
    """The folded text without spaces around it; null where it is empty."""
    text = fold_column(pl.col(column)).str.strip_chars()
    return pl.when(text != "").then(text)


def without_returned(outgoing: pl.DataFrame, returns: pl.DataFrame) -> pl.DataFrame:
    """The outgoing rows without charges whose money came back as a return of the same amount."""
    if returns.is_empty():
        return outgoing
    amount_key = pl.col("amount").abs().alias("amount_key")
    came_back = (
        returns.select("user_id", "currency", "booking_date", amount_key)
        .sort("booking_date")
        .join_asof(
            outgoing.select("user_id", "currency", amount_key, "booking_date", "id").sort("booking_date"),
            on="booking_date",
            by=["user_id", "currency", "amount_key"],
            strategy="backward",
            tolerance=f"{RETURN_DAYS}d",
            check_sortedness=False,  # both sides were sorted by day in the lines above
        )
        .select("user_id", "id")
        .drop_nulls()
    )
    return outgoing.join(came_back, on=["user_id", "id"], how="anti", maintain_order="left")
