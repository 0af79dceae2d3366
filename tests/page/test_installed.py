"""The page as an app of its device: what is pushed is shown, whatever it is, and leads behind the sign-in."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page

from tests.contract.demo_server import Demo
from tests.page.conftest import is_shown

SHOWN = """async () => (await (await navigator.serviceWorker.ready).getNotifications())
    .map(({ title, body, tag, data, silent }) => [title, body, tag, data, silent])"""


class Pushed:
    """What a push service would do: it delivers to the worker of a page."""

    def __init__(self, page: Page, origin: str) -> None:
        self._session, self._origin = page.context.new_cdp_session(page), origin
        registrations: list[dict[str, Any]] = []
        self._session.on(
            "ServiceWorker.workerRegistrationUpdated", lambda told: registrations.extend(told["registrations"])
        )
        self._session.send("ServiceWorker.enable")
        until(page, lambda: bool(registrations))
        self._id, self.scope = registrations[0]["registrationId"], registrations[0]["scopeURL"]

    def deliver(self, data: str) -> None:
        of = {"origin": self._origin, "registrationId": self._id}
        self._session.send("ServiceWorker.deliverPushMessage", {**of, "data": data})


def until(page: Page, is_so: Callable[[], bool]) -> None:
    """Look until it is so, for a minute."""
    for _ in range(3000):
        if is_so():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it never came to it")


def shown(page: Page, is_it: Callable[[list[list[Any]]], bool]) -> list[list[Any]]:
    """What the device shows once it is so."""
    found: list[list[Any]] = []

    def look() -> bool:
        found[:] = page.evaluate(SHOWN)
        return bool(found) and is_it(found)

    until(page, look)
    return found


@pytest.fixture
def worked(demo: Demo, whole_browser: Browser) -> Iterator[Callable[[], Page]]:
    """Opens the page in a browser that is allowed to show notices, with its worker at work."""
    opened: list[BrowserContext] = []

    def open_page() -> Page:
        context = whole_browser.new_context(locale="en-GB")
        opened.append(context)
        login = demo.origin + "/oauth/login"
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', context.request.get(login).text()))
        context.request.post(login, form={**hidden, "username": "demo", "password": "demo-demo-2024"})
        page = context.new_page()
        page.goto(demo.origin + "/")
        is_shown(page)
        page.evaluate(REGISTER)
        context.grant_permissions(["notifications"], origin=demo.origin)
        return page

    yield open_page
    for each in opened:
        each.close()


REGISTER = """async () => {
  const policy = trustedTypes.createPolicy("worker", { createScriptURL: () => "/worker.js" });
  await navigator.serviceWorker.register(policy.createScriptURL(""), { scope: "/" });
  await navigator.serviceWorker.ready;
}"""
OTHERS = "() => { trustedTypes.createPolicy('other', { createScriptURL: (each) => each }); }"


@pytest.mark.requirement("page.installed")
def test_every_push_is_shown_one_of_a_tag_takes_the_place_of_the_one_before_and_no_other_policy_is_made(
    demo: Demo, worked: Callable[[], Page]
) -> None:
    page = worked()
    pushed, link = Pushed(page, demo.origin), f"{demo.origin}/?notice=ntc_1"
    assert pushed.scope == f"{demo.origin}/"
    said = {"title": "To look at", "text": "A payment needs a look", "tag": "ntc_1", "link": link}
    pushed.deliver(json.dumps(said))
    assert shown(page, bool) == [["To look at", "A payment needs a look", "ntc_1", link, False]]
    pushed.deliver(json.dumps({**said, "text": "This is over", "isSilent": True}))
    page.wait_for_function(f"async () => (await ({SHOWN})())[0][1] === 'This is over'")
    assert shown(page, bool) == [["To look at", "This is over", "ntc_1", link, True]]
    pushed.deliver("no JSON")  # a browser ends the subscription of a worker that shows nothing
    assert ["Banking Data Service", "", "", f"{demo.origin}/", False] in shown(page, lambda found: len(found) > 1)
    with pytest.raises(Error, match="disallowed"):
        page.evaluate(OTHERS)
