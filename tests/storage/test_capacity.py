"""`bankdata capacity` computes with constants that hold: a store of each kind is filled, and its size looked at."""

from pathlib import Path

import pytest

from handlers.commands.capacity import LINK_MB
from handlers.work.costs import EMBEDDED, POSTGRESQL
from tests.benchmarks.capacity import bytes_of_bookings, bytes_of_connections, bytes_of_users, memory_of_connections
from tests.cli.conftest import bankdata
from tests.engines import ENGINE, OpenStore

pytestmark = pytest.mark.requirement("capacity")
BOOKINGS = {"duckdb": 20_000, "postgresql": 8_000}
TOLERANCE = {"duckdb": 0.4, "postgresql": 0.2}  # of a constant; the file grows by blocks of 256 KB


@pytest.mark.no_cover
@pytest.mark.engine("one server" if ENGINE.name == "postgresql" else "duckdb")
@pytest.mark.long
def test_a_booking_a_connection_and_a_user_take_what_is_computed_with(database: OpenStore) -> None:
    costs, about = EMBEDDED if ENGINE.name == "duckdb" else POSTGRESQL, TOLERANCE[ENGINE.name]
    of_bookings = 0.12 if ENGINE.name == "postgresql" else about
    assert bytes_of_bookings(database, BOOKINGS[ENGINE.name]) == pytest.approx(costs.booking_bytes, rel=of_bookings)
    assert bytes_of_users(database, 20) == pytest.approx(costs.user_bytes, rel=about)
    if ENGINE.name == "postgresql":  # the file would have to have thousands of them for a block more
        assert bytes_of_connections(database, 40) == pytest.approx(costs.connection_bytes, rel=about)
        assert LINK_MB / 4 < memory_of_connections(database) < LINK_MB  # which a larger import comes close to


@pytest.mark.engine("duckdb")
def test_a_small_service_needs_one_process_over_either_store(tmp_path: Path) -> None:
    said = bankdata("capacity", "--users", 2, "--bookings", 20_000, "--connections", 4, "--data", tmp_path)
    assert said.code == 0, said.err
    assert said.lines == [
        "for        2 users, 20,000 bookings, 4 bank connections:"
        " 0.0 requests and 0.0 planned syncs a second when it is busiest",
        "embedded   disk 10 MB, memory 606 MB, cores 0.0",
        "PostgreSQL disk 38 MB, memory 226 MB, cores 0.0, connections 12",
        "  service  processes 1, memory 606 MB, cores 0.0",
        "  backup   embedded: 10 MB a night, 70 MB for 7 nights",
        "  backup   PostgreSQL: 66 MB a night, 460 MB for 7 nights",
        "Citus      the same in sum, shared out by user; 12 connections to the coordinator and to each worker",
    ]


@pytest.mark.engine("duckdb")
def test_a_large_service_needs_more_than_the_embedded_store_has(tmp_path: Path) -> None:
    settings = {
        "DATABASE_URL": "postgresql://db.example/bankdata",
        "DATABASE_APP_URL": "postgresql://app@db.example/bankdata",
        "KEYS_SECRET": "s" * 40,
    }
    asked = "--users", 1_000_000, "--bookings", 10**9, "--connections", 1_000_000
    said = bankdata("capacity", *asked, "--data", tmp_path, settings=settings)
    assert said.code == 0, said.err
    assert said.lines[1].startswith("embedded   disk 682.7 GB, memory 606 MB, cores 32.9, more than its one process")
    assert said.lines[2] == "PostgreSQL disk 2,623.5 GB, memory 661.8 GB, cores 12.2, connections 337"
    assert said.lines[3] == "  service  processes 16, memory 9.5 GB, cores 15.3"
    without_plan = bankdata("capacity", *asked, "--data", tmp_path, settings={**settings, "SCHEDULE": "off"})
    assert " and 0.0 planned syncs" in without_plan.lines[0]
