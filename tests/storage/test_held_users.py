"""Who waits for a user that another transaction holds: for how long, without what others need, and how many at once."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from storage import users
from storage.boundary import carry
from storage.database import UserBusy
from storage.engines import held_users
from storage.engines.held_users import WAITING_MAX, WAITING_MAX_PER_USER, HeldUsers
from tests.conftest import NOW
from tests.engines import ENGINE, OpenStore, opened

pytestmark = pytest.mark.requirement("store.held")


def add(store: OpenStore, name: str) -> str:
    return users.add(store, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=NOW).id


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[OpenStore]:
    """A store whose callers are awaited, with two connections where it has any."""
    ENGINE.empty_store(tmp_path / "bankdata.duckdb").close()
    with closing(opened(ENGINE.url(tmp_path / "bankdata.duckdb"), is_serving=True, pool=2)) as store:
        yield store


@contextmanager
def held(store: OpenStore, user_id: str) -> Iterator[threading.Event]:
    """Another thread holds the user until the block ends, or the event is set."""
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with store.transaction() as session:
            session.hold(user_id)
            is_held.set()
            may_end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(60)
    try:
        yield may_end
    finally:
        may_end.set()
        thread.join(60)


@pytest.mark.parametrize("by", ["hold", "changes"])
def test_a_request_waits_for_its_user_as_long_as_a_request_may_and_nobody_else_waits(
    serving: OpenStore, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_users, "AWAITED_SECONDS", 0.2)
    ada, eva = add(serving, "Ada"), add(serving, "Eva")
    with held(serving, ada):
        began = time.monotonic()
        with pytest.raises(UserBusy):
            serving.atomically(lambda session: getattr(session, by)(ada))
        assert 0.2 <= time.monotonic() - began < 5
        serving.changes(eva)
    serving.changes(ada)


def test_those_who_wait_keep_no_connection_that_others_need(serving: OpenStore) -> None:
    ada, eva = add(serving, "Ada"), add(serving, "Eva")
    waiting = [threading.Thread(target=serving.changes, args=[ada]) for _ in range(WAITING_MAX_PER_USER)]
    with held(serving, ada) as may_end:
        for each in waiting:
            each.start()
        for _ in range(20):
            serving.changes(eva)
        assert all(each.is_alive() for each in waiting)
        before = serving.state(ada)
        may_end.set()
        for each in waiting:
            each.join(60)
    assert serving.state(ada) >= before + WAITING_MAX_PER_USER


def test_a_thread_that_nobody_waits_for_has_time(serving: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_users, "AWAITED_SECONDS", 0.0)
    ada = add(serving, "Ada")
    patient = threading.Thread(target=carry(lambda: serving.changes(ada)))
    with held(serving, ada):
        patient.start()
        with pytest.raises(UserBusy):
            serving.changes(ada)
        assert patient.is_alive()
        before = serving.state(ada)
    patient.join(60)
    assert serving.state(ada) > before


def test_of_one_user_and_of_all_so_many_requests_wait_and_one_more_is_refused_at_once() -> None:
    waits = HeldUsers()
    with ExitStack() as waiting:
        for _ in range(WAITING_MAX_PER_USER):
            waiting.enter_context(waits.waiting("ada"))
        with pytest.raises(UserBusy), waits.waiting("ada"):
            pass
        for number in range(WAITING_MAX - WAITING_MAX_PER_USER):
            waiting.enter_context(waits.waiting(f"user {number}"))
        with pytest.raises(UserBusy), waits.waiting("eva"):
            pass
        carry(lambda: waiting.enter_context(waits.waiting("eva")))()
    with waits.waiting("eva"):
        pass
