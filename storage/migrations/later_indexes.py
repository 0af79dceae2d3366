"""Indexes that a migration adds to a PostgreSQL store in use. They are built after the start, beside the requests, so
that no start waits for them; until then, queries are as slow as before."""

from collections.abc import Iterator

from storage.database import Session, Store
from storage.migrations import runner

BUILDING_LOCK = 6_911_320_450_233_418  # only one process builds
STATES = (
    "SELECT c.relname AS name, i.indisvalid AS is_whole FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    " WHERE c.relnamespace = to_regnamespace(current_schema())"
)


def missing(session: Session) -> list[str]:
    """The names of the indexes that are absent or incomplete; none in DuckDB, where migrations make them."""
    if not session.is_shared:
        return []  # in DuckDB the migrations make them: nobody else uses the file
    states = _states(session)
    return [name for name in runner.indexes()[0] if not states.get(name)]


def build(store: Store) -> Iterator[str]:
    """Build the missing indexes, yielding the name of each when it is complete, then drop those that they replace; none
    if another process is building.

    What an interrupted build has left is built anew. Raises StoreError.
    """
    everybody = store.for_everybody()
    if not missing(everybody) and not _replaced(everybody):
        return
    with store.apart() as session:
        if not session.rows("SELECT pg_try_advisory_lock($1) AS is_ours", BUILDING_LOCK)[0]["is_ours"]:
            return
        statements, states = runner.indexes()[0], _states(session)
        for name in missing(session):
            if name in states:
                session.execute(f"DROP INDEX CONCURRENTLY {name}")
            session.execute(statements[name].replace("CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1))
            yield name
        for statement in _replaced(session):
            if statement.startswith("DROP INDEX"):
                session.execute(statement.replace("DROP INDEX", "DROP INDEX CONCURRENTLY", 1))
            else:  # a key, for which its table is locked; nobody may wait long behind that
                with store.migrating() as locking:
                    locking.execute(statement)


def _replaced(session: Session) -> list[str]:
    """The statements that drop the indexes which still exist although others have replaced them."""
    if not session.is_shared:
        return []
    states = _states(session)
    return [statement for name, statement in runner.indexes()[1].items() if name in states]


def _states(session: Session) -> dict[str, bool]:
    return {row["name"]: row["is_whole"] for row in session.rows(STATES)}
