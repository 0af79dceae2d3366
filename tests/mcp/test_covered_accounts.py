"""A grant of some accounts: every operation and every tool answers as if there were only those, to the byte."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from io import BytesIO
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from auth.scopes import SCOPES
from handlers import operations
from handlers.mcp.tool_call import ref_of
from handlers.operations import KNOWS_COVERAGE, SHOWS_BOOKINGS
from storage import users
from storage.oauth.grants import Terms
from tests.explanations.conftest import Service, body_of
from tests.mcp.conftest import ADDRESS, Assistant

OPERATIONS = {
    "listAccounts": "/accounts",
    "listTransactions": "/transactions?perPage=100",
    "getCashflow": "/cashflow?months=24",
    "getSnapshot": "/snapshot",
    "listSubscriptions": "/subscriptions",
    "listSubscriptionDetails": "/subscriptions/details",
    "listCashflowTransactions": "/cashflow/2026-10/transactions",
    "listCategoryTransactions": "/snapshot/categories/GROCERIES/transactions",
}
MEANS_ALL = {
    "getCashflowCategories": "/cashflow/categories?months=24",
    "getBalances": "/balances?every=month",
    "getForecast": "/forecast?days=30",
    "searchTransactions": "/transactions/search?status=all&sort=-amount&perPage=100",
    "sumTransactions": "/transactions/totals?groupBy=category,month&limit=1000",
}
TAKES_ACCOUNTS = {name: path for name, path in OPERATIONS.items() if name != "listAccounts"} | MEANS_ALL


@dataclass
class Granted:
    """One user's accounts, a client that may read everything and one that may read some of them."""

    service: Service
    user_id: str
    ids: list[str]
    every: TestClient

    def rest(self, terms: Terms) -> TestClient:
        return self._client(f"{ADDRESS}/api/v1", terms, "data")

    def assistant(self, terms: Terms) -> Assistant:
        return Assistant(self._client(ADDRESS, terms, "mcp"), self.every)

    def _client(self, base: str, terms: Terms, resource: Any) -> TestClient:
        token = self.service.services.authorization.issue_token(
            self.user_id, frozenset(SCOPES), timedelta(hours=1), resource=resource, terms=terms
        )
        return TestClient(
            self.service.app,
            base_url=base,
            headers={"Authorization": f"Bearer {token}"},
            raise_server_exceptions=False,
        )


@pytest.fixture(params=["demo", "globe"])
def granted(request: pytest.FixtureRequest, demo_service: Service) -> Granted:
    every = demo_service.named(request.param)
    ids = [account["id"] for account in body_of(every, "/accounts")["accounts"]]
    return Granted(demo_service, users.get_by_name(demo_service.services.everybody, request.param).id, ids, every)


def only(*ids: str) -> Terms:
    return Terms(accounts=ids)


def asked(path: str, ids: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}accountIds={ids}"


@pytest.mark.requirement("grants.covered")
def test_the_table_of_operations_is_whole() -> None:
    by_id = {"getTransaction", "explainTransaction", "getSubscription"}
    with_a_moment = {"getIntegrity"}  # the next answer says another one
    kept = {name for name, entry in operations.OPERATIONS.items() if isinstance(entry, operations.Read)}
    assert {*OPERATIONS, *MEANS_ALL, *by_id, *with_a_moment} == kept
    others = {
        "exportTransactions",
        "listTakenBackTransactions",
        "listTransactionChanges",
        "listAccountChanges",
        "listenToEvents",
        "listWebhooks",
        "createWebhook",
        "getWebhook",
        "deleteWebhook",
        "testWebhook",
        "enableWebhook",
        "renewWebhookSecret",
        "listWebhookDeliveries",
        "retryWebhookDelivery",
        "startSync",
        "getSyncJob",
        "listConnections",
        "getIntegrity",
        "getProfile",
        "listCategories",
        "listTargets",
        "listNotices",
        "getAnnotation",
        "changeAnnotation",
        "listTags",
        "correctSome",
        "getOverview",
    }
    assert {*kept, *others} == KNOWS_COVERAGE
    assert {*kept, *others} > SHOWS_BOOKINGS.keys()


