"""Random searches and totals, from memory and from the store, against plain loops over the rows that are stored.

`--hypothesis-profile thorough` tries 500 of them, and others each time.
"""

import json
import random
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import polars as pl
import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from analytics.searching.filters import Query
from connectors.reference.exchange_rates import bundled_rates
from handlers.server import application
from handlers.work.services import Services, open_services
from storage import transactions
from tests.analytics import reference
from tests.analytics.ledgers import Row
from tests.cache.conftest import Operations, asking, said
from tests.cache.from_store import FromStoreReader
from tests.conftest import chance, empty_folder, examples
from tests.engines import ENGINE
from tests.explanations.conftest import NOON, Service
from tests.service.conftest import Json

TODAY = NOON.date()
FIRST = date(2024, 2, 20)
HOME = "EUR"
ACCOUNTS = (
    AccountRecord(stable_key="giro", iban="DE02120300000000202051", currency="EUR", name="Giro"),
    AccountRecord(stable_key="savings", iban="DE88100900001234567892", currency="EUR", name="Tagesgeld"),
    AccountRecord(stable_key="dollars", iban="GB82WEST12345698765432", currency="USD", name="Dollars"),
)
SHOPS = ("Rewe", "REWE", "Stadtwerke Strom", "Lindström", "Müller", "mueller", "Shell", None)
PURPOSES = ("Stromabschlag 11/26", "Miete Wohnung", "danke", "Lindström sagt", None)
CODES = ("NTRF", "NMSC", "NCHG", None)
TIMES = ("day", "week", "month", "year")
KEYS = ("category", "merchant", "account", "type", *TIMES)
FIGURES = ("income", "expenses", "refunds")


@dataclass
class Ledger:
    """One user's rows as they are stored, and who answers about them: from memory, and from the store."""

    user_id: str
    account_ids: list[str]
    rows: list[Row]
    answering: tuple[Operations, Operations]
    rates: list[Row]
    _refunds: dict[frozenset[str], set[object]] = field(default_factory=dict)

    def refunds(self, account_ids: Sequence[str]) -> set[object]:
        """The ids of what is money back to these accounts, booked or not yet, found once: it takes a loop in a loop."""
        key = frozenset(account_ids)
        if key not in self._refunds:
            booked = [row for row in self.rows if not row["is_pending"]]
            self._refunds[key] = {row["id"] for row in self.rows if reference.is_refund(row, booked, key)}
        return self._refunds[key]

    def ask(self, operation: str, **arguments: Any) -> Json:
        """What both say alike."""
        request = asking(self.user_id, operation, json.dumps(arguments, default=str))
        functions: list[Any] = [each.table[operation] for each in self.answering]
        told = [said(function(request, **arguments))[:2] for function in functions]
        assert told[0] == told[1]
        assert told[0][0] == 200, told
        answer: Json = json.loads(told[0][1], parse_float=Decimal)
        return answer


def records(dice: random.Random, account: AccountRecord, count: int) -> Iterator[TransactionRecord]:
    """Payments, money back, transfers between the accounts, fees, what is pending, some of it in other currencies."""
    ibans = [each.iban for each in ACCOUNTS if each is not account]
    for _ in range(count):
        cents = dice.choice((1, 50, 999, 1000, 8600, 70000, dice.randrange(1, 40000)))
        yield TransactionRecord(
            amount=Decimal(dice.choice((-1, -1, -1, 1)) * cents).scaleb(-2),
            currency=dice.choice((account.currency,) * 6 + ("USD", "JPY", "XAU")),
            booking_date=FIRST + timedelta(days=dice.randrange((TODAY - FIRST).days + 1)),
            status="pending" if dice.random() < 0.05 else "booked",
            counterpart_name=dice.choice(SHOPS),
            counterpart_iban=dice.choice((None, None, "DE44500105175407324931", *ibans)),
            purpose=dice.choice(PURPOSES),
            swift_code=dice.choice(CODES),
            is_potential_duplicate=dice.random() < 0.05,
        )


def transfer(dice: random.Random) -> tuple[TransactionRecord, TransactionRecord]:
    """Both legs of one from the first account to the second."""
    amount, day = Decimal(dice.randrange(100, 90000)).scaleb(-2), FIRST + timedelta(days=dice.randrange(900))

    def leg(sign: int, other: AccountRecord) -> TransactionRecord:
        return TransactionRecord(
            amount=sign * amount, currency="EUR", booking_date=day, counterpart_iban=other.iban, purpose="Umbuchung"
        )

    return leg(-1, ACCOUNTS[1]), leg(1, ACCOUNTS[0])


