"""GET /transactions/totals over the demo's data: what the pages of the list add up to, by hand and as the cashflow."""

from decimal import Decimal
from typing import Any

import pytest

from tests.explanations.conftest import Service, body_of


def ids_of(client: Any) -> str:
    return ",".join(account["id"] for account in body_of(client, "/accounts")["accounts"])


def every_row(client: Any, **filters: str) -> list[dict[str, Any]]:
    first = body_of(client, "/transactions", perPage=100, **filters)
    pages = range(2, first["pagination"]["pageCount"] + 1)
    more = [body_of(client, "/transactions", perPage=100, page=page, **filters)["transactions"] for page in pages]
    return [row for page in [first["transactions"], *more] for row in page]


@pytest.mark.requirement("totals.month")
def test_a_month_has_the_figures_of_the_cashflow(demo_service: Service) -> None:
    for name in ("demo", "globe"):
        client = demo_service.named(name)
        ids = ids_of(client)
        months = {row["month"]: row for row in body_of(client, "/cashflow", accountIds=ids, months=24)["cashflow"]}
        found = body_of(client, "/transactions/totals", accountIds=ids, groupBy="month")
        assert len(found["groups"]) >= 20
        for group in found["groups"]:
            of_month = months.get(group["key"])
            if of_month is not None:
                assert {name: group[name] for name in ("income", "expenses", "net")} == {
                    name: of_month[name] for name in ("income", "expenses", "net")
                }


@pytest.mark.requirement("totals.figures")
@pytest.mark.parametrize("filters", [{}, {"category": "GROCERIES"}, {"search": "rewe"}, {"dateFrom": "2026-11-01"}])
@pytest.mark.sampled
def test_totals_are_what_the_pages_add_up_to(demo_service: Service, filters: dict[str, str]) -> None:
    client = demo_service.named("solo")  # one account: nothing can be a transfer inside it
    rows = every_row(client, **filters)
    amounts = [Decimal(str(row["amount"])) for row in rows]
    income, expenses = sum(each for each in amounts if each > 0), -sum(each for each in amounts if each < 0)
    found = body_of(client, "/transactions/totals", **filters)
    assert rows, "the demo has such rows"
    assert found["count"] + sum(found["leftOut"].values()) == len(rows)
    if not found["leftOut"]:
        assert [Decimal(str(found[name])) for name in ("income", "expenses")] == [income, expenses]


@pytest.mark.requirement("totals.groups")
def test_groups_come_only_when_asked_for_and_add_up(demo_service: Service) -> None:
    client = demo_service.named("demo")
    ids = ids_of(client)
    assert "groups" not in body_of(client, "/transactions/totals", accountIds=ids)
    found = body_of(client, "/transactions/totals", accountIds=ids, groupBy="category")
    assert sum(group["count"] for group in found["groups"]) == found["count"]
    assert found["leftOut"]["transfer"] > 0


@pytest.mark.requirement("totals.figures")
def test_wrong_filters_are_refused_as_the_list_refuses_them(demo_service: Service) -> None:
    client = demo_service.named("demo")
    for query in ("dateFrom=2026-02-01&dateTo=2026-01-01", "accountIds=acc_x", "category=X"):
        answer, of_list = client.get(f"/transactions/totals?{query}"), client.get(f"/transactions?{query}")
        assert answer.status_code == 400
        assert answer.json() == of_list.json()
    for query, said in (
        ("groupBy=decade", "groupBy: must be of category, detailedCategory, ownCategory"),
        ("groupBy=day,type,year", "groupBy: must name at most 2 keys"),
        ("groupBy=day&limit=1001", "limit: must be an integer from 1 to 1000"),
        ("compareWith=previousYear&dateFrom=2026-01-01", "compareWith: needs dateFrom and dateTo"),
    ):
        answer = client.get(f"/transactions/totals?{query}")
        assert (answer.status_code, answer.json()["error"].startswith(said)) == (400, True)


@pytest.mark.requirement("totals.figures")
def test_totals_is_no_transaction(demo_service: Service) -> None:
    client = demo_service.named("demo")
    assert client.get("/transactions/totals/explanation").status_code == 404
    assert client.get("/transactions/total").status_code == 404
    assert client.get("/transactions/totals", params={"accountIds": ids_of(client)}).status_code == 200
