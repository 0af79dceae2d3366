"""Notices on the page and in its browser: at a press alone, one person's at a time, until they sign out."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from handlers.languages import catalogue
from handlers.web.app import CONTRACT_FILE
from tests.contract.demo_server import Demo, running_demo
from tests.page.conftest import Opening, is_shown
from tests.page.test_installed import Pushed, shown, until
from tests.ways.push_service import PushService, SubscribedBrowser

# A browser without a network has no push service: what it says of its subscription is that of the test
SUBSCRIBED = """(told) => {
  const plain = (text) => atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const key = () => Uint8Array.from(plain(localStorage.made), (each) => each.charCodeAt(0)).buffer;
  const made = () => ({
    endpoint: told.endpoint, options: { userVisibleOnly: true, applicationServerKey: key() }, toJSON: () => told,
    unsubscribe: async () => { delete localStorage.made; return true; },
  });
  PushManager.prototype.subscribe = async (wanted) => (localStorage.made = wanted.applicationServerKey, made());
  PushManager.prototype.getSubscription = async () => (localStorage.made ? made() : null);
}"""


@pytest.fixture
def chromium(whole_browser: Browser) -> Browser:
    return whole_browser


@pytest.fixture(scope="module")
def maker() -> Iterator[PushService]:
    service = PushService()
    yield service
    service.close()


@pytest.fixture(scope="module")
def sending(copied: Callable[[], Path]) -> Iterator[Demo]:
    """A server that may send to the push service of this machine."""
    with running_demo(copied().parent, RATE_LIMIT="off", WEBHOOKS_ALLOW="127.0.0.0/8") as running:
        yield running


class Person:
    """Somebody with a browser that may show notices, if it is asked at a press."""

    def __init__(self, context: BrowserContext, demo: Demo, maker: PushService, browser: SubscribedBrowser) -> None:
        self.context, self.demo, self.maker, self.browser = context, demo, maker, browser
        context.grant_permissions(["notifications"], origin=demo.origin)
        context.add_init_script(f"({SUBSCRIBED})({json.dumps(browser.subscription)})")
        self.complaints: list[str] = []
        context.on("console", lambda message: self.complaints.append(message.text))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        self.page = context.new_page()

    def sign_in(self, user: str) -> None:
        login = self.demo.origin + "/oauth/login"
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', self.context.request.get(login).text()))
        self.context.request.post(login, form={**hidden, "username": user, "password": f"demo-{user}-2024"})

    def open(self, path: str = "/notices") -> Page:
        self.page.goto(self.demo.origin + path)
        is_shown(self.page)
        expect(self.page.locator("main .bones")).to_have_count(0)
        return self.page

    def said(self, number: int) -> list[dict[str, Any]]:
        """What the push service has of this browser, once it is so much."""
        heard = self.maker.heard[self.browser.endpoint.removeprefix(self.maker.origin)]
        until(self.page, lambda: len(heard) >= number)
        assert self.maker.complaints == []
        return [self.browser.read(body) for _, body in heard]

    def add(self) -> None:
        """Add this browser, by the code that it shows."""
        page, before = self.open(), len(self.maker.heard[self.browser.endpoint.removeprefix(self.maker.origin)])
        page.get_by_role("button", name="Add this browser").click()
        page.get_by_role("button", name="Add", exact=True).click()
        told = self.said(before + 1)[-1]
        Pushed(page, self.demo.origin).deliver(json.dumps(told))
        code = shown(page, lambda found: found[0][0] == told["title"])[0][0][-8:]
        page.get_by_label("Code", exact=True).fill(code)
        page.get_by_role("button", name="Confirm").click()
        expect(self.targets()).to_contain_text("This browser · Works")

    def targets(self) -> Any:
        return self.page.locator("section", has_text="Where they go").locator("li")

    def is_subscribed(self) -> bool:
        return bool(self.page.evaluate("Boolean(localStorage.made)"))


@pytest.fixture
def person(sending: Demo, maker: PushService, whole_browser: Browser) -> Iterator[Callable[[str], Person]]:
    with ExitStack() as opened:

        def make(path: str) -> Person:
            context = whole_browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 860})
            opened.callback(context.close)
            return Person(context, sending, maker, maker.browser(path))

        yield make


@pytest.mark.requirement("page.push")
@pytest.mark.long
def test_a_browser_is_added_at_a_press_shows_what_is_sent_and_leads_to_the_notice(
    person: Callable[..., Person],
) -> None:
    eva = person("/w/eva1")
    eva.sign_in("demo")
    page = eva.open("/")
    assert not eva.is_subscribed()
    eva.add()
    page.get_by_role("button", name="Test: ").click()
    told = eva.said(2)[1]
    assert (told["title"], told["link"]) == ("A test", f"{eva.demo.origin}/notices")
    page.get_by_role("button", name="What was sent: ").click()
    sent = page.get_by_role("dialog").locator("li")
    expect(sent).to_have_count(2)
    expect(sent.first).to_contain_text("Test message")
    page.keyboard.press("Escape")
    about = "An address was added at which you are told of notices."
    [notice, *_] = [each["id"] for each in eva.page.evaluate(OPEN) if each["text"] == about]
    eva.open(f"/?notice={notice}")
    expect(page.get_by_role("dialog")).to_contain_text(about)
    page.get_by_role("dialog").get_by_role("button", name="Put away").click()
    expect(page.get_by_role("dialog")).to_contain_text("You have put this away.")
    eva.open("/?notice=ntc_of_somebody")
    expect(page.get_by_role("dialog")).to_contain_text("This notice is not here.")
    assert eva.complaints == []


OPEN = """async () => {
  const address = (name) => document.querySelector("script[type=module]").src.replace("main.js", name);
  const { change } = await import(address("api.js"));
  return (await change("GET", "/notices")).notices;
}"""


@pytest.mark.requirement("page.push")
@pytest.mark.long
def test_signing_out_ends_it_and_whoever_comes_next_in_this_browser_begins_with_nothing(
    person: Callable[..., Person],
) -> None:
    eva = person("/w/eva2")
    eva.sign_in("solo")
    eva.add()
    eva.open("/settings").get_by_role("button", name="Sign out").click()
    eva.page.get_by_label("User name").wait_for()
    assert not eva.is_subscribed()
    eva.sign_in("solo")
    eva.open()
    expect(eva.page.get_by_text("Nowhere yet.")).to_be_visible()
    eva.add()
    key = eva.page.evaluate("localStorage.made")
    eva.page.evaluate("localStorage.removeItem('made')")  # as a browser does that is told to show none any more
    eva.open()
    expect(eva.page.get_by_text("A browser of this name is listed, but this one shows nothing.")).to_be_visible()
    eva.page.evaluate("(key) => localStorage.setItem('made', key)", key)
    eva.context.clear_cookies()  # the session ran out: what was added stays
    eva.sign_in("demo")
    eva.open("/")
    until(eva.page, lambda: not eva.is_subscribed())  # it was somebody else's, whose sentences are nobody else's


@pytest.mark.requirement("page.push")
@pytest.mark.long
def test_another_key_of_the_store_subscribes_anew_and_asks_for_the_code_once_more(
    person: Callable[..., Person],
) -> None:
    eva = person("/w/eva3")
    eva.sign_in("globe")
    eva.add()
    before = eva.page.evaluate("localStorage.made")
    eva.demo.command("notices", "renew-push-key")
    eva.open("/")
    until(eva.page, lambda: eva.page.evaluate("localStorage.made") != before)
    eva.open()
    expect(eva.targets().filter(has_text="Works")).to_have_count(0)


@pytest.mark.requirement("page.push")
def test_whatever_the_interface_says_of_targets_has_a_word_on_the_page() -> None:
    schemas, words = json.loads(CONTRACT_FILE.read_bytes())["components"]["schemas"], catalogue("en").named("place")
    delivery, target = (schemas[name]["properties"] for name in ("NoticeDelivery", "NoticeTarget"))
    said = {
        "sent_": [*delivery["what"]["enum"], *delivery["state"]["enum"]],
        "why_": [*delivery["reason"]["enum"], *target["reason"]["enum"]],
        "target_": target["state"]["enum"],
        "digest_": schemas["NoticeSettings"]["properties"]["digest"]["enum"],
        "": delivery["kind"]["enum"],
    }
    missing = [prefix + each for prefix, all_ in said.items() for each in all_ if each and prefix + each not in words]
    assert missing == []


@pytest.mark.requirement("page.push")
def test_what_stands_in_the_way_is_said_and_nothing_is_asked_before_a_press(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/notices")
    assert page.evaluate("Notification.permission") == "default"
    page.get_by_role("button", name="Add this browser").click()
    expect(page.get_by_text("Your browser will ask whether it may show notices.")).to_be_visible()
    page.context.grant_permissions(["geolocation"], origin=demo.origin)  # and no other
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("This browser has been told to show no notices from here.")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Add this browser").click()
    stopped = page.locator("section").get_by_text("This browser has been told to show no notices from here.")
    expect(stopped).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Add this browser")).to_be_visible()
    kind = page.get_by_label("A price that rose")
    kind.select_option("off")
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(kind).to_have_value("now")
    page.get_by_label("Until").fill("06:30")
    page.get_by_role("button", name="Keep quiet then").click()
    expect(page.get_by_role("button", name="No quiet hours")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Until")).to_have_value("06:30")
    page.get_by_role("button", name="No quiet hours").click()
    expect(page.get_by_role("button", name="Keep quiet then")).to_be_visible()
