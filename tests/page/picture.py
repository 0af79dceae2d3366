"""The pictures of README.md and docs/apps.md: `python -m tests.page.picture` makes them anew from the demo."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from tests.browsers import ARGUMENTS, FULL
from tests.contract.demo_server import running_demo

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "page.png"
SETUP_TOKEN = PICTURE.with_name("setup-token.png")
# Machines without a screen have one font, which is for terminals; where Inter is installed it stands in
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<include>/etc/fonts/fonts.conf</include>
<match><test name="family"><string>system-ui</string></test>
<edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match></fontconfig>"""


def make(picture: Path, setup_token: Path) -> None:
    """The overview of the demo's first user, as it is on a screen of 1280 by 860, and the form for a setup token."""
    with TemporaryDirectory() as folder, running_demo(Path(folder)) as demo, sync_playwright() as playwright:
        fonts = Path(folder) / "fonts.conf"
        fonts.write_text(FONTS)
        browser = playwright.chromium.launch(
            executable_path=FULL,
            args=ARGUMENTS,
            env={**os.environ, "FONTCONFIG_FILE": str(fonts)},
        )
        page = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-GB").new_page()
        page.goto(demo.origin)
        page.get_by_label("User name").fill("demo")
        page.get_by_label("Password").fill("demo-demo-2024")
        page.keyboard.press("Enter")
        page.locator(".rows li").first.wait_for()
        page.locator(".total .course").wait_for()
        page.screenshot(path=picture)
        page.goto(f"{demo.origin}/account#simplefin")
        page.get_by_text("Make a setup token").click()
        page.get_by_label("Name of the app").fill("Actual")
        page.locator("section[aria-labelledby=simplefin]").screenshot(path=setup_token)
        browser.close()


if __name__ == "__main__":
    make(PICTURE, SETUP_TOKEN)
