"""What is too old is deleted, but not by a clock that has just leapt."""

import threading
from datetime import timedelta

import pytest

from handlers.work.clock_watch import ClockWatch
from handlers.work.housekeeping import Housekeeping
from storage import store_facts
from storage.changes.incarnation import Life
from tests.engines import OpenStore
from tests.service.test_sync_machine import Hand


@pytest.mark.requirement("workers.clocks")
def test_for_a_day_after_the_clock_has_leapt_nothing_is_deleted(
    database: OpenStore, clock: Hand, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_facts, "clock", lambda _database: None)  # the only clock there is
    swept: list[str] = []
    keeping = Housekeeping(
        store=database,
        clock=clock,
        clock_watch=ClockWatch(database, clock),
        life=Life(database),
        looking=list,
        tell_operators=lambda: None,
        settle_keys=lambda: None,
        sweep=lambda: swept.append(f"{clock.moment:%j %H}"),
        stopped=threading.Event(),
    )
    begun = clock.moment

    def sweeps_at(**later: float) -> bool:
        clock.moment, before = begun + timedelta(**later), len(swept)
        keeping.each_minute()
        keeping.begin_day(clock.today())
        return len(swept) > before

    assert sweeps_at()
    assert sweeps_at(days=29)
    assert not sweeps_at(days=429)
    assert not sweeps_at(days=429, hours=23)
    assert not sweeps_at(days=29, hours=1), "set right, which is a leap, too"
    assert not sweeps_at(days=29, hours=24)
    assert sweeps_at(days=30, hours=2)
    assert [each.split(":")[0] for each in caplog.messages] == [
        "the clock is 400 days off the store's last use",
        "the clock is -401 days off the store's last use",
    ]
