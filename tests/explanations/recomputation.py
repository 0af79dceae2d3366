"""Cashflow, snapshot and subscriptions once more: a program that knows the service by its answers alone.

Plain loops over plain values. It reads GET /accounts, /transactions and the explanations as any client can, pairs
transfers by itself, and converts by the file of the European Central Bank that the package currency_converter ships.
Nothing of the product is imported.
"""

import csv
import io
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import orjson

CENT = Decimal("0.01")
CHARGES_A_YEAR = {"weekly": 52, "biweekly": 26, "monthly": 12, "quarterly": 4, "yearly": 1}

Json = dict[str, Any]


class Response(Protocol):
    """What a client of HTTP gives back."""

    @property
    def content(self) -> bytes: ...

    @property
    def status_code(self) -> int: ...


class Client(Protocol):
    """Any client with the address and a token."""

    def get(self, path: str, *, params: Mapping[str, str]) -> Any: ...


@dataclass(frozen=True)
class Booking:
    """A listed transaction."""

    id: str
    account: str
    day: date
    amount: Decimal
    currency: str
    category: str
    type: str | None
    iban: str | None
    names: frozenset[str]


@dataclass(frozen=True)
class Bank:
    """Everything that a client has read."""

    accounts: list[Json]
    bookings: list[Booking]
    adjusting: frozenset[str]
    partners: Mapping[str, str]  # by id of a leg: the account that holds the other one
    today: date
    home: str


def asked(client: Client, path: str, **query: str) -> Json:
    """The body of an answer, numbers as they are written."""
    response: Response = client.get(path, params=query)
    assert response.status_code == 200, response.content
    body: Json = orjson.loads(response.content)
    return body


def exact(number: float) -> Decimal:
    """A JSON number as a decimal: its shortest spelling is what the service wrote."""
    return Decimal(repr(number))


def read(client: Client, *, home: str = "EUR") -> Bank:
    """All accounts and transactions of the user, page by page."""
    accounts = asked(client, "/accounts")["accounts"]
    everything = ",".join(account["id"] for account in accounts)
    bookings: list[Booking] = []
    page = pages = 1
    while page <= pages:
        answer = asked(client, "/transactions", accountIds=everything, perPage="100", page=str(page))
        bookings += [booking(row) for row in answer["transactions"]]
        pages, page = answer["pagination"]["pageCount"], page + 1
    assert len({each.id for each in bookings}) == len(bookings) == answer["pagination"]["total"]
    months = sorted({f"{each.day:%Y-%m}" for each in bookings})
    adjusting = {
        row["id"]
        for month in months
        for row in asked(client, f"/cashflow/{month}/transactions", accountIds=everything)["transactions"]
        if row["leftOut"] == "adjusting_entry"
    }
    told = asked(client, "/snapshot/categories/OTHER/transactions", accountIds=everything)
    return Bank(
        accounts=accounts,
        bookings=bookings,
        adjusting=frozenset(adjusting),
        partners=paired([each for each in bookings if each.id not in adjusting], accounts),
        today=date.fromisoformat(told["until"][:10]),
        home=home,
    )


def booking(row: Json) -> Booking:
    assert row["bookingDate"].endswith("T00:00:00.000Z")
    names = {row[name].lower() for name in ("counterpartName", "merchantName") if row[name]}
    return Booking(
        id=row["id"],
        account=row["bankAccount"]["id"],
        day=date.fromisoformat(row["bookingDate"][:10]),
        amount=exact(row["amount"]),
        currency=row["currency"],
        category=row["category"] or "OTHER",
        type=row["type"],
        iban=(row["counterpartIban"] or "").replace(" ", "").upper() or None,
        names=frozenset(names),
    )


SAYS_WHERE = {"cash_withdrawal", "cash_deposit", "card_payment", "fee", "interest", "salary"}
Candidate = tuple[int, int, int, str, str, Booking, Booking]  # the surest first, then the nearest


def paired(bookings: list[Booking], accounts: list[Json]) -> dict[str, str]:
    """By id of a leg the account that holds the other one, for transfers of which both legs are there."""
    owners = {account["iban"]: account["id"] for account in accounts if account["iban"]}
    by_size: dict[tuple[Decimal, str], list[Booking]] = {}
    for each in bookings:
        is_foreign = each.iban is not None and each.iban not in owners
        says_where = each.type in SAYS_WHERE and named(each, owners) is None
        if each.amount != 0 and not is_foreign and not says_where:
            by_size.setdefault((abs(each.amount), each.currency), []).append(each)
    partners: dict[str, str] = {}
    for group in by_size.values():
        said: list[Candidate] = []
        silent: list[Candidate] = []
        for out in group:
            for into in group:
                days = (into.day - out.day).days
                if out.amount >= 0 or into.amount <= 0 or out.account == into.account or abs(days) > 4:
                    continue
                to, back = named(out, owners), named(into, owners)
                if to in (into.account, None) and back in (out.account, None):
                    certainty = 2 - (to is not None) - (back is not None)
                    (said if certainty < 2 else silent).append(
                        (certainty, abs(days), -days, out.id, into.id, out, into)
                    )
        for *_, out, into in sorted(said, key=lambda pair: pair[:5]):
            if out.id not in partners and into.id not in partners:
                partners |= {out.id: into.account, into.id: out.account}
        left = [pair for pair in silent if pair[3] not in partners and pair[4] not in partners]
        for *_, out, into in left:
            if [pair[3] for pair in left].count(out.id) == 1 == [pair[4] for pair in left].count(into.id):
                partners |= {out.id: into.account, into.id: out.account}
    return partners


