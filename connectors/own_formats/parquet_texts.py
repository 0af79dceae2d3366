"""Reader of Parquet files from strangers, with a small DuckDB of its own that can open only that one file.

Polars could read them, too, but panics on damaged ones and reserves the memory that a page claims to need.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile

if TYPE_CHECKING:
    import duckdb

MEMORY = "256MB"  # a file whose pages claim more is refused
ROWS_AT_ONCE = 200
VALUE_CHARACTERS_MAX = 20_000  # more than the store keeps of the longest text


def texts(
    path: Path,
    columns: Mapping[str, str],
    *,
    perhaps: Mapping[str, str] = MappingProxyType({}),
    rows_max: int,
    characters_max: int,
) -> Iterator[tuple[str | None, ...]]:
    """The rows in order, each with the wanted columns, every value as text (true, 2026-01-31, 12.5), cut at 20,000
    characters.

    `columns` and `perhaps` give SQL types by name; a column of `perhaps` that is missing or has another type is null.
    Raises UnsupportedFile where one of `columns` is missing or has another type, MalformedFile and LimitExceeded,
    possibly after some rows.
    """
    import duckdb  # starts threads, which the process that is forked must not have (connectors.parser_process)

    try:
        with closing(_open_database(path)) as database:
            types = _check(database, path, columns, rows_max)
            has = {name: types.get(name) == type_ for name, type_ in {**columns, **perhaps}.items()}
            wanted = ", ".join(
                f'left(CAST("{name}" AS VARCHAR), {VALUE_CHARACTERS_MAX})' if is_there else "NULL"
                for name, is_there in has.items()
            )
            cursor = database.execute(f"SELECT {wanted} FROM read_parquet($1, hive_partitioning = false)", [str(path)])
            characters = 0
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                characters += sum(len(value) for row in rows for value in row if value)
                if characters > characters_max:
                    raise LimitExceeded("the file holds more than {limit} characters of text.", limit=characters_max)
                yield from rows
    except duckdb.Error as error:
        raise MalformedFile("the Parquet file is damaged or cut off.", detail=type(error).__name__) from error


def _open_database(path: Path) -> "duckdb.DuckDBPyConnection":
    import duckdb  # as above

    database = duckdb.connect(config={"memory_limit": MEMORY, "threads": 1, "temp_directory": ""})
    quoted = str(path).replace("'", "''")
    for statement in (
        f"SET allowed_paths = ['{quoted}']",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        database.execute(statement)
    return database


def _check(
    database: "duckdb.DuckDBPyConnection", path: Path, columns: Mapping[str, str], rows_max: int
) -> dict[str, str]:
    columns_there = database.execute(
        "DESCRIBE SELECT * FROM read_parquet($1, hive_partitioning = false)", [str(path)]
    ).fetchall()
    types = {name: type_ for name, type_, *_ in columns_there}
    if any(types.get(name) != type_ for name, type_ in columns.items()):
        raise UnsupportedFile("not a Parquet file that bankdata exported.")
    claimed = database.execute("SELECT num_rows FROM parquet_file_metadata($1)", [str(path)]).fetchall()
    if claimed[0][0] > rows_max:
        raise LimitExceeded("the file holds more than {limit} rows.", limit=rows_max)
    return types
