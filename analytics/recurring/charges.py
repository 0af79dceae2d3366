"""The bookings that may belong to a recurring payment at all (docs/recurring.md, "What is left out")."""

from functools import cache

import polars as pl

from analytics.frames import frame_of
from analytics.recurring.directions import MARK
from analytics.recurring.left_out_words import DEPOT, LEFT_OUT, RETURN, SHOP_DEPOT
from analytics.search_text import fold_column, in_ascii
from analytics.transfers import is_between_own

EVIDENCE_MONTHS = 25  # two yearly charges and a month of delay; shorter evidence can never show a yearly rhythm
PIECE_ROWS = 25_000  # rows whose texts are folded at a time: limits memory, changes no result
RETURN_DAYS = 10  # a returned direct debit is booked back within ten days

TEXTS = {"counterpart_name": "name", "purpose": "note", "merchant_name": "brand"}
EXCLUDED_TYPES = ["cash_withdrawal", "cash_deposit", "salary", "interest", "fee"]


def eligible_payments(
    charges: pl.DataFrame, users: pl.DataFrame, *, of_any_kind: bool = False, incoming: bool = False
) -> pl.DataFrame:
    """The bookings of the evidence that may recur, oldest first, each with its `row` number, its `price` and a negative
    amount; `of_any_kind` includes those that pay for nothing, such as savings. Incoming ones are there if they are
    wanted, and the id of their user has a mark."""
    pieces = [
        _that_may_recur(_evidence(piece, users), of_any_kind=of_any_kind, incoming=incoming)
        for piece in [*charges.iter_slices(PIECE_ROWS)] or [charges]
    ]
    rows = pl.concat(pieces).lazy()
    del pieces
    payments = rows.filter("may_recur").drop("may_recur", "is_return").sort("booking_date", "id").pipe(frame_of)
    return drop_returned(payments, rows.filter("is_return").pipe(frame_of)).with_row_index("row")


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


def _that_may_recur(rows: pl.DataFrame, *, of_any_kind: bool, incoming: bool) -> pl.DataFrame:
    """The rows that `may_recur` or are the `is_return` of one, with the folded texts `name`, `note` and `brand`."""
    comes_in = pl.col("amount") > 0
    may_recur = pl.lit(value=True) if incoming else ~comes_in
    if not of_any_kind:
        is_excluded = pl.col("type").is_in(EXCLUDED_TYPES).fill_null(False) & ~(comes_in & (pl.col("type") == "salary"))
        may_recur &= ~(is_excluded | is_between_own() | _is_no_payment())
    return (
        _with_texts(rows)
        .with_columns(
            pl.when(comes_in).then(pl.col("user_id") + MARK).otherwise("user_id"),
            -pl.col("amount").abs(),
            price=pl.col("amount").abs().cast(pl.Float64),
            may_recur=may_recur,
        )
        .filter(pl.col("may_recur") | pl.col("is_return"))
        .drop("account_id", "transfer_account_id", "is_potential_duplicate", "is_adjusting_entry")
        .pipe(frame_of)
    )


def _with_texts(rows: pl.DataFrame) -> pl.LazyFrame:
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
    return texted


@cache
def _is_no_payment() -> pl.Expr:
    """Whether the wording says that money was saved, settled, lent, withdrawn in cash or charged by the bank itself."""
    wording = in_ascii(pl.concat_str([pl.col("name"), pl.col("note")], separator=" | ", ignore_nulls=True))
    return wording.str.contains(LEFT_OUT) | (wording.str.contains(DEPOT) & ~wording.str.contains(SHOP_DEPOT))


def _folded_text(column: str) -> pl.Expr:
    """The folded text without spaces around it; null where it is empty."""
    text = fold_column(pl.col(column)).str.strip_chars()
    return pl.when(text != "").then(text)


def drop_returned(payments: pl.DataFrame, returns: pl.DataFrame) -> pl.DataFrame:
    """The payments, oldest first, without those whose money came back as a return of the same amount."""
    if returns.is_empty():
        return payments
    back = pl.col("user_id").str.strip_suffix(MARK)  # what came back went in the other direction
    user_id = pl.when(pl.col("user_id") == back).then(back + MARK).otherwise(back)
    came_back = (
        returns.select(user_id.alias("user_id"), "currency", "amount", "booking_date")
        .sort("booking_date")
        .join_asof(
            payments.select("user_id", "currency", "amount", "booking_date", "id"),
            on="booking_date",
            by=["user_id", "currency", "amount"],
            strategy="backward",
            tolerance=f"{RETURN_DAYS}d",
            check_sortedness=False,  # both sides are sorted by day
        )
        .select("user_id", "id")
        .drop_nulls()
    )
    return payments.join(came_back, on=["user_id", "id"], how="anti", maintain_order="left")
