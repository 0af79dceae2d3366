"""Who may read what: tokens, scopes, subscription, the order of checks, and users who never see each other."""

import json
from itertools import permutations

import httpx
import pytest

from handlers.web.app import CONTRACT_FILE
from tests.service.conftest import Served, account_ids, errors_of, everything, get

SCOPES = {
    ("GET", "/accounts"): "read:accounts",
    ("GET", "/snapshot"): "read:accounts",
    ("POST", "/sync"): "read:accounts",
    ("GET", "/sync/syn_0"): "read:accounts",
    ("GET", "/transactions"): "read:transactions",
    ("GET", "/transactions/txn_0"): "read:transactions",
    ("GET", "/cashflow"): "read:cashflow",
    ("GET", "/subscriptions"): "read:cashflow",
}
SELECTING = ["/transactions", "/cashflow", "/snapshot", "/subscriptions"]


def ask_all(client: httpx.Client) -> dict[tuple[str, str], httpx.Response]:
    return {(method, path): client.request(method, path) for method, path in SCOPES}


@pytest.mark.requirement("interface 7 401")
@pytest.mark.parametrize("token", [None, "nonsense", "a.b.c", "x" * 5000])
def test_without_a_valid_token_everything_is_401(service: Served, token: str | None) -> None:
    with service.bare(token) as client:
        for answer in ask_all(client).values():
            assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})
            challenge = answer.headers["www-authenticate"]
            assert challenge.startswith("Bearer ")
            assert f'resource_metadata="{service.address}/.well-known/oauth-protected-resource' in challenge
            assert ('error="invalid_token"' in challenge) is (token is not None)


@pytest.mark.requirement("interface 7 401")
@pytest.mark.long
def test_a_changed_or_expired_token_is_401(own_service: Served) -> None:
    good = own_service.token("solo")
    head, body, seal = good.split(".")
    short = own_service.token("solo", seconds=60)
    with own_service.bare(short) as client:
        assert client.get("/accounts").status_code == 200
        own_service.advance(61)
        assert client.get("/accounts").status_code == 401
    for token in (f"{head}.{body}.{seal[:-4]}AAAA", f"{head}.{body[:-4]}AAAA.{seal}", f"{head}.{body}."):
        with own_service.bare(token) as client:
            assert client.get("/accounts").status_code == 401


@pytest.mark.requirement("interface 5.1")
@pytest.mark.requirement("decision 30")
@pytest.mark.parametrize("scope", sorted(set(SCOPES.values())))
def test_a_scope_opens_its_operations_and_no_other(service: Served, scope: str) -> None:
    for operation, answer in ask_all(service.client("empty", scope)).items():
        required = SCOPES[operation]
        if scope == required:
            assert answer.status_code in (200, 404), operation
        else:
            assert answer.status_code == 403
            assert answer.json() == {"error": f"Insufficient scope. Required: {required}"}
            assert f'error="insufficient_scope", scope="{required}"' in answer.headers["www-authenticate"]


@pytest.mark.requirement("interface 5 subscription")
def test_without_a_subscription_everything_is_403_and_names_the_billing_address(service: Served) -> None:
    answers = list(ask_all(service.client("lapsed")).values())
    assert {answer.status_code for answer in answers} == {403}
    assert errors_of(answers) == {f"Active subscription required. Subscribe at {service.address}/billing"}


@pytest.mark.requirement("interface 5 subscription")
def test_a_subscription_acts_at_once(own_service: Served) -> None:
    client = own_service.client("lapsed")
    own_service.command("users subscription", name="lapsed", active=True)
    assert client.get("/accounts").status_code == 200
    own_service.command("users subscription", name="lapsed", active=False)
    assert client.get("/accounts").status_code == 403


@pytest.mark.requirement("decision 29")
def test_scope_is_checked_before_subscription_and_both_before_parameters(service: Served) -> None:
    wrong = {"page": "0", "accountIds": "acc_0"}
    scope = service.client("lapsed", "read:cashflow").get("/transactions", params=wrong)
    assert scope.json() == {"error": "Insufficient scope. Required: read:transactions"}
    subscription = service.client("lapsed").get("/transactions", params=wrong)
    assert subscription.json()["error"].startswith("Active subscription required.")
    parameters = service.client("demo").get("/transactions", params=wrong)
    assert parameters.status_code == 400
    with service.bare() as nobody:
        assert nobody.get("/transactions", params=wrong).status_code == 401


