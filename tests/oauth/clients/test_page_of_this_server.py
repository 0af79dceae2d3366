"""The page of this server as a client: no consent, no refresh token, and a grant that ends with the browser session."""

import re
import secrets
from datetime import timedelta
from typing import Any

import pytest

from auth.apps.clients import PAGE
from auth.scopes import TICKED_SCOPES
from storage.oauth.pending import AccessRequest
from tests.oauth.conftest import PASSWORD, REDIRECT, challenge_of, fields, parameters
from tests.oauth.pages.test_account import forms, signed_in

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

SIGNED_IN = "http://127.0.0.1:8000/signed-in"
WRITING = "write:imports write:rules write:accounts read:annotations write:annotations"
EVERYTHING = f"read:accounts read:transactions read:cashflow {WRITING}"


@pytest.fixture
def served(fresh: Any) -> Any:
    fresh.server.clients.ensure_page()
    return fresh


def asked(browser: Any, **more: str) -> Any:
    return browser.authorize(PAGE, **{"redirect_uri": SIGNED_IN, "scope": EVERYTHING, "prompt": "none", **more})


def page_tokens(world: Any, browser: Any) -> dict[str, Any]:
    verifier = secrets.token_urlsafe(48)
    answer = asked(browser, code_challenge=challenge_of(verifier))
    code = parameters(answer.headers["location"])["code"]
    redeemed = world.redeem(code, verifier, PAGE, redirect_uri=SIGNED_IN)
    assert redeemed.status_code == 200, redeemed.text
    return dict(redeemed.json())


@pytest.mark.requirement("oauth.page")
def test_without_a_session_a_silent_request_is_told_to_sign_in(served: Any) -> None:
    answer = asked(served.browser())
    assert answer.headers["location"].startswith(SIGNED_IN + "?")
    sent = parameters(answer.headers["location"])
    assert (sent["error"], sent["state"], sent["iss"]) == ("login_required", "st", "http://127.0.0.1:8000")
    assert "set-cookie" not in answer.headers


@pytest.mark.requirement("oauth.page")
def test_with_a_session_it_gets_one_access_token_and_no_refresh_token(served: Any) -> None:
    tokens = page_tokens(served, signed_in(served))
    assert sorted(tokens) == ["access_token", "expires_in", "scope", "token_type"]
    assert (tokens["expires_in"], tokens["scope"]) == (3600, EVERYTHING)
    assert served.api(tokens["access_token"]).json()["scopes"] == sorted(EVERYTHING.split())


@pytest.mark.requirement("oauth.page")
def test_no_silent_request_waits_for_an_answer(served: Any) -> None:
    browser = signed_in(served)
    for _ in range(25):  # 20 open sign-ins are the limit of a browser
        assert "code" in parameters(asked(browser).headers["location"])
    assert served.database.rows("SELECT count(*) AS number FROM oauth_requests") == [{"number": 0}]


@pytest.mark.requirement("oauth.page")
def test_other_clients_are_told_that_consent_is_needed(served: Any) -> None:
    browser, client_id = signed_in(served), served.register()
    sent = parameters(browser.authorize(client_id, prompt="none").headers["location"])
    assert sent["error"] == "consent_required"
    assert served.database.rows("SELECT count(*) AS number FROM oauth_requests") == [{"number": 0}]


@pytest.mark.requirement("oauth.no_bounce")
def test_a_stranger_cannot_bounce_the_signed_out_silently_to_a_web_site(served: Any) -> None:
    answer = served.browser().authorize(served.register(), prompt="none")
    assert answer.status_code == 400
    assert "login_required" in answer.text


@pytest.mark.requirement("oauth.page")
@pytest.mark.parametrize("prompt", ["none login", "consent none"])
def test_none_stands_alone_in_prompt(prompt: str, served: Any) -> None:
    sent = parameters(asked(signed_in(served), prompt=prompt).headers["location"])
    assert sent["error"] == "invalid_request"


@pytest.mark.requirement("oauth.page")
@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9999/signed-in", "http://localhost:8000/signed-in", SIGNED_IN + "/", SIGNED_IN + "?"]
)
def test_no_other_address_gets_a_code(address: str, served: Any) -> None:
    answer = asked(signed_in(served), redirect_uri=address)
    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.requirement("oauth.page")
