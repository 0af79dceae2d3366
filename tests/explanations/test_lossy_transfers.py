"""Transfers between own accounts that lose a fee or change the currency, in every figure and selection."""

from datetime import date
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, TransactionRecord
from tests.explanations.conftest import Holder

GIRO = AccountRecord(stable_key="giro", iban="DE89370400440532013000", currency="EUR")
OTHER = AccountRecord(stable_key="other", iban="DE02120300000000202051", currency="EUR")
SWISS = AccountRecord(stable_key="swiss", iban="CH9300762011623852957", currency="CHF")


def moved(day: int, amount: str, *, other: AccountRecord, currency: str = "EUR") -> TransactionRecord:
    return TransactionRecord(
        booking_date=date(2026, 11, day),
        amount=Decimal(amount),
        currency=currency,
        counterpart_iban=other.iban,
        counterpart_name="Eva",
    )


def figures(holder: Holder, *places: int) -> list[float]:
    """Income and expenses of the month, in the cashflow and in totals, and the expenses of 30 days."""
    ids = holder.account_ids()
    chosen = ",".join(ids[place] for place in places)
    month = holder.get("/cashflow", accountIds=chosen, months=1)["cashflow"][0]
    totals = holder.get("/transactions/totals", accountIds=chosen, dateFrom="2026-11-01", dateTo="2026-11-30")
    spent = holder.get("/snapshot", accountIds=chosen)["last30Days"]["totalExpenses"]
    categories = holder.get("/cashflow/categories", accountIds=chosen, months=1)["months"][0]["categories"]
    assert [totals["income"], totals["expenses"]] == [month["income"], month["expenses"]]
    assert sum(each["amount"] for each in categories) == month["expenses"]
    rows = holder.get("/cashflow/2026-11/transactions", accountIds=chosen)["transactions"]
    assert sum(Decimal(repr(row["countedAmount"])) for row in rows) == Decimal(repr(month["net"]))
    return [month["income"], month["expenses"], spent]


@pytest.mark.requirement("decision 14")
def test_of_a_transfer_that_lost_a_fee_the_fee_alone_counts_where_both_accounts_are_selected(holder: Holder) -> None:
    holder.bring(GIRO, [moved(3, "-100.00", other=OTHER), moved(5, "-7.00", other=SWISS)])
    holder.bring(OTHER, [moved(4, "99.50", other=GIRO)])
    assert figures(holder, 0, 1) == [0, 7.5, 7.5]
    assert figures(holder, 0) == [0, 107, 107]
    assert figures(holder, 1) == [99.5, 0, 0]
    holder.bring(SWISS, [moved(6, "6.51", other=GIRO, currency="CHF")])
    assert figures(holder, 0, 1, 2) == [0, 0.5, 0.5]
    assert figures(holder, 0, 2) == [0, 100, 100]
    rows = holder.get("/cashflow/2026-11/transactions", accountIds=",".join(holder.account_ids()))["transactions"]
    leaving = next(each for each in rows if each["amount"] == -100)
    assert (leaving["countedAmount"], leaving["leftOut"]) == (-0.5, None)
    said = holder.get(f"/transactions/{leaving['id']}/explanation")["transfer"]["reason"]
    assert said.endswith("; where both accounts are selected, only the fee counts that it lost on its way.")
