"""A running server tells monitors what it does, and its log machines."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from handlers.services import open_services
from handlers.settings import load
from tests.service.conftest import Served, running

Copied = Callable[[], Path]


@pytest.fixture(scope="module")
def figures(service: Served) -> dict[str, float]:
    """What /metrics says after a request has been answered, by name and labels."""
    assert service.client("demo").get("/accounts").status_code == 200
    assert service.client("demo").get("/accounts").status_code == 200
    answer = httpx.get(f"{service.address}/metrics", trust_env=False)
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


@pytest.mark.requirement("monitoring.metrics")
def test_a_server_tells_requests_cache_jobs_store_loop_and_process(figures: dict[str, float]) -> None:
    assert figures["bankdata_request_duration_seconds_count listAccounts 200"] >= 2
    assert figures["bankdata_cache_hits_total"] >= 1
    assert figures["bankdata_cache_misses_total"] >= 1
    assert figures["bankdata_cache_bytes"] > 0
    assert figures["bankdata_jobs completed"] >= 1  # the demo's own syncs
    assert figures["bankdata_store_bytes"] > 100_000
    assert figures["bankdata_event_loop_lag_seconds_count"] >= 0
    assert figures["process_resident_memory_bytes"] > 50_000_000
    assert (figures["bankdata_imports"], figures["bankdata_source_calls"]) == (0, 0)


@pytest.mark.requirement("monitoring.ready")
def test_a_server_with_an_open_store_is_ready(service: Served) -> None:
    answer = httpx.get(f"{service.address}/readyz", trust_env=False)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.requirement("monitoring.ready")
def test_a_store_that_fails_is_not_ready_whatever_its_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(open_services(load({}, data_dir=tmp_path / "data"))) as services:
        assert services.is_ready()
        services.database.execute("ALTER TABLE schema_version RENAME COLUMN number TO version")
        assert not services.is_ready()
    assert caplog.messages == ["not ready: BinderException"]


@pytest.mark.requirement("monitoring.logs")
def test_the_log_of_a_server_is_json_where_it_is_set(copied: Copied) -> None:
    with running(copied(), settings={"LOG_FORMAT": "json"}) as served:
        assert served.stop() == 0
        last = json.loads(served.log.read_text().splitlines()[-1])
    assert (last["level"], last["message"]) == ("info", "stopped; everything is stored")