def statement(opening: Decimal, day: date, currency: str) -> tuple[list[TransactionRecord], StatementRecord]:
    """A statement of one booking, which adds up."""
    spent = TransactionRecord(amount=Decimal("-3.33"), currency=currency, booking_date=day, counterpart_name="IKEA")
    return [spent], StatementRecord(
        opening=opening,
        opening_date=day,
        closing=opening + spent.amount,
        closing_date=day,
        is_authoritative=True,
    )


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = open_services(ENGINE.settings(empty_folder(tmp_path_factory.mktemp("random") / "data")))
    made.clock.offset = NOON - made.clock.now_in_utc()
    yield made
    made.close()


@pytest.fixture(scope="module")
def new_ledger(services: Services) -> Callable[[random.Random], Ledger]:
    """Makes users with random ledgers."""
    service = Service(services, application(services, validate_responses=False))
    uncached = replace(services, reader=FromStoreReader(services.store, services.reader.render))
    rates = bundled_rates().filter(pl.col("currency").is_in(["USD", "JPY"]), pl.col("day") > date(2024, 1, 1))

    def made(dice: random.Random) -> Ledger:
        holder, transfers = service.newcomer(), [transfer(dice) for _ in range(8)]
        for account in ACCOUNTS:
            of_both = [each[account is ACCOUNTS[1]] for each in transfers] if account in ACCOUNTS[:2] else []
            holder.bring(account, [*records(dice, account, 60), *of_both])
            for opening, month in ((100, 3), (500, 6), (250, 9)):  # what lies between two statements is adjusted
                holder.bring(account, *statement(Decimal(opening), date(2026, month, 7), account.currency))
        database = services.of(holder.user.id)
        with database.transaction() as session:
            columns = transactions.KEPT
            booked = transactions.everything(session, holder.user.id, columns, hidden=[])
            waiting = transactions.waiting(session, holder.user.id, hidden=[])
        rows = [{**row, "is_pending": False} for row in booked.to_dicts()]
        rows += [{**row, "is_pending": True} for row in waiting.to_dicts()]
        for row in rows:
            by_default = (row["category_rule"] or "").startswith("default:")
            row["is_uncategorised"] = row["category"] is None or (row["category"] == "OTHER" and by_default)
        ids = sorted({row["account_id"] for row in rows})
        return Ledger(holder.user.id, ids, rows, (Operations(services), Operations(uncached)), rates.to_dicts())

    return made


@dataclass
class Asked:
    """A random selection: parameters as the operations take them."""

    account_ids: list[str]
    filters: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        return {"account_ids": ",".join(self.account_ids), "search": None, **self.filters}

    def query(self) -> Query:
        said = self.filters
        return Query(
            amount_min=Decimal(said["amount_min"]) if said["amount_min"] else None,
            amount_max=Decimal(said["amount_max"]) if said["amount_max"] else None,
            direction=said["direction"],
            categories=tuple((said["categories"] or "").split(",")) if said["categories"] else (),
            types=tuple((said["types"] or "").split(",")) if said["types"] else (),
            merchant=said["merchant"],
            counterpart_iban=said["counterpart_iban"],
            flag=said["flag"],
            counted=said["counted"],
        )


def selection(dice: random.Random, ledger: Ledger) -> Asked:
    """Some accounts and a few filters of all that there are."""
    first, last = sorted(FIRST + timedelta(days=dice.randrange(1100)) for _ in range(2))
    some = {
        "category": ("OTHER", "GROCERIES", "UTILITIES"),
        "date_from": (first, first.replace(day=1)),
        "date_to": (last, TODAY),
        "amount_min": ("0.5", "10", "86"),
        "amount_max": ("86.00", "399.99"),
        "direction": ("in", "out"),
        "categories": ("OTHER,GROCERIES", "TRANSFER"),
        "types": ("transfer,fee", "card_payment"),
        "merchant": ("rewe", "MÜLLER", "nobody"),
        "counterpart_iban": ("DE44 5001 0517 5407 3249 31", ACCOUNTS[1].iban),
        "words": ("strom", "Lind", "mueller", "rewe danke"),
        "flag": ("possible_duplicate", "adjusting_entry", "unconverted", "uncategorised"),
    }
    chosen = {name: dice.choice(values) if dice.random() < 0.17 else None for name, values in some.items()}
    status = dice.choice(("booked", "booked", "all", "pending"))
    named = dice.sample(ledger.account_ids, dice.randint(1, len(ledger.account_ids)))
    return Asked(named, {**chosen, "status": status, "counted": dice.random() < 0.2})


