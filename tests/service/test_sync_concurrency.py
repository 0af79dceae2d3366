"""What may run at once: calls to sources within their bounds, imports one by one in the order of asking."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Queue

import pytest

from handlers.sync.concurrency import Closed, ImportLane, SourceCalls

SECONDS = 10  # longer than any of this takes


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


@pytest.fixture
def source_calls() -> Iterator[SourceCalls]:
    made = SourceCalls(at_once=4, per_provider=3, per_user=2)
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


@pytest.mark.requirement("sync.lanes")
def test_imports_take_turns_in_the_order_of_asking_also_after_one_that_failed() -> None:
    lane, done = ImportLane(), list[int]()

    def work(number: int) -> None:
        with lane.turn():
            done.append(number)

    waiting = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    with suppress(ZeroDivisionError), lane.turn():
        for number, thread in enumerate(waiting, start=2):
            thread.start()
            while len(lane._line) < number:
                thread.join(0.001)
        assert done == []
        raise ZeroDivisionError
    for thread in waiting:
        thread.join(SECONDS)
    assert done == [0, 1, 2]


@pytest.mark.requirement("sync.stops")
def test_a_closed_lane_gives_no_turn_and_lets_those_go_who_wait() -> None:
    lane, refused = ImportLane(), list[type[Exception]]()

    def work() -> None:
        try:
            with lane.turn():
                raise AssertionError("a turn after the end")
        except Closed as error:
            refused.append(type(error))

    thread = threading.Thread(target=work)
    with lane.turn():
        thread.start()
        while len(lane._line) < 2:
            thread.join(0.001)
        lane.close()
        thread.join(SECONDS)
    with pytest.raises(Closed), lane.turn():
        pass
    assert refused == [Closed]
