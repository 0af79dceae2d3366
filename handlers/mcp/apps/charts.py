"""MCP Apps (SEP-1865): a chart of what some tools answer, for clients that say they show such things."""

import json
import secrets
from functools import lru_cache
from importlib import resources
from typing import Any

from analytics.classification.facts import CATEGORIES, TYPES
from analytics.classification.leaves import LEAVES
from handlers.sentences import words_of_page

Json = dict[str, Any]

EXTENSION = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
CHART = "ui://bankdata/chart"
CHARTED = frozenset({"summarize_transactions", "get_cashflow", "get_balances"})
"""The tools whose answers the chart can draw."""

CAPABILITIES: Json = {"resources": {}, "extensions": {EXTENSION: {}}}
RESOURCE: Json = {
    "uri": CHART,
    "name": "chart",
    "title": "Chart",
    "description": "Draws what a tool answered: sums, income and expenses, or balances.",
    "mimeType": MIME_TYPE,
}
META: Json = {"ui": {"resourceUri": CHART}}
"""What a tool says whose answers are drawn."""

SESSION_HEADER = "mcp-session-id"
SESSIONS = "apps-"
"""How ids of sessions begin. Nothing is kept under them: a client of the handshake says once what it can do and sends
the id from then on, which is all that later requests say of it."""
WORDS = (*CATEGORIES, *TYPES, "income", "expenses", "total_balance")
PLACE_OF_WORDS = "/* words */ {}"


def is_shown_by(capabilities: object) -> bool:
    """Whether a client with these capabilities shows the chart."""
    value = capabilities
    for name in ("extensions", EXTENSION, "mimeTypes"):
        value = value.get(name) if isinstance(value, dict) else None
    return isinstance(value, list) and MIME_TYPE in value


def session() -> dict[str, str]:
    """The headers that begin a session, and let a browser read which."""
    return {SESSION_HEADER: f"{SESSIONS}{secrets.token_hex(16)}", "access-control-expose-headers": "Mcp-Session-Id"}


@lru_cache(maxsize=1)
def chart() -> Json:
    """What reading the resource answers: one document that asks nobody for anything, so that no origin is named."""
    finer = {
        "en": {code: leaf.english for code, leaf in LEAVES.items()},
        "de": {code: leaf.german for code, leaf in LEAVES.items()},
    }
    words = {language: {**finer[language], **words_of_page(language, WORDS)} for language in finer}
    text = (resources.files(__package__) / "chart.html").read_text("utf-8")
    told = text.replace(PLACE_OF_WORDS, json.dumps(words, ensure_ascii=False))
    return {"contents": [{"uri": CHART, "mimeType": MIME_TYPE, "text": told, "_meta": {"ui": {"prefersBorder": True}}}]}
