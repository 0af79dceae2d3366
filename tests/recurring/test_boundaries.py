"""Each limit from both sides: what is just enough, and what is just not."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest

from analytics.recurring.choice import STREAMS_AT_A_PAYEE_MAX, TURNS_MAX, choose_groups

Row = dict[str, object]
Charges = Callable[[list[Row]], pl.DataFrame]
Said = Callable[..., list[Row]]


def paid(days: list[date], amount: str = "9.99", **every: object) -> list[Row]:
    """The same amount on each of these days."""
    return [{"booking_date": day, "amount": -Decimal(amount), "counterpart_name": "Acme", **every} for day in days]


def on(text: str) -> list[date]:
    """Dates as written, one after the other."""
    return [date.fromisoformat(part) for part in text.split()]


MONTHLY = on("2026-01-15 2026-02-15 2026-03-15 2026-04-15 2026-05-15")


@pytest.mark.requirement("decision 21")
@pytest.mark.parametrize(
    ("days", "last_alive"),
    [
        (MONTHLY, date(2026, 7, 16)),
        ([date(2026, 3, 3) + timedelta(weeks=n) for n in range(8)], date(2026, 5, 6)),
        ([date(2026, 1, 6) + timedelta(weeks=2 * n) for n in range(8)], date(2026, 5, 13)),
    ],
)
def test_a_stream_is_over_two_periods_and_a_day_after_its_last_charge(
    days: list[date], last_alive: date, charges_from: Charges, said: Said
) -> None:
    assert len(said(charges_from(paid(days)), last_alive)) == 1
    assert said(charges_from(paid(days)), last_alive + timedelta(days=1)) == []


@pytest.mark.requirement("decision 22")
def test_a_slow_stream_is_listed_while_its_last_charge_lies_in_the_six_months(
    charges_from: Charges, said: Said
) -> None:
    yearly = charges_from(paid(on("2025-05-20 2026-05-20"), "54.00"))
    assert len(said(yearly, date(2026, 11, 20))) == 1
    assert said(yearly, date(2026, 11, 21)) == []


@pytest.mark.requirement("decision 10")
def test_the_window_begins_on_the_same_day_six_months_earlier(charges_from: Charges, said: Said) -> None:
    charges = charges_from(paid(MONTHLY))
    assert [stream["occurrences"] for stream in said(charges, date(2026, 7, 15))] == [5]
    assert [stream["occurrences"] for stream in said(charges, date(2026, 7, 16))] == [4]


@pytest.mark.requirement("subscriptions.evidence")
@pytest.mark.parametrize(
    ("enough", "too_little"),
    [
        (paid(on("2026-10-15 2026-11-15")), paid(on("2026-10-15 2026-11-15"), "10.00")),  # an odd price, a round one
        (paid(on("2026-10-15 2026-11-15")), paid(on("2026-10-15 2026-11-19"))),  # a month, and four days more
        (
            paid(on("2026-10-15 2026-11-15"), "10.00", mandate_reference="M"),
            paid(on("2026-10-15 2026-11-15"), "10.00", counterpart_iban="DE02"),
        ),
        (paid(on("2026-10-27 2026-11-03 2026-11-10 2026-11-17")), paid(on("2026-11-03 2026-11-10 2026-11-17"))),
        (
            paid(on("2026-10-27 2026-11-03 2026-11-10 2026-11-17")),
            paid(on("2026-10-27 2026-11-04 2026-11-09 2026-11-17")),  # a day off, then a fifth charge is needed
        ),
        (paid(on("2025-11-15 2026-11-15"), "89.00"), paid(on("2025-11-15 2026-11-27"), "89.00")),
        (
            [*paid(on("2025-11-15"), "100.00"), *paid(on("2026-11-15"), "110.99")],
            [*paid(on("2025-11-15"), "100.00"), *paid(on("2026-11-15"), "111.01")],
        ),
        (
            paid(on("2025-11-15 2026-11-15"), "89.00"),
            [*paid(on("2025-11-15 2026-11-15"), "89.00"), *paid(on("2026-03-03"), "17.20")],  # something else there
        ),
    ],
)
def test_just_enough_evidence_and_just_too_little(
    enough: list[Row], too_little: list[Row], charges_from: Charges, said: Said
) -> None:
    assert len(said(charges_from(enough))) == 1
    assert said(charges_from(too_little)) == []


@pytest.mark.requirement("subscriptions.evidence")
def test_an_early_charge_of_a_tried_month_belongs_to_the_stream(charges_from: Charges, said: Said) -> None:
    rows = [*paid(on("2026-07-15"), "1.00"), *paid(on("2026-08-15 2026-09-15 2026-10-15 2026-11-15"))]
    assert [stream["occurrences"] for stream in said(charges_from(rows))] == [5]


@pytest.mark.requirement("subscriptions.evidence")
def test_a_yearly_settlement_is_no_charge_of_the_stream(charges_from: Charges, said: Said) -> None:
    months = on("2026-06-15 2026-07-15 2026-08-15 2026-09-15 2026-10-15 2026-11-15")
    rows = [*paid(months, "66.00", mandate_reference="E-1")]
    settled = paid(on("2026-10-20"), "210.35", mandate_reference="E-1")
    (stream,) = said(charges_from([*rows, *settled]))
    assert (stream["occurrences"], stream["amount"]) == (6, Decimal("66.00"))


RENTS = [date(2023 + number // 12, number % 12 + 1, 3) for number in range(47)]  # from January 2023 to November 2026


@pytest.mark.requirement("subscriptions.evidence")
@pytest.mark.parametrize("kind", [None, "standing_order"])
@pytest.mark.parametrize(
    ("day", "price"),
    [
        ("2026-11-10", "55.00"),
        ("2026-11-05", "55.00"),
        ("2026-11-10", "1500.00"),
        ("2026-11-20", "1500.00"),
        ("2026-11-30", "55.00"),
    ],
)
def test_one_odd_payment_does_not_become_the_rent(
    day: str, price: str, kind: str | None, charges_from: Charges, said: Said
) -> None:
    rents = paid(RENTS, "1000.00", type=kind)
    (stream,) = said(charges_from([*rents, *paid(on(day), price, type="transfer")]), date(2026, 11, 30))
    assert (stream["amount"], stream["last_charged"], stream["occurrences"]) == (
        Decimal("1000.00"),
        date(2026, 11, 3),
        6,
    )


@pytest.mark.requirement("subscriptions.evidence")
def test_a_lone_price_beside_the_steady_one_of_its_month_is_a_stranger(charges_from: Charges, said: Said) -> None:
    months = on("2026-06-15 2026-07-15 2026-08-15 2026-09-15 2026-10-15 2026-11-15")
    (stream,) = said(charges_from([*paid(months, "19.99"), *paid(on("2026-08-15"), "21.18")]))
    assert (stream["occurrences"], stream["amount"]) == (6, Decimal("19.99"))


@pytest.mark.requirement("subscriptions.evidence")
def test_a_price_that_comes_on_its_day_or_again_is_the_new_rent(charges_from: Charges, said: Said) -> None:
    raised = [*paid(RENTS[:-1], "1000.00"), *paid(RENTS[-1:], "1050.00")]
    assert [stream["amount"] for stream in said(charges_from(raised))] == [Decimal("1050.00")]
    lowered = [*paid(RENTS[:-2], "1000.00"), *paid(RENTS[-2:], "400.00")]
    assert [stream["amount"] for stream in said(charges_from(lowered))] == [Decimal("400.00")]


@pytest.mark.requirement("subscriptions.payee")
@pytest.mark.parametrize("name", ["Яндекс Плюс", "電力会社", "Ελληνική Ενέργεια"])
def test_payees_in_any_script_are_kept_apart(name: str, charges_from: Charges, said: Said) -> None:
    months = on("2026-08-15 2026-09-15 2026-10-15 2026-11-15")
    rows = [*paid(months, counterpart_name=name), *paid(on("2026-09-03 2026-11-01"), "31.20", counterpart_name="Кафе")]
    assert [(stream["merchant_name"], stream["occurrences"]) for stream in said(charges_from(rows))] == [(name, 4)]


@pytest.mark.requirement("subscriptions.bounds")
def test_the_choice_ends_even_when_every_group_is_beaten_by_the_one_before_it() -> None:
    ranked = {group: range(10 * group, 10 * group + 11) for group in range(3 * TURNS_MAX)}
    won = choose_groups(ranked)
    rows = [row for taken in won.values() for row in taken]
    assert len(won) == TURNS_MAX
    assert len(rows) == len(set(rows))


@pytest.mark.requirement("subscriptions.bounds")
@pytest.mark.parametrize("count", [STREAMS_AT_A_PAYEE_MAX, STREAMS_AT_A_PAYEE_MAX + 1, 60])
def test_many_payments_without_any_name_are_told_apart_by_their_price(
    count: int, charges_from: Charges, said: Said
) -> None:
    rows = [
        {"booking_date": date(2026, month, 1 + number % 17), "amount": -(Decimal(7) + number) * Decimal("1.37")}
        for number in range(count)
        for month in range(5, 12)
    ]
    streams = said(charges_from(rows))
    assert [stream["occurrences"] for stream in streams] == [6] * count
    assert len({stream["amount"] for stream in streams}) == count
