"""What was said stays below a dialog, names of any length open whole, and amounts stay on the screen."""

import pytest
from playwright.sync_api import expect

from tests.page.conftest import Opening, pick
from tests.page.test_late_answers import held

LONG = "Gesellschaft zur Erhaltung sehr langer Namen auf kleinen Bildschirmen mbH"
BEYOND = """[...document.querySelectorAll("main .pill, main .money")]
    .filter((each) => each.getBoundingClientRect().right > 320).map((each) => each.textContent)"""


@pytest.mark.requirement("page.states")
def test_what_was_said_stays_below_a_dialog_and_an_undo_says_that_it_runs(signed_in: Opening) -> None:
    page = signed_in("/transactions", user="solo")
    row = page.locator(".long-list a").first
    row.click()
    dialog = page.get_by_role("dialog")
    pick(dialog.get_by_label("Category", exact=True), "Health")
    dialog.get_by_label("Which transactions").select_option("one")
    dialog.get_by_role("button", name="Correct", exact=True).click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("Corrected: 1 transaction.")
    row.click()
    expect(dialog.get_by_role("heading", level=3).first).to_be_visible()
    expect(toast).to_have_count(0)
    dialog.get_by_role("button", name="Close").click()
    expect(toast).to_contain_text("Corrected: 1 transaction.")
    let_go = held(page, "**/annotation", "PATCH")
    toast.get_by_role("button", name="Undo").click()
    expect(toast).to_have_text("One moment…")
    let_go()
    expect(toast).to_have_text("Undone.")


@pytest.mark.requirement("page.states")
def test_a_very_long_name_ends_in_an_ellipsis_and_opens_whole(signed_in: Opening) -> None:
    page = signed_in(f"/merchants?name={LONG}", viewport={"width": 320, "height": 700})
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text(f"{LONG[:60].rstrip()}…")
    title.get_by_role("button").press("Enter")
    expect(title).to_have_text(LONG)
    assert page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.requirement("page.accessible")
def test_recurring_payments_in_french_fit_the_smallest_screen(signed_in: Opening) -> None:
    page = signed_in("/recurring", user="globe", locale="fr-FR", viewport={"width": 320, "height": 700})
    expect(page.locator(".payments .pill.good").first).to_be_visible()
    assert page.evaluate(BEYOND) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320