@pytest.mark.requirement("grants.covered")
@pytest.mark.parametrize("operation", TAKES_ACCOUNTS)
@pytest.mark.sampled
def test_one_granted_account_may_be_left_out_and_is_all_there_is(granted: Granted, operation: str) -> None:
    path = TAKES_ACCOUNTS[operation]
    for id_ in granted.ids:
        client, expected = granted.rest(only(id_)), granted.every.get(asked(path, id_))
        assert client.get(path).json() == expected.json()
        assert client.get(asked(path, id_)).content == expected.content
        assert client.get(path).json() == expected.json()  # the answer that was kept


@pytest.mark.requirement("grants.covered")
@pytest.mark.parametrize("operation", TAKES_ACCOUNTS)
@pytest.mark.sampled
def test_an_account_that_is_not_granted_does_not_exist(granted: Granted, operation: str) -> None:
    path, (first, second, *_) = TAKES_ACCOUNTS[operation], granted.ids
    client = granted.rest(only(first))
    for ids in (second, f"{first},{second}"):
        foreign = client.get(asked(path, ids))
        unknown = client.get(asked(path, ids.replace(second, "acc_of_nobody_at_all")))
        assert (foreign.status_code, foreign.content) == (400, unknown.content)
    several = granted.rest(only(first, second))
    if operation in MEANS_ALL:
        assert several.get(path).content == granted.every.get(asked(path, f"{first},{second}")).content
    else:
        assert several.get(path).status_code == 400
    assert (
        several.get(asked(path, f"{first},{second}")).content
        == granted.every.get(asked(path, f"{first},{second}")).content
    )


@pytest.mark.requirement("grants.covered")
def test_all_but_some_covers_what_comes_later_and_nothing_covers_nothing(granted: Granted) -> None:
    first, *others = granted.ids
    listed = granted.rest(Terms(accounts=(first,), all_but=True)).get("/accounts").json()["accounts"]
    assert [account["id"] for account in listed] == others
    nothing = granted.rest(only("acc_that_is_gone"))
    assert nothing.get("/accounts").json() == {"accounts": []}
    assert nothing.get("/transactions").json()["pagination"]["total"] == 0
    assert nothing.get("/subscriptions").json() == {"subscriptions": []}
    assert nothing.get("/transactions/totals").json()["count"] == 0
    assert nothing.get("/snapshot").json()["accounts"] == []
    assert nothing.post("/sync").status_code == 404


@pytest.mark.requirement("grants.covered")
@pytest.mark.parametrize("path", ["/corrections", "/rules", "/imports", "/accounts/hidden"])
def test_what_is_about_everything_is_refused_to_a_grant_of_less(granted: Granted, path: str) -> None:
    for terms in (only(granted.ids[0]), Terms(figures_only=True)):
        answer = granted.rest(terms).get(path)
        assert answer.status_code == 403
        assert answer.json()["error"].startswith("This connection does not cover everything")
    assert granted.every.get(path).status_code in (200, 403)


@pytest.mark.requirement("export.http")
def test_what_is_exported_is_of_granted_accounts_and_names_no_other(granted: Granted) -> None:
    path = "/transactions/export?format=parquet"
    for id_ in granted.ids:
        client = granted.rest(only(id_))
        of_csv = client.get("/transactions/export?format=csv")
        assert of_csv.content == granted.every.get(f"/transactions/export?format=csv&accountIds={id_}").content
        rows = pl.read_parquet(BytesIO(client.get(path).content))
        assert set(rows["account_id"]) <= {id_}
        for column in ("transfer_account_id", "transfer_id", "transfer_rule"):
            assert rows[column].null_count() == rows.height
        others = ",".join(other for other in granted.ids if other != id_)
        assert client.get(asked(path, others)).status_code == 400
    whole = pl.read_parquet(BytesIO(granted.every.get(asked(path, ",".join(granted.ids))).content))
    assert whole["transfer_account_id"].null_count() < whole.height
    assert granted.rest(Terms(figures_only=True)).get(path).status_code == 403


