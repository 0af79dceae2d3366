"""A temporary Citus cluster, each node restored to a restore point that was set on all nodes at once."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import psycopg

from storage.engines.restored_server import NotRestored, base_backup, restored_server

COORDINATOR = 0  # group number
POINT = "recovery_target_name = '{}'\n"
# The restored nodes know the addresses of the original ones, and must not contact those: they neither end each other's
# prepared transactions nor look for deadlocks before all of them have new addresses
CONFIGURATION = """
shared_preload_libraries = 'citus'
max_connections = 100
max_prepared_transactions = 500
citus.node_conninfo = 'sslmode=disable'
citus.recover_2pc_interval = -1
citus.distributed_deadlock_detection_factor = -1
"""


def node_folders(backups: Path) -> list[Path]:
    """The folders of the nodes, sorted by name, each with base backups and WAL like those of a single server."""
    return sorted(path for path in backups.iterdir() if (path / "base").is_dir())


@contextmanager
def restored_cluster(backups: Path, url: str, *, point: str, at: datetime | None) -> Iterator[str]:
    """Start a temporary cluster with the data as of this restore point, and give its coordinator's address for the
    `with` block; `url` tells the names of database and user.

    Of each node's base backups, the newest that had ended by `at` (UTC; None: the newest) is used. Raises NotRestored.
    Nothing of the cluster is left afterwards.
    """
    if not (point.isascii() and point.replace("-", "_").isidentifier()):
        raise NotRestored(f"{point!r} is no name of a restore point.")
    until = POINT.format(point) + CONFIGURATION
    with ExitStack() as stack:
        addresses = [
            stack.enter_context(restored_server(base_backup(folder, at=at), folder / "wal", url, until=until))
            for folder in node_folders(backups)
        ]
        by_group = {_group(address): address for address in addresses}
        if COORDINATOR not in by_group:
            raise NotRestored(f"None of the backups in {backups} is of the coordinator.")
        _introduce(by_group)
        yield by_group[COORDINATOR]


def _group(address: str) -> int:
    with psycopg.connect(address) as connection:
        row = connection.execute("SELECT groupid FROM pg_dist_local_group").fetchone()
    assert row is not None, "each node says of which group it is"
    return int(row[0])


def _introduce(by_group: Mapping[int, str]) -> None:
    """Tell each node the present addresses of the others, then let them end transactions that were open between two
    nodes. Raises NotRestored where a node has no backup."""
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(psycopg.connect(_as_superuser(each), autocommit=True)) for each in by_group.values()
        ]
        (known,) = zip(*nodes[0].execute("SELECT groupid FROM pg_dist_node"), strict=True)
        if missing := set(known) - by_group.keys():
            raise NotRestored(f"{len(missing)} of {len(known)} nodes have no backup here.")
        for node in nodes:
            for group, address in by_group.items():
                place = parse_qs(urlsplit(address).query)["host"][0]
                node.execute(
                    "UPDATE pg_dist_node SET nodename = %s, nodeport = 5432 WHERE groupid = %s", (place, group)
                )
        for node in nodes:
            node.execute("SELECT recover_prepared_transactions()")


def _as_superuser(address: str) -> str:
    """The address for the superuser, who may change what nodes know of each other; the copy asks for no password."""
    with psycopg.connect(address) as connection:
        row = connection.execute("SELECT rolname FROM pg_roles WHERE rolsuper ORDER BY oid LIMIT 1").fetchone()
    assert row is not None, "a server has a superuser"
    parts = urlsplit(address)
    return parts._replace(netloc=f"{quote(row[0], safe='')}@").geturl()
