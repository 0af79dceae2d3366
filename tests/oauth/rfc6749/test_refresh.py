"""Refresh tokens rotate, narrow, expire, and betray whoever uses one twice."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from handlers.settings import load
from tests.oauth.conftest import challenge_of, fields, parameters


@pytest.mark.requirement("oauth.refresh_rotation")
def test_reuse_ends_the_family_and_no_other(world: Any) -> None:
    one = world.tokens()
    other = world.tokens(one["client_id"])
    two = world.refresh(one["refresh_token"], one["client_id"]).json()
    three = world.refresh(two["refresh_token"], one["client_id"]).json()
    answer = world.refresh(one["refresh_token"], one["client_id"])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert world.refresh(three["refresh_token"], one["client_id"]).json()["error"] == "invalid_grant"
    for tokens in (one, two, three):
        assert world.api(tokens["access_token"]).status_code == 401
    assert world.api(other["access_token"]).status_code == 200
    assert world.refresh(other["refresh_token"], other["client_id"]).status_code == 200


@pytest.mark.requirement("oauth.refresh_lifetime")
def test_a_refresh_token_lives_for_thirty_days_from_its_own_issue(fresh: Any) -> None:
    tokens = fresh.tokens()
    for _ in range(3):
        fresh.clock.forward(days=29, hours=23, minutes=59)
        answer = fresh.refresh(tokens["refresh_token"], tokens["client_id"])
        assert answer.status_code == 200
        tokens.update(answer.json())
    fresh.clock.forward(days=30)
    assert fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()["error"] == "invalid_grant"


@pytest.mark.requirement("oauth.refresh_lifetime")
def test_no_family_outlives_a_year(fresh: Any) -> None:
    tokens = fresh.tokens()
    for _ in range(18):
        fresh.clock.forward(days=20)
        tokens.update(fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json())
    fresh.clock.forward(days=4, hours=23, minutes=30)
    tokens.update(fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json())
    assert fresh.api(tokens["access_token"]).status_code == 200
    fresh.clock.forward(minutes=30)
    assert fresh.api(tokens["access_token"]).status_code == 401
    assert fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()["error"] == "invalid_grant"


@pytest.mark.requirement("oauth.refresh_bound")
def test_a_refresh_token_is_of_no_use_to_another_client(world: Any) -> None:
    tokens, thief = world.tokens(), world.register()
    assert world.refresh(tokens["refresh_token"], thief).json()["error"] == "invalid_grant"
    assert world.refresh(tokens["refresh_token"], tokens["client_id"]).status_code == 200


@pytest.mark.requirement("oauth.refresh_scope")
def test_scopes_can_shrink_for_one_access_token_and_never_grow(world: Any) -> None:
    tokens = world.tokens(scope="read:accounts read:cashflow")
    client_id = tokens["client_id"]
    for scope in ("read:accounts read:transactions", "read:transactions", "openid", "  "):
        answer = world.refresh(tokens["refresh_token"], client_id, scope=scope)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")
    narrow = world.refresh(tokens["refresh_token"], client_id, scope="read:accounts").json()
    assert narrow["scope"] == "read:accounts"
    assert world.api(narrow["access_token"]).json()["scopes"] == ["read:accounts"]
    assert world.api(narrow["access_token"], "/api/v1/cashflow").status_code == 403
    wide = world.refresh(narrow["refresh_token"], client_id).json()
    assert wide["scope"] == "read:accounts read:cashflow"
    with_foreign = world.refresh(wide["refresh_token"], client_id, scope="openid read:cashflow").json()
    assert with_foreign["scope"] == "read:cashflow"


@pytest.mark.requirement("oauth.refresh_grace")
def test_inside_the_grace_the_same_successor_comes_again(make_world: Callable[..., Any]) -> None:
    world = make_world(refresh_reuse_seconds=timedelta(seconds=30))
    one = world.tokens()
    client_id = one["client_id"]
    two = world.refresh(one["refresh_token"], client_id).json()
    world.clock.forward(seconds=29.9)
    again = world.refresh(one["refresh_token"], client_id).json()
    assert again["refresh_token"] == two["refresh_token"]
    assert world.api(again["access_token"]).status_code == 200
    assert world.refresh(two["refresh_token"], client_id).status_code == 200


@pytest.mark.requirement("oauth.refresh_grace")
@pytest.mark.parametrize("used_successor", [False, True])
def test_after_the_grace_or_a_used_successor_the_family_ends(
    make_world: Callable[..., Any], used_successor: bool
) -> None:
    world = make_world(refresh_reuse_seconds=timedelta(seconds=30))
    one = world.tokens()
    client_id = one["client_id"]
    two = world.refresh(one["refresh_token"], client_id).json()
    if used_successor:
        two = world.refresh(two["refresh_token"], client_id).json()
    else:
        world.clock.forward(seconds=30)
    assert world.refresh(one["refresh_token"], client_id).json()["error"] == "invalid_grant"
    assert world.refresh(two["refresh_token"], client_id).json()["error"] == "invalid_grant"
    assert world.api(two["access_token"]).status_code == 401


@pytest.mark.requirement("oauth.refresh_grace")
def test_by_default_a_used_token_is_answered_again_for_a_minute_and_zero_turns_that_off() -> None:
    assert load({}).refresh_reuse_seconds == timedelta(seconds=60)
    assert load({"BANKDATA_REFRESH_REUSE_SECONDS": "0"}).refresh_reuse_seconds == timedelta(0)


@pytest.mark.requirement("oauth.refresh_grace")
def test_another_client_gets_nothing_in_the_grace(make_world: Callable[..., Any]) -> None:
    world = make_world(refresh_reuse_seconds=timedelta(seconds=30))
    one, thief = world.tokens(), world.register()
    world.refresh(one["refresh_token"], one["client_id"])
    assert world.refresh(one["refresh_token"], thief).json()["error"] == "invalid_grant"


@pytest.mark.requirement("oauth.secrets_hashed")
def test_no_secret_is_in_the_store(fresh: Any) -> None:
    browser = fresh.browser()
    client_id = fresh.register()
    code, verifier = browser.code(client_id)
    tokens = fresh.redeem(code, verifier, client_id).json()
    stored = ""
    for table in ("clients", "requests", "codes", "grants", "refresh_tokens", "sessions", "throttles"):
        stored += str(fresh.database.rows(f"SELECT * FROM oauth_{table}"))
    stored += str(fresh.database.rows("SELECT * FROM users"))
    session = browser.client.cookies["bds_session"]
    for secret in (
        code,
        tokens["refresh_token"],
        tokens["access_token"],
        session,
        "umbrella-kettle-violin",
        "testclient",
    ):
        assert secret not in stored


@pytest.mark.requirement("oauth.refresh_rotation")
@pytest.mark.parametrize("seconds", [-0.001, -2, -7200])
def test_a_clock_that_was_set_back_lets_nobody_use_a_token_twice(make_world: Any, seconds: float) -> None:
    fresh = make_world(refresh_reuse_seconds=timedelta(0))
    tokens = fresh.tokens()
    winner = fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()
    fresh.clock.forward(seconds=seconds)
    assert fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()["error"] == "invalid_grant"
    assert fresh.api(winner["access_token"]).status_code == 401


@pytest.mark.requirement("oauth.refresh_grace")
@pytest.mark.parametrize(("seconds", "status"), [(-29, 200), (-30, 400), (-7200, 400)])
def test_a_clock_that_was_set_back_does_not_lengthen_the_grace(make_world: Any, seconds: float, status: int) -> None:
    world = make_world(refresh_reuse_seconds=timedelta(seconds=30))
    tokens = world.tokens()
    world.refresh(tokens["refresh_token"], tokens["client_id"])
    world.clock.forward(seconds=seconds)
    assert world.refresh(tokens["refresh_token"], tokens["client_id"]).status_code == status


@pytest.mark.requirement("oauth.refresh_lifetime")
@pytest.mark.parametrize(("lasts", "days"), [("365", 31), ("7", 8)])
def test_an_app_whose_access_has_ended_hears_that_and_may_ask_again(fresh: Any, lasts: str, days: int) -> None:
    client_id, browser, verifier = fresh.register(), fresh.browser(), "v" * 43
    page = browser.sign_in(browser.authorize(client_id, code_challenge=challenge_of(verifier)))
    form = fields(browser.client.get(page.headers["location"]).text)
    answer = browser.client.post("/oauth/consent", data={**form, "decision": "allow", "lasts": lasts})
    tokens = fresh.redeem(parameters(answer.headers["location"])["code"], verifier, client_id).json()
    fresh.clock.forward(days=days)
    fresh.server.cleanup.sweep()
    answer = fresh.refresh(tokens["refresh_token"], client_id)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert fresh.tokens(client_id)["access_token"]