@pytest.mark.requirement("grants.covered")
def test_connections_are_those_of_granted_accounts(granted: Granted) -> None:
    whole = body_of(granted.every, "/connections")["connections"]
    for id_ in granted.ids:
        listed = body_of(granted.rest(only(id_)), "/connections")["connections"]
        assert [each["id"] for each in listed] == [each["id"] for each in whole if id_ in str(each)]
        assert not any(other in str(listed) for other in granted.ids if other != id_)


def proofs(client: TestClient, path: str = "/integrity") -> list[Any]:
    return list(body_of(client, path)["accounts"])


@pytest.mark.requirement("integrity")
def test_the_ledgers_that_are_proven_are_those_of_granted_accounts(granted: Granted) -> None:
    whole = body_of(granted.every, "/integrity")
    assert [each["accountId"] for each in whole["accounts"]] == granted.ids
    assert whole["isSound"], whole
    assert all(each["isSound"] for each in whole["accounts"])
    for place, id_ in enumerate(granted.ids):
        client = granted.rest(only(id_))
        assert proofs(client) == proofs(client, asked("/integrity", id_)) == [whole["accounts"][place]]
        other = granted.ids[place - 1]
        assert client.get(asked("/integrity", other)).status_code == 400


@pytest.mark.requirement("integrity")
def test_figures_only_proves_without_naming_a_booking(demo_service: Service) -> None:
    database = demo_service.services.everybody
    every = demo_service.named("solo")
    ids = [account["id"] for account in body_of(every, "/accounts")["accounts"]]
    granted = Granted(demo_service, users.get_by_name(database, "solo").id, ids, every)
    row = body_of(every, "/transactions", accountIds=ids[0], perPage=1)["transactions"][0]
    database.execute("UPDATE transactions SET is_potential_duplicate = TRUE WHERE id = $1", row["id"])
    (doubted,) = proofs(every, asked("/integrity", ids[0]))[0]["problems"]
    day = row["bookingDate"][:10]
    assert {**doubted, "message": ""} == {
        "kind": "possible_duplicate",
        "from": day,
        "until": day,
        "amount": row["amount"],
        "transactionIds": [row["id"]],
        "message": "",
    }
    assert doubted["message"].endswith("may be there twice.")
    assert proofs(every, asked("/integrity", ids[0]))[0]["periods"]
    (figures,) = proofs(granted.rest(Terms(figures_only=True)), asked("/integrity", ids[0]))
    assert (figures["isSound"], figures["problems"], figures["periods"]) == (True, [], [])  # a period may be a day
    database.execute("UPDATE transactions SET is_potential_duplicate = FALSE WHERE id = $1", row["id"])


@pytest.mark.requirement("grants.covered")
@pytest.mark.sampled
def test_single_bookings_of_other_accounts_are_not_found(granted: Granted) -> None:
    ids = ",".join(granted.ids)
    rows = body_of(granted.every, "/transactions", accountIds=ids, perPage=100)["transactions"]
    first = granted.ids[0]
    client = granted.rest(only(first))
    seen: set[bool] = set()
    for row in rows:
        is_covered = row["bankAccount"]["id"] == first
        if is_covered in seen and len(seen) == 2:
            continue
        seen.add(is_covered)
        for path in (f"/transactions/{row['id']}", f"/transactions/{row['id']}/explanation"):
            answer = client.get(path)
            unknown = client.get(path.replace(row["id"], "txn_of_nobody"))
            assert answer.status_code == (200 if is_covered else 404)
            assert is_covered or answer.content == unknown.content
    streams = body_of(granted.every, "/subscriptions/details", accountIds=ids)["subscriptions"]
    for stream in streams:
        answer = client.get(f"/subscriptions/{stream['id']}")
        assert answer.content == granted.every.get(asked(f"/subscriptions/{stream['id']}", first)).content


