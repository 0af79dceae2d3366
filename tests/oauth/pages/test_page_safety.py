"""The pages against forged forms, frames, injected markup, stolen and fixed sessions."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.oauth.conftest import fields
from tests.oauth.pages.test_second_factor import half_signed_in, turn_on

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

PASSWORD = "umbrella-kettle-violin"


def at_consent(world: Any, **more: Any) -> tuple[Any, dict[str, Any]]:
    """A signed-in browser in front of the consent page, and the page's form."""
    browser = world.browser()
    page = browser.sign_in(browser.authorize(world.register(), **more))
    return browser, fields(browser.client.get(page.headers["location"]).text)


@pytest.mark.requirement("oauth.page_headers")
def test_every_page_keeps_itself_to_itself(world: Any) -> None:
    browser = world.browser()
    authorize = browser.authorize(
        world.register("https://app.example:8443/cb"), redirect_uri="https://app.example:8443/cb"
    )
    login = browser.client.get(authorize.headers["location"])
    consent = browser.client.get(browser.sign_in(authorize).headers["location"])
    account = browser.client.get("/account")
    for page in (login, consent, account, browser.client.get("/oauth/authorize")):
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; ")
        assert "frame-ancestors 'none'; form-action 'self'" in policy
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "<script" not in page.text
        assert " style=" not in page.text
        of_account = {"http://127.0.0.1:8000/", "/account/record.csv", "/account/record.json"}
        of_account |= {"/account/second-factor", "/account/connect", "/account/shares"}
        links = {"/account"} if page is consent else of_account if page is account else set()
        assert set(re.findall(r'(?:src|href)="([^"]*)"', page.text)) == {"/oauth/style.css", "/oauth/icon.svg", *links}
        assert re.search(r'<html lang="en">', page.text)
        assert re.search(r"<title>.+</title>", page.text)
    assert consent.headers["content-security-policy"].endswith("form-action 'self' https:")


@pytest.mark.requirement("oauth.page_headers")
@pytest.mark.parametrize(
    ("redirect_uri", "source"),
    [
        ("http://127.0.0.1:4711/cb", "http:"),
        ("http://[::1]:4711/cb", "http:"),
        ("com.example.app:/cb", "com.example.app:"),
        ("https://app.example/cb?a=b", "https:"),
    ],
)
def test_the_form_may_lead_to_the_app_and_on_from_there(world: Any, redirect_uri: str, source: str) -> None:
    browser = world.browser()
    page = browser.sign_in(browser.authorize(world.register(redirect_uri), redirect_uri=redirect_uri))
    policy = browser.client.get(page.headers["location"]).headers["content-security-policy"]
    assert policy.endswith(f"form-action 'self' {source}")


@pytest.mark.requirement("oauth.page_headers")
@pytest.mark.parametrize(
    ("auth_url", "source"), [("https://bank.example/auth", ""), ("https://login.example", " https://bank.example")]
)
def test_a_sign_in_on_another_host_may_lead_back_to_the_page(
    make_world: Callable[..., Any], auth_url: str, source: str
) -> None:
    world = make_world(public_url="https://bank.example", auth_url=auth_url)
    path = world.server.policy.served_path
    login = world.browser().client.get(f"{path}/oauth/login")
    assert login.headers["content-security-policy"].endswith(f"form-action 'self'{source}")


@pytest.mark.requirement("oauth.page_headers")
def test_a_second_step_on_another_host_may_lead_back_to_the_page(make_world: Callable[..., Any]) -> None:
    world = make_world(public_url="https://bank.example", auth_url="https://login.example")
    turn_on(world)
    browser, _form = half_signed_in(world)
    policy = browser.client.get("/oauth/second-step").headers["content-security-policy"]
    assert policy.endswith("form-action 'self' https://bank.example")


@pytest.mark.requirement("oauth.page_headers")
def test_no_form_behind_the_sign_in_leads_to_another_host(make_world: Callable[..., Any]) -> None:
    world = make_world(public_url="https://bank.example", auth_url="https://login.example")
    _seed, _codes, browser = turn_on(world)
    for address in ("/account", "/account/second-factor", "/account/passkeys"):
        policy = browser.client.get(address).headers["content-security-policy"]
        assert policy.endswith("form-action 'self'")


