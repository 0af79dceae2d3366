"""`bankdata demo --live`: a stranger connects a bank from the page alone, with a redirect or a TAN, and renews it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from connectors.connecting import Done, Reply
from connectors.connector import Connection, UserActionRequired
from connectors.sources.demo.live import LiveDemoBank
from handlers.commands.connections import connect_live
from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from tests.browsers import chromium
from tests.conftest import NOW, empty_folder
from tests.live.conftest import Talk
from tests.service.conftest import Served, copied, demo_store, get, running

__all__ = ["chromium", "copied", "demo_store"]  # fixtures of other tests, for these too

pytestmark = pytest.mark.requirement("live.demo")

ENGLISH = {
    "place": "Connections", "connect": "Connect a bank", "way": "Way", "next": "Next", "bank": "To your bank",
    "approve": "Approve", "wrong": "That is not the TAN.", "done": "Demobank is connected.",
    "expired": "Consent has ended", "renew": "Renew Demobank",
}  # fmt: skip
GERMAN = {
    "place": "Verbindungen", "connect": "Bank verbinden", "way": "Weg", "next": "Weiter", "bank": "Zu Ihrer Bank",
    "approve": "Zustimmen", "wrong": "Das ist nicht die TAN.", "done": "Demobank ist verbunden.",
    "expired": "Zustimmung abgelaufen", "renew": "Demobank erneuern",
}  # fmt: skip


@pytest.fixture(scope="module")
def served(copied: Callable[[], Path]) -> Iterator[Served]:
    with running(copied(), arguments=("--live",)) as started:
        yield started
    assert "Traceback" not in started.log.read_text()


@pytest.mark.parametrize(
    ("user", "locale", "words", "way"),
    [("empty", "en-GB", ENGLISH, "tan"), ("solo", "de-DE", GERMAN, "redirect")],
)
@pytest.mark.long
def test_a_stranger_connects_the_demo_bank_from_the_page_and_renews_it(
    served: Served, chromium: Browser, user: str, locale: str, words: dict[str, str], way: str
) -> None:
    browser = chromium.new_context(locale=locale, viewport={"width": 390, "height": 844})
    complaints: list[str] = []
    browser.on("console", lambda message: complaints.append(message.text))
    page = browser.new_page()
    open_connections(page, served, user, words)
    page.get_by_role("link", name=words["connect"]).click()
    page.locator("li", has_text="Demobank").get_by_role("button").click()
    connect(page, words, way)

    served.advance(91 * 86_400)
    served.client(user).post("/sync")  # a consent that is over ends without asking the bank
    browser.clear_cookies()
    open_connections(page, served, user, words)
    expect(page.get_by_role("listitem").filter(has_text="Demobank")).to_contain_text(words["expired"])
    page.get_by_role("link", name=words["connect"]).click()
    page.get_by_role("button", name=words["renew"]).click()
    connect(page, words, way)

    (found,) = [
        each for each in get(served.client(user), "/connections")["connections"] if each["bankName"] == "Demobank"
    ]
    assert found["status"] == "ACTIVE"
    assert complaints == []
    browser.close()


@pytest.mark.long
def test_an_open_page_follows_a_sync_that_something_else_began(served: Served, chromium: Browser) -> None:
    page = chromium.new_page(locale="en-GB")
    served.advance(31 * 60)
    app = served.client("demo")
    jobs = app.post("/sync").json()["syncJobs"]
    open_connections(page, served, "demo", ENGLISH)
    running = page.get_by_text("Syncing…", exact=True)
    expect(running).to_have_count(len(jobs))
    for job in jobs:
        while get(app, f"/sync/{job['syncId']}")["status"] in ("pending", "syncing"):
            pass  # each answer waits for the bank
    expect(running).to_have_count(0)
    page.close()


def open_connections(page: Page, served: Served, user: str, words: dict[str, str]) -> None:
    page.goto(served.address + "/connections")
    page.locator("input:focus").wait_for()  # Chromium complains where somebody types before its autofocus
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", f"demo-{user}-2024")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=words["place"])).to_be_visible()


def connect(page: Page, words: dict[str, str], way: str) -> None:
    page.get_by_label(words["way"]).select_option(way)
    page.get_by_role("button", name=words["next"]).click()
    if way == "tan":
        page.get_by_label("TAN").fill("999999")
        page.get_by_role("button", name=words["next"]).click()
        expect(page.get_by_role("alert")).to_have_text(words["wrong"])
        page.get_by_label("TAN").fill("123456")
        page.get_by_role("button", name=words["next"]).click()
    else:
        page.get_by_role("link", name=words["bank"]).click()
        page.get_by_role("link", name=words["approve"]).click()
    expect(page.get_by_role("status")).to_have_text(words["done"])


def test_who_declines_at_the_demo_bank_gives_no_access() -> None:
    nobody = Connection(id="", user_id="u1", bank_name="", settings={})
    now = datetime(2026, 2, 28, 12)  # noqa: DTZ001 - the store keeps UTC without zone

    def back_with(**returned: str) -> object:
        return LiveDemoBank().next_step(nobody, Reply(return_url="", state="s", returned=returned), now=now)

    assert isinstance(back_with(code="1", state="s"), Done)
    with pytest.raises(UserActionRequired) as refusal:
        back_with(error="access_denied", state="s")
    assert str(refusal.value) == "The demo bank gave no access, because you declined."


@pytest.mark.long
def test_who_connects_by_command_is_told_what_came_and_may_do_it_again_at_once(tmp_path: Path) -> None:
    with closing(open_services(load({}, data_dir=empty_folder(tmp_path / "data")), has_live_demo=True)) as services:
        users.add(
            services.everybody, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW
        )
        first, again = (Talk(["TAN", "123456"], meanwhile=int) for _ in range(2))
        for talk in (first, again):
            connect_live(
                services,
                talk,
                source=LiveDemoBank.name,
                user=users.get_by_name(services.everybody, "eva"),
                bank="Demobank",
            )
    (brought,) = first.lines
    assert brought.startswith("Demobank: 2 new accounts, ")
    assert again.lines == ["Demobank: 0 new accounts, 0 new transactions"]
    assert first.notes[-1] == again.notes[-1] == "Demobank is connected."
