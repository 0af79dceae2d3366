"""Small ledgers: tables of text for examples, strategies for properties."""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
from hypothesis import strategies as st

from analytics.currencies import NO_RATES, convert, foreign_currencies
from analytics.frames import BALANCES, BOOKINGS, LEGS, LOOKALIKES, OWN_ACCOUNTS, RATES, SEARCHED

Row = dict[str, object]

TODAY = date(2026, 3, 31)

_DEFAULTS: Row = {"account_id": "a", "currency": "EUR", "is_adjusting_entry": False, "connection_id": "c"}


def table(text: str, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """A frame of `schema` from a table of text: a header, columns apart by |, empty cells null; the column id counts
    up where the table has none, the other leg of a transfer is there, the others are null or the usual."""
    header, *lines = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines() if line.strip()]
    assert set(header) <= set(schema)
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        said = {name: cell for name, cell in zip(header, line, strict=True) if cell}
        row = {"id": str(number), **_DEFAULTS, **{name: _value(cell, schema[name]) for name, cell in said.items()}}
        rows.append({"transfer_id": "other leg" if row.get("transfer_account_id") else None, **row})
    return frame(rows, schema)


def frame(rows: list[Row], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """A frame of `schema`; what a row does not say is null."""
    return pl.DataFrame([[row.get(name) for name in schema] for row in rows], schema=dict(schema), orient="row")


def _value(cell: str, dtype: pl.DataType) -> object:
    if dtype == pl.Date:
        return date.fromisoformat(cell)
    if dtype == pl.Boolean:
        return cell == "yes"
    return Decimal(cell) if dtype.is_decimal() else cell


def bookings(text: str) -> pl.DataFrame:
    """BOOKINGS from a table."""
    return table(text, BOOKINGS)


def searched(text: str) -> pl.DataFrame:
    """SEARCHED from a table, newest first."""
    return table(text, SEARCHED).sort("booking_date", "id", descending=True)


def balances(text: str) -> pl.DataFrame:
    """BALANCES from a table."""
    return table(text, BALANCES)


def legs(text: str) -> pl.DataFrame:
    """LEGS from a table."""
    return table(text, LEGS)


def own_accounts(text: str) -> pl.DataFrame:
    """OWN_ACCOUNTS from a table."""
    return table(text, OWN_ACCOUNTS)


def lookalikes(text: str) -> pl.DataFrame:
    """LOOKALIKES from a table."""
    return table(text, LOOKALIKES)


def quotes(text: str) -> pl.DataFrame:
    """RATES from a table."""
    return table(text, RATES).sort("currency", "day")


def converted(rows: pl.DataFrame, *, currency: str, rates: pl.DataFrame = NO_RATES) -> pl.Series:
    """The home amounts of rows of BOOKINGS, which themselves stay as they are."""
    foreign = foreign_currencies(rows, currency)
    after = convert(rows.lazy(), currency=currency, foreign=foreign, rates=rates).collect()
    assert after.drop("home_amount").equals(rows)
    return after["home_amount"]


def days(first: date, last: date) -> st.SearchStrategy[date]:
    """Days of a span, its borders often."""
    return st.one_of(st.sampled_from([first, last]), st.dates(first, last))


AMOUNTS = st.one_of(
    st.integers(-(10**20) + 1, 10**20 - 1).map(lambda units: Decimal(units).scaleb(-5)),
    st.integers(-20000, 20000).map(lambda cents: Decimal(cents).scaleb(-2)),
    st.sampled_from([Decimal(0), Decimal("0.5"), Decimal("-0.5"), Decimal("1.5"), Decimal("-10")]),
)
ACCOUNTS = ("a", "b", "c")
PURPOSES = [None, "Strom", "Stromabschlag 11/26", "Lindström", "MÜLLER-Mueller", "a_b"]
NAMES = st.sampled_from([None, "", "Shop", "SHOP", "Bank", "Friend"])


@st.composite
def booking_rows(draw: st.DrawFn, *, currencies: tuple[str, ...], first: date, last: date = TODAY) -> list[Row]:
    """Rows of BOOKINGS."""
    count = draw(st.integers(0, 25))
    return [
        {
            "id": f"{number:03}",
            "account_id": draw(st.sampled_from(ACCOUNTS)),
            "booking_date": draw(days(first, last)),
            "amount": draw(AMOUNTS),
            "currency": draw(st.sampled_from(currencies)),
            "category": draw(st.sampled_from([None, "OTHER", "SHOPPING", "RENT", "SALARY", "TRANSFER"])),
            "counterpart_name": draw(NAMES),
            "counterpart_iban": draw(st.sampled_from([None, None, "IBAN1", "IBAN2"])),
            "merchant_name": draw(NAMES),
            "is_adjusting_entry": draw(st.sampled_from([False, False, False, True])),
            "transfer_account_id": draw(st.sampled_from([None, None, *ACCOUNTS])),
            "transfer_id": draw(st.sampled_from([None, "other leg", "other leg"])),
        }
        for number in range(count)
    ]


@st.composite
def searched_rows(draw: st.DrawFn, *, currencies: tuple[str, ...], first: date) -> list[Row]:
    """Rows of SEARCHED, newest first."""
    rows = [
        {
            **row,
            "type": draw(st.sampled_from([None, "card_payment", "fee", "transfer"])),
            "purpose": draw(st.sampled_from(PURPOSES)),
            "is_potential_duplicate": draw(st.booleans()),
            "is_uncategorised": draw(st.booleans()),
            "is_pending": False,
        }
        for row in draw(booking_rows(currencies=currencies, first=first))
    ]
    return sorted(rows, key=lambda row: (row["booking_date"], row["id"]), reverse=True)


@st.composite
def rate_rows(draw: st.DrawFn, *, currencies: tuple[str, ...], first: date) -> list[Row]:
    """Rows of RATES: every currency is quoted on `first`, then now and then."""
    rows: list[Row] = []
    for currency in currencies:
        quoted = {first, *draw(st.lists(st.dates(first, first + timedelta(days=150)), max_size=4))}
        rows.extend({"currency": currency, "day": day, "rate": draw(RATE_VALUES)} for day in sorted(quoted))
    return rows


RATE_VALUES = st.one_of(
    st.sampled_from([Decimal(1), Decimal("1.1715"), Decimal("0.5"), Decimal("99999999.999999"), Decimal("0.000001")]),
    st.integers(1, 10**14 - 1).map(lambda units: Decimal(units).scaleb(-6)),
)
