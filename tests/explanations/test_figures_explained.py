"""For any ledger, month, category and selection: what is explained adds up to the figure, and nothing is missing."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from tests.conftest import examples
from tests.explanations.conftest import Holder, Service, body_of

Json = dict[str, object]

TODAY = date(2026, 11, 20)
FIRST = date(2026, 8, 25)
MONTHS = 4
GIRO, SAVINGS, DOLLARS, YEN = (
    AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", kind="checking"),
    AccountRecord(stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR", kind="savings"),
    AccountRecord(stable_key="GB33BUKB20201555555555", iban="GB33BUKB20201555555555", currency="USD"),
    AccountRecord(stable_key="yen", currency="JPY"),
)
SHOPS = ("REWE", "Netflix", "IKEA", "Martin Schneider", "Amazon", None)


Import = tuple[AccountRecord, list[TransactionRecord], StatementRecord | None]


@st.composite
def record(draw: st.DrawFn, currency: str) -> TransactionRecord:
    """A booking, a refund or a pending row; some amounts have more digits than the currency."""
    units = draw(st.sampled_from([-5000, 5000, -1299, 1299, -725, 725, 250000, 1, 0]))
    finer = draw(st.sampled_from([0, 0, 0, 500, -500, 499, 999]))
    return TransactionRecord(
        amount=Decimal(units).scaleb(-2) + Decimal(finer).scaleb(-5),
        currency=currency,
        booking_date=draw(st.sampled_from([FIRST, TODAY, TODAY - timedelta(days=29), TODAY - timedelta(days=30)]))
        if draw(st.booleans())
        else draw(st.dates(FIRST, TODAY)),
        status=draw(st.sampled_from(["booked", "booked", "booked", "pending"])),
        counterpart_name=draw(st.sampled_from(SHOPS)),
        counterpart_iban=draw(st.sampled_from([None, None, GIRO.iban, SAVINGS.iban, "AT611904300234573201"])),
        purpose=draw(st.sampled_from([None, "Einkauf", "Miete November", "Gehalt", "Erstattung"])),
    )


@st.composite
def transfer(draw: st.DrawFn) -> list[tuple[AccountRecord, TransactionRecord]]:
    """Both legs of a move between own accounts, or one of them; some name the other side, some do not."""
    source, target = draw(st.sampled_from([(GIRO, SAVINGS), (SAVINGS, GIRO)]))
    left_on = draw(st.dates(FIRST, TODAY - timedelta(days=4)))
    amount = Decimal(draw(st.integers(100, 99999))).scaleb(-2)
    legs = [
        (account, TransactionRecord(amount=signed, currency="EUR", booking_date=day, counterpart_iban=iban))
        for account, signed, day, iban in (
            (source, -amount, left_on, target.iban),
            (
                target,
                amount,
                left_on + timedelta(days=draw(st.integers(0, 4))),
                draw(st.sampled_from([source.iban, None])),
            ),
        )
    ]
    return draw(st.sampled_from([legs, legs, legs[:1], legs[1:]]))


@st.composite
def ledgers(draw: st.DrawFn) -> list[Import]:
    """Batches in any order; of two statements with a gap between them comes an adjusting entry."""
    batches: list[Import] = []
    for account in draw(st.sampled_from([[GIRO], [GIRO, SAVINGS], [GIRO, SAVINGS], [GIRO, SAVINGS, DOLLARS, YEN]])):
        batches.append((account, draw(st.lists(record(account.currency), max_size=8)), None))
        if account is SAVINGS:
            moves = draw(st.lists(transfer(), min_size=1, max_size=3))
            batches += [(owner, [leg], None) for move in moves for owner, leg in move]
    if draw(st.booleans()):
        batches += [statement(draw(st.integers(1, 9)), "100.00"), statement(draw(st.integers(12, 19)), "250.55")]
    return draw(st.permutations(batches))


def statement(day: int, opening: str) -> Import:
    """A statement of one booking, which adds up."""
    spent = TransactionRecord(
        amount=Decimal("-3.33"), currency="EUR", booking_date=date(2026, 11, day), counterpart_name="IKEA"
    )
    told = StatementRecord(
        opening=Decimal(opening),
        opening_date=spent.booking_date,
        closing=Decimal(opening) + spent.amount,
        closing_date=spent.booking_date,
        is_authoritative=True,
    )
    return GIRO, [spent], told


def money(value: object) -> Decimal:
    return Decimal(repr(value))


def selections(ids: list[str]) -> Iterator[list[str]]:
    """Every account, and all of them, and all but the first."""
    for chosen in {*combinations(ids, 1), tuple(ids), tuple(ids[1:])} - {()}:
        yield list(chosen)


def total(rows: list[Json], *counted_as: str) -> Decimal:
    return sum((money(row["countedAmount"]) for row in rows if row["countedAs"] in counted_as), Decimal(0))


def is_left_out_or_counted(row: Json) -> bool:
    """One of the two, and what is left out adds nothing."""
    return (row["countedAs"] is None) != (row["leftOut"] is None) and (
        row["leftOut"] is None or money(row["countedAmount"]) == 0
    )


@pytest.mark.requirement("explanations.add-up")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=examples(6))
@given(batches=ledgers())
def test_explanations_add_up_to_every_figure_of_every_selection(
    new_holder: Callable[[], Holder], batches: list[Import]
) -> None:
    holder = new_holder()
    for account, records, statement in batches:
        holder.bring(account, records, statement)
    for selection in selections(holder.account_ids()):
        chosen = ",".join(selection)
        listed = holder.get("/transactions", accountIds=chosen, perPage=100)["transactions"]
        holds_all_months(holder, chosen, listed)
        holds_all_categories(holder, chosen, listed)


def holds_all_months(holder: Holder, chosen: str, listed: list[Json]) -> None:
    shown: list[object] = []
    for month in holder.get("/cashflow", accountIds=chosen, months=MONTHS)["cashflow"]:
        told = holder.get(f"/cashflow/{month['month']}/transactions", accountIds=chosen)
        rows = told["transactions"]
        assert {name: told[name] for name in month} == month
        assert total(rows, "income") == money(month["income"])
        assert total(rows, "expenses") == -money(month["expenses"])
        assert sum((money(row["countedAmount"]) for row in rows), Decimal(0)) == money(month["net"])
        assert all(is_left_out_or_counted(row) for row in rows)
        in_its_own = [row for row in rows if row["currency"] == told["currency"] and row["leftOut"] is None]
        assert all(row["countedAmount"] == row["amount"] for row in in_its_own)
        shown += [row["id"] for row in rows if row["leftOut"] != "pending"]
    assert Counter(shown) == Counter(row["id"] for row in listed)


def holds_all_categories(holder: Holder, chosen: str, listed: list[Json]) -> None:
    recent = holder.get("/snapshot", accountIds=chosen)["last30Days"]
    amounts: dict[object, tuple[Decimal, object]] = {}
    shown: list[object] = []
    # rows of any other category are not booked yet
    for category in {"RENT", *(str(row["category"] or "OTHER") for row in listed)}:
        told = holder.get(f"/snapshot/categories/{category}/transactions", accountIds=chosen)
        rows = told["transactions"]
        assert total(rows, "expenses", "refund") == -money(told["amount"]) <= 0
        assert told["totalExpenses"] == recent["totalExpenses"]
        assert all(is_left_out_or_counted(row) for row in rows)
        assert all((row["category"] or "OTHER") == category for row in rows)
        amounts[category] = money(told["amount"]), told["percentage"]
        shown += [row["id"] for row in rows if row["leftOut"] != "pending"]
    assert sum((amount for amount, _ in amounts.values()), Decimal(0)) == money(recent["totalExpenses"])
    top = {row["category"]: (money(row["amount"]), row["percentage"]) for row in recent["topCategories"]}
    assert {name: amounts[name] for name in top} == top
    since = TODAY - timedelta(days=29)
    assert Counter(shown) == Counter(row["id"] for row in listed if str(row["bookingDate"])[:10] >= since.isoformat())


@pytest.mark.requirement("explanations.add-up")
@pytest.mark.parametrize("name", ["demo", "solo", "globe"])
@pytest.mark.long
def test_explanations_add_up_for_the_users_of_the_demo(demo_service: Service, name: str) -> None:
    client = demo_service.named(name)
    for selection in selections([account["id"] for account in body_of(client, "/accounts")["accounts"]]):
        chosen = ",".join(selection)
        for month in body_of(client, "/cashflow", accountIds=chosen, months=12)["cashflow"]:
            told = body_of(client, f"/cashflow/{month['month']}/transactions", accountIds=chosen)
            assert {key: told[key] for key in month} == month
            assert sum((money(row["countedAmount"]) for row in told["transactions"]), Decimal(0)) == money(month["net"])
