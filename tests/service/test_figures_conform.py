"""Months, totals, percentages and subscriptions, recomputed in plain Python from what the list endpoints say.

The program below shares nothing with analytics/: it reads JSON of GET /accounts and GET /transactions, and pairs
transfers, sums and converts with loops over `Decimal`.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import cache
from itertools import combinations
from zoneinfo import ZoneInfo

import httpx
import pytest
from currency_converter import CurrencyConverter

from tests.days import whole_day
from tests.service.conftest import Json, Served, everything, get

READERS = ["demo", "solo", "globe"]
CENT = Decimal("0.01")
FREQUENCY_DAYS = {"weekly": 7, "biweekly": 14, "monthly": 31, "quarterly": 92, "yearly": 366}


@cache
def reference_rates() -> CurrencyConverter:
    """The European Central Bank's rates as their package answers; the last known one where a day has none."""
    return CurrencyConverter(
        decimal=True,
        fallback_on_missing_rate=True,
        fallback_on_missing_rate_method="last_known",
        fallback_on_wrong_date=True,
    )


class Books:
    """A user's accounts and transactions, numbers as exact decimals."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.accounts: dict[str, Json] = {}
        for account in self.exact("/accounts")["accounts"]:
            self.accounts[account["id"]] = account
        ids = [row["id"] for row in everything(client)]
        rows: list[Json] = []
        page = 1
        while len(rows) < len(ids):
            asked: dict[str, str | int] = {"accountIds": ",".join(self.accounts), "perPage": 100, "page": page}
            rows += self.exact("/transactions", **asked)["transactions"]
            page += 1
        self.rows = rows
        self.other_side = self._other_sides()

    def exact(self, path: str, **parameters: str | int) -> Json:
        answer = self.client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        body: Json = json.loads(answer.text, parse_float=Decimal, parse_int=Decimal)
        return body

    def _other_sides(self) -> dict[str, str]:
        """Transaction id -> the own account on the other side (decision 14)."""
        by_iban = {account["iban"]: id_ for id_, account in self.accounts.items() if account["iban"]}
        sides: dict[str, str] = {}
        for row in self.rows:
            target = by_iban.get(row["counterpartIban"])
            if target and target != row["bankAccount"]["id"]:
                sides[row["id"]] = target
        for row in self.rows:
            if row["id"] not in sides and is_silent(row):
                named = [other for other in self.opposites(row) if sides.get(other["id"]) == row["bankAccount"]["id"]]
                if named:
                    sides[row["id"]] = named[0]["bankAccount"]["id"]
        silent = {row["id"] for row in self.rows if is_silent(row) and row["id"] not in sides}
        only = {}
        for row in self.rows:
            if row["id"] in silent:
                found = [other for other in self.opposites(row) if other["id"] in silent]
                if len(found) == 1:
                    only[row["id"]] = found[0]
        for id_, other in only.items():
            if other["id"] in only and only[other["id"]]["id"] == id_:
                sides[id_] = other["bankAccount"]["id"]
        return sides

    def _has_arrived(self, row: Json, target: str) -> bool:
        """Whether the other account has a leg that names this account, or one of the opposite amount."""
        own = self.accounts[row["bankAccount"]["id"]]["iban"]
        return any(
            other["bankAccount"]["id"] == target
            and row["amount"] * other["amount"] < 0
            and abs((day_of(other) - day_of(row)).days) <= 4
            and ((own is not None and other["counterpartIban"] == own) or other in self.opposites(row))
            for other in self.rows
        )

    def opposites(self, row: Json) -> list[Json]:
        return [
            other
            for other in self._by_amount()[-row["amount"]]
            if other["currency"] == row["currency"]
            and other["bankAccount"]["id"] != row["bankAccount"]["id"]
            and abs((day_of(other) - day_of(row)).days) <= 4
        ]

    def _by_amount(self) -> dict[Decimal, list[Json]]:
        if not hasattr(self, "_amounts"):
            self._amounts: dict[Decimal, list[Json]] = defaultdict(list)
            for row in self.rows:
                self._amounts[row["amount"]].append(row)
        return self._amounts

    def crossing(self, ids: Sequence[str]) -> list[Json]:
        """The rows that cross the border of the selection; one whose other leg is under way does (decision 14)."""
        return [
            row
            for row in self.rows
            if row["bankAccount"]["id"] in ids
            and not (self.other_side.get(row["id"]) in ids and self._has_arrived(row, self.other_side[row["id"]]))
        ]

    def currency(self, ids: Sequence[str]) -> str:
        found = {self.accounts[id_]["currency"] for id_ in ids}
        return found.pop() if len(found) == 1 else "EUR"

    def selections(self) -> list[list[str]]:
        """Each account alone, some pairs, and all."""
        ids = list(self.accounts)
        return [[id_] for id_ in ids] + [list(pair) for pair in list(combinations(ids, 2))[:4]] + [ids]


def is_silent(row: Json) -> bool:
    """No other account is named; some banks write the account's own IBAN beside settlements and fees."""
    return row["counterpartIban"] in (None, row["bankAccount"]["iban"])


