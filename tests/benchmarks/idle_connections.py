"""What one look of the scheduler costs over so many connections of which none is due: time, memory, rows.

python -m tests.benchmarks.idle_connections --connections 1000000 [--database postgresql://USER@HOST/EMPTY]
"""

import argparse
import resource
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from handlers.settings import Settings, load
from handlers.work.services import Services, open_services
from handlers.work.sync.scheduler import PLAN_EVERY
from tests.engines import KEYS_SECRET

LOOKS = 5
PIECE = 100_000  # users in one transaction, which a DuckDB of so little memory can end


def main() -> None:
    """Fill an empty store, and look at it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=1_000_000)
    parser.add_argument("--database", default="", help="an empty PostgreSQL database; else a DuckDB file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        services = open_services(_settings(Path(folder), given.database))
        _fill(services, given.connections)
        services.clock.offset += PLAN_EVERY
        services.scheduler.round()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(LOOKS):
            services.clock.offset += PLAN_EVERY
            wall, cpu = time.perf_counter(), time.process_time()
            services.scheduler.round()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            print(f"a look: {wall * 1e3:.1f} ms, {cpu * 1e3:.1f} ms of this process")
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"memory of {LOOKS} looks: {more / 1024:.1f} MB")
        services.close()


def _settings(folder: Path, database: str) -> Settings:
    environment = {"BANKDATA_DATA_DIR": str(folder)}
    if database:
        environment |= {"BANKDATA_DATABASE_URL": database, "BANKDATA_KEYS_SECRET": KEYS_SECRET}
    return load(environment)


def _fill(services: Services, count: int) -> None:
    """Users with a live connection each, as the scheduler leaves it until its next moment, with a consent that ends on
    one of 75 days, the first in 15, and with an ended sync."""
    now, everybody = services.clock.now(), services.everybody
    for first in range(1, count + 1, PIECE):
        numbers = first, min(first + PIECE - 1, count)
        everybody.execute(
            "INSERT INTO users (id, name, has_subscription, home_currency, data_version, created_at)"
            " SELECT 'usr_' || n, 'user ' || n, TRUE, 'EUR', 1, $1 FROM generate_series($2::INT, $3::INT) AS s(n)",
            *(now, *numbers),
        )
        everybody.execute(
            "INSERT INTO connections (id, user_id, connector, bank_name, status, settings, failures_in_row, created_at,"
            " consent_expires_at, due_at) SELECT 'con_' || n, 'usr_' || n, 'simplefin', 'One', 'ACTIVE', '{}', 0, $1,"
            " $2::TIMESTAMP + (n % 75) * INTERVAL '1 day', $3 FROM generate_series($4::INT, $5::INT) AS s(n)",
            *(now, now + timedelta(days=15), now + timedelta(hours=12), *numbers),
        )
        everybody.execute(
            "INSERT INTO jobs (id, user_id, connection_id, status, new_transactions, created_at, updated_at, is_told)"
            " SELECT 'job_' || n, 'usr_' || n, 'con_' || n, 'completed', 0, $1, $1, TRUE"
            " FROM generate_series($2::INT, $3::INT) AS s(n)",
            *(now, *numbers),
        )
    if everybody.is_shared:
        everybody.execute("ANALYZE")


if __name__ == "__main__":
    main()
