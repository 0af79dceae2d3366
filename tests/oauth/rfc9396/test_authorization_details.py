"""RFC 9396: what an app may ask for by authorization_details, what is refused, and where the type is announced."""

import json
from datetime import timedelta
from typing import Any

import pytest

from auth.apps.clients import PAGE
from tests.oauth.clients.test_page_of_this_server import SIGNED_IN
from tests.oauth.conftest import parameters

REQUIREMENT = "oauth.authorization_details"
DATA, MCP = "http://127.0.0.1:8000/api/v1", "http://127.0.0.1:8000/mcp"
TYPE = {"type": "account_information"}


def asked(world: Any, details: object, **more: str) -> Any:
    text = details if isinstance(details, str) else json.dumps(details)
    return world.browser().authorize(world.register("com.example.app:/cb"), **more, authorization_details=text)


def error_of(answer: Any) -> str:
    return parameters(answer.headers["location"]).get("error", "")


WRONG: list[object] = [
    "account_information",
    "{",
    TYPE,
    [],
    [TYPE, TYPE],
    [{}],
    [[]],
    [{"type": "payment_initiation"}],
    [{**TYPE, "instructedAmount": {"amount": "1.00"}}],
    [{**TYPE, "actions": []}],
    [{**TYPE, "actions": ["initiate"]}],
    [{**TYPE, "actions": "list_accounts"}],
    [{**TYPE, "locations": [MCP]}],
    [{**TYPE, "locations": ["https://elsewhere.example/"]}],
    [{**TYPE, "accounts": []}],
    [{**TYPE, "accounts": ["DE02120300000000202051"]}],
    [{**TYPE, "accounts": [{}]}],
    [{**TYPE, "accounts": [{"id": "acc_1", "iban": "DE02120300000000202051"}]}],
    [{**TYPE, "accounts": [{"id": "acc_1", "bic": "BYLADEM1001"}]}],
    [{**TYPE, "accounts": [{"id": "acc_1"}] * 101}],
    [{**TYPE, "laterAccounts": "yes"}],
    [{**TYPE, "fullNumbers": True}],
    [{**TYPE, "lastsDays": 366}],
    [{**TYPE, "lastsDays": "30"}],
    json.dumps([TYPE]).ljust(4097),
    "[" * 4000,
]


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize("details", WRONG)
def test_unknown_types_and_members_and_values_are_refused(world: Any, details: object) -> None:
    answer = asked(world, details, redirect_uri="com.example.app:/cb")
    assert error_of(answer) == "invalid_authorization_details"


RIGHT: list[object] = [
    [TYPE],
    [{**TYPE, "actions": ["list_accounts", "read_balances", "read_transactions", "read_cashflow"]}],
    [{**TYPE, "locations": [DATA, DATA + "/"], "accounts": [{"id": "acc_1"}, {"iban": "DE02120300000000202051"}]}],
    [{**TYPE, "laterAccounts": False, "fullNumbers": False, "lastsDays": 30}],
    json.dumps([TYPE]).ljust(4096),
]


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize("details", RIGHT)
def test_the_members_of_the_type_are_understood(world: Any, details: object) -> None:
    answer = asked(world, details, redirect_uri="com.example.app:/cb")
    assert "/oauth/login?request=" in answer.headers["location"]


@pytest.mark.requirement(REQUIREMENT)
def test_whole_numbers_are_for_assistants_and_locations_name_the_resource_that_is_asked_for(world: Any) -> None:
    details = [{**TYPE, "fullNumbers": True, "locations": [MCP]}]
    answer = asked(world, details, redirect_uri="com.example.app:/cb", resource=MCP)
    assert "/oauth/login?request=" in answer.headers["location"]


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize(
    ("scope", "granted"), [("-", "read:accounts read:cashflow"), ("read:accounts", "read:accounts")]
)
def test_without_a_scope_the_actions_name_it(world: Any, scope: str, granted: str) -> None:
    client_id = world.register()
    details = json.dumps([{**TYPE, "actions": ["read_cashflow", "read_balances"]}])
    code, verifier = world.browser().code(client_id, scope=scope, authorization_details=details)
    tokens = world.redeem(code, verifier, client_id).json()
    assert tokens["scope"] == granted


@pytest.mark.requirement(REQUIREMENT)
def test_the_page_of_this_server_sends_none(fresh: Any) -> None:
    fresh.server.clients.ensure_page()
    browser, details = fresh.browser(), json.dumps([TYPE])
    sent = browser.authorize(PAGE, redirect_uri=SIGNED_IN, authorization_details=details)
    assert error_of(sent) == "invalid_authorization_details"


@pytest.mark.requirement(REQUIREMENT)
def test_they_are_sent_once_and_not_to_the_token_endpoint(world: Any) -> None:
    client_id = world.register("com.example.app:/cb")
    details = json.dumps([TYPE])
    twice = {"authorization_details": [details, details]}
    answer = world.browser().authorize(client_id, redirect_uri="com.example.app:/cb", **twice)
    assert error_of(answer) == "invalid_request"
    client_id = world.register()
    code, verifier = world.browser().code(client_id, authorization_details=details)
    refused = world.redeem(code, verifier, client_id, authorization_details=details)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_authorization_details")
    tokens = world.redeem(code, verifier, client_id).json()
    again = world.refresh(tokens["refresh_token"], client_id, authorization_details=details)
    assert again.json()["error"] == "invalid_authorization_details"
    assert world.refresh(tokens["refresh_token"], client_id).status_code == 200


@pytest.mark.requirement(REQUIREMENT)
def test_an_answer_that_comes_again_within_the_grace_has_them_too(make_world: Any) -> None:
    world = make_world(refresh_reuse_seconds=timedelta(seconds=30))
    client_id = world.register()
    code, verifier = world.browser().code(client_id, authorization_details=json.dumps([TYPE]))
    one = world.redeem(code, verifier, client_id).json()
    two, again = (world.refresh(one["refresh_token"], client_id).json() for _ in range(2))
    assert again["refresh_token"] == two["refresh_token"]
    assert again["authorization_details"] == two["authorization_details"] == one["authorization_details"]


@pytest.mark.requirement(REQUIREMENT)
def test_the_type_is_announced_and_whoever_sends_none_is_answered_with_none(world: Any) -> None:
    document = world.http.get("/.well-known/oauth-authorization-server").json()
    assert document["authorization_details_types_supported"] == ["account_information"]
    assert "authorization_details" not in world.tokens()
