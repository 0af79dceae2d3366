"""Whatever a reader refuses, it says so in the sentence written here; the file beside it is read."""

import ast
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.connector import UNREADABLE, SourceError, as_sentence
from connectors.formats import read_records
from connectors.reference.rates_download import NoFileThere
from handlers.languages import ENGLISH, LANGUAGES, catalogue
from tests.statements.refusals import Refusal, refusals

ROOT = Path(__file__).parents[2]
SAYING = {"ProfileError", "_malformed", NoFileThere.__name__, *(kind.__name__ for kind in SourceError.__subclasses__())}
READERS = ("*.py", "camt/*.py", "mt940/*.py", "ofx/*.py", "own_formats/*.py", "read_as_csv/*.py", "parser_process/*.py")
QUOTED = ("camt", "mt940")  # rooms whose sentences end with the words of a ValueError


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize("case", list(refusals()), ids=lambda case: case.sentence)
def test_each_sentence_has_a_smallest_file_that_is_refused_and_one_beside_it_that_is_read(
    case: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.limit:
        monkeypatch.setattr(*case.limit)
    assert list(read_records(stream_of(case.read)))
    with pytest.raises(UNREADABLE) as refusal:
        list(read_records(stream_of(case.refused)))
    assert str(refusal.value) == case.sentence
    for language in set(LANGUAGES) - {ENGLISH}:
        assert catalogue(language).said(as_sentence(refusal.value)) not in (None, case.sentence)


@pytest.mark.requirement("readers.refusal")
def test_no_connector_says_a_sentence_that_no_test_expects() -> None:
    expected = {text for path in (ROOT / "tests").rglob("*.py") for text in texts(path)}
    unexpected = [
        f"{path.relative_to(ROOT)}: {pattern.pattern}"
        for path in (ROOT / "connectors").rglob("*.py")
        for pattern in sentences(path)
        if not any(pattern.search(text) for text in expected)
    ]
    assert unexpected == []


def stream_of(content: str | bytes) -> io.BytesIO:
    return io.BytesIO(content.encode() if isinstance(content, str) else content)


def texts(path: Path) -> Iterator[str]:
    """Every text that stands in a module, with what an f-string fills in as a word."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)


def sentences(path: Path) -> Iterator[re.Pattern[str]]:
    """What a module refuses with, where it is written out: whole, or as words that another module quotes."""
    quoted = {"ValueError"} if path.parent.name in QUOTED else set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SAYING | quoted and (words := pattern_of(node.args[0])):
            is_whole = name not in {"_malformed", "ValueError"}
            yield re.compile(f"^{words}$" if is_whole else words)


def pattern_of(said: ast.expr) -> str:
    """A text as a pattern, with anything in its places; nothing for other expressions."""
    if isinstance(said, ast.Call) and said.args:  # of a message
        return pattern_of(said.args[0])
    parts = said.values if isinstance(said, ast.JoinedStr) else [said]
    if not any(isinstance(part, ast.Constant) for part in parts):
        return ""
    written = "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)
    return re.sub(r"\\\{\w+\\\}", ".*", written)
