"""The filters and orders of a search: each filter is one expression, for rows in memory and in the store.

Accounts, one category, days and the words of `search` are applied before, where rows are read.
"""

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Literal, NamedTuple

import polars as pl

from analytics.cashflow import at_border, left_out
from analytics.classification.facts import CASH, OF_CASH
from analytics.currencies import NO_RATES, foreign_currencies
from analytics.frames import among
from analytics.letters import fold, plain
from analytics.minor_digits import MINOR_DIGITS, MINOR_DIGITS_USUAL
from analytics.refunds import NO_CATEGORY, known_category
from analytics.search_text import searchable_text
from analytics.searching.parts import NO_PARTS, in_own, is_split, with_part_in

Direction = Literal["in", "out"]
OfHistory = Literal["new_payee", "refunded", "not_refunded"]  # these are found before (analytics.searching.history)
Flag = Literal["possible_duplicate", "adjusting_entry", "unconverted", "uncategorised", OfHistory]
Sort = Literal["-bookingDate", "bookingDate", "-amount", "amount"]

NAMES = ("merchant_name", "counterpart_name")
_WORD = re.compile(r"[^\W_]+")


class Query(NamedTuple):
    """The criteria of a search; a criterion that is None or empty accepts everything. Amounts are limits of the size in
    the row's own currency, both included. `counted` asks for rows that totals count. `category`, `detailed_category`
    and `own_category` are also checked before, where rows are read; here, one part of a booking has to meet all of
    them."""

    amount_min: Decimal | None = None  # in the row's own currency, without its sign; both limits included
    amount_max: Decimal | None = None
    direction: Direction | None = None
    categories: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    merchant: str | None = None
    counterpart_iban: str | None = None
    words: tuple[tuple[str, ...], ...] = ()  # of `query_words`
    flag: Flag | None = None
    counted: bool = False  # only rows that totals count
    category: str | None = None  # rows are filtered by both before; of parts, a single one has to match everything
    detailed_category: str | None = None
    own_category: str | None = None  # of parts; whole rows are filtered by it before


def query_words(text: str) -> tuple[tuple[str, ...], ...]:
    """The alternatives of a query, which `|` separates: of each its words (runs of letters and digits), each once,
    without case and accents."""
    found = (tuple(dict.fromkeys(_WORD.findall(plain(each)))) for each in text.split("|"))
    return tuple(words for words in found if words)


def matching_rows(
    rows: pl.DataFrame,
    query: Query,
    *,
    selection: Collection[str],
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    parts: pl.DataFrame = NO_PARTS,
) -> pl.LazyFrame:
    """The rows (SEARCHED, all on accounts of `selection`) that match the query, with `left_out` (transfer,
    adjusting_entry, null) and `home_amount` (FIGURE, in `currency`, null without a rate). A booking with parts matches
    if one part meets all criteria of category; without parts, the own category is not checked here."""
    is_there = [*category_conditions(query)]  # none rather than one that is always true: see `frame_of`
    if not parts.is_empty():
        of_parts = pl.col("id").is_in(
            among(with_part_in(parts, *category_conditions(query), *in_own(query.own_category)))
        )
        of_whole = pl.all_horizontal(pl.lit(value=True), *is_there)
        is_there = [pl.when(is_split(parts, may_be_pending=True)).then(of_parts).otherwise(of_whole)]
    chosen = rows.lazy().filter(*_row_conditions(query), *is_there).with_columns(left_out(selection).alias("left_out"))
    foreign = foreign_currencies(rows, currency)
    judged = at_border(chosen, selection, currency=currency, foreign=foreign, rates=rates)
    return judged.filter(*_figure_conditions(query))


def in_order(rows: pl.LazyFrame, sort: Sort) -> pl.LazyFrame:
    """The rows in this order ("-": descending): by booking date, or by the size of the converted amount (rows without a
    rate last) and for equal sizes the latest booking date first; of one day always by id descending, as in a list
    (decision 1)."""
    size, downwards = pl.col("home_amount").abs(), sort.startswith("-")
    first = [size] if sort.endswith("amount") else []
    of_day = downwards or bool(first)
    return rows.sort(
        *first,
        "booking_date",
        "id",
        descending=[*[downwards for _ in first], of_day, True],
        nulls_last=True,
    )