@pytest.mark.requirement("isolation")
@pytest.mark.parametrize(("owner", "reader"), list(permutations(["demo", "solo", "globe"], 2)))
def test_no_id_of_one_user_means_anything_to_another(service: Served, owner: str, reader: str) -> None:
    theirs, mine = service.client(owner), service.client(reader)
    for id_ in account_ids(theirs):
        for path in SELECTING:
            foreign = mine.get(path, params={"accountIds": id_})
            unknown = mine.get(path, params={"accountIds": "acc_none"})
            mixed = mine.get(path, params={"accountIds": f"{id_},{account_ids(mine)[0]}"})
            assert foreign.status_code == 400
            assert foreign.json() == unknown.json() == mixed.json()
        assert mine.post("/sync", json={"accountIds": [id_]}).status_code == 404
    for row in everything(theirs)[::25]:
        answer = mine.get(f"/transactions/{row['id']}")
        assert (answer.status_code, answer.json()) == (404, {"error": "Transaction not found"})


@pytest.mark.requirement("isolation")
def test_lists_of_different_users_share_no_id(service: Served) -> None:
    seen = [
        {row["id"] for row in everything(service.client(user))} | set(account_ids(service.client(user)))
        for user in ("demo", "solo", "globe")
    ]
    assert len(set.union(*seen)) == sum(map(len, seen))


@pytest.mark.requirement("interface 4.1")
@pytest.mark.parametrize("path", SELECTING)
def test_account_ids_may_be_left_out_with_exactly_one_account(service: Served, path: str) -> None:
    assert service.client("solo").get(path).status_code == 200
    assert service.client("empty").get(path).status_code == 200
    for parameters in ({}, {"accountIds": ""}, {"accountIds": " , "}):
        answer = service.client("demo").get(path, params=parameters)
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("accountIds: ")
    only = account_ids(service.client("solo"))[0]
    assert (
        service.client("solo").get(path).json() == service.client("solo").get(path, params={"accountIds": only}).json()
    )


@pytest.mark.requirement("interface 7 404")
def test_unknown_transactions_and_jobs_are_404(service: Served) -> None:
    client = service.client("solo")
    for id_ in ("txn_0", "x", "%00", "%25", "ü", "a" * 3000):
        answer = client.get(f"/transactions/{id_}")
        assert (answer.status_code, answer.json()) == (404, {"error": "Transaction not found"}), id_
    assert client.get("/sync/syn_0").json() == {"error": "Sync job not found"}


@pytest.mark.requirement("decision 4")
def test_every_error_is_one_sentence_under_one_key(service: Served) -> None:
    client = service.client("solo")
    answers = [
        client.get("/nothing"),
        client.delete("/accounts"),
        client.post("/sync", content=b"{", headers={"content-type": "application/json"}),
        client.post("/sync", content=b"[]", headers={"content-type": "application/json"}),
        client.post("/sync", json={"accountIds": [1]}),
        client.get("/cashflow", params={"months": "six"}),
        httpx.get(f"{service.address}/nowhere", timeout=60, trust_env=False),
    ]
    for answer in answers:
        assert 400 <= answer.status_code < 500
        assert answer.json().keys() == {"error"}
        assert isinstance(answer.json()["error"], str)
        assert "\n" not in answer.json()["error"]
    assert answers[1].headers["allow"]


@pytest.mark.requirement("interface 9")
def test_the_contract_is_served_byte_for_byte_and_names_the_version(service: Served) -> None:
    answer = httpx.get(f"{service.address}/api/openapi.json", timeout=60, trust_env=False)
    assert answer.content == CONTRACT_FILE.read_bytes()
    assert json.loads(answer.content)["info"]["version"].startswith("1.0")
    assert service.base_url.endswith("/v1")


@pytest.mark.requirement("decision 52")
def test_the_log_names_nobody(service: Served) -> None:
    client = service.client("demo")
    accounts = get(client, "/accounts")["accounts"]
    client.get("/transactions", params={"accountIds": accounts[0]["id"], "search": "Geheimwort"})
    client.get("/transactions/geheim")
    with service.bare("geheimes.token.hier") as stranger:
        stranger.get("/accounts")
    log = service.log.read_text()
    secrets = ["geheim", "Geheimwort", str(client.headers["authorization"]).split()[1], "127.0.0.1"]
    secrets += [account["iban"] for account in accounts if account["iban"]]
    secrets += [row["counterpartName"] for row in everything(client)[:50] if row["counterpartName"]]
    assert [secret for secret in secrets if secret in log] == []


@pytest.mark.requirement("contract.examples")
def test_the_ids_in_the_contracts_examples_exist_in_the_demo(service: Served) -> None:
    text = CONTRACT_FILE.read_text()
    client = service.client("demo")
    ids = set(account_ids(client))
    accounts = {word for word in text.replace(",", '"').split('"') if word.startswith("acc_")}
    transactions = {word for word in text.split('"') if word.startswith("txn_")}
    jobs = {word for word in text.split('"') if word.startswith("syn_")}
    assert accounts <= ids
    assert accounts
    for id_ in transactions:
        get(client, f"/transactions/{id_}")
    for id_ in jobs:
        assert get(client, f"/sync/{id_}")["status"] == "completed"
