"""A household from nothing: the first start's link, a file, an invitation with accounts, the partner who accepts it and
sees them, and its end."""

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.contract.demo_server import COMMAND, environment

WORDS = "kettle orchard 17 lamps"
CSV = b"Date,Payee,Amount,Balance\n2026-11-02,Netflix,-12.99,987.01\n2026-11-03,REWE,-30.00,957.01\n"
LINK = re.compile(r"http://\S+/join#[\w-]{43}")
START_SECONDS = 120


@pytest.fixture
def first_link(tmp_path: Path) -> Iterator[str]:
    """What `bankdata serve` prints over a store without people."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [COMMAND, "serve", "--data", str(tmp_path / "data"), "--port", str(port)],
            env=environment(),
            stdout=written,
            stderr=written,
        )
    try:
        ends = time.monotonic() + START_SECONDS
        while (found := LINK.search(log.read_text())) is None and time.monotonic() < ends:
            time.sleep(0.1)
        assert found is not None, log.read_text()
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)


def comes_in(page: Page, link: str, name: str) -> None:
    page.goto(link)
    page.locator("input[name=username]").fill(name)
    page.locator("input[name=new_password]").fill(WORDS)
    page.locator("input[name=repeated_password]").fill(WORDS)
    page.get_by_role("button", name="Come in").click()


@pytest.mark.long
@pytest.mark.requirement("household.walk")
def test_two_people_begin_share_and_part_without_a_document(first_link: str, chromium: Browser) -> None:
    origin = first_link.partition("/join")[0]
    eva = chromium.new_context(locale="en-GB", viewport={"width": 1280, "height": 860}).new_page()
    ben = chromium.new_context(locale="en-GB", viewport={"width": 390, "height": 844}).new_page()
    comes_in(eva, first_link, "eva")
    expect(eva.get_by_role("heading", name="Welcome. Add your accounts.")).to_be_visible()
    eva.set_input_files("input[type=file]", {"name": "giro.csv", "mimeType": "text/csv", "buffer": CSV})
    eva.get_by_role("button", name="Import 2 new transactions").click()
    expect(eva.get_by_role("button", name="Undo: giro.csv")).to_be_visible()
    eva.goto(origin + "/account")
    eva.get_by_role("link", name="Share accounts").click()
    eva.get_by_role("checkbox").first.check()
    eva.get_by_label("Current password").fill(WORDS)
    eva.get_by_role("button", name="Invite and offer it").click()
    invitation = LINK.search(eva.locator("main").inner_text())
    assert invitation is not None
    comes_in(ben, invitation[0], "ben")
    ben.get_by_role("button", name="Accept what eva offers").click()
    ben.get_by_role("link", name="See your money").click()
    expect(ben.locator("main .total .figure data")).to_have_attribute("value", "957.01")
    eva.goto(origin + "/account/shares")
    eva.get_by_role("button", name="End what you share with ben").click()
    expect(eva.get_by_role("status")).to_contain_text("It has ended.")
    expect(ben.get_by_role("heading", name="Welcome. Add your accounts.")).to_be_visible()
