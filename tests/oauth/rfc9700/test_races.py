"""Twelve at once: of one code, one refresh token, one consent exactly one comes through, on a real store file."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from auth.errors import InvalidGrant
from storage.database import Conflict, StoreUnavailable

THREADS = 12
ROUNDS = 5
REDIRECT = "https://app.example/callback"


def at_once(work: Callable[[], Any]) -> list[Any]:
    """What each of twelve threads got, started together."""
    gate = threading.Barrier(THREADS)

    def run(_number: int) -> Any:
        gate.wait()
        try:
            return work()
        except (InvalidGrant, StoreUnavailable) as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def winners(results: list[Any]) -> list[Any]:
    return [result for result in results if not isinstance(result, Exception)]


@pytest.mark.requirement("oauth.races")
def test_one_of_twelve_redeems_a_code(fresh: Any) -> None:
    client_id = fresh.register()
    for _ in range(ROUNDS):
        code, verifier = fresh.browser().code(client_id)
        results = at_once(
            lambda code=code, verifier=verifier: fresh.server.codes.redeem(  # type: ignore[misc]  # bound loop variables
                code, client_id=client_id, redirect_uri=REDIRECT, verifier=verifier
            )
        )
        (tokens,) = winners(results)
        # The eleven others presented a used code: what the winner got ends too (RFC 6749 section 4.1.2)
        assert fresh.api(tokens.access_token).status_code == 401


@pytest.mark.requirement("oauth.races")
@pytest.mark.parametrize("without_locks", [False, True])
@pytest.mark.sampled
def test_without_a_grace_one_of_twelve_refreshes(make_world: Callable[..., Any], without_locks: bool) -> None:
    fresh = make_world(refresh_reuse_seconds=timedelta(0))
    if without_locks:  # as several processes would meet: only the store decides
        fresh.server.codes._one_time._locks = [_Open() for _ in range(64)]
    client_id = fresh.register()
    for _ in range(ROUNDS):
        token = fresh.tokens(client_id)["refresh_token"]
        results = at_once(
            lambda token=token: fresh.server.refresh_tokens.refresh(token, client_id=client_id, scope=None)  # type: ignore[misc]
        )
        (tokens,) = winners(results)
        stored = fresh.database.rows("SELECT count(*) AS number FROM oauth_refresh_tokens WHERE used_at IS NULL")
        assert stored[0]["number"] >= 1
        if not without_locks:
            assert fresh.api(tokens.access_token).status_code == 401


@pytest.mark.requirement("oauth.races")
@pytest.mark.parametrize("without_locks", [False, True])
@pytest.mark.sampled
def test_in_the_grace_all_twelve_get_the_same_successor(fresh: Any, without_locks: bool) -> None:
    world = fresh
    if without_locks:
        world.server.refresh_tokens._one_time._locks = [_Open() for _ in range(64)]
    tokens = world.tokens()
    results = at_once(
        lambda: world.server.refresh_tokens.refresh(tokens["refresh_token"], client_id=tokens["client_id"], scope=None)
    )
    assert len(winners(results)) == THREADS
    assert len({result.refresh_token for result in results}) == 1
    assert world.api(results[0].access_token).status_code == 200


@pytest.mark.requirement("oauth.races")
def test_a_race_that_outlasts_all_tries_is_a_failure_for_a_moment_and_spends_nothing(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loses(_session: object) -> None:
        raise Conflict

    tokens = fresh.tokens()
    again = {"client_id": tokens["client_id"], "scope": None}
    with monkeypatch.context() as patched:
        patched.setattr("storage.database.CONFLICT_PAUSES", ())
        with pytest.raises(StoreUnavailable):
            fresh.server.refresh_tokens._one_time.exchange("0" * 64, loses, kind="refresh token", client_id="c")
    assert fresh.server.refresh_tokens.refresh(tokens["refresh_token"], **again).access_token


@pytest.mark.requirement("oauth.races")
def test_one_of_twelve_clicks_counts(fresh: Any) -> None:
    browser = fresh.browser()
    page = browser.sign_in(browser.authorize(fresh.register()))
    secret = page.headers["location"].partition("request=")[2]
    session = fresh.server.sessions.resume(browser.client.cookies["bds_session"])
    results = at_once(lambda: fresh.server.consent.decide(session, secret, is_allowed=True))
    assert len({code for _request, code in results}) == 1
    assert fresh.database.rows("SELECT count(*) AS number FROM oauth_grants")[0]["number"] == 1


@pytest.mark.requirement("oauth.races")
def test_a_revocation_has_the_last_word_over_requests_under_way(fresh: Any) -> None:
    for _ in range(ROUNDS):
        tokens = fresh.tokens()
        entry = fresh.server.grants.connected_apps()[0]
        stop = threading.Event()

        def ask(token: str = tokens["access_token"], stop: threading.Event = stop) -> None:
            while not stop.is_set():
                fresh.server.access.forget()
                try:
                    fresh.server.access.principal(token)
                except Exception:
                    return

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        fresh.server.grants.revoke(entry.grant.id, because="revoked by the operator")
        assert fresh.api(tokens["access_token"]).status_code == 401
        stop.set()
        for thread in threads:
            thread.join(60)
        assert fresh.api(tokens["access_token"]).status_code == 401


class _Open:
    """A lock that holds nobody."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
