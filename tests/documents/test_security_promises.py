"""docs/security.md in both directions: no promise without the tests that hold it, no test of an attack without one."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
HELD = ("tests/attack", "tests/oauth")  # what they test are promises of this page
SECTIONS = ("What is stored", "Keys", "What leaves the machine", "Behind a proxy")


def promises() -> dict[str, list[str]]:
    """What the page promises, by its words in bold or its heading, and the files of tests that hold it."""
    with (ROOT / "tests" / "documents" / "security_promises.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows[0] == ["promise", "tests"]
    return {promise: tests.split() for promise, tests in rows[1:]}


def section(title: str) -> str:
    """What stands below a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.requirement("docs.security")
def test_every_promise_of_the_page_names_its_tests_and_no_other_is_named() -> None:
    threats, choices = (section(title) for title in ("Threats and answers", "Choices"))
    listed = [" ".join(words.split()) for words in re.findall(r"^- \*\*(.+?)\*\*", threats + choices, re.M | re.S)]
    assert len(listed) > 40
    assert [*listed, *SECTIONS] == list(promises())
    assert [promise for promise, tests in promises().items() if not tests] == []
    assert [title for title in SECTIONS if not section(title)] == []


@pytest.mark.requirement("docs.security")
def test_what_is_named_holds_tests() -> None:
    named = {file for tests in promises().values() for file in tests}
    assert sorted(name for name in named if "\ndef test_" not in (ROOT / name).read_text(encoding="utf-8")) == []


@pytest.mark.requirement("docs.security")
def test_every_test_of_an_attack_and_of_a_rule_of_oauth_is_named() -> None:
    files = {str(path.relative_to(ROOT)) for folder in HELD for path in (ROOT / folder).rglob("test_*.py")}
    assert sorted(files - {file for tests in promises().values() for file in tests}) == []
