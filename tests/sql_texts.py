"""Every SQL text that the product runs over DuckDB, prepared on PostgreSQL.

`pytest --record-sql FOLDER` keeps each distinct statement with the kinds of its parameters and the columns of what was
staged for it, one file for each worker. `python -m tests.sql_texts FOLDER` then has PostgreSQL read and plan all of
them over an empty, migrated store: a text that only one engine understands, a parameter without a type, or a column
that is missing fails there within seconds.
"""

import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl
import psycopg

from storage.database import StoreError
from storage.engines.duckdb_session import Cursor

ROOT = Path(__file__).parent.parent
PRODUCT = tuple(f"{ROOT}/{room}/" for room in ("handlers", "connectors", "auth", "storage", "analytics"))
ENGINES = tuple(f"{ROOT}/storage/{name}" for name in ("engines/", "database.py"))  # hand on what others ask
OF_ONE_ENGINE = f"{ROOT}/storage/compaction.py"  # sorts the file of DuckDB
READ_ON_BOTH = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
SAMPLES: dict[type, Any] = {
    str: "x",
    int: 1,
    bool: True,
    float: 1.5,
    bytes: b"x",
    Decimal: Decimal("1.5"),
    date: date(2026, 1, 31),
    datetime: datetime(2026, 1, 31, 12),  # noqa: DTZ001 - as the store keeps moments
    type(None): None,
}


class Statement(NamedTuple):
    """A text, a value of each parameter's kind, and the columns of each staged frame by the frame's name."""

    sql: str
    values: tuple[Any, ...]
    staged: tuple[tuple[str, tuple[tuple[str, pl.DataType], ...]], ...]


class Recorder:
    """Keeps the statements of this process, beside the cursors of DuckDB."""

    def __init__(self) -> None:
        self._seen: dict[object, Statement] = {}
        self._staged: dict[int, dict[str, pl.DataFrame]] = {}

    def begin(self) -> None:
        """See every statement from now on."""
        for name in ("rows", "execute", "frame"):
            setattr(Cursor, name, self._recorded(getattr(Cursor, name)))
        stage, staged = Cursor.stage, self._staged

        @contextmanager
        def seen(cursor: Cursor, name: str, frame: pl.DataFrame) -> Iterator[None]:
            staged.setdefault(id(cursor), {})[name] = frame.clear()
            with stage(cursor, name, frame):
                yield
            del staged[id(cursor)][name]

        Cursor.stage = seen  # type: ignore[method-assign, assignment]

    def write(self, path: Path) -> None:
        """Keep them in this file."""
        path.write_bytes(pickle.dumps(list(self._seen.values())))

    def _recorded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(cursor: Cursor, sql: str, *parameters: Any, **more: Any) -> Any:
            key = (sql, *map(type, parameters))
            if key not in self._seen and sql.lstrip().startswith(READ_ON_BOTH) and _is_of_product():
                frames = self._staged.get(id(cursor), {})
                staged = tuple((name, tuple(frame.schema.items())) for name, frame in frames.items())
                self._seen[key] = Statement(sql, tuple(map(_sample, parameters)), staged)
            return method(cursor, sql, *parameters, **more)

        return run


def _sample(value: Any) -> Any:
    if isinstance(value, list):
        return [_sample(value[0])] if value else []
    return SAMPLES[next(kind for kind in type(value).__mro__ if kind in SAMPLES)]


def _is_of_product() -> bool:
    """Whether a room asks, and not a test, a migration or the engine itself."""
    frame = sys._getframe(2)
    while (name := frame.f_code.co_filename) == __file__ or name.startswith(ENGINES):
        if frame.f_back is None or frame.f_code.co_name in ("copy_to", "_harden"):
            return False
        frame = frame.f_back
    return name.startswith(PRODUCT) and "/migrations/" not in name and name != OF_ONE_ENGINE


def refused(statements: list[Statement]) -> list[tuple[Statement, str]]:
    """The statements that PostgreSQL does not plan, each with what it says."""
    from tests.engines import ENGINE

    ENGINE.name, found = "postgresql", []
    with TemporaryDirectory() as folder:
        store = ENGINE.empty_store(Path(folder) / "bankdata.duckdb")
        try:
            for statement in statements:
                try:
                    with store.transaction() as session, ExitStack() as stack:
                        for name, columns in statement.staged:
                            stack.enter_context(session.stage(name, pl.DataFrame(schema=dict(columns))))
                        session.rows(f"EXPLAIN {statement.sql}", *statement.values)
                except (psycopg.Error, StoreError) as error:
                    found.append((statement, str(error).splitlines()[0]))
        finally:
            store.close()
            ENGINE.end()
    return found


def main(folder: Path) -> int:
    """Prepare what lies in this folder; says each refusal, and returns 1 if there was one."""
    texts: dict[object, Statement] = {}
    for path in sorted(folder.glob("*.statements")):
        for statement in pickle.loads(path.read_bytes()):
            texts[(statement.sql, *map(repr, statement.values))] = statement
    if not texts:
        print(f"No statements in {folder}: run pytest --record-sql {folder} first.", file=sys.stderr)
        return 1
    found = refused(list(texts.values()))
    for statement, words in found:
        print(f"\nPostgreSQL refuses: {words}\n  {statement.sql}\n  {statement.values}", file=sys.stderr)
    print(f"{len(texts)} statements of {len({text.sql for text in texts.values()})} texts, {len(found)} refused")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
