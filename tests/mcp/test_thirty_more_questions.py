"""Thirty more questions about money, as people put them at the second look: two short calls at most, to the cent."""

import json
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple, cast

import pytest

from handlers.mcp.tool_call import booking_ref, ref_of
from tests.analytics import reference
from tests.analytics.ledgers import Row
from tests.analytics.reference import amount_of, day_of, merchant
from tests.mcp.conftest import Assistant
from tests.mcp.test_thirty_questions import (
    OCTOBER,
    TODAY,
    YEAR,
    Call,
    Json,
    Ledger,
    asks,
    by,
    columns,
    demo_assistant,
    found,
    grouped,
    in_out,
    ledger,
    looks_for,
    month,
    received,
    spent,
    summed,
    table,
    top,
)

__all__ = ["demo_assistant", "ledger"]  # fixtures of the first thirty, for these too

CHARACTERS_MAX = 4_500  # of a question's answers together: 1,500 tokens
MEDIA = ("Netflix", "Spotify", "Telekom")
LAST_YEAR = {"dateFrom": "2025-01-01", "dateTo": "2025-12-31"}


class Asked(NamedTuple):
    """What is asked, how a model finds out, what it reads there, and what is right."""

    english: str
    calls: Sequence[Call]
    read: Callable[[Sequence[Json]], object]
    right: Callable[[Ledger], object]


def count(answers: Sequence[Json]) -> object:
    return answers[0]["totals"]["count"]


def held(ledger: Ledger, day: date) -> list[Decimal]:
    return [ledger.balance(each.id, day) for each in ledger.accounts]


def october(ledger: Ledger, **of: Any) -> list[Row]:
    return ledger.rows("2026-10-01", "2026-10-31", **of)


def quarter(row: Row) -> str:
    return f"{day_of(row).year}-Q{(day_of(row).month + 2) // 3}"


def week(row: Row) -> str:
    return "{}-W{:02}".format(*day_of(row).isocalendar()[:2])


def changes(ledger: Ledger) -> dict[str | None, Decimal]:
    """October's expenses in the three categories whose expenses and income differ most from those of September."""
    now, before = (by(ledger.rows(f"2026-{each}-01", f"2026-{each}-31"), reference.category) for each in ("10", "09"))
    sides = {key: (now.get(key, []), before.get(key, [])) for key in {*now, *before}}
    changed = {key: sum(abs(of(a) - of(b)) for of in (spent, received)) for key, (a, b) in sides.items()}
    return {key: spent(now.get(key, [])) for key in sorted(changed, key=lambda key: -changed[key])[:3]}


def single(ledger: Ledger, rows: Sequence[Row]) -> list[tuple[str, Decimal]]:
    del ledger
    row = max(rows, key=lambda each: (abs(amount_of(each)), day_of(each)))
    return [(booking_ref(cast(str, row["id"])), amount_of(row))]


def of_type(name: str) -> Asked:
    words = name.replace("_", " ")
    return Asked(
        f"What came to and went by {words} this year?",
        asks(types=name, **YEAR),
        columns("income", "expenses", "net"),
        lambda ledger: in_out(ledger.rows("2026-01-01", type_=name)),
    )


def of_category(name: str) -> Asked:
    return Asked(
        f"What did {name.lower()} cost last year?",
        asks(categories=name, **LAST_YEAR),
        columns("count", "expenses"),
        lambda ledger: (
            len(ledger.rows("2025-01-01", "2025-12-31", category=name)),
            spent(ledger.rows("2025-01-01", "2025-12-31", category=name)),
        ),
    )


def at(name: str) -> Asked:
    return Asked(
        f"How often was I at {name} in October, and for how much?",
        asks(merchant=name, **OCTOBER),
        columns("count", "expenses"),
        lambda ledger: (len(october(ledger, of=name)), spent(october(ledger, of=name))),
    )


def larger(amount: int) -> Asked:
    return Asked(
        f"How many expenses above {amount} were there this year?",
        looks_for(direction="out", amountMin=f"{amount}", counted=True, perPage=1, **YEAR),
        count,
        lambda ledger: len([row for row in ledger.rows("2026-01-01") if amount_of(row) <= -amount]),
    )


def subscribed(told: Json) -> dict[str, Decimal]:
    return {each["bank_text"]["merchantName"].strip("«»"): each["amount"] for each in told["subscriptions"]}


