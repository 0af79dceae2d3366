"""What a person does on the page, in a real Chromium: by what is seen, with figures equal to the interface's."""

import re
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening, pick, sign_in

NPM = Path(__file__).parents[1] / "clients" / "npm" / "install.sh"
PLACES = (
    "/", "/transactions", "/months", "/months?year=2025", "/recurring", "/merchants", "/merchants?name=Netflix",
    "/import", "/connections", "/settings", "/notices",
)  # fmt: skip
FIRST_VIEW_MAX = 150_000  # bytes
# What axe-core finds once charts follow a new width and colours a new scheme; ways to the faults cost time
FAULTS = """new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))
    .then(() => Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => null))))
    .then(() => axe.run({ selectors: false, resultTypes: ["violations"],
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }))
    .then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))"""
STATEMENT = """<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
<Stmt><Id>1</Id><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct><Ntry><Amt Ccy="EUR">12.99</Amt>
<CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-02</Dt></BookgDt><NtryDtls><TxDtls><RltdPties>
<Cdtr><Pty><Nm>Netflix</Nm></Pty></Cdtr></RltdPties></TxDtls></NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>"""


def cents(text: str | None) -> Decimal:
    """An amount as `data value` says it."""
    return Decimal(text or "").quantize(Decimal("0.01"))


def values(page: Page, within: str) -> list[Decimal]:
    """The amounts that programs can read within a part of the page, in their order."""
    found: list[str] = page.locator(f"{within} data.money").evaluate_all("all => all.map(each => each.value)")
    return [cents(value) for value in found]


def ids(demo: Demo, token: str) -> str:
    return ",".join(account["id"] for account in demo.read("/accounts", token)["accounts"])


def total(demo: Demo, token: str) -> int:
    """How many bookings the demo bank has told: it depends on the day."""
    found = demo.read(f"/transactions?accountIds={ids(demo, token)}", token)["pagination"]["total"]
    assert isinstance(found, int)
    return found


def exact(figure: Any) -> Decimal:
    return Decimal(str(figure)).quantize(Decimal("0.01"))


@pytest.mark.requirement("page.figures")
@pytest.mark.parametrize(
    ("user", "options"),
    [
        ("demo", {"locale": "de-DE"}),
        ("solo", {"timezone_id": "America/Los_Angeles"}),
        ("globe", {"viewport": {"width": 390, "height": 844}}),
    ],
)
@pytest.mark.sampled
def test_the_overview_says_what_the_interface_says(
    demo: Demo, signed_in: Opening, user: str, options: dict[str, Any]
) -> None:
    page = signed_in(user=user, **options)
    token = demo.token(user)
    accounts = demo.read("/accounts", token)["accounts"]
    snapshot = demo.read(f"/snapshot?accountIds={ids(demo, token)}", token)
    expect(page.locator(".total .figure data")).to_have_attribute("value", re.compile(r"\d"))
    assert values(page, ".total .figure") == [exact(snapshot["totalBalance"])]
    expect(page.locator(".total .course")).to_be_visible()
    series = demo.read(f"/balances?accountIds={ids(demo, token)}", token)
    expect(page.locator(".total").get_by_role("slider")).to_have_attribute("aria-valuemax", re.compile(r"^\d+$"))
    assert exact(series["points"][-1]["balance"]) == exact(snapshot["totalBalance"])
    assert values(page, ".accounts") == [exact(each["balance"]) for each in accounts if each["balance"] is not None]
    expect(page.locator(".bars li").first).to_be_visible()
    shown = [exact(each["amount"]) for each in snapshot["last30Days"]["topCategories"]]
    assert values(page, ".bars") == shown
    latest = demo.read(f"/transactions?perPage=8&accountIds={ids(demo, token)}", token)["transactions"]
    expect(page.locator(".rows li").first).to_be_visible()
    assert values(page, ".rows") == [exact(row["amount"]) for row in latest]


