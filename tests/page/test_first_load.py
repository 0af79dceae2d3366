"""What the first load costs, and that what is seen does not move while the rest comes."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.contract.demo_server import Demo, running_demo
from tests.page.conftest import Opening

BYTES_MAX = 100_000  # as they are transferred, of everything that a place loads
SHIFT_MAX = 0.05  # good is below 0.1
PHONE, TABLET, DESKTOP = ({"width": each, "height": height} for each, height in ((390, 844), (768, 1024), (1280, 860)))
WATCHED = """
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) window.shift = (window.shift ?? 0) + each.value;
}).observe({ type: "layout-shift", buffered: true });
"""

DRAWN = "new Promise((drawn) => requestIdleCallback(() => requestAnimationFrame(() => drawn(window.shift ?? 0))))"


def loaded(page: Page, address: str) -> float:
    """How far what is seen has moved until all is there."""
    page.add_init_script(WATCHED)
    page.goto(address)
    expect(page.locator("main .card").first).to_be_visible()
    expect(page.locator("main .bones, main .coming")).to_have_count(0)
    return float(page.evaluate(DRAWN))


@contextmanager
def transferred(page: Page) -> Iterator[list[float]]:
    """How many bytes each of what is loaded meanwhile takes, by a browser that has nothing yet."""
    page.goto("about:blank")  # nothing is on its way any more
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.clearBrowserCache")
    sizes: list[float] = []
    network.on("Network.loadingFinished", lambda told: sizes.append(told["encodedDataLength"]))
    yield sizes
    network.detach()


@pytest.mark.requirement("page.size")
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_the_overview_is_one_request_and_a_hundred_thousand_bytes_and_does_not_move(
    demo: Demo, signed_in: Opening, size: dict[str, int]
) -> None:
    page = signed_in("/settings", viewport=size)
    asked: list[str] = []
    with transferred(page) as sizes:
        page.on("request", lambda request: asked.append(request.url) if "/api/v1/" in request.url else None)
        assert loaded(page, demo.origin + "/") < SHIFT_MAX
    assert [each.partition("/api/v1")[2] for each in asked if "/events" not in each] == ["/overview"]
    assert 50_000 < sum(sizes) < BYTES_MAX


@pytest.mark.requirement("page.size")
def test_the_token_is_asked_for_once_while_the_scripts_are_still_on_their_way(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/settings")
    page.goto("about:blank")
    held: list[Route] = []
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/oauth/authorize" in request.url else None)
    page.route(re.compile(r"/overview\.js$"), lambda route: held.append(route))
    with page.expect_response(re.compile("/oauth/token$")):
        page.goto(demo.origin + "/", wait_until="commit")
    (script,) = held
    script.continue_()
    expect(page.locator(".total .figure data")).to_be_visible()
    assert len(asked) == 1


@pytest.mark.requirement("page.size")
def test_the_largest_other_places_load_little_more(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/settings")
    for place in ("months", "transactions", "settings"):
        with transferred(page) as sizes:
            loaded(page, f"{demo.origin}/{place}")
        assert 50_000 < sum(sizes) < 1.05 * BYTES_MAX, place  # the end of a month has the most rows


@pytest.mark.requirement("page.states")
@pytest.mark.parametrize("size", [PHONE, TABLET, DESKTOP], ids=["phone", "tablet", "desktop"])
@pytest.mark.long
def test_no_place_moves_while_it_loads(demo: Demo, signed_in: Opening, size: dict[str, int]) -> None:
    page = signed_in("/settings", viewport=size)
    places = (
        "transactions", "transactions?category=OTHER", "months", "months?year=2025", "recurring", "merchants",
        "merchants?name=Netflix", "import", "connections", "settings", "notices",
    )  # fmt: skip
    moved = {place: loaded(page, f"{demo.origin}/{place}") for place in places}
    assert {place: shift for place, shift in moved.items() if shift >= SHIFT_MAX} == {}


@pytest.mark.requirement("interface.8.rate")
@pytest.mark.long
def test_whoever_is_signed_in_is_served_where_the_budget_of_the_address_is_spent(
    copied: Callable[[], Path], chromium: Browser
) -> None:
    with running_demo(copied().parent) as limited, closing(chromium.new_context(locale="en-GB")) as browser:
        login = limited.origin + "/oauth/login"
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', browser.request.get(login).text()))
        browser.request.post(login, form={**hidden, "username": "demo", "password": "demo-demo-2024"})
        token = limited.token("demo")
        assert [limited.call("GET", "/accounts", token).status for _ in range(61)][-1] == 429
        page = browser.new_page()
        page.goto(limited.origin)
        expect(page.locator(".total .figure data")).to_be_visible(timeout=15_000)
        expect(page.locator(".banner")).to_have_count(0)
