"""Links that work once: the first person of a store, invitations, new passwords; and who tries them without right."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from auth.people.links import TAKEN_NAMES_MAX
from auth.secret_text import stored_hash
from storage import users
from storage.oauth.grants import EVERYTHING
from tests.oauth.conftest import PASSWORD, fields
from tests.oauth.pages.test_account import signed_in
from tests.oauth.pages.test_second_factor import turn_on

NEW = "kettle orchard 17 lamps"
OVER = "This link does not work"


def secret_of(link: str) -> str:
    return urlsplit(link).fragment


def opened(world: Any, link: str) -> tuple[Any, Any]:
    """A browser at the page that a link opens, as the page's script sends its secret; and that page."""
    browser = world.browser()
    form = fields(browser.client.get("/join").text)
    return browser, browser.client.post("/join", data={**form, "secret": secret_of(link)})


def comes_in(world: Any, link: str, name: str = "carla", password: str = NEW) -> tuple[Any, Any]:
    """A browser in which somebody has filled that page, and the answer."""
    browser, page = opened(world, link)
    typed = {"username": name, "new_password": password, "repeated_password": password}
    return browser, browser.client.post("/join/person", data={**fields(page.text), **typed})


def deeds(world: Any, user_id: str) -> list[str]:
    return sorted({each.operation for hour in world.server.record.hours(user_id) for each in hour})


@pytest.mark.requirement("people.links")
def test_who_is_invited_chooses_name_and_password_is_signed_in_and_no_operator(fresh: Any) -> None:
    link = fresh.server.links.invite(fresh.user)
    assert urlsplit(link).path == "/join"
    browser, page = opened(fresh, link)
    assert "You are invited" in page.text
    browser, answer = comes_in(fresh, link)
    assert answer.headers["location"] == "http://127.0.0.1:8000/"
    assert "<strong>carla</strong>" in browser.client.get("/account").text
    carla = users.get_by_name(fresh.database, "carla")
    assert (carla.is_operator, carla.has_subscription, carla.home_currency) == (False, True, "EUR")
    assert deeds(fresh, carla.id) == ["becomeUser", "signIn"]
    assert "inviteUser" in deeds(fresh, fresh.user.id)
    assert signed_in(fresh, "bob"), "others sign in as before"


@pytest.mark.requirement("people.links")
def test_the_address_that_is_pasted_whole_works_like_its_secret(fresh: Any) -> None:
    link = fresh.server.links.invite()
    browser = fresh.browser()
    form = fields(browser.client.get("/join").text)
    assert "You are invited" in browser.client.post("/join", data={**form, "secret": f" {link} "}).text


@pytest.mark.requirement("people.links")
def test_looking_uses_nothing_up_and_no_page_or_store_has_the_secret_but_the_form(fresh: Any) -> None:
    link = fresh.server.links.invite()
    for _ in range(3):
        assert fresh.http.get(f"/join?{secret_of(link)}").status_code == 200
        assert "You are invited" in opened(fresh, link)[1].text
    (row,) = fresh.database.rows("SELECT * FROM oauth_links")
    assert secret_of(link) not in str(row)
    assert row["secret_hash"] == stored_hash(secret_of(link))
    assert comes_in(fresh, link)[1].status_code == 303


@pytest.mark.requirement("people.links")
def test_a_link_that_is_unknown_used_revoked_or_expired_gets_one_answer(fresh: Any) -> None:
    used, revoked, expired = (fresh.server.links.invite() for _ in range(3))
    assert comes_in(fresh, used)[1].status_code == 303
    assert fresh.server.links.revoke(stored_hash(secret_of(revoked)))
    assert not fresh.server.links.revoke(stored_hash(secret_of(revoked)))
    fresh.clock.forward(days=6, hours=23)
    assert opened(fresh, expired)[1].status_code == 200
    fresh.clock.forward(hours=1)
    answers = [
        opened(fresh, link)[1]
        for link in (used, revoked, expired, "http://127.0.0.1:8000/join#" + "x" * 43, "#", "#" + "\u00e4" * 43)
    ]
    assert {(each.status_code, OVER in each.text) for each in answers} == {(400, True)}
    assert len({each.text for each in answers}) == 1


