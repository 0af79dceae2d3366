"""Thirty questions about money, in two languages: each answered by at most two short calls, right to the cent.

What is right is computed from the rows of the store in plain loops (tests/analytics/reference.py). A question is here a
plan: the calls that the descriptions of the tools lead to, and where the answer stands in what they say.
"""

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from starlette.testclient import TestClient

from auth.scopes import ALL_SCOPES, SCOPES
from handlers.mcp.tool_call import booking_ref, ref_of
from storage import accounts, users
from storage.accounts import StoredAccount
from storage.oauth.grants import Terms
from storage.transactions import Selection
from tests.analytics import reference
from tests.analytics.ledgers import Row
from tests.analytics.reference import amount_of, day_of, merchant
from tests.cache.from_store import searched
from tests.explanations.conftest import Service
from tests.mcp.conftest import ADDRESS, Assistant, assistant

CALLS_MAX = 2
TOKENS_MAX = 1_500
TYPICAL_TOKENS_MAX = 1_200
LIST_TOKENS_MAX = 3_700
PROGRAM = Path(__file__).with_name("count_tokens.mjs")
INSTALL = Path(__file__).parents[1] / "clients" / "npm" / "install.sh"
TODAY = date(2026, 11, 20)
YEAR = {"dateFrom": "2026-01-01"}
OCTOBER = {"dateFrom": "2026-10-01", "dateTo": "2026-10-31"}

Json = dict[str, Any]
Call = tuple[str, Json]


@dataclass(frozen=True)
class Ledger:
    """Everything that the store knows of one user."""

    booked: list[Row]
    pending: list[Row]
    accounts: list[StoredAccount]
    coming: dict[str, list[str]]
    """What the data interface lists as recurring, by merchant: the days on which it is due."""

    @cached_property
    def ids(self) -> set[str]:
        return {account.id for account in self.accounts}

    @cached_property
    def counted(self) -> list[Row]:
        return [row for row in self.booked if reference.crosses_border(row, self.ids)]

    def rows(
        self,
        first: str = "2000-01-01",
        last: str = "2100-01-01",
        *,
        category: str | None = None,
        type_: str | None = None,
        words: str = "",
        of: str | None = None,
    ) -> list[Row]:
        """What counts of a span, of one category, type or merchant, with these words."""
        return [
            row
            for row in self.counted
            if first <= day_of(row).isoformat() <= last
            and category in (None, reference.category(row))
            and type_ in (None, row["type"])
            and reference.has_words(row, words)
            and of in (None, merchant(row))
        ]

    def refunds(self, rows: Sequence[Row]) -> Decimal:
        return sum((amount_of(row) for row in rows if reference.is_refund(row, self.booked, self.ids)), Decimal(0))

    def balance(self, account_id: str, day: date) -> Decimal:
        """What the account held at the end of the day: what it holds now without what came after."""
        (now,) = (account.balance for account in self.accounts if account.id == account_id)
        assert now is not None
        later = (amount_of(row) for row in self.booked if row["account_id"] == account_id and day_of(row) > day)
        return now - sum(later, Decimal(0))

    def together(self, day: date) -> Decimal:
        return sum((self.balance(id_, day) for id_ in self.ids), Decimal(0))


class Question(NamedTuple):
    """What is asked, how a model finds out, what it reads there, and what is right."""

    english: str
    german: str
    calls: Sequence[Call]
    read: Callable[[Sequence[Json]], object]
    right: Callable[[Ledger], object]


def spent(rows: Collection[Row]) -> Decimal:
    return -sum((amount_of(row) for row in rows if amount_of(row) < 0), Decimal(0))


def received(rows: Collection[Row]) -> Decimal:
    return sum((amount_of(row) for row in rows if amount_of(row) > 0), Decimal(0))


def by(rows: Collection[Row], key: Callable[[Row], str | None]) -> dict[str | None, list[Row]]:
    groups: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def month(row: Row) -> str:
    return day_of(row).isoformat()[:7]


