"""Choices that are found by typing, and the way back to where one was."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening, pick

PHONE = {"width": 390, "height": 844}


@pytest.mark.requirement("page.own_filters")
def test_a_category_a_payee_and_a_month_are_found_by_typing_and_chosen_by_keyboard(signed_in: Opening) -> None:
    page = signed_in("/transactions", locale="de-DE")
    category, options = page.get_by_label("Kategorie", exact=True), page.locator(".picks li")
    category.focus()
    page.keyboard.press("ArrowDown")
    expect(options).to_have_count(134)
    page.keyboard.type("backerei")
    expect(options).to_have_text(["Bäckerei Lebensmittel"])
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    expect(category).to_have_value("Alle Kategorien")
    expect(page).to_have_url(re.compile("/transactions$"))
    page.keyboard.type("gesundheit")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("category=HEALTH"))
    expect(category).to_have_value("Gesundheit")
    pick(page.get_by_label("Zeitraum"), "Oktober 2026")
    expect(page).to_have_url(re.compile("from=2026-10-01&to=2026-10-31"))
    expect(page.locator("input[type=date]")).to_have_count(0)
    pick(category, "Alle Kategorien")
    payee = page.get_by_label("Empfänger oder Auftraggeber")
    pick(payee, "Bargeld")
    expect(page).to_have_url(re.compile("merchant=Cash"))
    expect(payee).to_have_value("Bargeld")
    pick(payee, "Spotify")
    expect(page).to_have_url(re.compile("merchant=Spotify"))
    expect(page.locator(".long-list .row-title").first).to_have_text("Spotify")


def stands(page: Page) -> list[float]:
    """How far the page is scrolled, and where row 38 is then."""
    found: list[float] = page.evaluate(
        "[scrollY, document.querySelector(\"a[data-index='38']\").getBoundingClientRect().top]"
    )
    return found


@pytest.mark.requirement("page.tasks")
def test_back_leads_to_where_one_was_and_on_a_phone_each_row_says_its_day(signed_in: Opening) -> None:
    page = signed_in("/transactions", viewport=PHONE)
    expect(page.locator(".long-list a.row").first).to_be_visible()
    expect(page.locator(".long-list .row-day:visible")).to_have_count(page.locator(".long-list a.row").count())
    page.evaluate("scrollTo(0, 2500)")
    expect(page.locator("a[data-index='38']")).to_be_visible()
    stood = stands(page)
    page.wait_for_timeout(500)
    while stood != (stood := stands(page)):  # what is above it may still be growing
        page.wait_for_timeout(500)
    page.locator("a[data-index='38']").click()
    page.get_by_role("dialog").get_by_role("link").last.click()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("a[data-index='38']")).to_be_in_viewport()
    assert stands(page) == stood


@pytest.mark.requirement("page.tasks")
def test_on_a_small_phone_bookings_are_on_the_first_screen_and_fields_look_like_each_other(signed_in: Opening) -> None:
    page = signed_in("/transactions", viewport={"width": 375, "height": 667})
    row, places = page.locator("a[data-index='0']"), page.get_by_role("navigation")
    expect(page.locator(".totals .figures")).to_be_visible()
    expect(row).to_be_visible()
    ends, begins = row.bounding_box(), places.bounding_box()
    assert ends is not None
    assert begins is not None
    assert ends["y"] + ends["height"] < begins["y"]
    row.click()
    note = page.get_by_label("Note", exact=True)
    expect(note).to_have_css("border-radius", "8px")
    wide, sheet = note.bounding_box(), page.get_by_role("dialog").bounding_box()
    assert wide is not None
    assert sheet is not None
    assert wide["width"] > sheet["width"] * 0.9
    page.goto(page.url.partition("/transactions")[0] + "/months")
    page.get_by_role("button", name="Set a target").click()
    expect(page.get_by_label("Category", exact=True)).to_have_value("Category")
    expect(page.get_by_label("Amount", exact=True)).to_have_attribute("placeholder", "Amount")


@pytest.mark.requirement("oauth.consent")
def test_consent_says_folded_what_was_chosen(demo: Demo, context: Callable[..., BrowserContext]) -> None:
    browser = context()
    asked = {"client_name": "Budget", "redirect_uris": [back := "http://127.0.0.1:3999/callback"]}
    registered = browser.request.post(demo.origin + "/oauth/register", data=asked)
    challenge = urlsafe_b64encode(sha256(b"v" * 43).digest()).rstrip(b"=").decode()
    wanted = {"response_type": "code", "client_id": registered.json()["client_id"], "redirect_uri": back, "state": "x"}
    pkce = {"scope": "read:accounts", "code_challenge": challenge, "code_challenge_method": "S256"}
    page = browser.new_page()
    page.goto(f"{demo.origin}/oauth/authorize?{urlencode({**wanted, **pkce})}")
    page.locator("input:focus").wait_for()
    page.get_by_label("User name").fill("demo")
    page.get_by_label("Password", exact=True).fill("demo-demo-2024")
    page.keyboard.press("Enter")
    summary, below = page.locator("summary"), page.locator(".reassurance")
    said = "Choose accounts and details:"
    expect(summary).to_have_text(f"{said} 4 of 4 accounts. Access ends after 365 days.", use_inner_text=True)
    summary.click()
    page.get_by_label("Tagesgeld").uncheck()
    page.get_by_label("Access ends after").select_option("7 days")
    summary.click()
    expect(summary).to_have_text(f"{said} the accounts that you ticked. Access ends after 7 days.", use_inner_text=True)
    expect(below).to_contain_text("ends after 7 days at the latest", use_inner_text=True)
    expect(below).not_to_contain_text("365", use_inner_text=True)
