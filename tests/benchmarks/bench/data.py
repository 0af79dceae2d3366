"""Invented bookings of any number of users, the same in every run: what the store and its rivals are filled with."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

from analytics.frames import MONEY
from storage.importing.derivation import with_search_text

ROWS_AT_ONCE = 100_000
MONTHS = 24
FIXED = (  # once a month: the recurring payments of everybody
    ("Muster GmbH", "Gehalt", "SALARY", "salary", 287_500),
    ("Hausverwaltung Nord", "Miete Wohnung 4", "RENT", "standing_order", -98_000),
    ("Stadtwerke", "Abschlag Strom", "OTHER", "direct_debit", -7_400),
    ("Netflix", "Abo Standard", "SUBSCRIPTION", "card_payment", -1_399),
    ("Telekom", "Rechnung Mobilfunk", "SUBSCRIPTION", "direct_debit", -3_495),
    ("Allianz", "Beitrag Hausrat", "INSURANCE", "direct_debit", -1_850),
)
SHOPS = (  # now and then, at any amount
    ("REWE", "Einkauf Markt", "GROCERIES"),
    ("Edeka", "Einkauf Filiale", "GROCERIES"),
    ("Lidl", "Kartenzahlung", "GROCERIES"),
    ("Bäckerei Blume", "Brot und Kaffee", "DINING"),
    ("Café Süd", "Mittagstisch", "DINING"),
    ("Deutsche Bahn", "Fahrkarte", "TRANSPORT"),
    ("Shell", "Tankstelle", "TRANSPORT"),
    ("Apotheke am Markt", "Rezept", "HEALTH"),
    ("Zalando", "Bestellung", "SHOPPING"),
    ("Amazon", "Bestellung Marktplatz", "SHOPPING"),
    ("Kino Lichtburg", "Karten", "ENTERTAINMENT"),
)
CATEGORIES = tuple(sorted({row[2] for row in (*FIXED, *SHOPS)}))
WORDS = (
    "rewe",
    "bestellung",
    "süd",
    "markt",
    "fahrkarte 1",
    "kino",
    "abschlag",
    "karten",
    "bahn",
    "nichts dergleichen",
)

PAYEES = pl.DataFrame(
    [(*row[:4], row[4]) for row in FIXED] + [(*row, "card_payment", 0) for row in SHOPS],
    schema=["merchant_name", "text", "category", "type", "fixed_cents"],
    orient="row",
).with_row_index("payee")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many bookings, and how many each user has."""

    rows: int
    rows_each: int

    @property
    def users(self) -> int:
        """How many users that makes."""
        return max(1, self.rows // self.rows_each)


def user_id(number: int) -> str:
    """Ids ascend with numbers, so that what is appended is sorted as the store wants it, and differ in their first
    eight characters, as random ones do: by these DuckDB knows which parts of a table it need not read."""
    return f"u{number:07x}{0:013x}"


def connection_id(number: int) -> str:
    """Everybody has one bank."""
    return f"con_{number:032x}"


def account_id(number: int) -> str:
    """Everybody has one account."""
    return f"acc_{number:032x}"


def transaction_ids(number: int, rows_each: int) -> list[str]:
    """The ids of the user's bookings, as random as real ones."""
    digits = random.Random(number).randbytes(16 * rows_each).hex()
    return [f"txn_{digits[at : at + 32]}" for at in range(0, len(digits), 32)]


def user_numbers(size: Size) -> Iterator[range]:
    """The users in pieces of about ROWS_AT_ONCE bookings."""
    step = max(1, ROWS_AT_ONCE // size.rows_each)
    for first in range(0, size.users, step):
        yield range(first, min(first + step, size.users))


def accounts(numbers: range, *, today: date, now: datetime) -> pl.DataFrame:
    """The accounts of these users, as columns of the store."""
    return pl.DataFrame(
        [
            {
                "id": account_id(number),
                "user_id": user_id(number),
                "connection_id": connection_id(number),
                "stable_key": "giro",
                "iban": f"DE{number:020d}",
                "name": "Girokonto",
                "kind": "checking",
                "currency": "EUR",
                "bank_name": "Beispielbank",
                "balance": 1000 + number % 977,
                "balance_date": today,
                "position": 0,
                "last_synced_at": now,
                "created_at": now,
            }
            for number in numbers
        ],
        schema_overrides={"balance": MONEY, "created_at": pl.Datetime("us"), "last_synced_at": pl.Datetime("us")},
    )


def bookings(numbers: range, rows_each: int, *, today: date, now: datetime) -> pl.DataFrame:
    """The bookings of these users, as columns of the store and in its order: six payments a month for as many months
    as there is room for, at most 24, and purchases on any day between."""
    months = max(1, min(MONTHS, rows_each // (3 * len(FIXED))))
    fixed = min(rows_each, months * len(FIXED))
    number, row = pl.col("number"), pl.col("row")
    is_fixed = row < fixed
    some = (row * 7919 + number * 104_729) % 1_000_003  # differs from row to row and user to user
    users = pl.DataFrame(
        [(each, user_id(each), account_id(each), connection_id(each)) for each in numbers],
        schema=["number", "user_id", "account_id", "connection_id"],
        orient="row",
    )
    rows = users.join(pl.DataFrame({"row": range(rows_each)}), how="cross")
    rows = rows.with_columns(
        id=pl.Series([id_ for each in numbers for id_ in transaction_ids(each, rows_each)]),
        payee=pl.when(is_fixed).then(row % len(FIXED)).otherwise(len(FIXED) + some % len(SHOPS)).cast(pl.UInt32),
        booking_date=pl.when(is_fixed)
        .then(pl.lit(today).dt.offset_by(pl.format("-{}mo", row // len(FIXED))))
        .otherwise(pl.lit(today) - pl.duration(days=some % (30 * months))),
    ).join(PAYEES, on="payee", how="left")
    hex_ = pl.col("id").str.slice(4)
    rows = rows.select(
        "id",
        "user_id",
        "account_id",
        "connection_id",
        "booking_date",
        "merchant_name",
        "category",
        "type",
        value_date="booking_date",
        amount=pl.when(pl.col("fixed_cents") != 0).then("fixed_cents").otherwise(-(some % 9_000) - 99).cast(MONEY)
        / 100,
        currency=pl.lit("EUR"),
        counterpart_name="merchant_name",
        counterpart_iban=pl.format("DE02120300000000{}", (pl.col("payee") + 200_000).cast(pl.String)),
        mandate_reference=pl.when(pl.col("type") == "direct_debit").then(pl.format("M-{}", pl.col("payee"))),
        purpose=pl.format("{} {}", "text", some),
        is_potential_duplicate=pl.lit(False),
        is_adjusting_entry=pl.lit(False),
        created_at=pl.lit(now, pl.Datetime("us")),
        type_rule=pl.lit("iso"),
        category_rule=pl.lit("brand"),
        merchant_rule=pl.lit("brand"),
        identity=pl.format("content:{}#1", hex_),
        fingerprint=hex_,
        reference_keys=pl.lit("[]"),
        is_reversal=pl.lit(False),
        is_return=pl.lit(False),
        batch_id=pl.lit("bench"),
    ).with_columns(pl.col("amount").cast(MONEY))
    return with_search_text(rows).sort("user_id", "booking_date", "id", descending=[False, True, True])