def largest(ledger: Ledger, count: int) -> list[tuple[str, Decimal]]:
    rows = [row for row in ledger.rows("2026-01-01") if amount_of(row) < 0]
    rows.sort(key=lambda row: (-amount_of(row), day_of(row), cast(str, row["id"])), reverse=True)
    return [(booking_ref(cast(str, row["id"])), amount_of(row)) for row in rows[:count]]


def top(groups: dict[str | None, list[Row]], count: int) -> dict[str | None, Decimal]:
    amounts = {key: spent(rows) for key, rows in groups.items()}
    return dict(sorted(amounts.items(), key=lambda each: -each[1])[:count])


def table(told: Json, column: str = "expenses") -> dict[str | None, Decimal]:
    """One column of the groups by their key, with names in place of what stands for them."""
    groups = told["groups"]
    place = groups["columns"].index(column)
    names = {key: text.strip("«»") for key, text in groups["bank_text"].items()}
    return {names.get(row[0], row[0]): row[place] for row in groups["rows"]}


def found(told: Json) -> list[tuple[str, Decimal]]:
    return [(row["ref"], row["amount"]) for row in told["transactions"]]


def dearer(ledger: Ledger) -> dict[str, tuple[Decimal, str]]:
    """The last change of what each merchant charges every time, within two years: by how much, since when. What came
    back to the cent was something bought there besides."""
    changed = {}
    for name, rows in by(ledger.counted, merchant).items():
        returned = {amount_of(row) for row in rows if amount_of(row) > 0}
        amounts = ((day_of(row), -amount_of(row)) for row in rows)
        charges = sorted((day, amount) for day, amount in amounts if amount > 0 and amount not in returned)
        at = max((place for place in range(1, len(charges)) if charges[place][1] != charges[place - 1][1]), default=0)
        if at and name is not None:
            changed[name] = (charges[at][1] - charges[at - 1][1], charges[at][0].isoformat())
    return changed


def told_dearer(answers: Sequence[Json]) -> dict[str, tuple[Decimal, str]]:
    return {
        stream["bank_text"]["merchantName"].strip("«»"): (
            stream["priceChange"]["amount"],
            stream["priceChange"]["since"],
        )
        for stream in answers[0]["subscriptions"]
        if stream["priceChange"] and stream["priceChange"]["amount"] > 0
    }


def due(told: Json, until: str) -> dict[tuple[str, str], Decimal]:
    """What a forecast expects to be paid until a day."""
    (currency,) = told["currencies"]
    names, rows = currency["events"]["bank_text"], currency["events"]["rows"]
    return {(day, names[name].strip("«»")): -amount for day, amount, name, *_ in rows if amount < 0 and day <= until}


def lowest(told: Json) -> Decimal:
    """The lowest day by hand: what is held, what comes and goes, and the rest of each day."""
    (currency,) = told["currencies"]
    held, days = currency["balance"], []
    for number in range(1, 31):
        day = (TODAY + timedelta(days=number)).isoformat()
        held += currency["restPerDay"] + sum(row[1] for row in currency["events"]["rows"] if row[0] == day)
        days.append(held)
    return cast(Decimal, min(days))


def purposes(told: Json) -> list[str]:
    return [row["bank_text"]["purpose"] for row in told["transactions"]]


def expected_until(ledger: Ledger, last: date) -> dict[tuple[str, str], Decimal]:
    """What recurs and is due until a day, with what it was last, and what is pending; the bank's fee of each month is
    no subscription."""
    expected = {
        (day, name): spent(ledger.rows(of=name)[:1])
        for name, days in ledger.coming.items()
        for day in days
        if day <= last.isoformat()
    }
    pending = {("2026-11-21", cast(str, row["merchant_name"])): -amount_of(row) for row in ledger.pending}
    return {**expected, **pending, ("2026-11-30", "Entgelt Girokonto"): spent(ledger.rows(type_="fee")[:1])}


