"""Choices that are found by typing, and the way back to where one was."""

import re

import pytest
from playwright.sync_api import Page, expect

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
    pick(page.get_by_label("Empfänger oder Auftraggeber"), "Spotify")
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
