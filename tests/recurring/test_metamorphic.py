"""What must not change the answer, and what must change it in a known way (docs/recurring.md)."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.frames import CHARGES
from analytics.recurring.detection import detect
from tests.conftest import examples

TODAY = date(2026, 11, 20)
Row = dict[str, object]
HEAD = ("merchant_name", "amount", "frequency", "last_charged", "occurrences", "charge_ids", "id")
BLANK: Row = {
    **dict.fromkeys(CHARGES),
    "user_id": "u",
    "account_id": "a",
    "currency": "EUR",
    "is_potential_duplicate": False,
    "is_adjusting_entry": False,
}


def charge(identity: str, day: date, amount: str, name: str, **other: object) -> Row:
    return {
        **BLANK,
        "id": identity,
        "booking_date": day,
        "amount": -Decimal(amount),
        "counterpart_name": name,
        **other,
    }


def household() -> list[Row]:
    """Rent, a phone contract with a varying bill, a streaming plan with a new price, a weekly box, groceries."""
    months = [date(2026, month, 1) for month in range(3, 12)]
    rows = [charge(f"rent{day}", day, "880.00", "Hausverwaltung Sued", type="standing_order") for day in months]
    bills = ["31.10", "28.40", "35.99", "30.05", "29.90", "33.10", "30.20", "28.80", "34.60"]
    rows += [
        charge(f"phone{day}", day + timedelta(days=11), bill, "Telco GmbH", mandate_reference="T-1")
        for day, bill in zip(months, bills, strict=True)
    ]
    plan = ["11.99"] * 5 + ["13.99"] * 4
    rows += [
        charge(f"stream{day}", day + timedelta(days=17), price, "STREAMBOX.COM")
        for day, price in zip(months, plan, strict=True)
    ]
    rows += [charge(f"box{n}", date(2026, 8, 4) + timedelta(weeks=n), "47.95", "Gartenkiste") for n in range(15)]
    spent = [f"{23 + 31 * n % 47}.{n * 37 % 100:02}" for n in range(60)]
    rows += [
        charge(f"food{n}", date(2026, 3, 2) + timedelta(days=4 * n + n * 7 % 3), amount, "KAUFLADEN 0815")
        for n, amount in enumerate(spent)
    ]
    return [row for row in rows if row["booking_date"] <= TODAY]  # type: ignore[operator]  # a date


def answer(rows: list[Row], today: date = TODAY) -> list[Row]:
    users = pl.DataFrame({"user_id": ["u"], "today": [today]})
    return detect(pl.DataFrame(rows, schema=CHARGES), users).select(HEAD).to_dicts()


HOUSEHOLD = household()
ANSWER = answer(HOUSEHOLD)


@pytest.mark.requirement("subscriptions.invariance")
def test_the_household_has_four_recurring_payments() -> None:
    assert [(row["merchant_name"], row["amount"], row["frequency"], row["occurrences"]) for row in ANSWER] == [
        ("Hausverwaltung Sued", Decimal("880.00000"), "monthly", 6),
        ("Gartenkiste", Decimal("47.95000"), "weekly", 15),
        ("Telco GmbH", Decimal("34.60000"), "monthly", 6),
        ("STREAMBOX.COM", Decimal("13.99000"), "monthly", 6),
    ]


@pytest.mark.requirement("subscriptions.invariance")
@settings(max_examples=examples(8))
@given(order=st.permutations(range(len(HOUSEHOLD))))
def test_the_order_of_rows_changes_nothing(order: list[int]) -> None:
    assert answer([HOUSEHOLD[place] for place in order]) == ANSWER


@pytest.mark.requirement("subscriptions.invariance")
@settings(max_examples=examples(8))
@given(places=st.sets(st.integers(min_value=0, max_value=len(HOUSEHOLD) - 1), min_size=1, max_size=20))
def test_flagged_duplicates_and_refunds_change_nothing(places: set[int]) -> None:
    copies = [{**HOUSEHOLD[place], "id": f"copy{place}", "is_potential_duplicate": True} for place in sorted(places)]
    refunds = [
        {**HOUSEHOLD[place], "id": f"back{place}", "amount": Decimal("5.00"), "purpose": "Erstattung"}
        for place in sorted(places)
    ]
    assert answer([*HOUSEHOLD, *copies, *refunds]) == ANSWER


@pytest.mark.requirement("subscriptions.invariance")
@settings(max_examples=examples(8))
@given(
    days=st.lists(st.dates(date(2026, 1, 1), TODAY), min_size=1, max_size=9, unique=True),
    cents=st.integers(min_value=100000, max_value=900000),
)
def test_unrelated_purchases_change_nothing(days: list[date], cents: int) -> None:
    names = [
        "Moebelhaus",
        "Zahnarzt",
        "Reisebuero",
        "Werkstatt",
        "Optiker",
        "Gaertnerei",
        "Juwelier",
        "Notar",
        "Kueche",
    ]
    bought = [charge(f"once{n}", day, f"{Decimal(cents + 4321 * n) / 100}", names[n]) for n, day in enumerate(days)]
    assert answer([*HOUSEHOLD, *bought]) == ANSWER


@pytest.mark.requirement("subscriptions.invariance")
def test_other_users_in_the_same_call_change_nothing() -> None:
    others = [{**row, "user_id": other, "id": f"{other}{row['id']}"} for other in ("v", "w") for row in HOUSEHOLD]
    users = pl.DataFrame({"user_id": ["u", "v", "w"], "today": [TODAY, TODAY, date(2026, 9, 1)]})
    found = detect(pl.DataFrame([*HOUSEHOLD, *others], schema=CHARGES), users)
    assert found.filter(user_id="u").select(HEAD).to_dicts() == ANSWER
    alone = answer([{**row, "id": f"w{row['id']}"} for row in HOUSEHOLD], date(2026, 9, 1))
    same = [name for name in HEAD if name != "id"]
    assert found.filter(user_id="w").select(same).to_dicts() == [{name: row[name] for name in same} for row in alone]


@pytest.mark.requirement("subscriptions.invariance")
@settings(max_examples=examples(8))
@given(weeks=st.integers(min_value=-60, max_value=60))
def test_whole_weeks_shift_a_weekly_stream(weeks: int) -> None:
    shift = timedelta(weeks=weeks)
    box = [row for row in HOUSEHOLD if str(row["id"]).startswith("box")]
    moved = [{**row, "booking_date": row["booking_date"] + shift} for row in box]  # type: ignore[operator]  # a date
    (stream,) = answer(moved, TODAY + shift)
    assert (stream["frequency"], stream["last_charged"]) == ("weekly", date(2026, 11, 10) + shift)
    assert stream["occurrences"] == 15


@pytest.mark.requirement("subscriptions.invariance")
@pytest.mark.parametrize("years", [-3, 1, 4])
def test_years_shift_everything(years: int) -> None:
    def moved(day: date) -> date:
        return day.replace(year=day.year + years)

    monthly = [row for row in HOUSEHOLD if str(row["id"]).startswith(("rent", "phone", "stream"))]
    rows = [{**row, "booking_date": moved(row["booking_date"])} for row in monthly]  # type: ignore[arg-type]  # a date
    streams = answer(rows, moved(TODAY))
    assert [(row["last_charged"], row["occurrences"]) for row in streams] == [
        (moved(date(2026, 11, 1)), 6),
        (moved(date(2026, 11, 12)), 6),
        (moved(date(2026, 11, 18)), 6),
    ]


@pytest.mark.requirement("subscriptions.id")
def test_one_more_charge_raises_occurrences_by_one_and_keeps_the_id() -> None:
    before = answer([row for row in HOUSEHOLD if row["id"] != "box0"])
    weekly_before = next(row for row in before if row["frequency"] == "weekly")
    weekly = next(row for row in ANSWER if row["frequency"] == "weekly")
    assert (weekly["occurrences"], weekly_before["occurrences"]) == (15, 14)
    assert weekly["id"] == weekly_before["id"]


@pytest.mark.requirement("subscriptions.id")
def test_the_id_survives_months_and_a_new_price() -> None:
    ids = []
    for today in (date(2026, 7, 20), date(2026, 8, 20), date(2026, 9, 20), TODAY):
        past = [row for row in HOUSEHOLD if row["booking_date"] <= today]  # type: ignore[operator]  # a date
        ids.append({row["merchant_name"]: row["id"] for row in answer(past, today) if row["frequency"] == "monthly"})
    assert ids[0] == ids[1] == ids[2] == ids[3]
    assert all(str(identity).startswith("sub_") for identity in ids[0].values())


@pytest.mark.requirement("subscriptions.id")
def test_the_ids_of_two_contracts_stay_theirs_while_old_evidence_slides_away() -> None:
    months = [date(2023 + month // 12, month % 12 + 1, 1) for month in range(47)]
    rows = [charge(f"early{day}", day + timedelta(days=2), "19.99", "Telco") for day in months]
    rows += [charge(f"late{day}", day + timedelta(days=17), "39.99", "Telco") for day in months]
    seen: dict[object, set[object]] = {}
    for today in (date(2025, 11, 10), date(2025, 11, 25), date(2025, 12, 10), date(2026, 6, 25), date(2026, 10, 10)):
        past = [row for row in rows if row["booking_date"] <= today]  # type: ignore[operator]  # a date
        for stream in answer(past, today):
            seen.setdefault(stream["amount"], set()).add(stream["id"])
    assert {price: len(ids) for price, ids in seen.items()} == {Decimal("19.99"): 1, Decimal("39.99"): 1}


@pytest.mark.requirement("subscriptions.id")
def test_a_new_mandate_continues_the_stream_and_its_id() -> None:
    months = [date(2026, month, 5) for month in range(1, 12)]
    rows = [charge(f"m{day}", day, "63.00", "Verkehrsbund", mandate_reference="OLD") for day in months[:7]]
    (before,) = answer(rows, date(2026, 7, 20))
    rows += [charge(f"m{day}", day, "65.00", "Verkehrsbund", mandate_reference="NEW") for day in months[7:]]
    (stream,) = answer(rows)
    assert (stream["occurrences"], stream["amount"]) == (6, Decimal("65.00"))
    assert len(stream["charge_ids"]) == 11  # type: ignore[arg-type]  # a list
    assert stream["id"] == before["id"]


@pytest.mark.requirement("subscriptions.evidence")
def test_a_missing_type_changes_nothing_for_a_steady_price(
    charges_from: Callable[[list[Row]], pl.DataFrame],
) -> None:
    untyped = [{**row, "type": None} for row in HOUSEHOLD]
    assert answer(untyped) == ANSWER
