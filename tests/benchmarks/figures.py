"""How long the analyses take, and what a grouped total costs in cashflows, of which three are the most that it may:
.venv/bin/python tests/benchmarks/figures.py."""

import random
import statistics
import sys
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import get_args

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analytics.cashflow import month_transactions, monthly_cashflow
from analytics.frames import BALANCES, BOOKINGS, LEGS, OWN_ACCOUNTS, SEARCHED
from analytics.refunds import refund_ids
from analytics.searching.filters import Query
from analytics.searching.totals import Key, top_groups, totals
from analytics.snapshot import category_transactions, snapshot
from analytics.transfers import pair
from connectors.reference.exchange_rates import bundled_rates

TODAY = date(2026, 3, 31)
ACCOUNTS = ["checking", "savings", "card"]
SILENT_LEG = {
    "type": pl.lit("transfer"),
    "detailed_category": pl.lit(None, dtype=pl.String),
    "is_exchange": pl.lit(value=False),
}
CATEGORIES = ["GROCERIES", "RENT", "SALARY", "TRANSPORT", "DINING", "SHOPPING", "OTHER", None]
ROUNDS = 50
CASHFLOW = "cashflow of 36 months"


def bookings(count: int, *, currencies: list[str]) -> pl.DataFrame:
    """`count` bookings over a year, a tenth of them credits, a tenth own transfers."""
    dice = random.Random(1)
    return pl.DataFrame(
        [
            {
                "id": f"{number:08}",
                "account_id": dice.choice(ACCOUNTS),
                "booking_date": TODAY - timedelta(days=dice.randrange(365)),
                "amount": Decimal(dice.choice([-1] * 9 + [1]) * dice.randrange(1, 300000)).scaleb(-2),
                "currency": dice.choice(currencies),
                "category": dice.choice(CATEGORIES),
                "counterpart_name": f"Shop {dice.randrange(80)}",
                "counterpart_iban": f"IBAN {dice.randrange(60)}" if dice.random() < 0.5 else None,
                "merchant_name": f"Merchant {dice.randrange(50)}",
                "is_adjusting_entry": False,
                **dict.fromkeys(("transfer_account_id", "transfer_id"), "savings" if dice.random() < 0.1 else None),
            }
            for number in range(count)
        ],
        schema=BOOKINGS,
    )


def milliseconds(work: Callable[[], object]) -> float:
    """The median of many runs."""
    work()
    runs = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        runs.append((perf_counter() - start) * 1000)
    return statistics.median(runs)


def searched(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows as a search looks at them."""
    said = {"type": "card_payment", "purpose": "Rechnung", "detailed_category": "GROCERIES"}
    marks = dict.fromkeys(("is_potential_duplicate", "is_uncategorised", "is_pending"), False)
    more = [pl.lit(value).alias(name) for name, value in {**said, **marks}.items()]
    return rows.with_columns(more).select(*SEARCHED).sort("booking_date", "id", descending=True)


def grouped(rows: pl.DataFrame, refunds: pl.Series, *keys: Key, rates: pl.DataFrame) -> None:
    """The first groups of these keys, and what the rest adds up to."""
    found = totals(rows, Query(), refunds=refunds, selection=ACCOUNTS, currency="EUR", group_by=keys, rates=rates)
    top_groups(found, None, limit=50)


def of_three_years(count: int, *, currencies: list[str]) -> pl.DataFrame:
    """The same number of bookings over 36 months with 220 merchants: 5,400 groups of both, of 10,000 bookings."""
    dice = random.Random(2)
    days = [TODAY - timedelta(days=dice.randrange(1096)) for _ in range(count)]
    merchants = [f"Merchant {dice.randrange(220)}" for _ in range(count)]
    return bookings(count, currencies=currencies).with_columns(
        pl.Series("booking_date", days), pl.Series("merchant_name", merchants)
    )


def interleaved(works: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """The runs of each in milliseconds, in turns: what else the machine does slows all of them down alike."""
    runs: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = perf_counter()
            work()
            runs[name].append((perf_counter() - start) * 1000)
    return runs


def in_cashflows(currencies: list[str], rates: pl.DataFrame) -> None:
    """Print what the groups of every key and pair of keys of 10,000 bookings cost, in cashflows of the same bookings:
    by the best runs and by the medians."""
    rows = of_three_years(10_000, currencies=currencies)
    by_keys = partial(grouped, searched(rows), refund_ids(rows, rows, selection=ACCOUNTS), rates=rates)
    keys: list[tuple[Key, ...]] = [*combinations(get_args(Key), 1), *combinations(get_args(Key), 2)]
    works: dict[str, Callable[[], object]] = {" + ".join(each): partial(by_keys, *each) for each in keys}
    works[CASHFLOW] = partial(
        monthly_cashflow, rows, selection=ACCOUNTS, months=36, today=TODAY, currency="EUR", rates=rates
    )
    runs = interleaved(works)
    best, median = min(runs[CASHFLOW]), statistics.median(runs[CASHFLOW])
    for name, each in sorted(runs.items(), key=lambda run: -min(run[1])):
        print(
            f"{'/'.join(currencies):<12} {name:<28} {min(each):6.2f} ms  {min(each) / best:5.2f}"
            f" {statistics.median(each) / median:5.2f} cashflows"
        )


def main() -> None:
    """Print one line per analysis."""
    rates = bundled_rates()
    accounts = pl.DataFrame(
        {"id": ACCOUNTS, "currency": ["EUR"] * 3, "balance": [Decimal(1000)] * 3, "bank_name": ["Bank"] * 3}
    )
    accounts = accounts.select(
        accounts[name].cast(dtype) if name in accounts.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in BALANCES.items()
    )
    own = pl.DataFrame(
        [(id_, f"IBAN {number}", None, "Bank") for number, id_ in enumerate(ACCOUNTS)],
        schema=OWN_ACCOUNTS,
        orient="row",
    )
    for count in (1_000, 10_000, 100_000):
        for currencies in (["EUR"], ["EUR", "USD", "JPY"]):
            rows = bookings(count, currencies=currencies)
            works: dict[str, Callable[[], object]] = {
                "cashflow": partial(
                    monthly_cashflow, rows, selection=ACCOUNTS, months=6, today=TODAY, currency="EUR", rates=rates
                ),
                "month_transactions": partial(
                    month_transactions,
                    rows,
                    selection=ACCOUNTS,
                    month=TODAY.replace(day=1),
                    today=TODAY,
                    currency="EUR",
                    rates=rates,
                ),
                "snapshot": partial(snapshot, accounts, rows, today=TODAY, currency="EUR", rates=rates),
                "category_transactions": partial(
                    category_transactions,
                    rows,
                    selection=ACCOUNTS,
                    category="OTHER",
                    today=TODAY,
                    currency="EUR",
                    rates=rates,
                ),
                "pair": partial(pair, rows.with_columns(**SILENT_LEG).select(*LEGS), own),
            }
            for name, work in works.items():
                print(f"{count:>7} bookings  {'/'.join(currencies):<12} {name:<28} {milliseconds(work):8.2f} ms")
    for currencies in (["EUR"], ["EUR", "USD", "JPY"]):
        in_cashflows(currencies, rates)


if __name__ == "__main__":
    main()
