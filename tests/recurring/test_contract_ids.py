"""Which id a recurring payment has where only some accounts are looked at."""

from datetime import date
from decimal import Decimal

import pytest

from analytics.recurring.contract_ids import named_as_in
from analytics.recurring.payment import RecurringPayment


def payments(*found: tuple[str, str]) -> list[RecurringPayment]:
    """Recurring payments with these ids and charges."""
    return [
        RecurringPayment(
            id=id_,
            merchant_name="Netflix",
            amount=Decimal("12.99"),
            currency="EUR",
            frequency="monthly",
            last_charged=date(2026, 11, 2),
            charge_ids=charges.split(),
            charge_days=[],
            confidence=1.0,
            next_expected=date(2026, 12, 2),
            account_id="a",
            direction="outgoing",
        )
        for id_, charges in found
    ]


def ids_in(whole: list[RecurringPayment], *some: tuple[str, str]) -> list[str]:
    return [each.id for each in named_as_in("u", payments(*some), whole)]


@pytest.mark.requirement("subscriptions.id")
def test_two_halves_of_one_contract_never_share_its_id() -> None:
    first, second = ids_in(payments(("sub_all", "jan feb mar apr may")), ("sub_x", "apr may"), ("sub_y", "jan feb mar"))
    assert second == "sub_all"  # it holds more of the charges
    assert first not in {"sub_all", "sub_x"}
    assert ids_in(payments(("sub_y", "jan feb mar")), ("sub_z", "apr may")) == [first]


@pytest.mark.requirement("subscriptions.id")
def test_a_contract_that_holds_charges_of_two_has_the_id_of_the_one_with_more() -> None:
    whole = payments(("sub_old", "jan feb"), ("sub_new", "mar apr may"))
    assert ids_in(whole, ("sub_x", "jan feb mar apr may")) == ["sub_new"]
