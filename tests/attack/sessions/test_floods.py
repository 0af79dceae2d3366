"""Whoever sends no cookie gets a new session each time; of those without a user only the newest are kept."""

from typing import Any

import pytest

from auth import consent
from auth.people import sessions


def count(world: Any, table: str) -> int:
    return int(world.database.rows(f"SELECT count(*) AS number FROM {table}")[0]["number"])


@pytest.mark.requirement("oauth.session_bounds")
def test_sessions_of_nobody_are_bounded_and_the_one_unseen_longest_goes_first(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "NOBODYS_MAX", 3)
    signed_in = fresh.server.sessions.sign_in(None, fresh.user.id)
    client_id = fresh.register()
    first = fresh.browser()
    assert first.authorize(client_id).status_code == 303
    for _ in range(3):
        fresh.clock.forward(seconds=1)
        assert fresh.browser().authorize(client_id).status_code == 303
    assert count(fresh, "oauth_sessions") == 4
    assert count(fresh, "oauth_requests") == 3  # its request went with it
    assert fresh.server.sessions.resume(first.client.cookies["bds_session"]) is None
    assert fresh.server.sessions.resume(signed_in.secret) is not None


@pytest.mark.requirement("oauth.session_bounds")
def test_waiting_requests_are_bounded_over_all_browsers(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent, "KEPT_MAX", 3)
    client_id = fresh.register()
    pages = []
    for _ in range(4):
        pages.append((browser := fresh.browser(), browser.authorize(client_id)))
        fresh.clock.forward(seconds=1)
    assert count(fresh, "oauth_requests") == 3
    answers = [browser.client.get(page.headers["location"]).status_code for browser, page in pages]
    assert answers == [400, 200, 200, 200]
