"""The move of a whole store into one of another engine: user by user, compared, and usable only when complete."""

from collections.abc import Callable

import polars as pl

from storage import store_facts, users
from storage.changes import first_answers
from storage.database import NOBODY, Database, Session, StoreError, columns_of
from storage.row_owners import OF_ALL, OF_USERS

UNFINISHED = "a store is being moved here"
MADE_THERE = ("schema_version", "documents", "user_names")  # tables that the target fills itself
MOVED = {table: column for table, column in OF_USERS.items() if table != "first_answers"}  # which are written anew
TYPES: dict[str, pl.DataType] = {
    "VARCHAR": pl.String(),
    "BIGINT": pl.Int64(),
    "INTEGER": pl.Int32(),
    "BOOLEAN": pl.Boolean(),
    "DATE": pl.Date(),
    "TIMESTAMP": pl.Datetime("us"),
    "DECIMAL(20,5)": pl.Decimal(20, 5),
}


class StoreNotEmpty(StoreError):
    """The store to move into has users already. Give the move an empty database of its own."""


class MoveFailed(StoreError):
    """What was moved differs from what was there."""


def check_whole(session: Session) -> None:
    """Raise StoreError for a store into which another one has been moved only in part."""
    if store_facts.recall(session, UNFINISHED) is not None:
        raise StoreError("A store was being moved into this one and is not whole. Run `bankdata migrate-store` again.")


def begin(target: Database) -> None:
    """Mark an empty store as incomplete, or continue with one that is marked so. Raises StoreNotEmpty."""
    if store_facts.recall(target, UNFINISHED) is None and target.rows("SELECT id FROM users LIMIT 1"):
        raise StoreNotEmpty(StoreNotEmpty.__doc__)
    store_facts.remember(target, UNFINISHED, "yes")


def move(source: Database, target: Database, *, progress: Callable[[int, int], None]) -> int:
    """Copy every row of `source`, which is only read, into a `target` prepared by `begin`, compare, and return the
    number of users. `progress` gets the number of steps done and of all, two for each user.

    After an interruption, calling it again continues: each user is copied whole or not at all. Raises MoveFailed.
    """
    user_ids = [row["id"] for row in source.rows("SELECT id FROM users ORDER BY created_at, id")]
    moved = {row["id"] for row in target.rows("SELECT id FROM users")}
    schemas = {
        table: {name: TYPES[kind] for name, kind in columns_of(source, table).items()} for table in (*MOVED, *OF_ALL)
    }
    for number, user_id in enumerate(user_ids):
        progress(number, 2 * len(user_ids))
        if user_id not in moved:
            with target.transaction() as session:
                session.execute("SET LOCAL statement_timeout = 0")
                for table, column in MOVED.items():
                    session.append(table, _rows(source, table, schemas[table], column, user_id))
                first_answers.settle_anew(session, user_id)
    for number, user_id in enumerate(user_ids):
        progress(len(user_ids) + number, 2 * len(user_ids))
        for table, column in MOVED.items():
            _compare(table, *(_rows(each, table, schemas[table], column, user_id) for each in (source, target)))
    _move_rest(source, target, schemas)
    return len(user_ids)


def _move_rest(source: Database, target: Database, schemas: dict[str, dict[str, pl.DataType]]) -> None:
    """Copy the tables that belong to no user, except those that the target fills itself, and enter the users' names, in
    one transaction, which also removes the mark of an incomplete store. Raises MoveFailed."""
    with target.transaction() as session:
        for table in OF_ALL:
            if table not in MADE_THERE:
                session.execute(f"DELETE FROM {table}")
                rows = _rows(source, table, schemas[table])
                session.append(table, rows)
                _compare(table, rows, _rows(session, table, schemas[table]))
        secrets = "connection_secrets"  # of nobody: what the store is known by elsewhere
        session.append(secrets, _rows(source, secrets, schemas[secrets], MOVED[secrets], NOBODY))
        session.execute("DELETE FROM user_names")
        users.take_names(session)


def _rows(
    session: Session, table: str, schema: dict[str, pl.DataType], column: str = "", user_id: str = ""
) -> pl.DataFrame:
    query = f"SELECT {', '.join(schema)} FROM {table}"
    if not column:
        return session.frame(query, schema=schema)
    return session.frame(f"{query} WHERE {column} = $1", user_id, schema=schema)


def _compare(table: str, here: pl.DataFrame, there: pl.DataFrame) -> None:
    if not here.sort(here.columns, nulls_last=True).equals(there.sort(here.columns, nulls_last=True)):
        raise MoveFailed(f"{MoveFailed.__doc__} Table {table}: {here.height} rows here, {there.height} there.")