QUESTIONS = [
    *map(of_type, ("card_payment", "direct_debit", "standing_order", "interest")),
    *map(of_category, ("INSURANCE", "TRANSPORT", "DINING", "SHOPPING", "HEALTH")),
    *map(at, ("Lidl", "Rheinbahn", "Ökokiste Schönegge")),
    *map(larger, (100, 500)),
    Asked(
        "What was my largest income this year?",
        looks_for(direction="in", sort="-amount", counted=True, perPage=1, **YEAR),
        lambda answers: found(answers[0]),
        lambda ledger: single(ledger, [row for row in ledger.rows("2026-01-01") if amount_of(row) > 0]),
    ),
    Asked(
        "What did each quarter of this year cost?",
        asks(groupBy="quarter", **YEAR),
        grouped(),
        lambda ledger: {key: spent(rows) for key, rows in by(ledger.rows("2026-01-01"), quarter).items()},
    ),
    Asked(
        "What did each week of November cost?",
        asks(groupBy="week", dateFrom="2026-11-01"),
        grouped(),
        lambda ledger: {key: spent(rows) for key, rows in by(ledger.rows("2026-11-01"), week).items()},
    ),
    Asked(
        "What do I spend at Lidl or Rewe this year?",
        asks(words="Lidl|Rewe", **YEAR),
        summed("expenses"),
        lambda ledger: spent(
            [
                row
                for row in ledger.rows("2026-01-01")
                if any(reference.has_words(row, each) for each in ("Lidl", "Rewe"))
            ]
        ),
    ),
    Asked(
        "Which categories changed most from September to October?",
        asks(groupBy="category", compareWith="previousPeriod", sort="change", limit=3, **OCTOBER),
        grouped(),
        changes,
    ),
    Asked(
        "Did I earn more this year than in the same days of the last?",
        asks(compareWith="previousYear", **YEAR),
        lambda answers: (answers[0]["income"], answers[0]["compared"]["income"]),
        lambda ledger: (received(ledger.rows("2026-01-01")), received(ledger.rows("2025-01-01", "2025-11-20"))),
    ),
    Asked(
        "What was in each account at the end of last year?",
        [("get_balances", {"dateFrom": "2025-12-31", "dateTo": "2025-12-31"})],
        lambda answers: [each["ownBalance"] for each in answers[0]["accounts"]],
        lambda ledger: held(ledger, date(2025, 12, 31)),
    ),
    Asked(
        "How much more do I have than at the end of last year?",
        [("get_balances", {"dateFrom": "2025-12-31"})],
        lambda answers: answers[0]["points"][-1][1] - answers[0]["points"][0][1],
        lambda ledger: ledger.together(TODAY) - ledger.together(date(2025, 12, 31)),
    ),
    Asked(
        "Which three days of October were the most expensive?",
        asks(groupBy="day", limit=31, **OCTOBER),
        lambda answers: dict(sorted(table(answers[0]).items(), key=lambda each: -each[1])[:3]),
        lambda ledger: top(by(october(ledger), lambda row: day_of(row).isoformat()), 3),
    ),
    Asked(
        "How many transactions were there in October, transfers of my own too?",
        looks_for(perPage=1, **OCTOBER),
        lambda answers: answers[0]["pagination"]["total"],
        lambda ledger: len([row for row in ledger.booked if month(row) == "2026-10"]),
    ),
    Asked(
        "What went out of my credit card in October?",
        [("get_overview", {}), ("summarize_transactions", {"groupBy": "account", **OCTOBER})],
        lambda answers: table(answers[1]),
        lambda ledger: {
            key: spent(rows)
            for key, rows in by(october(ledger), lambda row: ref_of(cast(str, row["account_id"]))).items()
        },
    ),
    Asked(
        "What did the first week of October cost?",
        asks(dateFrom="2026-10-01", dateTo="2026-10-07"),
        columns("income", "expenses", "net"),
        lambda ledger: in_out(ledger.rows("2026-10-01", "2026-10-07")),
    ),
    Asked(
        "At which five shops was I most last year?",
        asks(groupBy="merchant", limit=5, **LAST_YEAR),
        grouped(),
        lambda ledger: top(by(ledger.rows("2025-01-01", "2025-12-31"), merchant), 5),
    ),
    Asked(
        "What did restaurants cost me each month of this year?",
        asks(categories="DINING", groupBy="month", limit=12, **YEAR),
        grouped(),
        lambda ledger: {
            key: spent(rows) for key, rows in by(ledger.rows("2026-01-01", category="DINING"), month).items()
        },
    ),
    Asked(
        "What do Netflix, Spotify and Telekom cost me now?",
        [("list_recurring_payments", {"direction": "outgoing"})],
        lambda answers: {name: amount for name, amount in subscribed(answers[0]).items() if name in MEDIA},
        lambda ledger: {name: spent(ledger.rows(of=name)[:1]) for name in MEDIA},
    ),
    Asked(
        "What did each weekday cost this year?",
        asks(groupBy="weekday", **YEAR),
        lambda answers: sorted(table(answers[0]).values()),
        lambda ledger: sorted(
            spent(rows) for rows in by(ledger.rows("2026-01-01"), lambda row: str(day_of(row).weekday())).values()
        ),
    ),
]


@pytest.mark.requirement("mcp.questions")
def test_thirty_more_are_answered_to_the_cent_and_shortly(demo_assistant: Assistant, ledger: Ledger) -> None:
    wrong, long = {}, {}
    for question in QUESTIONS:
        said = [demo_assistant.result(tool, **given)["content"][0]["text"] for tool, given in question.calls]
        right = question.right(ledger)
        try:
            read: object = question.read([json.loads(text, parse_float=Decimal) for text in said])
        except (KeyError, ValueError, TypeError) as error:
            read = f"{error!r} {said}"
        if read != right:
            wrong[question.english] = (read, right)
        if len("".join(said)) > CHARACTERS_MAX or len(said) > 2:
            long[question.english] = len("".join(said))
    assert len(QUESTIONS) == 30
    assert (wrong, long) == ({}, {})