@pytest.mark.requirement("people.links")
@pytest.mark.parametrize("action", ["person", "password"])
def test_a_form_for_a_link_that_does_not_work_changes_nothing(fresh: Any, action: str) -> None:
    browser = fresh.browser()
    form = fields(browser.client.get("/join").text)
    typed = {"secret": "x" * 43, "username": "carla", "new_password": NEW, "repeated_password": NEW}
    answer = browser.client.post(f"/join/{action}", data={**form, **typed})
    assert (answer.status_code, OVER in answer.text) == (400, True)
    assert browser.client.post(f"/join/{action}", data={**typed, "form_token": "x"}).status_code == 403
    assert {each.name for each in users.everyone(fresh.database)} == {"alice", "bob"}


@pytest.mark.requirement("people.links")
def test_a_link_of_one_kind_does_not_do_what_another_does(fresh: Any) -> None:
    invitation, password = fresh.server.links.invite(), fresh.server.links.new_password(fresh.user)
    links = fresh.server.links
    assert links.set_password(invitation, NEW, address="a") == "over"
    made = links.become_user(password, name="carla", password=NEW, home_currency="EUR", address="a")
    assert made == "over"
    assert links.find(invitation) is not None
    assert links.find(password) is not None


@pytest.mark.requirement("people.links")
def test_of_many_who_use_one_link_at_once_one_comes_in(fresh: Any) -> None:
    link = fresh.server.links.invite()

    def come(name: str) -> object:
        return fresh.server.links.become_user(link, name=name, password=NEW, home_currency="EUR", address="a")

    with ThreadPoolExecutor(8) as many:
        came = list(many.map(come, [f"person{number}" for number in range(8)]))
    assert [each for each in came if each != "over"] == [
        each for each in users.everyone(fresh.database) if each.name.startswith("person")
    ]
    assert came.count("over") == 7


@pytest.mark.requirement("people.links")
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"username": "ALICE"}, "This name is taken"),
        ({"username": "-x"}, "A name has 1 to 64"),
        ({"username": ""}, "A name has 1 to 64"),
        ({"new_password": "short", "repeated_password": "short"}, "too short"),
        ({"repeated_password": "another"}, "differ"),
    ],
)
def test_what_cannot_be_used_is_said_and_the_link_still_works(fresh: Any, typed: dict[str, str], said: str) -> None:
    link = fresh.server.links.invite()
    browser, page = opened(fresh, link)
    whole = {"username": "carla", "new_password": NEW, "repeated_password": NEW}
    answer = browser.client.post("/join/person", data={**fields(page.text), **whole, **typed})
    assert (answer.status_code, said in answer.text) == (400, True)
    assert browser.client.post("/join/person", data={**fields(answer.text), **whole}).status_code == 303


@pytest.mark.requirement("people.links")
def test_a_link_learns_of_twenty_taken_names_and_of_no_more_and_ends_with_its_offer(fresh: Any) -> None:
    link = fresh.server.shares.invite(fresh.user, None, life="life", terms=EVERYTHING, ends_at=None)

    def tries(name: str) -> object:
        return fresh.server.links.become_user(link, name=name, password=NEW, home_currency="EUR", address="a")

    assert [tries("alice") for _ in range(TAKEN_NAMES_MAX - 1)] == ["taken"] * (TAKEN_NAMES_MAX - 1)
    assert len(fresh.server.shares.given_by(fresh.user.id)) == 1
    assert tries("alice") == "taken"
    assert fresh.server.shares.given_by(fresh.user.id) == []
    assert [tries("alice"), tries("carla")] == ["over", "over"]
    assert len(users.everyone(fresh.database)) == 2


@pytest.mark.requirement("people.links")
def test_somebody_else_who_is_signed_in_stays_out_of_it(fresh: Any) -> None:
    browser = signed_in(fresh)
    form = fields(browser.client.get("/join").text)
    page = browser.client.post("/join", data={**form, "secret": secret_of(fresh.server.links.invite())})
    typed = {"username": "carla", "new_password": NEW, "repeated_password": NEW}
    assert browser.client.post("/join/person", data={**fields(page.text), **typed}).status_code == 303
    assert "<strong>carla</strong>" in browser.client.get("/account").text


@pytest.mark.requirement("people.links")
def test_the_first_person_is_operator_and_the_link_ends_once_anybody_exists(
    make_world: Callable[..., Any],
) -> None:
    world = make_world()
    for each in users.everyone(world.database):
        world.database.atomically(lambda session, gone=each: users.remove(session, gone.id))
    earlier, link = world.server.links.first(), world.server.links.first()
    assert OVER in opened(world, earlier)[1].text
    assert "Be the first here" in opened(world, link)[1].text
    assert comes_in(world, link)[1].status_code == 303
    assert users.get_by_name(world.database, "carla").is_operator
    another = world.server.links.first()
    assert OVER in opened(world, another)[1].text


