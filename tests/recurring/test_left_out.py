"""What is never a recurring payment, whatever its rhythm (docs/recurring.md, "What is left out")."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

Row = dict[str, object]
MONTHS = [date(2026, month, 15) for month in range(6, 12)]


def monthly(**every: object) -> list[Row]:
    """Six charges of 57.30 on the 15th."""
    return [
        {"booking_date": day, "amount": Decimal("-57.30"), "counterpart_name": "Nordlicht", **every} for day in MONTHS
    ]


@pytest.mark.requirement("subscriptions.left-out")
@pytest.mark.parametrize("kind", ["cash_withdrawal", "cash_deposit", "salary", "interest", "fee"])
def test_kinds_of_bookings_that_are_no_payments_for_a_service(
    kind: str, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    assert said(charges_from(monthly(type=kind))) == []


@pytest.mark.requirement("subscriptions.left-out")
@pytest.mark.parametrize(
    "purpose",
    [
        "Sparen Urlaub",
        "monatliche Sparrate",
        "Tagesgeld",
        "Umbuchung auf eigenes Konto",
        "ETF Sparplan",
        "Depot 4711",
        "Depotsparplan",
        "Rücklage Auto",
        "RUECKLAGEN",
        "Bausparvertrag 12",
        "Savings",
        "transfer to own account",
        "Spaarrekening",
        "Spoření",
        "Kreditkartenabrechnung",
        "VISA-ABR. 4748",
        "credit card payment",
        "Rate 3/12 Bestellung",
        "Ratenkauf Rate 3 v. 12",
        "Ratenzahlung",
        "instalment 2 of 6",
        "termijn 2 van 6",
        "splátka 3/10",
        "GA NR00012345",
        "Geldautomat",
        "ATM withdrawal",
        "geldopname",
        "výběr z bankomatu",
        "výběr z",
        "Entgeltabschluss",
    ],
)
def test_wording_that_says_the_money_is_saved_settled_lent_or_drawn(
    purpose: str, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    assert said(charges_from(monthly(purpose=purpose))) == []
    assert said(charges_from(monthly(purpose=purpose.upper()))) == []


@pytest.mark.requirement("subscriptions.left-out")
@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("Home Depot", "tool rental"),
        ("Sparkassen-Versicherung", "Beitrag"),
        ("Office Depot", "coffee plan"),
        ("Pirate Tours", "club 3/12"),
        ("Cashmere Club", "box"),
        ("Automat GmbH", "Miete"),
    ],
)
def test_words_that_only_look_like_them_leave_nothing_out(
    name: str, purpose: str, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    assert len(said(charges_from(monthly(counterpart_name=name, purpose=purpose)))) == 1


@pytest.mark.requirement("subscriptions.left-out")
@pytest.mark.parametrize(
    "mark", [{"transfer_account_id": "b"}, {"is_adjusting_entry": True}, {"is_potential_duplicate": True}]
)
def test_own_transfers_adjusting_entries_and_flagged_duplicates(
    mark: Row, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    assert said(charges_from(monthly(**mark))) == []
    (stream,) = said(charges_from([*monthly(), *monthly(**mark)]))
    assert stream["occurrences"] == 6


@pytest.mark.requirement("subscriptions.left-out")
def test_a_charge_that_came_back_within_ten_days_was_never_paid(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    def returned(day: date, **other: object) -> Row:
        return {"booking_date": day, "amount": Decimal("57.30"), "purpose": "RUECKLASTSCHRIFT Beitrag", **other}

    def occurrences(*more: Row) -> object:
        (stream,) = said(charges_from([*monthly(mandate_reference="M-1"), *more]))
        return stream["occurrences"]

    assert occurrences(returned(date(2026, 8, 25))) == 5
    assert occurrences(returned(date(2026, 8, 26))) == 6  # eleven days
    assert occurrences(returned(date(2026, 8, 18), amount=Decimal("57.29"))) == 6
    assert occurrences(returned(date(2026, 8, 18), purpose="Erstattung")) == 6  # a refund changes nothing
    assert occurrences(returned(date(2026, 8, 18), currency="CHF")) == 6


@pytest.mark.requirement("subscriptions.left-out")
@pytest.mark.parametrize(("day", "occurrences"), [(20, 5), (25, 5), (26, 6)])
def test_two_returns_take_out_two_equal_charges(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]], day: int, occurrences: int
) -> None:
    member = monthly(mandate_reference="M-1")
    back = {"amount": Decimal("57.30"), "purpose": "RUECKLASTSCHRIFT Beitrag"}
    days = [date(2026, 8, 20), date(2026, 8, day)]
    (stream,) = said(charges_from([*member, member[2], *({**back, "booking_date": each} for each in days)]))
    assert stream["occurrences"] == occurrences


@pytest.mark.requirement("subscriptions.left-out")
def test_nothing_after_today_and_nothing_before_the_evidence_counts(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    (stream,) = said(charges_from(monthly()), date(2026, 10, 14))
    assert (stream["occurrences"], stream["last_charged"]) == (4, date(2026, 9, 15))
    yearly: list[Row] = [
        {"booking_date": day, "amount": Decimal("-57.30"), "counterpart_name": "Nordlicht"}
        for day in (date(2024, 10, 20), date(2025, 10, 20), date(2026, 10, 20))
    ]
    (stream,) = said(charges_from(yearly))
    assert stream["charge_ids"] == ["t00001", "t00002"]  # 25 months before 2026-11-20 is 2024-10-20, left out
