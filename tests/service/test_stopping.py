"""A server that is asked to stop while sources keep it waiting: it ends in time, and its jobs go on afterwards."""

import json
import signal
import socket
import threading
import time
from http.client import HTTPResponse
from pathlib import Path

import httpx
import pytest

from storage import jobs
from tests.benchmarks.slow_source import END_SECONDS_MAX, client_of, started
from tests.engines import ENGINE, STORE, opened
from tests.service.conftest import running

HANGS = 600.0  # seconds; much longer than a server may take to end
HALF_A_FORM = (
    b"POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 100\r\n\r\ngrant"
)


@pytest.mark.engine("duckdb")  # it looks into the file of the store
@pytest.mark.requirement("sync.stops")
@pytest.mark.long
def test_a_server_ends_within_ten_seconds_though_its_sources_hang_and_its_jobs_stay_to_be_done() -> None:
    statuses: list[str] = []

    with started(3, HANGS) as server, client_of(server.port, server.tokens[0]) as client:
        (job,) = client.post("/sync").json()["syncJobs"]

        def read() -> None:
            with client_of(server.port, server.tokens[0]) as reader:
                statuses.append(reader.get(f"/sync/{job['syncId']}").json()["status"])

        reading = threading.Thread(target=read)
        reading.start()
        with pytest.raises(httpx.ReadTimeout):
            client.get(f"/sync/{job['syncId']}", timeout=1)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert time.monotonic() - began < END_SECONDS_MAX
        reading.join(60)
        assert statuses == ["syncing"], "who waits for the job is answered before the end"
        with_jobs = opened(ENGINE.url(server.folder / STORE))
        (left,) = jobs.find_unfinished(with_jobs)
        with_jobs.close()
        assert (left.id, left.status) == (job["syncId"], "syncing")


@pytest.mark.requirement("sync.stops")
@pytest.mark.long
def test_a_request_that_does_not_come_to_an_end_is_told_so_by_a_server_that_does(tmp_path: Path) -> None:
    with running(tmp_path / "data", command="serve") as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=END_SECONDS_MAX) as client:
            client.sendall(HALF_A_FORM)
            assert httpx.get(f"{served.address}/readyz", timeout=60, trust_env=False).is_success, (
                "it has read what came before this question"
            )
            served.process.send_signal(signal.SIGTERM)
            answer = HTTPResponse(client)
            answer.begin()
            assert (answer.status, answer.headers["Content-Type"]) == (503, "application/json")
            assert set(json.load(answer)) == {"error"}
        assert served.stop() == 0
        assert "Traceback" not in served.log.read_text()


@pytest.mark.requirement("sync.stops")
@pytest.mark.long
def test_the_last_word_of_a_server_is_that_everything_is_stored(tmp_path: Path) -> None:
    """DuckDB's binding lists whatever is left at the end as leaks, a hundred lines of them."""
    with running(tmp_path / "data", command="serve") as served:
        pass
    *_, last = served.log.read_text().strip().splitlines()
    assert last.endswith("INFO bankdata stopped; everything is stored")
