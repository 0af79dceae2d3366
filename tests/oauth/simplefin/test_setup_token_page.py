"""/account: a setup token is made for the password, shown once, and stands there until it ends."""

import base64
import html as html_text
import re
from datetime import timedelta
from typing import Any

import pytest

from auth.errors import InvalidGrant
from tests.oauth.conftest import PASSWORD, World
from tests.oauth.pages.test_account import forms, signed_in

pytestmark = pytest.mark.requirement("simplefin.page")


def asked(page: str, **fields: str) -> dict[str, str]:
    """What a browser sends of the form."""
    filled = {"name": "Actual", "later_accounts": "on", "bookings": "on", "lasts": "90", "current_password": PASSWORD}
    return {name: value for name, value in {**forms(page)["simplefin"], **filled, **fields}.items() if value != "-"}


def made(world: World, **fields: str) -> Any:
    browser = signed_in(world)
    return browser, browser.client.post("/account/simplefin", data=asked(browser.client.get("/account").text, **fields))


def token_of(page: str) -> str:
    found = re.search(r'id="token" type="text" value="([^"]+)" readonly', page)
    assert found is not None
    return html_text.unescape(found[1])


def code_of(page: str) -> str:
    return base64.b64decode(token_of(page), validate=True).decode().rpartition("/")[2]


def test_the_token_is_shown_once_and_waits_for_its_app(fresh: World) -> None:
    browser, answer = made(fresh)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["cache-control"]
    code = code_of(answer.text)
    assert "It works once, and for 24 hours." in answer.text
    assert "an app in a container or on another device does not reach it" in answer.text
    page = browser.client.get("/account").text
    assert code not in page
    assert "Not fetched yet" in page
    assert "SimpleFIN</span>" in page
    (app,) = fresh.server.grants.connected_apps(fresh.user.id)
    assert app.grant.expires_at - app.grant.created_at == timedelta(days=90)
    fresh.server.simplefin.claim(code, agent="actual <26>", address="192.0.2.1")
    page = browser.client.get("/account").text
    assert "Not fetched yet" not in page
    assert "Fetched by “actual &lt;26&gt;”" in page
    assert "tried again" not in page
    with pytest.raises(InvalidGrant):
        fresh.server.simplefin.claim(code, agent="", address="192.0.2.1")
    assert "The setup token was tried again on 20 November 2026" in browser.client.get("/account").text
    assert "The access ends soon" not in page
    fresh.clock.forward(days=61)
    browser = signed_in(fresh)
    assert "The access ends soon. Make a new setup token" in browser.client.get("/account").text


def test_a_token_that_waits_can_be_ended(fresh: World) -> None:
    browser, answer = made(fresh)
    browser.client.post("/account/revoke", data=forms(browser.client.get("/account").text)["revoke"])
    with pytest.raises(InvalidGrant):
        fresh.server.simplefin.claim(code_of(answer.text), agent="", address="192.0.2.1")
    assert "No app is connected" in browser.client.get("/account").text


def test_an_app_that_does_not_say_what_it_is_was_fetched_by_nobody(fresh: World) -> None:
    browser, answer = made(fresh, bookings="-")
    fresh.server.simplefin.claim(code_of(answer.text), agent="", address="192.0.2.1")
    page = browser.client.get("/account").text
    assert "Fetched by" not in page
    assert fresh.server.grants.connected_apps(fresh.user.id)[0].grant.terms.figures_only


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("current_password", "wrong", "The current password is wrong."),
        ("later_accounts", "-", "Tick at least one account."),
        ("name", " ", "The app needs a name"),
        ("name", "a\u202eb", "The app needs a name"),
    ],
)
def test_what_is_wrong_is_said_in_the_form_and_makes_nothing(
    fresh: World, field: str, value: str, sentence: str
) -> None:
    _, answer = made(fresh, **{field: value})
    assert answer.status_code == 400
    assert sentence in answer.text
    assert '<details class="choices" open>' in answer.text
    assert fresh.server.grants.connected_apps(fresh.user.id) == []


def test_guesses_of_the_password_are_slowed_down(fresh: World) -> None:
    browser = signed_in(fresh)
    page = browser.client.get("/account").text
    for _ in range(5):
        assert browser.client.post("/account/simplefin", data=asked(page, current_password="wrong")).status_code == 400
    answer = browser.client.post("/account/simplefin", data=asked(page))
    assert answer.status_code == 429
    assert "retry-after" in answer.headers


@pytest.mark.parametrize("lasts", ["366", "", "as before"])
def test_an_access_lasts_as_long_as_can_be_chosen(fresh: World, lasts: str) -> None:
    _, answer = made(fresh, lasts=lasts)
    assert answer.status_code == 400
    assert fresh.server.grants.connected_apps(fresh.user.id) == []


def test_an_address_without_tls_is_said(make_world: Any) -> None:
    _, answer = made(make_world(public_url="http://bank.example"))
    assert "The address http://bank.example is not encrypted" in answer.text


def test_behind_tls_there_is_nothing_to_warn_of(make_world: Any) -> None:
    _, answer = made(make_world(public_url="https://bank.example"))
    assert 'class="caution"' not in answer.text
    assert base64.b64decode(token_of(answer.text)).startswith(b"https://bank.example/simplefin/claim/")


def test_in_german_too(fresh: World) -> None:
    browser = signed_in(fresh)
    german = {"accept-language": "de"}
    page = browser.client.get("/account", headers=german).text
    assert "Eine App per SimpleFIN verbinden" in page
    answer = browser.client.post("/account/simplefin", data=asked(page), headers=german)
    assert "Er gilt einmal und 24 Stunden lang." in answer.text


def test_whom_an_app_sends_here_comes_to_the_form_also_after_signing_in(fresh: World) -> None:
    browser = fresh.browser()
    sent_on = browser.client.get("/account/simplefin")
    assert sent_on.headers["location"] == "/oauth/login"
    assert "to see and manage your connected apps" in browser.client.get("/oauth/login").text
    arrived = browser.sign_in(sent_on)
    assert arrived.headers["location"] == "/account/simplefin"
    form = browser.client.get(arrived.headers["location"])
    assert (form.status_code, form.headers["location"]) == (303, "/account#simplefin")
    assert 'id="simplefin"' in browser.client.get("/account").text
