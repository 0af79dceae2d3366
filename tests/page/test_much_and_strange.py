"""The page with ten thousand bookings, with files that are no statements, in four tabs, on paper, far from home."""

import csv
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening, pick, sign_in

pytestmark = pytest.mark.requirement("page.tasks")

MANY = 10_000
HEADER = "Date,Description,Amount,Currency\n"


def _zip(name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, "<workbook/>")
    return packed.getvalue()


XML = '<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:'
NO_STATEMENTS = {
    "photo.jpg": b"\xff\xd8\xff\xe0 no picture either",
    "statement.pdf": b"%PDF-1.7\n%%EOF",
    "empty.csv": b"",
    "letter.txt": b"Dear customer,\nyour statement is attached.\n",
    "ages.csv": b"name,age\nEva,41\nTom,39\n",
    "budget.xlsx": _zip("xl/workbook.xml"),
    "page.html": b"<!doctype html><html><body>Sign in</body></html>",
    "data.json": b'{"accounts": []}',
    "cut.xml": f'{XML}camt.053.001.08"><BkToCstmrStmt><Stmt>'.encode(),
    "orders.xml": f'{XML}pain.001.001.03"><CstmrCdtTrfInitn/></Document>'.encode(),
    "program.exe": b"MZ\x90\x00" + bytes(200),
}


@pytest.mark.long
def test_ten_thousand_bookings_are_dropped_looked_into_stored_scrolled_found_and_taken_back(
    signed_in: Opening, tmp_path: Path
) -> None:
    statement = tmp_path / "decades.csv"
    rows = (
        f"{2000 + n // 400}-{1 + n // 33 % 12:02}-{1 + n % 28:02},Shop {n:05},-{n % 90 + 1}.25,EUR" for n in range(MANY)
    )
    statement.write_text(HEADER + "\n".join(rows) + "\n")
    page = signed_in("/import", user="empty")
    page.get_by_label("Choose files", exact=True).set_input_files(statement)
    file = page.get_by_role("region", name="decades.csv")
    expect(file.get_by_text("10,000 new · 0 known")).to_be_visible(timeout=60_000)
    file.get_by_role("button", name="Import 10,000 new transactions").click()
    expect(file.get_by_text("Imported: 10,000 new transactions.")).to_be_visible(timeout=60_000)
    page.get_by_role("link", name="Transactions", exact=True).click()
    expect(page.get_by_text("10,000 transactions")).to_be_visible()
    page.get_by_role("list", name="Transactions").get_by_role("link").first.focus()
    page.keyboard.press("End")
    expect(page.locator("[aria-posinset='10000'] a:focus")).to_contain_text("Shop 00000")
    page.mouse.wheel(0, -280_000)  # half way up
    expect(page.locator("[aria-posinset='5000']")).to_contain_text("Shop")
    assert page.locator("*").count() < 1200
    page.keyboard.press("/")
    page.keyboard.type("shop 07777")
    expect(page.get_by_text("1 transaction", exact=True)).to_be_visible()
    page.get_by_role("link", name="Import", exact=True).click()
    file.get_by_role("button", name="Undo").click()
    expect(file.get_by_text("The import was taken back.")).to_be_visible(timeout=60_000)


@pytest.mark.long
def test_eleven_files_that_are_no_statements_get_a_sentence_each_in_german_too(
    signed_in: Opening, tmp_path: Path
) -> None:
    for name, content in NO_STATEMENTS.items():
        (tmp_path / name).write_bytes(content)
    page = signed_in("/import", user="empty", locale="de-DE")
    page.get_by_label("Dateien auswählen", exact=True).set_input_files([tmp_path / name for name in NO_STATEMENTS])
    for name in NO_STATEMENTS:
        said = page.get_by_role("region", name=name).locator("p.bad")
        expect(said).to_contain_text(re.compile(r"^Nicht importiert\. \S.+\.$"))
        expect(said.locator("[lang=en]")).to_have_count(0)


