"""Forty guesses at once get exactly as many checks as are free, wherever a password is asked for."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from auth.people.password_hashing import Busy
from auth.people.sign_in import Outcome
from auth.people.throttle import ACCOUNT_FAILURES
from storage.database import Conflict

GUESSES = 40


def at_once(work: Callable[[int], Any]) -> list[Any]:
    gate = threading.Barrier(GUESSES)

    def run(number: int) -> Any:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(GUESSES) as pool:
        return list(pool.map(run, range(GUESSES)))


def count_checks(world: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were held against a hash, as they come; nobody is told Busy."""
    checked: list[str] = []
    real = world.server.passwords._in_turn
    monkeypatch.setattr(world.server.sign_in._throttles, "_waiting", threading.BoundedSemaphore(GUESSES))
    monkeypatch.setattr(world.server.passwords, "_places", threading.BoundedSemaphore(GUESSES + 2))

    def counting(work: Callable[[], Any]) -> Any:
        checked.append("one")
        return real(work)

    monkeypatch.setattr(world.server.passwords, "_in_turn", counting)
    return checked


@pytest.mark.requirement("oauth.throttle")
def test_forty_guesses_at_sign_in_get_five_checks(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = count_checks(fresh, monkeypatch)

    def guess(number: int) -> Any:
        return fresh.server.sign_in.attempt(
            "alice", f"wrong password {number}", before=None, address="192.0.2.1", known_browser=None
        )

    outcomes = at_once(guess)
    assert len(checked) == ACCOUNT_FAILURES
    assert sum(outcome.wait is None for outcome in outcomes) == ACCOUNT_FAILURES
    assert all(outcome.browser is None for outcome in outcomes)
    fresh.clock.forward(seconds=15)
    at_once(guess)
    assert len(checked) == ACCOUNT_FAILURES + 1  # one per wait from now on


@pytest.mark.requirement("oauth.throttle")
def test_forty_guesses_on_the_account_page_get_five_checks(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = fresh.server.sessions.sign_in(None, fresh.user.id)
    checked = count_checks(fresh, monkeypatch)

    def guess(number: int) -> Any:
        return fresh.server.sign_in.change_password(
            fresh.user, browser, current=f"wrong password {number}", new="x" * 20, address="192.0.2.1"
        )

    outcomes = at_once(guess)
    assert len(checked) == ACCOUNT_FAILURES
    assert sum(outcome.wait is None for outcome in outcomes) == ACCOUNT_FAILURES


@pytest.mark.requirement("oauth.throttle")
def test_forty_right_passwords_at_once_all_come_in(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    count_checks(fresh, monkeypatch)
    outcomes = at_once(
        lambda _: fresh.server.sign_in.attempt(
            "alice", "umbrella-kettle-violin", before=None, address="192.0.2.1", known_browser=None
        )
    )
    assert all(outcome.browser is not None for outcome in outcomes)


@pytest.mark.requirement("oauth.throttle")
def test_whose_clock_was_read_before_another_attempt_is_not_held_up(fresh: Any) -> None:
    fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
    fresh.clock.forward(seconds=-1)
    outcome = fresh.server.sign_in.attempt(
        "alice", "umbrella-kettle-violin", before=None, address="192.0.2.1", known_browser=None
    )
    assert outcome.browser is not None
    fresh.clock.forward(seconds=-1)
    outcome = fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
    assert outcome.wait is None


@pytest.mark.requirement("oauth.throttle")
def test_twenty_wait_for_their_turn_and_no_more(fresh: Any) -> None:
    turns = fresh.server.sign_in._throttles
    for _ in range(20):
        turns._waiting.acquire()
    with pytest.raises(Busy):
        fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
    turns._waiting.release()
    assert (
        fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
        == Outcome()
    )


@pytest.mark.requirement("oauth.throttle")
def test_a_password_that_could_not_be_checked_is_no_failure(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_work: object) -> None:
        raise Busy

    for _ in range(2 * ACCOUNT_FAILURES):
        with monkeypatch.context() as patch:
            patch.setattr(fresh.server.passwords, "_in_turn", busy)
            with pytest.raises(Busy):
                fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
    outcome = fresh.server.sign_in.attempt(
        "alice", "umbrella-kettle-violin", before=None, address="192.0.2.1", known_browser=None
    )
    assert outcome.browser is not None


@pytest.mark.requirement("oauth.throttle")
def test_a_hundred_right_passwords_do_not_close_an_address(fresh: Any) -> None:
    for _ in range(120):
        outcome = fresh.server.sign_in.attempt(
            "alice", "umbrella-kettle-violin", before=None, address="192.0.2.1", known_browser=None
        )
        assert outcome.browser is not None


@pytest.mark.requirement("oauth.throttle")
def test_guesses_that_another_process_counts_meanwhile_are_not_lost(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from storage.oauth import throttles

    real, meanwhile = throttles.find, [1, 1]

    def read_then_overtaken(session: Any, subject: str) -> Any:
        known = real(session, subject)
        if meanwhile:
            meanwhile.pop()
            change = (
                "UPDATE oauth_throttles SET failures = failures + 1 WHERE subject_hash = $1"
                if known
                else "INSERT INTO oauth_throttles VALUES ($1, 3, TIMESTAMP '2026-11-20', TIMESTAMP '2026-11-20 12:00')"
            )
            session.execute(change, subject)  # in the same transaction: what another process has committed meanwhile
        return known

    monkeypatch.setattr(throttles, "find", read_then_overtaken)
    fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
    fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
    rows = fresh.database.rows("SELECT failures FROM oauth_throttles ORDER BY failures")
    assert [row["failures"] for row in rows] == [2, 2]  # the overtaken ones were read again, none was overwritten


@pytest.mark.requirement("oauth.throttle")
def test_who_cannot_be_counted_is_not_checked(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def conflict(_work: object) -> None:
        raise Conflict("always somebody else")

    monkeypatch.setattr(fresh.database, "atomically", conflict)
    with pytest.raises(Busy):
        fresh.server.sign_in.attempt("alice", "wrong", before=None, address="192.0.2.1", known_browser=None)
