"""Choosing how a CSV file is read, in a real Chromium: by keyboard, kept, and then asked about no more."""

import re
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening

FEBRUARY = "Datum;Wer;Betrag\n02.02.2026;Rewe;3,50\n03.02.2026;Kino;12,00\n"
MARCH = "Datum;Wer;Betrag\n02.03.2026;Rewe;4,10\n"

pytestmark = pytest.mark.requirement("layouts.page")


def kept_of(page: Page) -> Locator:
    """The list of what is kept. It comes after an import, and a file that was chosen can be removed as well."""
    return page.get_by_role("region", name="Remembered for files like them")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.long
def test_the_signs_of_a_file_are_chosen_and_kept_and_the_next_file_is_imported_without_a_question(
    demo: Demo, signed_in: Opening, tmp_path: Path, width: int
) -> None:
    for name, text in (("february.csv", FEBRUARY), ("march.csv", MARCH)):
        (tmp_path / name).write_text(text)
    page = signed_in("/import", user="empty", viewport={"width": width, "height": 860})
    page.get_by_label("Choose files", exact=True).set_input_files([tmp_path / "february.csv"])
    file = page.get_by_role("region", name="february.csv")
    expect(file.get_by_text("nothing in it says what was spent")).to_be_visible()
    expect(file.get_by_label("Betrag", exact=True)).to_have_value("amount")
    expect(file.get_by_text("3,50")).to_be_visible()
    file.get_by_label("Wer", exact=True).select_option(label="Payee or payer")
    file.get_by_label("What was spent", exact=True).select_option(label="has no minus")
    file.get_by_label("Currency", exact=True).fill("CHF")
    page.keyboard.press("Enter")
    expect(file.get_by_text("2 new · 0 known")).to_be_visible()
    expect(file.get_by_label("Currency", exact=True)).to_be_focused()
    expect(file.locator("data.money").first).to_have_text(re.compile("^\u2212.*3\\.50"))
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    file.get_by_label("Remember this, with the account, for files like it").check()
    file.get_by_role("button", name="Import 2 new transactions").click()
    expect(file.get_by_text("Imported: 2 new transactions.")).to_be_visible()
    page.get_by_label("Choose files", exact=True).set_input_files([tmp_path / "march.csv"])
    march = page.get_by_role("region", name="march.csv")
    expect(march.get_by_text("1 new · 0 known")).to_be_visible()
    expect(march.get_by_role("combobox", name="Which account is this file about?")).to_have_count(0)
    march.get_by_role("button", name="Import 1 new transaction").click()
    expect(march.get_by_text("Imported: 1 new transaction.")).to_be_visible()
    token = demo.token("empty")
    [account] = demo.read("/accounts", token)["accounts"]
    rows = demo.read(f"/transactions?accountIds={account['id']}", token)["transactions"]
    assert [(row["amount"], row["currency"]) for row in rows] == [(-4.1, "CHF"), (-12, "CHF"), (-3.5, "CHF")]
    kept_of(page).get_by_role("button", name="Remove: february.csv").last.click()
    expect(page.get_by_text("You will be asked again.")).to_be_visible()
    for undone in ("march.csv", "february.csv"):
        page.get_by_role("button", name=f"Undo: {undone}").click()
        page.get_by_role("button", name="Undo import").click()
        expect(page.get_by_role("button", name=f"Undo: {undone}")).to_have_count(0)
    assert demo.read("/accounts", token)["accounts"] == []


