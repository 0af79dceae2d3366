"""Every regular expression of the product costs at most so many steps for each character, however long the text."""

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import analytics
import auth
import connectors
import handlers
import storage
from connectors.bank_csv import amounts_and_dates
from connectors.bank_csv.column_places import label_pattern
from connectors.bank_csv.profile import built_in_profiles
from tests.attack.files.growing import attacks
from tests.attack.files.step_counting import Steps
from tests.conftest import chance, examples

pytestmark = pytest.mark.no_cover  # thousands of steps, see tests/conftest.py

ATTACKS = 60  # for each expression
ATTACKS_ON_LONG = 6  # where it names hundreds of words
LONG_PATTERN = 2_000  # characters
SHORT, LONG = 60, 1300  # repeats; bounded repeats such as {0,512} end in between
GROWTH_MAX = 1.4  # of the steps for each character, when the text is twice as long
BOUNDED = {"handlers.mcp.prompt_injections"}  # many words, but READ_LENGTH_MAX characters: tests/mcp/test_fence.py
SEARCHED = {"BEHIND_PATTERNS"}  # by a loop, which `searching` does not see
ANYWHERE = {"search", "sub", "subn", "split", "findall", "finditer"}


def modules() -> Iterator[ModuleType]:
    for room in (analytics, auth, connectors, handlers, storage):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if found.name not in BOUNDED:
                yield importlib.import_module(found.name)


def patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    """Those that a name of a module stands for."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(each)


def searching(module: ModuleType) -> set[str]:
    """The names of expressions that a module looks for anywhere in a text."""
    assert module.__file__
    calls = [
        node for node in ast.walk(ast.parse(Path(module.__file__).read_text("utf-8"))) if isinstance(node, ast.Call)
    ]
    found = set()
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ANYWHERE:
            holder = call.func.value.value if isinstance(call.func.value, ast.Subscript) else call.func.value
            if isinstance(holder, ast.Name):
                found.add(holder.id)
    return found


def expressions() -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """Name, expression, and whether it is looked for anywhere."""
    for module in modules():
        found = [(name, each) for name, value in vars(module).items() for each in patterns_in(value)]
        anywhere = searching(module) if found else set()
        for name, each in found:
            yield f"{module.__name__}.{name}", each, name in anywhere or name in SEARCHED
    for text in amounts_and_dates.FORMATS:
        yield f"date {text}", re.compile(amounts_and_dates.pattern_of(text)), False
    for profile in built_in_profiles():
        if profile.labels:
            yield f"labels of {profile.name}", label_pattern(profile.labels), True


ALL = sorted({(name, pattern.pattern): (name, pattern, anywhere) for name, pattern, anywhere in expressions()}.values(),
             key=lambda entry: (entry[0], str(entry[1].pattern)))  # fmt: skip

IDS = [f"{number}-{entry[0]}" for number, entry in enumerate(ALL)]


@pytest.fixture(autouse=True)
def deep_recursion() -> Iterator[None]:
    """What counts steps calls itself for each; other tests of this process would overflow its stack with such a
    limit."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(60_000)
    yield
    sys.setrecursionlimit(before)


stepper = cache(Steps)


def steps(pattern: re.Pattern[Any], text: str, *, is_anywhere: bool) -> float:
    """Steps for each character."""
    run = stepper(pattern).of(text)
    if is_anywhere:
        run.search_all()
    else:
        run.match(is_full=True)
    return run.count / (len(text) + 1)


def grows(pattern: re.Pattern[Any], head: str, pump: str, end: str, *, is_anywhere: bool, longest: int = LONG) -> bool:
    """Whether a character costs more in a longer text, beyond what bounded repeats explain."""
    for times in (SHORT, longest):
        short, long = (
            steps(pattern, head + pump * repeats + end, is_anywhere=is_anywhere) for repeats in (times, 2 * times)
        )
        if long <= short * GROWTH_MAX:
            return False
    return True


@pytest.mark.requirement("security.linear-patterns")
@pytest.mark.parametrize(("name", "pattern", "is_anywhere"), ALL, ids=IDS)
def test_a_character_costs_no_more_in_a_longer_text(name: str, pattern: re.Pattern[Any], is_anywhere: bool) -> None:
    count = examples(ATTACKS_ON_LONG if len(pattern.pattern) > LONG_PATTERN else ATTACKS)
    found = [
        attack for attack in attacks(pattern, chance(name), count) if grows(pattern, *attack, is_anywhere=is_anywhere)
    ]
    assert not found, f"{name}: head, pump and end are {found[0]}"


@pytest.mark.requirement("security.linear-patterns")
@pytest.mark.parametrize(
    ("written", "head", "pump", "end", "is_anywhere"),
    [
        (r"(?P<mark>[CD])[ ]*(?P<funds>[A-Z]{0,3})[ ]*\d", "D", " ", "!", False),  # what MT940 was read by
        (r".*\{4:", "{4:", "{", "", True),
        (r"(?:a|a)*b", "", "a", "", False),
        (r"\s+$", "", " ", "a", True),
    ],
)
def test_an_expression_that_costs_more_is_found(
    written: str, head: str, pump: str, end: str, is_anywhere: bool
) -> None:
    pattern = re.compile(written)
    if written.startswith("(?:a|a)"):
        assert steps(pattern, "a" * 14, is_anywhere=False) > 4 * steps(pattern, "a" * 11, is_anywhere=False)
    else:
        # Not LONG: the steps of these grow with its square or its cube
        assert grows(pattern, head, pump, end, is_anywhere=is_anywhere, longest=2 * SHORT)


@pytest.mark.requirement("security.linear-patterns")
@pytest.mark.parametrize(("name", "pattern", "is_anywhere"), ALL, ids=IDS)
@pytest.mark.sampled
def test_what_counts_the_steps_finds_what_the_library_finds(
    name: str, pattern: re.Pattern[Any], is_anywhere: bool
) -> None:
    for head, pump, end in attacks(pattern, chance(name), examples(25)):
        text = head + pump + end
        if isinstance(pattern.pattern, bytes):
            text = text.encode("latin-1", "ignore").decode("latin-1")
        given: Any = text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text
        if is_anywhere:
            found = pattern.search(given)
            assert stepper(pattern).of(text).search() == (found.span() if found else None)
        else:
            whole = pattern.fullmatch(given)
            assert stepper(pattern).of(text).match(is_full=True) == (whole.end() if whole else None)


@pytest.mark.requirement("security.linear-patterns")
def test_no_expression_for_what_strangers_write_is_hidden_in_a_function() -> None:
    """What is not made at the top of a module would escape the tests above."""
    hidden = []
    for module in modules():
        assert module.__file__
        if not module.__name__.startswith(("connectors.", "analytics.", "handlers.mcp.")):
            continue
        tree = ast.parse(Path(module.__file__).read_text("utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                hidden += [
                    f"{module.__name__}.{function.name}"
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "re"
                    and node.func.attr != "escape"
                ]
    named = {"pattern_of", "label_pattern", "date_reader", "read"}  # theirs are in `expressions`
    assert [name for name in hidden if name.rpartition(".")[2] not in named] == []
