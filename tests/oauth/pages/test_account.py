"""/account: what is connected, taking it back, a new password, signing out."""

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from handlers.oauth.site import Site

PASSWORD = "umbrella-kettle-violin"
NEW = "kettle orchard 17 lamps"


def forms(html: str) -> dict[str, dict[str, str]]:
    """The hidden fields of every form, by the last part of its address."""
    found = {}
    for form in html.split("<form")[1:]:
        action = re.search(r'action="([^"]*)"', form)
        if action:
            inputs = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form.partition("</form>")[0])
            found[action[1].rpartition("/")[2]] = dict(inputs)
    return found


def signed_in(world: Any, name: str = "alice", agent: str = "") -> Any:
    browser = world.browser(**{"user-agent": agent})
    page = browser.client.get("/oauth/login")
    form = forms(page.text)["login"]
    answer = browser.client.post("/oauth/login", data={**form, "username": name, "password": PASSWORD})
    assert answer.headers["location"] == "/account"
    return browser


@pytest.mark.requirement("oauth.account")
def test_each_connection_is_listed_and_revoked_by_itself(fresh: Any) -> None:
    client_id = fresh.register(client_name="Budget <1>")
    tokens = [fresh.tokens(client_id) for _ in range(2)]
    others = fresh.tokens(client_id, name="bob")
    browser = signed_in(fresh)
    page = browser.client.get("/account").text
    assert page.count("Budget &lt;1&gt;</strong>") == 2
    assert "id ends in" not in page
    answer = browser.client.post("/account/revoke", data=forms(page)["revoke"])
    assert answer.headers["location"] == "/account?notice=revoked"
    assert "Access revoked" in browser.client.get("/account?notice=revoked").text
    assert sorted(fresh.api(each["access_token"]).status_code for each in tokens) == [200, 401]
    page = browser.client.get("/account").text
    assert page.count("Budget &lt;1&gt;</strong>") == 1
    browser.client.post("/account/revoke", data=forms(page)["revoke"])
    assert "Budget" not in browser.client.get("/account").text
    assert fresh.api(others["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.account")
@pytest.mark.parametrize("grant", ["", "g0", "\x00"])
def test_revoking_what_is_no_connection_ends_nothing(fresh: Any, grant: str) -> None:
    tokens = fresh.tokens()
    browser = signed_in(fresh)
    form = forms(browser.client.get("/account").text)["revoke"]
    answer = browser.client.post("/account/revoke", data={**form, "grant": grant})
    assert answer.headers["location"] == "/account?notice=revoked"
    assert fresh.api(tokens["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.account")
def test_an_app_that_never_fetched_its_tokens_is_not_connected(fresh: Any) -> None:
    fresh.browser().code(fresh.register())
    assert "No app is connected" in signed_in(fresh).client.get("/account").text


@pytest.mark.requirement("oauth.account")
def test_tokens_of_the_command_line_are_listed_and_revocable(fresh: Any) -> None:
    from datetime import timedelta

    token = fresh.server.issue_token(fresh.user.id, frozenset({"read:accounts"}), timedelta(hours=2))
    assert fresh.api(token).status_code == 200
    (entry,) = fresh.server.grants.connected_apps(fresh.user.id)
    assert entry.client_name == "bankdata token"
    browser = signed_in(fresh)
    browser.client.post("/account/revoke", data=forms(browser.client.get("/account").text)["revoke"])
    assert fresh.api(token).status_code == 401


@pytest.mark.requirement("oauth.account")
def test_a_new_password_ends_other_sessions_and_keeps_apps(fresh: Any) -> None:
    tokens = fresh.tokens()
    browser, other = signed_in(fresh), signed_in(fresh)
    before = browser.client.cookies["bds_session"]
    form = forms(browser.client.get("/account").text)["password"]
    answer = browser.client.post(
        "/account/password",
        data={**form, "current_password": PASSWORD, "new_password": NEW, "repeated_password": NEW},
    )
    assert answer.headers["location"] == "/account?notice=password_changed"
    assert browser.client.cookies["bds_session"] != before
    assert browser.client.get("/account").status_code == 200
    assert other.client.get("/account").status_code == 303
    assert fresh.api(tokens["access_token"]).status_code == 200
    login = forms(other.client.get("/oauth/login").text)["login"]
    for password, status in ((PASSWORD, 400), (NEW, 303)):
        data = {**login, "username": "alice", "password": password}
        assert other.client.post("/oauth/login", data=data).status_code == status


@pytest.mark.requirement("oauth.account")
@pytest.mark.parametrize(
    ("form", "page"),
    [
        ("/account/password", "/account"),
        ("/account/narrow", "/account"),
        ("/account/calendar", "/account"),
        ("/account/sign-out", "/account"),
        ("/account/second-factor/confirm", "/account/second-factor"),
        ("/account/second-factor/off", "/account/second-factor"),
    ],
)
def test_a_browser_that_looks_again_at_the_address_of_a_form_is_sent_to_its_page(
    fresh: Any, form: str, page: str
) -> None:
    answer = signed_in(fresh).client.get(form)
    assert (answer.status_code, answer.headers["location"]) == (303, page)


@pytest.mark.requirement("oauth.account")
@pytest.mark.parametrize("has_new_cookie", [False, True])
def test_who_presses_twice_is_not_told_that_the_password_is_as_before(fresh: Any, has_new_cookie: bool) -> None:
    browser = signed_in(fresh)
    cookie = browser.client.cookies["bds_session"]
    form = forms(browser.client.get("/account").text)["password"]
    data = {**form, "current_password": PASSWORD, "new_password": NEW, "repeated_password": NEW}
    assert browser.client.post("/account/password", data=data).status_code == 303
    if not has_new_cookie:  # browsers drop the answer to the first press, with the cookie in it
        browser.client.cookies.clear()
        browser.client.cookies.set("bds_session", cookie)
    again = browser.client.post("/account/password", data=data)
    assert again.status_code == (403 if has_new_cookie else 400)
    assert "if you pressed twice, the first press may have counted" in again.text


@pytest.mark.requirement("oauth.account")
@pytest.mark.parametrize(
    ("current", "new", "repeated", "text"),
    [
        ("wrong password", NEW, NEW, "The current password is wrong"),
        (PASSWORD, NEW, NEW + "x", "The two new passwords differ"),
        (PASSWORD, "short", "short", "too short"),
        (PASSWORD, "password123456", "password123456", "too common"),
        (PASSWORD, "", "", "too short"),
        ("", NEW, NEW, "The current password is wrong"),
    ],
)
def test_what_is_wrong_with_a_new_password_is_said(
    fresh: Any, current: str, new: str, repeated: str, text: str
) -> None:
    browser = signed_in(fresh)
    form = forms(browser.client.get("/account").text)["password"]
    data = {**form, "current_password": current, "new_password": new, "repeated_password": repeated}
    answer = browser.client.post("/account/password", data=data)
    assert answer.status_code == 400
    assert text in answer.text


@pytest.mark.requirement("oauth.throttle")
def test_guessing_the_current_password_gets_slow_too(fresh: Any) -> None:
    browser = signed_in(fresh)
    form = forms(browser.client.get("/account").text)["password"]
    data = {**form, "current_password": "wrong", "new_password": NEW, "repeated_password": NEW}
    for _ in range(5):
        assert browser.client.post("/account/password", data=data).status_code == 400
    answer = browser.client.post("/account/password", data={**data, "current_password": PASSWORD})
    assert answer.status_code == 429
    assert "retry-after" in answer.headers


@pytest.mark.requirement("oauth.account")
def test_sign_out_ends_the_session_on_the_server(fresh: Any) -> None:
    browser = signed_in(fresh)
    secret = browser.client.cookies["bds_session"]
    form = forms(browser.client.get("/account").text)["sign-out"]
    assert browser.client.post("/account/sign-out", data=form).headers["location"] == "/oauth/login"
    answer = fresh.http.get("/account", headers={"Cookie": f"bds_session={secret}"})
    assert answer.status_code == 303


@pytest.mark.requirement("oauth.csrf")
@pytest.mark.parametrize("name", ["revoke", "password", "sign-out"])
def test_account_forms_need_their_own_token(fresh: Any, name: str) -> None:
    browser = signed_in(fresh)
    page = forms(browser.client.get("/account").text)
    wrong = page["password" if name != "password" else "sign-out"]
    for data in ({"form_token": ""}, wrong):
        assert browser.client.post(f"/account/{name}", data=data).status_code == 403
    assert browser.client.get("/account").status_code == 200


@pytest.mark.requirement("oauth.clients")
def test_the_operator_adds_lists_and_removes_clients(fresh: Any) -> None:
    client = fresh.server.clients.add("Ours", ("https://ours.example/cb",))
    assert [each.name for each in fresh.server.clients.all()] == ["Ours"]
    code, verifier = fresh.browser().code(client.id, redirect_uri="https://ours.example/cb")
    tokens = fresh.redeem(code, verifier, client.id, redirect_uri="https://ours.example/cb").json()
    assert fresh.api(tokens["access_token"]).status_code == 200
    fresh.clock.forward(days=2)
    fresh.server.cleanup.sweep()
    assert fresh.server.clients.find(client.id) is not None
    assert fresh.server.clients.remove(client.id) == 1
    fresh.server.record.write()
    record = fresh.server.record.overview(fresh.user.id, within=timedelta(days=1))
    assert [(each.client_id, each.calls) for each in record if each.operation == "revokeGrant"] == [(client.id, 1)]
    assert fresh.server.record.overview(fresh.other.id, within=timedelta(days=1)) == []
    assert fresh.refresh(tokens["refresh_token"], client.id).json()["error"] == "invalid_client"


@pytest.mark.requirement("oauth.grants")
def test_the_operator_lists_and_revokes_grants(fresh: Any) -> None:
    tokens = fresh.tokens()
    (entry,) = fresh.server.grants.connected_apps()
    assert (entry.user_name, entry.client_name) == ("alice", "Budget")
    assert fresh.server.grants.revoke(entry.grant.id, because="revoked by the operator")
    assert not fresh.server.grants.revoke(entry.grant.id, because="revoked by the operator")
    assert not fresh.server.grants.revoke("nothing", because="revoked by the operator")
    assert fresh.api(tokens["access_token"]).status_code == 401
    assert fresh.server.grants.connected_apps() == []


@pytest.mark.requirement("oauth.consent")
def test_not_you_lets_somebody_else_answer_the_same_request(fresh: Any) -> None:
    client_id = fresh.register()
    browser = fresh.browser()
    page = browser.sign_in(browser.authorize(client_id))
    before = browser.client.cookies["bds_session"]
    html = browser.client.get(page.headers["location"]).text
    login = browser.client.post("/account/sign-out", data=forms(html)["sign-out"])
    assert "/oauth/login?request=" in login.headers["location"]
    assert browser.client.cookies["bds_session"] != before
    answer = browser.consent(browser.sign_in(login, "bob"))
    assert "code=" in answer.headers["location"]
    assert [entry.user_name for entry in fresh.server.grants.connected_apps()] == []
    assert fresh.http.get("/account", headers={"Cookie": f"bds_session={before}"}).status_code == 303


@pytest.mark.requirement("oauth.clients")
def test_the_operator_s_clients_follow_the_same_rules(fresh: Any) -> None:
    from auth.errors import InvalidRedirectUri, InvalidRequest

    with pytest.raises(InvalidRequest):
        fresh.server.clients.add(" ", ("https://ours.example/cb",))
    with pytest.raises(InvalidRedirectUri):
        fresh.server.clients.add("Ours", ("http://ours.example/cb",))


@pytest.mark.requirement("oauth.account")
def test_a_password_that_the_operator_set_signs_all_browsers_out(fresh: Any) -> None:
    browser = signed_in(fresh)
    fresh.server.sessions.end_all(fresh.user.id)
    assert browser.client.get("/account").status_code == 303


@pytest.mark.requirement("oauth.account")
def test_two_apps_of_one_name_are_told_apart_and_one_alone_is_not(fresh: Any) -> None:
    twins = [fresh.register(client_name="Budget") for _ in range(2)]
    single = fresh.register(client_name="Savings")
    for client_id in (*twins, single):
        fresh.tokens(client_id)
    page = signed_in(fresh).client.get("/account").text
    assert sorted(re.findall(r"id ends in ([\w-]+)\)</span>", page)) == sorted(client_id[-6:] for client_id in twins)
    for client_id in twins:
        assert f"Revoke access of “Budget (id ends in {client_id[-6:]})”, connected" in page


@pytest.mark.requirement("oauth.account")
@pytest.mark.parametrize(("language", "day"), [("en", "22 November 2026"), ("de", "22. November 2026")])
def test_days_are_those_of_the_people_here_in_their_own_writing(fresh: Any, language: str, day: str) -> None:
    late = datetime(2026, 11, 21, 23, 30, tzinfo=UTC).replace(tzinfo=None)
    fresh.clock.forward(seconds=(late - fresh.clock()).total_seconds())
    fresh.tokens()
    page = signed_in(fresh).client.get("/account", headers={"accept-language": language}).text
    # Half past midnight in Berlin, where the clock of the store still has the day before
    assert f">{day}</time>" in page
    assert f">{day}, 00:30</time>" in page


@pytest.mark.requirement("oauth.account")
def test_who_has_no_bank_data_yet_is_told_what_to_do_next(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "bankdata import FILE --user bob" in signed_in(fresh, "bob").client.get("/account").text
    account = SimpleNamespace(id="acc_1", name="Giro", bank_name="Musterbank", iban=None)
    monkeypatch.setattr(Site, "accounts_of", lambda _site, _user_id: [account])
    assert "bankdata import" not in signed_in(fresh).client.get("/account").text


@pytest.mark.requirement("oauth.pages")
@pytest.mark.parametrize(("length", "shown"), [(50, "x" * 50), (51, "x" * 49 + "…")])
def test_the_name_that_a_stranger_chose_has_two_lines_at_most(fresh: Any, length: int, shown: str) -> None:
    browser = fresh.browser()
    page = browser.client.get(
        browser.sign_in(browser.authorize(fresh.register(client_name="x" * length))).headers["location"]
    )
    assert f"<h1>Allow “{shown}” to see your bank data?</h1>" in page.text