@pytest.mark.requirement("oauth.csrf")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:8000"},
        {"Origin": "http://127.0.0.1:8001"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_from_elsewhere_changes_nothing_even_with_the_right_token(world: Any, headers: dict[str, str]) -> None:
    browser, form = at_consent(world)
    answer = browser.client.post("/oauth/consent", data={**form, "decision": "allow"}, headers=headers)
    assert answer.status_code == 403
    assert "location" not in answer.headers
    assert browser.client.post("/oauth/consent", data={**form, "decision": "allow"}).status_code == 303


@pytest.mark.requirement("oauth.csrf")
def test_a_form_without_its_token_or_with_another_session_s_changes_nothing(world: Any) -> None:
    browser, form = at_consent(world)
    stranger, strange = at_consent(world)
    for changed in (
        {**form, "form_token": ""},
        {**form, "form_token": "x"},
        {**form, "form_token": strange["form_token"]},
        {**strange},
        {**strange, "form_token": form["form_token"]},
    ):
        answer = browser.client.post("/oauth/consent", data={**changed, "decision": "allow"})
        assert answer.status_code == 403
    for client in (world.browser().client, world.http):
        assert client.post("/oauth/consent", data={**form, "decision": "allow"}).status_code == 400
    assert stranger.client.post("/oauth/consent", data={**strange, "decision": "deny"}).status_code == 303


@pytest.mark.requirement("oauth.csrf")
def test_sign_in_forms_are_bound_to_their_browser(world: Any) -> None:
    browser, stranger = world.browser(), world.browser()
    form = fields(stranger.client.get("/oauth/login").text)
    browser.client.get("/oauth/login")
    data = {**form, "username": "alice", "password": PASSWORD}
    assert browser.client.post("/oauth/login", data=data).status_code == 403
    assert world.browser().client.post("/oauth/login", data=data).status_code == 400
    assert stranger.client.post("/oauth/login", data=data).status_code == 303


@pytest.mark.requirement("oauth.consent")
def test_form_fields_cannot_change_what_was_asked(world: Any) -> None:
    browser, form = at_consent(world, scope="read:accounts")
    more = {"redirect_uri": "https://evil.example/", "scope": "read:cashflow", "client_id": "x", "state": "evil"}
    location = browser.client.post("/oauth/consent", data={**form, **more, "decision": "allow"}).headers["location"]
    assert location.startswith("https://app.example/callback?code=")
    assert "state=st&" in location


@pytest.mark.requirement("oauth.consent")
@pytest.mark.parametrize("decision", ["", "maybe", "ALLOW", "allow deny"])
def test_only_allow_is_allow(world: Any, decision: str) -> None:
    browser, form = at_consent(world)
    answer = browser.client.post("/oauth/consent", data={**form, "decision": decision})
    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.requirement("oauth.consent")
def test_a_request_is_decided_once(world: Any) -> None:
    browser, form = at_consent(world)
    assert browser.client.post("/oauth/consent", data={**form, "decision": "deny"}).status_code == 303
    again = browser.client.post("/oauth/consent", data={**form, "decision": "allow"})
    assert again.status_code == 400
    assert "location" not in again.headers


@pytest.mark.requirement("oauth.consent")
def test_a_request_waits_for_fifteen_minutes(fresh: Any) -> None:
    browser, form = at_consent(fresh)
    late, late_form = at_consent(fresh)
    fresh.clock.forward(minutes=14, seconds=59)
    assert browser.client.post("/oauth/consent", data={**form, "decision": "allow"}).status_code == 303
    fresh.clock.forward(seconds=1)
    assert late.client.post("/oauth/consent", data={**late_form, "decision": "allow"}).status_code == 400


@pytest.mark.requirement("oauth.consent")
def test_consent_is_asked_every_time_and_says_who_asks(world: Any) -> None:
    client_id = world.register(client_name="Müller & <b>Söhne</b>")
    browser = world.browser()
    browser.code(client_id)
    page = browser.authorize(client_id)
    assert "/oauth/consent" in page.headers["location"]
    html = browser.client.get(page.headers["location"]).text
    assert "Müller &amp; &lt;b&gt;Söhne&lt;/b&gt;" in html
    assert "Self-registered" in html
    assert "app.example" in html
    assert "alice" in html


@pytest.mark.requirement("oauth.xss")
@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "{% raw %}", "'\"`<>&", "</title><svg>"],
)
def test_a_client_s_name_is_only_text(world: Any, name: str) -> None:
    browser = world.browser()
    login = browser.authorize(world.register(client_name=name))
    pages = browser.client.get(login.headers["location"]).text
    pages += browser.client.get(browser.sign_in(login).headers["location"]).text
    assert name not in pages or name in ("{{7*7}}", "{% raw %}")
    assert "49" not in re.sub(r'value="[^"]*"|request=[^"&]*', "", pages)
    assert "<script" not in pages
    assert "<img" not in pages


@pytest.mark.requirement("oauth.xss")
def test_parameters_are_never_repeated_as_markup(world: Any) -> None:
    evil = '"><script>alert(1)</script>'
    browser = world.browser()
    for answer in (
        browser.authorize(evil),
        browser.authorize(world.register(), redirect_uri=evil),
        browser.authorize(world.register(), scope=evil),
        browser.client.get("/oauth/login", params={"request": evil}),
        browser.client.get("/account", params={"notice": evil}),
        browser.sign_in(browser.authorize(world.register()), name=evil),
    ):
        assert "<script" not in answer.text


@pytest.mark.requirement("oauth.open_redirect")
@pytest.mark.parametrize("name", ["next", "return_to", "redirect", "continue", "url", "request", "goes_on"])
def test_nothing_leads_elsewhere_after_sign_in(world: Any, name: str) -> None:
    browser = world.browser()
    page = browser.client.get("/oauth/login", params={name: "https://evil.example/"})
    if page.status_code == 200:
        data = {**fields(page.text), "username": "alice", "password": PASSWORD, name: "https://evil.example/"}
        if name == "request":
            data["request"] = "https://evil.example/"
        answer = browser.client.post(f"/oauth/login?{name}=https://evil.example/", data=data)
        assert "evil" not in answer.headers.get("location", "")


