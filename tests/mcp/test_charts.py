"""MCP Apps: who is offered a chart and who notices nothing, and what a host in a real Chromium shows of it."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from tests.browsers import chromium
from tests.explanations.conftest import Service
from tests.mcp.conftest import META, Assistant, Json, assistant

__all__ = ["chromium"]  # a fixture of the page's tests, for these too

CHART = "ui://bankdata/chart"
MIME_TYPE = "text/html;profile=mcp-app"
SHOWS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/plain", MIME_TYPE]}}}
SHOWS_MODERN = {**META, "io.modelcontextprotocol/clientCapabilities": SHOWS}
CHARTED = ["summarize_transactions", "get_cashflow", "get_balances"]

RESTRICTIVE = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " media-src 'self' data:; connect-src 'none'"
)
"""What a host must allow at most where a resource names no origin (SEP-1865)."""
HOST = """<!doctype html><title>Host</title><body style="margin: 0">
<iframe sandbox="allow-scripts" title="View" style="border: 0; width: 100%; height: 40px"></iframe>
<script>
const frame = document.querySelector("iframe");
window.heard = [];
window.tell = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
window.addEventListener("message", ({ source, data }) => {
  if (source !== frame.contentWindow) return;
  heard.push(data);
  if (data.method === "ui/initialize") tell({ id: data.id, result: { protocolVersion: "2026-01-26",
    hostInfo: { name: "host", version: "1" }, hostCapabilities: {}, hostContext: window.told } });
  if (data.method === "ui/notifications/size-changed") frame.style.height = data.params.height + "px";
});
window.show = (html, told) => { window.told = told; frame.srcdoc = html; };
</script>"""


def begin(client: Assistant, capabilities: Json) -> Any:
    return client.asks("initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {}})


def session_of(client: Assistant) -> dict[str, str]:
    return {"Mcp-Session-Id": begin(client, SHOWS).headers["mcp-session-id"]}


@pytest.mark.requirement("mcp.apps")
def test_a_client_of_the_handshake_that_shows_apps_is_offered_the_chart(demo_user: Assistant) -> None:
    begun = begin(demo_user, SHOWS)
    assert begun.json()["result"]["capabilities"] == {
        "tools": {},
        "prompts": {},
        "resources": {},
        "extensions": {"io.modelcontextprotocol/ui": {}},
    }
    session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
    assert "Mcp-Session-Id" in begun.headers["access-control-expose-headers"]
    assert begin(demo_user, SHOWS).headers["mcp-session-id"] != session["Mcp-Session-Id"]
    tools = demo_user.asks("tools/list", {}, **session).json()["result"]["tools"]
    assert [(tool["name"], tool["_meta"]) for tool in tools if "_meta" in tool] == [
        (name, {"ui": {"resourceUri": CHART}}) for name in CHARTED
    ]
    assert [{name: value for name, value in tool.items() if name != "_meta"} for tool in tools] == demo_user.tools()
    listed = demo_user.asks("resources/list", {}, **session).json()["result"]["resources"][-1]
    assert (listed["uri"], listed["mimeType"]) == (CHART, MIME_TYPE)
    assert demo_user.asks("resources/templates/list", **session).json()["result"] == {"resourceTemplates": []}
    (read,) = demo_user.asks("resources/read", {"uri": CHART}, **session).json()["result"]["contents"]
    assert (read["uri"], read["mimeType"], read["_meta"]) == (CHART, MIME_TYPE, {"ui": {"prefersBorder": True}})
    assert read["text"].startswith("<!doctype html>")
    assert '"Lebensmittel"' in read["text"]


@pytest.mark.requirement("mcp.apps")
def test_a_modern_client_that_shows_apps_says_so_with_each_request(demo_user: Assistant) -> None:
    def asked(method: str, meta: Json, **params: Any) -> Any:
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": params.get("uri", "")}
        return demo_user.asks(method, {**params, "_meta": meta}, **headers)

    found = asked("server/discover", SHOWS_MODERN).json()["result"]
    assert (found["capabilities"]["resources"], found["cacheScope"]) == ({"subscribe": True}, "private")
    tools = asked("tools/list", SHOWS_MODERN).json()["result"]["tools"]
    assert [tool["name"] for tool in tools if "_meta" in tool] == CHARTED
    read = asked("resources/read", SHOWS_MODERN, uri=CHART).json()["result"]
    assert (read["resultType"], read["cacheScope"], len(read["contents"])) == ("complete", "private", 1)
    assert asked("resources/read", META, uri=CHART).json()["error"]["code"] == -32602
    mismatched = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read", "Mcp-Name": "ui://other"}
    answer = demo_user.asks("resources/read", {"uri": CHART, "_meta": SHOWS_MODERN}, **mismatched)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


@pytest.mark.requirement("mcp.apps")
@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"extensions": None},
        {"extensions": {"io.modelcontextprotocol/ui": {}}},
        {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": MIME_TYPE}}},
        {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}},
        {"extensions": {"org.example/other": {"mimeTypes": [MIME_TYPE]}}},
    ],
)
def test_who_does_not_show_apps_gets_byte_for_byte_what_there_was(demo_user: Assistant, capabilities: Json) -> None:
    begun = begin(demo_user, capabilities)
    assert begun.json()["result"]["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}}
    assert "mcp-session-id" not in begun.headers
    modern = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    assert demo_user.asks("tools/list", {"_meta": modern}, **headers).content == (
        demo_user.asks_modern("tools/list").content
    )
    assert "_meta" not in demo_user.asks("tools/list", {}, **{"Mcp-Session-Id": "somebody-else-s"}).text
    assert CHART not in demo_user.asks("resources/list").text
    assert demo_user.asks("resources/read", {"uri": CHART}).json()["error"]["code"] == -32602


@pytest.mark.requirement("mcp.apps")
def test_a_resource_that_is_not_listed_is_not_read_and_not_repeated(demo_user: Assistant) -> None:
    session = session_of(demo_user)
    for uri in ("ui://bankdata/everything", None):
        answer = demo_user.asks("resources/read", {"uri": uri}, **session)
        assert answer.json()["error"]["code"] == -32602
        assert "everything" not in answer.text
    assert demo_user.asks("resources/list", {"cursor": "x"}, **session).json()["error"]["code"] == -32602


@pytest.mark.requirement("mcp.apps")
def test_a_grant_is_offered_no_chart_of_a_tool_that_it_does_not_list(demo_service: Service) -> None:
    narrow = assistant(demo_service, "demo", frozenset({"read:cashflow"}))
    tools = narrow.asks("tools/list", {}, **session_of(narrow)).json()["result"]["tools"]
    assert [tool["name"] for tool in tools if "_meta" in tool] == ["get_cashflow"]


Shown = Callable[..., FrameLocator]


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A host whose view says nothing on the console and asks nobody for anything."""
    context = chromium.new_context(viewport={"width": 420, "height": 700}, locale="en-GB")
    complaints: list[str] = []
    context.on("console", lambda message: complaints.append(message.text))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("request", lambda request: complaints.append(request.url))
    made = context.new_page()
    made.set_content(HOST)
    yield made
    context.close()
    assert complaints == []