@pytest.mark.requirement("grants.covered")
def test_a_transfer_to_an_account_that_is_not_granted_is_not_told(demo_service: Service) -> None:
    every = demo_service.named("demo")
    ids = [account["id"] for account in body_of(every, "/accounts")["accounts"]]
    granted = Granted(demo_service, users.get_by_name(demo_service.services.everybody, "demo").id, ids, every)
    found = body_of(every, "/transactions", accountIds=",".join(ids), category="TRANSFER", perPage=100)["transactions"]
    told = 0
    for row in found[:20]:
        transfer = body_of(every, f"/transactions/{row['id']}/explanation")["transfer"]
        if transfer["accountId"] is None:
            continue
        told += 1
        own = row["bankAccount"]["id"]
        answer = granted.rest(only(own)).get(f"/transactions/{row['id']}/explanation")
        assert answer.json()["transfer"] == {
            "accountId": None,
            "transactionId": None,
            "rule": None,
            "reason": "Nothing shows that the payee or payer is an account of yours.",
        }
        assert transfer["accountId"] not in answer.text
        assert "account of yours." not in answer.text.replace(answer.json()["transfer"]["reason"], "")
        both = granted.rest(only(own, transfer["accountId"])).get(f"/transactions/{row['id']}/explanation").json()
        assert both["transfer"] == transfer
    assert told


@pytest.mark.requirement("grants.figures_only")
def test_under_figures_only_balances_are_those_of_month_ends_and_of_today(granted: Granted) -> None:
    today = granted.service.services.clock.today()
    whole, client = granted.every, granted.rest(Terms(figures_only=True))
    assert whole.get("/balances?every=day").status_code == 200
    for path in ("/balances", "/balances?every=day", "/balances?every=week"):  # kept in memory for whoever sees them
        refused = client.get(path)
        assert (refused.status_code, "every must be month" in refused.json()["error"]) == (403, True)

    def days(**window: str) -> list[str]:
        return [each["date"][:10] for each in body_of(client, "/balances", every="month", **window)["points"]]

    shown = days()
    assert shown[-1] == today.isoformat()
    ends = [(date.fromisoformat(each) + timedelta(days=1)).day for each in shown[:-1]]
    assert set(ends) == {1}
    month_end = shown[-3]
    assert days(dateTo=month_end) == shown[:-2]
    in_between = (date.fromisoformat(month_end) + timedelta(days=9)).isoformat()
    assert days(dateTo=in_between) == shown[:-2]
    assert days(dateTo="0001-01-15") == []


@pytest.fixture
def three_days_later(demo_service: Service) -> Iterator[None]:
    """New bookings are there, and every bank may be asked again."""
    demo_service.services.clock.offset += timedelta(days=3)
    yield
    demo_service.services.clock.offset -= timedelta(days=3)


@pytest.mark.requirement("grants.sync")
@pytest.mark.usefixtures("three_days_later")
@pytest.mark.long
def test_a_refresh_reaches_banks_of_granted_accounts_and_counts_their_bookings(demo_service: Service) -> None:
    every = demo_service.named("demo")
    listed = body_of(every, "/accounts")["accounts"]
    by_bank: dict[str, list[str]] = {}
    for account in listed:
        by_bank.setdefault(account["bankConnection"]["bankName"], []).append(account["id"])
    (ours, theirs) = sorted(by_bank.values(), key=len, reverse=True)[:2]
    granted = Granted(demo_service, users.get_by_name(demo_service.services.everybody, "demo").id, [], every)
    client = granted.rest(only(ours[0]))
    answer = client.post("/sync")
    assert (answer.status_code, len(answer.json()["syncJobs"]), answer.json()["skippedConnections"]) == (202, 1, 0)
    assert client.post(f"/sync?accountIds={theirs[0]}").status_code == 404
    other = every.post(f"/sync?accountIds={theirs[0]}").json()
    assert "syncJobs" in other, other
    started = other["syncJobs"][0]["syncId"]
    assert client.get(f"/sync/{started}").content == client.get("/sync/syn_unknown").content
    own = answer.json()["syncJobs"][0]["syncId"]
    begun = body_of(client, f"/sync/{own}")
    assert (begun["status"], "newTransactions" in begun) == ("syncing", False)
    for _ in range(60):
        whole = body_of(every, f"/sync/{own}")
        if whole["status"] == "completed":
            break
    mine = body_of(client, f"/sync/{own}")
    assert mine["status"] == "completed"
    assert mine["newTransactions"] <= whole["newTransactions"]
    others = granted.rest(only(*ours)).get(f"/sync/{own}").json()
    assert others["newTransactions"] == whole["newTransactions"]