@pytest.mark.requirement("people.links")
def test_the_first_link_works_for_a_day(make_world: Callable[..., Any]) -> None:
    world = make_world()
    for each in users.everyone(world.database):
        world.database.atomically(lambda session, gone=each: users.remove(session, gone.id))
    link = world.server.links.first()
    world.clock.forward(hours=24)
    assert OVER in opened(world, link)[1].text


def sets_password(world: Any, link: str, new: str = NEW) -> Any:
    browser, page = opened(world, link)
    typed = {"new_password": new, "repeated_password": new}
    return browser.client.post("/join/password", data={**fields(page.text), **typed})


@pytest.mark.requirement("people.links")
def test_a_new_password_by_a_link_signs_out_everywhere_and_is_told_at_the_next_sign_in(fresh: Any) -> None:
    before, link = signed_in(fresh), fresh.server.links.new_password(fresh.user, fresh.other)
    assert "For alice." in opened(fresh, link)[1].text
    assert "too short" in sets_password(fresh, link, "short").text
    browser, page = opened(fresh, link)
    typed = {"new_password": NEW, "repeated_password": "x"}
    assert "differ" in browser.client.post("/join/password", data={**fields(page.text), **typed}).text
    assert sets_password(fresh, link).headers["location"] == "/oauth/login"
    assert before.client.get("/account").status_code == 303
    assert OVER in opened(fresh, link)[1].text
    browser = fresh.browser()
    form = fields(browser.client.get("/oauth/login").text)
    wrong = browser.client.post("/oauth/login", data={**form, "username": "alice", "password": PASSWORD})
    assert wrong.status_code == 400
    told = browser.client.post("/oauth/login", data={**form, "username": "alice", "password": NEW})
    assert "Your password was set by a link" in told.text
    assert re.search(r'class="button primary" href="/account"', told.text)
    assert browser.client.get("/account").status_code == 200
    again = fresh.browser()
    form = fields(again.client.get("/oauth/login").text)
    assert again.client.post("/oauth/login", data={**form, "username": "alice", "password": NEW}).status_code == 303
    assert {"makePasswordLink", "setPasswordByLink"} <= set(deeds(fresh, fresh.user.id))


@pytest.mark.requirement("people.links")
def test_a_link_for_a_new_password_leaves_the_second_factor_asked(fresh: Any) -> None:
    turn_on(fresh)
    assert sets_password(fresh, fresh.server.links.new_password(fresh.user)).status_code == 303
    browser = fresh.browser()
    form = fields(browser.client.get("/oauth/login").text)
    answer = browser.client.post("/oauth/login", data={**form, "username": "alice", "password": NEW})
    assert answer.headers["location"] == "/oauth/second-step"


@pytest.mark.requirement("people.links")
def test_links_go_with_their_person_and_a_day_after_their_end_unless_somebody_has_to_be_told(fresh: Any) -> None:
    links = fresh.server.links
    links.invite(fresh.user)
    links.invite(fresh.other)
    assert not isinstance(links.set_password(links.new_password(fresh.user), NEW, address="a"), str)
    fresh.clock.forward(days=8, seconds=1)
    fresh.server.cleanup.sweep()
    assert [row["kind"] for row in fresh.database.rows("SELECT kind FROM oauth_links")] == ["password"]
    assert links.tell(fresh.user.id) is not None
    fresh.server.cleanup.sweep()
    assert fresh.database.rows("SELECT kind FROM oauth_links") == []
    links.invite(fresh.user)
    links.new_password(fresh.user)
    kept = links.invite(fresh.other)
    fresh.server.remove_user(fresh.user.id)
    (row,) = fresh.database.rows("SELECT secret_hash FROM oauth_links")
    assert row["secret_hash"] == stored_hash(secret_of(kept))


@pytest.mark.requirement("people.links")
def test_the_pages_of_links_load_one_script_of_ours_and_only_where_an_address_is_read(fresh: Any) -> None:
    page, form = fresh.browser().client.get("/join"), opened(fresh, fresh.server.links.invite())[1]
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert re.findall(r'<script src="([^"]*)"', page.text) == ["/oauth/passkeys.js"]
    assert "script-src" not in form.headers["content-security-policy"]
    for each in (page, form):
        assert each.headers["referrer-policy"] == "no-referrer"
        assert each.headers["cache-control"] == "no-store"
    again = fresh.browser().client.get("/join/person")
    assert (again.status_code, again.headers["location"]) == (303, "/join")