@pytest.mark.requirement("oauth.session")
def test_the_cookie_is_closed_to_scripts_and_other_sites_and_new_after_sign_in(world: Any) -> None:
    browser = world.browser()
    login = browser.authorize(world.register())
    before = login.headers["set-cookie"]
    after = browser.sign_in(login).headers["set-cookie"]
    for cookie in (before, after):
        assert cookie.startswith("bds_session=")
        for attribute in ("HttpOnly", "SameSite=lax", "Path=/"):
            assert attribute in cookie
    assert before.partition(";")[0] != after.partition(";")[0]
    old = world.browser()
    old.client.cookies.set("bds_session", before.partition(";")[0].partition("=")[2])
    assert old.client.get("/account").status_code == 303


@pytest.mark.requirement("oauth.session")
def test_over_tls_the_cookie_is_bound_to_the_host(make_world: Callable[..., Any]) -> None:
    cookie = make_world(public_url="https://bank.example").browser().client.get("/oauth/login").headers["set-cookie"]
    assert cookie.startswith("__Host-bds_session=")
    assert "Secure" in cookie


@pytest.mark.requirement("oauth.session")
@pytest.mark.parametrize("value", ["", "x", "A" * 43, "../../etc/passwd", "x" * 5000, "%00", '"'])
def test_an_invented_cookie_is_nobody(world: Any, value: str) -> None:
    answer = world.http.get("/account", headers={"Cookie": f"bds_session={value}"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/oauth/login")


@pytest.mark.requirement("oauth.session")
def test_a_session_ends_after_twelve_idle_hours_and_after_seven_days(fresh: Any) -> None:
    idle, busy = fresh.browser(), fresh.browser()
    for browser in (idle, busy):
        browser.code(fresh.register())
    fresh.clock.forward(hours=11, minutes=59)
    assert idle.client.get("/account").status_code == 200
    for _ in range(13):
        assert busy.client.get("/account").status_code == 200
        fresh.clock.forward(hours=11, minutes=59)
    assert idle.client.get("/account").status_code == 303
    assert busy.client.get("/account").status_code == 200
    fresh.clock.forward(hours=1)
    assert busy.client.get("/account").status_code == 303


@pytest.mark.requirement("oauth.bad_input")
@pytest.mark.parametrize(
    "path", ["/oauth/login", "/oauth/consent", "/account/revoke", "/account/password", "/account/sign-out"]
)
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "application/x-www-form-urlencoded"),
        (b"%ff=%ff", "application/x-www-form-urlencoded"),
        (b"a=%zz", "application/x-www-form-urlencoded"),
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
        (b"form_token=a&form_token=b", "application/x-www-form-urlencoded"),
        (b"password=" + b"x" * 200_000, "application/x-www-form-urlencoded"),
        (b"a=b&" * 1000, "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
        (b"--x", "multipart/form-data; boundary=x"),
        (b"form_token=%C3%BC%00", "application/x-www-form-urlencoded"),
    ],
)
def test_broken_forms_get_a_page(world: Any, path: str, content: bytes, kind: str) -> None:
    browser = world.browser()
    browser.client.get("/oauth/login")
    answer = browser.client.post(path, content=content, headers={"Content-Type": kind})
    assert answer.status_code in (400, 403, 413, 415)
    assert answer.headers["content-type"].startswith("text/html")
    assert "location" not in answer.headers


@pytest.mark.requirement("oauth.languages")
@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,en;q=0.5", "de"),
        ("en,de;q=0.9", "en"),
        ("it,de;q=0.3,en;q=0.2", "de"),
        ("fr,de;q=0.3,en;q=0.2", "fr"),
        ("it", "en"),
        ("de;q=0, en;q=0.1", "en"),
        ("de;q=x,en;q=0.1", "en"),
        (";;;q=x,\xff" + "a" * 600, "en"),
        ("DE", "de"),
    ],
)
def test_pages_speak_the_browser_s_language(world: Any, header: str, language: str) -> None:
    answer = world.http.get("/oauth/login", headers={"Accept-Language": header.encode("latin-1")})
    assert f'<html lang="{language}">' in answer.text


@pytest.mark.requirement("oauth.languages")
def test_both_languages_say_the_same_things() -> None:
    import string

    from handlers.oauth.languages import LANGUAGES

    def places(text: str) -> set[str | None]:
        return {place for _, place, _, _ in string.Formatter().parse(text) if place}

    english, german = LANGUAGES["en"].text, LANGUAGES["de"].text
    assert english.keys() == german.keys()
    for name, text in english.items():
        assert places(text) == places(german[name]), name


@pytest.mark.requirement("oauth.pages")
def test_head_has_the_headers_and_no_body(world: Any) -> None:
    answer = world.http.head("/oauth/login")
    assert (answer.status_code, answer.content) == (200, b"")
