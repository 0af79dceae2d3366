"""The language and the colours that a person has chosen on the page hold on every other page of the service."""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from handlers.oauth.languages import words_for
from tests.contract.demo_server import Demo
from tests.page.conftest import Opening

DARK_PAGE = "rgb(14, 20, 25)"
LIGHT_PAGE = "rgb(243, 245, 248)"


def background(page: Page) -> str:
    """The colour behind everything."""
    painted: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return painted


@pytest.mark.requirement("page.session")
@pytest.mark.parametrize(
    ("locale", "scheme", "colours", "language", "painted", "spoken"),
    [
        ("en-GB", "light", "Dark", "Deutsch", DARK_PAGE, "de"),
        ("de-DE", "dark", "Hell", "English", LIGHT_PAGE, "en"),
    ],
)
@pytest.mark.long
def test_what_was_chosen_on_the_page_holds_on_account_documentation_unknown_addresses_and_sign_in(
    demo: Demo,
    signed_in: Opening,
    complaints: list[str],
    *,
    locale: str,
    scheme: str,
    colours: str,
    language: str,
    painted: str,
    spoken: str,
) -> None:
    page = signed_in("/settings", user="solo", locale=locale, color_scheme=scheme)
    page.get_by_role("button", name=colours, exact=True).click()
    page.get_by_role("button", name=language, exact=True).click()
    expect(page.locator("html")).to_have_attribute("lang", spoken)
    for path in ("/account", "/nowhere/at/all"):
        page.goto(demo.origin + path)
        expect(page.locator("html")).to_have_attribute("lang", spoken)
        assert background(page) == painted
    page.goto(demo.origin + "/docs")
    expect(page.locator(".opblock").first).to_be_visible()
    assert background(page) == painted
    assert page.locator(".masthead p[lang=de]").is_visible() is (spoken == "de")
    page.context.clear_cookies(name="bds_session")
    page.goto(demo.origin + "/")
    expect(page.get_by_label({"de": "Benutzername", "en": "User name"}[spoken])).to_be_visible()
    assert background(page) == painted
    complaints[:] = [told for told in complaints if "404" not in told]


@pytest.mark.requirement("page.session")
def test_a_choice_taken_back_is_forgotten_everywhere(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/settings", user="solo", color_scheme="dark")
    page.get_by_role("button", name="Light").click()
    assert background(page) == LIGHT_PAGE
    page.get_by_role("button", name="Like the device").click()
    page.goto(demo.origin + "/account")
    assert background(page) == DARK_PAGE
    assert {cookie["name"] for cookie in page.context.cookies()} == {"bds_session", "bds_known"}


@pytest.mark.requirement("page.session")
def test_a_choice_from_before_there_were_cookies_holds_from_the_next_visit_on(
    demo: Demo, context: Callable[..., BrowserContext]
) -> None:
    page = context(color_scheme="light").new_page()
    page.goto(demo.origin + "/docs")
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.goto(demo.origin + "/")
    expect(page.get_by_label("User name")).to_be_visible()
    assert background(page) == DARK_PAGE


@pytest.mark.requirement("page.session")
@pytest.mark.parametrize(
    ("accepted", "cookies", "expected"),
    [
        ("de", {}, ("de", "")),
        ("de", {"bds_language": "en", "bds_theme": "dark"}, ("en", "dark")),
        ("en", {"bds_language": "pl", "bds_theme": '"><script>'}, ("en", "")),
        ("pl", {"bds_theme": "light"}, ("en", "light")),
    ],
)
def test_a_cookie_that_says_something_else_says_nothing(
    accepted: str, cookies: dict[str, str], expected: tuple[str, str]
) -> None:
    words = words_for(accepted, cookies)
    assert (words.language, words.theme) == expected
