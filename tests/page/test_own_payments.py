"""What a person says of recurring payments on the page: in and out apart, confirmed, dismissed, added by hand."""

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening
from tests.page.test_what_broke import LANGUAGES, statement

pytestmark = pytest.mark.requirement("page.own_payments")

SAID = {
    "en-GB": {
        "expenses": "Expenses",
        "income": "Income",
        "confirm": "Confirm",
        "confirmed": "confirmed",
        "dismiss": "Dismiss",
        "reset": "Reset",
        "dismissed": "Dismissed",
        "ended": "Ended",
        "paused": "paused",
        "overdue": "overdue",
        "undo": "Undo",
        "undone": "Undone.",
        "remove": "Remove",
        "add": "Add a payment",
        "name": "Name or part of it, as it appears in its transactions",
        "amount": "Amount",
        "next": "Next on",
        "often": "How often",
        "way": "Outgoing or incoming",
        "late": "The next day is today or later, and no more than one period ahead.",
    },
    "de-DE": {
        "expenses": "Ausgaben",
        "income": "Einnahmen",
        "confirm": "Bestätigen",
        "confirmed": "bestätigt",
        "dismiss": "Verwerfen",
        "reset": "Zurücksetzen",
        "dismissed": "Verworfen",
        "ended": "Beendet",
        "paused": "pausiert",
        "overdue": "überfällig",
        "undo": "Rückgängig",
        "undone": "Rückgängig gemacht.",
        "remove": "Entfernen",
        "add": "Zahlung hinzufügen",
        "name": "Name oder ein Teil davon, wie er in den Buchungen steht",
        "amount": "Betrag",
        "next": "Nächstes Mal am",
        "often": "Wie oft",
        "way": "Ausgang oder Eingang",
        "late": "Der nächste Tag ist heute oder später und höchstens einen Zeitraum entfernt.",
    },
}


def told(demo: Demo, user: str) -> dict[str, Any]:
    """By name: every recurring payment of all accounts, charged within six months or going on."""
    token = demo.token(user)
    ids = ",".join(account["id"] for account in demo.read("/accounts", token)["accounts"])
    paths = (f"/subscriptions/details?status={status}&direction=all&accountIds={ids}" for status in ("ongoing", "all"))
    return {each["merchantName"]: each for path in paths for each in demo.read(path, token)["subscriptions"]}


def names(page: Page, region: str) -> list[str]:
    found: list[str] = page.get_by_role("region", name=region, exact=True).locator(".row-title").all_inner_texts()
    return found


def row(page: Page, name: str) -> Locator:
    return page.locator(".payments li").filter(has_text=name)


