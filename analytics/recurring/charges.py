"""The bookings that may belong to a recurring payment at all (docs/recurring.md, "What is left out")."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from datetime import date
from functools import cache

import polars as pl

from analytics.frames import frame_of
from analytics.recurring.directions import MARK
from analytics.recurring.left_out_words import DEPOT, LEFT_OUT, RETURN, SHOP_DEPOT
from analytics.search_text import fold_column, in_ascii

EVIDENCE_MONTHS = 25  # two yearly charges and a month of delay; shorter evidence can never show a yearly rhythm
PIECE_ROWS = 25_000  # rows whose texts are folded at a time: limits memory, changes no result
COLUMNS_AT_ONCE = 8
RETURN_DAYS = 10  # a returned direct debit is booked back within ten days

TEXTS = {"counterpart_name": "name", "purpose": "note", "merchant_name": "brand"}
TOLD = (*TEXTS, "creditor_id", "account_id")  # of a stream; before there is one, copies would stand in memory in vain
TOPICS = {"left_out": LEFT_OUT, "depot": DEPOT, "shop_depot": SHOP_DEPOT, "is_return": RETURN}
FLAGS = ("is_potential_duplicate", "is_adjusting_entry")
EXCLUDED_TYPES = ["cash_withdrawal", "cash_deposit", "salary", "interest", "fee"]
IS_EVIDENCE = (
    pl.col("booking_date").is_between("since", "today", closed="right")
    & (pl.col("amount") != 0)
    & ~pl.any_horizontal(pl.col(each).fill_null(False) for each in FLAGS)
)
FOLDED = fold_column(pl.col("text")).str.strip_chars()
IN_ASCII = in_ascii(pl.col("text")).alias("ascii")
ABOUT = [pl.col("ascii").str.contains(pattern).alias(topic) for topic, pattern in TOPICS.items()]


def eligible_payments(
    charges: pl.DataFrame, users: pl.DataFrame, *, of_any_kind: bool = False, incoming: bool = False
) -> pl.DataFrame:
    """The bookings of the last 25 months that may recur, oldest first, each with its `row` number, its `price` (the
    amount without its sign), the folded texts `name`, `note` and `brand`, a negative amount whatever its direction, and
    its place in `charges` (`charge`) instead of the columns TOLD. Potential duplicates, adjusting entries and returned
    payments are left out, and without `of_any_kind` also what pays for nothing, such as savings. `incoming` adds
    incoming ones, whose `user_id` gets MARK at its end."""
    called = pl.col("called" if "called" in users.columns else "user_id")
    since = pl.col("today").dt.offset_by(f"-{EVIDENCE_MONTHS}mo")
    days = users.lazy().select("user_id", "today", since=since, called=called, called_in=called + MARK)
    pieces: list[list[pl.Series]] = []
    returns = []
    charges = charges.with_row_index("charge")
    for piece in [*charges.iter_slices(PIECE_ROWS)] or [charges]:
        rows = _that_may_recur(piece, days, of_any_kind=of_any_kind, incoming=incoming)
        returns.append(rows.filter("is_return"))
        pieces.append(rows.filter("may_recur").drop("may_recur", "is_return").get_columns())
        del rows
    payments = _in_order(pieces)
    return drop_returned(payments, pl.concat(returns)).with_row_index("row")


def _in_order(pieces: Sequence[list[pl.Series]]) -> pl.DataFrame:
    """The rows of these columns, the oldest first. Takes some columns at a time out of the pieces: the memory of those
    that are sorted is free again."""
    names = [column.name for column in pieces[0]]
    keys = [[piece[names.index(name)] for name in ("booking_date", "id")] for piece in pieces]
    places = pl.concat(map(pl.DataFrame, keys)).select(pl.arg_sort_by("booking_date", "id")).to_series()
    columns: list[pl.Series] = []
    while pieces[0]:
        columns += pl.concat(pl.DataFrame(piece[:COLUMNS_AT_ONCE]) for piece in pieces)[places].get_columns()
        for piece in pieces:
            del piece[:COLUMNS_AT_ONCE]
    return pl.DataFrame(columns)


def _that_may_recur(charges: pl.DataFrame, days: pl.LazyFrame, *, of_any_kind: bool, incoming: bool) -> pl.DataFrame:
    """The bookings of the last 25 months that `may_recur`, or are the return of one (`is_return`)."""
    evidence = charges.lazy().join(days, on="user_id").filter(IS_EVIDENCE).drop(*FLAGS, "since").pipe(frame_of)
    return (
        _with_texts(evidence)
        .lazy()
        .with_columns(_what_may_recur(of_any_kind=of_any_kind, incoming=incoming))
        .filter(pl.col("may_recur") | pl.col("is_return"))
        .drop("transfer_account_id", "is_no_payment", "called", "called_in", *TOLD)
        .pipe(frame_of)
    )


@cache
def _what_may_recur(*, of_any_kind: bool, incoming: bool) -> list[pl.Expr]:
    comes_in = pl.col("amount") > 0
    may_recur = ~(comes_in & pl.col("is_return")) if incoming else ~comes_in  # what came back was not earned
    if not of_any_kind:
        is_excluded = pl.col("type").is_in(EXCLUDED_TYPES).fill_null(False) & ~(comes_in & (pl.col("type") == "salary"))
        is_between_own = pl.col("transfer_account_id").is_not_null()  # whether its other leg is there or not
        may_recur &= ~(is_excluded | is_between_own | pl.col("is_no_payment"))
    return [
        pl.when(comes_in).then("called_in").otherwise("called").alias("user_id"),
        -pl.col("amount").abs(),
        pl.col("amount").abs().cast(pl.Float64).alias("price"),
        may_recur.alias("may_recur"),
    ]


def _with_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the folded texts `name`, `note` and `brand`; `is_no_payment`: whether the wording says that money
    was saved, settled, lent, withdrawn in cash or charged by the bank itself; and `is_return`: whether the purpose says
    that money of a charge came back. Each text is read once, however many rows have it."""
    written = pl.concat([rows[column] for column in TEXTS])
    texts = written.unique().drop_nulls()
    numbers = written.cast(pl.Enum(texts)).to_physical()
    said = texts.to_frame("text").lazy().select(pl.when(FOLDED != "").then(FOLDED)).with_columns(IN_ASCII)
    found = said.select("text", *ABOUT).select(pl.all().gather(numbers))
    each = found.with_columns(pl.col(*TOPICS).fill_null(False)).pipe(frame_of)
    name, note, brand = (each.slice(place * rows.height, rows.height) for place in range(len(TEXTS)))
    left_out, depot, shop = (name[topic] | note[topic] for topic in ("left_out", "depot", "shop_depot"))
    folded = [said["text"].alias(key) for key, said in zip(TEXTS.values(), (name, note, brand), strict=True)]
    return rows.hstack([*folded, note["is_return"], (left_out | (depot & ~shop)).alias("is_no_payment")])


