"""The check of every request: from memory, at once after a revocation, and within seconds after another process's."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from auth.errors import InvalidToken
from auth.server import AuthorizationServer
from auth.tokens.keys import SigningKey
from storage import users
from storage.database import Database
from storage.keys.places import KeysUnusable
from storage.oauth import grants
from storage.oauth.grants import Terms


class Counting:
    """The database, with a count of its queries."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.queries = 0

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        self.queries += 1
        return self.database.rows(sql, *parameters)


@pytest.mark.requirement("oauth.access_check")
def test_a_thousand_requests_cost_three_queries(fresh: Any) -> None:
    token = fresh.tokens()["access_token"]
    counting = Counting(fresh.database)
    fresh.server.access._database = counting
    for _ in range(1000):
        fresh.server.access.principal(token)
    assert counting.queries == 3  # the grant with its user, what others share, the tokens revoked alone


def of_somebody(fresh: Any, name: str) -> str:
    """The token of a new user, who has not asked for anything."""
    user = users.add(
        fresh.database,
        name=name,
        password_hash=None,
        has_subscription=True,
        home_currency="EUR",
        now=fresh.clock().replace(tzinfo=None),
    )
    token: str = fresh.server.issue_token(user.id, frozenset({"read:accounts"}), timedelta(hours=1))
    return token


@pytest.mark.requirement("oauth.access_check")
def test_the_first_look_for_a_grant_reads_this_grant_and_its_user_and_no_others(fresh: Any) -> None:
    token, _other = of_somebody(fresh, "one"), of_somebody(fresh, "other")
    fresh.server.access._database = counting = Counting(fresh.database)
    fresh.server.access.principal(token)
    assert counting.queries == 3  # the grant with its user, what others share, the tokens revoked alone
    assert len(fresh.server.access._standing) == 1


@pytest.mark.requirement("oauth.access_check")
def test_a_lapsed_subscription_counts_once_the_server_is_told(fresh: Any) -> None:
    token = fresh.tokens()["access_token"]
    assert fresh.api(token).status_code == 200
    users.set_subscription(fresh.database, fresh.user.id, active=False)
    fresh.server.access.forget()
    answer = fresh.api(token)
    assert answer.status_code == 403
    assert answer.json()["error"].startswith("Active subscription required")
    users.set_subscription(fresh.database, fresh.user.id, active=True)
    fresh.server.access.forget()
    assert fresh.api(token).status_code == 200


@pytest.mark.requirement("oauth.access_check")
def test_another_process_s_revocation_counts_within_half_a_second(make_world: Callable[..., Any]) -> None:
    world = make_world(many=True)
    other = AuthorizationServer(
        world.database,
        world.server.keys.path.parent,
        world.server.policy,
        world.clock,
        has_other_processes=True,
        passwords=world.server.passwords,
    )
    tokens = world.tokens()
    one, two = (
        tokens["access_token"],
        world.refresh(tokens["refresh_token"], tokens["client_id"]).json()["access_token"],
    )
    other.access.principal(one)
    other.access.principal(two)
    world.server.grants.revoke_token(one, client_id=tokens["client_id"])
    world.clock.forward(seconds=0.5)
    with pytest.raises(InvalidToken):
        other.access.principal(one)
    other.access.principal(two)
    world.server.grants.revoke_all(because="revoked by the user", user_id=world.user.id, client_id=tokens["client_id"])
    world.clock.forward(seconds=0.4)
    other.access.principal(two)
    world.clock.forward(seconds=0.1)
    with pytest.raises(InvalidToken):
        other.access.principal(two)


@pytest.mark.requirement("oauth.access_check")
def test_a_failing_store_is_no_401(fresh: Any) -> None:
    class Broken:
        def rows(self, *_: object) -> None:
            raise OSError("disk")

    token = fresh.tokens()["access_token"]
    fresh.server.access._database = Broken()
    with pytest.raises(OSError, match="disk"):
        fresh.server.access.principal(token)


@pytest.mark.requirement("oauth.access_check")
def test_a_retired_key_ends_the_long_tokens_it_signed(fresh: Any) -> None:
    token = fresh.server.issue_token(fresh.user.id, frozenset({"read:accounts"}), timedelta(days=30))
    assert fresh.api(token).status_code == 200
    fresh.server.rotate_keys()
    fresh.clock.forward(hours=1)
    assert fresh.api(token).status_code == 200
    fresh.clock.forward(seconds=5)
    assert fresh.api(token).status_code == 401


