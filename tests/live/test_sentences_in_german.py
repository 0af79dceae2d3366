"""Whatever a source or a sync refuses is a sentence in German on a German page, with what differs in its place."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from connectors.connector import SourceError
from handlers.oauth.languages import LANGUAGES, Translated
from handlers.sentences import in_german

pytestmark = pytest.mark.requirement("live.german")

ROOT = Path(__file__).parents[2]
SAYING = [
    *(path for path in sorted((ROOT / "connectors" / "sources").rglob("*.py")) if path.parent.name != "demo"),
    ROOT / "connectors" / "sources" / "demo" / "live.py",
    ROOT / "connectors" / "connector.py",
    ROOT / "connectors" / "outgoing_http.py",
    *sorted((ROOT / "handlers" / "sync").glob("*.py")),
]


def said(path: Path) -> Iterator[str]:
    """Every sentence that stands in a module and is none of its explanations, with `…` where something differs; the
    docstrings of failures, which are their messages."""
    tree = ast.parse(path.read_text("utf-8"))
    explained = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    both = {id(k.value) for node in ast.walk(tree) if isinstance(node, ast.Call) for k in node.keywords}
    pieces = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values}
    reasons = {
        id(k.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for k in node.keywords
        if k.arg in ("reason", "error")
    }
    for node in ast.walk(tree):
        if id(node) in explained | pieces | (both - reasons):
            continue
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(map(piece, node.values))
        if " " in text and text.endswith(".") and (text[0].isupper() or text.startswith(("…", "finAPI"))):
            yield text
    module = import_module(str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__"))
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, SourceError)
            and value is not SourceError
            and value.__module__ == module.__name__
        ):
            yield str(value())


def piece(part: ast.expr) -> str:
    """A part of an f-string: what it says, or `…` for what it fills in, as it is written."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    spec = part.format_spec if isinstance(part, ast.FormattedValue) else None
    return re.sub("%.", "…", "".join(map(piece, spec.values))) if isinstance(spec, ast.JoinedStr) else "…"


@pytest.mark.parametrize("path", SAYING, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_sentence_is_known_in_german(path: Path) -> None:
    unknown = [text for text in said(path) if in_german(text) is None]
    assert unknown == []


def test_what_differs_keeps_its_place_and_what_it_is_about_its_name() -> None:
    assert in_german("bank.example broke off.") == "bank.example hat die Verbindung abgebrochen."
    assert in_german("Karte: The bank gives no bookings of this account (FinTS: 9210).") == (
        "Karte: Die Bank gibt keine Buchungen dieses Kontos (FinTS: 9210)."
    )
    assert in_german("Nobody wrote this.") is None
    assert in_german("Karte: nobody wrote this.") is None


def test_a_page_says_in_which_language_a_sentence_is_that_it_does_not_know() -> None:
    german, english = LANGUAGES["de"], LANGUAGES["en"]
    assert german.sentence("The bank could not be reached.") == Translated("Die Bank war nicht erreichbar.", "de")
    assert german.sentence("Nobody wrote this.") == Translated("Nobody wrote this.", "en")
    assert english.sentence("The bank could not be reached.") == Translated("The bank could not be reached.", "en")
