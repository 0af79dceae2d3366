"""Every link, heading, file and address that a document names exists."""

import re
from pathlib import Path

import pytest

from tests.documents.conftest import ROOT, blocks, pages, ticked

LINK = re.compile(r"\]\(([^)\s]+)\)")
ROOMS = ("handlers", "connectors", "auth", "storage", "analytics", "tests", "docs", ".ci")
PATH = re.compile(rf"(?<![\w/.\-])(?:{'|'.join(map(re.escape, ROOMS))})/[\w./*-]*[\w*]")


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.requirement("docs.links")
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.requirement("docs.links")
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_is_named_exists(page: Path) -> None:
    for text in [*ticked(page.read_text("utf-8")), *(block.text for block in blocks(page) if block.language == "sh")]:
        for path in PATH.findall(text):
            assert list(ROOT.glob(path)), path


@pytest.mark.requirement("docs.links")
def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, todo = set[Path](), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = (target.partition("#")[0] for target in LINK.findall(page.read_text("utf-8")))
        todo += [(page.parent / target).resolve() for target in targets if target and "://" not in target]
    assert seen == set(pages())