@pytest.fixture
def shown(page: Page, demo_user: Assistant) -> Shown:
    """The view after it shook hands with the host and was told this result."""
    read = demo_user.asks("resources/read", {"uri": CHART}, **session_of(demo_user)).json()["result"]["contents"][0]
    guarded = read["text"].replace(
        "<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{RESTRICTIVE}">', 1
    )

    def show(result: Json | None, **told: Any) -> FrameLocator:
        page.evaluate("([html, told]) => show(html, told)", [guarded, told])
        page.wait_for_function('heard.some((each) => each.method === "ui/notifications/initialized")')
        if result is not None:
            tell(page, "ui/notifications/tool-input", {"arguments": {}})
            tell(page, "ui/notifications/tool-result", result)
        return page.frame_locator("iframe")

    return show


def tell(page: Page, method: str, params: Json) -> None:
    page.evaluate("([method, params]) => tell({ method, params })", [method, params])


def cells(view: FrameLocator) -> list[list[str]]:
    """What the table says, row by row, with its heads."""
    rows = view.locator("tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return [[re.sub(r"\s", " ", text) for text in row] for row in rows]


@pytest.mark.requirement("mcp.apps")
def test_the_view_shakes_hands_and_draws_months_with_a_table_behind_them(
    page: Page, shown: Shown, demo_user: Assistant
) -> None:
    result = demo_user.result("get_cashflow", months=3)
    view = shown(result, theme="dark", locale="en-GB")
    expect(view.get_by_role("heading")).to_have_text("By month")
    expect(view.get_by_role("img", name="By month").locator("rect")).to_have_count(6)
    hands = page.evaluate("heard")[0]
    assert hands["method"] == "ui/initialize"
    assert hands["params"]["protocolVersion"] == "2026-01-26"
    assert view.locator("html").evaluate("(root) => getComputedStyle(root).colorScheme") == "dark"
    view.get_by_text("As a table").click()
    months = result["structuredContent"]["cashflow"]
    assert cells(view) == [
        ["Month", "Income", "Expenses"],
        *(
            [name, f"€{month['income']:,.2f}", f"€{month['expenses']:,.2f}"]
            for name, month in zip(("Sept 2026", "Oct 2026", "Nov 2026"), months, strict=True)
        ),
    ]
    page.wait_for_function("document.querySelector('iframe').clientHeight > 300")
    assert view.locator("html").evaluate("(root) => root.scrollWidth <= root.clientWidth")


@pytest.mark.requirement("mcp.apps")
def test_the_view_speaks_german_and_names_everything_as_the_page_does(shown: Shown, demo_user: Assistant) -> None:
    view = shown(demo_user.result("summarize_transactions", groupBy="category", limit=2), theme="light", locale="de-DE")
    expect(view.get_by_role("heading")).to_have_text("Nach Kategorie")
    table = cells(view)
    assert table[0] == ["Kategorie", "Ausgaben", "Einnahmen"]
    assert [row[0] for row in table[1:]] == ["Wohnen", "Lebensmittel", "Alle übrigen"]
    assert re.fullmatch(r"[\d.]+,\d\d €", table[1][1])
    expect(view.locator(".bar")).to_have_count(3)
    assert view.locator("html").get_attribute("lang") == "de-DE"


@pytest.mark.requirement("mcp.apps")
def test_the_view_follows_its_host_and_answers_it(page: Page, shown: Shown, demo_user: Assistant) -> None:
    styled = {"locale": "en-GB", "styles": {"variables": {"--font-sans": "serif"}}}
    view = shown(demo_user.result("get_balances", dateFrom="2026-08-01"), **styled)
    expect(view.get_by_role("heading")).to_have_text("Total balance")
    expect(view.locator("circle")).to_have_count(4)
    assert view.locator("body").evaluate("(body) => getComputedStyle(body).fontFamily") == "serif"
    tell(page, "ui/notifications/host-context-changed", {"locale": "de", "theme": "dark"})
    expect(view.get_by_role("heading")).to_have_text("Gesamtsaldo")
    tell(page, "ui/notifications/host-context-changed", {"locale": "no language"})
    for id_, method in ((7, "ping"), (8, "ui/resource-teardown"), (9, "tools/list")):
        page.evaluate("([id, method]) => tell({ id, method })", [id_, method])
    page.wait_for_function("heard.some((each) => each.id === 9)")
    answers = {each["id"]: each.get("result") for each in page.evaluate("heard") if each.get("id", 1) != 1}
    assert answers == {7: {}, 8: {}, 9: None}
    tell(page, "ui/notifications/tool-cancelled", {"reason": "x"})
    expect(view.get_by_role("heading")).to_have_text("Abgebrochen")


@pytest.mark.requirement("mcp.apps")
def test_what_strangers_wrote_is_text_and_nothing_else(page: Page, shown: Shown) -> None:
    hostile = "<img src=x onerror=parent.postMessage('broken','*')>" * 4
    groups = {
        "columns": ["merchant", "month", "count", "expenses", "refunds", "income", "compared_expenses"],
        "rows": [["m1", "2026-03", 1, 9.5, 0.0, 0.0, 4.0], [None, "2026-04", 1, 2.0, 0.0, 0.0, 0.0]],
        "flags": [],
        "bank_text": {"m1": f"«{hostile}»"},
    }
    content = {
        **{"currency": "JPY", "count": 2, "income": 0.0, "expenses": 11.5, "first": "2026-03-01", "last": "2026-04-02"},
        **{"groups": groups, "rest": {"count": 0}, "unconvertedCurrencies": ["USD"]},
        "compared": {"dateFrom": "2025-03-01", "dateTo": "2025-04-30", "first": None, "last": None},
    }
    view = shown({"content": [{"type": "text", "text": json.dumps(content)}]}, locale="en-GB")
    expect(view.get_by_role("heading")).to_have_text("By merchant and month")
    assert cells(view) == [
        ["Merchant · Month", "Expenses", "Expenses (earlier)"],
        [f"{hostile} · Mar 2026", "JP¥10", "JP¥4"],
        ["Not named · Apr 2026", "JP¥2", "JP¥0"],
    ]
    expect(view.get_by_text("Not counted, without an exchange rate: USD")).to_be_visible()
    expect(view.get_by_text("2 bookings · 1 Mar 2026 – 2 Apr 2026 · earlier: 1 Mar 2025 – 30 Apr 2025")).to_be_visible()
    assert view.locator("img").count() == 0
    assert "broken" not in page.evaluate("heard")
    assert view.locator("html").evaluate("(root) => root.scrollWidth <= root.clientWidth")


@pytest.mark.requirement("mcp.apps")
def test_the_view_says_so_where_there_is_nothing_to_draw(page: Page, shown: Shown, demo_user: Assistant) -> None:
    view = shown(None, locale="en")
    expect(view.get_by_role("heading")).to_have_text("Waiting for the figures")
    tell(page, "ui/notifications/tool-result", demo_user.result("summarize_transactions", words="nothinglikeit"))
    expect(view.get_by_role("heading")).to_have_text("Altogether")
    tell(page, "ui/notifications/tool-result", demo_user.result("summarize_transactions", dateFrom="yesterday"))
    expect(view.get_by_role("heading")).to_contain_text("dateFrom")
    tell(page, "ui/notifications/tool-result", {"content": []})
    expect(view.get_by_role("heading")).to_have_text("Nothing to draw")
    nothing = demo_user.result("summarize_transactions", words="nothinglikeit", groupBy="month")
    tell(page, "ui/notifications/tool-result", nothing)
    expect(view.get_by_text("Nothing to draw")).to_be_visible()
    tell(page, "ui/notifications/tool-result", {"structuredContent": {"income": 1.0, "expenses": 2.0}})
    expect(view.get_by_role("heading")).to_have_text("Nothing to draw")


@pytest.mark.requirement("mcp.apps")
def test_the_view_draws_finer_categories_and_what_is_in_the_rest_alone(page: Page, shown: Shown) -> None:
    groups = {
        "columns": ["detailedCategory", "count", "expenses", "refunds", "income"],
        "rows": [["BAKERY", 3, 12.0, 0.0, 0.0]],
        "flags": [],
        "bank_text": {},
    }
    content = {
        **{"currency": "EUR", "count": 5, "income": 7.0, "expenses": 13.5, "first": "2026-03-01", "last": "2026-04-02"},
        **{"groups": groups, "rest": {"count": 2, "expenses": 1.5, "refunds": 0.0, "income": 7.0}},
    }
    view = shown({"structuredContent": content}, locale="de")
    expect(view.get_by_role("heading")).to_have_text("Nach Unterkategorie")
    assert cells(view) == [
        ["Unterkategorie", "Ausgaben", "Einnahmen"],
        ["Bäckerei", "12,00 €", "0,00 €"],
        ["Alle übrigen", "1,50 €", "7,00 €"],
    ]
    tell(page, "ui/notifications/host-context-changed", {"locale": "en"})
    expect(view.get_by_role("heading")).to_have_text("By finer category")
