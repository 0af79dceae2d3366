"""/operator: who may see it, what it shows of people, and what it does to them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from storage import users
from storage.users import LastOperator
from tests.oauth.conftest import PASSWORD, fields
from tests.oauth.pages.test_account import forms, signed_in
from tests.oauth.pages.test_links import deeds, secret_of


@pytest.fixture
def home(make_world: Callable[..., Any]) -> Any:
    """A world in which alice is the operator."""
    world = make_world()
    world.server.operators.mark(world.user, is_operator=True)
    return world


def sent(browser: Any, action: str, **typed: str) -> Any:
    form = forms(browser.client.get("/operator").text)["invite"]
    return browser.client.post(f"/operator/{action}", data={**form, **typed})


def person(world: Any, name: str) -> users.User:
    return users.get_by_name(world.database, name)


@pytest.mark.requirement("people.operator")
def test_who_is_no_operator_finds_no_page_and_changes_nothing(home: Any) -> None:
    bob, alice = signed_in(home, "bob"), signed_in(home)
    assert bob.client.get("/operator").status_code == 404
    assert "/operator" not in bob.client.get("/account").text
    assert "/operator" in alice.client.get("/account").text
    form = {"form_token": forms(bob.client.get("/account").text)["sign-out"]["form_token"]}
    of_alice = forms(alice.client.get("/operator").text)["invite"]
    for action in ("invite", "uninvite", "pause", "unpause", "password", "mark", "remove"):
        typed = {"person": home.user.id, "name": "alice", "current_password": PASSWORD}
        assert bob.client.post(f"/operator/{action}", data={**form, **typed}).status_code == 403
        assert bob.client.post(f"/operator/{action}", data={**of_alice, **typed}).status_code == 403
        token = home.server.sessions.form_token(
            home.server.sessions.resume(bob.client.cookies["bds_session"]), "operator"
        )
        assert bob.client.post(f"/operator/{action}", data={**typed, "form_token": token}).status_code == 404
    assert not person(home, "alice").paused_at
    assert home.http.get("/operator").headers["location"] == "/oauth/login"


@pytest.mark.requirement("people.operator")
def test_no_token_opens_the_page(home: Any) -> None:
    token = home.server.issue_token(home.user.id, frozenset({"read:accounts"}), timedelta(hours=1))
    assert home.api(token, "/operator").status_code == 303


@pytest.mark.requirement("people.operator")
def test_the_page_lists_people_and_how_the_server_does(home: Any) -> None:
    signed_in(home, "bob")
    page = signed_in(home).client.get("/operator").text
    cards = page.partition('id="people"')[2].partition("</section>")[0].split("<li>")[1:]
    assert ["alice" in card for card in cards] == [True, False]
    assert "(you)" in cards[0]
    assert "(operator)" in cards[0]
    assert "(operator)" not in cards[1]
    assert "Last sign-in <time" in cards[1]
    assert "no second factor" in cards[1]
    assert "12 MB" in page
    assert "none in the data folder" in page
    assert "BANKDATA_PUBLIC_URL" in page


@pytest.mark.requirement("people.operator")
def test_secrets_of_settings_are_masked(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKDATA_KEYS_SECRET", "a-secret-of-the-operator-32-long-x")
    monkeypatch.setenv("BANKDATA_CACHE_MB", "64")
    page = signed_in(home).client.get("/operator").text
    assert "a-secret-of-the-operator" not in page
    assert "BANKDATA_KEYS_SECRET</span> <small>••• (set)" in page
    assert "BANKDATA_CACHE_MB</span> <small>64 (set)" in page
    assert "BANKDATA_LOG_LEVEL</span> <small>info (default)" in page


@pytest.mark.requirement("people.operator")
def test_an_invitation_takes_the_operator_s_password_and_can_be_revoked(home: Any) -> None:
    alice = signed_in(home)
    assert "The current password is wrong" in sent(alice, "invite", current_password="x").text
    page = sent(alice, "invite", current_password=PASSWORD)
    link = page.text.partition("<code>")[2].partition("</code>")[0]
    assert home.server.links.find(link).kind == "invitation"
    assert secret_of(link) not in alice.client.get("/operator").text
    (shown,) = home.server.links.invitations()
    assert "Made " in alice.client.get("/operator").text
    answer = sent(alice, "uninvite", invitation=shown.secret_hash)
    assert answer.headers["location"] == "/operator?notice=invitation_revoked"
    assert home.server.links.find(link) is None
    assert "revokeInvitation" in deeds(home, home.user.id)
    assert "The invitation is revoked" in alice.client.get("/operator?notice=invitation_revoked").text


@pytest.mark.requirement("people.operator")
def test_a_paused_person_gets_nowhere_and_goes_on_later(home: Any) -> None:
    tokens = home.tokens(name="bob")
    alice, bob = signed_in(home), signed_in(home, "bob")
    address = home.server.calendar.make(home.other.id)
    secret = address.split("/")[-2]
    assert sent(alice, "pause", person=home.other.id).headers["location"] == "/operator?notice=person_paused"
    assert bob.client.get("/account").status_code == 303
    assert home.api(tokens["access_token"]).status_code == 403
    assert home.server.calendar.read(secret, address="a") is None
    browser = home.browser()
    form = fields(browser.client.get("/oauth/login").text)
    wrong = browser.client.post("/oauth/login", data={**form, "username": "bob", "password": "x"}).text
    right = browser.client.post("/oauth/login", data={**form, "username": "bob", "password": PASSWORD})
    assert "has paused this account" not in wrong
    assert (right.status_code, "has paused this account" in right.text) == (400, True)
    assert sent(alice, "unpause", person=home.other.id).status_code == 303
    assert home.api(tokens["access_token"]).status_code == 200
    assert home.server.calendar.read(secret, address="a") is not None
    assert signed_in(home, "bob")
    assert {"pauseUser", "unpauseUser"} <= set(deeds(home, home.other.id)) & set(deeds(home, home.user.id))


@pytest.mark.requirement("people.operator")
def test_a_person_who_is_paused_between_the_two_steps_gets_no_further(home: Any) -> None:
    from tests.oauth.pages.test_second_factor import code_of, half_signed_in, turn_on

    seed, _codes, _browser = turn_on(home, "bob")
    browser, form = half_signed_in(home, "bob")
    home.database.execute("UPDATE users SET paused_at = $1 WHERE id = $2", home.clock(), home.other.id)
    home.clock.forward(seconds=30)
    answer = browser.client.post("/oauth/second-step", data={**form, "code": code_of(home, seed)})
    assert answer.status_code == 400


@pytest.mark.requirement("people.operator")
def test_a_password_link_needs_the_operator_s_password_and_is_shown_once(home: Any) -> None:
    alice = signed_in(home)
    refused = sent(alice, "password", person=home.other.id, current_password="x")
    assert (refused.status_code, "<code>" in refused.text) == (400, False)
    page = sent(alice, "password", person=home.other.id, current_password=PASSWORD).text
    link = page.partition("<code>")[2].partition("</code>")[0]
    assert home.server.links.person_of(home.server.links.find(link)).name == "bob"
    assert "makePasswordLink" in deeds(home, home.other.id)


@pytest.mark.requirement("people.operator")
def test_an_operator_makes_another_and_the_last_one_stays(home: Any) -> None:
    alice = signed_in(home)
    for action in ("pause", "mark", "remove"):
        refused = sent(alice, action, person=home.user.id, name="alice", current_password=PASSWORD)
        assert (refused.status_code, "The last operator" in refused.text) == (400, True)
    assert sent(alice, "mark", person=home.other.id, is_operator="on", current_password="x").status_code == 400
    assert sent(alice, "mark", person=home.other.id, is_operator="on", current_password=PASSWORD).status_code == 303
    assert person(home, "bob").is_operator
    answer = sent(alice, "mark", person=home.user.id, is_operator="off", current_password=PASSWORD)
    assert answer.headers["location"] == "/account"
    assert alice.client.get("/operator").status_code == 404
    assert {"giveOperator"} <= set(deeds(home, home.other.id))
    with pytest.raises(LastOperator):
        home.server.operators.pause(person(home, "bob"))


@pytest.mark.requirement("people.operator")
def test_of_two_operators_who_are_taken_away_at_once_one_stays(home: Any) -> None:
    home.server.operators.mark(home.other, is_operator=True)

    def take(user: users.User) -> bool:
        try:
            home.server.operators.mark(user, is_operator=False)
        except LastOperator:
            return False
        return True

    with ThreadPoolExecutor(2) as both:
        assert sorted(both.map(take, (home.user, home.other))) == [False, True]
    assert sum(each.is_operator for each in users.everyone(home.database)) == 1


@pytest.mark.requirement("people.operator")
def test_a_person_is_removed_only_by_name_and_with_everything(home: Any) -> None:
    tokens = home.tokens(name="bob")
    alice = signed_in(home)
    typed = {"person": home.other.id, "current_password": PASSWORD}
    assert "This is not the name" in sent(alice, "remove", **typed, name="alice").text
    assert sent(alice, "remove", **{**typed, "current_password": "x"}, name="bob").status_code == 400
    answer = sent(alice, "remove", **typed, name="Bob")
    assert answer.headers["location"] == "/operator?notice=person_removed"
    assert [each.name for each in users.everyone(home.database)] == ["alice"]
    assert home.api(tokens["access_token"]).status_code == 401
    assert "removeUser" in deeds(home, home.user.id)
    gone = sent(alice, "pause", person=home.other.id)
    assert gone.status_code == 400


@pytest.mark.requirement("people.operator")
def test_an_operator_who_is_not_the_last_may_go_themselves(home: Any) -> None:
    home.server.operators.mark(home.other, is_operator=True)
    alice = signed_in(home)
    answer = sent(alice, "remove", person=home.user.id, name="alice", current_password=PASSWORD)
    assert answer.headers["location"] == "/account"
    assert [each.name for each in users.everyone(home.database)] == ["bob"]
