"""Figures of the service for /metrics: cache, store, syncs, imports, and how late the event loop is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from handlers.services import Services
from storage import jobs

LOOK_EVERY = 0.25  # seconds
LAGS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0)  # seconds


def registry_of(services: Services) -> CollectorRegistry:
    """A registry with the figures of these services and of this process."""
    registry = CollectorRegistry()
    registry.register(ServiceFigures(services))
    ProcessCollector(registry=registry)
    return registry


class ServiceFigures(Collector):
    """Read from the service whenever somebody asks, so that counting costs requests nothing."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering would otherwise ask the store."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """One query, for the jobs; the rest is in memory."""
        cache = self._services.reader.cache
        yield CounterMetricFamily("bankdata_cache_hits", "Requests answered from memory.", cache.hits)
        yield CounterMetricFamily("bankdata_cache_misses", "Requests for which the store was read.", cache.misses)
        yield CounterMetricFamily("bankdata_cache_evictions", "Users who had to make room.", cache.evictions)
        yield GaugeMetricFamily("bankdata_cache_bytes", "Memory for what users asked for, an estimate.", cache.bytes)
        yield GaugeMetricFamily("bankdata_store_bytes", "Size of the store's files.", self._services.database.bytes)
        by_status = GaugeMetricFamily("bankdata_jobs", "Sync jobs of all users by status.", labels=["status"])
        for status, count in jobs.by_status(self._services.database).items():
            by_status.add_metric([status], count)
        yield by_status
        engine = self._services.sync_engine
        yield GaugeMetricFamily("bankdata_imports", "Imports at work or in line.", engine.import_lane.length)
        yield GaugeMetricFamily("bankdata_source_calls", "Requests to banks under way.", engine.source_calls)


@asynccontextmanager
async def loop_watched(registry: CollectorRegistry) -> AsyncIterator[None]:
    """Measures how late the event loop is while the block lasts: every request waits as long."""
    lag = Histogram(
        "bankdata_event_loop_lag_seconds", "How late the event loop got to a timer.", buckets=LAGS, registry=registry
    )

    async def watch() -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_EVERY
            await asyncio.sleep(LOOK_EVERY)
            lag.observe(max(0.0, loop.time() - due))

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