@pytest.mark.requirement("page.size")
@pytest.mark.long
def test_the_first_view_is_small_and_the_second_costs_next_to_nothing(
    demo: Demo, context: Callable[..., BrowserContext]
) -> None:
    page = context().new_page()
    page.goto(demo.origin)
    sign_in(page, "demo")
    expect(page.locator(".rows li").first).to_be_visible()
    weight = """performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
        .reduce((all, each) => all + each.transferSize, 0)"""
    assert 20_000 < page.evaluate(weight) <= FIRST_VIEW_MAX
    expect(page.locator("main .bones")).to_have_count(0)  # the stream of events never rests
    asked = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    asked = [each for each in asked if not each.endswith(".svg")]  # the full browser asks for its tab's icon itself
    assert sorted(asked) == sorted(set(asked))  # what two parts of a place show is asked for once
    page.reload()
    expect(page.locator(".rows li").first).to_be_visible()
    scripts = page.evaluate(
        """performance.getEntriesByType("resource").filter(({ name }) => name.includes("/assets/"))
            .reduce((all, each) => all + each.transferSize, 0)"""
    )
    assert scripts == 0


@pytest.mark.requirement("page.size")
def test_what_two_ask_for_comes_to_the_second_when_the_first_wants_it_no_more(signed_in: Opening) -> None:
    page = signed_in("/settings")
    told = page.evaluate(
        """async () => {
            const names = performance.getEntriesByType("resource").map(({ name }) => name);
            const { read } = await import(names.find((name) => name.endsWith("/api.js")));
            const first = new AbortController();
            const both = [read("/integrity", {}, { signal: first.signal }), read("/integrity")];
            first.abort();
            return (await Promise.allSettled(both)).map(({ status, value }) => [status, value?.accounts.length > 0]);
        }"""
    )
    assert told == [["rejected", False], ["fulfilled", True]]


