"""One Chromium for tests to open their tabs in, and what a tab that nobody looks at may do without."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

expect.set_options(timeout=30_000)  # as long as Playwright waits for whatever is clicked
FULL = "/usr/bin/chromium"
# The same engine of the same version without the windows around it: half as much work for each tab
SHELL = shutil.which("chromium-headless-shell") or FULL
ARGUMENTS = ("--no-sandbox", "--disable-quic", "--disable-background-networking")


@contextmanager
def running_browser(program: str = SHELL, *further: str) -> Iterator[Browser]:
    """A browser that ends with the block, with `further` arguments. Its event loop would be in the way of tests that
    have their own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=(*ARGUMENTS, *further))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One for the tests of a module."""
    with running_browser() as browser:
        yield browser
