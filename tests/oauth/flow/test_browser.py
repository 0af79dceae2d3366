"""The pages in a real headless Chromium: by keyboard, Allow and Deny, light and dark, without one policy violation."""

import http.server
import os
import threading
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pyotp
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from storage.oauth.grants import Terms
from tests.browsers import ARGUMENTS, FULL, running_browser
from tests.oauth.pages.test_second_factor import code_of, turn_on

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

SHOTS = os.environ.get("BANKDATA_TEST_SHOTS")  # a folder: screenshots for people to look at
PASSWORD = "umbrella-kettle-violin"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


class Callback(http.server.BaseHTTPRequestHandler):
    """The app's own web server, on another port: another origin. Its address /leads-on leads on to yet another one."""

    def do_GET(self) -> None:
        if self.path.startswith("/leads-on"):
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.headers['Host'].rpartition(':')[2]}/home")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = b"<!doctype html><title>app</title>back in the app"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def callback() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Callback)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/callback"
    server.shutdown()
    server.server_close()
    thread.join(60)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def full_chromium(chromium: Browser) -> Iterator[Browser]:
    """The browser with its windows, for what its own dialogs have a part in."""
    browser = chromium.browser_type.launch(executable_path=FULL, args=ARGUMENTS)
    yield browser
    browser.close()


def opened(chromium: Browser, complaints: list[str], **options: Any) -> Page:
    page = chromium.new_context(**options).new_page()

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def address(world: Any, client_id: str, redirect_uri: str, scope: str = "") -> str:
    return (
        f"{world.server.policy.public_url}/oauth/authorize?response_type=code&client_id={client_id}"
        f"&redirect_uri={redirect_uri}&state=s1&code_challenge={CHALLENGE}&code_challenge_method=S256{scope}"
    )


@pytest.mark.requirement("decision 151")
@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_an_app_may_lead_on_to_another_host(live: Any, callback: str, chromium: Browser, decision: str) -> None:
    complaints: list[str] = []
    page, leads_on = opened(chromium, complaints), callback.replace("/callback", "/leads-on")
    page.goto(address(live, live.register(leads_on), leads_on))
    page.fill("#username", "alice")
    page.fill("#password", PASSWORD)
    page.click("button[type=submit]")
    page.click(f"button[value={decision}]")
    page.wait_for_url("http://localhost:*/home")
    assert complaints == []
    page.context.close()


@pytest.mark.requirement("oauth.pages")
@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_person_with_a_keyboard_alone_allows_and_denies(
    live: Any, callback: str, chromium: Browser, decision: str
) -> None:
    complaints: list[str] = []
    page = opened(chromium, complaints, viewport={"width": 375, "height": 720})
    page.goto(address(live, live.register(callback), callback))
    page.locator("#username:focus").wait_for()
    page.keyboard.type("alice")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/oauth/consent**")
    page.locator("button[value=allow]").wait_for()
    page.keyboard.press("Tab")
    page.locator("summary:focus").wait_for()  # what to choose stands before the answer, folded away
    page.keyboard.press("Tab")
    if decision == "deny":
        page.keyboard.press("Tab")
    page.locator(f"button[value={decision}]:focus").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(callback + "**")
    assert ("code=" in page.url) == (decision == "allow")
    assert ("error=access_denied" in page.url) == (decision == "deny")
    assert "state=s1" in page.url
    assert "iss=" in page.url
    assert complaints == []
    page.context.close()