def chosen_rows(ledger: Ledger, asked: Asked, currency: str) -> list[Row]:
    """The rows that the filters let through, one after another, newest first, then by id."""
    said, query = asked.filters, asked.query()
    wanted_iban = (said["counterpart_iban"] or "").replace(" ", "")
    query = query._replace(counterpart_iban=wanted_iban or None)
    rows = [
        row
        for row in ledger.rows
        if row["account_id"] in asked.account_ids
        and (said["status"] == "all" or row["is_pending"] == (said["status"] == "pending"))
        and said["category"] in (None, row["category"] or "OTHER")  # decision 17
        and (said["date_from"] is None or reference.day_of(row) >= said["date_from"])
        and (said["date_to"] is None or reference.day_of(row) <= said["date_to"])
        and reference.is_found(
            row, query, said["words"] or "", selection=asked.account_ids, currency=currency, rates=ledger.rates
        )
    ]
    return sorted(rows, key=lambda row: (reference.day_of(row), cast(str, row["id"])), reverse=True)


def currency_of(ledger: Ledger, asked: Asked) -> str:
    """Of the accounts if they have one, else that of the user."""
    told = ledger.ask("listAccounts")["accounts"]
    found = {each["currency"] for each in told if each["id"] in asked.account_ids}
    return str(found.pop()) if len(found) == 1 else HOME


Figures = dict[str, Any]


def added_up(ledger: Ledger, rows: Sequence[Row], asked: Asked, currency: str) -> tuple[Figures, dict[str, int]]:
    """What the rows add up to that count, and how many do not, by reason."""
    refunds = ledger.refunds(asked.account_ids)
    sums: Figures = {"count": 0, **dict.fromkeys(FIGURES, Fraction(0)), "first": None, "last": None}
    left_out: dict[str, int] = {}
    for row in rows:
        if row["transfer_fee"] is not None and not reference.crosses_border(row, asked.account_ids):
            row = {
                **row,
                "amount": -cast(Decimal, row["transfer_fee"]),
                "transfer_account_id": None,
            }  # that much was lost between
        amount = reference.home_amount(row, currency, ledger.rates)
        crosses = reference.crosses_border(row, asked.account_ids)
        if not crosses or amount is None:
            reason = "adjusting_entry" if row["is_adjusting_entry"] else "no_rate" if crosses else "transfer"
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        day = reference.day_of(row).isoformat()
        sums["count"] += 1
        sums["income" if reference.amount_of(row) >= 0 else "expenses"] += abs(amount)
        sums["refunds"] += amount if row["id"] in refunds else 0
        sums["first"], sums["last"] = min(sums["first"] or day, day), max(sums["last"] or day, day)
    return {**sums, "net": sums["income"] - sums["expenses"]}, left_out


def key(row: Row, name: str, shift: Callable[[date], date]) -> str | None:
    day = shift(reference.day_of(row))
    of_time = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
    if name in of_time:
        return day.strftime(of_time[name])
    if name == "merchant":
        return (reference.merchant(row) or "").lower() or None
    return (
        reference.category(row)
        if name == "category"
        else cast(str | None, row[{"account": "account_id"}.get(name, name)])
    )


def grouped(
    ledger: Ledger, rows: Sequence[Row], asked: Asked, currency: str, keys: Sequence[str], shift: Callable[[date], date]
) -> dict[tuple[str | None, ...], Figures]:
    groups: dict[tuple[str | None, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(key(row, name, shift) for name in keys), []).append(row)
    sums = {named: added_up(ledger, of_group, asked, currency)[0] for named, of_group in groups.items()}
    return {named: each for named, each in sums.items() if each["count"]}


NOTHING: Figures = {
    "count": 0,
    **dict.fromkeys(("income", "expenses", "refunds", "net"), 0),
    "first": None,
    "last": None,
}


def figures(told: Json) -> Figures:
    return {name: told[name] for name in NOTHING}


def in_order(groups: dict[tuple[str | None, ...], Figures], keys: Sequence[str]) -> list[tuple[str | None, ...]]:
    """Time in its order; everything else by expenses of all its groups, then by income, then by name."""

    def rank(named: tuple[str | None, ...]) -> list[Any]:
        ranks: list[Any] = []
        for place, name in enumerate(keys):
            value = named[place]
            alike = [each for other, each in groups.items() if other[place] == value]
            spent, earned = (sum(each[figure] for each in alike) for figure in ("expenses", "income"))
            ranks.append((value,) if name in TIMES else (-spent, -earned, value is None, value or ""))
        return ranks

    return sorted(groups, key=rank)


def later(asked: Asked, how: str) -> Callable[[date], date]:
    """The day of the span that is asked for which one of the earlier span is compared with."""
    first, last = asked.filters["date_from"], asked.filters["date_to"]
    is_whole = first.day == 1 and last.day == monthrange(last.year, last.month)[1]
    months = 12 if how == "previousYear" else (last.year - first.year) * 12 + last.month - first.month + 1
    if how == "previousPeriod" and not is_whole:
        return lambda day: day + (last - first) + timedelta(days=1)

    def moved(day: date) -> date:
        year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
        return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))

    return moved


