"""One payee, one user: what a plain history is, and what it is not (interface 4.7, decisions 21 and 22)."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest

TODAY = date(2026, 11, 20)
Row = dict[str, object]


def days(first: str, *, every: int, times: int) -> list[date]:
    """Dates a fixed number of days apart."""
    return [date.fromisoformat(first) + timedelta(days=every * number) for number in range(times)]


def on(*texts: str) -> list[date]:
    """Dates as written."""
    return [date.fromisoformat(text) for text in texts]


FOUND = {
    "six months": (
        on("2026-06-15", "2026-07-15", "2026-08-15", "2026-09-15", "2026-10-15", "2026-11-15"),
        "9.99",
        "monthly",
        6,
    ),
    "three months": (on("2026-09-15", "2026-10-15", "2026-11-15"), "9.99", "monthly", 3),
    "two months, an odd price": (on("2026-10-15", "2026-11-15"), "9.99", "monthly", 2),
    "eight weeks": (days("2026-09-29", every=7, times=8), "12.50", "weekly", 8),
    "four weeks, never a day off": (days("2026-10-27", every=7, times=4), "12.50", "weekly", 4),
    "six fortnights": (days("2026-09-08", every=14, times=6), "40.00", "biweekly", 6),
    "three fortnights, never a day off": (days("2026-10-20", every=14, times=3), "40.00", "biweekly", 3),
    "two quarters": (on("2026-08-15", "2026-11-15"), "55.08", "quarterly", 2),
    "five quarters, two of them in the window": (
        on("2025-11-15", "2026-02-15", "2026-05-15", "2026-08-15", "2026-11-15"),
        "55.08",
        "quarterly",
        2,
    ),
    "two years, one of them in the window": (on("2025-11-15", "2026-11-15"), "89.90", "yearly", 1),
    "the last of the month": (
        on("2026-05-31", "2026-06-30", "2026-07-31", "2026-08-31", "2026-09-30", "2026-10-31"),
        "700.00",
        "monthly",
        6,
    ),
    "a month missed": (
        on("2026-05-15", "2026-06-15", "2026-07-15", "2026-09-15", "2026-10-15", "2026-11-15"),
        "9.99",
        "monthly",
        5,
    ),
    "posted after weekends": (
        on("2026-05-04", "2026-06-02", "2026-07-02", "2026-08-03", "2026-09-02", "2026-10-02", "2026-11-02"),
        "14.99",
        "monthly",
        6,
    ),
    "every 28 days": (days("2026-06-05", every=28, times=6), "8.99", "monthly", 6),
    "every two months": (
        on("2026-01-15", "2026-03-15", "2026-05-15", "2026-07-15", "2026-09-15", "2026-11-15"),
        "58.10",
        "two_monthly",
        3,
    ),
    "twice a year": (on("2025-05-15", "2025-11-15", "2026-05-15", "2026-11-15"), "318.20", "half_yearly", 1),
    "the 15th and the last": (
        on("2026-08-31", "2026-09-15", "2026-09-30", "2026-10-15", "2026-10-31", "2026-11-15"),
        "45.00",
        "twice_monthly",
        6,
    ),
}

NOT_FOUND = {
    "a single charge": (on("2026-11-15"), ["9.99"]),
    "over since three months": (
        on("2026-03-17", "2026-04-17", "2026-05-17", "2026-06-17", "2026-07-17", "2026-08-17"),
        ["9.99"],
    ),
    "before the window": (
        on("2025-11-19", "2025-12-19", "2026-01-19", "2026-02-19", "2026-03-19", "2026-04-19"),
        ["9.99"],
    ),
    "groceries every Tuesday": (
        days("2026-07-07", every=7, times=20),
        [f"{30 + 37 * number % 49}.{number * 13 % 100:02}" for number in range(20)],
    ),
    "coffee every working day": (
        [day for day in days("2026-09-22", every=1, times=60) if day.weekday() < 5],
        ["3.20"],
    ),
    "two round sums a month apart": (on("2026-10-15", "2026-11-15"), ["20.00"]),
    "the same price now and then": (
        on("2026-05-28", "2026-06-02", "2026-06-29", "2026-08-19", "2026-08-30", "2026-10-01", "2026-11-13"),
        ["12.00"],
    ),
    "every two months with one between": (
        on("2026-03-15", "2026-05-15", "2026-07-02", "2026-09-15", "2026-11-15"),
        ["58.10"],
    ),
}


def charges(dates: list[date], amounts: list[str], **every: object) -> list[Row]:
    """One charge a date; a single amount stands for all."""
    priced = amounts * len(dates) if len(amounts) == 1 else amounts
    return [
        {"booking_date": day, "amount": -Decimal(amount), "merchant_name": "Acme", **every}
        for day, amount in zip(dates, priced, strict=True)
    ]


@pytest.mark.requirement("subscriptions.frequencies")
@pytest.mark.parametrize("case", FOUND)
def test_a_plain_rhythm_is_reported_with_its_frequency_and_its_charges_in_the_window(
    case: str, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    dates, amount, frequency, occurrences = FOUND[case]
    (stream,) = said(charges_from(charges(dates, [amount])))
    assert (stream["frequency"], stream["occurrences"]) == (frequency, occurrences)
    assert (stream["amount"], stream["last_charged"]) == (Decimal(amount), dates[-1])
    assert (stream["merchant_name"], stream["currency"]) == ("Acme", "EUR")


@pytest.mark.requirement("subscriptions.frequencies")
@pytest.mark.parametrize("case", NOT_FOUND)
def test_what_has_no_rhythm_or_is_over_is_not_reported(
    case: str, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    dates, amounts = NOT_FOUND[case]
    assert said(charges_from(charges(dates, amounts))) == []


@pytest.mark.requirement("decision 21")
def test_the_amount_is_the_latest_charge_after_a_new_price(
    history: Callable[..., pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    (stream,) = said(
        history("""
            date       | amount | name
            2026-06-15 |  -9.99 | Acme
            2026-07-15 |  -9.99 | Acme
            2026-08-15 |  -9.99 | Acme
            2026-09-15 | -12.99 | Acme
            2026-10-15 | -12.99 | Acme
            2026-11-15 | -12.99 | Acme
        """)
    )
    assert (stream["amount"], stream["occurrences"]) == (Decimal("12.99"), 6)
    assert stream["charge_ids"] == ["t00000", "t00001", "t00002", "t00003", "t00004", "t00005"]


@pytest.mark.requirement("decision 22")
def test_a_dearer_yearly_charge_is_the_same_stream(
    history: Callable[..., pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    (stream,) = said(
        history("""
            date       | amount | name
            2025-11-15 | -89.90 | Acme
            2026-11-15 | -97.09 | Acme
        """)
    )
    assert (stream["frequency"], stream["amount"], stream["occurrences"]) == ("yearly", Decimal("97.09"), 1)


@pytest.mark.requirement("subscriptions.evidence")
def test_one_mandate_carries_a_stream_through_changing_names_and_amounts(
    history: Callable[..., pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    (stream,) = said(
        history("""
            date       | amount | name                 | mandate
            2026-07-15 | -29.99 | Telco GmbH           | M-1
            2026-08-15 | -34.20 | TELCO DEUTSCHLAND    | M-1
            2026-09-15 | -29.99 | Telco West GmbH      | M-1
            2026-10-15 | -31.05 | Kabel Nord           | M-1
            2026-11-15 | -29.99 | Telco GmbH           | M-1
        """)
    )
    assert (stream["frequency"], stream["occurrences"]) == ("monthly", 5)


@pytest.mark.requirement("subscriptions.evidence")
def test_two_contracts_of_one_payee_are_two_streams(
    history: Callable[..., pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    streams = said(
        history("""
            date       | amount | name
            2026-07-03 | -19.99 | Telco
            2026-07-18 | -39.99 | Telco
            2026-08-03 | -19.99 | Telco
            2026-08-18 | -39.99 | Telco
            2026-09-03 | -19.99 | Telco
            2026-09-18 | -39.99 | Telco
            2026-10-03 | -19.99 | Telco
            2026-10-18 | -39.99 | Telco
            2026-11-03 | -19.99 | Telco
            2026-11-18 | -39.99 | Telco
        """)
    )
    assert [(stream["amount"], stream["occurrences"]) for stream in streams] == [
        (Decimal("39.99"), 5),
        (Decimal("19.99"), 5),
    ]
    assert len({stream["id"] for stream in streams}) == 2


@pytest.mark.requirement("decision 21")
def test_the_dearest_per_year_comes_first_then_the_name(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    months = on("2026-08-15", "2026-09-15", "2026-10-15", "2026-11-15")
    weeks = days("2026-10-01", every=7, times=7)
    rows = [
        *charges(months, ["10.40"], merchant_name="Zebra"),
        *charges(months, ["10.40"], merchant_name="Aster"),
        *charges(weeks, ["2.45"], merchant_name="Weekly"),  # 127.40 a year
        *charges(on("2025-11-02", "2026-11-02"), ["124.79"], merchant_name="Yearly"),  # below 12 * 10.40 = 124.80
    ]
    assert [stream["merchant_name"] for stream in said(charges_from(rows))] == ["Weekly", "Aster", "Zebra", "Yearly"]


@pytest.mark.requirement("subscriptions.users")
def test_users_and_currencies_are_kept_apart(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    dates = on("2026-10-15", "2026-11-15")
    rows = [
        *charges(dates[:1], ["9.99"], user_id="a"),
        *charges(dates[1:], ["9.99"], user_id="b"),
        *charges(dates[:1], ["9.99"], user_id="c", currency="EUR"),
        *charges(dates[1:], ["9.99"], user_id="c", currency="CHF"),
        *charges(dates, ["9.99"], user_id="d", account_id="first"),
    ]
    assert [stream["user_id"] for stream in said(charges_from(rows))] == ["d"]


@pytest.mark.requirement("subscriptions.users")
def test_a_contract_may_move_to_another_account(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    rows = [
        *charges(on("2026-08-15", "2026-09-15"), ["9.99"], account_id="old"),
        *charges(on("2026-10-15", "2026-11-15"), ["9.99"], account_id="new"),
    ]
    assert [stream["occurrences"] for stream in said(charges_from(rows))] == [4]


@pytest.mark.requirement("subscriptions.users")
def test_no_charges_no_streams(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    assert said(charges_from([])) == []
    assert said(charges_from(charges(on("2026-11-15"), ["-2500.00"]))) == []
