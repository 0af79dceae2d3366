"""Revocation: own tokens only, at once, and 200 for everything that is of no use anyway."""

from typing import Any

import pytest


def revoke(world: Any, token: str, client_id: str, **more: str) -> Any:
    return world.http.post("/oauth/revoke", data={"token": token, "client_id": client_id, **more})


@pytest.mark.requirement("oauth.revocation")
@pytest.mark.parametrize("hint", [{}, {"token_type_hint": "access_token"}, {"token_type_hint": "nonsense"}])
def test_a_refresh_token_ends_its_family_at_once(world: Any, hint: dict[str, str]) -> None:
    tokens = world.tokens()
    other = world.tokens(tokens["client_id"])
    assert world.api(tokens["access_token"]).status_code == 200
    answer = revoke(world, tokens["refresh_token"], tokens["client_id"], **hint)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["cache-control"] == "no-store"
    assert world.api(tokens["access_token"]).status_code == 401
    assert world.refresh(tokens["refresh_token"], tokens["client_id"]).json()["error"] == "invalid_grant"
    assert world.api(other["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.revocation")
def test_an_access_token_ends_alone(world: Any) -> None:
    tokens = world.tokens()
    assert world.api(tokens["access_token"]).status_code == 200
    assert revoke(world, tokens["access_token"], tokens["client_id"]).status_code == 200
    assert world.api(tokens["access_token"]).status_code == 401
    again = world.refresh(tokens["refresh_token"], tokens["client_id"])
    assert world.api(again.json()["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.revocation")
def test_nobody_revokes_the_tokens_of_another_client(world: Any) -> None:
    tokens, thief = world.tokens(), world.register()
    assert revoke(world, tokens["access_token"], thief).status_code == 200
    assert revoke(world, tokens["refresh_token"], thief).status_code == 200
    assert world.api(tokens["access_token"]).status_code == 200
    assert world.refresh(tokens["refresh_token"], tokens["client_id"]).status_code == 200


@pytest.mark.requirement("oauth.revocation")
@pytest.mark.parametrize("token", ["x", "a.b.c", "\0", "ü", "x" * 10_000])
def test_unknown_tokens_are_fine(world: Any, token: str) -> None:
    assert revoke(world, token, world.register()).status_code == 200


@pytest.mark.requirement("oauth.revocation")
def test_a_request_without_token_or_with_an_unknown_client_is_refused(world: Any) -> None:
    answer = world.http.post("/oauth/revoke", data={"client_id": world.register()})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    answer = revoke(world, "x", "nobody")
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert world.http.get("/oauth/revoke").status_code == 405
