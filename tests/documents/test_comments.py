"""What comments quote can be looked up in this project: decisions, sections, pages, files, names of code."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.conftest import ROOT
from tests.documents.test_links import PATH, ROOMS
from tests.documents.test_requirements import decisions

DECISION_WORDS_MAX = 80
DECISIONS = ROOT / "docs" / "decisions"
KINDS = (".py", ".sql", ".tsv", ".toml", ".sh", ".html", ".yaml")
NUMBERS = r"(\d+(?:(?:, | and | to )\d+)*)"


def sources() -> list[Path]:
    """The files whose comments are read: all code of the project but its description of itself."""
    found = [path for room in ROOMS[:6] for path in (ROOT / room).rglob("*") if path.suffix in KINDS]
    hidden = ("__pycache__", "node_modules", "static")
    return sorted(path for path in found if not set(hidden) & set(path.parts) and path.parent.name != "documents")


TEXTS = {
    # A sentence may go on in the next line of its comment
    path: re.sub(r"\n\s*(?:#|--)?\s*", " ", path.read_text("utf-8"))
    for path in sources()
}


def quoted(pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Every place where something is quoted: file and words, and the match."""
    for path, text in TEXTS.items():
        for match in re.finditer(pattern, text):
            yield f"{path.relative_to(ROOT)}: {match[0]}", match


def numbered(page: Path) -> set[str]:
    """The numbers that a page explains: bold ones at the beginning of a sentence or cell, and those of headings."""
    text = page.read_text("utf-8")
    bold = re.findall(r"\*\*(\d+(?:\.\d+)?)(?:\.? [^*]*|\.)?\*\*", text)
    return set(bold) | set(re.findall(r"^#+ (\d+) ", text, flags=re.MULTILINE))


@pytest.mark.requirement("docs.decisions")
def test_a_decision_is_explained_once_in_at_most_80_words() -> None:
    page = (DECISIONS / "README.md").read_text("utf-8")
    paragraphs = re.findall(r"^\*\*\d+\. .*?(?=\n\n|\n?\Z)", page, flags=re.MULTILINE | re.DOTALL)
    numbers = [int(text.removeprefix("**").partition(".")[0]) for text in paragraphs]
    assert sorted(set(numbers)) == sorted(numbers)
    assert set(numbers) <= decisions()
    assert [text for text in paragraphs if len(text.split()) > DECISION_WORDS_MAX] == []


@pytest.mark.requirement("docs.decisions")
def test_every_decision_that_the_product_quotes_is_explained_and_every_other_has_its_sentence() -> None:
    explained, known = numbered(DECISIONS / "README.md"), {str(number) for number in decisions()}
    for said, match in quoted(rf"\b[Dd]ecisions?[ .]{NUMBERS}"):
        wanted = set(re.findall(r"\d+", match[1]))
        assert wanted <= (known if said.startswith("tests/") else explained), said


@pytest.mark.requirement("docs.decisions")
@pytest.mark.parametrize(
    ("page", "pattern"),
    [
        ("interface.md", r"\binterface(?: section)?[ .](\d+(?:\.\d+)?)(?:(?:,| and| to) (\d\.\d+))*"),
        ("oauth.md", r"\boauth\.md (\d+\.\d+)"),
    ],
)
def test_every_section_that_is_quoted_is_explained(page: str, pattern: str) -> None:
    known = numbered(DECISIONS / page)
    found = quoted(pattern)
    assert [said for said, match in found if not {number for number in match.groups() if number} <= known] == []


@pytest.mark.requirement("docs.decisions")
def test_every_page_and_heading_that_is_named_exists() -> None:
    known = {page.name: page for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
    found = quoted(r"([\w-]+\.md)(?:, \"([^\"]+)\")?")
    headings = {name: _headings(page) for name, page in known.items()}
    assert [
        said
        for said, match in found
        if match[1] not in known or (match[2] is not None and match[2] not in headings[match[1]])
    ] == []


@pytest.mark.requirement("docs.decisions")
def test_every_file_that_is_named_exists() -> None:
    def is_address(said: str) -> bool:
        return said.startswith("tests/") and bool(re.search(r": (docs|auth)/", said))  # the service has /docs, too

    found = quoted(PATH.pattern)
    assert [said for said, match in found if not list(ROOT.glob(match[0].rstrip("."))) and not is_address(said)] == []


@pytest.mark.requirement("docs.decisions")
def test_every_name_of_code_in_backticks_exists() -> None:
    found = quoted(rf"`((?:{'|'.join(ROOMS[:5])})(?:\.\w+)+)`")
    assert [said for said, match in found if not _exists(match[1])] == []


def _headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (?:\d+\. )?(.*)$", page.read_text("utf-8"), flags=re.MULTILINE)


def _exists(dotted: str) -> bool:
    """Whether this is a module, or something in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False
