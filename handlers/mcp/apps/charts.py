"""MCP Apps (SEP-1865): a chart of some tools' answers, for clients that declare that they can show one."""

import json
import secrets
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from analytics.classification.facts import CATEGORIES, TYPES
from handlers.languages import LANGUAGES, catalogue
from handlers.names import Json

EXTENSION = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
CHART = "ui://bankdata/chart"
CHARTED = frozenset({"summarize_transactions", "get_cashflow", "get_balances"})
"""The tools whose answers the chart can draw."""

CAPABILITIES: Json = {"extensions": {EXTENSION: {}}}
RESOURCE: Json = {
    "uri": CHART,
    "name": "chart",
    "title": "Chart",
    "description": "Draws what a tool answered: sums, income and expenses, or balances.",
    "mimeType": MIME_TYPE,
}
META: Json = {"ui": {"resourceUri": CHART}}
"""The `_meta` of a tool whose answers the chart draws."""

SESSION_HEADER = "mcp-session-id"
SESSIONS = "apps-"
"""The beginning of session ids. Nothing is stored under them: a client of the handshake era declares once that it can
show charts, and its later requests show that only by carrying such an id."""
WORDS = (*CATEGORIES, *TYPES, "income", "expenses", "total_balance")
PLACE_OF_WORDS = "/* words */ {}"


def is_shown_by(capabilities: object) -> bool:
    """Whether a client that declares these capabilities can show the chart."""
    value = capabilities
    for name in ("extensions", EXTENSION, "mimeTypes"):
        value = value.get(name) if isinstance(value, dict) else None
    return isinstance(value, list) and MIME_TYPE in value


def session(kinds: str) -> dict[str, str]:
    """Headers with a new random session id that begins with `kinds`, and leave for a script in a browser to read it;
    nothing is stored."""
    return {SESSION_HEADER: f"{kinds}{secrets.token_hex(16)}", "access-control-expose-headers": "Mcp-Session-Id"}


def _chosen(page: Mapping[str, str]) -> dict[str, str]:
    return {name: page[name] for name in WORDS}


@lru_cache(maxsize=1)
def chart() -> Json:
    """The result of reading the chart's resource: one HTML document that loads nothing, so that no origin has to be
    allowed."""
    words = {
        language: {**catalogue(language).named("category"), **_chosen(catalogue(language).named("page"))}
        for language in LANGUAGES
    }
    text = (resources.files(__package__) / "chart.html").read_text("utf-8")
    page = text.replace(PLACE_OF_WORDS, json.dumps(words, ensure_ascii=False))
    return {"contents": [{"uri": CHART, "mimeType": MIME_TYPE, "text": page, "_meta": {"ui": {"prefersBorder": True}}}]}