def merchant() -> pl.Expr:
    """The name of a row's merchant, else of its counterpart, null for neither; an empty name is none. Cash
    without a merchant is CASH."""
    merchant, counterpart = (pl.when(pl.col(name) != "").then(pl.col(name)) for name in NAMES)
    return pl.coalesce(merchant, pl.when(pl.col("type").is_in(OF_CASH)).then(pl.lit(CASH)), counterpart)


def is_uncategorised() -> pl.Expr:
    """Whether a row has no category, or OTHER only by default, because no rule decided."""
    by_default = pl.col("category_rule").str.starts_with("default:").fill_null(value=False)
    return pl.col("category").is_null() | ((pl.col("category") == NO_CATEGORY) & by_default)


def category_conditions(query: Query) -> Iterator[pl.Expr]:
    """The conditions of the query on the categories of a row, or of a part; that on the own category is `in_own`."""
    if query.category is not None:
        yield known_category() == query.category
    if query.detailed_category is not None:
        yield pl.col("detailed_category") == query.detailed_category
    if query.categories:
        yield known_category().is_in(query.categories)


def _row_conditions(query: Query) -> Iterator[pl.Expr]:
    """The conditions of the query on the row's own columns."""
    amount = pl.col("amount")
    if query.amount_min is not None:
        yield _listed_size() >= query.amount_min
    if query.amount_max is not None:
        yield _listed_size() <= query.amount_max
    if query.direction is not None:
        yield amount > 0 if query.direction == "in" else amount < 0
    if query.types:
        yield pl.col("type").is_in(query.types)
    if query.merchant is not None:
        yield merchant().str.to_lowercase() == pl.lit(query.merchant).str.to_lowercase()
    if query.counterpart_iban is not None:
        yield _number(pl.col("counterpart_iban")) == _number(pl.lit(query.counterpart_iban))
    if query.words:
        said = pl.concat_str("merchant_name", "counterpart_name", "purpose", separator="\n", ignore_nulls=True)
        text = searchable_text(said)
        yield pl.any_horizontal(
            pl.all_horizontal(text.str.contains(_beginning(word)) for word in words) for words in query.words
        )
    if query.flag == "possible_duplicate":
        yield pl.col("is_potential_duplicate")
    if query.flag == "adjusting_entry":
        yield pl.col("is_adjusting_entry")
    if query.flag == "uncategorised":
        yield pl.col("is_uncategorised")


def _figure_conditions(query: Query) -> Iterator[pl.Expr]:
    """The conditions of the query that depend on accounts and rates."""
    is_unconverted = pl.col("home_amount").is_null()
    if query.flag == "unconverted":
        yield is_unconverted
    if query.counted:
        yield pl.col("left_out").is_null() & ~is_unconverted


def _listed_size() -> pl.Expr:
    """The amount without its sign, rounded to the digits of its currency, as it is listed; some banks state five."""
    size = pl.col("amount").abs()
    listed = size.round(MINOR_DIGITS_USUAL, mode="half_to_even")
    for digits in set(MINOR_DIGITS.values()):
        codes = [code for code, of_code in MINOR_DIGITS.items() if of_code == digits]
        listed = (
            pl.when(pl.col("currency").is_in(codes)).then(size.round(digits, mode="half_to_even")).otherwise(listed)
        )
    return listed


def _number(text: pl.Expr) -> pl.Expr:
    return text.str.replace_all(" ", "", literal=True).str.to_uppercase()


def _beginning(word: str) -> str:
    """A pattern for words that begin with this one, which has only letters and digits and so needs no escaping."""
    spellings = "|".join(sorted({word, fold(word)}))
    return rf"(?:^|[^\p{{L}}\p{{N}}])(?:{spellings})"
