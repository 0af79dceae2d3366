"""The cookies of a browser, read by ourselves; and a browser that goes away while it sends a form."""

import asyncio
import logging
import time
from typing import Any

import pytest
from starlette.datastructures import Headers

from handlers.oauth.cookies import Cookies, sent_cookies
from storage.database import StoreError, StoreFull, StoreUnavailable
from storage.oauth import clients
from tests.oauth.conftest import World, fields


@pytest.mark.requirement("oauth.cookies")
@pytest.mark.parametrize("around", ["{}", "other=1; {}; another", "{} ;x", '=;a="b;{};c="'])
def test_the_session_is_found_among_other_cookies(around: str, world: World) -> None:
    answer = world.browser().client.get("/oauth/login")
    session = answer.headers["set-cookie"].partition(";")[0]
    page = world.browser().client.get("/oauth/login", headers={"Cookie": around.format(session)})
    assert "set-cookie" not in page.headers
    assert fields(page.text)["form_token"]


@pytest.mark.requirement("oauth.cookies")
@pytest.mark.parametrize("before", [b"\xa0", b"\x85", b"\x1f"])
def test_a_name_that_only_resembles_the_prefix_is_another_cookie(before: bytes) -> None:
    sent = sent_cookies(Headers(raw=[(b"cookie", b"__Host-bds_session=a; \t" + before + b"__Host-bds_session=b")]))
    assert sent["__Host-bds_session"] == "a"


@pytest.mark.requirement("oauth.cookies")
def test_a_long_cookie_costs_no_more_than_its_length(world: World) -> None:
    def seconds(length: int) -> float:
        headers = {"Cookie": 'bds_session="' + '\\"' * length + '"'}
        began = time.thread_time()
        assert world.http.get("/oauth/login", headers=headers).status_code == 200
        return time.thread_time() - began

    seconds(10)
    assert seconds(120_000) < 1  # by http.cookies of Python 3.11.7: 89 s


@pytest.mark.requirement("loop.disconnect")
@pytest.mark.parametrize("path", ["/oauth/login", "/oauth/consent", "/account/password", "/account/revoke"])
def test_a_browser_that_leaves_in_the_middle_of_a_form_is_no_failure(
    path: str, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    messages = [{"type": "http.request", "body": b"username=a", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-www-form-urlencoded")],
        "client": ("192.0.2.7", 1),
    }
    with caplog.at_level(logging.INFO):
        asyncio.run(world.app(scope, receive, send))
    assert (sent, caplog.records) == ([], [])


@pytest.mark.requirement("oauth.cookies")
@pytest.mark.parametrize("value", ["a", "_w", ""])
def test_a_cookie_that_is_no_waiting_request_is_none(world: World, value: str) -> None:
    cookies = Cookies(is_https=False)
    assert cookies.waiting_query({cookies.waiting: value}) == ""


@pytest.mark.requirement("postgresql.unavailable")
@pytest.mark.parametrize("failure", [StoreUnavailable, StoreFull])
def test_while_the_store_is_away_or_full_pages_and_tokens_say_so(
    world: World, monkeypatch: pytest.MonkeyPatch, failure: type[StoreError]
) -> None:
    def is_away(*_: Any, **__: Any) -> None:
        raise failure

    client_id = world.register()
    monkeypatch.setattr(clients, "find", is_away)
    page = world.browser().authorize(client_id)
    assert (page.status_code, page.headers["retry-after"]) == (503, "2")
    answer = world.redeem("code", "verifier" * 8, client_id)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["error"] == "temporarily_unavailable"
