"""What a person sees: whole words, names that tell apart, known amounts, and a question before something goes."""

import re
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.contract.demo_server import Demo
from tests.days import whole_day
from tests.page.conftest import Opening, pick
from tests.page.test_in_a_browser import ids

PHONE = {"width": 390, "height": 844}
CSV = "Date,Payee,Amount\n2026-03-02,Netflix,-12.99\n"
CUT_OFF = """(selector) => [...document.querySelectorAll(selector)]
    .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent)"""


def cut_off(page: Page, selector: str) -> list[str]:
    """The texts of which a part is hidden for want of room."""
    found: list[str] = page.evaluate(CUT_OFF, selector)
    return found


@pytest.mark.requirement("page.states")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.sampled
def test_on_a_phone_names_of_places_payees_and_months_are_whole(signed_in: Opening, demo: Demo, locale: str) -> None:
    page = signed_in("/recurring", viewport=PHONE, locale=locale)
    expect(page.locator(".payments li").first).to_be_visible()
    assert cut_off(page, ".places-main span") == []
    assert cut_off(page, ".payment .row-title, .payment-next span, .days-row span") == []
    page.goto(demo.origin + "/")
    expect(page.locator(".coming-up li").first).to_be_visible()
    assert cut_off(page, ".coming-up .row-title") == []
    page.goto(demo.origin + "/months")
    page.locator("summary").click()
    expect(page.locator("tbody tr").first).to_be_visible()
    assert cut_off(page, ".scrolls") == []


@pytest.mark.requirement("page.states")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_on_a_phone_the_button_that_connects_a_bank_is_one_line(signed_in: Opening, locale: str) -> None:
    page = signed_in(user="empty", viewport=PHONE, locale=locale)
    button = page.get_by_role("link", name=re.compile("Connect a bank|Bank verbinden"))
    box = button.bounding_box()
    assert box is not None
    assert box["height"] < 50
    assert cut_off(page, "pre") == []


@pytest.mark.requirement("page.states")
def test_accounts_of_one_name_are_told_apart_wherever_one_is_chosen(signed_in: Opening, demo: Demo) -> None:
    page = signed_in("/transactions", locale="de-DE")
    accounts = [
        "Girokonto, Musterbank",
        "Tagesgeld, Musterbank",
        "Girokonto, Beispiel Direktbank",
        "Visa Karte, Beispiel Direktbank",
    ]
    named = "option:not(:first-child)"
    expect(page.get_by_label("Konto", exact=True).locator(named)).to_have_text(accounts)
    page.goto(demo.origin + "/settings")
    page.get_by_role("button", name="Ändern: Girokonto, Beispiel Direktbank").click()
    expect(page.get_by_label("Zusammenführen mit").locator(named)).to_have_text([*accounts[:2], accounts[3]])


@pytest.mark.requirement("page.tasks")
def test_why_a_booking_is_not_counted_is_said_before_all_else(signed_in: Opening) -> None:
    last_month = whole_day(ZoneInfo("Europe/Berlin")).replace(day=1) - timedelta(days=1)
    page = signed_in(f"/months?month={last_month:%Y-%m}", viewport=PHONE, locale="de-DE")
    reasons = page.get_by_role("region", name="Nicht mitgezählt").locator(".row-about")
    expect(reasons.first).to_be_visible()
    for said in reasons.all_inner_texts():
        assert re.match(r"(noch nicht gebucht|zwischen eigenen Konten|Ausgleichsbuchung) · ", said)


