"""Answers that come late, in a real Chromium: what was typed or asked meanwhile stays, what was left is left alone."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from handlers.names import Json
from tests.contract.demo_server import SCOPES, WRITING, Demo
from tests.page.conftest import Opening, pick
from tests.page.test_layouts import FEBRUARY, kept_of
from tests.page.test_own_rules import SAID, lines, rule_of
from tests.page.test_what_broke import statement


def held(page: Page, address: str, method: str) -> Callable[[], None]:
    """From now on the first request of this kind waits until what is returned is called; the others do not."""
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == method and not waiting:
            waiting.append(route)
        else:
            route.continue_()

    def let_go() -> None:
        with page.expect_response(lambda answer: answer.request == waiting[0].request) as late:
            waiting[0].continue_()
        late.value.finished()
        page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")

    page.route(address, hold)
    return let_go


@pytest.mark.requirement("layouts.page")
@pytest.mark.parametrize("is_overtaken", [False, True])
@pytest.mark.sampled
def test_a_preview_that_comes_late_neither_undoes_what_is_typed_nor_replaces_a_newer_one(
    signed_in: Opening, tmp_path: Path, is_overtaken: bool
) -> None:
    with ZipFile(tmp_path / "two.zip", "w") as container:
        container.writestr("february.csv", FEBRUARY)
        container.writestr("other.csv", "Tag;Name;Summe\n02.02.2026;Eva;8,50\n")
    page = signed_in("/import", user="empty")
    page.get_by_label("Choose files", exact=True).set_input_files([tmp_path / "two.zip"])
    file = page.get_by_role("region", name="two.zip")
    expect(file.get_by_role("form")).to_have_count(2)
    first, second = (file.get_by_role("form", name=f"How the columns were read {number}") for number in (1, 2))
    let_go = held(page, "**/imports?**", "POST")
    first.get_by_label("What was spent", exact=True).select_option(label="has no minus")
    first.get_by_role("button", name="Preview again").press("Enter")
    second.get_by_label("What was spent", exact=True).select_option(label="has no minus")
    second.get_by_label("Currency", exact=True).fill("SEK")
    if not is_overtaken:
        let_go()
        expect(file.get_by_text("nothing in it says what was spent")).to_be_visible()
    expect(second.get_by_label("What was spent", exact=True)).to_have_value("turned")
    expect(second.get_by_label("Currency", exact=True)).to_have_value("SEK")
    second.get_by_role("button", name="Preview again").press("Enter")
    expect(file.get_by_text("3 new · 0 known")).to_be_visible()
    if is_overtaken:
        let_go()
    expect(file.get_by_text("3 new · 0 known")).to_be_visible()
    file.get_by_role("button", name="Remove: two.zip").click()


@pytest.mark.requirement("layouts.page")
@pytest.mark.long
def test_what_is_kept_is_what_was_previewed_whenever_it_was_ticked(
    demo: Demo, signed_in: Opening, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("Datum;Wer;Betrag\n02.02.2026;Rewe;-3,50\n")
    page = signed_in("/import", user="empty")
    page.get_by_label("Choose files", exact=True).set_input_files([tmp_path / "a.csv"])
    file = page.get_by_role("region", name="a.csv")
    file.get_by_text("How the columns were read").click()
    let_go = held(page, "**/imports?**", "POST")
    file.get_by_label("Currency", exact=True).fill("CHF")
    file.get_by_role("button", name="Preview again").press("Enter")
    file.get_by_label("Remember this, with the account, for files like it").check()
    let_go()
    expect(file.locator("data.money")).to_have_text("\u2212\u2060CHF\u00a03.50")
    file.get_by_role("button", name="Import 1 new transaction").click()
    expect(file.get_by_text("Imported: 1 new transaction.")).to_be_visible()
    assert [each["currency"] for each in demo.read("/accounts", demo.token("empty"))["accounts"]] == ["CHF"]
    kept_of(page).get_by_role("button", name="Remove: a.csv").click()
    expect(page.get_by_text("You will be asked again.")).to_be_visible()
    expect(kept_of(page)).to_be_hidden()  # everything below it moves up
    file.get_by_role("button", name="Undo").click()
    expect(file.get_by_text("The import was taken back.")).to_be_visible()


@pytest.mark.requirement("page.own_words")
@pytest.mark.long
def test_what_is_typed_while_a_note_and_a_tag_are_kept_stays(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=rewe")
    page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    note, tag = dialog.get_by_label("Note", exact=True), dialog.get_by_label("Tags")
    note.fill("a gift")
    let_go = held(page, "**/annotation", "PATCH")
    dialog.get_by_role("button", name="Save the note").click()
    note.fill("a gift for Kim")
    with page.expect_response(lambda answer: "/annotation" in answer.url and answer.request.method == "GET"):
        let_go()
    expect(note).to_have_value("a gift for Kim")
    expect(dialog.get_by_role("button", name="Save the note")).to_be_enabled()
    page.unroute("**/annotation")
    tag.fill("gift")
    let_go = held(page, "**/annotation", "PATCH")
    tag.press("Enter")
    tag.fill("Kim")
    with page.expect_response(lambda answer: "/annotation" in answer.url and answer.request.method == "GET"):
        let_go()
    expect(tag).to_have_value("Kim")
    tag.press("Enter")
    for name in ("gift", "Kim"):
        tag.fill("half a word")
        dialog.get_by_role("button", name=f"Remove: {name}").click()
        expect(dialog.get_by_role("button", name=f"Remove: {name}")).to_have_count(0)
        expect(tag).to_have_value("half a word")
    note.fill("")
    dialog.get_by_role("button", name="Save the note").click()
    expect(dialog.get_by_role("button", name="Save the note")).to_be_disabled()


@pytest.mark.requirement("page.own_words")
def test_an_open_booking_shows_what_was_said_of_it_elsewhere_since(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions?search=netflix")
    page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    note, amount = dialog.get_by_label("Note", exact=True), dialog.get_by_label("Amount", exact=True)
    expect(note).to_have_value("")
    headers = {"Authorization": f"Bearer {demo.token('demo', f'{SCOPES} {WRITING}')}"}
    with httpx.Client(base_url=demo.base_url, headers=headers, timeout=60) as client:
        (row, *_) = client.get("/transactions/search", params={"search": "netflix"}).json()["transactions"]
        parts = [{"amount": -1, "category": "OTHER"}, {"amount": row["amount"] + 1, "category": "OTHER"}]
        said = {"note": "for Kim", "tags": ["gift"], "splits": parts}
        assert client.patch(f"/transactions/{row['id']}/annotation", json=said).is_success
        page.evaluate("new BroadcastChannel('bankdata').postMessage('changed')")
        expect(note).to_have_value("for Kim")
        expect(dialog.get_by_role("button", name="Save the note")).to_be_disabled()
        expect(dialog.get_by_role("button", name="Remove: gift")).to_be_visible()
        expect(amount).to_have_value("1")
        dialog.get_by_label("Tags").fill("Kim")
        with page.expect_response(lambda answer: answer.request.method == "PATCH"):
            dialog.get_by_role("button", name="Add the tag").click()
        assert client.get(f"/transactions/{row['id']}/annotation").json()["tags"] == ["gift", "Kim"]
        for text in ("for Eva", ""):
            told: Json = {"note": text or None, "tags": [], "splits": []}
            assert client.patch(f"/transactions/{row['id']}/annotation", json=told).is_success
            page.evaluate("new BroadcastChannel('bankdata').postMessage('changed')")
            expect(note).to_have_value(text)
    expect(dialog.get_by_role("button", name="Remove:")).to_have_count(0)
    expect(amount).to_have_count(0)


@pytest.mark.requirement("page.own_words")
def test_a_note_that_is_saved_is_no_draft_though_its_booking_was_closed_at_once(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/transactions?search=netflix")
    page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
    note = page.get_by_role("dialog", name="Transaction").get_by_label("Note", exact=True)
    let_go = held(page, "**/annotation", "PATCH")
    note.fill("for Kim")
    with page.expect_request(lambda asked: asked.method == "PATCH") as kept:
        page.get_by_role("button", name="Save the note").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    let_go()
    headers = {"Authorization": f"Bearer {demo.token('demo', f'{SCOPES} {WRITING}')}"}
    for text in ("for Eva", None):
        assert httpx.patch(kept.value.url, json={"note": text}, headers=headers, timeout=60).is_success
        page.evaluate("new BroadcastChannel('bankdata').postMessage('changed')")
        page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
        expect(note).to_have_value(text or "")
        page.keyboard.press("Escape")


@pytest.mark.requirement("page.tasks")
def test_a_choice_takes_back_nothing_of_one_that_is_still_being_stored(signed_in: Opening) -> None:
    page = signed_in("/notices", user="solo")
    summary, kind = page.get_by_label("Summary", exact=True), page.locator(".told select").last
    for chosen, how in (("weekly", "digest"), ("off", "now")):
        let_go = held(page, "**/notices/settings", "PUT")
        with page.expect_request(lambda asked: asked.method == "PUT"):
            summary.select_option(chosen)
        with page.expect_response(lambda answer: answer.request.method == "PUT"):
            kind.select_option(how)
        let_go()
        page.unroute("**/notices/settings")
        page.reload()
        expect(summary).to_have_value(chosen)
        expect(kind).to_have_value(how)


@pytest.mark.requirement("page.tasks")
def test_what_a_correction_will_change_is_said_of_the_place_chosen_last(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=spotify")
    page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    let_go = held(page, "**/corrections?**", "POST")
    with page.expect_request("**/corrections?**"):
        pick(dialog.get_by_label("Category", exact=True), "Leisure")
    dialog.get_by_label("Which transactions").select_option(label="this one alone")
    expect(dialog.get_by_text("It will apply to this transaction alone, whatever rules say.")).to_be_visible()
    let_go()
    expect(dialog.get_by_text("It will apply to this transaction alone, whatever rules say.")).to_be_visible()


@pytest.mark.requirement("page.own_words")
@pytest.mark.long
def test_a_correction_that_ends_late_does_not_close_the_booking_that_was_opened_meanwhile(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=spotify")
    rows = page.get_by_role("list", name="Transactions").get_by_role("link")
    dialog = page.get_by_role("dialog", name="Transaction")
    rows.first.click()
    pick(dialog.get_by_label("Category", exact=True), "Leisure")
    dialog.get_by_label("Which transactions").select_option(label="this one alone")
    let_go = held(page, "**/annotation", "PATCH")
    with page.expect_request(lambda asked: asked.method == "PATCH"):
        dialog.get_by_role("button", name="Correct", exact=True).click()
    page.keyboard.press("Escape")
    rows.nth(1).click()
    dialog.get_by_label("Note", exact=True).fill("not kept yet")
    let_go()
    expect(page.get_by_text("Corrected: 1 transaction")).to_be_visible()
    expect(dialog.get_by_label("Note", exact=True)).to_have_value("not kept yet")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Undo").click()
    expect(rows.first).to_contain_text("Music and audio books")


@pytest.mark.requirement("page.own_rules")
@pytest.mark.long
def test_a_rule_that_is_saved_late_does_not_close_the_one_that_is_being_changed_by_then(signed_in: Opening) -> None:
    words = SAID["en-GB"]
    page = signed_in("/settings", user="solo")
    card = page.get_by_role("region", name=words["rules"])
    rule_of(page, words, "spotify", "Health")
    rule_of(page, words, "spot", "Health")
    card.get_by_role("button", name=words["change"] + words["first"]).click()
    value = card.get_by_role("form", name=words["edit"]).get_by_label(words["if"], exact=True)
    value.fill("netflix")
    expect(card.get_by_text(re.compile(words["changes"]))).to_be_visible()
    let_go = held(page, "**/rules/*", "PATCH")
    with page.expect_request("**/rules/*"):
        card.get_by_role("button", name=words["save"]).click()
    card.get_by_role("button", name=words["change"] + words["second"]).click()
    value.fill("typed meanwhile")
    let_go()
    expect(lines(page)).to_have_text([words["other"]])
    expect(value).to_have_value("typed meanwhile")
    page.get_by_role("button", name=words["cancel"], exact=True).click()
    for rule in (words["other"], words["second"]):
        card.get_by_role("button", name=words["remove"] + rule).click()
    expect(card.get_by_text(words["none"])).to_be_visible()


@pytest.mark.requirement("page.own_rules")
def test_a_form_that_is_sent_twice_before_its_answer_is_sent_once(signed_in: Opening) -> None:
    words = SAID["en-GB"]
    page = signed_in("/settings", user="solo")
    page.get_by_role("button", name=words["new"]).click()
    form = page.get_by_role("form", name=words["new"])
    form.get_by_label(words["if"], exact=True).fill("spotify")
    pick(form.get_by_label(words["category"]), words["health"])
    let_go = held(page, "**/api/v1/rules", "POST")
    with page.expect_request("**/api/v1/rules"):
        form.get_by_role("button", name=words["add"]).dblclick()
    let_go()
    expect(form).to_have_count(0)
    expect(lines(page)).to_have_text([words["first"]])
    page.get_by_role("button", name=words["remove"]).click()
    expect(page.get_by_text(words["none"])).to_be_visible()


@pytest.mark.requirement("page.own_rules")
def test_a_rule_that_is_moved_twice_at_once_moves_by_two(signed_in: Opening) -> None:
    words = SAID["en-GB"]
    page = signed_in("/settings", user="solo")
    card = page.get_by_role("region", name=words["rules"])
    for value in ("spotify", "spot", "netflix"):
        rule_of(page, words, value, "Health")
    let_go = held(page, "**/rules/order", "PUT")
    later = card.get_by_role("button", name=words["later"] + words["first"])
    with page.expect_request("**/rules/order"):
        later.press("Enter")
    later.press("Enter")
    let_go()
    expect(lines(page)).to_have_text([words["second"], words["other"], words["first"]])
    for rule in ("first", "second", "other"):
        card.get_by_role("button", name=words["remove"] + words[rule]).click()
    expect(card.get_by_text(words["none"])).to_be_visible()


@pytest.mark.requirement("page.live")
@pytest.mark.sampled
def test_open_tabs_follow_what_comes_in_elsewhere_and_what_is_read_stays_where_it_is(
    demo: Demo, signed_in: Opening, complaints: list[str]
) -> None:
    page = signed_in("/transactions")
    listening: list[str] = []
    other = page.context.new_page()
    other.on("request", lambda asked: listening.append(asked.url))
    other.goto(demo.origin + "/")
    expect(other.get_by_text("Corner shop")).to_have_count(0)
    before = int(re.sub(r"\D", "", page.locator(".found p").inner_text()))
    page.mouse.wheel(0, 56 * 40)
    page.locator("a.row[data-index='40'][href]").wait_for()  # the browser scrolls when it finds the time
    row = page.locator("a.row[href]", has_text=re.compile(".")).nth(12)
    href, place = row.get_attribute("href"), row.bounding_box()
    headers = {"Authorization": f"Bearer {demo.token('demo', f'{SCOPES} {WRITING}')}"}
    today = dt.datetime.now(dt.UTC).date().isoformat()
    with httpx.Client(base_url=demo.base_url, headers=headers, timeout=60) as client:
        told = client.post("/imports?filename=new.xml", content=statement((today, "-4.20"), (today, "-7.10")).encode(),
                           headers={"Content-Type": "application/octet-stream"}).json()  # fmt: skip
        expect(page.locator(".found p")).to_have_text(f"{before + 2:,} transactions")
        expect(other.get_by_text("Corner shop")).to_have_count(2)
        assert page.locator(f"a.row[href='{href}']").bounding_box() == place
        while client.get(f"/imports/{told['importId']}").json()["status"] == "running":
            pass  # each waits for seconds
        asked = -1
        while asked != len(listening):  # the other tab has heard of the end of the import, too, and asks no more
            asked = len(listening)
            other.wait_for_timeout(1_000)
        assert client.delete(f"/imports/{told['importId']}").is_success
    expect(page.locator(".found p")).to_have_text(f"{before:,} transactions")
    expect(other.get_by_text("Corner shop")).to_have_count(0)
    assert not [url for url in listening if "/events" in url]  # one tab listens for both
    page.close()
    other.wait_for_event("request", lambda asked: "/events" in asked.url)


@pytest.mark.requirement("page.live")
def test_what_comes_in_before_the_stream_of_events_is_open_is_shown_as_well(demo: Demo, signed_in: Opening) -> None:
    page = signed_in("/connections")
    held: list[Route] = []
    page.route("**/api/v1/events", lambda route: held.append(route), times=1)
    page.goto(demo.origin + "/")
    expect(page.get_by_role("region", name="Latest transactions")).to_be_visible()
    while not held:
        page.wait_for_timeout(50)
    headers = {"Authorization": f"Bearer {demo.token('demo', f'{SCOPES} {WRITING}')}"}
    today = dt.datetime.now(dt.UTC).date().isoformat()
    with httpx.Client(base_url=demo.base_url, headers=headers, timeout=60) as client:
        told = client.post("/imports?filename=new.xml", content=statement((today, "-4.20")).encode(),
                           headers={"Content-Type": "application/octet-stream"}).json()  # fmt: skip
        while client.get(f"/imports/{told['importId']}").json()["status"] == "running":
            pass  # each waits for seconds
        expect(page.get_by_text("Corner shop")).to_have_count(0)
        for each in held:
            each.continue_()
        expect(page.get_by_text("Corner shop")).to_have_count(1)
        assert client.delete(f"/imports/{told['importId']}").is_success


@pytest.mark.requirement("page.live")
def test_at_midnight_and_after_a_long_absence_the_page_asks_what_is_now(signed_in: Opening) -> None:
    page = signed_in("/connections")
    expect(page.get_by_text("Last sync").first).to_be_visible()
    with page.expect_request("**/api/v1/profile"):
        page.clock.set_fixed_time(dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    expect(page.get_by_text("yesterday").first).to_be_visible()


@pytest.mark.requirement("page.live")
@pytest.mark.sampled
def test_a_place_that_could_not_be_had_comes_by_itself_once_the_service_answers_again(
    signed_in: Opening, complaints: list[str]
) -> None:
    page = signed_in("/settings", user="solo")
    expect(page.get_by_role("heading", name="Appearance")).to_be_visible()
    for gone in ("**/api/v1/**", "**/assets/**", "**/recurring"):
        page.route(gone, lambda route: route.abort())
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # the stream of events is cut off, too
    page.get_by_role("link", name="Recurring").click()
    expect(page.get_by_text("The service cannot be reached. Is it running").first).to_be_visible()
    expect(page.get_by_text("The service cannot be reached. Trying again…")).to_be_visible()
    page.unroute_all()
    expect(page.get_by_text("Cost per year")).to_be_visible()
    expect(page.get_by_text("The service cannot be reached. Trying again…")).to_have_count(0)
    complaints[:] = [told for told in complaints if "ERR_FAILED" not in told]


TYPED_AT_ONCE = """
new MutationObserver((_, observer) => {
  const note = document.getElementById("own-note");
  if (!note) return;
  observer.disconnect();
  note.value = "for Kim";
  note.dispatchEvent(new InputEvent("input", { bubbles: true }));
}).observe(document.body, { childList: true, subtree: true });
"""


@pytest.mark.requirement("page.own_words")
def test_what_is_typed_before_the_first_paint_of_a_note_stays(signed_in: Opening) -> None:
    page = signed_in("/transactions?search=spotify")
    page.evaluate(TYPED_AT_ONCE)
    page.get_by_role("list", name="Transactions").get_by_role("link").first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    expect(dialog.get_by_role("button", name="Save the note")).to_be_enabled()
    expect(dialog.get_by_label("Note", exact=True)).to_have_value("for Kim")
    dialog.get_by_label("Note", exact=True).fill("")  # as it was


@pytest.mark.requirement("page.own_words")
@pytest.mark.sampled
def test_a_note_that_cannot_be_saved_is_said_in_its_dialog_and_held(signed_in: Opening, complaints: list[str]) -> None:
    page = signed_in("/transactions?search=spotify")
    first = page.get_by_role("list", name="Transactions").get_by_role("link").first
    first.click()
    dialog = page.get_by_role("dialog", name="Transaction")
    note = dialog.get_by_label("Note", exact=True)
    note.fill("for Kim")
    page.route("**/annotation", lambda route: route.abort())
    dialog.get_by_role("button", name="Save the note").click()
    expect(dialog.get_by_text("The service cannot be reached. What you typed is still here.")).to_be_visible()
    expect(note).to_have_value("for Kim")
    page.unroute("**/annotation")
    page.keyboard.press("Escape")
    first.click()
    expect(note).to_have_value("for Kim")
    note.fill("")  # as it was
    complaints[:] = [told for told in complaints if "ERR_FAILED" not in told]
