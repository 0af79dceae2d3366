"""Nobody closes registration for others: budgets per address and network, the oldest unused client makes room."""

from datetime import timedelta
from typing import Any

import pytest

from auth.apps import clients
from auth.errors import TemporarilyUnavailable

DOCUMENT = {"redirect_uris": ["https://app.example/callback"]}


def register(world: Any, address: str) -> str:
    client_id: str = world.server.clients.register(DOCUMENT, address=address, bearer=None).id
    return client_id


@pytest.mark.requirement("oauth.registration_limit")
def test_an_ipv6_customer_registers_as_much_as_five_addresses(make_world: Any) -> None:
    world = make_world(registration_limit=(2, timedelta(hours=1)))
    for number in range(10):
        register(world, f"2001:db8:1:{number // 2:x}::/64")
    with pytest.raises(TemporarilyUnavailable) as refused:
        register(world, "2001:db8:1:ff::/64")
    assert refused.value.retry_after == 3601
    register(world, "2001:db8:2::/64")  # another /48
    register(world, "192.0.2.1")
    register(world, "local")  # a Unix socket
    world.clock.forward(hours=1, seconds=1)
    register(world, "2001:db8:1:ff::/64")


@pytest.mark.requirement("oauth.registration_limit")
def test_when_it_is_full_the_oldest_unused_client_makes_room(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    monkeypatch.setattr(clients, "SELF_REGISTERED_MAX", 3)
    used = world.tokens()["client_id"]
    world.clock.forward(seconds=1)
    oldest = register(world, "192.0.2.1")
    world.clock.forward(seconds=1)
    newer = register(world, "192.0.2.2")
    newest = register(world, "192.0.2.3")
    known = {client.id for client in world.server.clients.all()}
    assert known == {used, newer, newest}
    assert oldest not in known


@pytest.mark.requirement("oauth.registration_limit")
def test_when_all_were_used_the_one_without_a_grant_makes_room(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world()
    monkeypatch.setattr(clients, "SELF_REGISTERED_MAX", 2)
    ended, held = world.tokens()["client_id"], world.tokens(name="bob")["client_id"]
    world.server.grants.revoke_all(because="revoked by the user", client_id=ended)
    world.database.execute("DELETE FROM oauth_grants WHERE client_id = $1", ended)
    register(world, "192.0.2.1")
    assert world.server.clients.find(ended) is None
    assert world.server.clients.find(held) is not None


@pytest.mark.requirement("oauth.registration_limit")
def test_a_client_goes_a_year_after_its_last_use(fresh: Any) -> None:
    tokens = fresh.tokens()
    other = fresh.tokens(name="bob")
    operator = fresh.server.clients.add("Ours", ("https://ours.example/",)).id
    own = fresh.server.issue_token(fresh.user.id, frozenset({"read:accounts"}), timedelta(days=300))
    fresh.clock.forward(days=20)
    other = {**other, **fresh.refresh(other["refresh_token"], other["client_id"]).json()}
    fresh.clock.forward(days=11)  # the refresh token of the first app has run out
    fresh.server.cleanup.sweep()
    assert fresh.server.clients.find(tokens["client_id"]) is not None
    assert fresh.api(own).status_code == 200
    assert fresh.refresh(other["refresh_token"], other["client_id"]).status_code == 200
    fresh.clock.forward(days=335)
    fresh.server.cleanup.sweep()
    assert fresh.server.clients.find(tokens["client_id"]) is None
    assert fresh.server.clients.find(other["client_id"]) is not None
    assert fresh.server.clients.find(operator) is not None


@pytest.mark.requirement("oauth.registration_limit")
def test_a_revoked_app_can_be_connected_again_while_its_grant_is_remembered(fresh: Any) -> None:
    tokens = fresh.tokens()
    fresh.server.grants.revoke_all(because="revoked by the user", user_id=fresh.user.id)
    fresh.clock.forward(days=29)
    fresh.server.cleanup.sweep()
    assert fresh.tokens(tokens["client_id"])["access_token"]