def narrowed(asked: Asked, span: Json) -> Asked:
    days = {"date_from": date.fromisoformat(span["dateFrom"]), "date_to": date.fromisoformat(span["dateTo"])}
    return Asked(asked.account_ids, {**asked.filters, **days})


def check_search(ledger: Ledger, asked: Asked, dice: random.Random) -> None:
    currency, sort = currency_of(ledger, asked), dice.choice(("-bookingDate", "bookingDate", "-amount", "amount"))
    rows = chosen_rows(ledger, asked, currency)
    if sort == "bookingDate":
        rows.sort(key=reference.day_of)
    if sort.endswith("amount"):
        sizes = {row["id"]: reference.home_amount(row, currency, ledger.rates) for row in rows}
        sign = Fraction(-1 if sort == "-amount" else 1)
        rows.sort(key=lambda row: (sizes[row["id"]] is None, sign * abs(sizes[row["id"]] or Fraction(0))))
    told = ledger.ask("searchTransactions", **asked.arguments, sort=sort, page=1, per_page=1000)
    assert [each["id"] for each in told["transactions"]] == [row["id"] for row in rows]
    assert told["pagination"]["total"] == len(rows)


def check_totals(ledger: Ledger, asked: Asked, dice: random.Random) -> None:
    currency, keys = currency_of(ledger, asked), dice.sample(KEYS, dice.randint(1, 2))
    has_days = None not in (asked.filters["date_from"], asked.filters["date_to"])
    how = dice.choice((None, "previousPeriod", "previousYear")) if has_days else None
    limit = dice.choice((1, 3, 50, 1000))
    told = ledger.ask("sumTransactions", **asked.arguments, group_by=",".join(keys), limit=limit, compare_with=how)
    now, before = asked, None
    if how is not None:
        now = narrowed(asked, told["span"])
        before = narrowed(asked, told["compared"]) if told["compared"] else None
    whole, left_out = added_up(ledger, chosen_rows(ledger, now, currency), now, currency)
    assert (figures(told), told["leftOut"], told["currency"]) == (whole, left_out, currency)
    parts = {"": (now, lambda day: day)}
    if before is not None and how is not None:
        assert figures(told["compared"]) == added_up(ledger, chosen_rows(ledger, before, currency), before, currency)[0]
        parts["compared"] = before, later(asked, how)
    groups = {
        part: grouped(ledger, chosen_rows(ledger, of_span, currency), of_span, currency, keys, shift)
        for part, (of_span, shift) in parts.items()
    }
    every = {named: groups[""].get(named, NOTHING) for of_span in groups.values() for named in of_span}
    order = in_order(every, keys)
    listed = order[-limit:] if keys[0] in TIMES else order[:limit]
    assert [
        tuple(value.lower() if name == "merchant" and value else value for name, value in group["keys"].items())
        for group in told["groups"]
    ] == listed
    for named, group in zip(listed, told["groups"], strict=True):
        assert figures(group) == groups[""].get(named, NOTHING)
        if "compared" in groups:
            assert figures(group["compared"]) == groups["compared"].get(named, NOTHING)
    for part, of_span in groups.items():
        rest = told["rest"][part] if part else told["rest"]
        for figure in ("count", *FIGURES):
            assert rest[figure] == sum(each[figure] for named, each in of_span.items() if named not in listed)


@pytest.mark.requirement("search.random")
def test_random_selections_are_those_of_the_slow_reference(new_ledger: Callable[[random.Random], Ledger]) -> None:
    dice = chance("selections")
    ledgers = [new_ledger(dice) for _ in range(2)]
    kinds = ("is_adjusting_entry", "is_potential_duplicate", "is_pending", "transfer_id")
    assert all(any(row[kind] for ledger in ledgers for row in ledger.rows) for kind in kinds)
    for number in range(examples(20)):
        ledger = ledgers[number % 2]
        asked = selection(dice, ledger)
        check_search(ledger, asked, dice)
        check_totals(ledger, asked, dice)
