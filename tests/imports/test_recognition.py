"""`bankdata import --explain` says in words what was recognised in a file, and imports nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.imports.command_line import Shell
from tests.imports.statement_chain import chain

CSV = "Date,Description,Amount,Currency,Shop code\n2026-03-01,Coffee,-3.50,EUR,77\n"


@pytest.mark.requirement("import.explain")
def test_each_column_of_a_csv_has_its_field_or_is_left_out(shell: Shell, write: Callable[..., Path]) -> None:
    path = write("a.csv", CSV)
    lines = shell("import", "--explain", path).stdout.splitlines()
    assert lines[0] == f"{path}: CSV"
    assert lines[1].startswith("  layout     ")
    assert lines[2].startswith("  because    ")
    assert lines[3].startswith("  written    utf-8, separated by ,, header in row 1, decimal mark .")
    assert [tuple(line.removeprefix("  columns  ").split("->")[-1].split()) for line in lines[4:9]] == [
        ("date",), ("purpose",), ("amount",), ("currency",), ("(left", "out)"),
    ]  # fmt: skip
    assert lines[9] == "  1 statement:"
    assert lines[10].endswith("EUR, 1 row from 2026-03-01 to 2026-03-01, states no balances to check")
    assert not any(shell.folder.glob("*.duckdb-wal"))
    assert shell.rows("id") == []


@pytest.mark.requirement("import.explain")
def test_other_formats_are_named_with_their_statements(shell: Shell, write: Callable[..., Path]) -> None:
    file = chain(1).files[0]
    lines = shell("import", "--explain", write(file.name, file.content)).stdout.splitlines()
    assert lines[0].endswith(": camt (ISO 20022)")
    assert lines[1] == "  1 statement:"
    assert lines[2].startswith("    DE89370400440532013000 EUR, ")
    assert lines[2].endswith(", adds up")


@pytest.mark.requirement("import.explain")
def test_a_file_that_would_be_refused_is_told_why(shell: Shell, write: Callable[..., Path], tmp_path: Path) -> None:
    unknown = write("a.csv", "one,two,three\n1,2,3\n")
    lines = shell("import", "--explain", unknown, tmp_path / "none", code=1).stdout.splitlines()
    assert lines[:2] == [f"{unknown}: CSV", "  no layout was recognised"]
    assert lines[2].startswith("  refused: The CSV layout is unknown: ")
    assert lines[3] == f"{tmp_path}/none: refused: The file cannot be read: No such file or directory."


@pytest.mark.requirement("import.explain")
def test_our_own_export_is_known_by_its_header(shell: Shell, write: Callable[..., Path], tmp_path: Path) -> None:
    shell("import", "--user", "eva", write("a.csv", "Date,Description,Amount,Currency\n2026-03-01,Coffee,-3.50,EUR\n"))
    export = shell.export("csv", tmp_path / "export.csv")
    lines = shell("import", "--explain", export).stdout.splitlines()
    assert lines[:3] == [
        f"{export}: CSV",
        "  layout     bankdata",
        "  because    the header of our own export",
    ]
    assert lines[3].startswith("  columns    ")