def both_years(ledger: Ledger) -> tuple[dict[str | None, Decimal], dict[str | None, Decimal]]:
    """Expenses by category from January to October, of this year and the last."""
    now, before = (by(ledger.rows(f"{year}-01-01", f"{year}-10-31"), reference.category) for year in (2026, 2025))
    return tuple({key: spent(of.get(key, [])) for key in {*now, *before}} for of in (now, before))  # type: ignore[return-value] # two


def in_out(rows: Collection[Row]) -> tuple[Decimal, Decimal, Decimal]:
    return received(rows), spent(rows), received(rows) - spent(rows)


def month_ends(first: date) -> list[date]:
    days = [first + timedelta(days=number) for number in range((TODAY - first).days + 1)]
    return [day for day in days if (day + timedelta(days=1)).day == 1 or day == TODAY]


def summed(name: str) -> Callable[[Sequence[Json]], object]:
    return lambda answers: answers[0][name]


def columns(*names: str) -> Callable[[Sequence[Json]], object]:
    return lambda answers: tuple(answers[0][name] for name in names)


def grouped(column: str = "expenses") -> Callable[[Sequence[Json]], object]:
    return lambda answers: table(answers[0], column)


def asks(**arguments: Any) -> list[Call]:
    return [("summarize_transactions", arguments)]


def looks_for(**arguments: Any) -> list[Call]:
    return [("search_transactions", arguments)]


