"""Figures of the demo's users, to the cent, as an independent program computes them from the listed transactions."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations

import pytest
from starlette.testclient import TestClient

from tests.explanations.conftest import Service
from tests.explanations.recomputation import Bank, asked, cashflow, exact, read, snapshot, subscription

pytestmark = pytest.mark.no_cover  # every selection of whole histories, see tests/conftest.py

MONTHS = 40  # all of the demo's history, and months before it
HOMES = {"demo": "EUR", "solo": "EUR", "globe": "EUR"}


class Known:
    """A user's client and what the independent program has read through it."""

    def __init__(self, client: TestClient, bank: Bank) -> None:
        self.client = client
        self.bank = bank

    def selections(self) -> Iterator[list[str]]:
        """Every account, every pair, all but one, and all."""
        ids = [account["id"] for account in self.bank.accounts]
        for size in sorted({1, 2, len(ids) - 1, len(ids)} - {0}):
            yield from map(list, combinations(ids, size))


@pytest.fixture(scope="module", params=HOMES)
def known(request: pytest.FixtureRequest, demo_service: Service) -> Known:
    client = demo_service.named(request.param)
    return Known(client, read(client, home=HOMES[request.param]))


@pytest.mark.requirement("recomputed.cashflow")
@pytest.mark.long
def test_cashflow_of_every_selection_is_what_the_listed_transactions_add_up_to(known: Known) -> None:
    for selection in known.selections():
        told = asked(known.client, "/cashflow", accountIds=",".join(selection), months=str(MONTHS))["cashflow"]
        months = [row["month"] for row in told]
        figures = [(row["month"], *(exact(row[name]) for name in ("income", "expenses", "net"))) for row in told]
        assert figures == cashflow(known.bank, selection, months)
        assert len(set(months)) == MONTHS


@pytest.mark.requirement("recomputed.snapshot")
def test_snapshot_of_every_selection_is_what_the_listed_transactions_add_up_to(known: Known) -> None:
    for selection in known.selections():
        told = asked(known.client, "/snapshot", accountIds=",".join(selection))
        recent = told["last30Days"]
        top = [(row["category"], exact(row["amount"]), row["percentage"]) for row in recent["topCategories"]]
        figures = (exact(told["totalBalance"]), told["accountCount"], exact(recent["totalExpenses"]), top)
        assert figures == snapshot(known.bank, selection)


@pytest.mark.requirement("recomputed.subscriptions")
@pytest.mark.long
def test_subscriptions_of_every_selection_are_what_their_charges_say(known: Known) -> None:
    for selection in known.selections():
        ids = ",".join(selection)
        listed = asked(known.client, "/subscriptions", accountIds=ids)["subscriptions"]
        told = asked(known.client, "/subscriptions/details", accountIds=ids)["subscriptions"]
        assert listed == [subscription(known.bank, selection, each) for each in told]


@pytest.mark.requirement("recomputed.subscriptions")
def test_no_charge_belongs_to_two_subscriptions(known: Known) -> None:
    ids = ",".join(account["id"] for account in known.bank.accounts)
    told = asked(known.client, "/subscriptions/details", accountIds=ids)["subscriptions"]
    charges = [charge["transactionId"] for each in told for charge in each["charges"]]
    assert len(charges) == len(set(charges)) > 0


@pytest.mark.requirement("recomputed.cashflow")
def test_the_recomputed_figures_are_no_zeros(known: Known) -> None:
    ids = [account["id"] for account in known.bank.accounts]
    assert sum(row[2] for row in cashflow(known.bank, ids, ["2026-09", "2026-10"])) > Decimal(1000)
    assert len(snapshot(known.bank, ids)[3]) >= 3