def test_signing_in_on_the_way_leads_back_without_a_consent_page(served: Any) -> None:
    browser, verifier = served.browser(), secrets.token_urlsafe(48)
    page = asked(browser, prompt="-", code_challenge=challenge_of(verifier))
    login = browser.client.get(page.headers["location"]).text
    assert "to see your accounts" in login
    assert "You decide on the next page" not in login
    after = browser.client.post("/oauth/login", data={**fields(login), "username": "alice", "password": PASSWORD})
    back = browser.client.get(after.headers["location"])
    assert back.status_code == 303
    sent = parameters(back.headers["location"])
    assert sent["state"] == "st"
    answer = served.redeem(sent["code"], verifier, PAGE, redirect_uri=SIGNED_IN)
    assert answer.json()["scope"] == EVERYTHING


@pytest.mark.requirement("oauth.page")
def test_an_omitted_scope_only_reads(served: Any) -> None:
    browser, verifier = signed_in(served), secrets.token_urlsafe(48)
    answer = asked(browser, scope="-", code_challenge=challenge_of(verifier))
    code = parameters(answer.headers["location"])["code"]
    tokens = served.redeem(code, verifier, PAGE, redirect_uri=SIGNED_IN).json()
    assert tokens["scope"] == "read:accounts read:transactions read:cashflow"


@pytest.mark.requirement("oauth.page")
def test_sign_out_by_form_ends_its_tokens_with_the_next_request(served: Any) -> None:
    browser, other = signed_in(served), signed_in(served)
    token, others = (page_tokens(served, each)["access_token"] for each in (browser, other))
    assert served.api(token).status_code == 200
    browser.client.post("/account/sign-out", data=forms(browser.client.get("/account").text)["sign-out"])
    assert served.api(token).status_code == 401
    assert served.api(others).status_code == 200


