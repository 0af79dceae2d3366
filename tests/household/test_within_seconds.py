"""How soon what is shared is there, current and gone, with the scheduler at work in every process of the store."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handlers.server import application
from handlers.work.services import Services, open_services
from tests.engines import ENGINE
from tests.household.conftest import Served, eva_and_ben
from tests.imports.test_shares import GIRO, booking

SECONDS = 5


@contextmanager
def at_work(processes: list[Services]) -> Iterator[None]:
    threads = [threading.Thread(target=each.scheduler.work) for each in processes]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for each in processes:
            each.sync_engine.stopped.set()
        for thread in threads:
            thread.join()


def seconds_until(is_so: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < 60
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.long
@pytest.mark.requirement("household.soon")
def test_what_is_shared_is_there_current_and_gone_within_five_seconds(tmp_path: Path) -> None:
    settings = ENGINE.settings(tmp_path / "data", RATE_LIMIT="off")
    processes = [open_services(settings, for_server=True) for _ in range(3 if ENGINE.name == "postgresql" else 1)]
    first, last = processes[0], processes[-1]
    eva, ben = eva_and_ben(first)
    home, there = Served(first, eva, ben, app=application(first)), Served(last, eva, ben, app=application(last))
    page, app = there.bens_page, there.bens_app
    took: dict[str, list[float]] = {"there": [], "current": [], "gone": [], "read no more": []}
    seen: set[str] = set()

    def count() -> int:
        seen.update(each["id"] for each in app.get("/accounts").json()["accounts"])
        return int(page.get("/transactions/search").json()["pagination"]["total"])

    with at_work(processes):
        for number in range(5):
            home.bring(eva, GIRO, booking("2026-11-02", f"-{number + 1}.00", f"a{number}", provider_id=f"a{number}"))
            made = home.share()
            first.households.round(made.id)
            took["there"].append(seconds_until(lambda n=2 * number + 1: count() == n))  # type: ignore[misc]
            home.bring(eva, GIRO, booking("2026-11-03", f"-{number + 1}.50", f"b{number}", provider_id=f"b{number}"))
            took["current"].append(seconds_until(lambda n=2 * number + 2: count() == n))  # type: ignore[misc]
            assert first.authorization.shares.end(eva, made.id)
            first.households.round(made.id)
            took["read no more"].append(seconds_until(lambda: count() == 0))
            took["gone"].append(seconds_until(lambda: home.rows(ben) == []))
    for each in processes:
        each.close()
    print({name: [round(each, 1) for each in times] for name, times in took.items()})
    assert seen == set()
    assert max(map(max, took.values())) < SECONDS
