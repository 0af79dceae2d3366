"""What may run at once: calls to sources within their bounds, imports by turns."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Queue

import pytest

from handlers.work.sync import concurrency
from handlers.work.sync.concurrency import SMALL_BYTES, Closed, ImportLane, SourceCalls

SECONDS = 60  # longer than any of this takes


class Calls:
    """Calls that run until they are let go, and say when they begin."""

    def __init__(self, calls: SourceCalls) -> None:
        self._calls = calls
        self.begun: Queue[str] = Queue()
        self.may_end = threading.Semaphore(0)

    def submit(self, name: str, *, provider: str = "p", user_id: str = "u") -> None:
        self._calls.submit(self._work(name), provider=provider, user_id=user_id)

    def _work(self, name: str) -> Callable[[], None]:
        def work() -> None:
            self.begun.put(name)
            assert self.may_end.acquire(timeout=SECONDS)

        return work

    def next(self, count: int) -> list[str]:
        """The next calls that begin; what begins beyond them is an error."""
        begun = [self.begun.get(timeout=SECONDS) for _ in range(count)]
        assert self.begun.empty()
        return sorted(begun)


def limit(monkeypatch: pytest.MonkeyPatch, *, at_once: int, per_provider: int, per_user: int) -> None:
    monkeypatch.setattr(concurrency, "CALLS_MAX", at_once)
    monkeypatch.setattr(concurrency, "CALLS_PER_PROVIDER_MAX", per_provider)
    monkeypatch.setattr(concurrency, "CALLS_PER_USER_MAX", per_user)


@pytest.fixture
def source_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceCalls]:
    limit(monkeypatch, at_once=4, per_provider=3, per_user=2)
    made = SourceCalls()
    yield made
    made.close(within=SECONDS)


@pytest.mark.requirement("sync.lanes")
def test_a_source_that_hangs_keeps_its_own_bound_and_leaves_the_rest_to_others(source_calls: SourceCalls) -> None:
    calls = Calls(source_calls)
    for number in range(5):
        calls.submit(f"slow {number}", provider="slow", user_id=f"u{number}")
    assert calls.next(3) == ["slow 0", "slow 1", "slow 2"]
    calls.submit("quick", provider="quick", user_id="u9")
    assert calls.next(1) == ["quick"], "it overtakes those that wait for the slow one"
    calls.submit("beyond all", provider="other", user_id="u8")
    calls.may_end.release(7)
    assert calls.next(3) == ["beyond all", "slow 3", "slow 4"]


@pytest.mark.requirement("sync.lanes")
def test_a_user_has_a_bound_of_his_own(source_calls: SourceCalls) -> None:
    calls = Calls(source_calls)
    for number in range(3):
        calls.submit(f"{number}", provider=f"p{number}")
    assert calls.next(2) == ["0", "1"]
    calls.may_end.release()
    assert calls.next(1) == ["2"]
    calls.may_end.release(2)


@pytest.mark.requirement("sync.turns")
def test_who_has_many_calls_waiting_leaves_every_other_turn_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, at_once=1, per_provider=1, per_user=1)
    source_calls = SourceCalls()
    calls = Calls(source_calls)
    for name, user_id in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b")):
        calls.submit(name, user_id=user_id)
    begun = []
    for _ in range(5):
        begun += calls.next(1)
        calls.may_end.release()
    assert begun == ["a1", "b1", "a2", "b2", "a3"]
    assert source_calls.close(within=SECONDS)


@pytest.mark.requirement("sync.stops")
def test_closing_begins_nothing_more_and_does_not_wait_for_what_hangs(source_calls: SourceCalls) -> None:
    calls = Calls(source_calls)
    for number in range(4):
        calls.submit(f"{number}", user_id=f"u{number}")
    calls.next(3)
    assert not source_calls.close(within=0.01)
    calls.may_end.release(3)
    assert source_calls.close(within=SECONDS)
    calls.submit("late")
    assert calls.begun.empty()


class Imports:
    """Imports that keep their turn until they are let go, and say when it has come."""

    def __init__(self) -> None:
        self.lane = ImportLane()
        self.begun: Queue[str] = Queue()
        self.may_end = threading.Semaphore(0)
        self.threads: list[threading.Thread] = []

    def come(self, name: str, user_id: str, size: int) -> None:
        """One more waits or has its turn once this returns."""
        before = self.lane.length
        self.threads.append(threading.Thread(target=self._work, args=(name, user_id, size)))
        self.threads[-1].start()
        while self.lane.length == before:
            self.threads[-1].join(0.001)

    def _work(self, name: str, user_id: str, size: int) -> None:
        with suppress(ZeroDivisionError), self.lane.turn(user_id, size=size):
            self.begun.put(name)
            assert self.may_end.acquire(timeout=SECONDS)
            raise ZeroDivisionError  # the next one has its turn all the same

    def next(self) -> str:
        return self.begun.get(timeout=SECONDS)

    def end(self) -> None:
        for thread in self.threads:
            thread.join(SECONDS)
        assert self.lane.length == 0


@pytest.mark.requirement("sync.turns")
def test_users_have_turns_at_importing_also_after_one_that_failed() -> None:
    imports = Imports()
    for name, user_id in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c")):
        imports.come(name, user_id, SMALL_BYTES + 1)
    begun = []
    for _ in range(5):
        begun.append(imports.next())
        assert imports.begun.empty(), "one large import at a time"
        imports.may_end.release()
    imports.end()
    assert begun == ["a1", "b1", "c1", "a2", "a3"]


@pytest.mark.requirement("sync.turns")
def test_a_small_import_passes_a_large_one_of_somebody_else() -> None:
    imports = Imports()
    imports.come("large", "a", SMALL_BYTES + 1)
    assert imports.next() == "large"
    imports.come("not small", "b", SMALL_BYTES + 1)
    imports.come("of the same user", "a", SMALL_BYTES)
    assert imports.begun.empty()
    imports.come("small", "c", SMALL_BYTES)
    assert imports.next() == "small"
    imports.come("second small", "d", 0)
    assert imports.begun.empty()
    imports.may_end.release(5)
    imports.end()


@pytest.mark.requirement("sync.turns")
def test_who_is_not_wanted_any_more_leaves_the_line() -> None:
    class Unwanted(Exception):
        pass

    def check() -> None:
        raise Unwanted

    lane = ImportLane()
    with lane.turn("a"):
        with pytest.raises(Unwanted), lane.turn("b", check=check):
            raise AssertionError("a turn for nobody")
        assert lane.length == 1
    with lane.turn("b", check=check):
        assert lane.length == 1


@pytest.mark.requirement("sync.stops")
def test_a_closed_lane_gives_no_turn_and_lets_those_go_who_wait() -> None:
    lane, refused = ImportLane(), list[type[Exception]]()

    def work() -> None:
        try:
            with lane.turn("u"):
                raise AssertionError("a turn after the end")
        except Closed as error:
            refused.append(type(error))

    thread = threading.Thread(target=work)
    with lane.turn("u"):
        thread.start()
        while lane.length < 2:
            thread.join(0.001)
        lane.close()
        thread.join(SECONDS)
    with pytest.raises(Closed), lane.turn("u"):
        pass
    assert refused == [Closed]