def day_of(row: Json) -> date:
    return date.fromisoformat(row["bookingDate"][:10])


def converted(amount: Decimal, currency: str, to: str, day: date) -> Decimal:
    if currency == to:
        return amount
    exact = Decimal(reference_rates().convert(amount, currency, to, date=day))
    return exact.quantize(CENT, rounding=ROUND_HALF_EVEN)


@pytest.fixture(scope="module")
def today() -> date:
    return whole_day(ZoneInfo("Europe/Berlin"))


@pytest.fixture(scope="module", params=READERS)
def books(request: pytest.FixtureRequest, service: Served) -> Books:
    return Books(service.client(request.param))


@pytest.mark.requirement("interface 4.5")
@pytest.mark.requirement("decision 14")
@pytest.mark.long
def test_every_month_is_the_sum_of_what_crosses_the_border_of_the_selection(books: Books) -> None:
    for ids in books.selections():
        shown = books.exact("/cashflow", accountIds=",".join(ids), months=24)["cashflow"]
        income: dict[str, Decimal] = defaultdict(Decimal)
        expenses: dict[str, Decimal] = defaultdict(Decimal)
        for row in books.crossing(ids):
            amount = converted(row["amount"], row["currency"], books.currency(ids), day_of(row))
            side = income if amount > 0 else expenses
            side[row["bookingDate"][:7]] += abs(amount)
        assert shown == [
            {
                "month": month["month"],
                "income": income[month["month"]],
                "expenses": expenses[month["month"]],
                "net": income[month["month"]] - expenses[month["month"]],
            }
            for month in shown
        ]


@pytest.mark.requirement("decision 14")
def test_one_accounts_cashflow_is_the_change_of_its_balance(books: Books) -> None:
    for id_, account in books.accounts.items():
        own = [row for row in books.rows if row["bankAccount"]["id"] == id_]
        if not own or account["balance"] is None:
            continue
        months = books.exact("/cashflow", accountIds=id_, months=120)["cashflow"]
        assert sum(month["net"] for month in months) == sum(row["amount"] for row in own)


@pytest.mark.requirement("decision 3")
@pytest.mark.parametrize("months", [1, 2, 6, 24, 120])
def test_months_are_as_many_as_asked_for_oldest_first_and_this_one_last(
    service: Served, today: date, months: int
) -> None:
    shown = [month["month"] for month in get(service.client("solo"), "/cashflow", months=months)["cashflow"]]
    first = today.year * 12 + today.month - months
    assert shown == [f"{(first + n) // 12}-{(first + n) % 12 + 1:02d}" for n in range(months)]


@pytest.mark.requirement("decision 3")
def test_months_without_end_are_answered_and_hide_nothing(service: Served) -> None:
    client = service.client("solo")
    assert get(client, "/cashflow", months=10**12) == get(client, "/cashflow", months=120)
    assert len(get(client, "/cashflow")["cashflow"]) == 6
    assert client.get("/cashflow", params={"months": 0}).status_code == 400


@pytest.mark.requirement("decision 18")
def test_the_total_balance_is_the_sum_of_the_listed_ones(books: Books, today: date) -> None:
    for ids in books.selections():
        shown = books.exact("/snapshot", accountIds=",".join(ids))
        with_balance = [books.accounts[id_] for id_ in books.accounts if id_ in ids]
        with_balance = [account for account in with_balance if account["balance"] is not None]
        currency = books.currency(ids)
        total = sum(converted(each["balance"], each["currency"], currency, today) for each in with_balance)
        assert shown["totalBalance"] == total
        assert shown["accountCount"] == len(with_balance) == len(shown["accounts"])
        assert shown["accounts"] == [
            {
                "name": each["accountName"] or each["iban"] or each["accountType"] or "Account",
                "bank": each["bankConnection"]["bankName"],
                "balance": each["balance"],
                "currency": each["currency"],
            }
            for each in with_balance
        ]


