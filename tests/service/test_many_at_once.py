"""Many at once: readers of one job, users side by side, and a server that is killed while it imports."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.service.conftest import Served, everything, get, running, start
from tests.soak.killed_imports import Ledger, cycle
from tests.soak.mixed_requests import soak


@pytest.mark.requirement("decision 26")
@pytest.mark.long
def test_50_parallel_readers_of_one_job_import_once(own_service: Served) -> None:
    client = own_service.client("solo")
    before = len(everything(client))
    own_service.advance(20 * 86_400)
    (job,) = client.post("/sync").json()["syncJobs"]
    path = f"/sync/{job['syncId']}"
    assert get(client, path)["status"] == "syncing"
    token = own_service.token("solo")

    def read(_: int) -> dict[str, object]:
        with own_service.bare(token) as reader:
            answer: dict[str, object] = get(reader, path)
            return answer

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(read, range(50)))
    assert {answer["status"] for answer in answers} <= {"syncing", "importing", "completed"}
    final = get(client, path)
    while final["status"] != "completed":
        final = get(client, path)
    assert all(answer == final for answer in answers if answer["status"] == "completed")
    assert final["newTransactions"] == len(everything(client)) - before > 0


@pytest.mark.requirement("interface 4.8 rate")
def test_of_50_parallel_requests_to_sync_one_is_accepted(own_service: Served) -> None:
    own_service.advance(86_400)
    token = own_service.token("lapsed")
    own_service.command("users subscription", **{"name": "lapsed", "active": True})

    def post(_: int) -> int:
        with own_service.bare(token) as client:
            return client.post("/sync").status_code

    with ThreadPoolExecutor(50) as pool:
        codes = sorted(pool.map(post, range(50)))
    assert codes == [202] + [429] * 49


@pytest.mark.requirement("isolation")
@pytest.mark.long
def test_a_thousand_mixed_requests_never_show_another_users_row(
    copied: Callable[[], Path], own_service: Served
) -> None:
    outcome = soak(own_service, requests=1000, threads=8)
    assert outcome.wrong == []
    assert sum(outcome.answers.values()) > 900
    assert "Traceback" not in own_service.log.read_text()


@pytest.mark.requirement("store.killed")
@pytest.mark.long
def test_a_job_that_a_killed_server_left_behind_is_finished_by_the_next_one(copied: Callable[[], Path]) -> None:
    folder = copied()
    served = start(folder, is_measured=False)
    try:
        (job,) = served.client("solo").post("/sync").json()["syncJobs"]
        path = f"/sync/{job['syncId']}"
        before = get(served.client("solo"), path)
        assert before["status"] == "syncing"
    finally:
        served.process.kill()
        served.stop()
    with running(folder) as again:
        after = get(again.client("solo"), path)
        assert after["createdAt"] == before["createdAt"]
        assert after["status"] == "completed"
        assert again.client("solo").post("/sync").status_code == 429


@pytest.mark.engine("duckdb")  # it looks into the file of the store
@pytest.mark.requirement("store.killed")
@pytest.mark.long
def test_a_server_killed_while_importing_loses_nothing_and_leaves_nothing_by_half(copied: Callable[[], Path]) -> None:
    folder, ledger, chance = copied(), Ledger(), random.Random(7)
    for _ in range(3):
        cycle(folder, ledger, chance)
    assert ledger.tried >= 3
