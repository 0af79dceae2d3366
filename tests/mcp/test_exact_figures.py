"""Figures for assistants: exact as the data interface writes them, and with the currencies that they lack."""

import json
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

import pytest
from starlette.testclient import TestClient

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from auth.scopes import SCOPES
from handlers.work.sync.detection import detect_after_import
from storage import accounts
from tests.explanations.conftest import NOON, Holder, Service, opened
from tests.mcp.conftest import ADDRESS, Assistant

DAY = date(2026, 11, 10)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = opened(tmp_path_factory.mktemp("exact") / "data", validate_responses=False)
    yield made
    made.services.close()


def assistant_of(holder: Holder) -> Assistant:
    token = holder.service.services.authorization.issue_token(
        holder.user.id, frozenset(SCOPES), timedelta(hours=1), resource="mcp"
    )
    http = TestClient(holder.service.app, base_url=ADDRESS, headers={"Authorization": f"Bearer {token}"})
    return Assistant(http, holder.client)


@pytest.fixture(scope="module")
def somebody(service: Service) -> Assistant:
    holder = service.newcomer()
    holder.bring(
        AccountRecord(stable_key="giro", currency="EUR", iban="DE02120300000000202051", name="Giro"),
        [
            TransactionRecord(amount=Decimal(amount), currency=currency, booking_date=DAY, counterpart_name="Shop")
            for amount, currency in (("-5.00", "EUR"), ("0.10", "EUR"), ("-30000000000000.07", "EUR"), ("-7.00", "XAU"))
        ],
        StatementRecord(closing=Decimal("12.30"), closing_date=date(2018, 12, 31)),
    )
    return assistant_of(holder)


@pytest.mark.requirement("mcp.tools")
def test_amounts_are_written_as_the_data_interface_writes_them(somebody: Assistant) -> None:
    answer = somebody.asks("tools/call", {"name": "search_transactions", "arguments": {}})
    for written in ('"amount":-5.00', '"amount":0.10', '"amount":-30000000000000.07', '"expenses":30000000000005.07'):
        assert written in answer.text
        assert written in somebody.rest.get("/transactions").text + somebody.rest.get("/transactions/totals").text
    result = answer.json()["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


@pytest.mark.requirement("mcp.tools")
def test_every_figure_names_the_currencies_that_it_lacks(somebody: Assistant) -> None:
    headers = somebody.rest.get("/cashflow").headers
    assert headers["unconverted-currencies"] == "XAU"
    month = {"kind": "month", "key": "2026-11"}
    for tool, arguments in (
        ("get_overview", {}),
        ("get_cashflow", {}),
        ("search_transactions", {}),
        ("summarize_transactions", {"groupBy": "merchant"}),
        ("explain_figure", month),
    ):
        assert somebody.answer(tool, **arguments)["unconvertedCurrencies"] == ["XAU"]
    assert somebody.answer("search_transactions", dateFrom="2026-11-11")["unconvertedCurrencies"] == []


@pytest.mark.requirement("mcp.tools")
def test_each_tool_says_whether_refunds_lower_its_expenses(somebody: Assistant) -> None:
    described = {tool["name"]: tool["description"] for tool in somebody.tools()}
    for tool, said in (
        ("get_overview", "last30Days is net of refunds"),
        ("get_cashflow", "a refund is income and lowers no expenses, unlike last30Days"),
        ("summarize_transactions", "expenses are gross"),
    ):
        assert said in described[tool]


@pytest.mark.requirement("balances.age")
def test_the_overview_says_of_which_day_a_balance_is(somebody: Assistant) -> None:
    (giro,) = somebody.answer("get_overview")["accounts"]
    assert (giro["balance"], giro["balanceDate"]) == (12.3, "2018-12-31")


@pytest.mark.requirement("mcp.answers")
def test_hiding_an_account_renumbers_no_other(service: Service) -> None:
    holder = service.newcomer()
    for key, iban in (("one", "DE02120300000000202051"), ("two", "DE02500105170137075030")):
        holder.bring(AccountRecord(stable_key=key, currency="EUR", iban=iban, name=key), [])
    someone = assistant_of(holder)
    (hidden, _), (id_, ref) = ((each["id"], each["ref"]) for each in someone.answer("get_overview")["accounts"])
    database = service.services.of(holder.user.id)
    database.atomically(lambda session: accounts.hide(session, user_id=holder.user.id, account_id=hidden, since=NOON))
    (left,) = someone.answer("get_overview")["accounts"]
    assert (left["id"], left["ref"]) == (id_, ref)


@pytest.mark.requirement("mcp.tools")
def test_the_overview_says_what_keeps_figures_from_being_whole(service: Service) -> None:
    holder = service.newcomer()
    giro = AccountRecord(stable_key="giro", currency="EUR", iban="DE02120300000000202051", name="Giro")
    for day, balance in ((1, "100.00"), (18, "90.00"), (19, "60.00")):
        booked = TransactionRecord(amount=Decimal(-10), currency="EUR", booking_date=DAY.replace(day=day))
        closing = StatementRecord(closing=Decimal(balance), closing_date=DAY.replace(day=day))
        holder.bring(giro, [booked], closing)
        detect_after_import(service.services.everybody, [holder.user.id], today=service.services.clock.today())
        service.services.scheduler._each_round()
    found = assistant_of(holder).answer("get_overview")
    [account] = found["accounts"]
    assert found["waiting"] == [{"title": "An account does not add up", "dueOn": None, "accounts": [account["ref"]]}]