@pytest.mark.requirement("interface 4.6 last30Days")
@pytest.mark.requirement("decision 16")
def test_expenses_of_the_last_30_days_by_category(books: Books, today: date) -> None:
    for ids in books.selections():
        shown = books.exact("/snapshot", accountIds=",".join(ids))["last30Days"]
        spent: dict[str, Decimal] = defaultdict(Decimal)
        for row in books.crossing(ids):
            if not today - timedelta(days=29) <= day_of(row) <= today:
                continue
            category = row["category"] or "OTHER"
            if row["amount"] > 0 and (category in ("SALARY", "TRANSFER") or not paid_before(books, ids, row)):
                continue
            spent[category] -= converted(row["amount"], row["currency"], books.currency(ids), day_of(row))
        left = {category: amount for category, amount in spent.items() if amount > 0}
        total = sum(left.values(), Decimal(0))
        assert shown["totalExpenses"] == total
        top = sorted(left.items(), key=lambda item: (-item[1], item[0]))[:5]
        assert shown["topCategories"] == [
            {
                "category": category,
                "amount": amount,
                "percentage": (amount * 100 / total).quantize(Decimal(1), rounding=ROUND_HALF_UP),
            }
            for category, amount in top
        ]


def paid_before(books: Books, ids: Sequence[str], credit: Json) -> bool:
    """Whether the counterpart of a credit was paid before: what comes back as rent, for rent."""

    def known_by(row: Json) -> set[str]:
        names = {(row[name] or "").lower() for name in ("counterpartName", "merchantName")}
        return (names | {row["counterpartIban"] or ""}) - {""}

    return any(
        row["amount"] < 0
        and day_of(row) <= day_of(credit)
        and known_by(row) & known_by(credit)
        and (credit["category"] != "RENT" or row["category"] == "RENT")
        for row in books.crossing(ids)
    )


@pytest.mark.requirement("interface 4.7")
@pytest.mark.requirement("decision 21")
def test_every_subscription_can_be_found_in_the_list(books: Books, today: date) -> None:
    six_months_ago = date(today.year - (today.month <= 6), (today.month - 7) % 12 + 1, min(today.day, 28))
    for ids in books.selections():
        shown = books.exact("/subscriptions", accountIds=",".join(ids))["subscriptions"]
        outgoing = [
            row
            for row in books.rows
            if row["bankAccount"]["id"] in ids and row["amount"] < 0 and row["id"] not in books.other_side
        ]
        for each in shown:
            last = date.fromisoformat(each["lastCharged"][:10])
            charges = [
                row
                for row in outgoing
                if day_of(row) == last and row["amount"] == -each["amount"] and row["currency"] == each["currency"]
            ]
            assert charges, each
            assert each["amount"] > 0
            assert each["occurrences"] >= 1
            assert six_months_ago <= last <= today
            assert today - last <= 2 * timedelta(days=FREQUENCY_DAYS[each["frequency"]]) + timedelta(days=1)
        if len({each["currency"] for each in shown}) == 1:
            details = books.exact("/subscriptions/details", accountIds=",".join(ids))["subscriptions"]
            assert [each["amount"] for each in details] == [each["amount"] for each in shown]
            yearly = [-each["yearlyCost"] for each in details]  # of what comes twice a year, too
            assert yearly == sorted(yearly)


@pytest.mark.requirement("interface 2.10 frequency")
def test_the_demo_household_shows_all_five_frequencies(service: Served) -> None:
    client = service.client("demo")
    ids = ",".join(account["id"] for account in get(client, "/accounts")["accounts"])
    found = {each["frequency"] for each in get(client, "/subscriptions", accountIds=ids)["subscriptions"]}
    assert found == FREQUENCY_DAYS.keys()


@pytest.mark.requirement("decision 7")
def test_a_user_without_accounts_gets_empty_lists_and_zeros(service: Served) -> None:
    client = service.client("empty")
    assert get(client, "/accounts") == {"accounts": []}
    pagination = {"page": 1, "perPage": 50, "total": 0, "pageCount": 0}
    assert get(client, "/transactions") == {"transactions": [], "pagination": pagination}
    assert get(client, "/subscriptions") == {"subscriptions": []}
    months = get(client, "/cashflow", months=3)["cashflow"]
    assert [(month["income"], month["expenses"], month["net"]) for month in months] == [(0, 0, 0)] * 3
    assert get(client, "/snapshot") == {
        "totalBalance": 0,
        "accountCount": 0,
        "accounts": [],
        "last30Days": {"totalExpenses": 0, "topCategories": []},
    }
    answer = client.post("/sync")
    assert (answer.status_code, answer.json()) == (404, {"error": "No bank connections found"})
