"""A new password ends what the old one has opened, also what it is just opening."""

from collections.abc import Callable
from typing import Any

import pytest

from storage import users
from tests.oauth.conftest import PASSWORD, fields
from tests.oauth.pages.test_account import NEW, forms, signed_in
from tests.oauth.pages.test_links import OVER, opened, sets_password
from tests.oauth.pages.test_second_factor import code_of, turn_on

pytestmark = pytest.mark.requirement("oauth.account")


def by_link(world: Any) -> None:
    assert sets_password(world, world.server.links.new_password(world.user), NEW).status_code == 303


def by_command(world: Any) -> None:
    user = users.get_by_name(world.database, "alice")
    assert world.server.password_change.set(user, world.server.passwords.hash(NEW), "changePassword")


def by_form(world: Any) -> None:
    browser = signed_in(world)
    form = forms(browser.client.get("/account").text)["password"]
    typed = {"current_password": PASSWORD, "new_password": NEW, "repeated_password": NEW}
    assert browser.client.post("/account/password", data={**form, **typed}).status_code == 303


WAYS = pytest.mark.parametrize("change", [by_link, by_command])


@WAYS
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("has_second_step", [False, True])
def test_a_sign_in_under_way_does_not_outlive_the_password(
    fresh: Any, change: Callable[[Any], None], when: str, has_second_step: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = fresh.server.sessions
    real = sessions._in_place_of

    def slow(*given: Any, **named: Any) -> Any:
        monkeypatch.undo()
        if when == "after":
            made = real(*given, **named)
        change(fresh)
        return made if when == "after" else real(*given, **named)

    seed = turn_on(fresh)[0] if has_second_step else ""
    browser = fresh.browser()
    path, typed = "/oauth/login", {"username": "alice", "password": PASSWORD}
    form = fields(browser.client.get(path).text)
    if has_second_step:
        page = browser.client.post(path, data={**form, **typed}).headers["location"]
        path, typed = "/oauth/second-step", {"code": code_of(fresh, seed)}
        form = fields(browser.client.get(page).text)
    monkeypatch.setattr(sessions, "_in_place_of", slow)
    assert browser.client.post(path, data={**form, **typed}).status_code == 400
    assert sessions.of_user(fresh.user.id) == []
    assert browser.client.get("/account").status_code == 303


def test_a_change_under_way_with_the_old_password_changes_nothing_any_more(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = signed_in(fresh)
    form = forms(browser.client.get("/account").text)["password"]
    real = fresh.server.password_change.set

    def late(*given: Any, **named: Any) -> bool:
        monkeypatch.undo()
        by_link(fresh)
        return bool(real(*given, **named))

    monkeypatch.setattr(fresh.server.password_change, "set", late)
    typed = {
        "current_password": PASSWORD,
        "new_password": "of the thief " * 2,
        "repeated_password": "of the thief " * 2,
    }
    assert browser.client.post("/account/password", data={**form, **typed}).status_code == 400
    assert fresh.server.sessions.of_user(fresh.user.id) == []
    present = users.get_by_name(fresh.database, "alice").password_hash
    assert fresh.server.passwords.is_right(NEW, present)


def test_a_hash_is_renewed_for_the_password_that_was_right_alone(fresh: Any) -> None:
    before = users.get_by_name(fresh.database, "alice")
    by_command(fresh)
    assert not users.renew_password_hash(fresh.database, before, fresh.server.passwords.hash(PASSWORD))
    present = users.get_by_name(fresh.database, "alice").password_hash
    assert fresh.server.passwords.is_right(NEW, present)


@pytest.mark.parametrize("change", [by_link, by_command, by_form])
def test_other_links_of_the_person_end_with_the_password_and_those_of_others_do_not(
    fresh: Any, change: Callable[[Any], None]
) -> None:
    links = fresh.server.links
    old = [links.new_password(fresh.user), links.sign_in_link(fresh.user)]
    others = [links.new_password(fresh.other), links.invite(fresh.user)]
    change(fresh)
    assert [OVER in opened(fresh, each)[1].text for each in (*old, *others)] == [True, True, False, False]
