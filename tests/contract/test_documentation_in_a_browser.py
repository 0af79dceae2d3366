"""The documentation page in a real Chromium: signing in, staying so, leaving; dark, and read aloud."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browsers import running_browser
from tests.contract.demo_server import COMMAND, Demo, environment, running_demo

NPM = Path(__file__).parents[1] / "clients" / "npm" / "install.sh"

# What axe-core 4.10.3 finds in Swagger UI 5.35.0 itself: rules of impact "serious" or "critical"
SWAGGER_UI = {"button-name", "color-contrast", "nested-interactive", "select-name"}


@pytest.fixture(scope="module")
def demo(copied: Callable[[], Path]) -> Iterator[Demo]:
    with running_demo(copied().parent, RATE_LIMIT="off") as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A tab of a new browser that complains about nothing but refused requests."""
    complaints: list[str] = []
    context = chromium.new_context()
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert [told for told in complaints if "401" not in told] == []


def authorize(page: Page, *, is_new: bool) -> str:
    """Sign in by the Authorize button; the text of the consent page."""
    page.locator(".auth-wrapper > .authorize").click()
    expect(page.locator("#client_id_authorizationCode")).to_have_value("bankdata-documentation")
    expect(page.locator("#client_secret_authorizationCode")).to_have_count(0)
    expect(page.get_by_text("client_secret")).to_be_hidden()
    with page.expect_popup() as opened:
        page.locator(".auth-btn-wrapper .authorize").click()
    form = opened.value
    if is_new:
        form.locator("input:focus").wait_for()  # Chromium complains where somebody types before its autofocus
        form.fill("#username", "solo")
        form.fill("#password", "demo-solo-2024")
        form.keyboard.press("Enter")
    form.wait_for_selector("button[value=allow]")
    text = form.inner_text("main")
    with form.expect_event("close"):
        form.click("button[value=allow]")
    page.locator(".auth-btn-wrapper").get_by_text("Logout").wait_for()
    page.locator(".auth-container .btn-done").click()
    return text


def accounts(page: Page) -> int:
    """The status of GET /accounts, asked by the page."""
    page.get_by_role("button", name=re.compile("Try it out|Execute")).first.wait_for()
    if page.get_by_role("button", name="Try it out").is_visible():
        page.get_by_role("button", name="Try it out").click()
    with page.expect_response("**/api/v1/accounts") as tried:
        page.get_by_role("button", name="Execute").click()
    return tried.value.status


def grants(demo: Demo) -> int:
    """How many apps the user has connected, in the words of the command line."""
    told = subprocess.run(
        [COMMAND, "grants", "list", "--user", "solo", "--data", str(demo.folder)],
        env=environment(), check=True, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    return told.count("Interface documentation")


@pytest.mark.requirement("docs.sign-in")
@pytest.mark.long
def test_a_sign_in_lasts_as_long_as_its_tab_and_ends_with_logout(demo: Demo, page: Page) -> None:
    page.goto(f"{demo.origin}/docs#/Accounts/listAccounts")
    assert "Part of this service" in authorize(page, is_new=True)
    assert accounts(page) == 200
    page.reload()
    assert accounts(page) == 200
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"

    with page.context.expect_page() as opened:
        page.evaluate("url => void open(url, '_blank', 'noopener')", f"{demo.origin}/docs#/Accounts/listAccounts")
    other = opened.value
    assert accounts(other) == 401
    authorize(other, is_new=False)
    assert (accounts(other), accounts(page), grants(demo)) == (200, 401, 1)

    other.locator(".auth-wrapper > .authorize").click()
    with other.expect_response("**/oauth/revoke") as ended:
        other.locator(".auth-btn-wrapper").get_by_text("Logout").click()
    assert ended.value.status == 200
    assert grants(demo) == 0
    other.reload()
    assert accounts(other) == 401


def serious_faults(page: Page) -> set[tuple[str, bool]]:
    """The rules that are broken, and whether by an element of ours."""
    found = page.evaluate(
        """axe.run().then(({ violations }) => violations
            .filter(({ impact }) => impact === "serious" || impact === "critical")
            .flatMap(({ id, nodes }) => nodes.map(({ target }) =>
                [id, document.querySelector(target[0]).closest(".swagger-ui") === null])))"""
    )
    return {(rule, is_ours) for rule, is_ours in found}


@pytest.mark.requirement("docs.page")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_what_is_ours_on_the_page_has_no_serious_fault_of_accessibility(
    demo: Demo, chromium: Browser, scheme: Literal["light", "dark"]
) -> None:
    packages = subprocess.run(["bash", NPM], check=True, capture_output=True, text=True, timeout=600).stdout.strip()
    axe = (Path(packages) / "node_modules/axe-core/axe.min.js").read_text()
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{demo.origin}/docs#/Accounts/listAccounts")
    page.get_by_role("button", name="Try it out").wait_for()
    assert page.evaluate("document.documentElement.classList.contains('dark-mode')") == (scheme == "dark")
    page.evaluate(axe)
    found = serious_faults(page)
    page.locator(".auth-wrapper > .authorize").click()
    page.locator(".modal-ux").wait_for()
    found |= serious_faults(page)
    context.close()
    assert {rule for rule, is_ours in found if is_ours} == set()
    assert {rule for rule, _ in found} == SWAGGER_UI
