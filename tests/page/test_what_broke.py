"""What once broke under a person's hands: rows that stayed grey, ways back that led nowhere, paper, and no network."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening, pick
from tests.page.test_in_a_browser import exact, ids, total

LANGUAGES = pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
WIDTHS = (390, 768, 1280, 1920)
SHEETS_MAX = 6
NINE_FILES_MS = 90_000  # on a machine that does other things, too
IS_QUIET = """() => {
  const [before, now] = [window.answered, performance.getEntriesByType("resource").length];
  window.answered = now;
  return before === now;
}"""
DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
OVERLAPS = """() => [...document.querySelectorAll(".row")].filter((row) => {
    const day = row.querySelector("time"), tile = row.querySelector(".tile");
    if (!day || !tile) return false;
    const written = document.createRange();
    written.selectNodeContents(day);
    const [one, other] = [written.getBoundingClientRect(), tile.getBoundingClientRect()];
    return one.right > other.left && one.left < other.right && one.bottom > other.top && one.top < other.bottom;
}).map((row) => row.textContent)"""

BROKEN_WORDS = """() => [...document.querySelectorAll("main a *, main h1, main h2, main h3, main p")].flatMap((each) =>
    [...each.childNodes].filter((node) => node.nodeType === 3).flatMap((text) =>
        [...text.data.matchAll(/\\p{L}+/gu)].filter(({ 0: word, index }) => {
            const written = document.createRange();
            written.setStart(text, index);
            written.setEnd(text, index + word.length);
            return new Set([...written.getClientRects()].map(({ top }) => Math.round(top))).size > 1;
        }).map(([word]) => word)))"""


def statement(*entries: tuple[str, str], closing: str = "1000.00") -> str:
    """A camt.053 of days and amounts, which says what the account holds after the last one."""
    sides = {True: "DBIT", False: "CRDT"}
    booked = "".join(
        f'<Ntry><Amt Ccy="EUR">{amount.lstrip("-")}</Amt><CdtDbtInd>{sides[amount[0] == "-"]}</CdtDbtInd>'
        f"<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{day}</Dt></BookgDt><NtryDtls><TxDtls><RltdPties><Cdtr><Pty><Nm>Corner"
        f" shop</Nm></Pty></Cdtr></RltdPties></TxDtls></NtryDtls></Ntry>"
        for day, amount in entries
    )
    return (
        '<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt>'
        "<Id>1</Id><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct><Bal><Tp><CdOrPrtry><Cd>CLBD"
        f'</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">{closing}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>{entries[-1][0]}</Dt>'
        f"</Dt></Bal>{booked}</Stmt></BkToCstmrStmt></Document>"
    )


def rows(page: Page) -> Locator:
    """The bookings of the long list that are in the page."""
    return page.locator(".long-list a.row")


@pytest.mark.requirement("page.tasks")
@pytest.mark.long
def test_rows_deep_in_the_list_stay_readable_through_a_correction_and_show_it(signed_in: Opening) -> None:
    page = signed_in("/transactions")
    expect(rows(page).first).to_be_visible()
    page.mouse.wheel(0, 56 * 700)
    expect(page.locator("a[data-index='705']")).to_be_visible()
    # A shop, for a booking that names no counterpart cannot be corrected so
    shop = page.locator("a[data-index]:not([data-index='0'])", has_text="Supermarket").first.get_attribute("data-index")
    row = page.locator(f"a[data-index='{shop}']")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    row.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    choice = dialog.get_by_label("Category", exact=True)
    wanted = "Health" if choice.input_value() != "Health" else "Leisure"
    pick(choice, wanted)
    dialog.get_by_role("button", name="Correct", exact=True).click()
    expect(page.get_by_text(re.compile(r"Corrected: \d+ transaction"))).to_be_visible()
    expect(row).to_contain_text(wanted)
    expect(page.locator("[data-coming]")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(row).not_to_contain_text(wanted)
    expect(page.locator("[data-coming]")).to_have_count(0)


@pytest.mark.requirement("page.states")
@LANGUAGES
@pytest.mark.sampled
def test_rows_that_cannot_be_had_say_so_and_come_at_a_press(
    signed_in: Opening, complaints: list[str], locale: str
) -> None:
    page = signed_in("/transactions", locale=locale)
    expect(rows(page).first).to_be_visible()
    refusing = "**/api/v1/transactions/search?*page=8*"
    page.route(refusing, lambda route: route.fulfill(status=500, json={"error": "Internal error"}))
    page.mouse.wheel(0, 56 * 740)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(re.compile("That did not work|Das hat nicht geklappt"))
    page.unroute(refusing)
    alert.get_by_role("button", name=re.compile("Try again|Noch einmal|Erneut")).click()
    expect(page.locator("a[data-index='745']")).to_be_visible()
    expect(alert).to_have_count(0)
    complaints[:] = [told for told in complaints if "500" not in told]


@pytest.mark.requirement("page.states")
@LANGUAGES
@pytest.mark.long
def test_without_a_network_a_place_not_opened_before_is_a_sentence_and_comes_with_the_network(
    signed_in: Opening, complaints: list[str], locale: str
) -> None:
    page = signed_in("/", locale=locale)
    expect(page.locator(".rows li").first).to_be_visible()
    page.context.set_offline(True)
    page.get_by_role("link", name=re.compile("^(Recurring|Wiederkehrend)$")).click()
    away = page.get_by_text(re.compile("The service cannot be reached. Is it|Der Dienst ist nicht erreichbar. L"))
    expect(away).to_be_visible()
    expect(page.get_by_role("heading", level=1, name=re.compile("Recurring|Wiederkehrend"))).to_be_visible()
    page.locator(".rows a, nav a").first.click()  # back to what is there
    page.locator(".rows a").first.click()
    expect(page.get_by_role("dialog")).to_contain_text(re.compile("cannot be reached|nicht erreichbar"))
    page.keyboard.press("Escape")
    page.get_by_role("link", name=re.compile("^(Recurring|Wiederkehrend)$")).click()
    expect(away).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator(".payments li").first).to_be_visible()
    complaints[:] = [told for told in complaints if "ERR_INTERNET_DISCONNECTED" not in told]


@pytest.mark.requirement("page.session")
@pytest.mark.long
def test_a_sign_out_that_nobody_hears_is_said_and_the_session_goes_on(
    signed_in: Opening, complaints: list[str]
) -> None:
    page = signed_in("/settings", user="solo")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.context.set_offline(True)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("The service cannot be reached. Is it running, and are you online?")).to_be_visible()
    page.context.set_offline(False)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("User name")).to_be_visible()
    complaints[:] = [told for told in complaints if "ERR_INTERNET_DISCONNECTED" not in told]


@pytest.mark.requirement("page.session")
@pytest.mark.long
def test_a_sign_out_that_is_refused_is_said_and_the_session_goes_on(signed_in: Opening, complaints: list[str]) -> None:
    page = signed_in("/settings", user="solo")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.route("**/account/sign-out", lambda route: route.fulfill(status=503), times=1)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("The service cannot be reached. Is it running, and are you online?")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("User name")).to_be_visible()
    complaints[:] = [told for told in complaints if "503" not in told]


@pytest.mark.requirement("page.session")
@pytest.mark.long
def test_a_sign_out_ends_a_session_whose_token_has_ended_before(
    demo: Demo, signed_in: Opening, complaints: list[str]
) -> None:
    page = signed_in("/months", user="solo")
    expect(page.locator("data.money:visible").first).to_be_visible()
    with page.expect_request("**/api/v1/**") as asked:
        page.get_by_role("link", name="Settings").click()
    token = asked.value.headers["authorization"].removeprefix("Bearer ")
    ended = httpx.post(f"{demo.origin}/oauth/revoke", data={"token": token, "client_id": "bankdata-page"})
    assert ended.status_code == 200
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("User name")).to_be_visible()
    complaints[:] = [told for told in complaints if "401" not in told]  # what was asked by the token just then


@pytest.mark.requirement("page.states")
@LANGUAGES
@pytest.mark.sampled
def test_transactions_on_paper_are_the_bookings_that_are_there_and_no_empty_sheet(
    demo: Demo, signed_in: Opening, locale: str
) -> None:
    page = signed_in("/transactions", locale=locale, color_scheme="dark")
    expect(rows(page).first).to_be_visible()
    printed = page.pdf(format="A4")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= SHEETS_MAX
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".long-list li")).to_have_count(100)
    count = f"{total(demo, demo.token('demo')):,}"
    german = re.escape(count.replace(",", "."))
    said = page.get_by_text(re.compile(f"100 of {count} transactions are on paper|100 von {german} Buchungen"))
    expect(said).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor") == "rgb(255, 255, 255)"
    boxes = page.locator(".long-list li").evaluate_all("all => all.map((each) => each.getBoundingClientRect().top)")
    assert boxes == sorted(set(boxes))  # one below the other
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(said).to_have_count(0)


@pytest.mark.requirement("page.states")
@pytest.mark.requirement("import.complete-windows")
@LANGUAGES
@pytest.mark.sampled
def test_what_a_bank_has_taken_back_stands_below_the_list_and_counts_no_more(
    demo: Demo, signed_in: Opening, tmp_path: Path, locale: str
) -> None:
    token = demo.token("empty")
    days = [("2026-02-05", "-1.50"), ("2026-02-06", "-2.50"), ("2026-02-09", "-3.50")]
    opening = (
        '<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">1007.50</Amt><CdtDbtInd>CRDT</CdtDbtInd>'
        "<Dt><Dt>2026-02-01</Dt></Dt></Bal>"
    )
    for name, told, closing in (("first", days, "1000.00"), ("second", [days[0], days[2]], "1002.50")):
        file = tmp_path / f"{name}.xml"
        file.write_text(statement(*told, closing=closing).replace("<Bal>", opening + "<Bal>", 1))
        demo.command("import", str(file), "--user", "empty")
    page = signed_in("/transactions", user="empty", locale=locale)
    expect(rows(page)).to_have_count(2)
    taken_back = page.locator("details.taken-back")
    taken_back.locator("summary").click()
    expect(taken_back.locator("summary")).to_have_text(re.compile("^(1 taken back by the bank|1 von der Bank zurück)"))
    expect(taken_back.locator("li.row")).to_have_count(1)
    expect(taken_back.locator("data")).to_have_attribute("value", "-2.5")
    page.goto(demo.origin + "/connections")
    expect(page.get_by_text(re.compile("The bank has taken back|Die Bank hat die Buchung"))).to_be_visible()
    (account,) = demo.read("/accounts", token)["accounts"]
    demo.command("accounts", "delete", account["id"], "--user", "empty", "--yes")
    page.goto(demo.origin + "/transactions")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(taken_back).to_have_count(0)


@pytest.mark.requirement("page.accounts")
@pytest.mark.requirement("accounts.overlap")
@LANGUAGES
@pytest.mark.long
def test_an_account_that_seems_to_be_another_one_is_asked_about_and_each_answer_is_taken_back_with_one_press(
    demo: Demo, signed_in: Opening, tmp_path: Path, locale: str
) -> None:
    token = demo.token("empty")
    said = statement(("2026-02-05", "-1.50"), ("2026-02-06", "-2.50"), ("2026-02-09", "-3.50"))
    for name, text in {
        "first": said,
        "second": said.replace("<IBAN>DE89370400440532013000</IBAN>", "<Othr><Id>77</Id></Othr>"),
    }.items():
        file = tmp_path / f"{name}.xml"
        file.write_text(text)
        demo.command("import", str(file), "--user", "empty")

    def shown() -> list[str]:
        return [each["id"] for each in demo.read("/accounts", token)["accounts"]]

    (first,) = shown()
    page = signed_in("/", user="empty", locale=locale)
    question = page.get_by_role("listitem", name=re.compile("^(Is this the same account|Ist das dasselbe Konto)"))
    undo = page.get_by_role("status").get_by_role("button", name=re.compile("^(Undo|Rückgängig|Zurücknehmen)$"))
    expect(question).to_contain_text(re.compile("It is not counted until you say|Es zählt nicht mit, bis Sie sagen"))
    question.get_by_role("button", name=re.compile("^(The same account|Dasselbe Konto)$")).click()
    expect(question).to_have_count(0)
    assert shown() == [first]
    undo.click()
    expect(question).to_be_visible()
    assert shown() == [first]
    question.get_by_role("button", name=re.compile("^(Another account|Ein anderes Konto)$")).click()
    expect(question).to_have_count(0)
    _, second = shown()
    page.wait_for_function(
        IS_QUIET, polling=500
    )  # what waits for its turn would ask for an account that is hidden again
    undo.click()
    expect(question).to_be_visible()
    assert shown() == [first]
    page.goto(demo.origin + "/settings")
    expect(question).to_be_visible()
    for account in (second, first):
        demo.command("accounts", "delete", account, "--user", "empty", "--yes")


def at_every_width(page: Page, looked_for: str) -> list[Any]:
    """What a script finds in the open page on a phone, a tablet and two screens."""
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(DRAWN)
        found += [(width, each) for each in page.evaluate(looked_for)]
    return found


@pytest.mark.requirement("page.states")
@LANGUAGES
@pytest.mark.sampled
def test_a_day_of_an_earlier_year_stands_beside_its_icon(demo: Demo, signed_in: Opening, locale: str) -> None:
    page = signed_in("/transactions?period=lastyear", locale=locale, viewport={"width": WIDTHS[0], "height": 900})
    year = str(int(demo.read("/profile", demo.token("demo"))["today"][:4]) - 1)
    expect(rows(page).first).to_contain_text(year)
    assert at_every_width(page, OVERLAPS) == []
    page.goto(demo.origin + f"/months?month={year}-09")
    expect(page.locator(".rows li").first).to_contain_text(year)
    assert at_every_width(page, OVERLAPS) == []


@pytest.mark.requirement("page.states")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.sampled
def test_a_button_that_does_nothing_yet_looks_like_none_that_does(signed_in: Opening, scheme: str) -> None:
    page = signed_in("/settings", color_scheme=scheme)
    page.get_by_role("button", name="New rule").click()
    look = "each => [getComputedStyle(each).backgroundColor, getComputedStyle(each).color]"
    form = page.get_by_role("form", name="New rule")
    add = form.get_by_role("button", name="Add rule")
    expect(add).to_be_disabled()
    disabled = add.evaluate(look)
    add.hover(force=True)
    assert add.evaluate(look) == disabled
    assert disabled != form.get_by_role("button", name="Cancel").evaluate(look)
    form.get_by_label("If", exact=True).fill("spotify")
    pick(form.get_by_label("Category"), "Leisure")
    expect(add).to_be_enabled()
    assert set(add.evaluate(look)).isdisjoint(disabled)


@pytest.mark.requirement("page.tasks")
@LANGUAGES
@pytest.mark.parametrize("opener", ["/months", "/", "/recurring"])
@pytest.mark.sampled
def test_a_booking_closes_to_where_it_was_opened_and_the_way_back_does_not_open_it_again(
    demo: Demo, signed_in: Opening, locale: str, opener: str
) -> None:
    page = signed_in("/settings", locale=locale)
    page.get_by_role("navigation").locator(f"a[href='{opener}']").first.click()
    if opener == "/recurring":
        page.locator(".payments a").first.click()
        page.get_by_role("dialog").locator("a.line").first.click()
    else:
        page.locator(".rows a").nth(2).click()
    booking = page.get_by_role("dialog", name=re.compile("^(Transaction|Buchung)$"))
    expect(booking.locator("dl")).to_be_visible()
    page.keyboard.press("Escape")
    expect(booking).to_have_count(0)
    if opener == "/recurring":
        expect(page.locator("dialog a.line").first).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.locator(".payments a").first).to_be_focused()
    else:
        expect(page.locator(".rows a").nth(2)).to_be_focused()
    assert page.url == demo.origin + opener
    page.go_back()
    expect(page.get_by_role("heading", level=1, name=re.compile("Settings|Einstellungen"))).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.requirement("page.tasks")
@pytest.mark.long
def test_a_booking_or_payment_that_is_opened_by_its_address_closes_to_its_list(demo: Demo, signed_in: Opening) -> None:
    token = demo.token("demo")
    booking = demo.read(f"/transactions?perPage=1&accountIds={ids(demo, token)}", token)["transactions"][0]["id"]
    page = signed_in(f"/transactions?search=e&id={booking}")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("dl")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.url == demo.origin + "/transactions?search=e"
    payment = demo.read(f"/subscriptions/details?accountIds={ids(demo, token)}", token)["subscriptions"][0]["id"]
    page.goto(demo.origin + f"/recurring?id={payment}")
    expect(dialog.locator("dl")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.url == demo.origin + "/recurring"


@pytest.mark.requirement("page.tasks")
def test_a_filter_that_is_chosen_while_the_search_waits_holds(signed_in: Opening) -> None:
    page = signed_in("/transactions")
    expect(rows(page).first).to_be_visible()
    page.clock.install()
    page.get_by_role("searchbox").fill("rewe")
    pick(page.get_by_label("Category"), "Groceries")
    pick(page.get_by_label("Period"), "Last year")
    page.clock.run_for(1000)
    page.wait_for_url("**/transactions?*search=rewe*")
    assert sorted(page.url.partition("?")[2].split("&")) == ["category=GROCERIES", "period=lastyear", "search=rewe"]


@pytest.mark.requirement("page.states")
@LANGUAGES
@pytest.mark.sampled
def test_where_nothing_is_yet_no_place_draws_a_chart_or_offers_to_clear_filters(
    demo: Demo, signed_in: Opening, locale: str
) -> None:
    page = signed_in("/months", user="empty", locale=locale)
    nothing = page.get_by_text(re.compile(r"^(No transactions yet|Noch keine Buchungen)\.$"))
    expect(nothing).to_be_visible()
    expect(page.locator(".chart")).to_have_count(0)
    page.goto(demo.origin + "/transactions")
    expect(nothing).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Clear filters|Filter aufheben"))).to_have_count(0)
    page.get_by_role("link", name=re.compile("Import statements|Kontoauszüge importieren")).click()
    expect(page.get_by_role("heading", level=1)).to_be_focused()


@pytest.mark.requirement("page.figures")
@LANGUAGES
@pytest.mark.long
def test_months_and_balances_reach_back_to_the_first_booking(
    demo: Demo, signed_in: Opening, tmp_path: Path, locale: str
) -> None:
    token = demo.token("empty")
    today = demo.read("/profile", token)["today"]
    year, month = (int(part) for part in today.split("-")[:2])
    file = tmp_path / "decade.xml"
    file.write_text(statement(("2014-03-03", "250.00"), ("2019-07-01", "-40.00"), (today, "-12.50")))
    page = signed_in("/import", user="empty", locale=locale)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name=re.compile("Import 3 new|3 neue")).click()
    undo = page.get_by_role("region", name="decade.xml").get_by_role("button", name=re.compile("^(Undo|Rückgängig)"))
    expect(undo).to_be_visible()
    page.goto(demo.origin + "/months?month=2014-03")
    expect(page.locator(".figures data").first).to_have_attribute("value", "250")
    chosen = page.locator(".month.chosen")
    expect(chosen).to_have_attribute("aria-label", re.compile(r"^(Mar|März) 2014: .*250[.,]00"))
    expect(page.get_by_role("button", name=re.compile("Earlier|Früher"))).to_be_disabled()
    later = page.get_by_role("button", name=re.compile("Later|Später"))
    while later.is_enabled():
        later.click()
    expect(page.locator(".month").last).to_have_attribute("aria-label", re.compile(rf"^\w+\.? {year} \("))
    page.locator("summary").click()
    expect(page.locator("tbody tr")).to_have_count(12 * (year - 2014) + month - 2)
    page.goto(demo.origin + "/")
    page.get_by_role("button", name="Max").click()
    expect(page.get_by_text(re.compile("(since|seit).* 2014"))).to_be_visible()
    series = demo.read("/balances?every=week", token)
    course = page.locator(".total").get_by_role("slider")
    expect(course).to_have_attribute("aria-valuemax", str(len(series["points"]) - 1))
    assert series["points"][0]["date"] < "2014-03-10"
    assert exact(series["points"][-1]["balance"]) == exact("1000")
    page.goto(demo.origin + "/import")
    page.get_by_role("button", name=re.compile(r"^(Undo|Rückgängig).*: decade.xml")).click()
    page.get_by_role("dialog").locator("button.danger").click()
    expect(page.get_by_role("button", name=re.compile("decade.xml"))).to_have_count(0)


@pytest.mark.requirement("page.tasks")
@LANGUAGES
@pytest.mark.long
def test_nine_files_are_one_press_one_summary_and_one_way_back(
    demo: Demo, signed_in: Opening, tmp_path: Path, locale: str
) -> None:
    files = [tmp_path / f"statement-{number}.xml" for number in range(1, 10)]
    for number, file in enumerate(files, start=1):
        file.write_text(statement((f"2026-0{number}-05", f"-{number}.50")))
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(b"\xff\xd8\xff no picture either")
    page = signed_in("/import", user="empty", locale=locale)
    page.locator("input[type=file]").set_input_files([*files, photo])
    together = page.get_by_role("region", name=re.compile("^10 (files|Dateien)$"))
    expect(together.get_by_role("status")).to_have_text(
        re.compile("^(9 with new transactions · 1 not imported|9 mit neuen Buchungen · 1 nicht importiert)$"),
        timeout=NINE_FILES_MS,
    )
    together.get_by_role("button", name=re.compile("^(Import 9 files|9 Dateien importieren)$")).click()
    expect(together.get_by_role("status")).to_contain_text(
        re.compile("9 imported · 1 not importedImported: 9 new|9 importiert · 1 nicht importiertImportiert: 9 neue"),
        timeout=NINE_FILES_MS,
    )
    token = demo.token("empty")
    assert demo.read("/transactions", token)["pagination"]["total"] == 9
    single = page.get_by_role("region", name="statement-4.xml")
    single.locator(".buttons button").click()
    expect(together.get_by_role("status")).to_contain_text(re.compile("8 imported|8 importiert"), timeout=NINE_FILES_MS)
    together.get_by_role("button", name=re.compile("^(Undo all|Alle zurücknehmen)$")).click()
    expect(together.get_by_role("status")).to_have_text(
        re.compile("^(1 not imported · 9 taken back|1 nicht importiert · 9 zurückgenommen)$"), timeout=NINE_FILES_MS
    )
    assert demo.read("/accounts", token)["accounts"] == []
    together.get_by_role("button", name=re.compile("^(Clear this list|Liste leeren)$")).click()
    expect(page.locator(".card.file")).to_have_count(0)


@pytest.mark.requirement("page.accounts")
@LANGUAGES
@pytest.mark.long
def test_a_merge_is_said_before_it_is_made_and_taken_back_and_that_two_ibans_differ(
    demo: Demo, signed_in: Opening, complaints: list[str], tmp_path: Path, locale: str
) -> None:
    token = demo.token("empty")
    said = statement(("2026-02-05", "-1.50"), ("2026-02-06", "-2.50"))
    for name, text in {
        "first": said,
        "second": said.replace("<IBAN>DE89370400440532013000</IBAN>", "<Othr><Id>77</Id></Othr>"),
        "third": said.replace("DE89370400440532013000", "DE02120300000000202051"),
    }.items():
        file = tmp_path / f"{name}.xml"
        file.write_text(text)
        demo.command("import", str(file), "--user", "empty")
    first, second, third = (each["id"] for each in demo.read("/accounts", token)["accounts"])
    page = signed_in("/settings", user="empty", locale=locale)
    page.get_by_role("button", name=re.compile("^(Change|Ändern): ")).nth(1).click()
    into = page.get_by_label(re.compile("^(Merge into|Zusammenführen mit)$"))
    merge = page.get_by_role("button", name=re.compile("^(Merge|Zusammenführen)$"))
    expect(merge).to_have_count(0)
    into.select_option(value=first)
    there = "^(2 transactions go to .*2 of them are there|2 Buchungen kommen zu .*2 davon sind dort)"
    plan = re.compile(there + r".*1[.,]000.*, (as of 6 Feb 2026|Stand 6\. Feb\. 2026)\.")
    expect(page.get_by_role("dialog").get_by_role("status").first).to_have_text(plan)  # below it toasts
    merge.click()
    apart = page.get_by_role("button", name=re.compile("^(Separate|Trennen): "))
    expect(apart).to_be_visible()
    assert [each["id"] for each in demo.read("/accounts", token)["accounts"]] == [first, third]
    apart.click()
    expect(apart).to_have_count(0)
    assert [each["id"] for each in demo.read("/accounts", token)["accounts"]] == [first, second, third]
    assert complaints == []
    page.get_by_role("button", name=re.compile("^(Change|Ändern): ")).nth(2).click()
    into.select_option(value=first)
    plan = re.compile("Their IBANs differ: .* a new one|Die IBANs sind verschieden: .* eine neue")
    expect(page.get_by_role("dialog").get_by_role("status").first).to_contain_text(plan)
    merge.click()
    expect(apart).to_be_visible()
    assert [each["id"] for each in demo.read("/accounts", token)["accounts"]] == [first, second]
    for account in (first, second):
        demo.command("accounts", "delete", account, "--user", "empty", "--yes")


@pytest.mark.requirement("page.states")
@LANGUAGES
@pytest.mark.sampled
def test_no_word_of_a_name_is_broken_in_two(demo: Demo, signed_in: Opening, locale: str) -> None:
    page = signed_in("/recurring", locale=locale, viewport={"width": WIDTHS[0], "height": 900})
    expect(page.locator(".payments li").first).to_be_visible()
    assert at_every_width(page, BROKEN_WORDS) == []
    page.goto(demo.origin + "/")
    expect(page.locator(".coming-up li").first).to_be_visible()
    assert at_every_width(page, BROKEN_WORDS) == []


@pytest.mark.requirement("page.states")
@pytest.mark.parametrize(
    "path", ["/", "/transactions", "/months", "/recurring", "/import", "/connections", "/settings"]
)
@pytest.mark.sampled
def test_on_a_wide_screen_hardly_anything_is_empty_beside_the_content(signed_in: Opening, path: str) -> None:
    page = signed_in(path, viewport={"width": 1920, "height": 1000})
    expect(page.locator("main .card").first).to_be_visible()
    expect(page.locator("main .bones")).to_have_count(0)
    edges = page.locator("main .card, main .drop, main .connections").evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect().right)"
    )
    assert max(edges) > 1920 * 0.95


@pytest.mark.requirement("page.tasks")
@LANGUAGES
@pytest.mark.long
def test_the_home_currency_is_chosen_and_sums_are_in_it(demo: Demo, signed_in: Opening, locale: str) -> None:
    page = signed_in("/settings", user="globe", locale=locale)
    home = page.get_by_label(re.compile("^(Home currency|Hauswährung)$"))
    try:
        home.select_option("CHF")
        expect(page.get_by_text(re.compile(r"^(Saved|Gespeichert)\.$"))).to_be_visible()
        page.get_by_role("navigation").locator("a[href='/']").first.click()
        expect(page.locator(".total .figure")).to_contain_text("CHF")
        token = demo.token("globe")
        snapshot = demo.read(f"/snapshot?accountIds={ids(demo, token)}", token)
        assert page.locator(".total .figure data").get_attribute("value") == str(snapshot["totalBalance"])
    finally:
        page.goto(demo.origin + "/settings")
        home.select_option("EUR")
        expect(page.get_by_text(re.compile(r"^(Saved|Gespeichert)\.$"))).to_be_visible()


@pytest.mark.requirement("page.accessible")
@LANGUAGES
@pytest.mark.sampled
def test_the_name_of_a_bar_has_the_words_that_stand_below_it(signed_in: Opening, locale: str) -> None:
    page = signed_in("/months", locale=locale)
    expect(page.locator(".month").first).to_be_visible()
    bars = page.locator(".month:has(text)").evaluate_all(
        "all => all.map((each) => [each.textContent.trim(), each.getAttribute('aria-label')])"
    )
    assert len(bars) > 10
    assert [bar for bar in bars if not re.search(rf"\b{bar[0]}\b", bar[1])] == []
