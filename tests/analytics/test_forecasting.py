"""Forecasts of balances: by hand, against a slow reference, and against what came."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from statistics import mean, median, pvariance, variance

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.forecasting.back_test import accuracy, origins
from analytics.forecasting.flows import recurring_flows, streams_of
from analytics.forecasting.ledgers import AccountLedger, DayMoved, joint_ledger
from analytics.forecasting.projection import Projection, Stream, by_month, project, trend_weight
from analytics.minor_digits import in_digits
from analytics.recurring.detection import detect
from analytics.recurring.history import Charge
from analytics.recurring.payment import ids_by_charge, payments_in
from tests.analytics.ledgers import TODAY
from tests.recurring.conftest import table

MONTH_STARTS = ("2026-01-01", "2026-02-01", "2026-03-01")
USUAL_AMOUNTS = st.lists(st.integers(-9_999, 9_999), min_size=30, max_size=260)


def ledger(
    amounts: Sequence[object], *, opening: str = "100.00", bookings: int | None = None, currency: str = "EUR"
) -> AccountLedger:
    """One booking a day until TODAY, the earliest first."""
    first = TODAY - timedelta(days=len(amounts) - 1)
    values = [Decimal(str(amount)) for amount in amounts]
    return AccountLedger(
        currency=currency,
        day=TODAY,
        balance=Decimal(opening) + sum(values, Decimal(0)),
        first=first,
        bookings=len(values) if bookings is None else bookings,
        opening=Decimal(opening),
        moved={
            first + timedelta(days=place): DayMoved(total=value, usual=value, bookings=1)
            for place, value in enumerate(values)
        },
    )


def stream(days: Sequence[str], expected: str, *, frequency: str = "monthly", charged: Sequence[str] = ()) -> Stream:
    amounts = charged or [expected.lstrip("-")] * len(days)
    return Stream(
        name="Rent",
        id="sub_1",
        frequency=frequency,
        expected=Decimal(expected),
        charges=[
            Charge(id=day, day=date.fromisoformat(day), amount=Decimal(amount))
            for day, amount in zip(days, amounts, strict=True)
        ],
    )


def told(found: Projection) -> list[tuple[str, str, str, str]]:
    return [(f"{day.day}"[5:], f"{day.expected}", f"{day.low}", f"{day.high}") for day in found.days]


@pytest.mark.requirement("forecast.form")
def test_a_rest_a_day_is_half_believed_after_one_month() -> None:
    # -1.00 a day is the whole trend; of one month nothing is known but its size, so that half of it goes on.
    found = project(ledger(["-1.00"] * 30), [], days=3)
    assert (found.trend_weight, found.rest_per_day) == (0.5, Decimal("-0.50"))
    # every week was alike: what is open is the trend alone, 1.2816 * k * 1.00 / 4
    assert told(found) == [
        ("04-01", "69.50", "69.18", "69.82"),
        ("04-02", "69.00", "68.36", "69.64"),
        ("04-03", "68.50", "67.54", "69.46"),
    ]
    assert found.lowest == found.days[2]
    assert found.events == []


@pytest.mark.requirement("forecast.form")
def test_what_recurs_is_an_event_and_no_rest() -> None:
    # 61 days from 30 January, so that the third is 1 February and the 31st 1 March
    amounts = ["-300.00" if day in (2, 30) else "-1.00" for day in range(61)]
    found = project(ledger(amounts), [stream(MONTH_STARTS, "-300.00")], days=30)
    (event,) = found.events
    assert (f"{event.day}", f"{event.first}", f"{event.last}") == ("2026-04-01", "2026-04-01", "2026-04-02")
    assert (event.amount, event.name, event.id, event.is_overdue) == (Decimal("-300.00"), "Rent", "sub_1", False)
    # 30 days of -1.00, and before them 28 and two rents: -30.00 and -628.00
    scale = ((30 + 628) / 2) ** 2
    assert found.trend_weight == pytest.approx((scale + 30 * 628) / (2 * scale + 628**2))
    rest = -59 / 61  # a day
    trend = -300 * 12 / 365.25 + rest
    assert float(found.rest_per_day) == pytest.approx(rest - (1 - found.trend_weight) * trend, abs=0.005)
    assert found.days[0].expected == Decimal("100.00") - 659 - 300 + found.rest_per_day


@pytest.mark.requirement("forecast.events")
def test_what_is_overdue_is_expected_tomorrow_and_what_is_missed_next_time() -> None:
    late = stream(["2025-12-29", "2026-01-29", "2026-02-28"], "-10.00")
    (event,) = project(ledger(["1"] * 60), [late], days=25).events
    assert (f"{event.day}", f"{event.first}", f"{event.last}", event.is_overdue) == (
        *("2026-04-01",) * 3,
        True,
    )
    missed = stream(["2025-12-20", "2026-01-20", "2026-02-20"], "-10.00")
    (event,) = project(ledger(["1"] * 60), [missed], days=25).events
    assert (f"{event.day}", event.is_overdue) == ("2026-04-20", False)


@pytest.mark.requirement("forecast.events")
def test_a_window_is_as_wide_as_the_charges_stray_and_a_price_that_varies_widens_the_band() -> None:
    # 10 January was a Saturday, so that it was due on the 12th
    strays = stream(["2025-11-10", "2025-12-10", "2026-01-14", "2026-02-10", "2026-03-10"], "50.00")
    (event,) = project(ledger(["1"] * 60), [strays], days=20).events
    assert (f"{event.first}", f"{event.day}", f"{event.last}") == ("2026-04-08", "2026-04-10", "2026-04-12")
    assert event.variance == pytest.approx(0.03 * 2500)
    varies = stream(MONTH_STARTS, "50.00", charged=["40.00", "60.00", "50.00"])
    (event,) = project(ledger(["1"] * 60), [varies], days=20).events
    assert event.variance == pytest.approx(0.03 * 2500 + pvariance([40, 60, 50]))


@pytest.mark.requirement("forecast.form")
@pytest.mark.parametrize(
    ("amounts", "opening", "weight"),
    [
        (["0"] * 90, "5.00", 0),  # nothing ever moved
        (["1.00"] * 209, "0.00", 0),  # a new account fills up
        (["1.00"] * 210, "0.00", 1),
        (["1.00"] * 240, "5.00", 1),  # steady: (1 + 7) / (2 + 7) of it, rounded up by nothing
        ((["1.00"] * 30 + ["-1.00"] * 30) * 4, "5.00", 0),  # to and fro
    ],
)
def test_a_trend_is_believed_as_far_as_it_went_on_before(amounts: list[str], opening: str, weight: float) -> None:
    found = trend_weight(ledger(amounts, opening=opening))
    assert 0 <= found <= 1
    assert found == pytest.approx(weight, abs=0.13)


@pytest.mark.requirement("forecast.form")
def test_digits_are_those_of_the_currency() -> None:
    found = project(ledger(["-10"] * 40, opening="1000", currency="JPY"), [], days=2)
    assert found.rest_per_day == Decimal(-5)
    assert [day.expected for day in found.days] == [595, 590]


@pytest.mark.requirement("forecast.form")
@given(
    cents=USUAL_AMOUNTS,
    rent=st.none() | st.integers(-99_999, 99_999).filter(bool),
    ahead=st.integers(1, 180),
    opening=st.sampled_from(["0.00", "12.34"]),
)
def test_a_forecast_is_what_the_slow_form_says(cents: list[int], rent: int | None, ahead: int, opening: str) -> None:
    amounts = [Fraction(cent, 100) for cent in cents]
    streams: list[Stream] = []
    first = TODAY - timedelta(days=len(cents) - 1)
    if rent is not None:
        days = [day for day in map(date.fromisoformat, MONTH_STARTS) if day >= first]
        streams = [stream([f"{day}" for day in days], f"{Decimal(rent) / 100:.2f}")] if days else []
        for day in days:
            amounts[(day - first).days] += Fraction(rent, 100)
    given_ledger = ledger([Decimal(value.numerator) / value.denominator for value in amounts], opening=opening)
    found = project(given_ledger, streams, days=ahead)
    assert len(found.days) == ahead

    span = min(182, len(amounts))
    recurring = {charge.day: charge.amount.copy_sign(each.expected) for each in streams for charge in each.charges}
    rests = [
        amounts[-1 - back] - Fraction(recurring.get(TODAY - timedelta(days=back), Decimal(0))) for back in range(span)
    ]
    rest = sum(rests) / span
    trend = sum(Fraction(each.expected) * 12 for each in streams) / Fraction("365.25") + rest
    weight = slow_weight(amounts, opening)
    assert found.trend_weight == pytest.approx(float(weight))
    assert abs(float(found.rest_per_day) - float(rest - (1 - weight) * trend)) < 0.006
    weeks = [float(sum(rests[at * 7 : at * 7 + 7])) for at in range(span // 7)]
    error = variance(weeks) / 7 / span
    for k, told_day in enumerate(found.days, start=1):
        until = [event for event in found.events if event.day <= TODAY + timedelta(days=k)]
        by_hand = given_ledger.balance + sum((event.amount for event in until), Decimal(0)) + k * found.rest_per_day
        assert (told_day.day, told_day.expected) == (TODAY + timedelta(days=k), by_hand)
        of_events = sum(0.03 * float(event.amount) ** 2 for event in until)
        half = 1.2816 * sqrt(variance(weeks) * k / 7 + of_events + k**2 * (error + (float(trend) / 4) ** 2))
        assert float(told_day.high - told_day.expected) == pytest.approx(half, abs=0.006, rel=1e-6)
        assert told_day.high - told_day.expected == told_day.expected - told_day.low
    assert found.lowest.expected == min(day.expected for day in found.days)


def slow_weight(amounts: Sequence[Fraction], opening: str) -> Fraction:
    if opening == "0.00" and len(amounts) < 210:
        return Fraction(0)
    backwards = amounts[::-1]
    sums = [sum(backwards[at * 30 : at * 30 + 30], Fraction(0)) for at in range(len(amounts) // 30)]
    scale = median(abs(each) for each in sums) ** 2
    above = below = Fraction(0)
    for place, actual in enumerate(sums[:-1]):
        before = mean(sums[place + 1 : place + 7])
        above, below = above + actual * before, below + before * before
    return min(max((scale + above) / (2 * scale + below), Fraction(0)), Fraction(1)) if scale or below else Fraction(0)


@pytest.mark.requirement("forecast.figures_only")
@given(ahead=st.integers(1, 180))
def test_the_ends_of_months_add_up_too(ahead: int) -> None:
    whole = project(ledger(["1.00"] * 90), [stream(MONTH_STARTS, "-300.00")], days=ahead)
    found = by_month(whole)
    by_day = {day.day: day for day in whole.days}
    assert [by_day[day.day] for day in found.days] == list(found.days)
    assert found.days[-1] == whole.days[-1]
    assert all((day.day + timedelta(days=1)).day == 1 for day in found.days[:-1])
    for day in found.days:
        until = sum((event.amount for event in found.events if event.day <= day.day), Decimal(0))
        assert day.expected == Decimal("190.00") + until + (day.day - TODAY).days * found.rest_per_day
    assert {(event.name, event.id, event.is_overdue) for event in found.events} == {(None, None, False)}
    assert len(found.events) <= len(found.days)


@pytest.mark.requirement("forecast.left_out")
def test_a_history_is_too_short_for_a_while() -> None:
    assert ledger(["1"] * 29).reason == "short_history"
    assert ledger(["1"] * 30, bookings=11).reason == "few_bookings"
    assert ledger(["1"] * 30, bookings=12).reason is None


@pytest.mark.requirement("forecast.accuracy")
def test_forecasts_that_were_right_beat_the_last_balance() -> None:
    steady = ledger(["-1.00"] * 400, opening="1000.00")
    found = accuracy(steady, {})
    assert found is not None
    assert (found.tests, found.coverage, found.beats_last_balance) == (6, 1.0, True)
    assert found.last_balance_error == 30
    assert found.mean_absolute_error < 5


@pytest.mark.requirement("forecast.accuracy")
def test_forecasts_that_were_wrong_are_said_to_be() -> None:
    turned = ledger(["5.00"] * 420 + ["-1.00"] * 180, opening="1000.00")
    found = accuracy(turned, {})
    assert found is not None
    assert not found.beats_last_balance
    assert found.mean_absolute_error > found.last_balance_error == 30
    # by hand: the origins lie 30 to 180 days back, and each is held against the balance of 30 days later
    errors, hits = [], 0
    for origin in origins(TODAY):
        then = turned.at(origin)
        last = project(then, [], days=30).days[-1]
        came = turned.balance - sum(each.total for day, each in turned.moved.items() if day > last.day)
        assert last.day == origin + timedelta(days=30)
        errors.append(abs(last.expected - came))
        hits += last.low <= came <= last.high
    assert found.mean_absolute_error == in_digits(sum(errors, Decimal(0)) / 6, "EUR")
    assert found.coverage == hits / 6


@pytest.mark.requirement("forecast.accuracy")
def test_there_are_as_many_forecasts_as_the_history_is_long_enough_for() -> None:
    assert accuracy(ledger(["1"] * 59), {}) is None
    found = accuracy(ledger(["1"] * 95), {})
    assert found is not None
    assert found.tests == 2


@pytest.mark.requirement("forecast.accuracy")
def test_a_forecast_of_the_past_knows_what_recurred_then() -> None:
    history = ledger(["-300" if day % 30 == 5 else "0" for day in range(400)], opening="9000.00")
    days = [f"{history.first + timedelta(days=day)}" for day in range(5, 340, 30)]
    rent = stream(days, "-300.00")
    blind, seeing = accuracy(history, {}), accuracy(history, {origins(TODAY)[1]: [rent]})
    assert blind is not None
    assert seeing is not None
    assert blind.mean_absolute_error != seeing.mean_absolute_error


@pytest.mark.requirement("forecast.form")
def test_accounts_together_hold_what_each_holds() -> None:
    one, other = ledger(["1.00"] * 40), ledger(["2.00"] * 60, opening="-7.00")
    both = joint_ledger([one, other], other.moved)
    assert (both.balance, both.opening) == (one.balance + other.balance, Decimal("93.00"))
    assert (both.first, both.bookings, both.day) == (other.first, 100, TODAY)


@pytest.mark.requirement("forecast.form")
def test_accounts_together_hold_the_sum_of_what_is_listed_of_each() -> None:
    each = [ledger(["0.00"] * 40, opening="10.004")] * 3
    assert joint_ledger(each, each[0].moved).balance == Decimal("30.00")


def flows() -> pl.DataFrame:
    return table("""
        date       | name      | amount   | purpose
        2026-01-02 | Bank      | -250.00  | Sparplan Tagesgeld
        2026-02-02 | Bank      | -250.00  | Sparplan Tagesgeld
        2026-03-02 | Bank      | -250.00  | Sparplan Tagesgeld
        2026-01-30 | Feinwerk  | 2600.00  | Lohn
        2026-02-27 | Feinwerk  | 2600.00  | Lohn
        2026-03-30 | Feinwerk  | 2650.00  | Lohn
        2026-01-09 | Netflix   | -12.99   |
        2026-02-09 | Netflix   | -12.99   |
        2026-03-09 | Netflix   | -12.99   |
        """)


@pytest.mark.requirement("forecast.events")
def test_savings_and_income_recur_as_payments_do() -> None:
    rows = flows()
    users = pl.DataFrame({"user_id": ["u"], "today": [TODAY]})
    payments = detect(rows, users)
    assert payments["merchant_name"].to_list() == ["Netflix"]
    earlier = TODAY - timedelta(days=30)
    found = recurring_flows(rows, [TODAY, earlier])
    charges = {
        row["id"]: Charge(id=row["id"], day=row["booking_date"], amount=abs(row["amount"])) for row in rows.to_dicts()
    }
    streams = streams_of(found, charges, ids_by_charge(payments_in(payments)), asked={})
    said = sorted((each.name, each.expected, each.id is not None) for each in streams["u", TODAY])
    assert said == [("Bank", -250, False), ("Feinwerk", 2650, False), ("Netflix", Decimal("-12.99"), True)]
    before = {charge.day for each in streams["u", earlier] for charge in each.charges}
    assert all(day <= earlier for day in before)


@pytest.mark.requirement("forecast.events")
def test_without_rows_nothing_recurs() -> None:
    assert recurring_flows(flows().clear(), [TODAY]).is_empty()
    assert streams_of(recurring_flows(flows().clear(), [TODAY]), {}, {}, asked={}) == {}