def named(leg: Booking, owners: Mapping[str, str]) -> str | None:
    """The other own account that a leg names; its own IBAN says nothing."""
    owner = owners.get(leg.iban or "")
    return None if owner == leg.account else owner


def crossing(bank: Bank, selection: Collection[str]) -> list[Booking]:
    """The bookings that cross the border of the selection."""
    return [
        each
        for each in bank.bookings
        if each.account in selection and each.id not in bank.adjusting and bank.partners.get(each.id) not in selection
    ]


def currency_of(bank: Bank, selection: Collection[str]) -> str:
    """The accounts' only currency, else that of the user's home."""
    currencies = {account["currency"] for account in bank.accounts if account["id"] in selection}
    return str(currencies.pop()) if len(currencies) == 1 else bank.home


def cashflow(bank: Bank, selection: Collection[str], months: list[str]) -> list[tuple[str, Decimal, Decimal, Decimal]]:
    """Month, income, expenses, net."""
    currency = currency_of(bank, selection)
    income = dict.fromkeys(months, Decimal(0))
    expenses = dict.fromkeys(months, Decimal(0))
    for each in crossing(bank, selection):
        month = f"{each.day:%Y-%m}"
        if month in income:
            worth = converted(each.amount, each.currency, currency, each.day)
            if each.amount < 0:
                expenses[month] -= worth
            else:
                income[month] += worth
    return [(month, income[month], expenses[month], income[month] - expenses[month]) for month in months]


def snapshot(bank: Bank, selection: Collection[str]) -> tuple[Decimal, int, Decimal, list[tuple[str, Decimal, int]]]:
    """Total balance, count of accounts, total expenses, top categories with amount and percentage."""
    currency = currency_of(bank, selection)
    balances = [
        converted(exact(account["balance"]), account["currency"], currency, bank.today)
        for account in bank.accounts
        if account["id"] in selection and account["balance"] is not None
    ]
    costs = category_costs(bank, selection, currency)
    total = sum(costs.values(), Decimal(0))
    ordered = sorted(costs.items(), key=lambda item: (-item[1], item[0]))[:5]
    top = [
        (name, cost, int((cost * 100 / total).quantize(Decimal(1), rounding=ROUND_HALF_UP))) for name, cost in ordered
    ]
    return sum(balances, Decimal(0)), len(balances), total, top


def category_costs(bank: Bank, selection: Collection[str], currency: str) -> dict[str, Decimal]:
    """What each category cost in the last 30 days, without those that cost nothing."""
    rows = crossing(bank, selection)
    payments = [each for each in rows if each.amount < 0]
    costs: dict[str, Decimal] = {}
    for each in rows:
        if not bank.today - timedelta(days=29) <= each.day <= bank.today:
            continue
        is_refund = each.amount > 0 and each.category not in ("SALARY", "TRANSFER")
        is_refund = is_refund and any(
            paid.day <= each.day
            and same_counterpart(paid, each)
            and (each.category != "RENT" or paid.category == "RENT")
            for paid in payments
        )
        if each.amount < 0 or is_refund:
            worth = converted(each.amount, each.currency, currency, each.day)
            costs[each.category] = costs.get(each.category, Decimal(0)) - worth
    return {name: cost for name, cost in costs.items() if cost > 0}


def same_counterpart(one: Booking, other: Booking) -> bool:
    return bool(one.names & other.names) or (one.iban is not None and one.iban == other.iban)


def subscription(bank: Bank, selection: Collection[str], told: Json) -> Json:
    """What GET /subscriptions says of a stream, recomputed from the listed transactions that its charges name."""
    by_id = {each.id: each for each in bank.bookings}
    charges = sorted((by_id[charge["transactionId"]] for charge in told["charges"]), key=lambda each: each.day)
    assert all(each.account in selection and each.amount < 0 for each in charges)
    last = charges[-1]
    month = bank.today.month - 6
    since = bank.today.replace(
        year=bank.today.year - (month < 1), month=month + 12 * (month < 1)
    )  # these tests never live on the 29th to 31st
    return {
        "merchantName": told["merchantName"],
        "amount": float(-last.amount),
        "currency": last.currency,
        "frequency": told["frequency"],
        "lastCharged": f"{last.day}T00:00:00.000Z",
        "occurrences": sum(each.day >= since for each in charges),
    }


def converted(amount: Decimal, source: str, target: str, day: date) -> Decimal:
    """By the rate of the day or the last one before it, half to even."""
    if source == target:
        return amount
    return (amount * rate(target, day) / rate(source, day)).quantize(CENT, rounding=ROUND_HALF_EVEN)


@cache
def rate(currency: str, day: date) -> Decimal:
    """Units of the currency for one euro."""
    if currency == "EUR":
        return Decimal(1)
    known = rates()[currency]
    return known[max(quoted for quoted in known if quoted <= day)]


@cache
def rates() -> dict[str, dict[date, Decimal]]:
    """The file of the European Central Bank: one line a day, one column a currency."""
    folder = files("currency_converter")
    archive = next(entry for entry in folder.iterdir() if entry.name.endswith(".zip"))
    with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
        text = opened.read(opened.namelist()[0]).decode()
    found: dict[str, dict[date, Decimal]] = {}
    for line in csv.DictReader(io.StringIO(text)):
        day = date.fromisoformat(line["Date"])
        for currency, value in line.items():
            if currency and value and value != "N/A" and currency != "Date":
                found.setdefault(currency.strip(), {})[day] = Decimal(value)
    return found
