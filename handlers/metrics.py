"""Figures of the service for /metrics: cache, store, syncs, imports, and how late the event loop is."""

import asyncio
import os
import resource
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from handlers.work.services import Services
from storage import connections, jobs
from storage.database import StoreError
from storage.migrations import runner, soundness

# Read by the library: the folder in which the processes of one server keep their figures
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
LOOK_EVERY = 0.25  # seconds
HOUR = timedelta(hours=1)
JOBS: tuple[tuple[str, str, tuple[jobs.Status, ...]], ...] = (
    ("bankdata_jobs", "Unfinished sync jobs of all users.", ("pending", "syncing", "importing")),
    ("bankdata_jobs_last_hour", "Sync jobs that ended in an hour.", ("completed", "failed")),
)
LAGS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0)  # seconds
PROC = Path("/proc/self")

Value = Callable[[], float]


class Figures:
    """The counters of this process, and the text of /metrics. Where one server runs several processes, that text holds
    the sums over all of them, ended ones included, so that any process can answer."""

    def __init__(self, services: Services) -> None:
        self.registry = CollectorRegistry()
        self._lock = threading.Lock()  # the event loop and the thread that answers /metrics both update
        self._totals: list[tuple[Counter, Value]] = []
        self._last_totals: dict[Counter, float] = {}
        self._gauges: list[tuple[Gauge, Value]] = []
        cache, engine = services.reader.cache, services.sync_engine
        self._add_total("bankdata_cache_hits", "Requests answered from memory.", lambda: cache.hits)
        self._add_total("bankdata_cache_misses", "Requests for which the store was read.", lambda: cache.misses)
        self._add_total("bankdata_cache_evictions", "Users who had to make room.", lambda: cache.evictions)
        self._add("bankdata_cache_bytes", "Memory for what users asked for, an estimate.", lambda: cache.bytes)
        self._add("bankdata_imports", "Imports at work or in line.", lambda: engine.import_lane.length)
        self._add("bankdata_source_calls", "Requests to banks under way.", lambda: engine.source_calls)
        self._add("bankdata_store_waiting", "Waiting for a connection to the database.", lambda: services.store.waiting)
        self._add(
            "bankdata_scheduler_round_timestamp_seconds",
            "When the scheduler last ended a round; of several processes that of the one furthest behind.",
            lambda: services.scheduler.last_round_at,
            of_several="livemin",
        )
        self._lag = Histogram(
            "bankdata_event_loop_lag_seconds",
            "How late the event loop got to a timer.",
            buckets=LAGS,
            registry=self.registry,
        )
        self._output_registry = self.registry
        of_library = ProcessCollector(registry=None)
        if folder := os.environ.get(FOLDER):
            self._output_registry = CollectorRegistry()
            MultiProcessCollector(self._output_registry, folder)  # type: ignore[no-untyped-call]
            self._add_process()
        elif any(of_library.collect()):
            self.registry.register(of_library)
        else:
            self._add_process()
        self._output_registry.register(_StoreFigures(services))

    def update(self) -> None:
        """Read the present values of this process into its counters and gauges."""
        with self._lock:
            for counter, value in self._totals:
                now = value()
                counter.inc(now - self._last_totals.get(counter, 0.0))
                self._last_totals[counter] = now
        for gauge, value in self._gauges:
            gauge.set(value())

    def text(self) -> bytes:
        """All figures in the text format of Prometheus; the store is queried for its own."""
        self.update()
        return generate_latest(self._output_registry)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """A context that measures how late the event loop is, because every request waits as long; with several
        processes it also keeps this one's figures up to date, because any of them may answer /metrics."""

        async def watch() -> None:
            loop = asyncio.get_running_loop()
            while True:
                due = loop.time() + LOOK_EVERY
                await asyncio.sleep(LOOK_EVERY)
                self._lag.observe(max(0.0, loop.time() - due))
                if self._output_registry is not self.registry:
                    self.update()

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()

    def _add_total(self, name: str, about: str, value: Value) -> None:
        self._totals.append((Counter(name, about, registry=self.registry), value))

    def _add(self, name: str, about: str, value: Value, *, of_several: str = "livesum") -> None:
        gauge = Gauge(name, about, registry=self.registry, multiprocess_mode=of_several)  # type: ignore[arg-type]
        self._gauges.append((gauge, value))

    def _add_process(self) -> None:
        """Add processor time, memory and open files, summed over all processes of the server, on Linux. The library has
        none of them where there are several processes, or where /proc/stat is hidden (ProcSubset=pid, docs/deploy)."""
        if not PROC.exists():
            return  # no Linux
        self._add_total("process_cpu_seconds", "Total user and system CPU time spent in seconds.", time.process_time)
        self._add("process_resident_memory_bytes", "Resident memory size in bytes.", _resident_bytes)
        self._add("process_open_fds", "Number of open file descriptors.", lambda: len(list((PROC / "fd").iterdir())))


class _StoreFigures(Collector):
    """The figures that are queried from the store each time somebody reads /metrics."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def describe(self) -> Iterator[Metric]:
        """No metrics; otherwise registering this collector would query the store."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The store's figures by a few short queries; of a store that does not answer, only that it is down."""
        database, now = self._services.everybody, self._services.clock.now()
        up = GaugeMetricFamily("bankdata_store_up", "Whether the store answers: 1 or 0.")
        try:
            version, by_status = runner.current_version(database), jobs.by_status(database, since=now - HOUR)
            waiting_since, size = connections.due_since(database, now=now), self._services.store.bytes
            apart = self._services.clock_watch.apart()
        except StoreError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield GaugeMetricFamily("bankdata_store_bytes", "Size of the store's files.", size)
        for name, about, value in self._kept_safe():
            yield GaugeMetricFamily(name, about, value)
        yield GaugeMetricFamily("bankdata_schema_version", "The newest migration that the store has.", version)
        yield GaugeMetricFamily(
            "bankdata_program_schema_version",
            "The newest migration that this program has.",
            runner.migrations()[-1].number,
        )
        for name, said, statuses in JOBS:
            counted = GaugeMetricFamily(name, said, labels=["status"])
            for status in statuses:
                counted.add_metric([status], by_status.get(status, 0))
            yield counted
        yield GaugeMetricFamily(
            "bankdata_clock_offset_seconds",
            "How far this machine's clock is ahead of the database's.",
            apart.total_seconds(),
        )
        late = (now - waiting_since).total_seconds() if waiting_since is not None else 0.0
        yield GaugeMetricFamily(
            "bankdata_sync_overdue_seconds", "How long the connection waits that has been due for longest.", late
        )

    def _kept_safe(self) -> Iterator[tuple[str, str, float]]:
        """Figures of disk, archive and backups, as far as they are known here."""
        database, path = self._services.everybody, self._services.store.path
        if path is not None:
            yield "bankdata_disk_free_bytes", "Free room on the disk of the store.", shutil.disk_usage(path.parent).free
        if (archive := soundness.archive(database)) is not None:
            yield "bankdata_archive_failing", "Whether PostgreSQL fails to archive its WAL: 1 or 0.", archive.is_failing
            yield "bankdata_wal_kept_bytes", "WAL that nobody has fetched yet.", archive.kept_bytes
        if (made := self._services.backed_up_at()) is not None:
            yield (
                "bankdata_backup_timestamp_seconds",
                "When the newest backup was made.",
                made.replace(tzinfo=UTC).timestamp(),
            )


def _resident_bytes() -> int:
    return int((PROC / "statm").read_text().split()[1]) * resource.getpagesize()
