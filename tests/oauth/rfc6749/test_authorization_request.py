"""The authorization endpoint: what becomes a page, what goes back to the client, and what travels along."""

from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

REDIRECT = "https://app.example/callback"
LOOPBACK = "http://127.0.0.1/cb"


def back(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 303
    return parse_qs(urlsplit(answer.headers["location"]).query, keep_blank_values=True)


@pytest.mark.requirement("oauth.no_redirect_before_trust")
@pytest.mark.parametrize(
    "redirect_uri",
    [
        "-",
        "",
        "https://evil.example/callback",
        "https://app.example/callback/",
        "https://app.example/Callback",
        "https://app.example/callback?x=1",
        "https://app.example/callback#",
        "https://app.example/callback/../other",
        "https://app.example/%63allback",
        "https://app.example:443/callback",
        "https://APP.example/callback",
        "http://app.example/callback",
        "https://app.example.evil.example/callback",
        "https://app.example@evil.example/callback",
        "https://user@app.example/callback",
        "https://app.example/callback\r\nX: y",
        " https://app.example/callback",
        "https://app.example/callback ",
        "javascript:alert(1)",
        "//app.example/callback",
        "/callback",
    ],
)
def test_an_unregistered_address_gets_a_page_and_no_redirect(world: Any, redirect_uri: str) -> None:
    answer = world.browser().authorize(world.register(), redirect_uri=redirect_uri)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.requirement("oauth.no_redirect_before_trust")
@pytest.mark.parametrize(
    "client_id", ["-", "", "nobody", "a" * 5000, "\0", "' OR 1=1 --", "https://evil.example/client"]
)
def test_an_unknown_client_gets_a_page_and_no_redirect(world: Any, client_id: str) -> None:
    answer = world.browser().authorize(client_id)
    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.requirement("oauth.no_redirect_before_trust")
@pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
def test_client_and_address_may_come_once_only(world: Any, name: str) -> None:
    client_id = world.register()
    query = f"client_id={client_id}&redirect_uri={quote(REDIRECT)}&{name}={quote(REDIRECT)}"
    answer = world.browser().client.get(f"/oauth/authorize?{query}")
    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.requirement("oauth.authorization_errors")
@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "-"}, "invalid_request"),
        ({"response_type": ""}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": "CODE"}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge": "-"}, "invalid_request"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge": "a" * 42}, "invalid_request"),
        ({"code_challenge": "a" * 44}, "invalid_request"),
        ({"code_challenge": "a" * 42 + "="}, "invalid_request"),
        ({"code_challenge": "a" * 42 + "+"}, "invalid_request"),
        ({"code_challenge_method": "-"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": "s256"}, "invalid_request"),
        ({"scope": "read:everything"}, "invalid_scope"),
        ({"scope": "openid offline_access"}, "invalid_scope"),
        ({"scope": "read:accounts openid write:rules"}, "invalid_scope"),
        ({"scope": "READ:ACCOUNTS"}, "invalid_scope"),
        ({"scope": "read:accounts,read:cashflow"}, "invalid_scope"),
        ({"scope": "   "}, "invalid_scope"),
        ({"resource": "https://other.example/api"}, "invalid_target"),
        ({"resource": "http://127.0.0.1:8000"}, "invalid_target"),
        ({"resource": "not a uri"}, "invalid_target"),
    ],
)
def test_mistakes_go_back_to_the_client_with_state_and_issuer(world: Any, changed: dict[str, str], error: str) -> None:
    client_id = world.register(LOOPBACK)
    answer = back(world.browser().authorize(client_id, redirect_uri=LOOPBACK, **changed))
    assert answer["error"] == [error]
    assert answer["state"] == ["st"]
    assert answer["iss"] == ["http://127.0.0.1:8000"]
    assert "code" not in answer


@pytest.mark.requirement("oauth.authorization_errors")
@pytest.mark.parametrize("name", ["response_type", "scope", "state", "code_challenge", "code_challenge_method"])
def test_a_repeated_parameter_is_a_mistake(world: Any, name: str) -> None:
    client_id = world.register(LOOPBACK)
    browser = world.browser()
    good = browser.authorize(client_id, redirect_uri=LOOPBACK)
    query = good.request.url.query.decode()
    answer = back(browser.client.get(f"/oauth/authorize?{query}&{name}=x"))
    assert answer["error"] == ["invalid_request"]
    assert ("state" in answer) == (name != "state")


@pytest.mark.requirement("oauth.state")
@pytest.mark.parametrize(
    "state",
    ["s", "a b+c%20d", "äöü€😀", "<script>alert(1)</script>", "a&b=c;d#e", '"\\', "\r\nSet-Cookie: a=b", "x" * 4096],
)
def test_state_comes_back_byte_for_byte(world: Any, state: str) -> None:
    browser = world.browser()
    page = browser.sign_in(browser.authorize(world.register(), state=state))
    answer = back(browser.consent(page))
    assert answer["state"] == [state]


