"""What a person asks of their money, answered on the page in a real Chromium, to the cent."""

import re
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening
from tests.page.test_in_a_browser import exact, values
from tests.page.test_what_broke import statement

PHONE = {"width": 390, "height": 844}
BEYOND = """(figures) => figures.filter((each) => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return range.getBoundingClientRect().right > each.closest(".card").getBoundingClientRect().right - 12;
}).map((each) => each.textContent)"""
"""The figures whose text comes nearer to the edge of their card than its padding."""
ROWS = """[...document.querySelectorAll(".figures")].flatMap((list) => Object.values(Object.groupBy(
  [...list.children], (each) => Math.round(each.getBoundingClientRect().top),
)).map((row) => row.map((each) => each.querySelector("dd").getBoundingClientRect().top)))"""
"""Of each line of figures how far down they stand."""


def totals(demo: Demo, query: str, user: str = "demo") -> Any:
    return demo.read(f"/transactions/totals?{query}", demo.token(user))


def is_sideways(page: Page) -> bool:
    """Whether the page is wider than its screen."""
    found: bool = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return found


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize(("locale", "name"), [("en-GB", "What they add up to"), ("de-DE", "Was sie zusammen ergeben")])
@pytest.mark.sampled
def test_what_a_search_adds_up_to_stands_above_it_with_a_bar_for_each_month_where_there_is_room(
    demo: Demo, signed_in: Opening, locale: str, name: str
) -> None:
    page = signed_in("/transactions?search=netflix", locale=locale)
    expected = totals(demo, "search=netflix&groupBy=month&limit=1000")
    sums = page.get_by_role("region", name=name)
    expect(sums.locator(".month").last).to_be_visible()
    assert values(page, ".totals") == [exact(expected["expenses"])]
    month = expected["groups"][-1]["key"]
    sums.locator(".month").last.focus()
    page.keyboard.press("ArrowLeft")
    expect(sums.locator(".month").nth(-2)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".long-list a")).to_have_count(expected["groups"][-1]["count"])
    assert f"from={month}-01" in page.url
    assert "search=netflix" in page.url
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".long-list a").first).to_be_visible()
    expect(sums.locator(".month").first).to_be_hidden()
    assert not is_sideways(page)