def months_before(day: date, count: int) -> str:
    month = day.year * 12 + day.month - 1 - count
    return date(month // 12, month % 12 + 1, min(day.day, 28)).isoformat()


@LANGUAGES
@pytest.mark.sampled
def test_what_goes_out_and_what_comes_in_stand_apart_are_confirmed_dismissed_and_left_to_the_service_again(
    demo: Demo, signed_in: Opening, locale: str
) -> None:
    said, before = SAID[locale], told(demo, "demo")
    page = signed_in("/recurring", locale=locale)
    expect(row(page, "Netflix")).to_be_visible()
    for region, direction in ((said["expenses"], "outgoing"), (said["income"], "incoming")):
        expected = {name for name, each in before.items() if each["direction"] == direction}
        assert set(names(page, region)) == expected
        assert expected
    page.get_by_role("button", name=f"{said['confirm']}: Netflix").click()
    expect(row(page, "Netflix")).to_contain_text(f"· {said['confirmed']}")
    assert told(demo, "demo")["Netflix"]["confirmation"] == "confirmed"
    page.get_by_role("button", name=f"{said['dismiss']}: Netflix").click()
    aside = page.get_by_role("region", name=said["dismissed"], exact=True)
    aside.locator("summary").click()
    expect(aside.get_by_text("Netflix")).to_be_visible()
    assert "Netflix" not in names(page, said["expenses"])
    assert told(demo, "demo")["Netflix"]["confirmation"] == "dismissed"
    page.get_by_role("button", name=said["undo"], exact=True).click()
    expect(row(page, "Netflix")).to_contain_text(f"· {said['confirmed']}")
    expect(aside).to_have_count(0)
    page.get_by_role("button", name=f"{said['reset']}: Netflix").click()
    expect(page.get_by_role("button", name=f"{said['confirm']}: Netflix")).to_be_visible()
    assert told(demo, "demo") == before


@LANGUAGES
@pytest.mark.sampled
def test_a_payment_that_was_not_found_is_added_and_taken_away(
    demo: Demo, signed_in: Opening, complaints: list[str], locale: str
) -> None:
    said, before = SAID[locale], told(demo, "demo")
    today = date.fromisoformat(demo.read("/profile", demo.token("demo"))["today"])
    page = signed_in("/recurring", locale=locale, viewport={"width": 390, "height": 844})
    page.get_by_role("button", name=said["add"]).click()
    form = page.get_by_role("region", name=said["add"], exact=True)
    form.get_by_label(said["name"]).fill("Musikpreis")
    form.get_by_label(said["way"]).select_option("incoming")
    form.get_by_label(said["amount"]).fill("45.50")
    form.get_by_label(said["often"]).select_option("weekly")
    form.get_by_label(said["next"]).fill((today + timedelta(days=8)).isoformat())
    form.get_by_role("button", name=said["add"]).click()
    expect(page.get_by_text(said["late"])).to_be_visible()
    complaints[:] = [each for each in complaints if "400" not in each]  # Chromium notes every refusal
    form.get_by_label(said["next"]).fill((today + timedelta(days=7)).isoformat())
    form.get_by_role("button", name=said["add"]).click()
    expect(form).to_have_count(0)
    expect(row(page, "Musikpreis")).to_be_visible()
    assert "Musikpreis" in names(page, said["income"])
    added = told(demo, "demo")["Musikpreis"]
    assert (added["amount"], added["frequency"], added["direction"]) == (45.5, "weekly", "incoming")
    assert added["nextExpected"][:10] == (today + timedelta(days=7)).isoformat()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    row(page, "Musikpreis").get_by_role("link").click()
    expect(page.get_by_role("dialog", name="Musikpreis")).to_be_visible()
    page.keyboard.press("Escape")
    remove = page.get_by_role("button", name=f"{said['remove']}: Musikpreis")
    remove.click()
    expect(row(page, "Musikpreis")).to_have_count(0)
    page.get_by_role("button", name=said["undo"], exact=True).click()
    expect(page.get_by_text(said["undone"])).to_be_visible()
    expect(row(page, "Musikpreis")).to_be_visible()
    assert told(demo, "demo")["Musikpreis"] == added
    remove.click()
    expect(row(page, "Musikpreis")).to_have_count(0)
    assert told(demo, "demo") == before
    page.get_by_role("button", name=said["add"]).click()
    form.get_by_label(said["name"]).fill("Musikschule")
    form.get_by_label(said["amount"]).fill("45")
    form.get_by_label(said["next"]).fill(today.isoformat())
    form.get_by_role("button", name=said["add"]).click()
    expect(row(page, "Musikschule")).to_be_visible()
    page.get_by_role("button", name=said["undo"], exact=True).click()
    expect(row(page, "Musikschule")).to_have_count(0)
    assert told(demo, "demo") == before


@LANGUAGES
@pytest.mark.sampled
def test_what_is_late_pauses_or_has_ended_says_so(demo: Demo, signed_in: Opening, tmp_path: Path, locale: str) -> None:
    said = SAID[locale]
    today = date.fromisoformat(demo.read("/profile", demo.token("empty"))["today"])
    due = {
        "Stadtwerk": (today - timedelta(days=2), 1),
        "Sportpark": (today - timedelta(days=12), 1),
        "Zeitung": (today, 5),
    }
    for name, (day, missing) in due.items():
        file = tmp_path / f"{name}.xml"
        entries = [(months_before(day, back), "-19.90") for back in range(missing + 6, missing - 1, -1)]
        file.write_text(statement(*entries).replace("Corner shop", name))
        demo.command("import", str(file), "--user", "empty")
    file.write_text(statement((today.isoformat(), "-3.20")))  # so the account is known until today
    demo.command("import", str(file), "--user", "empty")
    assert {name: each["status"] for name, each in told(demo, "empty").items()} == {
        "Stadtwerk": "active",
        "Sportpark": "paused",
        "Zeitung": "ended",
    }
    page = signed_in("/recurring", user="empty", locale=locale)
    expect(row(page, "Stadtwerk").locator(".pill")).to_have_text(said["overdue"])
    expect(row(page, "Sportpark").locator(".pill")).to_have_text(said["paused"])
    page.get_by_role("region", name=said["ended"], exact=True).locator("summary").click()
    expect(row(page, "Zeitung").locator(".pill")).to_have_text(re.compile("^(ended|beendet)$"))
    row(page, "Zeitung").get_by_role("link").click()
    expect(page.get_by_role("dialog", name="Zeitung").locator("a.line")).to_have_count(7)
    (account,) = demo.read("/accounts", demo.token("empty"))["accounts"]
    page.goto("about:blank")
    demo.command("accounts", "delete", account["id"], "--user", "empty", "--yes")
