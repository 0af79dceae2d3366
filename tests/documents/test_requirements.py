"""tests/requirements.tsv in both directions: no promise without a test, no test's mark without a promise."""

import csv
import re
from fnmatch import fnmatchcase
from pathlib import Path

TESTS = Path(__file__).parents[1]
MARK = re.compile(r'\brequirement\(\s*"([^"]+)"')
INTERFACE = [
    *(f"interface 2.{number}" for number in range(1, 14)),
    "interface 3",
    *(f"interface 4.{number}" for number in range(1, 10)),
    "interface 5",
    *(f"interface 5.{number}" for number in range(1, 7)),
    "interface 7",
    "interface 8",
    "interface 9",
]
"""The sections that promise something; 1 introduces, 6 says that there are no events."""


def promises() -> list[tuple[str, str, list[str]]]:
    """Source, sentence, and the marks of the tests that hold it; one with an asterisk only gathers further ones."""
    with (TESTS / "requirements.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows[0] == ["promise", "sentence", "marks"]
    assert [row for row in rows[1:] if len(row) != 3 or not all(row)] == []
    return [(promise, sentence, marks.split("; ")) for promise, sentence, marks in rows[1:]]


def marks() -> set[str]:
    """What the tests say they hold."""
    return {mark for path in TESTS.rglob("*.py") for mark in MARK.findall(path.read_text(encoding="utf-8"))}


def test_every_promise_names_a_test_that_holds_it() -> None:
    known = marks()
    named = [(promise, {mark for mark in needed if "*" not in mark}) for promise, _, needed in promises()]
    assert [promise for promise, wanted in named if not wanted] == []
    assert [(promise, sorted(wanted - known)) for promise, wanted in named if wanted - known] == []


def test_no_asterisk_gathers_nothing() -> None:
    known = marks()
    gathering = {mark for *_, needed in promises() for mark in needed if "*" in mark}
    assert sorted(each for each in gathering if not any(fnmatchcase(mark, each) for mark in known)) == []


def test_every_mark_of_a_test_belongs_to_a_promise() -> None:
    wanted = [pattern for *_, patterns in promises() for pattern in patterns]
    assert sorted(mark for mark in marks() if not any(fnmatchcase(mark, each) for each in wanted)) == []


def decisions() -> set[int]:
    """The numbers of all decisions: each has its sentence here, the most important ones a paragraph of their page."""
    return {int(promise.removeprefix("decision ")) for promise, *_ in promises() if promise.startswith("decision ")}


def test_every_section_of_the_interface_is_a_promise_and_decisions_are_numbered_without_a_gap() -> None:
    numbers = decisions()
    assert numbers == set(range(1, max(numbers) + 1))
    named = {promise for promise, *_ in promises()}
    assert [each for each in INTERFACE if each not in named] == []
    known = {*INTERFACE, *(f"issue {number}" for number in range(2, 16))}
    assert [each for each in named if each not in known and not each.startswith("decision ")] == []
