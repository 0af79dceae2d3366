"""Whoever presses twice on a slow line ends where one press ends: the browser drops the answer to the first press,
mostly with the cookie in it."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from auth.apps.clients import PAGE
from tests.oauth.conftest import PASSWORD, challenge_of, fields, parameters
from tests.oauth.pages.test_second_factor import code_of, turn_on

VERIFIER = "v" * 43


def as_before(browser: Any, cookies: dict[str, str]) -> None:
    """The browser has these cookies and no others."""
    browser.client.cookies.clear()
    for name, value in cookies.items():
        browser.client.cookies.set(name, value, domain="127.0.0.1", path="/")


def press_twice(browser: Any, path: str, form: dict[str, Any], *, has_new_cookie: bool) -> Any:
    """The answer to the second press; to the first one the browser has got the cookie alone, or nothing."""
    before = dict(browser.client.cookies)
    first = browser.client.post(path, data=form)
    assert first.status_code == 303
    if not has_new_cookie:
        as_before(browser, before)
    second = browser.client.post(path, data=form)
    assert second.status_code == 303, re.sub(r"<[^>]*>", "", second.text)
    assert second.headers["location"] == first.headers["location"]
    return second


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize("has_new_cookie", [False, True])
def test_a_second_press_on_sign_in_and_on_allow_is_one_sign_in_and_one_code(fresh: Any, has_new_cookie: bool) -> None:
    browser, client_id = fresh.browser(), fresh.register()
    form = fields(browser.client.get(browser.authorize(client_id).headers["location"]).text)
    page = press_twice(
        browser,
        "/oauth/login",
        {**form, "username": "alice", "password": PASSWORD},
        has_new_cookie=has_new_cookie,
    )
    form = fields(browser.client.get(page.headers["location"]).text)
    answer = press_twice(browser, "/oauth/consent", {**form, "decision": "allow"}, has_new_cookie=has_new_cookie)
    code = parameters(answer.headers["location"])["code"]
    assert fresh.redeem(code, VERIFIER, client_id).status_code == 200
    assert len(fresh.server.sessions.of_user(fresh.user.id)) == 1
    assert len(fresh.server.grants.connected_apps()) == 1


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize("has_new_cookie", [False, True])
def test_a_second_press_leads_to_the_account_page(fresh: Any, has_new_cookie: bool) -> None:
    browser = fresh.browser()
    form = {**fields(browser.client.get("/oauth/login").text), "username": "alice", "password": PASSWORD}
    press_twice(browser, "/oauth/login", form, has_new_cookie=has_new_cookie)
    assert browser.client.get("/account").status_code == 200


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize("has_new_cookie", [False, True])
def test_a_second_press_leads_to_the_second_step(fresh: Any, has_new_cookie: bool) -> None:
    seed, _codes, _browser = turn_on(fresh)
    browser = fresh.browser()
    form = {**fields(browser.client.get("/oauth/login").text), "username": "alice", "password": PASSWORD}
    page = press_twice(browser, "/oauth/login", form, has_new_cookie=has_new_cookie)
    step = {**fields(browser.client.get(page.headers["location"]).text), "code": code_of(fresh, seed)}
    press_twice(browser, "/oauth/second-step", step, has_new_cookie=True)


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize("address", ["/account/simplefin", "/oauth/authorize?client_id=https%3A%2F%2Fapp.example%2Fa"])
@pytest.mark.parametrize("has_second_step", [False, True])
@pytest.mark.parametrize("has_new_cookie", [False, True])
def test_a_second_press_leads_to_what_waited_for_the_sign_in(
    make_world: Callable[..., Any], address: str, has_second_step: bool, has_new_cookie: bool
) -> None:
    """The answer to the first press has deleted the cookie in which it waited."""
    fresh = make_world(document_hosts=None)
    seed = turn_on(fresh)[0] if has_second_step else ""
    browser = fresh.browser()
    page = browser.client.get(browser.client.get(address).headers["location"])
    form = {**fields(page.text), "username": "alice", "password": PASSWORD}
    arrived = press_twice(browser, "/oauth/login", form, has_new_cookie=has_new_cookie)
    if has_second_step:
        form = {**fields(browser.client.get(arrived.headers["location"]).text), "code": code_of(fresh, seed)}
        arrived = press_twice(browser, "/oauth/second-step", form, has_new_cookie=True)
    assert arrived.headers["location"] == address


@pytest.mark.requirement("decision 154")
def test_a_second_press_gives_five_minutes_for_the_second_step_anew(fresh: Any) -> None:
    seed, _codes, _browser = turn_on(fresh)
    browser = fresh.browser()
    form = {**fields(browser.client.get("/oauth/login").text), "username": "alice", "password": PASSWORD}
    before = dict(browser.client.cookies)
    browser.client.post("/oauth/login", data=form)
    fresh.clock.forward(minutes=6)
    as_before(browser, before)
    browser.client.post("/oauth/login", data=form)
    step = {**fields(browser.client.get("/oauth/second-step").text), "code": code_of(fresh, seed)}
    assert browser.client.post("/oauth/second-step", data=step).headers["location"] == "/account"


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize(("name", "status"), [("ALICE ", 303), ("bob", 403), ("nobody", 403), ("", 403)])
@pytest.mark.parametrize("has_second_step", [False, True])
def test_nobody_else_gets_into_the_account_of_whoever_signed_in_meanwhile(
    fresh: Any, name: str, status: int, has_second_step: bool
) -> None:
    if has_second_step:
        turn_on(fresh)
    browser = fresh.browser()
    form = {**fields(browser.client.get("/oauth/login").text), "password": PASSWORD}
    browser.client.post("/oauth/login", data={**form, "username": "alice"})
    assert browser.client.post("/oauth/login", data={**form, "username": name}).status_code == status


@pytest.mark.requirement("decision 154")
def test_two_presses_at_one_moment_are_one_sign_in(fresh: Any) -> None:
    browser = fresh.browser()
    page = browser.authorize(fresh.register())
    form = {**fields(browser.client.get(page.headers["location"]).text), "username": "alice", "password": PASSWORD}
    tabs = [fresh.browser() for _ in range(4)]
    for tab in tabs:
        as_before(tab, dict(browser.client.cookies))
    with ThreadPoolExecutor(len(tabs)) as pool:
        answers = list(pool.map(lambda tab: tab.client.post("/oauth/login", data=form), tabs))
    assert {answer.status_code for answer in answers} == {303}
    assert len({answer.cookies["bds_session"] for answer in answers}) == 1
    assert tabs[0].client.get(answers[0].headers["location"]).status_code == 200


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize(
    ("change", "status"),
    [({"password": "wrong wrong wrong"}, 400), ({"username": "bob"}, 303), ({"form_token": "x"}, 403)],
)
def test_the_former_cookie_opens_nothing_without_the_password(fresh: Any, change: dict[str, str], status: int) -> None:
    """An attacker may have planted the cookie, and know it with its form token."""
    browser = fresh.browser()
    form = {**fields(browser.client.get("/oauth/login").text), "username": "alice", "password": PASSWORD}
    planted = dict(browser.client.cookies)
    assert browser.client.post("/oauth/login", data=form).status_code == 303
    attacker = fresh.browser()
    as_before(attacker, planted)
    assert attacker.client.get("/account").headers["location"] == "/oauth/login"
    assert attacker.client.post("/oauth/login", data={**form, **change}).status_code == status
    mine = browser.client.cookies["bds_session"]
    assert attacker.client.cookies.get("bds_session") != mine


def _redeemed(world: Any, code: str, client_id: str) -> None:
    assert world.redeem(code, VERIFIER, client_id).status_code == 200


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize("between", [_redeemed, lambda world, *_: world.clock.forward(minutes=1)])
def test_a_code_that_is_used_or_old_is_not_given_again(fresh: Any, between: Callable[..., Any]) -> None:
    browser, client_id = fresh.browser(), fresh.register()
    page = browser.sign_in(browser.authorize(client_id, code_challenge=challenge_of(VERIFIER)))
    form = {**fields(browser.client.get(page.headers["location"]).text), "decision": "allow"}
    first = browser.client.post("/oauth/consent", data=form)
    between(fresh, parameters(first.headers["location"])["code"], client_id)
    again = browser.client.post("/oauth/consent", data=form)
    assert (again.status_code, "This sign-in is over" in again.text) == (400, True)


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize("change", [{"decision": "deny"}, {"bookings": ""}, {"lasts": "1"}])
def test_another_answer_to_the_same_request_is_refused(fresh: Any, change: dict[str, str]) -> None:
    browser = fresh.browser()
    page = browser.sign_in(browser.authorize(fresh.register()))
    form = {**fields(browser.client.get(page.headers["location"]).text), "decision": "allow"}
    assert browser.client.post("/oauth/consent", data=form).status_code == 303
    again = browser.client.post("/oauth/consent", data={**form, **change})
    assert (again.status_code, "This sign-in is over" in again.text) == (400, True)


@pytest.mark.requirement("decision 154")
@pytest.mark.parametrize("has_new_cookie", [False, True])
def test_a_second_press_on_the_own_pages_sign_in_leads_to_it_once_its_code_is_taken(
    fresh: Any, has_new_cookie: bool
) -> None:
    browser = fresh.browser()
    fresh.server.clients.ensure_page()
    page = browser.authorize(PAGE, redirect_uri="http://127.0.0.1:8000/signed-in")
    form = {**fields(browser.client.get(page.headers["location"]).text), "username": "alice", "password": PASSWORD}
    before = dict(browser.client.cookies)
    first = browser.client.get(browser.client.post("/oauth/login", data=form).headers["location"])
    assert "code" in parameters(first.headers["location"])
    if not has_new_cookie:
        as_before(browser, before)
    second = browser.client.get(browser.client.post("/oauth/login", data=form).headers["location"])
    assert second.headers["location"] == "http://127.0.0.1:8000/"
