"""A running server tells monitors what it does, and its log machines."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from handlers.metrics import Figures
from handlers.settings import load
from handlers.work.services import Services, open_services
from storage import jobs
from storage.database import StoreUnavailable
from storage.migrations.runner import migrations
from tests.service.conftest import Served, running

Copied = Callable[[], Path]
HIDDEN = [
    *("unshare", "--map-root-user", "--mount", "--pid", "--fork"),
    *("sh", "-c", 'mount -t proc -o subset=pid proc /proc && exec "$@"', "sh"),
]


@pytest.fixture(scope="module")
def figures(service: Served) -> dict[str, float]:
    """What /metrics says after a request has been answered, by name and labels."""
    assert service.client("demo").get("/accounts").status_code == 200
    assert service.client("demo").get("/accounts").status_code == 200
    answer = httpx.get(f"{service.address}/metrics", timeout=60, trust_env=False)
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
    assert [figures[f"bankdata_jobs {status}"] for status in ("pending", "syncing", "importing")] == [0, 0, 0]
    assert figures["bankdata_jobs_last_hour completed"] >= 1  # the demo's own syncs
    assert figures["bankdata_jobs_last_hour failed"] == 0
    assert figures["bankdata_store_bytes"] > 100_000
    assert figures["bankdata_event_loop_lag_seconds_count"] >= 0
    assert figures["process_resident_memory_bytes"] > 50_000_000
    assert (figures["bankdata_imports"], figures["bankdata_source_calls"]) == (0, 0)
    assert (figures["bankdata_store_up"], figures["bankdata_store_waiting"]) == (1, 0)
    assert abs(figures["bankdata_clock_offset_seconds"]) < 1  # it is one machine
    assert figures["bankdata_schema_version"] == figures["bankdata_program_schema_version"] == migrations()[-1].number
    assert time.time() - 60 < figures["bankdata_scheduler_round_timestamp_seconds"] <= time.time()


def can_hide() -> bool:
    """Whether this machine lets a process have a /proc of its own."""
    return subprocess.run([*HIDDEN, "true"], check=False, capture_output=True, timeout=60).returncode == 0


@pytest.mark.requirement("monitoring.metrics")
@pytest.mark.parametrize("is_one_of_several", [False, True])
@pytest.mark.sampled
def test_processor_memory_and_files_are_told_where_a_unit_shows_a_process_only_processes(
    is_one_of_several: bool, tmp_path: Path
) -> None:
    if not can_hide():
        pytest.skip("no /proc of its own can be had here")
    told = (
        "import sys; from pathlib import Path; from handlers.metrics import Figures;"
        " from handlers.work.services import open_services; from handlers.settings import load;"
        " print(Figures(open_services(load({}, data_dir=Path(sys.argv[1])))).text().decode())"
    )
    counted = tmp_path / "counted"
    counted.mkdir()
    found = subprocess.run(
        [*HIDDEN, sys.executable, "-c", told, tmp_path / "data"],
        env={**os.environ, **({"PROMETHEUS_MULTIPROC_DIR": str(counted)} if is_one_of_several else {})},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    figures = {
        sample.name: sample.value
        for family in text_string_to_metric_families(found.stdout)
        for sample in family.samples
    }
    assert figures["process_resident_memory_bytes"] > 50_000_000
    assert figures["process_cpu_seconds_total"] > 0.1
    assert 3 <= figures["process_open_fds"] < 1000


@pytest.mark.requirement("monitoring.metrics")
def test_a_store_that_does_not_answer_is_one_figure_and_how_late_syncs_are_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(services: Services) -> dict[str, float]:
        families = text_string_to_metric_families(Figures(services).text().decode())
        return {sample.name: sample.value for family in families for sample in family.samples}

    with closing(open_services(load({}, data_dir=tmp_path / "data"))) as services:
        database, now = services.everybody, services.clock.now()
        assert told(services)["bankdata_sync_overdue_seconds"] == 0
        database.execute(
            "INSERT INTO connections (id, user_id, connector, bank_name, status, settings, failures_in_row, created_at,"
            " due_at) VALUES ('con_1', 'u', 'demo', 'One', 'ACTIVE', '{}', 0, $1, $2)",
            now - timedelta(days=1),
            now - timedelta(minutes=10),
        )
        assert 600 <= told(services)["bankdata_sync_overdue_seconds"] < 700

        def fails(_session: object, *, since: datetime) -> None:
            raise StoreUnavailable

        monkeypatch.setattr(jobs, "by_status", fails)
        assert told(services)["bankdata_store_up"] == 0
        assert "bankdata_schema_version" not in told(services)


@pytest.mark.requirement("monitoring.ready")
def test_a_server_with_an_open_store_is_ready(service: Served) -> None:
    answer = httpx.get(f"{service.address}/readyz", timeout=60, trust_env=False)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.requirement("monitoring.ready")
def test_a_store_that_fails_is_not_ready_whatever_its_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(open_services(load({}, data_dir=tmp_path / "data"))) as services:
        assert services.is_ready()
        services.everybody.execute("ALTER TABLE schema_version RENAME COLUMN number TO version")
        assert not services.is_ready()
        assert not services.is_ready()
        services.everybody.execute("ALTER TABLE schema_version RENAME COLUMN version TO number")
        assert services.is_ready()
    assert caplog.messages == ["not ready", "ready again"]


@pytest.mark.requirement("monitoring.logs")
@pytest.mark.long
def test_the_log_of_a_server_is_json_where_it_is_set(copied: Copied) -> None:
    with running(copied(), settings={"LOG_FORMAT": "json"}) as served:
        assert served.stop() == 0
        last = json.loads(served.log.read_text().splitlines()[-1])
    assert (last["level"], last["message"]) == ("info", "stopped; everything is stored")