@pytest.mark.requirement("page.answers")
def test_all_bookings_add_up_with_what_was_not_counted(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions")
    expected = totals(demo, "")
    expect(page.locator(".totals .month").first).to_be_visible()
    figures = ["income", "expenses", "net", "refunds"]
    assert values(page, ".totals") == [exact(expected[each]) for each in figures]
    said = f"Not counted: {expected['leftOut']['transfer']} between own accounts."
    expect(page.get_by_text(said)).to_be_visible()


@pytest.mark.requirement("page.answers")
def test_an_amount_that_is_typed_finds_amounts_and_a_quoted_one_text(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions", locale="de-DE")
    token = demo.token("demo")
    expect(page.locator(".long-list .row-title").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("14,99 €")
    found = demo.read("/transactions/search?amountMin=14.99&amountMax=14.99", token)["pagination"]["total"]
    expect(page.get_by_role("status").filter(has_text=f"{found} Buchungen")).to_be_visible()
    expect(page.get_by_text("Beträge von 14,99.")).to_be_visible()
    expect(page.locator(".long-list a.row")).to_have_count(found)
    assert {abs(each) for each in values(page, ".long-list")} == {exact(14.99)}
    page.get_by_role("link", name="Im Text nach „14,99 €“ suchen").click()
    expect(page.get_by_text("Nichts gefunden.")).to_be_visible()
    page.get_by_role("searchbox").fill("netflix 14,99")
    expect(page.locator(".long-list .row-title").first).to_have_text("Netflix")
    assert quote("netflix").casefold() in page.url


@pytest.mark.requirement("page.answers")
def test_a_filter_without_a_field_is_shown_and_can_be_taken_off(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions?flag=uncategorised&merchant=")
    token = demo.token("demo")
    found = demo.read("/transactions/search?flag=uncategorised", token)["pagination"]["total"]
    expect(page.get_by_role("status").filter(has_text=re.compile(f"^{found} transactions"))).to_be_visible()
    page.get_by_role("link", name="Take off the filter Without a category").click()
    expect(page.get_by_role("link", name=re.compile("Take off"))).to_have_count(0)
    assert page.url.endswith("/transactions")


def spendable(demo: Demo, user: str = "demo") -> str:
    """The accounts from which money is spent; savings and loans stand beside them."""
    owned = demo.read("/accounts", demo.token(user))["accounts"]
    return ",".join(each["id"] for each in owned if each["accountType"] in ("checking", "credit_card", None))


def forecast(demo: Demo, query: str) -> Any:
    (together,) = demo.read(f"/forecast?{query}", demo.token("demo"))["currencies"]
    return together


@pytest.mark.requirement("page.answers")
@pytest.mark.long
def test_the_coming_days_are_drawn_with_their_band_and_the_day_on_which_least_is_held(
    demo: Demo, signed_in: Opening
) -> None:
    page = signed_in()
    card = page.get_by_role("region", name="Looking ahead")
    course = card.get_by_role("slider", name=re.compile("Expected balance"))
    for days in (30, 90):
        card.get_by_title(f"{days} days").click()
        expect(course).to_have_attribute("aria-valuemax", str(days))
        expect(course.locator(".band")).to_be_visible()
        told = forecast(demo, f"days={days}&accountIds={spendable(demo)}")
        lowest, pay = told["lowest"], told["nextPay"]
        expected = {each["date"]: each["expected"] for each in told["days"]}
        before = (date.fromisoformat(pay["date"]) - timedelta(days=1)).isoformat()
        figures = (told["balance"], lowest["expected"], expected[before])
        assert values(page, ".outlook") == [exact(each) for each in figures]
        expect(card.get_by_text(re.compile("It stays above zero until"))).to_be_visible()
        marked = told["days"][int(course.get_attribute("aria-valuenow") or "") - 1]
        assert marked["date"] == lowest["date"]
        low, high = (f"€{marked[each]:,.2f}" for each in ("low", "high"))
        assert (course.get_attribute("aria-valuetext") or "").endswith(f"({low} to {high})")
    course.focus()
    page.keyboard.press("Home")
    balance = forecast(demo, f"days=30&accountIds={spendable(demo)}")["balance"]
    assert f": €{balance:,.2f}" in (course.get_attribute("aria-valuetext") or "")


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_a_forecast_says_how_wrong_it_was_beside_the_plainest_one(demo: Demo, signed_in: Opening, locale: str) -> None:
    page = signed_in(locale=locale, viewport=PHONE)
    accuracy = forecast(demo, f"days=30&accountIds={spendable(demo)}")["accuracy"]
    card = page.get_by_role("region", name=re.compile("Looking ahead|Ausblick"))
    said = card.get_by_text(re.compile("Tested on your own past|An Ihrer Vergangenheit geprüft"))
    expect(said).to_be_visible()
    digits = re.sub(r"[.,\s€]", "", said.inner_text())
    for figure in ("meanAbsoluteError", "lastBalanceError"):
        assert f"{accuracy[figure]:.2f}".replace(".", "") in digits


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.sampled
def test_whoever_has_several_currencies_looks_ahead_in_each_and_hears_what_is_left_out(
    demo: Demo, signed_in: Opening, locale: str
) -> None:
    page = signed_in(user="globe", locale=locale)
    told = demo.read(f"/forecast?days=30&accountIds={spendable(demo, 'globe')}", demo.token("globe"))
    card = page.get_by_role("region", name=re.compile("Looking ahead|Ausblick"))
    for each in told["currencies"]:
        card.get_by_role("button", name=each["currency"], exact=True).click()
        expect(card.locator(".outlook data").first).to_have_attribute("value", str(each["balance"]))
    reasons = {
        "few_bookings": "too few transactions|zu wenige Buchungen",
        "no_balance": "no balance known|kein Saldo bekannt",
    }
    left_out = card.get_by_text(re.compile("Not in it|Nicht enthalten"))
    for each in told["leftOut"]:
        expect(left_out).to_have_text(re.compile(reasons[each["reason"]]))


@pytest.mark.requirement("page.answers")
def test_what_needs_its_person_stands_in_one_place_each_with_its_step(demo: Demo, signed_in: Opening) -> None:
    token = demo.token("demo")
    today = date.fromisoformat(demo.read("/profile", token)["today"])
    since = (today - timedelta(days=59)).isoformat()
    unsorted = demo.read(f"/transactions/search?flag=uncategorised&dateFrom={since}", token)["pagination"]["total"]
    told = demo.read("/notices?state=open", token)["notices"]
    assert [each["kind"] for each in told] == ["booking.unsorted"]  # the demo has some on any day, and is seen first
    page = signed_in()
    card = page.get_by_role("region", name="To do")
    expect(card).to_contain_text(told[0]["text"])
    expect(page.get_by_role("img", name="1 to do")).to_be_visible()
    card.get_by_role("button", name="Later").click()
    expect(page.get_by_text("You are told again in a week.")).to_be_visible()
    expect(card).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    card.get_by_role("link", name=re.compile("^Sort (it|them)$")).click()
    expect(page.get_by_role("status").filter(has_text=re.compile(rf"^{unsorted} transactions?"))).to_be_visible()
    assert page.get_by_role("link", name="Take off the filter Without a category").is_visible()


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.sampled
def test_a_ledger_with_a_gap_and_what_looks_double_are_named_where_the_person_is_needed(
    demo: Demo, signed_in: Opening, tmp_path: Path, locale: str
) -> None:
    token = demo.token("empty")
    today = date.fromisoformat(demo.read("/profile", token)["today"])
    before, again, after = ((today - timedelta(days=days)).isoformat() for days in (40, 38, 20))
    for number, told in enumerate(
        [statement((before, "-5.00")), statement((again, "-5.00"), (after, "-7.00"), closing="900.00")]
    ):
        file = tmp_path / f"{number}.xml"
        file.write_text(told)
        demo.command("import", str(file), "--user", "empty")
    (account,) = demo.read("/integrity", token)["accounts"]
    kinds = [each["kind"] for each in account["problems"]]
    # the ledger is looked at soon after, and what is open again, as in the second language, is not told to open pages
    while all(each["kind"] != "ledger.wrong" for each in demo.read("/notices?state=open", token)["notices"]):
        time.sleep(0.1)
    page = signed_in(user="empty", locale=locale, viewport=PHONE)
    card = page.get_by_role("region", name=re.compile("^(To do|Zu erledigen)$"))
    expect(card.get_by_text(re.compile("differ from the transactions|von den Buchungen ab"))).to_be_visible()
    expect(card.get_by_role("link", name=re.compile("^(Import statements|Kontoauszüge importieren)"))).to_be_visible()
    assert not is_sideways(page)
    assert sorted(kinds) == ["balance_differs", "possible_duplicate"]
    card.get_by_role("link", name=re.compile("^(Look at it|Ansehen)$")).click()
    expect(
        page.get_by_text(re.compile("This looks like another transaction|sieht einer anderen Buchung"))
    ).to_be_visible()
    page.goto("about:blank")  # it would ask for the account that is gone
    demo.command("accounts", "delete", account["accountId"], "--user", "empty", "--yes")
    page.goto(demo.origin)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(card).to_have_count(0)


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.long
def test_an_account_has_a_place_with_its_course_what_went_in_and_out_and_how_sure_its_forecast_is(
    demo: Demo, signed_in: Opening, locale: str
) -> None:
    token = demo.token("demo")
    page = signed_in(locale=locale, viewport=PHONE)
    for number, account in enumerate(demo.read("/accounts", token)["accounts"]):
        page.goto(demo.origin)
        page.locator(".accounts a").nth(number).click()
        total = page.locator(".total")
        expect(total.locator(".figure data")).to_have_attribute("value", str(account["balance"]))
        expect(total.locator(".course")).to_be_visible()
        (held,) = demo.read(f"/balances?accountIds={account['id']}&every=month", token)["accounts"]
        day = date.fromisoformat(held["date"])
        expect(total.get_by_text(re.compile(rf"(as of|Stand) {day.day}\.? \w+\.? {day.year}"))).to_be_visible()
        sums = totals(demo, f"accountIds={account['id']}")
        expect(page.locator(".totals .month").last).to_be_visible()
        names = ["income", "expenses", "net"] if sums["income"] and sums["expenses"] else ["income", "expenses"]
        expected = [exact(sums[each]) for each in (*names, "refunds") if sums[each]]
        assert values(page, ".totals") == expected
        accuracy = forecast(demo, f"accountIds={account['id']}&days=30")["accuracy"]
        worse = page.get_by_text(re.compile("Do not rely on this line|Verlassen Sie sich nicht auf diese Linie"))
        expect(page.locator(".band")).to_be_visible()
        expect(worse).to_have_count(0 if accuracy["beatsLastBalance"] else 1)
        assert not is_sideways(page)
    page.goto(demo.origin + "/accounts?id=acc_0")
    expect(page.get_by_text(re.compile("There is no such account|Dieses Konto gibt es nicht"))).to_be_visible()


@pytest.mark.requirement("page.answers")
def test_a_category_opens_into_its_finer_ones_which_together_are_its_figure(demo: Demo, signed_in: Opening) -> None:
    page = signed_in()
    for path, said in (("/", "after refunds"), ("/months?month=2026-10", "before refunds")):
        page.goto(demo.origin + path)
        card = page.locator("section.card", has=page.locator(".bars"))
        expect(card).to_contain_text(said)
        for bar in card.locator(".bars > li").all():
            [whole] = [exact(each) for each in bar.locator("data").evaluate_all("all => all.map(({ value }) => value)")]
            bar.get_by_role("button", name=re.compile("^Finer categories: ")).click()
            finer = bar.locator("ul a")
            expect(finer.first).to_be_visible()
            shown = finer.locator("data").evaluate_all("all => all.map(({ value }) => value)")
            assert sum(exact(each) for each in shown) == whole
    finer.first.click()
    expect(page).to_have_url(re.compile("category=[A-Z_]+&period=other&from=2026-10-01&to=2026-10-31$"))


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.sampled
def test_a_merchant_has_a_place_which_the_list_of_merchants_leads_to(
    demo: Demo, signed_in: Opening, locale: str
) -> None:
    page = signed_in("/recurring", locale=locale)
    page.get_by_role("navigation").get_by_role("link", name=re.compile("^(Merchants|Händler)$")).click()
    first, second = (each["key"] for each in totals(demo, "groupBy=merchant&limit=2")["groups"])
    nets = [exact(each["net"]) for each in totals(demo, "groupBy=merchant&limit=100")["groups"] if each["key"]]
    expect(page.locator("main ol.plain li").nth(1)).to_be_visible()
    assert values(page, "main ol.plain") == sorted(nets, key=lambda net: (net > 0, -abs(net)))
    expect(page.locator("main .row-title").nth(1)).to_have_text(second)
    page.get_by_role("link", name=re.compile(re.escape(first))).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(first)
    sums = totals(demo, f"merchant={quote(first)}&groupBy=month&limit=1000")
    expect(page.locator(".totals .month").last).to_be_visible()
    assert values(page, ".totals") == [exact(sums["expenses"])]
    expect(page.locator(".totals dd").first).to_have_text(str(sums["count"]))
    expect(page.locator(".rows li")).to_have_count(8)
    page.get_by_role("link", name=re.compile("^(All transactions|Alle Buchungen)$")).click()
    expect(page.get_by_role("status").filter(has_text=re.compile(rf"^{sums['count']} "))).to_be_visible()
    expect(page.get_by_role("link", name=re.compile(f"(Take off|aufheben).*|{re.escape(first)}")).first).to_be_visible()
    page.goto(demo.origin + "/merchants?name=Nobody")
    expect(page.get_by_text(re.compile("Nothing found|Nichts gefunden"))).to_be_visible()


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.sampled
def test_a_year_is_shown_beside_the_same_days_of_the_one_before_and_so_is_a_month(
    demo: Demo, signed_in: Opening, locale: str
) -> None:
    token = demo.token("demo")
    year = int(demo.read("/profile", token)["today"][:4])
    page = signed_in("/months", locale=locale, viewport=PHONE)
    page.get_by_role("button", name=re.compile("^(Years|Jahre)$")).click()
    expect(page.locator(".month")).to_have_count(len(totals(demo, "groupBy=year")["groups"]))
    for shown in (year, year - 1):
        page.goto(f"{demo.origin}/months?year={shown}")
        said = totals(demo, f"dateFrom={shown}-01-01&dateTo={shown}-12-31&compareWith=previousYear")
        expect(page.locator("dl.figures .note")).to_have_count(3)
        assert values(page, "dl.figures") == [exact(said[each]) for each in ("income", "expenses", "net")]
        notes = page.locator("dl.figures .note").all_inner_texts()
        for name, note in zip(("income", "expenses", "net"), notes, strict=True):
            change = exact(said[name]) - exact(said["compared"][name])
            assert str(abs(change)).replace(".", "") in re.sub(r"[.,\s]", "", note)
            assert str(shown - 1) in note
    page.locator(".month").first.focus()
    page.keyboard.press("Enter")
    assert re.search(r"year=\d{4}$", page.url)
    page.goto(f"{demo.origin}/months?month={year - 1}-10")
    expect(page.locator("dl.figures .note").first).to_contain_text(str(year - 2))
    assert not is_sideways(page)


@pytest.mark.requirement("page.answers")
@pytest.mark.parametrize(
    ("width", "locale"), [(390, "de-DE"), (390, "en-GB"), (768, "de-DE"), (1280, "de-DE"), (1920, "de-DE")]
)
@pytest.mark.sampled
def test_no_figure_runs_out_of_its_card_and_those_side_by_side_stand_on_one_line(
    demo: Demo, signed_in: Opening, width: int, locale: str
) -> None:
    account = demo.read("/accounts", demo.token("demo"))["accounts"][0]
    year = totals(demo, "groupBy=year")["groups"][-1]["key"]
    page = signed_in(locale=locale, viewport={"width": width, "height": 900})
    for path in ("/", f"/accounts?id={account['id']}", "/recurring", f"/months?year={year}"):
        page.goto(demo.origin + path)
        expect(page.locator(".figure:not(.coming)").first).to_be_visible()
        expect(page.locator(".coming.figure")).to_have_count(0)
        assert not is_sideways(page)
        assert page.locator(".card .figure").evaluate_all(BEYOND) == []
        assert all(len({round(place) for place in row}) == 1 for row in page.evaluate(ROWS))
        assert page.locator(".segments button").evaluate_all("(all) => all.every((each) => each.clientHeight < 40)")
