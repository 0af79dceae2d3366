"""The commands that README and docs show are run, and what they print is what is shown."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.documents.conftest import ROOT, Block, blocks, pages

DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
RunBlocks = Callable[..., list[str]]


@pytest.mark.requirement("docs.commands")
def test_the_readme_works_as_printed(run_blocks: RunBlocks) -> None:
    _check(["README.md"], run_blocks)


@pytest.mark.requirement("docs.commands")
@pytest.mark.parametrize("names", ["commands csv-profiles", "operations rules", "household"])
@pytest.mark.sampled
def test_commands_work_as_printed(run_blocks: RunBlocks, names: str, request: pytest.FixtureRequest) -> None:
    data = None if names == "household" else request.getfixturevalue("demo_store")
    _check([f"docs/{name}.md" for name in names.split()], run_blocks, data)


@pytest.mark.requirement("docs.commands")
def test_a_block_that_is_not_run_says_why() -> None:
    marks = [block.mark for page in pages() for block in blocks(page) if block.mark]
    assert all(re.fullmatch(r"not run: .{10,}", mark) for mark in marks), marks


def _check(names: list[str], run_blocks: RunBlocks, data: Path | None = None) -> None:
    """`data` is the folder of a demo for pages other than the README, where making it is part of what is shown."""
    read = [block for name in names for block in blocks(ROOT / name)]
    printed = run_blocks(read, data)
    for block, text in zip((block for block in read if block.is_run), printed, strict=True):
        assert _is_shown(block, text), f"{block.text}\nshows\n{block.shown}\nbut prints\n{text}"


def _is_shown(block: Block, printed: str) -> bool:
    match block.shown:
        case ("json", shown):
            return _alike(json.loads(shown), json.loads(printed))
        case ("text", shown):
            pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", shown.strip()))
            return re.fullmatch(pattern, printed.strip()) is not None
    return True


def _alike(shown: object, printed: object) -> bool:
    """The same keys and the same texts; numbers and moments are those of another day."""
    match shown, printed:
        case dict(), dict():
            return shown.keys() == printed.keys() and all(_alike(shown[key], printed[key]) for key in shown)
        case list(), list():
            return len(shown) == len(printed) and all(map(_alike, shown, printed))
        case str(), str():
            return shown == printed or bool(DATE_TIME.fullmatch(shown) and DATE_TIME.fullmatch(printed))
        case int() | float(), int() | float():
            return isinstance(shown, bool) == isinstance(printed, bool)
    return shown is None and printed is None
