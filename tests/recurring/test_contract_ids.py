"""Which id a recurring payment has where only some accounts are looked at."""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from analytics.frames import SUBSCRIPTIONS
from analytics.recurring.contract_ids import named_as_in


def streams(*rows: tuple[str, str]) -> pl.DataFrame:
    """SUBSCRIPTIONS with these ids and charges."""
    common = {
        "user_id": "u",
        "merchant_name": "Netflix",
        "amount": Decimal("12.99"),
        "currency": "EUR",
        "frequency": "monthly",
        "last_charged": date(2026, 11, 2),
        "occurrences": 3,
        "confidence": 1.0,
        "next_expected": date(2026, 12, 2),
        "account_id": "a",
    }
    made = [{**common, "id": id_, "charge_ids": charges.split()} for id_, charges in rows]
    return pl.DataFrame([{name: row[name] for name in SUBSCRIPTIONS} for row in made], schema=SUBSCRIPTIONS)


@pytest.mark.requirement("subscriptions.id")
def test_two_halves_of_one_contract_never_share_its_id() -> None:
    whole = streams(("sub_all", "jan feb mar apr may"))
    found = named_as_in(streams(("sub_x", "apr may"), ("sub_y", "jan feb mar")), whole)
    first, second = found["id"]
    assert second == "sub_all"  # it holds more of the charges
    assert first not in {"sub_all", "sub_x"}
    assert named_as_in(streams(("sub_z", "apr may")), streams(("sub_y", "jan feb mar")))["id"].to_list() == [first]


@pytest.mark.requirement("subscriptions.id")
def test_a_contract_that_holds_charges_of_two_has_the_id_of_the_one_with_more() -> None:
    whole = streams(("sub_old", "jan feb"), ("sub_new", "mar apr may"))
    assert named_as_in(streams(("sub_x", "jan feb mar apr may")), whole)["id"].to_list() == ["sub_new"]
