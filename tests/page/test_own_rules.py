"""Rules of a person's own on the page: changed, ordered and taken back by keyboard; and filters by what they give."""

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.conftest import Opening, pick

SAID = {
    "en-GB": {
        "rules": "Your rules",
        "none": "You have no rules of your own yet.",
        "new": "New rule",
        "add": "Add rule",
        "if": "If",
        "category": "Category",
        "tags": "Tags",
        "tag_hint": "Its tags are on every transaction that it fits.",
        "needs": "A rule needs a text to look for, and a category, a name or tags to give.",
        "changes": r"^It will change \d+ transactions?, and apply to future ones\.",
        "edit": "Change rule",
        "change": "Change: ",
        "save": "Save",
        "remove": "Remove: ",
        "earlier": "Move up: ",
        "later": "Move down: ",
        "undo": "Undo",
        "cancel": "Cancel",
        "ordered": r"Order changed: \d+ transactions? changed\.",
        "changed": r"Rule changed: \d+ transactions? changed\.",
        "first": "Any text contains “spotify”",
        "second": "Any text contains “spot”",
        "other": "Any text contains “netflix”",
        "music": "Music and audio books",
        "health": "Health",
        "subscriptions": "Subscriptions",
        "all_tags": "All tags",
        "found": r"^\d+ transactions$",
    },
    "de-DE": {
        "rules": "Ihre Regeln",
        "none": "Sie haben noch keine eigenen Regeln.",
        "new": "Neue Regel",
        "add": "Regel anlegen",
        "if": "Wenn",
        "category": "Kategorie",
        "tags": "Schlagwörter",
        "tag_hint": "Ihre Schlagwörter stehen an jeder Buchung, auf die sie passt.",
        "needs": "Eine Regel braucht einen Text, nach dem sie sucht, und eine Kategorie, einen Namen oder "
        "Schlagwörter.",
        "changes": r"^Sie ändert \d+ Buchung(en)? und gilt für alle künftigen\.",
        "edit": "Regel ändern",
        "change": "Ändern: ",
        "save": "Speichern",
        "remove": "Entfernen: ",
        "earlier": "Nach oben: ",
        "later": "Nach unten: ",
        "undo": "Rückgängig",
        "cancel": "Abbrechen",
        "ordered": r"Reihenfolge geändert: \d+ Buchung(en)? geändert\.",
        "changed": r"Regel geändert: \d+ Buchung(en)? geändert\.",
        "first": "Beliebiger Text enthält „spotify“",
        "second": "Beliebiger Text enthält „spot“",
        "other": "Beliebiger Text enthält „netflix“",
        "music": "Musik und Hörbücher",
        "health": "Gesundheit",
        "subscriptions": "Abos",
        "all_tags": "Alle Schlagwörter",
        "found": r"^\d+ Buchungen$",
    },
}


def rule_of(page: Page, words: dict[str, str], value: str, place: str, tag: str = "") -> None:
    """Add a rule, and wait for it."""
    page.get_by_role("button", name=words["new"]).click()
    form = page.get_by_role("form", name=words["new"])
    expect(form.get_by_label(words["if"], exact=True)).to_be_focused()
    expect(form.get_by_text(words["needs"])).to_be_visible()
    form.get_by_label(words["if"], exact=True).fill(value)
    form.get_by_label(words["tags"]).fill(tag)  # counts as it is typed, without a press
    if place:
        pick(form.get_by_label(words["category"]), place)
    expect(form.get_by_text(re.compile(words["changes"]))).to_be_visible()
    expect(form.get_by_text(words["tag_hint"])).to_have_count(1 if tag else 0)
    form.get_by_role("button", name=words["add"]).click()
    expect(form).to_have_count(0)
    added = lines(page).filter(has_text=re.compile(rf"\b{re.escape(value)}\b"))  # in the list, which is read anew
    expect(added).not_to_have_count(0)


def lines(page: Page) -> Locator:
    return page.locator(".rules > li .row-title")