@pytest.mark.requirement("oauth.pages")
@pytest.mark.long
def test_pages_fit_every_width_and_break_no_policy(live: Any, callback: str, chromium: Browser) -> None:
    complaints: list[str] = []
    live.tokens()
    client_id = live.register(callback, client_name="Haushaltsbuch für Familien & Freunde")
    looks = ((375, "light", "de-DE"), (1280, "light", "en-GB"), (375, "dark", "en"), (1280, "dark", "de"))
    for width, scheme, locale in looks:
        label = f"{width}-{scheme}-{locale[:2]}"
        page = opened(
            chromium, complaints, viewport={"width": width, "height": 800}, color_scheme=scheme, locale=locale
        )
        page.goto(address(live, client_id, callback))
        assert page.locator("html").get_attribute("lang") == locale[:2]
        fits(page)
        shot(page, f"login-{label}")
        page.locator("input:focus").wait_for()  # Chromium complains where somebody types before its autofocus
        page.fill("#username", "alice")
        page.fill("#password", "not the password")
        with page.expect_response("**/oauth/login") as refused:
            page.keyboard.press("Enter")
        assert refused.value.status == 400
        page.wait_for_selector("[role=alert]")
        assert page.evaluate("document.activeElement.id") == "password"
        shot(page, f"login-wrong-{label}")
        page.fill("#password", PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url("**/oauth/consent**")
        fits(page)
        shot(page, f"consent-{label}")
        page.goto(f"{live.server.policy.public_url}/account")
        fits(page)
        shot(page, f"account-{label}")
        page.goto(address(live, "nobody", callback))
        fits(page)
        shot(page, f"mistake-{label}")
        page.context.close()
    # Chromium notes the status of pages that say what went wrong; nothing else may be in its console
    assert [text for text in complaints if "status of 4" not in text] == []


def fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.requirement("docs.page")
def test_the_documentation_page_says_so_when_its_description_does_not_come(live: Any, chromium: Browser) -> None:
    page = opened(chromium, [])
    page.route("**/api/openapi.json", lambda route: route.abort())
    page.goto(f"{live.server.policy.public_url}/docs")
    page.wait_for_selector("text=The description cannot be loaded. Is the service still running?")
    page.context.close()


def with_device(page: Page) -> None:
    """Give the browser of this page an authenticator that says yes to everything."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    says = ("hasResidentKey", "hasUserVerification", "isUserVerified", "automaticPresenceSimulation")
    options = {"protocol": "ctap2", "transport": "internal", **dict.fromkeys(says, True)}
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def make_passkey(page: Page, name: str) -> None:
    page.fill("#name", name)
    page.fill("#current", PASSWORD)
    page.keyboard.press("Enter")
    page.locator("button:focus", has_text="Make the passkey").wait_for()
    page.keyboard.press("Enter")


@pytest.mark.requirement("oauth.passkeys")
def test_a_passkey_is_made_and_signs_in_and_where_it_cannot_a_code_does(
    live_at_localhost: Any, full_chromium: Browser
) -> None:
    live, complaints = live_at_localhost, list[str]()
    base = live.server.policy.public_url
    seed, _codes, _browser = turn_on(live)

    def type_password(page: Page) -> None:
        page.goto(f"{base}/account")
        page.locator("input:focus").wait_for()  # Chromium complains where somebody types before its autofocus
        page.fill("#username", "alice")
        page.fill("#password", PASSWORD)
        page.keyboard.press("Enter")

    def type_code(page: Page) -> None:
        live.clock.forward(seconds=30)
        page.fill("#code", code_of(live, seed))
        page.keyboard.press("Enter")
        page.wait_for_url(f"{base}/account")

    page = opened(full_chromium, complaints, viewport={"width": 375, "height": 720})
    with_device(page)
    type_password(page)
    type_code(page)
    page.click('a[href="/account/passkeys"]')
    make_passkey(page, "Test device")
    page.get_by_text("Test device").wait_for()
    fits(page)
    make_passkey(page, "The same device")
    page.get_by_text("No passkey was added. Perhaps this device has one already").wait_for()
    assert not page.get_by_text("type a code").is_visible()
    shot(page, "passkeys")
    page.goto(f"{base}/account")
    page.click('form[action$="/sign-out"] button')
    for _ in range(2):  # the counter goes on
        type_password(page)
        page.locator("button:focus", has_text="Use a passkey").wait_for()
        fits(page)
        shot(page, "second-step-passkey")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{base}/account")
        page.click('form[action$="/sign-out"] button')
    type_password(page)
    page.locator("button:focus", has_text="Use a passkey").wait_for()
    page.evaluate("() => { navigator.credentials.get = () => Promise.reject(new Error('cancelled')) }")
    page.keyboard.press("Enter")
    page.get_by_text("did not work with this passkey").wait_for()
    type_code(page)
    page.context.close()

    without = opened(full_chromium, complaints, java_script_enabled=False)
    type_password(without)
    without.locator("noscript p").wait_for()
    assert not without.get_by_text("Use a passkey", exact=True).is_visible()
    type_code(without)
    without.context.close()

    old = opened(full_chromium, complaints)
    old.add_init_script("delete window.PublicKeyCredential")
    type_password(old)
    old.get_by_text("This browser cannot use passkeys here").wait_for()
    assert not old.get_by_text("Use a passkey", exact=True).is_visible()
    type_code(old)
    old.context.close()
    assert complaints == []


@pytest.mark.requirement("oauth.second_factor")
@pytest.mark.long
def test_a_second_factor_is_set_up_from_a_picture_and_then_asked_for(live: Any, chromium: Browser) -> None:
    complaints: list[str] = []
    page, base = opened(chromium, complaints, color_scheme="dark"), live.server.policy.public_url

    def type_password() -> None:
        page.locator("input:focus").wait_for()  # Chromium complains where somebody types before its autofocus
        page.fill("#username", "alice")
        page.fill("#password", PASSWORD)
        page.keyboard.press("Enter")

    page.goto(f"{base}/account")
    type_password()
    page.click("text=Turn on")
    page.fill("#current", PASSWORD)
    page.keyboard.press("Enter")
    box = page.locator(".picture svg").bounding_box()
    assert box is not None
    assert box["width"] == box["height"] > 200
    # Nothing is cut off: what is drawn, with the border of four squares that readers need, is as large as its place
    drawn = page.locator(".picture svg path").first.bounding_box()
    assert drawn is not None
    assert abs(drawn["width"] - box["width"]) < 1
    shot(page, "second-factor")
    seed = page.locator("code").inner_text().replace(" ", "")
    page.fill("#code", pyotp.TOTP(seed).at(int(live.clock().replace(tzinfo=UTC).timestamp())))
    page.keyboard.press("Enter")
    assert len(page.locator("textarea").input_value().splitlines()) == 10
    page.click("text=I have kept them")
    page.click('form[action$="/sign-out"] button')
    type_password()
    live.clock.forward(seconds=30)
    page.fill("#code", pyotp.TOTP(seed).at(int(live.clock().replace(tzinfo=UTC).timestamp())))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}/account")
    shot(page, "account")
    assert "It is on" in page.locator("body").inner_text()
    assert complaints == []


@pytest.mark.requirement("oauth.passkeys_alone")
def test_somebody_joins_signs_in_and_proves_who_they_are_by_a_passkey_alone(
    live_at_localhost: Any, full_chromium: Browser
) -> None:
    live, complaints = live_at_localhost, list[str]()
    base = live.server.policy.public_url
    page = opened(full_chromium, complaints, viewport={"width": 375, "height": 720})
    with_device(page)
    page.goto(live.server.shares.invite(live.user, None, life="1", terms=Terms(accounts=None), ends_at=None))
    page.fill("#username", "eva")
    fits(page)
    page.get_by_role("button", name="Use a passkey, without a password").click()
    page.get_by_role("button", name="Make the passkey").click()
    page.get_by_role("heading", name="Recovery codes").wait_for()
    codes = page.locator("textarea").input_value().split()
    assert len(codes) == 10
    fits(page)
    page.locator(".card .button").click()
    page.wait_for_url(f"{base}/account/shares")
    page.get_by_text("alice").first.wait_for()
    page.goto(f"{base}/account")
    page.click('form[action$="/sign-out"] button')
    page.get_by_role("link", name="Sign in with a passkey").click()
    fits(page)
    shot(page, "passkey-alone")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{base}/account/shares")  # the offer waits still
    page.goto(f"{base}/account")
    page.get_by_text("eva", exact=True).wait_for()
    live.clock.forward(minutes=6)
    page.goto(f"{base}/account/passkeys")
    page.get_by_role("link", name="Sign in once more").click()
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{base}/account/passkeys")
    page.get_by_role("button", name="Add a passkey").wait_for()
    page.locator("summary", has_text="Remove").click()
    page.get_by_role("button", name="Remove the passkey").click()
    page.get_by_text("This is your last way in").wait_for()
    fits(page)
    shot(page, "passkeys-last")
    page.goto(f"{base}/account")
    page.click('form[action$="/sign-out"] button')
    page.goto(f"{base}/oauth/recovery")
    page.fill("#username", "eva")
    page.fill("#code", codes[0])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}/account/passkeys")
    assert [each for each in complaints if "400 (Bad Request)" not in each] == []  # the last way in
    page.context.close()