def drop_returned(payments: pl.DataFrame, returns: pl.DataFrame) -> pl.DataFrame:
    """The payments, oldest first, without those whose money came back: each return takes out the latest payment of the
    same amount, user and currency in the other direction, at most ten days before it, that no other return took."""
    if returns.is_empty():
        return payments
    back = pl.col("user_id").str.strip_suffix(MARK)  # what came back went in the other direction
    user_id = pl.when(pl.col("user_id") == back).then(back + MARK).otherwise(back)
    returns = returns.with_columns(user_id.alias("user_id"), id=pl.lit(None, pl.String()))
    charge = ("user_id", "currency", "amount")
    rows = pl.concat([each.select(*charge, "booking_date", "id") for each in (payments, returns)])
    near = rows.join(returns, on=charge, how="semi").sort("booking_date", pl.col("id").is_null(), maintain_order=True)
    open_payments: dict[Hashable, list[tuple[date, str]]] = defaultdict(list)
    came_back = []
    for *key, day, id_ in near.iter_rows():
        paid = open_payments[tuple(key)]
        if id_ is not None:
            paid.append((day, id_))
        elif paid and (day - paid[-1][0]).days <= RETURN_DAYS:
            came_back.append((key[0], paid.pop()[1]))
    taken = pl.DataFrame(came_back, schema={"user_id": pl.String(), "id": pl.String()}, orient="row")
    return payments.join(taken, on=["user_id", "id"], how="anti", maintain_order="left")