QUESTIONS = [
    Question(
        "How much money do I have?",
        "Wie viel Geld habe ich insgesamt?",
        [("get_overview", {})],
        summed("totalBalance"),
        lambda ledger: ledger.together(TODAY),
    ),
    Question(
        "What is my IBAN?",
        "Wie lautet meine IBAN?",
        [("get_overview", {"includeIban": True})],
        lambda answers: [account["iban"] for account in answers[0]["accounts"]],
        lambda ledger: [account.iban for account in ledger.accounts],
    ),
    Question(
        "Which of my subscriptions got more expensive?",
        "Welche meiner Abos sind teurer geworden?",
        [("list_recurring_payments", {})],
        told_dearer,
        lambda ledger: {
            name: change for name, change in dearer(ledger).items() if name in ledger.coming and change[0] > 0
        },
    ),
    Question(
        "What were my five largest expenses this year?",
        "Was waren meine fünf größten Ausgaben in diesem Jahr?",
        looks_for(direction="out", sort="-amount", counted=True, perPage=5, **YEAR),
        lambda answers: found(answers[0]),
        lambda ledger: largest(ledger, 5),
    ),
    Question(
        "At which shops do I spend the most?",
        "Bei welchen Händlern gebe ich am meisten aus?",
        asks(groupBy="merchant", limit=5, **YEAR),
        grouped(),
        lambda ledger: top(by(ledger.rows("2026-01-01"), merchant), 5),
    ),
    Question(
        "What was that charge of 86?",
        "Wofür waren die 86 Euro?",
        looks_for(amountMin="86", amountMax="86", perPage=3),
        lambda answers: (answers[0]["totals"]["count"], purposes(answers[0])),
        lambda ledger: (
            len([row for row in ledger.booked if abs(amount_of(row)) == 86]),
            [f"«{row['purpose']}»" for row in ledger.booked if abs(amount_of(row)) == 86][:3],
        ),
    ),
    Question(
        "What did I spend on electricity this year?",
        "Was habe ich dieses Jahr für Strom ausgegeben?",
        asks(words="Strom", **YEAR),
        summed("expenses"),
        lambda ledger: spent(ledger.rows("2026-01-01", words="Strom")),
    ),
    Question(
        "How much cash did I take out this year?",
        "Wie viel Bargeld habe ich dieses Jahr abgehoben?",
        asks(types="cash_withdrawal", **YEAR),
        summed("expenses"),
        lambda ledger: spent(ledger.rows("2026-01-01", type_="cash_withdrawal")),
    ),
    Question(
        "What did I pay in bank fees this year?",
        "Wie viele Gebühren hat mich die Bank dieses Jahr gekostet?",
        asks(types="fee", **YEAR),
        summed("expenses"),
        lambda ledger: spent(ledger.rows("2026-01-01", type_="fee")),
    ),
    Question(
        "Was I charged twice for anything?",
        "Wurde mir etwas doppelt abgebucht?",
        looks_for(flag="possible_duplicate"),
        lambda answers: found(answers[0]),
        lambda ledger: [
            (booking_ref(cast(str, row["id"])), amount_of(row))
            for row in ledger.booked
            if row["is_potential_duplicate"]
        ],
    ),
    Question(
        "What was the balance on 30 September?",
        "Wie war der Kontostand am 30. September?",
        [("get_balances", {"dateFrom": "2026-09-30", "dateTo": "2026-09-30"})],
        lambda answers: ([each["ownBalance"] for each in answers[0]["accounts"]], answers[0]["points"]),
        lambda ledger: (
            [ledger.balance(account.id, date(2026, 9, 30)) for account in ledger.accounts],
            [["2026-09-30", ledger.together(date(2026, 9, 30))]],
        ),
    ),
    Question(
        "How did my balance develop over the last year?",
        "Wie hat sich mein Vermögen im letzten Jahr entwickelt?",
        [("get_balances", {"dateFrom": "2025-12-01"})],
        summed("points"),
        lambda ledger: [[day.isoformat(), ledger.together(day)] for day in month_ends(date(2025, 12, 1))],
    ),
    Question(
        "What do groceries cost me month by month this year?",
        "Was kosten mich Lebensmittel Monat für Monat in diesem Jahr?",
        asks(categories="GROCERIES", groupBy="month", limit=12, **YEAR),
        grouped(),
        lambda ledger: {
            key: spent(rows) for key, rows in by(ledger.rows("2026-01-01", category="GROCERIES"), month).items()
        },
    ),
    Question(
        "By category, how do this year's expenses until October compare with last year's?",
        "Wie unterscheiden sich die Ausgaben bis Oktober je Kategorie vom Vorjahr?",
        asks(groupBy="category", compareWith="previousYear", limit=20, dateFrom="2026-01-01", dateTo="2026-10-31"),
        lambda answers: (table(answers[0]), table(answers[0], "compared_expenses")),
        both_years,
    ),
    Question(
        "What is still pending?",
        "Was ist noch vorgemerkt?",
        looks_for(status="pending"),
        lambda answers: (answers[0]["totals"]["expenses"], found(answers[0])),
        lambda ledger: (
            spent(ledger.pending),
            [(booking_ref(cast(str, row["id"])), amount_of(row)) for row in ledger.pending],
        ),
    ),
    Question(
        "Can I afford 900 in the next thirty days?",
        "Kann ich mir in den nächsten dreißig Tagen 900 Euro leisten?",
        [("get_forecast", {"days": 30, "price": "900"})],
        lambda answers: (
            answers[0]["currencies"][0]["balance"],
            answers[0]["afford"]["expected"] - min(answers[0]["currencies"][0]["balance"], lowest(answers[0])),
        ),
        lambda ledger: (
            sum(ledger.balance(each.id, TODAY) for each in ledger.accounts if each.kind in ("checking", "credit_card")),
            Decimal(-900),
        ),
    ),
    Question(
        "What is due until 6 December?",
        "Was geht bis zum 6. Dezember noch ab?",
        [("get_forecast", {"days": 16})],
        lambda answers: due(answers[0], "2026-12-06"),
        lambda ledger: expected_until(ledger, date(2026, 12, 6)),
    ),
    Question(
        "What did I spend on groceries last month, and how much of it came back?",
        "Was habe ich letzten Monat für Lebensmittel ausgegeben, und wie viel kam zurück?",
        asks(categories="GROCERIES", **OCTOBER),
        columns("expenses", "refunds"),
        lambda ledger: (
            spent(ledger.rows("2026-10-01", "2026-10-31", category="GROCERIES")),
            ledger.refunds(ledger.rows("2026-10-01", "2026-10-31", category="GROCERIES")),
        ),
    ),
    Question(
        "What did I earn and spend in October?",
        "Was habe ich im Oktober eingenommen und ausgegeben?",
        asks(**OCTOBER),
        columns("income", "expenses", "net"),
        lambda ledger: in_out(ledger.rows("2026-10-01", "2026-10-31")),
    ),
    Question(
        "How did income and expenses develop over the last six months?",
        "Wie haben sich Einnahmen und Ausgaben im letzten halben Jahr entwickelt?",
        [("get_cashflow", {"months": 6})],
        lambda answers: {
            each["month"]: (each["income"], each["expenses"], each["net"]) for each in answers[0]["cashflow"]
        },
        lambda ledger: {key: in_out(rows) for key, rows in by(ledger.rows("2026-06-01"), month).items()},
    ),
    Question(
        "Where did my money go this month?",
        "Wofür ging mein Geld diesen Monat weg?",
        asks(groupBy="category", limit=20, dateFrom="2026-11-01"),
        grouped(),
        lambda ledger: {key: spent(rows) for key, rows in by(ledger.rows("2026-11-01"), reference.category).items()},
    ),
    Question(
        "Is this month more expensive than the last one was by now?",
        "Ist dieser Monat teurer als der letzte bis zum gleichen Tag?",
        asks(compareWith="previousPeriod", dateFrom="2026-11-01", dateTo="2026-11-30"),
        lambda answers: (answers[0]["expenses"], answers[0]["compared"]["expenses"]),
        lambda ledger: (
            spent(ledger.rows("2026-11-01", "2026-11-20")),
            spent(ledger.rows("2026-10-01", "2026-10-20")),
        ),
    ),
    Question(
        "How much did I spend at MediaMarkt, ever?",
        "Wie viel habe ich insgesamt bei MediaMarkt ausgegeben?",
        asks(merchant="MediaMarkt"),
        columns("count", "expenses", "refunds"),
        lambda ledger: (
            len(ledger.rows(of="MediaMarkt")),
            spent(ledger.rows(of="MediaMarkt")),
            ledger.refunds(ledger.rows(of="MediaMarkt")),
        ),
    ),
    Question(
        "What salary did I get this year?",
        "Wie viel Gehalt habe ich dieses Jahr bekommen?",
        asks(categories="SALARY", direction="in", **YEAR),
        summed("income"),
        lambda ledger: received(ledger.rows("2026-01-01", category="SALARY")),
    ),
    Question(
        "What did Jana pay me?",
        "Was hat mir Jana überwiesen?",
        asks(words="Jana", direction="in"),
        summed("income"),
        lambda ledger: received(ledger.rows(words="Jana")),
    ),
    Question(
        "What did each day of the second week of November cost?",
        "Was hat jeder Tag der zweiten Novemberwoche gekostet?",
        asks(groupBy="day", dateFrom="2026-11-09", dateTo="2026-11-15"),
        grouped(),
        lambda ledger: {
            key: spent(rows)
            for key, rows in by(ledger.rows("2026-11-09", "2026-11-15"), lambda row: day_of(row).isoformat()).items()
        },
    ),
    Question(
        "From which account do I pay how much?",
        "Von welchem Konto zahle ich wie viel?",
        asks(groupBy="account", **YEAR),
        grouped(),
        lambda ledger: {
            key: spent(rows)
            for key, rows in by(ledger.rows("2026-01-01"), lambda row: ref_of(cast(str, row["account_id"]))).items()
        },
    ),
    Question(
        "What did I spend in each year?",
        "Was habe ich in jedem Jahr ausgegeben?",
        asks(groupBy="year"),
        grouped(),
        lambda ledger: {key: spent(rows) for key, rows in by(ledger.counted, lambda row: month(row)[:4]).items()},
    ),
    Question(
        "When did I last pay the rent, and how much was it?",
        "Wann habe ich zuletzt Miete gezahlt, und wie viel?",
        looks_for(categories="RENT", direction="out", perPage=1),
        lambda answers: [(row["bookingDate"], row["amount"]) for row in answers[0]["transactions"]],
        lambda ledger: [max((day_of(row).isoformat(), amount_of(row)) for row in ledger.rows(category="RENT"))],
    ),
    Question(
        "What was refunded to me this year?",
        "Was wurde mir dieses Jahr erstattet?",
        asks(**YEAR),
        summed("refunds"),
        lambda ledger: ledger.refunds(ledger.rows("2026-01-01")),
    ),
]


