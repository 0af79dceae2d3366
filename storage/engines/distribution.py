"""A PostgreSQL store spread over the machines of a Citus cluster: all rows of a user on one machine, tables that belong
to no single user on the coordinator."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from storage.database import Session, Store, StoreError
from storage.row_owners import OF_ALL, OF_USERS

EACH_NODE = (
    "SELECT n.nodename, n.nodeport, r.success, r.result FROM run_command_on_all_nodes($1) AS r"
    " JOIN pg_dist_node AS n ON n.nodeid = r.nodeid ORDER BY n.groupid"
)
COUNTS_PREPARED = "SELECT current_setting('max_prepared_transactions')::INT >= current_setting('max_connections')::INT"
IS_LOGICAL = "SELECT current_setting('wal_level') = 'logical'"
OTHERS = (
    "SELECT count(*) AS others FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend' AND application_name NOT LIKE 'citus%'"
)


class CannotDistribute(StoreError):
    """The store cannot be spread over several machines as things are."""


class Distributed(Struct, frozen=True, kw_only=True):
    """The outcome of `distribute`: the tables that it has spread, the tables that it has left whole on the coordinator
    (an earlier try may have done the others), and over how many machines and pieces (shards) the users are spread
    now."""

    spread: tuple[str, ...]
    local: tuple[str, ...]
    machines: int
    shards: int


def distribute(store: Store, *, alone: bool = True) -> Distributed:
    """Spread a store, fresh or filled, over the machines of its cluster; an interrupted spreading is completed.

    Nobody else may have the database open, unless `alone` is False because others have stores of their own in it.
    Raises CannotDistribute, and then nothing has changed.
    """
    if not store.is_shared:
        raise CannotDistribute("A DuckDB store is one file. Move it into PostgreSQL first: bankdata migrate-store.")
    with store.migrating() as session:
        _check_cluster(session)
        others = others_of(session) if alone else 0
        if others:
            raise CannotDistribute(f"Stop all servers first: the database has {others} other open connections.")
        begin_in_sequence(session)
        spread, local = complete(session)
    everybody = store.for_everybody()
    for table in OF_USERS:
        # The old rows on the coordinator are invisible already; they are deleted once the new ones are committed
        with everybody.transaction() as session:
            session.execute("SET LOCAL statement_timeout = 0")
            session.rows("SELECT truncate_local_data_after_distributing_table($1::TEXT::REGCLASS)::TEXT AS done", table)
    [found] = everybody.rows(
        "SELECT count(*) AS shards, count(DISTINCT p.groupid) AS machines FROM pg_dist_shard AS s"
        " JOIN pg_dist_placement AS p ON p.shardid = s.shardid WHERE s.logicalrelid = 'users'::REGCLASS"
    )
    return Distributed(spread=spread, local=local, machines=int(found["machines"]), shards=int(found["shards"]))


def others_of(session: Session) -> int:
    """The number of other clients' connections to the database, without those of the cluster itself."""
    return int(session.rows(OTHERS)[0]["others"])


@contextmanager
def keep_distributed(session: Session) -> Iterator[None]:
    """Run a migration inside the `with` block so that a spread store stays spread, with the tables that are new; on any
    other store, just run it."""
    if not is_distributed(session):
        yield
        return
    begin_in_sequence(session)
    yield
    complete(session)


def is_distributed(session: Session) -> bool:
    """Whether the users of this store are spread over several machines."""
    if not session.is_shared or not session.rows("SELECT oid FROM pg_extension WHERE extname = 'citus'"):
        return False
    return bool(
        session.rows("SELECT logicalrelid FROM pg_dist_partition WHERE logicalrelid = to_regclass('users') LIMIT 1")
    )


def begin_in_sequence(session: Session) -> None:
    """Change one shard after the other from now on in this transaction, because `complete` is refused otherwise."""
    session.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")


def complete(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Spread every table of users that is not spread yet, and make the other tables known to the cluster, so that a
    change of both is committed on all machines or on none.

    Returns the names of the tables spread now, and of those made known now. A migration of a spread store begins with
    `begin_in_sequence` and ends with this.
    """
    known = {row["name"] for row in session.rows("SELECT logicalrelid::TEXT AS name FROM pg_dist_partition")}
    spread = tuple(table for table in OF_USERS if table not in known and _exists(session, table))
    for table in spread:
        if not _has_key(session, table):  # without one, a shard could be moved only while nobody writes
            session.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        session.rows(
            "SELECT create_distributed_table($1::TEXT::REGCLASS, $2, colocate_with => $3)::TEXT AS done",
            *(table, OF_USERS[table], "none" if table == "users" else "users"),
        )
    local = tuple(table for table in OF_ALL if table not in known and _exists(session, table))
    for table in local:
        session.rows("SELECT citus_add_local_table_to_metadata($1::TEXT::REGCLASS)::TEXT AS done", table)
    return spread, local


def _check_cluster(session: Session) -> None:
    if not session.rows("SELECT oid FROM pg_extension WHERE extname = 'citus'"):
        raise CannotDistribute(
            "This PostgreSQL has no Citus: CREATE EXTENSION citus in this database on every machine (docs/beyond.md)."
        )
    if session.rows("SELECT groupid FROM pg_dist_local_group WHERE groupid <> 0"):
        raise CannotDistribute("This is a worker of the cluster. Set BANKDATA_DATABASE_URL to its coordinator.")
    if not session.rows("SELECT nodeid FROM pg_dist_node WHERE groupid = 0"):
        raise CannotDistribute("The workers do not know the coordinator: SELECT citus_set_coordinator_host('HOST').")
    if not session.rows("SELECT nodeid FROM pg_dist_node WHERE shouldhaveshards AND isactive LIMIT 1"):
        raise CannotDistribute("The cluster has no worker: SELECT citus_add_node('HOST', 5432).")
    for needed, setting in (
        (COUNTS_PREPARED, "max_prepared_transactions must be at least max_connections"),
        (IS_LOGICAL, "wal_level must be logical"),
    ):
        for node in session.rows(EACH_NODE, needed):
            if node["result"] != "t":
                place = f"{node['nodename']}:{node['nodeport']}"
                raise CannotDistribute(f"{setting} on {place}." if node["success"] else f"{place} does not answer.")


def _exists(session: Session, table: str) -> bool:
    """Whether the table exists; tables of later migrations than the running one do not exist yet."""
    return bool(session.rows("SELECT 1 AS found WHERE to_regclass($1) IS NOT NULL", table))


def _has_key(session: Session, table: str) -> Any:
    return session.rows("SELECT indexrelid FROM pg_index WHERE indrelid = $1::TEXT::REGCLASS AND indisprimary", table)
