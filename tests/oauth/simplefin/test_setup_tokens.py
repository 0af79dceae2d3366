"""A setup token of SimpleFIN: made once, exchanged once, told when somebody tries it again, forgotten in the end."""

import base64
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from auth.errors import InvalidClientMetadata, InvalidGrant, InvalidRequest, InvalidToken
from auth.tokens import simplefin
from storage.database import Conflict
from storage.oauth import simplefin as stored
from storage.oauth.grants import EVERYTHING, ConnectedGrant, Terms
from tests.oauth.conftest import World

pytestmark = pytest.mark.requirement("simplefin.setup-tokens")

HOST = "127.0.0.1:8000"


def made(world: Any, name: str = "Actual", terms: Terms = EVERYTHING, **how: Any) -> str:
    """The code of a new setup token."""
    token = world.server.simplefin.setup_token(world.user.id, name, terms=terms, **how)
    address = base64.b64decode(token, validate=True).decode()
    found = re.fullmatch(rf"http://{re.escape(HOST)}/simplefin/claim/([A-Za-z0-9]{{43}})", address)
    assert found is not None
    return found[1]


def claimed(world: Any, code: str, agent: str = "actual/26.9") -> tuple[str, str]:
    """User part and password of a claim."""
    url = world.server.simplefin.claim(code, agent=agent, address="192.0.2.1")
    found = re.fullmatch(rf"http://([A-Za-z0-9]{{16}}):([A-Za-z0-9]{{43}})@{re.escape(HOST)}/simplefin", url)
    assert found is not None
    return found[1], found[2]


def shown(world: Any) -> list[ConnectedGrant]:
    found: list[ConnectedGrant] = world.server.grants.connected_apps(world.user.id)
    return found


def test_a_token_is_shown_before_it_is_fetched_and_as_an_app_from_then_on(fresh: World) -> None:
    code = made(fresh, "Budget of mine", Terms(accounts=("a",), figures_only=True), lifetime=timedelta(days=30))
    (waiting,) = shown(fresh)
    assert waiting.simplefin is not None
    assert (waiting.client_name, waiting.simplefin.claimed_at, waiting.grant.scope) == (
        "Budget of mine",
        None,
        "read:accounts",
    )
    assert waiting.grant.expires_at == waiting.grant.created_at + timedelta(days=30)
    pair = claimed(fresh, code, "actual/26.9\n" + "x" * 300)
    (app,) = shown(fresh)
    assert app.simplefin is not None
    assert app.simplefin.claimed_at is not None
    assert app.simplefin.claimed_by == ("actual/26.9" + "x" * 300)[:200]
    assert app.grant.redeemed_at == app.simplefin.claimed_at
    principal = fresh.server.simplefin.principal(*pair)
    assert (principal.user_id, principal.grant_id, principal.figures_only) == (fresh.user.id, app.grant.id, True)


def test_a_token_that_comes_again_is_refused_and_told_and_ends_nothing(fresh: World) -> None:
    code = made(fresh)
    pair = claimed(fresh, code)
    (before,) = shown(fresh)
    fresh.clock.forward(hours=1)
    with pytest.raises(InvalidGrant):
        claimed(fresh, code)
    (after,) = shown(fresh)
    assert before.simplefin is not None
    assert after.simplefin is not None
    assert (before.simplefin.tried_again_at, after.simplefin.claimed_at) == (None, before.simplefin.claimed_at)
    assert after.simplefin.claimed_at is not None
    assert after.simplefin.tried_again_at == after.simplefin.claimed_at + timedelta(hours=1)
    assert fresh.server.simplefin.principal(*pair).user_id == fresh.user.id


def test_a_token_lasts_a_day_and_no_longer_than_its_access(fresh: World) -> None:
    late, early, ended = made(fresh), made(fresh), made(fresh, "Ended")
    fresh.clock.forward(hours=23, minutes=59)
    claimed(fresh, early)
    waiting = [each for each in shown(fresh) if each.client_name == "Ended"]
    assert fresh.server.grants.revoke(waiting[0].grant.id, because="revoked by the user")
    with pytest.raises(InvalidGrant):
        claimed(fresh, ended)
    fresh.clock.forward(minutes=2)
    with pytest.raises(InvalidGrant):
        claimed(fresh, late)
    assert len(shown(fresh)) == 1


def test_of_racing_claims_one_wins(fresh: World) -> None:
    code = made(fresh)

    def claim(_number: int) -> str | None:
        try:
            return fresh.server.simplefin.claim(code, agent="", address="192.0.2.1")
        except InvalidGrant:
            return None

    with ThreadPoolExecutor(8) as pool:
        won = [url for url in pool.map(claim, range(16)) if url is not None]
    assert len(won) == 1
    (app,) = shown(fresh)
    assert app.simplefin is not None
    assert app.simplefin.tried_again_at is not None


