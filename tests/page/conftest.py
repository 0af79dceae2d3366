"""One demo server and one browser for all tasks that a person does on the page."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, expect

from tests.browsers import ARGUMENTS, FULL, running_browser
from tests.contract.demo_server import Demo, running_demo
from tests.service.conftest import copied, demo_store

__all__ = ["copied", "demo_store"]  # fixtures of the service's tests, for these too

Opening = Callable[..., Page]


@pytest.fixture(scope="session")
def demo(copied: Callable[[], Path]) -> Iterator[Demo]:
    """Changes of one test are seen by the next: tests that change something take their own user or undo it."""
    with running_demo(copied().parent, RATE_LIMIT="off") as running:
        yield running


class Shared:
    """The browser of all tests of this folder that a worker runs one after the other: to start one takes half a second
    of processor time for each module."""

    def __init__(self) -> None:
        self._browser: Browser | None = None
        self._open = ExitStack()

    def browser(self) -> Browser:
        """Started when the first test needs it."""
        if self._browser is None:
            self._browser = self._open.enter_context(running_browser())
        return self._browser

    def end(self) -> None:
        """Its event loop would be in the way of tests that have their own."""
        self._browser = None
        self._open.close()


SHARED = Shared()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The browser ends with the last test of this folder."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        SHARED.end()


@pytest.fixture
def chromium() -> Browser:
    return SHARED.browser()


@pytest.fixture(scope="module")
def whole_browser() -> Iterator[Browser]:
    """The whole Chromium, beside the shell, which shows no notifications."""
    browser = SHARED.browser().browser_type.launch(executable_path=FULL, args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the consoles of this test's tabs said, and what they asked of others than the server."""
    return []


@pytest.fixture
def context(demo: Demo, chromium: Browser, complaints: list[str]) -> Iterator[Callable[..., BrowserContext]]:
    """Opens new browsers; at the end none may have complained or asked anybody else."""
    opened: list[BrowserContext] = []

    def make(**options: Any) -> BrowserContext:
        made = chromium.new_context(**{"locale": "en-GB", "viewport": {"width": 1280, "height": 860}, **options})
        made.on("console", lambda message: complaints.append(_said(message)))
        made.on("weberror", lambda error: complaints.append(str(error.error)))
        made.on("request", lambda request: complaints.extend(_foreign(request, demo)))
        opened.append(made)
        return made

    yield make
    for each in opened:
        each.close()
    assert complaints == []


def _said(message: ConsoleMessage) -> str:
    return f"{message.type}: {message.text}"


def _foreign(request: Request, demo: Demo) -> list[str]:
    is_ours = request.url.startswith((demo.origin + "/", "blob:" + demo.origin))
    return [] if is_ours else [f"asked {request.url}"]


@pytest.fixture
def signed_in(demo: Demo, context: Callable[..., BrowserContext]) -> Opening:
    """Opens an address of the page in a new browser that has a session of this user: tests about the way through the
    sign-in form go it by `sign_in`."""

    def open_page(path: str = "/", *, user: str = "demo", **options: Any) -> Page:
        browser = context(**options)
        login = demo.origin + "/oauth/login"
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', browser.request.get(login).text()))
        browser.request.post(login, form={**hidden, "username": user, "password": f"demo-{user}-2024"})
        page = browser.new_page()
        page.goto(demo.origin + path)
        is_shown(page)
        return page

    return open_page


def sign_in(page: Page, user: str) -> None:
    """Fill in the sign-in form, and wait for the page."""
    page.locator("input:focus").wait_for()  # by the browser itself, which says so where somebody was faster
    page.get_by_label(re.compile("User name|Benutzername")).fill(user)
    page.get_by_label(re.compile("^(Password|Passwort)$")).fill(f"demo-{user}-2024")
    page.keyboard.press("Enter")
    is_shown(page)


def pick(field: Locator, text: str) -> None:
    """Choose what is called so in a field that is typed into."""
    field.fill(text)
    field.page.locator(".picks li", has_text=re.compile(rf"^{re.escape(text)}\b")).first.click()


def is_shown(page: Page) -> None:
    """Wait for the page behind the sign-in."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("navigation")).to_be_visible()
