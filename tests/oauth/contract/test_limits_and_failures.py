"""Budgets, caps, settings, and what is said when the fault is ours."""

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from auth import lifetimes
from auth.apps import clients
from auth.people.password_hashing import Busy, Passwords
from auth.tokens.access_tokens import AccessTokens
from auth.tokens.keys import KeyRing
from handlers.oauth import endpoints, site
from handlers.settings import load
from handlers.web.steps.rate_limit import DEFAULT_RATE, Rate
from storage.database import Conflict
from storage.keys.places import KeysUnusable
from tests.oauth.conftest import file_of, policy

PASSWORD = "umbrella-kettle-violin"


@pytest.mark.requirement("oauth.budgets")
def test_programs_and_pages_have_budgets_of_their_own(
    make_world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (endpoints, site):
        monkeypatch.setattr(module, "BUDGET", Rate(requests=5, seconds=60))
    world = make_world(rate=DEFAULT_RATE)
    for _ in range(5):
        assert world.http.post("/oauth/revoke", data={"token": "x", "client_id": "x"}).status_code == 401
    answer = world.http.post("/oauth/token", data={"grant_type": "x"})
    assert (answer.status_code, answer.json()["error"]) == (429, "temporarily_unavailable")
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    for _ in range(5):
        assert world.http.get("/oauth/login").status_code == 200
    answer = world.http.get("/oauth/login")
    assert answer.status_code == 429
    assert "retry-after" in answer.headers
    assert answer.headers["content-type"].startswith("text/html")
    assert world.http.get("/oauth/jwks.json").status_code == 200


@pytest.mark.requirement("oauth.budgets")
def test_ten_thousand_clients_are_enough(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "SELF_REGISTERED_MAX", 2)
    fresh.tokens()
    fresh.tokens()
    answer = fresh.http.post("/oauth/register", json={"redirect_uris": ["https://app.example/"]})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3600")


@pytest.mark.requirement("oauth.budgets")
def test_one_browser_keeps_twenty_sign_ins_open(fresh: Any) -> None:
    browser, client_id = fresh.browser(), fresh.register()
    for _ in range(20):
        assert browser.authorize(client_id).status_code == 303
    assert browser.authorize(client_id).status_code == 429
    fresh.clock.forward(minutes=15)
    assert browser.authorize(client_id).status_code == 303


@pytest.mark.requirement("oauth.failures")
def test_a_failing_store_is_server_error_for_programs_and_a_page_for_people(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_id = fresh.register()
    browser = fresh.browser()
    browser.client.get("/oauth/login")

    def broken(*_: object, **__: object) -> None:
        raise OSError("the disk is gone: secret detail")

    monkeypatch.setattr(fresh.server.clients, "find", broken)
    monkeypatch.setattr(fresh.server.sessions, "resume", broken)
    answer = fresh.http.post(
        "/oauth/token", data={"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id}
    )
    assert answer.status_code == 500
    assert answer.json() == {"error": "server_error", "error_description": "Internal error"}
    page = browser.client.get("/account")
    assert page.status_code == 500
    assert "secret detail" not in page.text
    assert "Something went wrong here" in page.text


@pytest.mark.requirement("oauth.failures")
def test_too_many_sign_ins_at_once_are_asked_to_come_again(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object, **__: object) -> None:
        raise Busy

    monkeypatch.setattr(fresh.server.sign_in, "attempt", busy)
    browser = fresh.browser()
    token = browser.client.get("/oauth/login").text.partition('name="form_token" value="')[2].partition('"')[0]
    answer = browser.client.post("/oauth/login", data={"form_token": token, "username": "a", "password": "b"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


@pytest.mark.requirement("oauth.failures")
def test_hashing_has_two_places_and_a_short_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auth.people.password_hashing.WAIT_SECONDS", 0.01)
    passwords = Passwords(memory_kib=64, time_cost=1)
    stored = passwords.hash("x")
    gate = threading.Event()
    for _ in range(2):
        passwords._threads.submit(gate.wait)
    with pytest.raises(Busy):  # both places are taken, and nothing moves
        passwords.hash("x")
    gate.set()
    monkeypatch.undo()
    assert passwords.is_right("x", stored)
    for _ in range(20):
        passwords._places.acquire()
    with pytest.raises(Busy):  # the queue is full
        passwords.hash("x")
    passwords._places.release()
    assert passwords.is_right("x", stored)


@pytest.mark.requirement("oauth.failures")
def test_forty_callers_hash_in_two_threads() -> None:
    passwords = Passwords(memory_kib=64, time_cost=1)
    threads: set[int] = set()
    real = passwords._hasher.hash

    def noting(password: str) -> str:
        threads.add(threading.get_ident())
        return real(password)

    passwords._hasher = SimpleNamespace(hash=noting)  # type: ignore[assignment]  # the real one, which notes its thread
    with ThreadPoolExecutor(20) as callers:
        assert len(list(callers.map(passwords.hash, ["x"] * 40))) == 40
    assert len(threads) <= 2


@pytest.mark.requirement("oauth.failures")
def test_a_revocation_is_tried_until_it_has_come_through(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = fresh.tokens()
    real, tries = fresh.database.atomically, []

    def contested(work: Any) -> Any:
        tries.append(1)
        if len(tries) < 4:
            raise Conflict("somebody was first")
        return real(work)

    monkeypatch.setattr(fresh.database, "atomically", contested)
    assert (
        fresh.server.grants.revoke_all(
            because="revoked by the user", user_id=fresh.user.id, client_id=tokens["client_id"]
        )
        == 1
    )
    assert fresh.api(tokens["access_token"]).status_code == 401

    def never(_work: Any) -> Any:
        raise Conflict("always")

    monkeypatch.setattr(fresh.database, "atomically", never)
    with pytest.raises(Conflict):
        fresh.server.grants.revoke_all(
            because="revoked by the user", user_id=fresh.user.id, client_id=tokens["client_id"]
        )
    assert fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()["error"] == "temporarily_unavailable"
    fresh.server.cleanup.sweep()
    monkeypatch.setattr(fresh.database, "atomically", real)
    assert fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()["error"] == "invalid_grant"


@pytest.mark.requirement("oauth.settings")
def test_lifetimes_fit_into_each_other() -> None:
    assert timedelta() < lifetimes.ACCESS_TOKEN <= lifetimes.REFRESH_TOKEN <= lifetimes.GRANT


@pytest.mark.requirement("oauth.settings")
def test_a_slash_at_the_end_of_an_address_does_not_count() -> None:
    settings = load({"BANKDATA_AUTH_URL": "https://login.example/a/"})
    assert policy(auth_url=settings.auth_url).served_path == "/a"


@pytest.mark.requirement("oauth.keys")
def test_a_missing_key_or_folder_is_one_sentence(tmp_path: Any) -> None:

    (tmp_path / "file").write_text("")
    now = datetime.fromisoformat("2026-11-20T12:00:00")
    with pytest.raises(KeysUnusable):
        KeyRing(tmp_path / "file" / "keys", now=now)
    ring = KeyRing(tmp_path / "keys", now=now)
    file_of(ring).unlink()
    with pytest.raises(KeysUnusable, match="missing"):
        AccessTokens(ring, issuer="a", audience="b").issue(
            user_id="u", client_id="c", scopes=["read:accounts"], grant_id="g", now=now
        )


@pytest.mark.requirement("oauth.consent")
def test_pages_in_the_wrong_order_lead_back(world: Any) -> None:
    browser, client_id = world.browser(), world.register()
    login = browser.authorize(client_id)
    secret = login.headers["location"].partition("request=")[2]
    assert browser.client.get(f"/oauth/consent?request={secret}").headers["location"] == login.headers["location"]
    browser.sign_in(login)
    assert "/oauth/consent" in browser.client.get(login.headers["location"]).headers["location"]
    assert world.browser().client.get(login.headers["location"]).status_code == 400
    assert browser.client.get("/oauth/consent?request=unknown").status_code == 400
    assert browser.client.get("/oauth/consent").status_code == 400


@pytest.mark.requirement("oauth.consent")
def test_a_client_removed_meanwhile_gets_nothing(world: Any) -> None:
    browser, client_id = world.browser(), world.register()
    page = browser.sign_in(browser.authorize(client_id))
    html = browser.client.get(page.headers["location"]).text

    form = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', html.partition("</form>")[0]))
    world.server.clients.remove(client_id)
    answer = browser.client.post("/oauth/consent", data={**form, "decision": "allow"})
    assert answer.status_code == 400
    assert "location" not in answer.headers