@pytest.fixture(scope="module")
def ledger(demo_service: Service) -> Ledger:
    """The demo's first user, as the store has them."""
    database = demo_service.services.everybody
    user_id = users.get_by_name(database, "demo").id
    owned = accounts.of_user(database, user_id)
    every = {"accountIds": ",".join(account.id for account in owned), "status": "ongoing"}
    details = demo_service.named("demo").get("/subscriptions/details", params=every).json()["subscriptions"]
    booked, pending = (
        searched(database, user_id, Selection(), pending=is_pending).to_dicts() for is_pending in (False, True)
    )
    assert {row["currency"] for row in booked} == {"EUR"}
    coming = {each["merchantName"]: [day[:10] for day in each["comingCharges"]] for each in details}
    return Ledger(booked, pending, owned, coming)


@pytest.fixture(scope="module")
def demo_assistant(demo_service: Service) -> Assistant:
    """A client that was allowed full account numbers."""
    token = demo_service.services.authorization.issue_token(
        users.get_by_name(demo_service.services.everybody, "demo").id,
        frozenset(SCOPES),
        timedelta(hours=1),
        resource="mcp",
        terms=Terms(full_numbers=True),
    )
    http = TestClient(demo_service.app, base_url=ADDRESS, headers={"Authorization": f"Bearer {token}"})
    return Assistant(http, demo_service.named("demo"))


