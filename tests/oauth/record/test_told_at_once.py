"""What was done to somebody's access is told by the transaction that does it, each time: the record comes later."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from storage.notices import stored
from storage.oauth.grants import EVERYTHING
from tests.oauth.conftest import PASSWORD
from tests.oauth.pages.test_account import NEW
from tests.oauth.pages.test_passkeys import ORIGIN, Device, added
from tests.oauth.pages.test_second_factor import turn_on
from tests.oauth.simplefin.test_setup_tokens import claimed, made

pytestmark = pytest.mark.requirement("oauth.record")


def told(world: Any, user: Any) -> Counter[str]:
    """How often each deed was told, with the name of its app."""
    found = (each.content for each in stored.of_kinds(world.database, user.id, ["access.new"]))
    return Counter(f"{each['message']} {each['arguments'].get('name', '')}".strip() for each in found)


def test_each_deed_is_told_by_itself_and_by_no_second_transaction(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, alice, bob = fresh.server, fresh.user, fresh.other
    monkeypatch.setattr(server.record, "write", lambda: None)
    for _ in range(2):
        fresh.tokens()
    for _ in range(2):
        server.calendar.make(alice.id)
        assert server.password_change.set(alice, server.passwords.hash(PASSWORD), "changePassword")
        assert server.links.sign_in(server.links.sign_in_link(alice), address="a") is not None
    assert not isinstance(server.links.set_password(server.links.new_password(alice), NEW, address="a"), str)
    claimed(fresh, made(fresh, "Actual"))
    offer = server.shares.offer(alice, "bob", terms=EVERYTHING, ends_at=None, life="")
    assert server.shares.accept(bob, offer.id)
    assert told(fresh, alice) == {
        "access.new.giveConsent Budget": 2,
        "access.new.makeCalendarLink": 2,
        "access.new.changePassword": 2,
        "access.new.signInByLink": 2,
        "access.new.setPasswordByLink": 1,
        "access.new.giveConsent Actual": 1,
        "access.new.claimSimpleFin Actual": 1,
        "access.new.offerShare": 1,
        "access.new.acceptShare": 1,
    }
    assert told(fresh, bob) == {"access.new.acceptShare": 1}


def test_so_are_second_factors_and_passkeys(make_world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(public_url=ORIGIN)
    monkeypatch.setattr(world.server.record, "write", lambda: None)
    _seed, codes, browser = turn_on(world)
    for _ in range(2):
        assert added(browser, Device()).status_code == 303
    for each in codes[:2]:
        assert world.server.second_factors.use_recovery_code(world.user.id, each)
    assert world.server.second_factors.turn_off(world.user.id)
    assert told(world, world.user) == {
        "access.new.turnOnSecondFactor": 1,
        "access.new.addPasskey": 2,
        "access.new.useRecoveryCode": 2,
        "access.new.turnOffSecondFactor": 1,
    }
