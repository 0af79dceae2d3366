"""RFC 9728: the data interface says which authorization server it believes, and challenges lead there."""

import re
from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.requirement("oauth.discovery.resource")
def test_a_client_finds_everything_from_the_challenge_of_a_refused_request(world: Any) -> None:
    refused = world.http.get("/api/v1/accounts")
    address = re.search(r'resource_metadata="([^"]*)"', refused.headers["www-authenticate"])
    assert address
    document = world.http.get(address[1]).json()
    assert document["resource"] == "http://127.0.0.1:8000/api/v1"
    assert document["bearer_methods_supported"] == ["header"]
    (issuer,) = document["authorization_servers"]
    server = world.http.get(f"{issuer}/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == issuer
    assert document["resource"] in server["protected_resources"]


@pytest.mark.requirement("oauth.discovery.resource")
def test_the_address_is_made_by_inserting_before_the_path(make_world: Callable[..., Any]) -> None:
    world = make_world(public_url="https://bank.example")
    inserted = world.http.get("/.well-known/oauth-protected-resource/api/v1")
    assert inserted.json()["resource"] == "https://bank.example/api/v1"
    assert inserted.content == world.http.get("/.well-known/oauth-protected-resource").content
    assert inserted.headers["content-type"] == "application/json"
    assert world.http.get("/.well-known/oauth-protected-resource/api/v2").status_code == 404


@pytest.mark.requirement("oauth.discovery.resource")
def test_no_header_of_a_request_changes_the_document(world: Any) -> None:
    forged = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    answer = world.http.get("/.well-known/oauth-protected-resource", headers=forged)
    assert "evil.example" not in answer.text
