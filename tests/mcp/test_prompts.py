"""Prompts that a person picks: who is offered which, what they say, and what is no argument of one."""

import pytest

from auth.scopes import SCOPES
from handlers.mcp.recurring_shapes import list_entry
from tests.explanations.conftest import Service
from tests.mcp.conftest import Assistant, Json, assistant

EVERY = ["monthly_review", "what_changed", "what_is_due"]


def names(somebody: Assistant) -> list[str]:
    return [each["name"] for each in somebody.asks("prompts/list").json()["result"]["prompts"]]


def said(somebody: Assistant, name: str, arguments: Json | None = None) -> str:
    """What the person's message says, in either era."""
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    old, modern = somebody.asks("prompts/get", params), somebody.asks_modern("prompts/get", params)
    (message,) = old.json()["result"]["messages"]
    assert modern.json()["result"] == {"resultType": "complete", **old.json()["result"]}
    assert (message["role"], message["content"]["type"]) == ("user", "text")
    text: str = message["content"]["text"]
    return text


@pytest.mark.requirement("mcp.prompts")
def test_three_prompts_are_listed_with_arguments_that_may_be_left_out(demo_user: Assistant) -> None:
    assert names(demo_user) == EVERY
    listed = demo_user.asks_modern("prompts/list").json()["result"]
    assert (listed["resultType"], listed["cacheScope"], listed["ttlMs"] > 0) == ("complete", "private", True)
    arguments = [[(each["name"], each["required"]) for each in prompt["arguments"]] for prompt in listed["prompts"]]
    assert arguments == [[("month", False)], [("month", False)], [("days", False)]]
    assert demo_user.asks_modern("server/discover").json()["result"]["capabilities"]["prompts"] == {}


@pytest.mark.requirement("mcp.prompts")
def test_what_a_person_chose_stands_in_the_text(demo_user: Assistant) -> None:
    assert "Review 2026-09 of my accounts" in said(demo_user, "monthly_review", {"month": "2026-09"})
    assert "in the next 180 days" in said(demo_user, "what_is_due", {"days": "180"})


@pytest.mark.requirement("mcp.prompts")
def test_what_is_left_out_or_empty_has_a_usual_value(demo_user: Assistant) -> None:
    for arguments in (None, {}, {"month": ""}):
        assert "Review the last whole month of my accounts" in said(demo_user, "monthly_review", arguments)
    assert "this month so far" in said(demo_user, "what_changed")
    assert "in the next 30 days" in said(demo_user, "what_is_due")


@pytest.mark.requirement("mcp.prompts")
def test_a_text_names_only_tools_that_there_are(demo_user: Assistant) -> None:
    tools = [tool["name"] for tool in demo_user.tools()]
    for name in EVERY:
        assert sum(tool in said(demo_user, name) for tool in tools) >= 2


@pytest.mark.requirement("mcp.prompts")
def test_tools_tell_what_prompts_ask_for(demo_user: Assistant) -> None:
    days, day = {"dateFrom": "2026-10-01", "dateTo": "2026-10-31"}, "2026-10-31"
    compared = {"groupBy": "category", "compareWith": "previousPeriod", "sort": "change"}
    for text in ("direction out and counted", "flag new_payee", "from its last day to that day"):
        assert text in said(demo_user, "monthly_review")
    sums = demo_user.answer("summarize_transactions", **days, **compared)
    assert (sums["net"], sums["compared"]["dateFrom"]) == (
        pytest.approx(sums["income"] - sums["expenses"]),
        "2026-09-01",
    )
    found = demo_user.answer("search_transactions", **days, sort="-amount", direction="out", counted=True, perPage=5)
    amounts = [row["amount"] for row in found["transactions"]]
    assert (amounts, len(amounts), amounts[0]) == (sorted(amounts), 5, -934.0)
    assert demo_user.answer("search_transactions", **days, flag="new_payee")["transactions"] == []
    assert [point[0] for point in demo_user.answer("get_balances", dateFrom=day, dateTo=day)["points"]] == [day]
    assert "status all and direction all" in said(demo_user, "what_changed")
    assert demo_user.answer("list_recurring_payments", status="all", direction="all")["subscriptions"]
    forecast = demo_user.answer("get_forecast", days=30)
    assert {"date", "amount", "account", "isOverdue"} <= set(forecast["currencies"][0]["events"]["columns"])
    assert all(each["lowest"]["date"] for each in forecast["accounts"])


@pytest.mark.requirement("mcp.prompts")
@pytest.mark.parametrize(
    ("first", "last", "status", "told"),
    [
        ("2026-06-03", "2026-11-03", "active", {"firstCharged": "2026-06-03"}),
        ("2025-11-03", "2026-11-03", "active", {}),
        ("2025-06-03", "2026-08-03", "ended", {"lastCharged": "2026-08-03"}),
        (None, None, "active", {}),
    ],
)
def test_a_long_list_says_what_began_lately_and_when_what_is_over_was_paid_last(
    first: str | None, last: str | None, status: str, told: Json
) -> None:
    days = {"firstCharged": first, "lastCharged": last, "nextExpected": None, "overdueSince": None}
    empty = dict.fromkeys(("id", "merchantName", "priceChange", "currency", "frequency", "category"))
    figures = dict.fromkeys(("amount", "intervalMonths", "occurrences", "yearlyCost", "confidence"), 1)
    payment = {**days, **empty, **figures, "status": status, "direction": "outgoing", "addedTo": "acc_1"}
    entry = list_entry({**payment, "comingCharges": [], "charges": []}, is_short=False)
    assert {name: entry[name] for name in entry if name in ("firstCharged", "lastCharged")} == told


@pytest.mark.requirement("mcp.prompts")
@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("monthly_review", {"month": "2026-13"}, "month: must be a month as YYYY-MM."),
        ("monthly_review", {"month": "2026-1"}, "month: must be a month as YYYY-MM."),
        ("monthly_review", {"month": "2026-10\n"}, "month: must be a month as YYYY-MM."),
        ("what_changed", {"month": 202610}, "month: must be a month as YYYY-MM."),
        ("what_is_due", {"days": "0"}, "days: must be a whole number from 1 to 180."),
        ("what_is_due", {"days": "181"}, "days: must be a whole number from 1 to 180."),
        ("what_is_due", {"weeks": "2"}, "arguments: must be an object with any of: days."),
        ("what_is_due", ["30"], "arguments: must be an object with any of: days."),
    ],
)
def test_what_is_no_argument_is_refused_and_not_repeated(
    demo_user: Assistant, name: str, arguments: object, sentence: str
) -> None:
    asked = {"name": name, "arguments": arguments}
    answers = demo_user.asks("prompts/get", asked), demo_user.asks_modern("prompts/get", asked)
    assert [answer.status_code for answer in answers] == [200, 400]
    for answer in answers:
        assert answer.json()["error"] == {"code": -32602, "message": sentence}


@pytest.mark.requirement("mcp.prompts")
def test_only_prompts_whose_tools_a_grant_allows_are_there(demo_service: Service) -> None:
    narrow = assistant(demo_service, "demo", frozenset({"read:cashflow"}))
    assert names(narrow) == ["what_is_due"]
    for refused in ("monthly_review", "nothing", 7):
        error = narrow.asks("prompts/get", {"name": refused}).json()["error"]
        assert error == {"code": -32602, "message": "name: must be one that prompts/list names."}
    assert names(assistant(demo_service, "demo", frozenset(SCOPES))) == EVERY
