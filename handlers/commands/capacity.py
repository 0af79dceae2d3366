"""Computes the disk space, memory and processors that a service of a given size needs, from measured costs
(`tests/benchmarks/capacity.py`)."""

import math

from handlers.commands.control_socket import Report
from handlers.settings import Settings
from handlers.work.costs import EMBEDDED, POSTGRESQL

DAYS_OF_RECORD = 396  # for which the record of accesses is kept
OPERATIONS_A_DAY = 5  # different ones that a user's app calls
REQUESTS_A_DAY = 100  # of a user
BUSIEST_HOUR = 0.2  # of the day's requests
PLANNED_WITHIN = 5_400  # seconds, about each time of the plan
PROCESS_MB = 350  # of a process of the service, beside its cache
INDEXES = 0.25  # of the disk: what a database should hold in memory
MB, GB = 2**20, 2**30
NIGHTS_KEPT = 7  # backups, by the timers of docs/deploy
IDLE_WAL_BYTES = 1440 * 20_000  # a day: a segment each minute, as archive_command of docs/company.md packs it
SYNC_WAL_BYTES = 5_000  # of a planned sync without news
LINK_MB = 18  # of a connection to PostgreSQL, of its own, after a large import


def capacity(settings: Settings, report: Report, *, users: int, bookings: int, connections: int) -> None:
    """Print what the service needs over each kind of store, in the busiest hour of the day and for so many users,
    bookings and bank connections: disk, memory, cores and database connections."""
    requests = users * REQUESTS_A_DAY * BUSIEST_HOUR / 3600
    syncs = connections / PLANNED_WITHIN if settings.schedule else 0.0
    report.line(
        f"for        {users:,} users, {bookings:,} bookings, {connections:,} bank connections:"
        f" {requests:,.1f} requests and {syncs:,.1f} planned syncs a second when it is busiest"
    )
    alone, _ = EMBEDDED.cores(requests, syncs)
    report.line(
        f"embedded   disk {_size(EMBEDDED.disk(users, bookings, connections))}, memory {_memory(settings, 1)}, "
        + (f"cores {alone:.1f}" if alone <= 1 else f"cores {alone:.1f}, more than its one process can use")
    )
    service, database = POSTGRESQL.cores(requests, syncs)
    disk, processes = POSTGRESQL.disk(users, bookings, connections), max(1, math.ceil(service))
    links = processes * (settings.database_pool * (2 if settings.database_app_url else 1) + 1) + 1
    report.line(
        f"PostgreSQL disk {_size(disk)}, memory {_size(INDEXES * disk + links * LINK_MB * MB)}, cores {database:.1f},"
        f" connections {links}"
    )
    report.line(f"  service  processes {processes}, memory {_memory(settings, processes)}, cores {service:.1f}")
    wal = IDLE_WAL_BYTES + syncs * 86_400 * SYNC_WAL_BYTES
    for name, night in (("embedded", EMBEDDED.disk(users, bookings, connections)), ("PostgreSQL", disk + wal)):
        report.line(f"  backup   {name}: {_size(night)} a night, {_size(NIGHTS_KEPT * night)} for {NIGHTS_KEPT} nights")
    report.line(
        f"Citus      the same in sum, shared out by user; {links} connections to the coordinator and to each worker"
    )


def _memory(settings: Settings, processes: int) -> str:
    return _size(processes * (PROCESS_MB + settings.cache_mb) * MB)


def _size(number: float) -> str:
    return f"{number / GB:,.1f} GB" if number >= GB else f"{number / MB:,.0f} MB"