@pytest.mark.requirement("grants.figures_only")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_figures_only_shows_no_booking_and_asks_for_nothing(granted: Granted, operation: str) -> None:
    client = granted.rest(Terms(figures_only=True))
    ids = ",".join(granted.ids)
    path = OPERATIONS[operation] if operation == "listAccounts" else asked(OPERATIONS[operation], ids)
    answer = client.get(path)
    if operation in SHOWS_BOOKINGS:
        assert answer.status_code == 403
        assert answer.json()["error"].startswith("This connection shows figures only.")
        assert "www-authenticate" not in answer.headers
    else:
        assert answer.content == granted.every.get(path).content


@pytest.mark.requirement("grants.figures_only")
@pytest.mark.requirement("totals.figures_only")
def test_figures_only_gets_totals_of_whole_months_and_nothing_of_single_bookings(granted: Granted) -> None:
    client, every = granted.rest(Terms(figures_only=True)), granted.every
    path = "/transactions/totals"
    for query in (
        *("", "groupBy=category,month", "dateFrom=2026-10-01&dateTo=2026-10-31&groupBy=type", "direction=out"),
        *("dateTo=2026-11-20", "dateTo=2026-11-30", "dateTo=9999-12-31"),
    ):
        shown, whole = (each.get(f"{path}?{query}").json() for each in (client, every))
        for sums in (whole, *whole.get("groups", []), whole.get("rest", {})):
            sums |= {"first": None, "last": None}
        counts = [each["count"] for each in (*shown.pop("groups", []), shown.pop("rest", shown))]
        whole = {name: value for name, value in whole.items() if name in shown}
        assert shown == whole
        assert not {1, 2} & set(counts), "a single booking could be told from its group"
        assert sum(counts) == whole["count"]
    october = "dateFrom=2026-10-01&dateTo=2026-10-31&groupBy=year&compareWith=previousPeriod"
    assert client.get(f"{path}?{october}").json()["compared"]["first"] is None
    for query in (
        *("groupBy=merchant", "groupBy=day", "groupBy=category,week", "words=rewe", "search=rewe", "merchant=rewe"),
        *("counterpartIban=DE0", "amountMin=5", "amountMax=5", "flag=unconverted", "status=all", "status=pending"),
        *("dateFrom=2026-10-02", "dateTo=2026-10-30", "dateTo=2026-11-21"),  # banks date bookings ahead
        *(f"dateFrom=2026-11-01&dateTo=2026-11-{day}&compareWith=previousPeriod" for day in (20, 30)),
    ):
        assert every.get(f"{path}?{query}").status_code == 200
        refused = client.get(f"{path}?{query}")
        assert (refused.status_code, "shows figures only" in refused.json()["error"]) == (403, True), query
    assert client.get("/transactions/search").status_code == 403
    groups = every.get(f"{path}?dateFrom=2026-10-01&dateTo=2026-10-31&groupBy=category&limit=50").json()["groups"]
    for group in groups:  # what is folded among groups is not told to a filter either
        query = f"dateFrom=2026-10-01&dateTo=2026-10-31&category={group['key']}"
        assert client.get(f"{path}?{query}").status_code == (403 if group["count"] < 3 else 200)
    assert {group["count"] < 3 for group in groups} == {True, False}
    narrow = granted.rest(Terms(figures_only=True, accounts=(granted.ids[0],)))
    of_account = body_of(every, path, accountIds=granted.ids[0])
    assert body_of(narrow, path) == {**of_account, "first": None, "last": None}


@pytest.mark.requirement("grants.figures_only")
@pytest.mark.sampled
def test_figures_only_lists_no_tool_that_shows_bookings(granted: Granted) -> None:
    someone = granted.assistant(Terms(figures_only=True))
    assert [tool["name"] for tool in someone.tools()] == [
        "get_overview",
        "get_cashflow",
        "get_balances",
        "get_forecast",
        "list_notices",
        "refresh_bank_data",
    ]
    for account in someone.answer("get_overview")["accounts"]:
        assert (account["balance"] is None) is (account["balanceDate"] is None)
    for currency in someone.answer("get_forecast")["currencies"]:
        assert currency["events"]["bank_text"] == {}
    answer = someone.asks("tools/call", {"name": "search_transactions"})
    assert answer.status_code == 403
    assert "www-authenticate" not in answer.headers