@pytest.mark.requirement("oauth.state")
def test_no_state_stays_no_state(world: Any) -> None:
    for value in ("-", ""):
        browser = world.browser()
        page = browser.sign_in(browser.authorize(world.register(), state=value))
        assert "state" not in back(browser.consent(page))


@pytest.mark.requirement("oauth.state")
@pytest.mark.parametrize("state", ["x" * 4097, "a\0b"])
def test_a_state_that_cannot_be_kept_is_a_mistake(world: Any, state: str) -> None:
    answer = world.browser().authorize(world.register(LOOPBACK), redirect_uri=LOOPBACK, state=state)
    assert back(answer)["error"] == ["invalid_request"]


@pytest.mark.requirement("oauth.authorization_response")
def test_the_answer_carries_code_state_and_issuer_and_keeps_the_registered_query(world: Any) -> None:
    uri = "https://app.example/cb?tenant=a%20b&x="
    browser = world.browser()
    page = browser.sign_in(browser.authorize(world.register(uri), redirect_uri=uri))
    location = browser.consent(page).headers["location"]
    assert location.startswith(uri + "&code=")
    assert parse_qs(urlsplit(location).query)["iss"] == ["http://127.0.0.1:8000"]


@pytest.mark.requirement("oauth.authorization_response")
def test_deny_is_access_denied_with_state_and_issuer(world: Any) -> None:
    browser = world.browser()
    page = browser.sign_in(browser.authorize(world.register()))
    answer = back(browser.consent(page, "deny"))
    assert answer["error"] == ["access_denied"]
    assert answer["state"] == ["st"]
    assert answer["iss"] == ["http://127.0.0.1:8000"]


@pytest.mark.requirement("oauth.authorization_request")
def test_unknown_parameters_are_ignored_and_never_fetched(world: Any) -> None:
    browser = world.browser()
    more = {"display": "page", "nonce": "n", "request": "a.b.c", "request_uri": "http://127.0.0.1:1/x", "foo": "bar"}
    assert "/oauth/login?request=" in browser.authorize(world.register(), **more).headers["location"]


@pytest.mark.requirement("oauth.scopes")
def test_no_scope_means_all_and_the_consent_page_says_so(world: Any) -> None:
    browser = world.browser()
    page = browser.sign_in(browser.authorize(world.register(), scope="-"))
    html = browser.client.get(page.headers["location"]).text
    assert "see your accounts and their balances" in html
    assert "read and search your transactions" in html
    assert "see your cash flow and recurring payments" in html


@pytest.mark.requirement("oauth.scope_default")
def test_foreign_scopes_beside_ours_are_left_out_of_what_is_asked_and_given(world: Any) -> None:
    client_id, browser = world.register(), world.browser()
    code, verifier = browser.code(client_id, scope="openid offline_access profile read:accounts")
    assert world.redeem(code, verifier, client_id).json()["scope"] == "read:accounts"


@pytest.mark.requirement("oauth.resource")
def test_our_own_resource_is_welcome_with_and_without_slash(world: Any) -> None:
    for resource in ("http://127.0.0.1:8000/api/v1", "http://127.0.0.1:8000/api/v1/"):
        answer = world.browser().authorize(world.register(), resource=resource)
        assert "/oauth/login" in answer.headers["location"]


@pytest.mark.requirement("oauth.no_bounce")
def test_signed_out_visitors_are_not_bounced_to_a_web_site_that_anyone_registered(world: Any) -> None:
    client_id = world.register()
    answer = world.browser().authorize(client_id, scope="nonsense")
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert "invalid_scope" in answer.text
    assert 'href="https://app.example/callback?error=invalid_scope' in answer.text
    signed_in = world.browser()
    signed_in.code(client_id)
    assert back(signed_in.authorize(client_id, scope="nonsense"))["error"] == ["invalid_scope"]


@pytest.mark.requirement("oauth.no_bounce")
def test_a_client_of_the_operator_gets_its_error_at_once(world: Any) -> None:
    client = world.server.clients.add("Ours", (REDIRECT,))
    assert back(world.browser().authorize(client.id, scope="nonsense"))["error"] == ["invalid_scope"]


@pytest.mark.requirement("oauth.bad_input")
@pytest.mark.parametrize(
    "query",
    [
        "%ff",
        "client_id=%ff",
        "client_id=%zz",
        "client_id=%",
        "=",
        "&&&",
        "a" * 20_000,
        "&".join(["a=b"] * 200),
        "client_id=%00",
    ],
)
def test_broken_queries_get_a_page(world: Any, query: str) -> None:
    answer = world.browser().client.get(f"/oauth/authorize?{query}")
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.requirement("oauth.authorization_request")
def test_only_get_is_served(world: Any) -> None:
    answer = world.http.post("/oauth/authorize")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]
    assert "access-control-allow-origin" not in world.browser().authorize(world.register()).headers
