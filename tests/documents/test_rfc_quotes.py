"""Sentences of RFCs that comments quote are the RFCs' own, held against excerpts in tests/oauth/rfc_excerpts.tsv.

Inside a quote quotation marks are single, and `...` leaves words out.
"""

import csv
import re

import pytest

from tests.documents.conftest import ROOT

ROOMS = ("auth", "handlers", "storage", "connectors")
QUOTE = re.compile(r'"([^"]{12,}?)"[,;.)\s(]{0,3}RFC (\d{4}) (?:sections? )?(\d+(?:\.\d+)*)')


def plain(text: str) -> str:
    """For comparing: one blank between words, one kind of quotation mark, no case."""
    return " ".join(text.replace("'", '"').casefold().split()).rstrip(".,; ")


def excerpts() -> dict[tuple[str, str], str]:
    """By RFC and section."""
    with (ROOT / "tests" / "oauth" / "rfc_excerpts.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {(row["rfc"], row["section"]): plain(row["text"]) for row in rows}


def quotes() -> list[tuple[str, str, str, str]]:
    """File, quoted words, RFC and section of every quote in the code."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = re.sub(r"\n\s*(?:#)?\s*", " ", path.read_text("utf-8"))
            found += [(str(path.relative_to(ROOT)), match[1], match[2], match[3]) for match in QUOTE.finditer(text)]
    return found


@pytest.mark.requirement("docs.comments")
def test_an_rfc_is_named_behind_its_quote_where_the_others_look_for_it() -> None:
    turned = re.compile(r'RFC \d{4}[^".]{0,25}"[^"]{12,}"(?!,?\s*RFC)')
    texts = {path: path.read_text("utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if turned.search(text)] == []


def is_in(quote: str, text: str) -> bool:
    """Whether the parts of a quote stand in the text, in their order."""
    position = 0
    for part in quote.split("..."):
        position = text.find(plain(part), position)
        if position < 0:
            return False
    return True


@pytest.mark.requirement("docs.comments")
def test_every_quoted_sentence_of_an_rfc_is_its_own() -> None:
    known = excerpts()
    wrong = [
        f"{path}: RFC {rfc} section {section}: {quote}"
        for path, quote, rfc, section in quotes()
        if not is_in(quote, known.get((rfc, section), ""))
    ]
    assert wrong == []


@pytest.mark.requirement("docs.comments")
def test_every_excerpt_is_quoted_somewhere() -> None:
    quoted = {(rfc, section) for _, _, rfc, section in quotes()}
    assert sorted(excerpts().keys() - quoted) == []


@pytest.mark.requirement("docs.comments")
def test_a_changed_word_is_noticed() -> None:
    text = plain("The server MUST answer.")
    assert is_in("The server ... answer.", text)
    assert not is_in("The server SHOULD answer.", text)
    assert not is_in("answer ... The server", text)