def test_whoever_loses_to_another_process_is_refused(fresh: World, monkeypatch: pytest.MonkeyPatch) -> None:
    code = made(fresh)

    def conflict(*_: object, **__: object) -> None:
        raise Conflict("somebody was first")

    monkeypatch.setattr(fresh.database, "atomically", conflict)
    with pytest.raises(InvalidGrant):
        claimed(fresh, code)
    monkeypatch.undo()
    claimed(fresh, code)


def test_guesses_open_nothing(fresh: World) -> None:
    pair = claimed(fresh, made(fresh))
    access = fresh.server.simplefin
    for user_part, password in ((pair[0], "x"), (pair[0], pair[1][:-1]), ("A" * 16, pair[1]), ("' OR 1=1", "")):
        with pytest.raises(simplefin.WrongPassword):
            access.principal(user_part, password)
    assert access.wait_after_guess("none", address="192.0.2.1") is None
    waits = [access.wait_after_guess(pair[0], address="192.0.2.1") for _ in range(6)]
    assert waits[:5] == [None] * 5
    assert waits[5] is not None
    assert access.wait_after_guess(pair[0], address="192.0.2.2") is None


def test_a_revocation_by_another_process_counts_within_half_a_second(make_world: Any) -> None:
    world = make_world(many=True)
    pair = claimed(world, made(world))
    (app,) = shown(world)
    world.server.simplefin.principal(*pair)
    world.database.execute(
        "UPDATE oauth_grants SET revoked_at = created_at, revoked_because = 'elsewhere' WHERE id = $1", app.grant.id
    )
    world.clock.forward(milliseconds=600)
    with pytest.raises(InvalidToken):
        world.server.simplefin.principal(*pair)


def test_only_so_many_passwords_are_remembered(fresh: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplefin, "CACHED_MAX", 1)
    reads = Mock(wraps=stored.credentials)
    monkeypatch.setattr(stored, "credentials", reads)
    pairs = [claimed(fresh, made(fresh)) for _ in range(2)]
    for pair in pairs * 2:
        assert fresh.server.simplefin.principal(*pair).user_id == fresh.user.id
    assert reads.call_count == 4


@pytest.mark.parametrize("days", [0, 366, -1])
def test_an_access_lasts_a_year_at_most(world: World, days: int) -> None:
    with pytest.raises(InvalidRequest, match="from 1 to 365 days"):
        made(world, lifetime=timedelta(days=days))


@pytest.mark.parametrize(("name", "error"), [(" ", InvalidRequest), ("a\u202eb", InvalidClientMetadata)])
def test_an_app_needs_a_name_that_can_be_shown(world: World, name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        made(world, name)


def test_what_is_over_is_forgotten_with_its_app(fresh: World) -> None:
    unclaimed, revoked, ended, living = (made(fresh, name) for name in ("unclaimed", "revoked", "ended", "living"))
    assert unclaimed
    for code in (revoked, ended, living):
        claimed(fresh, code)
    by_name = {each.client_name: each.grant for each in shown(fresh)}
    fresh.server.grants.revoke(by_name["revoked"].id, because="revoked by the user")
    fresh.server.grants.narrow(
        by_name["ended"], terms=EVERYTHING, ends=by_name["ended"].created_at + timedelta(hours=1)
    )
    fresh.server.cleanup.sweep()
    assert names(fresh) == {"unclaimed", "revoked", "ended", "living"}
    fresh.clock.forward(days=2, minutes=1)
    fresh.server.cleanup.sweep()
    assert names(fresh) == {"living"}
    assert counted(fresh, "simplefin_access") == counted(fresh, "oauth_grants") == 1
    fresh.server.remove_user(fresh.user.id)
    assert counted(fresh, "simplefin_access") == counted(fresh, "oauth_grants") == 0
    assert names(fresh) == set()


def names(world: World) -> set[str]:
    return {each.name for each in world.server.clients.all() if each.registered_by == "simplefin"}


def counted(world: World, table: str) -> int:
    return int(world.database.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"])


def test_such_an_app_can_ask_for_nothing_by_oauth(fresh: World) -> None:
    pair = claimed(fresh, made(fresh))
    client_id = fresh.server.simplefin.principal(*pair).client_id
    assert fresh.browser().authorize(client_id).status_code == 400
    answer = fresh.http.post(
        "/oauth/token", data={"grant_type": "refresh_token", "refresh_token": pair[1], "client_id": client_id}
    )
    assert answer.json()["error"] == "invalid_grant"


def test_an_access_that_is_narrowed_in_two_tabs_is_as_narrow_as_both_say(fresh: World) -> None:
    claimed(fresh, made(fresh))
    [seen] = shown(fresh)
    for accounts in (("a", "b"), ("b", "c")):
        fresh.server.grants.narrow(seen.grant, terms=Terms(accounts=accounts), ends=seen.grant.expires_at)
    [narrowed] = shown(fresh)
    assert narrowed.grant.terms == Terms(accounts=("b",))