@pytest.mark.long
def test_what_the_filters_find_is_saved_as_a_file_in_the_chosen_format(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=spotify")
    found = page.get_by_text(re.compile(r"^\d+ transactions$"))
    expect(found).to_be_visible()
    count = int(found.inner_text().split()[0])
    page.get_by_role("button", name="Export…").click()
    dialog = page.get_by_role("dialog", name="Export")
    with page.expect_download() as saving:
        dialog.get_by_role("button", name="Save file").click()
    assert re.fullmatch(r"transactions-\d{4}-\d\d-\d\d\.csv", saving.value.suggested_filename)
    lines = list(csv.DictReader(Path(saving.value.path()).read_text("utf-8").splitlines()))
    assert [line["record"] for line in lines].count("booked") == count
    expect(dialog).to_have_count(0)
    address = page.url
    for query in ("merchant=Spotify", "search=11.99"):  # a file has what the list has
        page.goto(address.replace("search=spotify", query))
        expect(found).to_be_visible()
        count = int(found.inner_text().split()[0])
        page.get_by_role("button", name="Export…").click()
        with page.expect_download() as saving:
            dialog.get_by_role("button", name="Save file").click()
        lines = list(csv.DictReader(Path(saving.value.path()).read_text("utf-8").splitlines()))
        assert [line["record"] for line in lines].count("booked") == count
        expect(dialog).to_have_count(0)


@pytest.mark.long
def test_a_rule_says_what_it_will_change_is_added_taken_back_and_removed(signed_in: Opening) -> None:
    page = signed_in("/settings")
    card = page.get_by_role("region", name="Your rules")
    card.get_by_role("button", name="New rule").click()
    form = page.get_by_role("form", name="New rule")
    add = form.get_by_role("button", name="Add rule")
    form.get_by_label("If", exact=True).fill("spotify")
    expect(add).to_be_disabled()
    pick(form.get_by_label("Category"), "Leisure")
    told = form.get_by_text(re.compile(r"^It will change \d+ transactions, and apply to future ones\.$"))
    expect(told).to_be_visible()
    (number,) = re.findall(r"\d+", told.inner_text())
    add.click()
    expect(page.get_by_text(f"Rule added: {number} transactions changed.")).to_be_visible()
    expect(card.get_by_text("Any text contains “spotify”")).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(card.get_by_text("You have no rules of your own yet.")).to_be_visible()


@pytest.mark.requirement("page.session")
@pytest.mark.long
def test_four_tabs_go_on_after_their_tokens_have_gone_and_are_empty_after_a_sign_out(
    demo: Demo, signed_in: Opening, complaints: list[str]
) -> None:
    first = signed_in("/months", user="solo")
    tabs = [first, *(first.context.new_page() for _ in range(3))]
    for tab in tabs[1:]:
        tab.goto(demo.origin + "/recurring")
    for tab in tabs:
        expect(tab.locator("data.money:visible").first).to_be_visible()
        _refuse_once(tab)
        tab.get_by_role("link", name="Transactions", exact=True).click()
        expect(tab.locator(".long-list a").first).to_be_visible()
    tabs[-1].get_by_role("link", name="Settings").click()
    tabs[-1].get_by_role("button", name="Sign out").click()
    for tab in tabs[:-1]:
        expect(tab.get_by_text("Your session has ended.")).to_be_visible()
        assert "€" not in tab.inner_text("body")
    complaints[:] = [told for told in complaints if "401" not in told]


def _refuse_once(page: Page) -> None:
    """The next question is answered as for a token that has ended."""
    page.route(
        "**/api/v1/transactions/search?*",
        lambda route: route.fulfill(status=401, json={"error": "Unauthorized"}),
        times=1,
    )


@pytest.mark.requirement("page.figures")
@pytest.mark.long
def test_a_browser_in_los_angeles_shows_the_days_of_the_bank(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions", user="solo", timezone_id="America/Los_Angeles")
    expect(page.locator(".long-list a").first).to_be_visible()
    newest = demo.read("/transactions?perPage=1", demo.token("solo"))["transactions"][0]
    assert page.locator(".long-list time").first.get_attribute("datetime") == newest["bookingDate"][:10]
    assert page.locator(".long-list time").first.inner_text().split()[0] == str(int(newest["bookingDate"][8:10]))


def test_on_paper_there_is_the_content_and_nothing_to_press(signed_in: Opening) -> None:
    page = signed_in("/months")
    expect(page.locator(".figures data").first).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", level=1, name="Months")).to_be_visible()
    expect(page.locator("nav.places")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.requirement("page.states")
def test_at_another_address_of_the_same_service_it_says_where_it_lives(
    demo: Demo, context: Callable[..., BrowserContext], complaints: list[str]
) -> None:
    page = context().new_page()
    page.goto(demo.origin.replace("127.0.0.1", "localhost") + "/months")
    expect(page.get_by_label("User name")).to_be_visible()
    sign_in(page, "demo")
    assert page.url == demo.origin + "/months"
    complaints[:] = [told for told in complaints if "localhost" not in told]


@pytest.mark.parametrize(
    "options", [{"locale": "en-GB"}, {"locale": "de-DE", "viewport": {"width": 390, "height": 844}}]
)
@pytest.mark.sampled
def test_a_booking_is_found_opened_corrected_and_closed_by_keyboard_alone(
    signed_in: Opening, options: dict[str, Any]
) -> None:
    page = signed_in("/transactions", **options)
    expect(page.locator(".long-list a").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("netflix")
    expect(page.locator(".long-list a").first).to_contain_text("Netflix")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.long-list a')"):
            break
    page.keyboard.press("ArrowDown")
    expect(page.locator("[aria-posinset='2'] a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("[aria-posinset='2'] a")).to_be_focused()
