"""A balance of years ago says its day, is told apart in the total, and is not called up to date."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening
from tests.page.test_what_broke import statement
from tests.page.test_what_is_seen import PHONE, cut_off

IBANS = ("DE89370400440532013000", "DE02120300000000202051", "DE02500105170137075030")
DAYS = {
    "en-GB": ("as of 31 Dec 2018", "from balances of 31 Dec 2018 to 30 Jun 2024", "€1,000.00", "€3,000.00"),
    "de-DE": ("Stand 31. Dez. 2018", "Salden vom 31. Dez. 2018 bis 30. Juni 2024", "1.000,00 €", "3.000,00 €"),
}
OPTIONS: list[Any] = [
    {"locale": "en-GB"},
    {"locale": "de-DE", "viewport": PHONE, "color_scheme": "dark"},
]
UPDATED = re.compile("^(Updated|Aktualisiert) ")

Import = Callable[[str, str], None]


@pytest.fixture
def imported(demo: Demo, tmp_path: Path) -> Iterator[Import]:
    """Imports a statement for the user without accounts: its last day and closing balance, of a new account each."""
    brought: list[str] = []

    def bring(day: str, closing: str) -> None:
        file = tmp_path / f"{day}.xml"
        said = statement((day, "-1.50"), closing=closing)
        file.write_text(said.replace(IBANS[0], IBANS[len(brought)]))
        demo.command("import", str(file), "--user", "empty")
        brought.append(IBANS[len(brought)])

    yield bring
    for iban in brought:
        demo.command("accounts", "delete", iban, "--user", "empty", "--yes")


def total(page: Page) -> str:
    """What the total says of itself, once it is there."""
    region = page.get_by_role("region", name=re.compile("^(Total balance|Gesamtsaldo)$"))
    expect(region.locator(".figure data")).to_be_visible()
    expect(region.get_by_role("slider")).to_be_visible()
    return region.locator(".total-head").inner_text().replace("\u00a0", " ")


@pytest.mark.requirement("balances.age")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.long
def test_where_all_balances_are_old_nothing_is_up_to_date(
    signed_in: Opening, imported: Import, options: dict[str, Any]
) -> None:
    imported("2018-12-31", "1000.00")
    day, days, *_ = DAYS[options["locale"]]
    page = signed_in(user="empty", **options)
    assert day in total(page).splitlines()
    assert not re.search("(since|seit) ", total(page))
    expect(page.get_by_text(UPDATED)).to_have_count(0)
    expect(page.locator(".account")).to_contain_text(day)
    imported("2024-06-30", "2000.00")
    page.reload()
    assert days in total(page).splitlines()
    assert cut_off(page, ".account .row-title, .dated, .total-head") == []


@pytest.mark.requirement("balances.age")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.long
def test_the_total_tells_apart_what_is_of_old_balances(
    demo: Demo, signed_in: Opening, imported: Import, options: dict[str, Any]
) -> None:
    today = demo.read("/profile", demo.token("empty"))["today"]
    imported(today, "500.00")
    page = signed_in(user="empty", **options)
    expect(page.get_by_text(UPDATED)).to_be_visible()
    assert not re.search("of which|davon|as of|Stand", total(page))
    imported("2018-12-31", "1000.00")
    day, days, one, three = DAYS[options["locale"]]
    part = {"en-GB": "of which {} {}", "de-DE": "davon {}, {}"}[options["locale"]]
    page.reload()
    assert part.format(one, day) in total(page).splitlines()
    expect(page.get_by_text(UPDATED)).to_be_visible()
    assert [day in each for each in page.locator(".account").all_inner_texts()] == [False, True]
    imported("2024-06-30", "2000.00")
    page.reload()
    assert part.format(three, days) in total(page).splitlines()
    assert cut_off(page, ".account .row-title, .dated, .total-head") == []


@pytest.mark.requirement("balances.age")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.sampled
def test_the_preview_of_a_file_says_the_day_of_its_closing_balance(
    signed_in: Opening, tmp_path: Path, options: dict[str, Any]
) -> None:
    file = tmp_path / "old.xml"
    file.write_text(statement(("2018-12-31", "-1.50")))
    page = signed_in("/import", user="empty", **options)
    page.locator("input[type=file]").set_input_files(file)
    day, _days, amount, _sum = DAYS[options["locale"]]
    said = page.get_by_role("region", name="old.xml").locator(".statement > p")
    words = re.escape(f"{amount} {day}").replace(r"\ ", r"\s")  # an amount holds a narrow or hard space
    expect(said).to_contain_text(re.compile(words))
