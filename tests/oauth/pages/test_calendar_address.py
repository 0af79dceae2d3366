"""/account: the address of the calendar of payments is made for the password, shown once, replaced and ended."""

import re
from typing import Any

import pytest

from tests.oauth.conftest import PASSWORD, World
from tests.oauth.pages.test_account import NEW, forms, signed_in

pytestmark = pytest.mark.requirement("calendar.page")


def made(browser: Any, **fields: str) -> Any:
    """What comes of the form with the password."""
    sent = forms(browser.client.get("/account").text)["calendar"]
    return browser.client.post("/account/calendar", data={**sent, "current_password": PASSWORD, **fields})


def secret_of(page: str) -> str:
    found = re.search(
        r'id="address" type="text" value="http://[^"]+/calendar/([A-Za-z0-9_-]{43})/payments\.ics" readonly', page
    )
    assert found is not None
    return found[1]


def opened(world: World, secret: str) -> bool:
    """Whether the address opens a calendar."""
    return world.server.calendar.read(secret, address="192.0.2.1") is not None


@pytest.mark.requirement("decision 150")
@pytest.mark.parametrize(("box", "is_open"), [({}, True), ({"end_apps": "on"}, False)])
def test_a_new_password_ends_the_address_where_that_is_ticked(fresh: World, box: dict[str, str], is_open: bool) -> None:
    browser = signed_in(fresh)
    secret = secret_of(made(browser).text)
    form = forms(browser.client.get("/account").text)["password"]
    new = {"current_password": PASSWORD, "new_password": NEW, "repeated_password": NEW}
    browser.client.post("/account/password", data={**form, **new, **box})
    assert opened(fresh, secret) is is_open


def test_an_address_is_shown_once_replaced_by_a_new_one_and_ended(fresh: World) -> None:
    browser = signed_in(fresh)
    assert "There is an address since" not in browser.client.get("/account").text
    answer = made(browser)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["cache-control"]
    assert "It is shown now and never again." in answer.text
    first = secret_of(answer.text)
    page = browser.client.get("/account").text
    assert first not in page
    assert re.search(r'There is an address since <time datetime="[^"]+">20 November 2026', page)
    second = secret_of(made(browser).text)
    assert [opened(fresh, each) for each in (first, second)] == [False, True]
    ended = browser.client.post("/account/calendar/end", data=forms(page)["end"])
    assert ended.headers["location"].endswith("/account?notice=calendar_ended")
    assert not opened(fresh, second)
    page = browser.client.get("/account?notice=calendar_ended").text
    assert "The address of the calendar has ended." in page
    assert "There is an address since" not in page


def test_without_the_password_none_is_made_and_guesses_are_slowed_down(fresh: World) -> None:
    browser = signed_in(fresh)
    for _ in range(5):
        answer = made(browser, current_password="wrong")
        assert answer.status_code == 400
        assert "The current password is wrong." in answer.text
    answer = made(browser)
    assert answer.status_code == 429
    assert "retry-after" in answer.headers
    assert fresh.server.calendar.made_at(fresh.user.id) is None


def test_a_form_of_somebody_else_makes_and_ends_nothing(fresh: World) -> None:
    browser = signed_in(fresh)
    secret = secret_of(made(browser).text)
    for path in ("/account/calendar", "/account/calendar/end"):
        sent = {"form_token": "A" * 43, "current_password": PASSWORD}
        assert browser.client.post(path, data=sent).status_code == 403
    assert opened(fresh, secret)


def test_an_address_without_tls_is_said_and_german_is_spoken(make_world: Any) -> None:
    browser = signed_in(make_world(public_url="http://bank.example"))
    assert "on the way it can be read" in made(browser).text
    german = browser.client.get("/account", headers={"accept-language": "de"}).text
    assert "Zahlungen in Ihrem Kalender" in german
    assert "Es gibt eine Adresse seit" in german
    browser = signed_in(make_world(public_url="https://bank.example"))
    assert 'class="caution"' not in made(browser).text
