"""The discovery documents: the same bytes at every address, and nothing from the Host header."""

from collections.abc import Callable
from typing import Any

import pytest

SERVER = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"


@pytest.mark.requirement("oauth.discovery")
def test_the_server_document_is_complete(world: Any) -> None:
    base = "http://127.0.0.1:8000"
    answer = world.http.get(SERVER)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "max-age=300" in answer.headers["cache-control"]
    assert answer.json() == {
        "issuer": base,
        "authorization_endpoint": base + "/oauth/authorize",
        "token_endpoint": base + "/oauth/token",
        "registration_endpoint": base + "/oauth/register",
        "revocation_endpoint": base + "/oauth/revoke",
        "jwks_uri": base + "/oauth/jwks.json",
        "scopes_supported": ["read:accounts", "read:transactions", "read:cashflow"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "authorization_details_types_supported": ["account_information"],
        "service_documentation": base + "/docs",
        "protected_resources": [base + "/api/v1", base + "/mcp"],
    }


@pytest.mark.requirement("oauth.discovery")
def test_the_resource_document_is_the_same_at_both_addresses(world: Any) -> None:
    root, inserted = world.http.get(RESOURCE), world.http.get(RESOURCE + "/api/v1")
    assert root.content == inserted.content
    assert root.json() == {
        "resource": "http://127.0.0.1:8000/api/v1",
        "authorization_servers": ["http://127.0.0.1:8000"],
        "scopes_supported": ["read:accounts", "read:transactions", "read:cashflow"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Banking Data Service",
        "resource_documentation": "http://127.0.0.1:8000/docs",
    }


@pytest.mark.requirement("oauth.discovery_path")
def test_an_issuer_with_a_path_moves_its_endpoints_and_its_document(make_world: Callable[..., Any]) -> None:
    world = make_world(public_url="https://bank.example", auth_url="https://bank.example/auth")
    root, inserted = world.http.get(SERVER), world.http.get(SERVER + "/auth")
    assert root.content == inserted.content
    assert root.json()["issuer"] == "https://bank.example/auth"
    assert root.json()["token_endpoint"] == "https://bank.example/auth/oauth/token"
    assert world.http.get("/auth/oauth/jwks.json").status_code == 200
    assert world.http.get("/oauth/jwks.json").status_code == 404
    assert world.http.get("/auth/oauth/authorize").status_code == 400
    assert world.http.get("/auth/account").headers["location"] == "/auth/oauth/login"
    assert world.http.get(RESOURCE).json()["authorization_servers"] == ["https://bank.example/auth"]
    answer = world.http.options("/auth/oauth/token", headers=PREFLIGHT)
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.requirement("oauth.discovery_path")
def test_behind_a_proxy_that_takes_a_path_off_addresses_carry_it_and_requests_do_not(
    make_world: Callable[..., Any],
) -> None:
    http = make_world(public_url="https://home.example/bank").http
    origin = "https://home.example"
    assert http.get(origin + RESOURCE + "/bank/api/v1").json()["resource"] == "https://home.example/bank/api/v1"
    assert http.get(origin + SERVER + "/bank").json()["token_endpoint"] == "https://home.example/bank/oauth/token"
    assert http.get(origin + "/oauth/jwks.json").status_code == 200
    assert http.get(origin + "/account").headers["location"] == "/bank/oauth/login"


@pytest.mark.requirement("oauth.host_header")
@pytest.mark.parametrize("name", ["Host", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Original-URL"])
def test_no_header_changes_an_address(world: Any, name: str) -> None:
    for path in (SERVER, RESOURCE, "/oauth/jwks.json", "/oauth/login"):
        answer = world.http.get(path, headers={name: "evil.example"})
        assert "evil.example" not in answer.text
        assert "evil.example" not in answer.headers.get("location", "")


@pytest.mark.requirement("oauth.discovery")
def test_every_address_that_is_announced_exists(world: Any) -> None:
    document = world.http.get(SERVER).json()
    for name, status in (
        ("authorization_endpoint", 400),
        ("token_endpoint", 405),
        ("registration_endpoint", 405),
        ("revocation_endpoint", 405),
        ("jwks_uri", 200),
        ("service_documentation", 200),
    ):
        assert world.http.get(document[name]).status_code == status, name


@pytest.mark.requirement("oauth.keys")
def test_the_key_set_is_public_and_follows_a_rotation(fresh: Any) -> None:
    tokens = fresh.tokens()
    before = fresh.http.get("/oauth/jwks.json").json()["keys"]
    kid = fresh.server.rotate_keys()
    after = fresh.http.get("/oauth/jwks.json").json()["keys"]
    assert after[0]["kid"] == kid
    assert before[0] in after
    assert all(key.keys() == {"kty", "n", "e", "alg", "use", "kid"} for key in after)
    assert fresh.api(tokens["access_token"]).status_code == 200
    again = fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()
    assert fresh.api(again["access_token"]).status_code == 200


PREFLIGHT = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}


@pytest.mark.requirement("oauth.cors")
@pytest.mark.parametrize("name", ["token", "register", "revoke", "jwks.json"])
def test_scripts_of_every_origin_may_call_without_credentials(world: Any, name: str) -> None:
    answer = world.http.options(f"/oauth/{name}", headers=PREFLIGHT)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    answer = world.http.post(f"/oauth/{name}", headers={"Origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.requirement("oauth.cors")
@pytest.mark.parametrize("path", ["/oauth/authorize", "/oauth/login", "/oauth/consent", "/account"])
def test_scripts_of_other_origins_may_not_read_pages(world: Any, path: str) -> None:
    for answer in (
        world.http.options(path, headers=PREFLIGHT),
        world.http.get(path, headers={"Origin": "https://app.example"}),
    ):
        assert "access-control-allow-origin" not in answer.headers
