"""One name, one thing: whoever reads the name of a class need not ask which one is meant."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.documents.conftest import ROOT

PRODUCT = ("handlers", "connectors", "auth", "storage", "analytics")
FILES_IN_A_FOLDER_MAX = 20  # more are two rooms
LINES_OF_A_FILE_MAX, LINES_OF_A_FUNCTION_MAX = 400, 60


def sources() -> list[Path]:
    """Every Python file of the product."""
    return sorted(path for room in PRODUCT for path in (ROOT / room).rglob("*.py"))


@pytest.mark.requirement("docs.names")
def test_no_two_classes_of_the_product_have_one_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 200
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.requirement("docs.names")
def test_no_folder_is_a_heap() -> None:
    folders = {path.parent for path in sources()}
    sizes = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > FILES_IN_A_FOLDER_MAX} == {}


@pytest.mark.requirement("docs.names")
def test_files_and_functions_stay_short_enough_to_be_read_at_once() -> None:
    long_files, long_functions = [], []
    for path in sources():
        text = path.read_text("utf-8")
        if text.count("\n") > LINES_OF_A_FILE_MAX:
            long_files.append(str(path.relative_to(ROOT)))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LINES_OF_A_FUNCTION_MAX:
                    long_functions.append(f"{path.relative_to(ROOT)}: {node.name}, {lines}")
    assert (long_files, long_functions) == ([], [])
