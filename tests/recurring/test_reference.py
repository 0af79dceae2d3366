"""Slow, obvious loops over dates and decimals judge the fast rules: the calendar test and what is reported."""

import calendar
import math
import statistics
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from functools import cache

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics.frames import CHARGES, SUBSCRIPTIONS
from analytics.recurring import rhythm
from analytics.recurring.detection import detect
from analytics.recurring.groups import candidate_groups
from analytics.recurring.report import report_streams
from analytics.recurring.rhythm import LATTICES, fits, likely, with_axes
from tests.conftest import examples

EPOCH = date(1970, 1, 1)


@cache
def position(day: date, axis: str) -> float:
    """Where a day lies on an axis, counted day by day."""
    if axis == "days":
        return float((day - EPOCH).days)
    if axis == "business":
        return float(
            sum((date(1990, 1, 1) + timedelta(days=n)).weekday() < 5 for n in range((day - date(1990, 1, 1)).days))
        )
    return day.year * 12 + day.month + (day.day - 1) / calendar.monthrange(day.year, day.month)[1]


def slow_fit(days: list[date], lattice: dict[str, float | str]) -> dict[str, float]:
    """The calendar test in plain loops: phase, lateness of each charge, and the measures made of it."""
    period, unit = float(lattice["period"]), float(lattice["unit_days"])
    at = [position(day, str(lattice["axis"])) / period for day in days]
    rough = math.atan2(sum(math.sin(x * math.tau) for x in at), sum(math.cos(x * math.tau) for x in at)) / math.tau
    wrapped = [(x - rough) - round(x - rough) for x in at]
    near = [x for x in wrapped if abs(x) <= 0.25]
    phase = rough + (statistics.median(near) if near else 0.0)
    slots = [round(x - phase) for x in at]
    late = [(x - phase - slot) * period * unit for x, slot in zip(at, slots, strict=True)]
    best = sorted(late, key=abs)[: math.ceil(len(late) * 0.9)]
    return {
        "share": sum(abs(x) <= float(lattice["tolerance_days"]) for x in late) / len(late),
        "slots": max(slots) - min(slots) + 1,
        "filled": len(set(slots)),
        "spread_days": statistics.stdev(best) if len(best) > 1 else 0.0,
        "worst_days": max(abs(x) for x in late),
    }


@st.composite
def rhythms(draw: st.DrawFn) -> list[date]:
    """Dates around a rhythm, some late, some missing, some doubled."""
    every = draw(st.sampled_from([7, 14, 28, 30, 91, 365]))
    late = draw(st.lists(st.integers(min_value=0, max_value=3), min_size=2, max_size=9))
    first = date(2024, 11, 1) + timedelta(days=draw(st.integers(min_value=0, max_value=40)))
    missed = draw(st.sets(st.integers(min_value=1, max_value=8), max_size=2))
    found = [first + timedelta(days=every * n + slip) for n, slip in enumerate(late) if n not in missed]
    return sorted(found if len(found) > 1 else [first, first + timedelta(days=every)])


@pytest.mark.requirement("subscriptions.reference")
@settings(max_examples=examples(40))
@given(days=rhythms())
def test_the_calendar_test_agrees_with_plain_loops(days: list[date]) -> None:
    charges, members, pairs = likely_pairs(days)
    for fit in fits(charges, members, pairs).to_dicts():
        lattice = LATTICES.filter(lattice=fit["lattice"]).to_dicts()[0]
        slow = slow_fit(days, lattice)
        # a charge on the very edge of a slot or a tolerance may fall to either side by rounding
        edge = any(abs(abs(value) - 0.5) < 1e-6 for value in edges(days, lattice))
        if not edge:
            assert {name: fit[name] for name in slow} == pytest.approx(slow, abs=1e-6)


