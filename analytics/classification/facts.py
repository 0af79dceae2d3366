"""The tables in the folder `data`, each read once: one fact a line, columns separated by tabs, `#` begins a comment."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

CATEGORIES = (
    "GROCERIES",
    "RENT",
    "SALARY",
    "TRANSPORT",
    "SUBSCRIPTION",
    "ENTERTAINMENT",
    "TRANSFER",
    "INSURANCE",
    "HEALTH",
    "DINING",
    "SHOPPING",
    "SAVINGS",
    "OTHER",
)
"""The values of the category filter (interface 4.2)."""

CACHED_TEXTS_MAX = 4096
"""The number of texts whose meaning is cached: a user has some hundreds of shops, and the cache outlives the import."""

TYPES = (
    "direct_debit",
    "transfer",
    "standing_order",
    "cash_withdrawal",
    "cash_deposit",
    "card_payment",
    "interest",
    "fee",
    "salary",
    "other",
)
"""The normalized types (interface 2.4)."""

CASH, OF_CASH = "Cash", ("cash_withdrawal", "cash_deposit")
"""The payee of cash without a merchant, because each machine calls itself otherwise, and the types that are cash."""


SignedCodes = Mapping[tuple[str, str], str]
"""By code and sign of the amount, "+" or "-", or "*" for both."""


@cache
def table(name: str) -> tuple[tuple[str, ...], ...]:
    """The lines of the file of this name in `data`, in order, each as its columns; without comments and blank lines."""
    text = files("analytics.classification").joinpath("data", name).read_text(encoding="utf-8")
    lines = (line.rstrip() for line in text.splitlines())
    return tuple(tuple(line.split("\t")) for line in lines if line and not line.startswith("#"))


@cache
def words(name: str) -> tuple[str, ...]:
    """All words of a table of facts, whether its lines have one word or several."""
    return tuple(word for columns in table(name) for word in " ".join(columns).split())


def edition() -> str:
    """The SHA-256 of all tables, in hexadecimal: another one as soon as any fact has changed."""
    tables = sorted(files("analytics.classification").joinpath("data").iterdir(), key=lambda table: table.name)
    return hashlib.sha256(b"".join(table.read_bytes() for table in tables)).hexdigest()


def signed_codes(name: str) -> SignedCodes:
    """The values of a table by code and sign of the amount ("+", "-", or "*" for both)."""
    return {(code, sign): value for codes, sign, value in table(name) for code in codes.split()}


def value_of(code: str | None, values: SignedCodes, *, is_credit: bool) -> str | None:
    """The value of a code, whatever its case, for this sign, else for both signs; None where the table has none."""
    if not code:
        return None
    key = code.strip().upper()
    return values.get((key, "+" if is_credit else "-")) or values.get((key, "*"))


def spread(codes: str) -> range:
    """The range of codes that a text names: "304-306" is 304, 305, 306; "304" is itself."""
    first, _, last = codes.partition("-")
    return range(int(first), int(last or first) + 1)


class Leaf(NamedTuple):
    """A line of `leaves.tsv`: a finer category (`code`), the category above it, and its
    equivalents: the COICOP class, merchant category codes ("5411 5422-5499"), and Plaid's category."""

    code: str
    category: str
    coicop: str
    mccs: str
    plaid: str


LEAVES: Mapping[str, Leaf] = {row[0]: Leaf(*row) for row in table("leaves.tsv")}
"""Every leaf by its code, in the order in which they are shown."""

assert {leaf.category for leaf in LEAVES.values()} == set(CATEGORIES)
assert not set(LEAVES) & set(CATEGORIES)


def category_of(code: str) -> str:
    """The category above a leaf; a category itself is returned unchanged."""
    return LEAVES[code].category if code in LEAVES else code