@pytest.mark.requirement("oauth.page")
def test_a_new_password_ends_its_tokens(served: Any) -> None:
    browser, other = signed_in(served), signed_in(served)
    tokens = [page_tokens(served, each)["access_token"] for each in (browser, other)]
    assert [served.api(token).status_code for token in tokens] == [200, 200]
    form = forms(browser.client.get("/account").text)["password"]
    new = {"current_password": PASSWORD, "new_password": "kettle orchard 17", "repeated_password": "kettle orchard 17"}
    answer = browser.client.post("/account/password", data={**form, **new})
    assert answer.headers["location"] == "/account?notice=password_changed"
    assert [served.api(token).status_code for token in tokens] == [401, 401]
    assert served.api(page_tokens(served, browser)["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.page")
def test_signing_out_for_another_on_the_consent_page_ends_its_tokens(served: Any) -> None:
    browser = signed_in(served)
    token = page_tokens(served, browser)["access_token"]
    assert served.api(token).status_code == 200
    consent = browser.client.get(browser.authorize(served.register()).headers["location"]).text
    answer = browser.client.post("/account/sign-out", data=forms(consent)["sign-out"])
    assert "/oauth/login?request=" in answer.headers["location"]
    assert served.api(token).status_code == 401


@pytest.mark.requirement("oauth.page")
def test_its_tokens_end_with_the_session_after_seven_days(served: Any) -> None:
    browser = signed_in(served)
    for _ in range(16):
        served.clock.forward(hours=10, minutes=25)
        assert browser.client.get("/account").status_code == 200
    served.clock.forward(hours=1)  # 20 minutes are left of the 168 hours
    tokens = page_tokens(served, browser)
    assert tokens["expires_in"] == 20 * 60
    served.clock.forward(minutes=19, seconds=59)
    assert served.api(tokens["access_token"]).status_code == 200
    served.clock.forward(seconds=1)
    assert served.api(tokens["access_token"]).status_code == 401


@pytest.mark.requirement("oauth.page")
def test_a_code_is_worth_nothing_once_its_session_has_ended(served: Any) -> None:
    browser, verifier = signed_in(served), secrets.token_urlsafe(48)
    code = parameters(asked(browser, code_challenge=challenge_of(verifier)).headers["location"])["code"]
    browser.client.post("/account/sign-out", data=forms(browser.client.get("/account").text)["sign-out"])
    assert served.redeem(code, verifier, PAGE, redirect_uri=SIGNED_IN).json()["error"] == "invalid_grant"


@pytest.mark.requirement("oauth.page")
def test_a_session_that_ends_while_a_code_is_made_leaves_a_dead_one(served: Any) -> None:
    browser = signed_in(served)
    found = served.server.sessions.resume(browser.client.cookies["bds_session"])
    served.server.sessions.end(found.id_hash)
    asked = AccessRequest(
        client_id=PAGE, redirect_uri=SIGNED_IN, scope="read:accounts", state=None, code_challenge=challenge_of("v" * 43)
    )
    code = served.server.consent.allow_at_once(found, asked)
    assert served.redeem(code, "v" * 43, PAGE, redirect_uri=SIGNED_IN).json()["error"] == "invalid_grant"


@pytest.mark.requirement("oauth.page")
def test_the_page_signs_out_with_its_token(served: Any) -> None:
    browser = signed_in(served)
    bearer = {"Authorization": "Bearer " + page_tokens(served, browser)["access_token"]}
    answer = browser.client.post("/account/sign-out", headers={**bearer, "Sec-Fetch-Site": "same-origin"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert served.http.get("/api/v1/accounts", headers=bearer).status_code == 401
    assert browser.client.get("/account").headers["location"] == "/oauth/login"
    again = browser.client.post("/account/sign-out", headers=bearer)
    assert again.status_code == 401
    assert again.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.requirement("oauth.page")
def test_signing_out_with_a_token_leaves_the_cookie_of_another_session(served: Any) -> None:
    token = page_tokens(served, signed_in(served))["access_token"]
    other = signed_in(served)
    answer = other.client.post("/account/sign-out", headers={"Authorization": f"bearer {token}"})
    assert answer.status_code == 204
    assert "set-cookie" not in answer.headers
    assert other.client.get("/account").status_code == 200


@pytest.mark.requirement("oauth.page")
def test_neither_an_app_nor_another_site_signs_anybody_out(served: Any) -> None:
    browser = signed_in(served)
    app = served.tokens()["access_token"]
    assert browser.client.post("/account/sign-out", headers={"Authorization": f"Bearer {app}"}).status_code == 401
    own = page_tokens(served, browser)["access_token"]
    foreign = {"Authorization": f"Bearer {own}", "Sec-Fetch-Site": "cross-site"}
    assert browser.client.post("/account/sign-out", headers=foreign).status_code == 403
    assert browser.client.post("/account/revoke", headers={"Authorization": f"Bearer {own}"}).status_code == 403
    assert browser.client.get("/account").status_code == 200


@pytest.mark.requirement("oauth.page")
def test_the_account_page_shows_it_as_this_website_until_the_session_ends(served: Any) -> None:
    browser, other = signed_in(served), signed_in(served)
    page_tokens(served, browser)
    for language, name, end in (
        ("en", "This website", "Ends when you sign out."),
        ("de", "Diese Website", "Endet mit Ihrer Abmeldung."),
    ):
        shown = other.client.get("/account", headers={"Accept-Language": language}).text
        assert f"{name}</strong>" in shown
        assert end in shown
        assert "revoke" not in forms(shown)
    browser.client.post("/account/sign-out", data=forms(browser.client.get("/account").text)["sign-out"])
    assert "This website" not in other.client.get("/account").text


@pytest.mark.requirement("oauth.page")
@pytest.mark.parametrize("destination", ["empty", "iframe", "script"])
def test_no_script_and_no_frame_reads_or_answers_the_consent_page(served: Any, destination: str) -> None:
    browser = signed_in(served)
    address = browser.authorize(served.register()).headers["location"]
    headers = {"Sec-Fetch-Dest": destination, "Sec-Fetch-Site": "same-origin"}
    refused = browser.client.get(address, headers=headers)
    assert refused.status_code == 403
    assert "form_token" not in refused.text
    page = browser.client.get(address, headers={"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "same-origin"})
    form = {**fields(page.text), "decision": "allow"}
    assert browser.client.post("/oauth/consent", data=form, headers=headers).status_code == 403
    assert browser.client.post("/oauth/consent", data=form).headers["location"].startswith(REDIRECT)


@pytest.mark.requirement("oauth.writing")
def test_no_app_is_granted_what_changes_something(served: Any) -> None:
    browser = signed_in(served)
    for scope in ("write:imports", "read:accounts write:rules", WRITING):
        sent = parameters(browser.authorize(served.register(), scope=scope).headers["location"])
        assert sent["error"] == "invalid_scope"


CHOICES = ["later_accounts", "bookings"]  # what every consent page lets a person take away; without accounts here


def boxes(page: str) -> list[tuple[str, bool]]:
    """The boxes of a page in order: name, and whether it is ticked."""
    found = re.findall(r'<input type="checkbox"[^>]*name="([^"]+)"[^>]*?( checked)?>', page)
    return [(name, bool(checked)) for name, checked in found]


@pytest.mark.requirement("oauth.writing")
def test_an_app_that_the_operator_names_gets_what_the_person_ticks(make_world: Any) -> None:
    client_id = "Named-by-the-operator-1"
    world = make_world(writing_clients=frozenset({client_id}))
    named = world.server.clients.find(world.register())
    world.database.atomically(
        lambda session: session.execute("UPDATE oauth_clients SET id = $1 WHERE id = $2", client_id, named.id)
    )

    def decided(scope: str, **ticks: str) -> dict[str, str]:
        browser = signed_in(world)
        page = browser.client.get(browser.authorize(client_id, scope=scope).headers["location"]).text
        names = [name for name, _ in boxes(page)]
        assert names == [*(word for word in scope.split() if word in TICKED_SCOPES), *CHOICES]
        assert [name for name, is_ticked in boxes(page) if is_ticked] == CHOICES
        assert "It cannot move money, and never sees your password." in page
        assert "or change anything" not in page
        answer = browser.client.post("/oauth/consent", data={**fields(page), "decision": "allow", **ticks})
        return parameters(answer.headers["location"])

    sent = decided(f"read:accounts {WRITING}", **{"write:rules": "on", "write:everything": "on"})
    tokens = world.redeem(sent["code"], "v" * 43, client_id).json()
    assert tokens["scope"] == "read:accounts write:rules"
    assert "refresh_token" in tokens
    refreshed = world.refresh(tokens["refresh_token"], client_id, scope="read:accounts write:imports").json()
    assert refreshed["error"] == "invalid_scope"
    assert world.redeem(decided(f"read:accounts {WRITING}")["code"], "v" * 43, client_id).json()["scope"] == (
        "read:accounts"
    )
    assert decided("write:imports")["error"] == "access_denied"
    asked = world.browser().authorize(client_id, scope="read:annotations openid")
    assert "/oauth/login" in asked.headers["location"]


@pytest.mark.requirement("oauth.writing")
def test_who_asks_to_read_notes_only_is_not_said_to_want_changes(make_world: Any) -> None:
    client_id = "Named-by-the-operator-2"
    world = make_world(writing_clients=frozenset({client_id}))
    named = world.server.clients.find(world.register())
    world.database.atomically(
        lambda session: session.execute("UPDATE oauth_clients SET id = $1 WHERE id = $2", client_id, named.id)
    )
    browser = signed_in(world)
    address = browser.authorize(client_id, scope="read:accounts read:annotations").headers["location"]
    for language, asks, cannot, changes in (
        ("en", "It also asks to read what you have written yourself.", "or change anything", "asks to change"),
        ("de", "Sie möchte außerdem lesen, was Sie selbst notiert haben.", "und nichts ändern", "außerdem ändern"),
    ):
        page = browser.client.get(address, headers={"Accept-Language": language}).text
        assert asks in page
        assert cannot in page
        assert changes not in page


@pytest.mark.requirement("oauth.writing")
def test_a_consent_page_without_writing_says_that_nothing_is_changed(served: Any) -> None:
    browser = signed_in(served)
    page = browser.client.get(browser.authorize(served.register()).headers["location"]).text
    assert "It cannot move money or change anything" in page
    assert [name for name, _ in boxes(page)] == CHOICES


@pytest.mark.requirement("oauth.writing")
def test_discovery_names_no_scope_that_apps_cannot_have(served: Any) -> None:
    for name in ("authorization-server", "protected-resource", "protected-resource/api/v1"):
        document = served.http.get(f"/.well-known/oauth-{name}").json()
        assert document["scopes_supported"] == ["read:accounts", "read:transactions", "read:cashflow"]


@pytest.mark.requirement("oauth.writing")
def test_the_operator_issues_tokens_that_write(fresh: Any) -> None:
    token = fresh.server.issue_token(fresh.user.id, frozenset({"write:rules"}), timedelta(minutes=5))
    assert fresh.server.access.principal(token).scopes == {"write:rules"}