@pytest.mark.requirement("subscriptions.reference")
@pytest.mark.parametrize("at_once", [1, 7, 12])
def test_how_many_charges_are_measured_at_once_changes_no_measure(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    days = [date(2026, 1, 5) + timedelta(days=30 * number + number % 3) for number in range(6)]
    charges, members, pairs = likely_pairs(days)
    assert len(pairs) > 2
    whole = fits(charges, members, pairs)
    monkeypatch.setattr(rhythm, "POINTS_AT_ONCE", at_once)
    assert_frame_equal(fits(charges, members, pairs), whole, check_row_order=False, abs_tol=1e-9)


def likely_pairs(days: list[date]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Charges of one payee on these days, as the calendar test takes them: charges, members of groups, likely pairs."""
    rows = pl.DataFrame(
        {
            "row": range(len(days)),
            "user_id": "u",
            "currency": "EUR",
            "booking_date": days,
            "price": 9.99,
            "payee": "acme",
            "via": False,
            **dict.fromkeys(("contract_key", "iban_key", "day_band", "band", "stem", "recent"), None),
        },
        schema_overrides={"row": pl.UInt32},
    )
    charges = with_axes(rows)
    members, groups = candidate_groups(charges)
    return charges, members, likely(groups.filter(level="payee")).with_row_index("fit")


def edges(days: list[date], lattice: dict[str, float | str]) -> list[float]:
    """How far each charge is from its slot, in periods, for every phase that a charge itself could set."""
    at = [position(day, str(lattice["axis"])) / float(lattice["period"]) for day in days]
    rough = math.atan2(sum(math.sin(x * math.tau) for x in at), sum(math.cos(x * math.tau) for x in at)) / math.tau
    wrapped = [(x - rough) - round(x - rough) for x in at]
    near = [x for x in wrapped if abs(x) <= 0.25]
    phase = rough + (statistics.median(near) if near else 0.0)
    vague = math.hypot(sum(math.sin(x * math.tau) for x in at), sum(math.cos(x * math.tau) for x in at)) < 1e-6
    quarter = any(abs(abs(x) - 0.25) < 1e-6 for x in wrapped)
    tolerance = float(lattice["tolerance_days"]) / float(lattice["unit_days"]) / float(lattice["period"])
    residuals = [(x - phase) - round(x - phase) for x in at]
    on_tolerance = any(abs(abs(x) - tolerance) < 1e-6 for x in residuals)
    # of two charges equally far off, one early and one late, either may be left out of the spread
    ties = any(abs(x + y) < 1e-9 < abs(x) for x in residuals for y in residuals) and len(residuals) > 9
    return [0.5] if vague or quarter or on_tolerance or ties else residuals


def months_before(day: date, months: int) -> date:
    """The same day of an earlier month, or its last day."""
    index = day.year * 12 + day.month - 1 - months
    year, month = divmod(index, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def slow_report(streams: list[dict[str, object]], today: date) -> list[dict[str, object]]:
    """Window, occurrences, liveness, amount and order in plain loops over decimals."""
    window = months_before(today, 6)
    charges_a_year = {"weekly": 52, "biweekly": 26, "monthly": 12, "quarterly": 4, "yearly": 1}
    said: list[dict[str, object]] = []
    for stream in streams:
        frequency, name = str(stream["frequency"]), str(stream["name"])
        charges: list[tuple[date, str, Decimal]] = sorted(stream["charges"])  # type: ignore[call-overload]  # built below
        prices = sorted(price for _, _, price in charges)
        middle = len(prices) // 2
        median = prices[middle] if len(prices) % 2 else (prices[middle - 1] + prices[middle]) / 2
        kept = [
            charge
            for charge in charges
            if not (len(charges) > 2 and prices.count(charge[2]) == 1 and charge[2] > median * Decimal("1.9"))
        ]
        last_day, _, last_price = kept[-1]
        end = {
            "weekly": last_day + timedelta(days=15),
            "biweekly": last_day + timedelta(days=29),
            "monthly": months_before(last_day, -2) + timedelta(days=1),
            "quarterly": months_before(last_day, -6) + timedelta(days=1),
            "yearly": months_before(last_day, -24) + timedelta(days=1),
        }[frequency]
        if last_day < window or end < today:
            continue
        said.append(
            {
                "merchant_name": name,
                "amount": last_price,
                "frequency": frequency,
                "last_charged": last_day,
                "occurrences": sum(day >= window for day, _, _ in kept),
                "charge_ids": [identity for _, identity, _ in kept],
                "yearly": last_price * charges_a_year[frequency],
            }
        )
    said.sort(key=lambda stream: (-Decimal(str(stream["yearly"])), str(stream["merchant_name"])))
    return [{key: value for key, value in stream.items() if key != "yearly"} for stream in said]


LATTICE_OF = {"weekly": "week", "biweekly": "fortnight", "monthly": "month", "quarterly": "quarter", "yearly": "year"}
money = st.integers(min_value=1, max_value=10**12).map(lambda units: Decimal(units) / 100000)


@st.composite
def found_streams(draw: st.DrawFn) -> list[dict[str, object]]:
    """Streams of one user with any dates and exact amounts, as the choice hands them to the report."""
    streams: list[dict[str, object]] = []
    for number in range(draw(st.integers(min_value=0, max_value=4))):
        days = draw(st.lists(st.dates(date(2025, 10, 1), date(2026, 11, 20)), min_size=1, max_size=6, unique=True))
        amounts = draw(st.lists(money, min_size=1, max_size=2))
        charges = [(day, f"s{number}-{day}", amounts[index % len(amounts)]) for index, day in enumerate(days)]
        frequency = draw(st.sampled_from(sorted(LATTICE_OF)))
        streams.append({"name": f"Payee {number}", "frequency": frequency, "charges": charges})
    return streams


@pytest.mark.requirement("subscriptions.reference")
@pytest.mark.requirement("decision 21")
@settings(max_examples=examples(40))
@given(streams=found_streams(), today=st.dates(date(2026, 8, 29), date(2026, 11, 20)))
def test_the_report_agrees_with_plain_loops_to_the_last_digit(streams: list[dict[str, object]], today: date) -> None:
    rows: list[dict[str, object]] = []
    found: list[dict[str, object]] = []
    for number, stream in enumerate(streams):
        past = [charge for charge in stream["charges"] if charge[0] <= today]  # type: ignore[attr-defined]  # a list
        stream["charges"] = past
        for day, identity, price in past:
            blank = dict.fromkeys(("counterpart_name", "counterpart_iban", "creditor_id", "purpose", "contract_key"))
            rows.append(
                {
                    **blank,
                    "row": len(rows),
                    "id": identity,
                    "user_id": "u",
                    "today": today,
                    "currency": "EUR",
                    "booking_date": day,
                    "amount": -price,
                    "price": float(price),
                    "payee": f"payee{number}",
                    "merchant_name": stream["name"],
                    "brand_key": f"payee{number}",
                }
            )
            frequency = str(stream["frequency"])
            found.append(
                {
                    "group": number,
                    "row": len(rows) - 1,
                    "frequency": frequency,
                    "lattice": LATTICE_OF[frequency],
                    "score": 1.0,
                }
            )
    text = (
        "account_id",
        "counterpart_name",
        "counterpart_iban",
        "creditor_id",
        "purpose",
        "contract_key",
        "payee",
        "merchant_name",
    )
    row_schema: dict[str, pl.DataType] = {
        "row": pl.UInt32(),
        "today": pl.Date(),
        "price": pl.Float64(),
        "brand_key": pl.String(),
        **{name: pl.String() for name in text},
        **{name: CHARGES[name] for name in ("id", "user_id", "currency", "booking_date", "amount")},
    }
    stream_schema: dict[str, pl.DataType] = {
        "group": pl.UInt64(),
        "row": pl.UInt32(),
        "frequency": pl.String(),
        "lattice": pl.String(),
        "score": pl.Float64(),
    }
    fast = report_streams(pl.DataFrame(rows, schema=row_schema), pl.DataFrame(found, schema=stream_schema))
    expected = slow_report([stream for stream in streams if stream["charges"]], today)
    if ambiguous(streams):
        return
    columns = ("merchant_name", "amount", "frequency", "last_charged", "occurrences", "charge_ids")
    assert [{name: row[name] for name in columns} for row in fast.to_dicts()] == expected


def ambiguous(streams: list[dict[str, object]]) -> bool:
    """A price within a hair of the true-up threshold may be judged either way by statistics in floating point."""
    for stream in streams:
        prices = [price for _, _, price in stream["charges"]]  # type: ignore[attr-defined]  # a list of triples
        if prices and any(
            abs(price / statistics.median(prices) - Decimal("1.9")) < Decimal("1e-9") for price in prices
        ):
            return True
    return False


@pytest.mark.requirement("subscriptions.reference")
def test_the_result_has_the_columns_and_types_that_the_store_expects(
    history: Callable[..., pl.DataFrame],
) -> None:
    charges = history("""
        date       | amount             | name
        2026-10-15 | -123456789012.34567 | Acme
        2026-11-15 | -123456789012.34567 | Acme
    """)
    found = detect(charges, pl.DataFrame({"user_id": ["u"], "today": [date(2026, 11, 20)]}))
    assert dict(found.schema) == SUBSCRIPTIONS
    assert found["amount"].to_list() == [Decimal("123456789012.34567")]
    assert found["next_expected"].to_list() == [date(2026, 12, 15)]
