"""docs/security.md in both directions: no promise without the tests that hold it, no test of an attack without one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(tests/[\w/]+/test_\w+\.py)`")
HELD = ("tests/attack", "tests/oauth")  # what they test are promises of this page


def section(title: str) -> str:
    """What stands below a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[str]:
    """The rows of a table, without its head."""
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def paragraphs(text: str) -> list[str]:
    """What is no table."""
    return [part for part in text.strip().split("\n\n") if not part.startswith("|")]


PROMISES = [
    *rows(section("Threats and answers")),
    *re.split(r"\n(?=- )", section("Choices").strip()),
    *(
        paragraph
        for title in ("What is stored", "Keys", "What leaves the machine", "Behind a proxy")
        for paragraph in paragraphs(section(title))
    ),
]


@pytest.mark.requirement("docs.security")
def test_every_promise_names_a_test() -> None:
    assert len(PROMISES) > 40
    assert [promise for promise in PROMISES if not TEST.search(promise)] == []


@pytest.mark.requirement("docs.security")
def test_what_is_named_holds_tests() -> None:
    named = set(TEST.findall(PAGE))
    assert sorted(name for name in named if "\ndef test_" not in (ROOT / name).read_text(encoding="utf-8")) == []


@pytest.mark.requirement("docs.security")
def test_every_test_of_an_attack_and_of_a_rule_of_oauth_is_named() -> None:
    files = {str(path.relative_to(ROOT)) for folder in HELD for path in (ROOT / folder).rglob("test_*.py")}
    assert sorted(files - set(TEST.findall(PAGE))) == []