@pytest.mark.requirement("page.tasks")
@pytest.mark.long
def test_an_earlier_import_is_taken_back_only_after_a_yes(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/import", user="solo")
    token = demo.token("solo")
    before = demo.read(f"/transactions?accountIds={ids(demo, token)}", token)["pagination"]["total"]
    page.get_by_role("button", name="Undo: Musterbank").first.click()
    question = page.get_by_role("dialog", name="Musterbank")
    expect(question).to_contain_text(re.compile(r"[\d,]+ transactions go\. You can bring them in again at any time\."))
    question.get_by_role("button", name="Close").click()
    expect(question).to_have_count(0)
    assert demo.read(f"/transactions?accountIds={ids(demo, token)}", token)["pagination"]["total"] == before


@pytest.mark.requirement("page.states")
@pytest.mark.long
def test_where_no_balance_is_known_none_is_shown(demo: Demo, signed_in: Opening, tmp_path: Path) -> None:
    export = tmp_path / "export.csv"
    export.write_text(CSV)
    page = signed_in("/import", user="empty")
    page.get_by_label("Choose files", exact=True).set_input_files(export)
    file = page.get_by_role("region", name="export.csv")
    expect(file.get_by_text("CSV · 1 new · 0 known")).to_be_visible()
    file.get_by_role("button", name="Import 1 new transaction").click()
    expect(file.get_by_text("Imported: 1 new transaction.")).to_be_visible()
    page.get_by_role("link", name="Overview").click()
    total = page.get_by_role("region", name="Total balance")
    expect(total.get_by_text(re.compile(r"Not in it: .* \(no balance known\)\."))).to_be_visible()
    assert "€" not in total.inner_text()
    expect(page.locator(".total").get_by_role("slider")).to_have_count(0)
    german = signed_in("/", user="empty", locale="de-DE")
    expect(german.get_by_role("heading", name="Auszugsdateien")).to_be_visible()
    page.locator("a.account").click()
    field = page.get_by_role("textbox", name="Balance")
    expect(page.locator(".total").get_by_role("slider")).to_have_count(0)
    for typed in ("120.50", "120,50"):  # a field for numbers would make 12050 of the comma
        field.fill(typed)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".total .figure")).to_have_text(re.compile(r"120\.50$"))
        expect(page.locator(".total")).to_contain_text("Said by you: the balance of")
        page.locator(".total").get_by_role("button", name="Undo").click()
        expect(page.locator(".total .figure")).to_have_text("no balance known")
    page.get_by_role("link", name="Import", exact=True).click()
    file.get_by_role("button", name="Undo", exact=True).click()
    expect(file.get_by_text("The import was taken back.")).to_be_visible()


@pytest.mark.requirement("page.tasks")
@pytest.mark.long
def test_a_rule_of_ones_own_is_quoted_and_explained_in_german(signed_in: Opening, demo: Demo) -> None:
    page = signed_in("/settings", locale="de-DE")
    page.get_by_role("button", name="Neue Regel").click()
    form = page.get_by_role("form", name="Neue Regel")
    form.get_by_label("Was verglichen wird").select_option(label="Empfänger oder Auftraggeber")
    form.get_by_label("Wenn").fill("Netflix")
    pick(form.get_by_label("Kategorie"), "Freizeit")
    expect(form.get_by_text(re.compile(r"Sie ändert \d+ Buchungen und gilt für alle künftigen\."))).to_be_visible()
    form.get_by_role("button", name="Regel anlegen").click()
    expect(page.get_by_text("Empfänger oder Auftraggeber enthält „Netflix“")).to_be_visible()
    page.goto(demo.origin + "/transactions?search=netflix")
    page.locator(".long-list a").first.click()
    dialog = page.get_by_role("dialog")
    expect(
        dialog.get_by_text(re.compile(r"Ihre Regel \d+ besagt es: Empfänger oder Auftraggeber enthält „Netflix“\."))
    ).to_be_visible()
    page.goto(demo.origin + "/settings")
    page.get_by_role("button", name="Entfernen: Empfänger oder Auftraggeber enthält „Netflix“").click()
    expect(page.get_by_text("Sie haben noch keine eigenen Regeln.")).to_be_visible()


@pytest.mark.requirement("page.tasks")
@pytest.mark.long
def test_a_named_period_holds_what_the_interface_holds(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions")
    token = demo.token("demo")
    year = int(demo.read("/profile", token)["today"][:4]) - 1
    asked = f"/transactions?accountIds={ids(demo, token)}&dateFrom={year}-01-01&dateTo={year}-12-31"
    total = demo.read(asked, token)["pagination"]["total"]
    pick(page.get_by_label("Period"), "Last year")
    expect(page.get_by_role("status").filter(has_text=f"{total} transactions")).to_be_visible()