@pytest.mark.requirement("grants.covered")
def test_tools_know_granted_accounts_only(granted: Granted) -> None:
    first, second, *_ = granted.ids
    someone = granted.assistant(only(first))
    assert [account["id"] for account in someone.answer("get_overview")["accounts"]] == [first]
    found = someone.answer("search_transactions", perPage=50)
    assert [account["ref"] for account in found["accounts"]] == ([ref_of(first)] if found["transactions"] else [])
    assert found["totals"] == body_of(granted.every, "/transactions/totals", accountIds=first)
    assert (
        someone.answer("get_cashflow")["cashflow"] == body_of(granted.every, "/cashflow", accountIds=first)["cashflow"]
    )
    for ids in ([second], [first, second]):
        sentences = {
            tool: (someone.error(tool, accountIds=ids, **more), someone.error(tool, accountIds=["acc_nobody"], **more))
            for tool, more in (
                ("search_transactions", {}),
                ("summarize_transactions", {"groupBy": "account"}),
                ("get_balances", {}),
                ("get_forecast", {}),
                ("get_cashflow", {}),
                ("list_recurring_payments", {}),
                ("explain_figure", {"kind": "month", "key": "2026-10"}),
                ("refresh_bank_data", {}),
            )
        }
        assert all(foreign == unknown for foreign, unknown in sentences.values())
    for each in (
        someone.answer("list_recurring_payments"),
        someone.answer("explain_figure", kind="month", key="2026-10", perPage=50),
        someone.answer("explain_figure", kind="category", key="GROCERIES"),
    ):
        assert not any(id_ in str(each) for id_ in granted.ids[1:])


@pytest.mark.requirement("grants.full_numbers")
def test_account_numbers_are_whole_only_where_they_were_allowed_and_asked_for(demo_service: Service) -> None:
    every = demo_service.named("demo")
    listed = body_of(every, "/accounts")["accounts"]
    ids, own = ",".join(account["id"] for account in listed), {account["iban"] for account in listed}
    rows = body_of(every, "/transactions", accountIds=ids, perPage=100)["transactions"]
    row = next(each for each in rows if each["counterpartIban"])
    granted = Granted(demo_service, users.get_by_name(demo_service.services.everybody, "demo").id, [], every)
    for terms, asks, is_whole in (
        (Terms(full_numbers=True), True, True),
        (Terms(full_numbers=True), False, False),
        (Terms(), True, False),
    ):
        shown = granted.assistant(terms).answer("get_transaction", id=row["id"], includeIban=asks)
        assert (shown["transaction"]["counterpartIban"] == row["counterpartIban"]) is is_whole
        overview = granted.assistant(terms).answer("get_overview", includeIban=asks)
        assert ({account["iban"] for account in overview["accounts"]} == own) is is_whole


@pytest.mark.requirement("grants.narrowed")
def test_narrowing_counts_from_the_next_request_on(granted: Granted) -> None:
    first, second, *_ = granted.ids
    grants = granted.service.services.authorization.grants
    before = {each.grant.id for each in grants.connected_apps(granted.user_id)}
    client = granted.rest(Terms())
    path = asked("/transactions", f"{first},{second}")
    assert client.get(path).status_code == 200
    (held,) = [each.grant for each in grants.connected_apps(granted.user_id) if each.grant.id not in before]
    grants.narrow(held, terms=only(first), ends=held.expires_at)
    assert client.get(path).status_code == 400
    assert [account["id"] for account in body_of(client, "/accounts")["accounts"]] == [first]
    (held,) = [each.grant for each in grants.connected_apps(granted.user_id) if each.grant.id == held.id]
    grants.narrow(held, terms=Terms(figures_only=True), ends=held.expires_at)
    assert client.get("/transactions").status_code == 403
    assert [account["id"] for account in body_of(client, "/accounts")["accounts"]] == [first]
