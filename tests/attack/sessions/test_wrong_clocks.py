"""A clock that was ahead and is right again neither locks anybody out nor keeps anybody signed in."""

from datetime import UTC, timedelta
from typing import Any

import pytest

from auth.people.throttle import Reserved, Throttles

AHEAD = (timedelta(hours=2), timedelta(days=3650))


@pytest.mark.requirement("workers.clocks")
@pytest.mark.parametrize("ahead", AHEAD)
def test_guesses_under_a_clock_that_was_ahead_lock_nobody_out(fresh: Any, ahead: timedelta) -> None:
    throttles, now = Throttles(fresh.database, b"key"), fresh.clock().replace(tzinfo=UTC)

    def guess(moment: Any) -> Any:
        return throttles.reserve(name="eva", address="192.0.2.1", browser=None, now=moment)

    for _ in range(5):
        assert isinstance(guess(now + ahead), Reserved)
    assert guess(now + ahead) == timedelta(seconds=15)
    for _ in range(5):
        assert isinstance(guess(now), Reserved)
    assert guess(now) == timedelta(seconds=15), "and guesses are limited as ever"


@pytest.mark.requirement("workers.clocks")
def test_a_session_that_a_clock_ahead_has_made_is_over_and_one_that_it_has_seen_goes_on(fresh: Any) -> None:
    before = fresh.server.sessions.sign_in(None, fresh.user.id)
    fresh.clock.forward(hours=2)
    ahead = fresh.server.sessions.sign_in(None, fresh.user.id)
    assert fresh.server.sessions.resume(before.secret) is not None
    fresh.clock.forward(hours=-2)
    assert fresh.server.sessions.resume(ahead.secret) is None
    assert fresh.server.sessions.resume(before.secret) is not None
    fresh.clock.forward(hours=12)
    assert fresh.server.sessions.resume(before.secret) is None, "it was seen now, and not two hours later"