@pytest.mark.requirement("page.own_rules")
@pytest.mark.parametrize("locale", SAID)
@pytest.mark.long
def test_rules_are_ordered_changed_and_brought_back_by_keyboard(signed_in: Opening, locale: str) -> None:
    words = SAID[locale]
    page = signed_in("/settings", user="solo", locale=locale)
    card = page.get_by_role("region", name=words["rules"])
    rule_of(page, words, "spotify", words["music"])
    rule_of(page, words, "spot", words["health"])
    expect(lines(page)).to_have_text([words["first"], words["second"]])
    expect(card.get_by_role("button", name=words["earlier"] + words["first"])).to_be_disabled()
    expect(card.get_by_role("button", name=words["later"] + words["second"])).to_be_disabled()

    earlier = card.get_by_role("button", name=words["earlier"] + words["second"])
    earlier.press("Enter")
    expect(lines(page)).to_have_text([words["second"], words["first"]])
    expect(page.get_by_text(re.compile(words["ordered"]))).to_be_visible()
    expect(card.get_by_role("button", name=words["later"] + words["second"])).to_be_focused()  # where it cannot go on
    page.get_by_role("button", name=words["undo"], exact=True).press("Enter")
    expect(lines(page)).to_have_text([words["first"], words["second"]])

    held: list[Route] = []
    page.route("**/rules/order", lambda route: held.append(route), times=1)
    with page.expect_request("**/rules/order"):
        earlier.press("Enter")
    page.get_by_role("button", name=words["new"]).click()
    typed = page.get_by_role("form", name=words["new"]).get_by_label(words["if"], exact=True)
    typed.fill("who types meanwhile goes on")
    held[0].continue_()
    expect(lines(page)).to_have_text([words["second"], words["first"]])
    expect(typed).to_be_focused()
    page.get_by_role("button", name=words["cancel"], exact=True).click()
    page.get_by_role("button", name=words["undo"], exact=True).press("Enter")
    expect(lines(page)).to_have_text([words["first"], words["second"]])

    change = card.get_by_role("button", name=words["change"] + words["first"])
    change.press("Enter")
    form = page.get_by_role("form", name=words["edit"])
    value = form.get_by_label(words["if"], exact=True)
    expect(value).to_be_focused()
    expect(form.get_by_label(words["category"])).to_have_value(words["music"])
    value.fill("netflix")
    form.get_by_label(words["tags"]).fill("films")
    form.get_by_label(words["tags"]).press("Enter")
    expect(form.get_by_role("button", name=words["remove"] + "films")).to_be_visible()
    expect(form.get_by_text(re.compile(words["changes"]))).to_be_visible()
    form.get_by_role("button", name=words["save"]).press("Enter")
    expect(page.get_by_text(re.compile(words["changed"]))).to_be_visible()
    expect(lines(page)).to_have_text([words["other"], words["second"]])
    expect(page.locator(".rules .row-about").first).to_have_text(f"{words['music']} · {words['tags']}: films")
    expect(card.get_by_role("button", name=words["change"] + words["other"])).to_be_focused()
    page.get_by_role("button", name=words["undo"], exact=True).press("Enter")
    expect(lines(page)).to_have_text([words["first"], words["second"]])
    expect(page.locator(".rules .row-about").first).to_have_text(words["music"])

    card.get_by_role("button", name=words["remove"] + words["first"]).press("Enter")
    expect(lines(page)).to_have_text([words["second"]])
    page.get_by_role("button", name=words["undo"], exact=True).press("Enter")
    expect(lines(page)).to_have_text([words["first"], words["second"]])  # in its old place
    for rule in (words["first"], words["second"]):
        card.get_by_role("button", name=words["remove"] + rule).click()
    expect(card.get_by_text(words["none"])).to_be_visible()


@pytest.mark.requirement("page.own_filters")
@pytest.mark.parametrize("locale", SAID)
@pytest.mark.long
def test_transactions_are_filtered_by_finer_category_and_tag(signed_in: Opening, locale: str) -> None:
    words = SAID[locale]
    page = signed_in("/transactions?category=MUSIC_AUDIO", user="solo", locale=locale)
    filters, found = page.get_by_role("search"), page.get_by_text(re.compile(words["found"]))
    expect(found).to_be_visible()
    music = found.inner_text()
    expect(filters.get_by_label(words["category"])).to_have_value(words["music"])
    expect(filters.get_by_label(words["tags"])).to_have_count(0)  # where there are none
    origin = page.url.split("/transactions")[0]
    page.goto(origin + "/settings")
    rule_of(page, words, "spotify", "", tag="listen")
    page.goto(origin + "/transactions")
    filters.get_by_label(words["tags"]).select_option("listen")
    expect(page).to_have_url(re.compile(r"\?tag=listen$"))
    expect(found).to_have_text(music)
    pick(filters.get_by_label(words["category"]), words["health"])
    expect(found).not_to_have_text(music)
    pick(filters.get_by_label(words["category"]), words["subscriptions"])
    expect(found).to_have_text(music)
    filters.get_by_label(words["tags"]).select_option(label=words["all_tags"])
    expect(found).not_to_have_text(music)
    page.goto(origin + "/settings")
    page.get_by_role("button", name=words["remove"] + words["first"]).click()
    expect(page.get_by_text(words["none"])).to_be_visible()