@pytest.mark.requirement("page.tasks")
def test_a_search_while_typing_finds_and_its_address_can_be_shared(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions")
    expect(page.get_by_role("status").filter(has_text="transactions")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("spotify")
    token = demo.token("demo")
    found = demo.read(f"/transactions?search=spotify&accountIds={ids(demo, token)}", token)["pagination"]["total"]
    expect(page.get_by_text(f"{found} transactions")).to_be_visible()
    assert page.url.endswith("/transactions?search=spotify")
    pick(page.get_by_label("Category"), "Salary")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_text(f"{total(demo, token):,} transactions")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_value("")


@pytest.mark.requirement("page.tasks")
def test_any_booking_of_the_list_is_reached_by_keyboard_and_opened(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions")
    rows = page.get_by_role("list", name="Transactions")
    token = demo.token("demo")
    count = total(demo, token)
    rows.get_by_role("link").first.focus()
    page.keyboard.press("End")
    last = page.locator(f"[aria-posinset='{count}'] a:focus")
    expect(last).to_be_visible()
    assert page.locator(".long-list li").count() < 60
    oldest = demo.read(f"/transactions?perPage=1&page={count}&accountIds={ids(demo, token)}", token)["transactions"][0]
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Transaction")
    expect(dialog.locator(".figure data")).to_have_attribute("value", str(oldest["amount"]))
    expect(dialog.get_by_text("Why this category")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(last).to_be_focused()


@pytest.mark.requirement("page.tasks")
def test_behind_a_bar_stand_the_bookings_that_add_up_to_it(demo: Demo, signed_in: Opening) -> None:
    page = signed_in()
    token = demo.token("demo")
    month = demo.read(f"/cashflow?months=3&accountIds={ids(demo, token)}", token)["cashflow"][1]
    page.get_by_role("link", name=re.compile(r"Income|income")).nth(-2).click()
    expect(page.get_by_role("heading", level=1, name="Months")).to_be_focused()
    expect(page.locator(".figures data").first).to_be_visible()
    assert values(page, ".figures") == [exact(month[name]) for name in ("income", "expenses", "net")]
    more = page.get_by_role("button", name="All", exact=True)
    if more.count():
        more.click()
    explained = demo.read(f"/cashflow/{month['month']}/transactions?accountIds={ids(demo, token)}", token)
    categories = demo.read(f"/cashflow/categories?months=3&accountIds={ids(demo, token)}", token)["months"][1]
    expect(page.locator(".bars li").first).to_be_visible()
    assert values(page, ".bars") == [exact(each["amount"]) for each in categories["categories"]]
    counted = [row for row in explained["transactions"] if row["countedAs"]]
    expect(page.get_by_text(f"{len(counted)} transactions")).to_be_visible()
    assert sum(exact(row["countedAmount"]) for row in counted) == exact(month["net"])
    assert page.locator("[aria-labelledby='month-rows'] li").count() == len(counted)


@pytest.mark.requirement("page.tasks")
def test_recurring_payments_show_what_they_cost_and_each_of_their_charges(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/recurring")
    token = demo.token("demo")
    every = demo.read(f"/subscriptions/details?status=all&accountIds={ids(demo, token)}", token)["subscriptions"]
    payments = [each for each in every if each["status"] != "ended"]
    expect(page.get_by_role("region", name="Expenses").locator(".payments li")).to_have_count(len(payments))
    assert values(page, ".tile-card")[0] == sum(exact(each["yearlyCost"]) for each in payments)
    dearest = max(payments, key=lambda each: each["yearlyCost"])
    page.get_by_role("link", name=re.compile(re.escape(dearest["merchantName"]) + ".*monthly")).first.click()
    dialog = page.get_by_role("dialog", name=dearest["merchantName"])
    expect(dialog.locator("a.line")).to_have_count(len(dearest["charges"]))
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


@pytest.mark.requirement("page.tasks")
def test_a_balance_of_any_day_is_read_by_keyboard(demo: Demo, signed_in: Opening) -> None:
    page = signed_in()
    course = page.get_by_role("slider", name=re.compile("Balance over time"))
    course.focus()
    page.keyboard.press("Home")
    token = demo.token("demo")
    today = demo.read("/profile", token)["today"]
    since = f"{int(today[:4]) - 1}{today[4:]}"
    series = demo.read(f"/balances?accountIds={ids(demo, token)}&dateFrom={since}", token)
    first = f"€{exact(series['points'][0]['balance']):,}"
    expect(course).to_have_attribute("aria-valuetext", re.compile(re.escape(first)))
    page.get_by_role("button", name="2Y").click()
    expect(page.get_by_role("button", name="2Y")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text(re.compile(f"since .* {int(today[:4]) - 2}"))).to_be_visible()


@pytest.mark.requirement("page.tasks")
def test_a_sync_says_what_came_of_it_and_when_the_next_may_be(signed_in: Opening, complaints: list[str]) -> None:
    page = signed_in("/connections", user="solo")
    card = page.get_by_role("region", name="Musterbank")
    expect(card.get_by_text("Connected")).to_be_visible()
    page.get_by_role("button", name="Sync now: Musterbank").click()
    expect(page.get_by_text(re.compile("new transactions?|Nothing new"))).to_be_visible()
    expect(page.get_by_role("button", name="Sync now: Musterbank")).to_have_count(0)
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("button", name="Sync now").click()
    expect(page.get_by_text("Already up to date. Next sync at")).to_be_visible()
    complaints[:] = [told for told in complaints if "429" not in told]  # Chromium notes every refusal


@pytest.mark.requirement("page.tasks")
def test_files_are_looked_into_before_they_are_imported_and_taken_back(
    demo: Demo, signed_in: Opening, tmp_path: Path
) -> None:
    statement, photo = tmp_path / "march.xml", tmp_path / "photo.jpg"
    statement.write_text(STATEMENT)
    photo.write_bytes(b"\xff\xd8\xff no picture either")
    page = signed_in(user="empty")
    page.get_by_label("Choose files", exact=True).set_input_files([statement, photo])
    expect(page.get_by_role("heading", level=1, name="Import statements")).to_be_visible()
    file = page.get_by_role("region", name="march.xml")
    expect(file.get_by_text("1 new · 0 known")).to_be_visible()
    expect(page.get_by_role("region", name="photo.jpg").get_by_text("Not imported.")).to_be_visible()
    token = demo.token("empty")
    assert demo.read("/accounts", token)["accounts"] == []
    file.get_by_role("button", name="Import 1 new transaction").click()
    expect(file.get_by_text("Imported: 1 new transaction.")).to_be_visible()
    file.get_by_role("link", name="See the transactions").click()
    expect(page.get_by_role("list", name="Transactions")).to_contain_text("Netflix")
    page.get_by_role("link", name="Import", exact=True).click()
    page.get_by_label("Choose files", exact=True).set_input_files(statement)
    known = page.get_by_role("region", name="march.xml").filter(has_text="Everything in it is known already.")
    known.get_by_role("link", name="See the transactions").click()
    expect(page).to_have_url(re.compile(r"\?account=acc_"))
    page.get_by_role("link", name="Import", exact=True).click()
    known.get_by_role("button", name="Remove: march.xml").click()
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".rows")).to_contain_text("Netflix")
    page.get_by_role("link", name="Import", exact=True).click()
    page.get_by_role("button", name="Undo: march.xml").click()
    page.get_by_role("button", name="Undo import").click()
    expect(page.get_by_text("The import was taken back.")).to_be_visible()
    assert demo.read("/accounts", token)["accounts"] == []
    file.get_by_role("button", name="Read the file again").click()
    expect(file.get_by_text("1 new · 0 known")).to_be_visible()
    expect(file.get_by_role("button", name="Import 1 new transaction")).to_be_enabled()


@pytest.mark.requirement("page.tasks")
@pytest.mark.long
def test_a_category_is_corrected_for_all_alike_and_the_correction_taken_back(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions?search=spotify")
    rows = page.get_by_role("list", name="Transactions")
    rows.get_by_role("link").first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    pick(dialog.get_by_label("Category", exact=True), "Leisure")
    expect(
        dialog.get_by_text(re.compile(r"It will apply to Spotify: \d+ transactions, and all future ones."))
    ).to_be_visible()
    dialog.get_by_role("button", name="Correct", exact=True).click()
    expect(page.get_by_text(re.compile(r"Corrected: \d+ transactions."))).to_be_visible()
    expect(rows.get_by_role("link").first).to_contain_text("Leisure")
    page.get_by_role("button", name="Undo").click()
    expect(rows.get_by_role("link").first).to_contain_text("Music and audio books")


@pytest.mark.requirement("page.own_words")
@pytest.mark.long
def test_a_booking_is_divided_into_parts_that_are_the_whole(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=rewe")
    page.get_by_role("list", name="Transactions").get_by_role("link").last.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    pick(dialog.get_by_label("Category", exact=True).first, "Pharmacy")
    dialog.get_by_label("A name of your own below it").fill("Splitting")
    dialog.get_by_role("button", name="Add the name").click()
    expect(dialog.get_by_label("Category", exact=True).first).to_have_value("Splitting")
    dialog.get_by_role("button", name="Add a part").click()
    expect(dialog.get_by_role("button", name="Save the split")).to_be_disabled()
    dialog.get_by_label("Amount", exact=True).fill("9999")
    expect(dialog.get_by_text("The parts have to add up to the amount, none of them zero.")).to_be_visible()
    expect(dialog.locator("p.buttons data.money")).to_have_text(re.compile("^\u2212"))
    dialog.get_by_label("Amount", exact=True).fill("1.25")
    # what is typed counts before the field is left
    expect(dialog.get_by_role("button", name="Save the split")).to_be_enabled()
    pick(dialog.get_by_label("Category", exact=True).nth(1), "Splitting")
    dialog.get_by_label("Note", exact=True).fill("not kept yet")
    with page.expect_response(lambda answer: "/annotation" in answer.url and answer.request.method == "GET"):
        dialog.get_by_role("button", name="Save the split").click()
    expect(page.get_by_text("Saved.", exact=True)).to_be_visible()
    expect(dialog.get_by_label("Note", exact=True)).to_have_value("not kept yet")
    expect(dialog.get_by_label("Amount", exact=True)).to_have_value("1.25")
    for at, place in ((0, "Splitting"), (1, "Groceries")):
        expect(dialog.get_by_label("Category", exact=True).nth(at + 1)).to_have_value(place)
    dialog.get_by_role("button", name="Remove: 1").click()
    dialog.get_by_role("button", name="Take the split back").click()
    expect(dialog.get_by_role("button", name="Take the split back")).to_have_count(0)
    page.goto(page.url.split("/transactions")[0] + "/settings")
    page.get_by_role("button", name="Change: Splitting").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("button", name="Change: Splitting")).to_have_count(0)


@pytest.mark.requirement("page.own_words")
def test_one_booking_is_corrected_noted_and_tagged(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=spotify")
    rows = page.get_by_role("list", name="Transactions")
    rows.get_by_role("link").first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    dialog.get_by_label("Note", exact=True).fill("shared with Kim")
    dialog.get_by_role("button", name="Save the note").click()
    expect(dialog.get_by_role("button", name="Save the note")).to_be_disabled()
    expect(dialog.get_by_text("Saved.")).to_be_visible()  # a modal dialog silences what is outside of it
    expect(rows.get_by_role("link").first).to_contain_text("Note · Girokonto")
    expect(dialog.get_by_text("Bank transaction code")).to_be_visible()
    dialog.get_by_label("Tags").fill("music")
    dialog.get_by_role("button", name="Add the tag").click()
    expect(dialog.get_by_role("button", name="Remove: music")).to_be_visible()
    dialog.get_by_role("button", name="Remove: music").click()
    expect(dialog.get_by_role("button", name="Remove: music")).to_have_count(0)
    pick(dialog.get_by_label("Category", exact=True), "Leisure")
    dialog.get_by_label("Which transactions").select_option(label="by a rule")
    expect(
        dialog.get_by_text(re.compile(r"Rule: .+ It changes \d+ transactions, and applies to future ones."))
    ).to_be_visible()
    dialog.get_by_label("Which transactions").select_option(label="this one alone")
    expect(dialog.get_by_text("It will apply to this transaction alone, whatever rules say.")).to_be_visible()
    dialog.get_by_role("button", name="Correct", exact=True).click()
    expect(rows.get_by_role("link").first).to_contain_text("Leisure")
    expect(rows.get_by_role("link").nth(1)).to_contain_text("Music and audio books")
    page.get_by_role("button", name="Undo").click()
    expect(rows.get_by_role("link").first).to_contain_text("Music and audio books")


@pytest.mark.requirement("page.own_words")
@pytest.mark.long
def test_a_category_of_ones_own_is_made_used_renamed_and_removed(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=spotify")
    page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    pick(dialog.get_by_label("Category", exact=True), "Music and audio books")
    dialog.get_by_label("A name of your own below it").fill("Family plan")
    dialog.get_by_role("button", name="Add the name").click()
    expect(dialog.get_by_label("Category", exact=True)).to_have_value("Family plan")
    dialog.get_by_label("Which transactions").select_option(label="this one alone")
    dialog.get_by_role("button", name="Correct", exact=True).click()
    expect(dialog).to_have_count(0)
    page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
    expect(dialog.get_by_text("Subscriptions · Music and audio books · Family plan")).to_be_visible()
    page.goto(page.url.split("?")[0])
    pick(page.get_by_role("search").get_by_label("Category"), "Family plan")
    expect(page.get_by_text("1 transaction", exact=True)).to_be_visible()
    page.goto(page.url.split("/transactions")[0] + "/settings")
    page.get_by_role("button", name="Change: Family plan").click()
    page.get_by_label("Own name").fill("Music for all")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Change: Music for all").click()
    expect(page.get_by_text("If removed, its transactions stay where it was.")).to_be_visible()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_role("button", name="Change: Music for all")).to_have_count(0)


@pytest.mark.requirement("page.tasks")
@pytest.mark.parametrize(
    ("locale", "change", "limit"), [("en-GB", "Change", "Overdraft limit"), ("de-DE", "Ändern", "Dispokredit")]
)
@pytest.mark.sampled
def test_how_far_an_account_may_go_below_zero_is_said_and_taken_back(
    signed_in: Opening, locale: str, change: str, limit: str
) -> None:
    page = signed_in("/settings", user="solo", locale=locale)
    network = page.context.new_cdp_session(page)  # so slow that the dialog is open before it is told what was saved
    network.send("Network.enable")
    network.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 500, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    for said in ("500", ""):
        page.get_by_role("button", name=f"{change}: ").first.click()
        field = page.get_by_label(limit)
        field.fill(said)
        field.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.get_by_role("button", name=f"{change}: ").first.click()
        expect(page.get_by_label(limit)).to_have_value(said)
        page.keyboard.press("Escape")


@pytest.mark.requirement("page.tasks")
def test_what_waits_for_a_summary_says_so_where_none_is_sent(signed_in: Opening) -> None:
    page = signed_in("/notices", user="solo")
    last = page.locator(".told select").last
    for chosen, said in [
        ("off", "In the summary (none is sent)"),
        ("weekly", "In the summary"),
        ("off", "In the summary (none is sent)"),
    ]:
        page.get_by_label("Summary").select_option(chosen)
        expect(last.locator("option[value=digest]")).to_have_text(said)


@pytest.mark.requirement("page.tasks")
@pytest.mark.long
def test_an_account_is_renamed_hidden_and_shown_again(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/settings")
    page.get_by_role("button", name="Change: Tagesgeld").click()
    page.get_by_label("Own name").fill("Rainy days")
    page.get_by_label("Own name").press("Enter")  # beside its button is that of the credit line, once it is known
    page.get_by_role("button", name="Change: Rainy days").click()
    page.get_by_role("button", name="Hide").click()
    page.get_by_role("button", name="Show: Rainy days").click()
    page.get_by_role("button", name="Change: Rainy days").click()
    expect(page.get_by_role("button", name="Delete")).to_be_disabled()
    page.get_by_label("Own name").fill("Tagesgeld")
    page.get_by_label("Own name").press("Enter")
    expect(page.get_by_role("button", name="Change: Tagesgeld")).to_be_visible()


@pytest.mark.requirement("page.session")
@pytest.mark.long
def test_a_reload_and_a_second_tab_stay_signed_in_and_signing_out_ends_both(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/months?month=2026-10")
    expect(page.get_by_role("heading", name="October 2026")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="October 2026")).to_be_visible()
    other = page.context.new_page()
    other.goto(demo.origin + "/settings")
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_label("User name")).to_be_visible()
    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    assert "October" not in page.inner_text("body")
    page.get_by_role("button", name="Sign in").click()
    sign_in(page, "demo")
    expect(page.get_by_role("heading", name="October 2026")).to_be_visible()


@pytest.mark.requirement("page.session")
@pytest.mark.long
def test_a_session_that_ended_elsewhere_is_said_and_nothing_of_it_stays(
    signed_in: Opening, complaints: list[str]
) -> None:
    page = signed_in("/recurring")
    expect(page.locator(".payments li").first).to_be_visible()
    page.context.clear_cookies()
    page.route("**/api/v1/cashflow?*", lambda route: route.fulfill(status=401, json={"error": "Unauthorized"}))
    page.get_by_role("link", name="Months", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Your session has ended. Sign in again to go on.")
    assert "€" not in page.inner_text("body")
    complaints[:] = [told for told in complaints if "401" not in told]


@pytest.mark.requirement("page.session")
def test_nothing_is_kept_in_the_browser_but_theme_and_language(signed_in: Opening) -> None:
    page = signed_in("/settings")
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Deutsch").click()
    expect(page.get_by_role("heading", level=1, name="Einstellungen")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.evaluate("({...localStorage})") == {"theme": "dark", "language": "de"}
    assert page.evaluate("({...sessionStorage})") == {}


@pytest.mark.requirement("page.states")
def test_who_has_no_account_yet_reads_how_to_bring_one_in(signed_in: Opening) -> None:
    page = signed_in(user="empty")
    expect(page.get_by_role("heading", level=1, name="Welcome. Add your accounts.")).to_be_visible()
    expect(page.get_by_text("bankdata connect folder ~/statements --user")).to_be_visible()


@pytest.mark.requirement("page.states")
def test_without_a_subscription_one_sentence_says_so(signed_in: Opening, complaints: list[str]) -> None:
    page = signed_in(user="lapsed")
    expect(page.get_by_role("alert")).to_contain_text("An active subscription is needed.")
    expect(page.get_by_role("link", name="Subscribe")).to_be_visible()
    complaints[:] = [told for told in complaints if "403" not in told]  # Chromium notes every refusal


@pytest.mark.requirement("page.states")
def test_what_does_not_exist_any_more_is_a_sentence(signed_in: Opening, complaints: list[str]) -> None:
    page = signed_in("/transactions?id=txn_00000000000000000000000000000000")
    expect(page.get_by_role("dialog")).to_contain_text("This transaction does not exist (any more).")
    page.goto(page.url.replace("/transactions?id=txn_", "/recurring?id=sub_"))
    expect(page.get_by_role("dialog")).to_contain_text("This recurring payment does not exist (any more).")
    complaints[:] = [told for told in complaints if "404" not in told]


@pytest.mark.requirement("page.states")
@pytest.mark.long
def test_a_service_that_is_away_is_asked_again_and_a_budget_that_is_used_up_waited_for(
    signed_in: Opening, complaints: list[str]
) -> None:
    page = signed_in("/months")
    expect(page.locator(".figures data").first).to_be_visible()
    answers = iter(["away", "waiting", "there"])

    def handle(route: Any) -> None:
        match next(answers):
            case "away":
                route.fulfill(status=503, body="")
            case "waiting":
                route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": "Rate limit exceeded"})
            case _:
                route.continue_()

    page.route("**/subscriptions/details*", handle)
    page.get_by_role("link", name="Recurring").click()
    expect(page.get_by_text("The service cannot be reached. Trying again…")).to_be_visible()
    expect(page.get_by_text("Many requests at once. Going on in 1 second.")).to_be_visible()
    expect(page.locator(".payments li").first).to_be_visible()
    complaints[:] = [told for told in complaints if "50" not in told and "429" not in told]


@pytest.fixture(scope="module")
def axe() -> str:
    packages = subprocess.run(["bash", NPM], check=True, capture_output=True, text=True, timeout=600).stdout.strip()
    return (Path(packages) / "node_modules/axe-core/axe.min.js").read_text()


@pytest.mark.requirement("page.accessible")
@pytest.mark.parametrize(
    ("locale", "looks"),
    [("en", (("light", 1280), ("dark", 1280))), ("de-DE", (("dark", 390), ("light", 320)))],
    ids=["en", "de"],
)
@pytest.mark.long
def test_no_place_has_a_fault_of_accessibility_or_is_wider_than_its_screen(
    demo: Demo, signed_in: Opening, axe: str, locale: str, looks: tuple[tuple[Literal["light", "dark"], int], ...]
) -> None:
    page = signed_in(locale=locale)
    found: list[Any] = []
    account = demo.read("/accounts", demo.token("demo"))["accounts"][0]["id"]
    for path in (*PLACES, f"/accounts?id={account}", "/recurring?id=", "/transactions?id="):
        if path.endswith("="):
            link = page.locator(f"main a[href*='{path}']").first
            link.click()
            page.get_by_role("dialog").locator("dl").wait_for()
        else:
            page.goto(demo.origin + path)
        expect(page.locator("main .bones")).to_have_count(0)  # the stream of events never rests
        page.evaluate(axe)
        for scheme, width in looks:
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            found += [(path, scheme, width, *fault) for fault in page.evaluate(FAULTS)]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append((path, width, "wider than the screen"))
        if path.startswith("/accounts"):
            page.goto(demo.origin + "/recurring")
            page.locator(".payments li").first.wait_for()
        if path == "/recurring?id=":
            page.goto(demo.origin + "/transactions")
            page.locator(".long-list a").first.wait_for()
    assert found == []


@pytest.mark.requirement("page.session")
@pytest.mark.long
def test_a_page_from_before_a_sign_out_is_not_shown_again(demo: Demo, context: Callable[..., BrowserContext]) -> None:
    page = context().new_page()
    page.goto(demo.origin + "/")
    sign_in(page, "solo")
    expect(page.locator(".rows li").first).to_be_visible()
    page.evaluate("document.querySelector('a[href$=\"/settings\"]').click()")
    page.get_by_role("link", name="Open the documentation").click()
    page.wait_for_url("**/docs")
    page.context.clear_cookies()
    page.go_back()
    expect(page.get_by_label("User name")).to_be_visible()
