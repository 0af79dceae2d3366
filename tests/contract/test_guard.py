"""Who is let in, and with which words and challenges everybody else is sent away (interface 5 and 7, oauth.md 2.3)."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from auth.principal import Principal
from handlers.web.request import Request
from handlers.web.steps.guard import metadata_url

METADATA = 'resource_metadata="http://127.0.0.1:8000/.well-known/oauth-protected-resource/api/v1"'

# interface 5.1
SCOPES = [
    ("GET", "/api/v1/accounts", "read:accounts"),
    ("GET", "/api/v1/snapshot", "read:accounts"),
    ("POST", "/api/v1/sync", "read:accounts"),
    ("GET", "/api/v1/sync/syn_1", "read:accounts"),
    ("GET", "/api/v1/transactions", "read:transactions"),
    ("GET", "/api/v1/transactions/txn_1", "read:transactions"),
    ("GET", "/api/v1/cashflow", "read:cashflow"),
    ("GET", "/api/v1/subscriptions", "read:cashflow"),
]


@pytest.fixture
def anybody(app: ASGIApp, connect: Callable[..., TestClient]) -> TestClient:
    """A client without a token."""
    return connect(app, token=None)


@pytest.mark.requirement("guard.401")
@pytest.mark.parametrize(("method", "path", "scope"), SCOPES)
def test_without_a_token_the_challenge_names_scope_and_metadata(
    anybody: TestClient, method: str, path: str, scope: str
) -> None:
    answer = anybody.request(method, path)
    assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})
    assert answer.headers["www-authenticate"] == f'Bearer scope="{scope}", {METADATA}'


@pytest.mark.requirement("guard.401")
@pytest.mark.parametrize("header", ["Basic dTpw", "Digest username=x", "DPoP token"])
def test_another_scheme_is_no_token(anybody: TestClient, header: str) -> None:
    answer = anybody.get("/api/v1/accounts", headers={"Authorization": header})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        f'Bearer scope="read:accounts", {METADATA}',
    )


@pytest.mark.requirement("guard.401")
@pytest.mark.parametrize(
    "header",
    [
        "Bearer unknown",
        "Bearer",
        "Bearer ",
        "",
        "Bearer a b",
        "Bearer ä",
        "Bearergood",
        "Bearer good,",
        "Bearer\tgood",
        "good",
    ],
)
def test_a_bad_token_or_header_is_an_invalid_token(anybody: TestClient, header: str) -> None:
    answer = anybody.get("/api/v1/accounts", headers=[(b"authorization", header.encode("latin-1"))])
    assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})
    expected = f'Bearer error="invalid_token", scope="read:accounts", {METADATA}'
    if header not in ("Bearergood", "good"):  # schemes of their own
        assert answer.headers["www-authenticate"] == expected


@pytest.mark.requirement("guard.401")
def test_two_authorization_headers_are_refused_even_when_one_is_good(anybody: TestClient) -> None:
    headers = [(b"authorization", b"Bearer good"), (b"authorization", b"Bearer good")]
    answer = anybody.get("/api/v1/accounts", headers=headers)
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@pytest.mark.requirement("guard.401")
@pytest.mark.parametrize("path", ["/api/v1/accounts?access_token=good", "/api/v1/transactions?access_token=good"])
def test_a_token_in_the_address_is_no_token(anybody: TestClient, path: str) -> None:
    assert anybody.get(path).status_code == 401


@pytest.mark.requirement("guard.401")
@pytest.mark.parametrize("header", ["Bearer good", "bearer good", "BEARER good", "Bearer   good"])
def test_the_name_of_the_scheme_has_no_case(anybody: TestClient, header: str) -> None:
    assert anybody.get("/api/v1/accounts", headers={"Authorization": header}).status_code == 200


@pytest.mark.requirement("guard.scope")
@pytest.mark.parametrize(("method", "path", "scope"), SCOPES)
def test_a_token_reaches_what_its_scope_names_and_nothing_else(
    app: ASGIApp, connect: Callable[..., TestClient], method: str, path: str, scope: str
) -> None:
    name = scope.removeprefix("read:")
    assert connect(app, token=name).request(method, path).status_code in (200, 202)
    others = "+".join({"accounts", "transactions", "cashflow"} - {name})
    answer = connect(app, token=others).request(method, path)
    assert (answer.status_code, answer.json()) == (403, {"error": f"Insufficient scope. Required: {scope}"})
    challenge = f'Bearer error="insufficient_scope", scope="{scope}", {METADATA}'
    assert answer.headers["www-authenticate"] == challenge


@pytest.mark.requirement("guard.subscription")
@pytest.mark.parametrize(("method", "path", "_scope"), SCOPES)
def test_without_a_subscription_the_billing_address_is_named_and_no_challenge(
    app: ASGIApp, connect: Callable[..., TestClient], method: str, path: str, _scope: str
) -> None:
    answer = connect(app, token="lapsed").request(method, path)
    assert answer.status_code == 403
    assert answer.json() == {"error": "Active subscription required. Subscribe at https://billing.example/plans"}
    assert "www-authenticate" not in answer.headers


@pytest.mark.requirement("decision.29")
def test_the_scope_is_asked_for_before_the_subscription_and_both_before_parameters(
    make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient]
) -> None:
    async def narrow_and_lapsed(_token: str) -> Principal:
        scopes = frozenset({"read:accounts"})
        return Principal(user_id="u", client_id="c", scopes=scopes, grant_id=None, has_subscription=False)

    client = connect(make_app(authenticate=narrow_and_lapsed))
    assert client.get("/api/v1/transactions?page=x").json()["error"].startswith("Insufficient scope")
    assert client.get("/api/v1/snapshot?accountIds=%00").json()["error"].startswith("Active subscription")
    assert client.get("/api/v1/sync/%20").json()["error"].startswith("Active subscription")


@pytest.mark.requirement("decision.29")
def test_without_a_token_nobody_learns_what_exists_or_is_valid(anybody: TestClient) -> None:
    for path in ("transactions?page=x", "transactions/unknown", "transactions/%20", "sync/unknown"):
        assert anybody.get(f"/api/v1/{path}").status_code == 401


@pytest.mark.requirement("guard.store-failure")
def test_a_failing_store_is_500_and_not_401(
    make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient]
) -> None:
    async def broken(_token: str) -> Principal:
        raise OSError("disk")

    answer = connect(make_app(authenticate=broken)).get("/api/v1/accounts")
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal error"})


@pytest.mark.requirement("guard.principal")
def test_the_operation_learns_who_calls(make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient]) -> None:
    seen: list[Any] = []

    def list_accounts(request: Request) -> dict[str, Any]:
        seen.append(request.principal)
        return {"accounts": []}

    connect(make_app({"listAccounts": list_accounts}), token="accounts").get("/api/v1/accounts")
    scopes = frozenset({"read:accounts"})
    assert seen == [Principal(user_id="u1", client_id="c1", scopes=scopes, grant_id=None, has_subscription=True)]


@pytest.mark.requirement("guard.metadata")
@pytest.mark.parametrize(
    ("public_url", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/.well-known/oauth-protected-resource/api/v1"),
        ("https://bank.example", "https://bank.example/.well-known/oauth-protected-resource/api/v1"),
        ("https://bank.example/data/", "https://bank.example/.well-known/oauth-protected-resource/data/api/v1"),
    ],
)
def test_the_metadata_lie_at_the_origin_with_the_path_behind(public_url: str, expected: str) -> None:
    assert metadata_url(public_url) == expected