def test_words_say_what_was_spent_and_a_choice_without_an_amount_is_not_tried(
    signed_in: Opening, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("Datum;Wer;Was;Betrag\n02.02.2026;Rewe;weg;3,50\n03.02.2026;Eva;da;12,00\n")
    page = signed_in("/import", user="empty", locale="de-DE")
    page.get_by_label("Dateien auswählen", exact=True).set_input_files([tmp_path / "a.csv"])
    file = page.get_by_role("region", name="a.csv")
    file.get_by_label("Was", exact=True).select_option(label="Ausgang oder Eingang")
    file.get_by_label("Wörter für Ausgaben", exact=True).fill("weg, fort")
    file.get_by_label("Betrag", exact=True).select_option(label="nicht verwendet")
    expect(file.get_by_text("Es fehlt Buchungstag oder Betrag.")).to_be_visible()
    file.get_by_role("button", name="Neue Vorschau").press("Enter")
    expect(file.get_by_text("Nicht importiert.")).to_be_visible()
    file.get_by_label("Betrag", exact=True).select_option(label="Betrag")
    file.get_by_role("button", name="Neue Vorschau").press("Enter")
    expect(file.get_by_text("2 neu · 0 bekannt")).to_be_visible()
    money = file.locator("data.money")
    assert [money.nth(place).get_attribute("value") for place in (0, 1)] == ["-3.5", "12"]
    file.get_by_role("button", name="Entfernen: a.csv").click()


@pytest.mark.long
def test_of_a_container_each_layout_is_chosen_by_itself(demo: Demo, signed_in: Opening, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "all.zip", "w") as container:
        container.writestr("february.csv", FEBRUARY)
        container.writestr("march.csv", MARCH)  # has the layout of the first
        container.writestr("other.csv", "Tag;Name;Summe;Zweck\n02.02.2026;Eva;8,50;Geschenk\n")
    page = signed_in("/import", user="empty")
    page.get_by_label("Choose files", exact=True).set_input_files([tmp_path / "all.zip"])
    file = page.get_by_role("region", name="all.zip")
    expect(file.get_by_text("nothing in it says what was spent")).to_be_visible()
    expect(file.get_by_role("form")).to_have_count(2)
    for number, currency in ((1, "CHF"), (2, "SEK")):
        form = file.get_by_role("form", name=f"How the columns were read {number}")
        form.get_by_label("What was spent", exact=True).select_option(label="has no minus")
        form.get_by_label("Currency", exact=True).fill(currency)
        form.get_by_role("button", name="Preview again").press("Enter")
    expect(file.get_by_text("4 new · 0 known")).to_be_visible()
    file.get_by_role("button", name="Import 4 new transactions").click()
    expect(file.get_by_text("Imported: 4 new transactions.")).to_be_visible()
    token = demo.token("empty")
    ids = ",".join(each["id"] for each in demo.read("/accounts", token)["accounts"])
    rows = demo.read(f"/transactions?accountIds={ids}", token)["transactions"]
    assert sorted((row["amount"], row["currency"]) for row in rows) == [
        (-12, "CHF"),
        (-8.5, "SEK"),
        (-4.1, "CHF"),
        (-3.5, "CHF"),
    ]
    file.get_by_role("button", name="Undo").click()
    expect(file.get_by_text("The import was taken back.")).to_be_visible()


@pytest.mark.long
def test_of_a_container_a_guess_that_was_right_is_kept_beside_what_was_chosen(
    demo: Demo, signed_in: Opening, tmp_path: Path
) -> None:
    with ZipFile(tmp_path / "two.zip", "w") as container:
        container.writestr("right.csv", "Datum;Wer;Betrag\n02.02.2026;Rewe;-3,50\n")
        container.writestr("other.csv", "Tag;Name;Summe\n02.02.2026;Eva;8,50\n")
    page = signed_in("/import", user="empty")
    page.get_by_label("Choose files", exact=True).set_input_files([tmp_path / "two.zip"])
    file = page.get_by_role("region", name="two.zip")
    form = file.get_by_role("form", name="How the columns were read 2")
    form.get_by_label("What was spent", exact=True).select_option(label="has no minus")
    form.get_by_role("button", name="Preview again").press("Enter")
    expect(file.get_by_text("2 new · 0 known")).to_be_visible()
    form.get_by_label("Remember this, with the account, for files like it").check()
    file.get_by_role("button", name="Import 2 new transactions").click()
    expect(file.get_by_text("Imported: 2 new transactions.")).to_be_visible()
    assert len(demo.read("/layouts", demo.token("empty", "write:imports"))["layouts"]) == 2
    for _ in range(2):
        kept_of(page).get_by_role("button", name="Remove: two.zip").last.click()
        expect(page.get_by_text("You will be asked again.").last).to_be_visible()
    file.get_by_role("button", name="Undo").click()
    expect(file.get_by_text("The import was taken back.")).to_be_visible()