@pytest.fixture(scope="module")
def texts(demo_assistant: Assistant) -> dict[str, list[str]]:
    """What the calls of each question answer, as a model reads it."""
    return {
        question.english: [
            demo_assistant.result(tool, **arguments)["content"][0]["text"] for tool, arguments in question.calls
        ]
        for question in QUESTIONS
    }


@pytest.mark.requirement("mcp.questions")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.english)
@pytest.mark.sampled
def test_a_question_is_answered_to_the_cent(question: Question, texts: dict[str, list[str]], ledger: Ledger) -> None:
    answers = [json.loads(text, parse_float=Decimal) for text in texts[question.english]]
    assert question.read(answers) == question.right(ledger)


@pytest.mark.requirement("mcp.questions")
def test_there_are_thirty_in_two_languages_with_two_calls_at_most() -> None:
    assert len({question.english for question in QUESTIONS}) == len({question.german for question in QUESTIONS}) == 30
    assert all(len(question.calls) <= CALLS_MAX for question in QUESTIONS)


@pytest.mark.requirement("mcp.budgets")
def test_answers_and_the_list_of_tools_have_few_tokens(
    demo_service: Service, demo_assistant: Assistant, texts: dict[str, list[str]], tmp_path: Path
) -> None:
    packages = subprocess.run(["bash", str(INSTALL)], capture_output=True, text=True, timeout=300, check=True)
    listed = assistant(demo_service, "demo", frozenset(ALL_SCOPES)).asks("tools/list").text
    page = demo_assistant.result("search_transactions")["content"][0]["text"]
    whole = [*map("".join, texts.values()), page, listed]
    folder = tmp_path / "count"
    folder.mkdir()
    (folder / "node_modules").symlink_to(Path(packages.stdout.strip()) / "node_modules")
    (folder / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
    counts = subprocess.run(
        ["node", PROGRAM.name], cwd=folder, input=json.dumps(whole), capture_output=True, text=True, check=True
    )
    *of_answers, of_page, of_list = json.loads(counts.stdout)
    assert of_page <= TYPICAL_TOKENS_MAX
    assert of_list <= LIST_TOKENS_MAX
    assert max(of_answers) <= TOKENS_MAX
    assert sorted(of_answers)[len(of_answers) * 9 // 10] <= TYPICAL_TOKENS_MAX
