"""Targets on the page: set, changed, ended and taken back where the month is looked at."""

import pytest
from playwright.sync_api import expect

from tests.page.conftest import Opening, pick

SAID = {
    "en-GB": {
        "set": "Set a target",
        "category": "Category",
        "housing": "Housing",
        "amount": "Amount",
        "period": "Period",
        "save": "Save",
        "change": "Change: Housing",
        "undo": "Undo",
        "left": "Target €1,000.00 monthly · spent €781.00 · €219.00 left",
        "over": "Target €700.00 monthly · spent €781.00 · €81.00 over",
        "held": "It holds from October 2026 until another one does; 0 ends it.",
    },
    "de-DE": {
        "set": "Ziel setzen",
        "category": "Kategorie",
        "housing": "Wohnen",
        "amount": "Betrag",
        "period": "Zeitraum",
        "save": "Speichern",
        "change": "Ändern: Wohnen",
        "undo": "Rückgängig",
        "left": "Ziel 1.000,00 € monatlich · ausgegeben 781,00 € · 219,00 € übrig",
        "over": "Ziel 700,00 € monatlich · ausgegeben 781,00 € · 81,00 € darüber",
        "held": "Er gilt ab Oktober 2026, bis ein anderer gilt; 0 beendet ihn.",
    },
}


@pytest.mark.requirement("page.targets")
@pytest.mark.parametrize("locale", SAID)
@pytest.mark.long
def test_a_target_stands_beside_what_was_spent_and_can_be_taken_back(signed_in: Opening, locale: str) -> None:
    words = SAID[locale]
    page = signed_in("/months?month=2026-10", user="solo", locale=locale)
    targets = page.locator("section.targets")
    lines = targets.locator("li")
    targets.get_by_role("button", name=words["set"]).click()
    expect(targets.locator("p").first).to_contain_text(words["held"])
    expect(targets.get_by_role("button", name=words["save"])).to_be_disabled()
    pick(targets.get_by_label(words["category"]), words["housing"])
    targets.get_by_label(words["amount"]).fill("1000")
    targets.get_by_role("button", name=words["save"]).click()
    expect(lines.locator(".row-about")).to_have_text([words["left"]])
    targets.get_by_role("button", name=words["change"]).click()
    targets.get_by_label(words["amount"]).fill("700")
    targets.get_by_role("button", name=words["save"]).click()
    expect(lines.locator(".row-about")).to_have_text([words["over"]])
    page.get_by_role("button", name=words["undo"]).click()
    expect(lines.locator(".row-about")).to_have_text([words["left"]])
    targets.get_by_role("button", name=words["change"]).click()
    targets.get_by_label(words["amount"]).fill("0")
    targets.get_by_label(words["period"]).select_option("year")
    targets.get_by_role("button", name=words["save"]).click()
    expect(lines).to_have_count(0)
