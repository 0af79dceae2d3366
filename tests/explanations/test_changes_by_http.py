"""Corrections, rules and accounts changed over HTTP, as the commands change them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.testclient import TestClient

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from auth.principal import Coverage, Principal
from auth.scopes import ALL_SCOPES
from handlers.operations.selection import owner_of
from handlers.web.errors import Forbidden
from handlers.web.request import Request
from tests.explanations.conftest import Holder, Service

GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", name="Giro")
OTHER = AccountRecord(stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR")
DOLLARS = AccountRecord(stable_key="dollars", currency="USD", name="Dollars")
UNKNOWN = "acc_unknown"


def writer(holder: Holder) -> TestClient:
    return holder.service.client(holder.user.id, frozenset(ALL_SCOPES))


def booked(day: str, amount: str, name: str | None = None, **further: Any) -> TransactionRecord:
    said: dict[str, Any] = {"currency": "EUR", "counterpart_name": name, **further}
    return TransactionRecord(booking_date=date.fromisoformat(day), amount=Decimal(amount), **said)


def categories(holder: Holder) -> list[str]:
    listed = holder.get("/transactions", accountIds=",".join(holder.account_ids()))
    return [row["category"] for row in listed["transactions"]]


@pytest.mark.requirement("page.corrections")
def test_a_correction_is_previewed_kept_listed_and_taken_back(holder: Holder) -> None:
    client, iban = writer(holder), "DE02370502990000684712"
    rows = [booked(f"2026-11-{day}", "-9.00", "Zwetschge", counterpart_iban=iban) for day in (10, 11)]
    holder.bring(GIRO, [*rows, booked("2026-11-12", "-1.00", "Pflaume"), booked("2026-11-09", "-1.00")])
    derived = categories(holder)
    listed = holder.get("/transactions")["transactions"]
    first = next(row["id"] for row in listed if row["counterpartName"] == "Zwetschge")
    asked = {"transactionId": first, "category": "HEALTH"}
    tried = client.post("/corrections?dryRun=true", json=asked).json()
    assert (tried["name"], tried["category"], tried["matching"], tried["changed"]) == ("Zwetschge", "HEALTH", 2, 2)
    assert (categories(holder), client.get("/corrections").json()) == (derived, {"corrections": []})
    assert client.post("/corrections", json=asked).json() == tried
    assert categories(holder).count("HEALTH") == 2
    told = {name: value for name, value in tried.items() if name != "changed"}
    assert client.get("/corrections").json() == {"corrections": [told]}
    assert client.delete(f"/corrections/{tried['id']}").json() == {"changed": 2}
    assert (categories(holder), client.get("/corrections").json()) == (derived, {"corrections": []})
    assert client.delete(f"/corrections/{tried['id']}").json() == {"error": "Correction not found"}
    unknown = client.post("/corrections", json={**asked, "transactionId": "txn_unknown"})
    assert (unknown.status_code, unknown.json()) == (404, {"error": "Transaction not found"})
    nameless = next(row["id"] for row in listed if row["counterpartName"] is None)
    assert client.post("/corrections", json={**asked, "transactionId": nameless}).status_code == 400


@pytest.mark.requirement("page.corrections")
def test_a_payee_of_a_file_without_ibans_is_corrected_for_all_of_its_bookings_by_its_name(holder: Holder) -> None:
    rows = [booked(f"2026-11-{day}", "-4.20", name) for day, name in ((10, "Kiosk Eck"), (11, "KIOSK ECK"))]
    holder.bring(GIRO, [*rows, booked("2026-11-12", "-1.00", "Kiosk am Markt")])
    *_, first = holder.get("/transactions")["transactions"]
    assert (first["merchantName"], first["counterpartIban"]) == (None, None)
    told = writer(holder).post("/corrections", json={"transactionId": first["id"], "category": "GROCERIES"}).json()
    assert (told["matching"], told["changed"]) == (2, 2)
    assert categories(holder)[1:] == ["GROCERIES", "GROCERIES"]
    assert categories(holder)[0] != "GROCERIES"
    reason = holder.get(f"/transactions/{first['id']}/explanation")["category"]["reason"]
    assert reason == "You have corrected a transaction with the same name before."
    assert writer(holder).delete(f"/corrections/{told['id']}").json() == {"changed": 2}


@pytest.mark.requirement("page.rules")
def test_a_rule_is_added_applied_listed_and_removed(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("2026-11-10", "-9.00", "Zwetschge"), booked("2026-11-11", "-1.00", "Pflaume")])
    derived = categories(holder)
    rule = {"field": "counterpartName", "operator": "contains", "value": "zwetsch", "category": "HEALTH"}
    whole = {**rule, "id": "1", "merchant": None, "type": None}
    assert client.post("/rules?dryRun=true", json=rule).json() == {**whole, "changed": 1}
    assert (categories(holder), client.get("/rules").json()) == (derived, {"rules": []})
    assert client.post("/rules", json=rule).json() == {**whole, "changed": 1}
    assert sorted(categories(holder)) == sorted(["HEALTH", derived[0]])
    second = client.post("/rules", json={**rule, "value": "pflaume", "merchant": "Pflaume & Co"}).json()
    assert (second["id"], second["merchant"]) == ("2", "Pflaume & Co")
    assert [each["id"] for each in client.get("/rules").json()["rules"]] == ["1", "2"]
    for number in ("1", "2"):
        assert client.delete(f"/rules/{number}").json() == {"changed": 1}
    assert (categories(holder), client.get("/rules").json()) == (derived, {"rules": []})
    assert client.delete("/rules/1").json() == {"error": "Rule not found"}
    nothing = client.post("/rules", json={"field": "purpose", "operator": "equals", "value": "x"})
    assert nothing.json() == {"error": "body: nothing to do: give category, merchant, type or tags"}


@pytest.mark.requirement("page.rules")
def test_what_says_what_is_already_so_changes_no_booking(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked(f"2026-11-{day}", "-9.00", "REWE Markt") for day in (10, 11)])
    assert set(categories(holder)) == {"GROCERIES"}
    rule = {"field": "counterpartName", "operator": "contains", "value": "rewe", "category": "GROCERIES"}
    assert client.post("/rules?dryRun=true", json=rule).json()["changed"] == 0
    listed = holder.get("/transactions")["transactions"]
    asked = {"transactionId": listed[0]["id"], "category": "GROCERIES"}
    tried = client.post("/corrections?dryRun=true", json=asked).json()
    assert (tried["matching"], tried["changed"]) == (2, 0)
    assert client.post("/rules", json=rule).json()["changed"] == 0
    explained = holder.get(f"/transactions/{listed[0]['id']}/explanation")["category"]["reason"]
    assert explained == "Your rule 1 says so: counterpart name contains “rewe”."
    assert client.delete("/rules/1").json() == {"changed": 0}


@pytest.mark.requirement("page.rules")
def test_of_rules_that_are_added_at_once_none_is_lost(holder: Holder) -> None:
    holder.bring(GIRO, [booked("2026-11-10", "-9.00", "Zwetschge")])
    wanted, client = [f"zwetsch{number}" for number in range(6)], writer(holder)

    def add(value: str) -> int:
        rule = {"field": "counterpartName", "operator": "contains", "value": value, "category": "HEALTH"}
        return int(client.post("/rules", json=rule).status_code)

    with start_blocking_portal() as client.portal, ThreadPoolExecutor(len(wanted)) as threads:  # one event loop for all
        assert set(threads.map(add, wanted)) == {200}
    client.portal = None
    kept = client.get("/rules").json()["rules"]
    assert sorted(rule["value"] for rule in kept) == wanted
    assert sorted(rule["id"] for rule in kept) == [str(number + 1) for number in range(6)]


@pytest.mark.requirement("page.accounts")
def test_an_account_is_renamed_hidden_and_shown_again(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("2026-11-10", "-9.00")])
    (giro,) = holder.account_ids()
    path = f"/accounts/{giro}"
    renamed = client.patch(path, json={"name": " Household "}).json()
    assert renamed == {
        "id": giro,
        "accountName": "Household",
        "iban": GIRO.iban,
        "bankName": "Bank",
        "isHidden": False,
        "perhapsSameAs": None,
        "creditLine": None,
    }
    assert client.get("/accounts/hidden?withShown=true").json() == {"accounts": [renamed]}
    assert client.patch(path, json={"isHidden": True}).json() == {**renamed, "isHidden": True}
    assert holder.account_ids() == []
    assert client.get("/accounts/hidden").json() == {"accounts": [{**renamed, "isHidden": True}]}
    assert client.patch(path, json={"isHidden": False, "name": None}).json()["accountName"] == "Giro"
    assert (holder.account_ids(), client.get("/accounts/hidden").json()) == ([giro], {"accounts": []})
    for name in ("  ", "x" * 141, "\u0085"):
        assert client.patch(path, json={"name": name}).status_code == 400
    missing = client.patch(f"/accounts/{UNKNOWN}", json={})
    assert (missing.status_code, missing.json()) == (404, {"error": "Account not found"})


@pytest.mark.requirement("page.accounts")
@pytest.mark.long
def test_accounts_are_merged_and_deleted_by_name(holder: Holder, demo_service: Service) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("2026-11-10", "-9.00", "Rewe"), booked("2026-11-11", "-1.00")])
    closing = StatementRecord(closing=Decimal("50.05"), closing_date=date(2026, 11, 11))
    holder.bring(OTHER, [booked("2026-11-10", "-9.00", "Rewe")], closing)
    holder.bring(DOLLARS, [booked("2026-11-10", "-5.00", currency="USD")])
    giro, other, dollars = holder.account_ids()
    assert client.post(f"/accounts/{other}/merge", json={"into": dollars}).status_code == 400
    assert client.post(f"/accounts/{other}/merge", json={"into": other}).status_code == 400
    assert client.post(f"/accounts/{other}/merge", json={"into": UNKNOWN}).status_code == 404
    stranger = writer(demo_service.newcomer())
    assert stranger.post(f"/accounts/{other}/merge", json={"into": giro}).status_code == 404
    assert stranger.delete(f"/accounts/{other}?name={OTHER.iban}").status_code == 404
    refused = client.post(f"/accounts/{other}/merge", json={"into": giro})
    assert (refused.status_code, refused.json()["error"]) == (
        400,
        "into: Accounts with different IBANs cannot be merged, unless the bank has given the account a new one.",
    )
    holder.service.services.everybody.execute("UPDATE accounts SET iban = NULL WHERE id = $1", other)
    before = holder.get("/transactions", accountIds=f"{giro},{other}")
    expected = {
        "removed": 1,
        "added": 0,
        "accountsGone": [other],
        "bookings": 1,
        "inBoth": 1,
        "balance": 50.05,
        "balanceDate": "2026-11-11",
        "currency": "EUR",
        "accessNarrowed": 0,
    }
    planned = client.post(f"/accounts/{other}/merge?dryRun=true", json={"into": giro}).json()
    assert planned == {**expected, "isDryRun": True}
    assert holder.get("/transactions", accountIds=f"{giro},{other}") == before
    merged = client.post(f"/accounts/{other}/merge", json={"into": giro}).json()
    assert merged == {**expected, "isDryRun": False}
    assert holder.account_ids() == [giro, dollars]
    recorded = holder.service.services.authorization.record.overview(holder.user.id, within=timedelta(hours=1))
    counted = {each.operation: each.calls - each.refusals for each in recorded}
    assert (counted["mergeAccount"], counted["mergeAccount (dry run)"]) == (1, 1)
    (part,) = client.get("/accounts/merged").json()["accounts"]
    assert part == {
        "id": other,
        "accountName": OTHER.name,
        "iban": OTHER.iban,
        "bankName": "Bank",
        "into": giro,
    }
    assert stranger.get("/accounts/merged").json() == {"accounts": []}
    assert stranger.delete(f"/accounts/{other}/merge").status_code == 404
    counts = {"removed": 0, "added": 1, "accountsGone": []}
    assert client.delete(f"/accounts/{other}/merge?dryRun=true").json() == counts
    assert client.get("/accounts/merged").json()["accounts"] == [part]
    assert client.delete(f"/accounts/{other}/merge?dryRun=perhaps").status_code == 400
    assert client.delete(f"/accounts/{other}/merge").json() == counts
    assert holder.get("/transactions", accountIds=f"{giro},{other}") == before
    assert client.get("/accounts/merged").json() == {"accounts": []}
    missing = client.delete(f"/accounts/{other}/merge")
    assert (missing.status_code, missing.json()) == (404, {"error": "Account not found"})
    holder.service.services.everybody.execute("UPDATE accounts SET iban = NULL WHERE id = $1", other)
    client.post(f"/accounts/{other}/merge", json={"into": giro})
    refused = client.delete(f"/accounts/{giro}?name=Dollars")
    assert (refused.status_code, refused.json()["error"][:5]) == (400, "name:")
    assert client.delete(f"/accounts/{giro}?name=Giro").json() == {
        "removed": 2,
        "added": 0,
        "accountsGone": [giro],
    }
    assert holder.account_ids() == [dollars]


@pytest.mark.requirement("page.profile")
def test_the_home_currency_is_chosen_and_figures_over_several_currencies_are_in_it(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("2026-11-10", "-9.00", "Zwetschge")])
    holder.bring(DOLLARS, [booked("2026-11-10", "-9.00", "Plum", currency="USD")])
    before = holder.get("/profile")
    changed = client.patch("/profile", json={"homeCurrency": "CHF"}).json()
    assert changed == {**before, "homeCurrency": "CHF", "lastEventId": changed["lastEventId"]}
    months = f"/cashflow/categories?accountIds={','.join(holder.account_ids())}"
    assert client.get(months).json()["currency"] == "CHF"
    assert client.patch("/profile", json={}).json()["homeCurrency"] == "CHF"
    refused = client.patch("/profile", json={"homeCurrency": "XAU"})
    sentence = "homeCurrency: 'XAU' has no reference rate of the European Central Bank. Try EUR, USD or CHF."
    assert (refused.status_code, refused.json()) == (400, {"error": sentence})
    back = client.patch("/profile", json={"homeCurrency": "EUR"}).json()
    assert back == {**before, "lastEventId": back["lastEventId"]}


@pytest.mark.requirement("page.accounts")
def test_the_list_of_hidden_accounts_is_no_account(holder: Holder) -> None:
    for method in ("PATCH", "DELETE", "PUT"):
        answer = writer(holder).request(method, "/accounts/hidden")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.requirement("page.accounts")
def test_reading_scopes_change_nothing(holder: Holder) -> None:
    client = holder.client
    for answer, scope in (
        (client.patch(f"/accounts/{UNKNOWN}", json={}), "write:accounts"),
        (client.delete(f"/accounts/{UNKNOWN}?name=x"), "write:accounts"),
        (client.post(f"/accounts/{UNKNOWN}/merge", json={}), "write:accounts"),
        (client.patch("/profile", json={}), "write:accounts"),
        (client.get("/rules"), "write:rules"),
        (client.post("/corrections", json={}), "write:rules"),
    ):
        assert (answer.status_code, answer.json()) == (403, {"error": f"Insufficient scope. Required: {scope}"})


@pytest.mark.requirement("page.accounts")
def test_a_grant_of_some_accounts_changes_nothing() -> None:
    some = Principal(
        user_id="u",
        client_id="c",
        scopes=frozenset(ALL_SCOPES),
        grant_id="g",
        has_subscription=True,
        coverage=Coverage(accounts=frozenset({"acc_1"})),
    )
    request = Request(caller=some, method="GET", path="/", query="", headers={}, client_address="127.0.0.1")
    with pytest.raises(Forbidden, match="This needs access to all accounts"):
        owner_of(request)


@pytest.mark.requirement("page.accounts")
def test_a_balance_that_its_person_says_counts_goes_on_with_what_is_booked_and_is_taken_back(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("2026-11-02", "-10.00", "Kiosk"), booked("2026-11-05", "25.00", "Kim")])
    (giro,) = holder.account_ids()

    def held() -> tuple[Any, list[Any]]:
        every = {"dateFrom": "2026-11-01", "dateTo": "2026-11-06", "every": "day"}
        points = [point["balance"] for point in client.get("/balances", params=every).json()["points"]]
        return client.get("/accounts").json()["accounts"][0]["balance"], points

    assert held()[0] is None
    path = f"/accounts/{giro}/balance"
    told = client.post(path, json={"date": "2026-11-03", "amount": 100}).json()
    assert (told["balance"], told["balanceDate"]) == (125, "2026-11-05")
    assert held() == (125, [100, 100, 100, 125, 125])
    holder.bring(GIRO, [booked("2026-11-06", "-5.00", "Bar")])
    assert held()[0] == 120
    other = client.post(path, json={"date": "2026-11-04", "amount": 90.5}).json()
    assert held()[0] == 110.5
    listed = [each for each in client.get("/imports").json()["imports"] if each["importId"] == other["importId"]]
    assert [(each["fileNames"], each["source"], each["new"]) for each in listed] == [
        (["balance-2026-11-04"], "Said by you", 0)
    ]
    for asked, balance in ((other, 120), (told, None)):
        assert client.delete(f"/imports/{asked['importId']}").is_success
        assert held()[0] == balance
    holder.bring(GIRO, [], StatementRecord(closing=Decimal(7), closing_date=date(2026, 11, 7)))
    client.post(path, json={"date": "2026-11-03", "amount": 100})
    assert held()[0] == 7  # the bank's, of a later day
    for refused in (
        {"date": "2026-12-24", "amount": 1},
        {"date": "1899-12-31", "amount": 1},
        {"date": "", "amount": 1},
        {"date": "2026-11-03", "amount": 1.005},
        {"date": "2026-11-03", "amount": 10**15},
        {"date": "2026-11-03"},
    ):
        assert client.post(path, json=refused).status_code == 400
    assert client.post(path.replace(giro, UNKNOWN), json={"date": "2026-11-03", "amount": 1}).status_code == 404
    assert holder.client.post(path, json={"date": "2026-11-03", "amount": 1}).status_code == 403
