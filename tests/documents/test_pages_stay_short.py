"""The pages stay a book that somebody reads: few words, lines of a screen, and what is true today."""

import re
from pathlib import Path

import pytest

from tests.documents.conftest import ROOT, pages

WORDS_MAX = 45_000  # of all pages together
LINE_MAX = 120
PAGE_WORDS_MAX = {
    "README.md": 700,
    "SECURITY.md": 260,
    "docs/analytics.md": 3_580,
    "docs/apps.md": 800,
    "docs/architecture.md": 2_200,
    "docs/assistants.md": 980,
    "docs/beyond.md": 850,
    "docs/changelog.md": 1_200,
    "docs/clients.md": 1_200,
    "docs/commands.md": 2_680,
    "docs/company.md": 2_480,
    "docs/csv-profiles.md": 1_200,
    "docs/data-model.md": 1_270,
    "docs/decisions/README.md": 3_870,
    "docs/decisions/imports.md": 1_000,
    "docs/decisions/interface.md": 1_150,
    "docs/decisions/oauth.md": 680,
    "docs/decisions/readers.md": 900,
    "docs/household.md": 700,
    "docs/live-banks.md": 1_440,
    "docs/mirror.md": 900,
    "docs/notices.md": 800,
    "docs/operations.md": 2_390,
    "docs/page.md": 850,
    "docs/performance.md": 1_500,
    "docs/recurring.md": 2_280,
    "docs/rules.md": 1_300,
    "docs/security.md": 2_800,
    "docs/settings.md": 1_360,
    "docs/testing.md": 1_060,
    "docs/webhooks.md": 700,
    "docs/write-a-source.md": 1_870,
}
HISTORY = re.compile(
    r"\b(w(as|ere) tried(?! again)|at a load of|until this decision|before it took|until then it was)\b", re.I
)
EVERY = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> list[str]:
    """The lines of a page without its blocks of code, whose output is as long as it is."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL).splitlines()


@pytest.mark.requirement("docs.length")
@EVERY
def test_a_page_has_no_more_words_than_it_may(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= PAGE_WORDS_MAX[str(page.relative_to(ROOT))]


@pytest.mark.requirement("docs.length")
def test_all_pages_together_are_read_in_an_afternoon() -> None:
    assert sum(len(page.read_text("utf-8").split()) for page in pages()) <= WORDS_MAX


@pytest.mark.requirement("docs.length")
@EVERY
def test_a_line_fits_on_a_screen(page: Path) -> None:
    assert [line for line in prose(page) if len(line) > LINE_MAX] == []


@pytest.mark.requirement("docs.present")
@pytest.mark.parametrize("page", [page for page in pages() if page.name != "changelog.md"], ids=lambda page: page.name)
def test_a_page_of_the_present_tells_no_history(page: Path) -> None:
    assert [found[0] for found in HISTORY.finditer(" ".join(page.read_text("utf-8").split()))] == []
