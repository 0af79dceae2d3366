"""The table "What is stored" of docs/security.md: every row goes at its time and not a second before."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from auth.server import AuthorizationServer
from tests.oauth.conftest import FAST, application, policy


def opened(world: Any) -> None:
    """A stranger's browser with a sign-in that it does not finish."""
    world.browser().authorize(world.register())


def failed(world: Any) -> None:
    browser = world.browser()
    browser.sign_in(browser.authorize(world.register()), password="a wrong password")


def signed_in(world: Any) -> None:
    browser = world.browser()
    browser.sign_in(browser.authorize(world.register()))


def allowed(world: Any) -> None:
    """A code that the app never fetches its tokens for."""
    world.browser().code(world.register())


def connected(world: Any) -> None:
    world.tokens()


def revoked(world: Any) -> None:
    tokens = world.tokens()
    form = {"token": tokens["access_token"], "client_id": tokens["client_id"]}
    assert world.http.post("/oauth/revoke", data=form).status_code == 200


def recorded(world: Any) -> None:
    world.server.record.note(world.user.id, "listAccounts")
    world.server.record.write()


@pytest.mark.requirement("oauth.what_is_stored")
@pytest.mark.parametrize(
    ("table", "happened", "kept"),
    [
        ("oauth_requests", opened, timedelta(minutes=15)),
        ("oauth_sessions", opened, timedelta(hours=1)),
        ("oauth_sessions", signed_in, timedelta(hours=12)),
        ("oauth_throttles", failed, timedelta(days=1)),
        ("oauth_clients", opened, timedelta(days=1)),
        ("oauth_codes", allowed, timedelta(days=1, seconds=60)),
        ("oauth_grants", allowed, timedelta(days=1, seconds=60)),
        ("oauth_revoked_tokens", revoked, timedelta(hours=1)),
        ("oauth_refresh_tokens", connected, timedelta(days=30)),
        ("oauth_grants", connected, timedelta(days=30)),
        ("oauth_clients", connected, timedelta(days=365)),
        ("access_record", recorded, timedelta(days=396)),
    ],
)
def test_what_is_stored_goes_at_its_time(
    table: str, happened: Callable[[Any], None], kept: timedelta, fresh: Any
) -> None:
    def rows() -> int:
        fresh.server.cleanup.sweep()
        name = " WHERE registered_by = 'self'" if table == "oauth_clients" else ""
        return int(fresh.database.rows(f"SELECT count(*) AS n FROM {table}{name}")[0]["n"])

    happened(fresh)
    fresh.clock.forward(seconds=kept.total_seconds())
    assert rows() > 0
    fresh.clock.forward(seconds=1)
    assert rows() == 0


@pytest.mark.requirement("oauth.what_is_stored")
def test_an_app_whose_access_has_ended_is_told_so_and_can_ask_again(fresh: Any) -> None:
    tokens = fresh.tokens()
    for _ in range(14):
        fresh.clock.forward(days=29)
        answer = fresh.refresh(tokens["refresh_token"], tokens["client_id"])
        tokens = {**tokens, **answer.json()}
    assert (answer.status_code, tokens["error"]) == (400, "invalid_grant")  # a year is over, in which it was in use
    fresh.clock.forward(days=300)
    fresh.server.cleanup.sweep()
    again = fresh.tokens(tokens["client_id"])
    assert fresh.api(again["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.what_is_stored")
def test_a_session_that_is_used_all_the_time_goes_after_seven_days(fresh: Any) -> None:
    browser = fresh.browser()
    browser.sign_in(browser.authorize(fresh.register()))

    def signed_in() -> int:
        fresh.server.cleanup.sweep()
        rows = fresh.database.rows("SELECT count(*) AS n FROM oauth_sessions WHERE user_id IS NOT NULL")
        return int(rows[0]["n"])

    for _ in range(7 * 24 // 8):
        fresh.clock.forward(hours=8)
        browser.client.get("/account")
        assert signed_in() == 1
    fresh.clock.forward(seconds=1)
    assert signed_in() == 0


@pytest.mark.requirement("oauth.what_is_stored")
def test_a_browser_keeps_two_cookies_and_the_second_for_180_days(fresh: Any) -> None:
    browser = fresh.browser()
    page = browser.authorize(fresh.register())
    answers = [page, browser.sign_in(page), browser.client.get("/account")]
    cookies = dict(each.split("=", 1) for answer in answers for each in answer.headers.get_list("set-cookie"))
    assert set(cookies) == {"bds_session", "bds_known"}
    assert "Max-Age=15552000" in cookies["bds_known"]
    assert "Max-Age=604800" in cookies["bds_session"]  # seven days


@pytest.mark.requirement("oauth.keys")
def test_a_server_that_has_lost_its_keys_ends_access_tokens_and_no_connection(fresh: Any, tmp_path: Path) -> None:
    tokens = fresh.tokens()
    assert fresh.api(tokens["access_token"]).status_code == 200
    server = AuthorizationServer(fresh.database, tmp_path / "new keys", policy(), fresh.clock, passwords=FAST)
    with TestClient(application(server), base_url=server.policy.public_url) as again:
        fresh.http = again
        assert fresh.api(tokens["access_token"]).status_code == 401
        refreshed = fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()
        assert fresh.api(refreshed["access_token"]).status_code == 200