@pytest.mark.requirement("oauth.bearer")
def test_tokens_elsewhere_than_in_one_header_are_no_tokens(world: Any) -> None:
    token = world.tokens()["access_token"]
    path = "/api/v1/accounts"
    assert world.http.get(path, params={"access_token": token}).status_code == 401
    assert world.http.get(path, headers={"Cookie": f"access_token={token}"}).status_code == 401
    two = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    assert world.http.get(path, headers=two).status_code == 401
    assert world.http.get(path, headers={"Authorization": f"bEaReR {token}"}).status_code == 200
    assert world.http.get(path, headers={"Authorization": f"Bearer {token}, Bearer {token}"}).status_code == 401


@pytest.mark.requirement("oauth.access_check")
def test_wrong_lifetimes_and_scopes_of_the_command_line_are_refused(fresh: Any) -> None:
    from auth.apps.clients import ClientUnknown
    from auth.errors import InvalidRequest
    from storage.users import UserUnknown

    for scopes, lifetime in (
        (frozenset[str](), timedelta(hours=1)),
        (frozenset({"read:all"}), timedelta(hours=1)),
        (frozenset({"read:accounts"}), timedelta()),
        (frozenset({"read:accounts"}), timedelta(days=366)),
    ):
        with pytest.raises(InvalidRequest):
            fresh.server.issue_token(fresh.user.id, scopes, lifetime)
    with pytest.raises(UserUnknown):
        fresh.server.issue_token("nobody", frozenset({"read:accounts"}), timedelta(hours=1))
    with pytest.raises(ClientUnknown):
        fresh.server.clients.remove("nobody")


@pytest.mark.requirement("oauth.access_check")
def test_the_event_loop_never_waits_for_the_store(fresh: Any) -> None:
    class Watched(Counting):
        """Notes queries made by a thread in which an event loop runs."""

        on_the_loop = 0

        def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                pass
            else:
                self.on_the_loop += 1
            return super().rows(sql, *parameters)

    token = fresh.tokens()["access_token"]
    watched = Watched(fresh.database)
    fresh.server.access._database = watched
    for _ in range(3):
        fresh.server.access.forget()
        assert fresh.api(token).status_code == 200
        assert fresh.api(token).status_code == 200
    assert (watched.queries, watched.on_the_loop) == (9, 0)  # three after each time something was forgotten


@pytest.mark.requirement("oauth.access_check")
def test_memory_alone_refuses_a_token_that_has_run_out(fresh: Any) -> None:
    token = fresh.tokens()["access_token"]
    assert fresh.server.access.principal_in_memory(token) is None
    assert fresh.server.access.principal(token) == fresh.server.access.principal_in_memory(token)
    fresh.clock.forward(hours=1)
    with pytest.raises(InvalidToken):
        fresh.server.access.principal_in_memory(token)


@pytest.mark.requirement("oauth.access_check")
def test_a_grant_that_is_over_ends_its_tokens_whatever_they_say_themselves(fresh: Any) -> None:
    token = fresh.tokens()["access_token"]
    fresh.database.execute("UPDATE oauth_grants SET expires_at = $1", fresh.clock().replace(tzinfo=None))
    fresh.server.access.forget()
    with pytest.raises(InvalidToken, match="grant expired"):
        fresh.server.access.principal(token)


@pytest.mark.requirement("grants.widened")
def test_a_grant_of_figures_that_is_widened_to_other_accounts_keeps_to_figures(fresh: Any) -> None:
    fresh.tokens()
    (connected,) = fresh.server.grants.connected_apps(fresh.user.id)
    grant = connected.grant
    fresh.server.grants.widen(grant, terms=Terms(figures_only=True), ends=grant.expires_at)
    (row,) = fresh.database.rows("SELECT scope FROM oauth_grants")
    assert row["scope"] == "read:accounts read:cashflow"


@pytest.mark.requirement("oauth.keys")
def test_a_token_that_cannot_be_signed_leaves_no_grant(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> SigningKey:
        raise KeysUnusable("oauth-keys.json is missing")

    monkeypatch.setattr(fresh.server.keys, "signing_key", missing)
    with pytest.raises(KeysUnusable):
        fresh.server.issue_token(fresh.user.id, frozenset({"read:accounts"}), timedelta(hours=1))
    assert grants.live_of_user(fresh.database, fresh.user.id, now=fresh.clock()) == []
