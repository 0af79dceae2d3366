"""Grants as a state machine: whatever happens in whatever order, exactly the tokens that should work do."""

import secrets
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from auth.errors import InvalidGrant, InvalidToken
from auth.people.password_hashing import Passwords
from auth.pkce import challenge_of
from auth.policy import Policy
from auth.server import AuthorizationServer
from storage import users
from storage.oauth.pending import AccessRequest
from tests.conftest import empty_store, examples

REDIRECT = "https://app.example/cb"
HOUR, MONTH, YEAR = timedelta(hours=1), timedelta(days=30), timedelta(days=365)
FAST = Passwords(memory_kib=64, time_cost=1)


class Family:
    """What a slow, obvious model knows of one grant."""

    def __init__(self, code: str, verifier: str, born: datetime) -> None:
        self.code, self.verifier, self.born = code, verifier, born
        self.code_used = False
        self.is_over = False
        self.refresh: list[tuple[str, datetime]] = []  # the last one is the live one
        self.access: list[tuple[str, datetime]] = []

    def is_live(self, now: datetime) -> bool:
        return not self.is_over and now < self.born + YEAR


class World:
    """One server for all runs; every run has a user and a client of its own."""

    def __init__(self, folder: Path) -> None:
        self.now = datetime.fromisoformat("2026-11-20T12:00:00")
        self.database = empty_store(folder / "store.duckdb")
        settings_ = Policy(
            public_url="http://127.0.0.1:8000",
            auth_url="http://127.0.0.1:8000",
            registration="open",
            registration_limit=(100_000, timedelta(hours=1)),
            refresh_reuse_seconds=timedelta(0),
            shows_addresses=False,
        )
        self.server = AuthorizationServer(self.database, folder / "keys", settings_, lambda: self.now, passwords=FAST)


WORLD: list[World] = []


class Grants(RuleBasedStateMachine):
    families = Bundle("families")

    def __init__(self) -> None:
        super().__init__()
        world = WORLD[-1]
        world.now = self.now = datetime.fromisoformat("2026-11-20T12:00:00")
        self.world, self.server = world, world.server
        self.user = users.add(
            world.database,
            name=secrets.token_hex(8),
            password_hash=None,
            has_subscription=True,
            home_currency="EUR",
            now=self.now,
        )
        self.client = self.server.clients.add("app", (REDIRECT,))
        self.all: list[Family] = []
        self.has_rotated = False

    @initialize(target=families)
    def first(self) -> Family:
        return self._allowed()

    @rule(target=families)
    def allow(self) -> Family:
        return self._allowed()

    def _allowed(self) -> Family:
        verifier = secrets.token_urlsafe(40)
        browser = self.server.sessions.sign_in(None, self.user.id)
        asked = AccessRequest(
            client_id=self.client.id,
            redirect_uri=REDIRECT,
            scope="read:accounts",
            state=None,
            code_challenge=challenge_of(verifier),
        )
        secret = self.server.consent.keep(browser, asked)
        decided = self.server.consent.decide(browser, secret, is_allowed=True)
        assert decided is not None
        assert decided[1] is not None
        family = Family(decided[1], verifier, self.now)
        self.all.append(family)
        return family

    @rule(family=families)
    def redeem(self, family: Family) -> None:
        expected = not family.code_used and family.is_live(self.now) and self.now < family.born + timedelta(seconds=60)
        try:
            tokens = self.server.codes.redeem(
                family.code, client_id=self.client.id, redirect_uri=REDIRECT, verifier=family.verifier
            )
        except InvalidGrant:
            assert not expected
            family.is_over = family.is_over or (family.code_used and not self.is_swept(family))
            return
        assert expected
        assert tokens.refresh_token is not None
        family.code_used = True
        family.refresh.append((tokens.refresh_token, self.now))
        family.access.append((tokens.access_token, self.now))

    @rule(family=families, which=st.integers(0, 3))
    def refresh(self, family: Family, which: int) -> None:
        if not family.refresh:
            return
        position = max(len(family.refresh) - 1 - which, 0)
        token, born = family.refresh[position]
        is_last = position == len(family.refresh) - 1
        is_live = family.is_live(self.now)
        expected = is_last and is_live and self.now < min(born + MONTH, family.born + YEAR)
        try:
            tokens = self.server.refresh_tokens.refresh(token, client_id=self.client.id, scope=None)
        except InvalidGrant:
            assert not expected
            family.is_over = family.is_over or not is_last
            return
        assert expected
        assert tokens.refresh_token is not None
        family.refresh.append((tokens.refresh_token, self.now))
        family.access.append((tokens.access_token, self.now))

    @rule(family=families)
    def revoke(self, family: Family) -> None:
        if family.refresh:
            self.server.grants.revoke_token(family.refresh[-1][0], client_id=self.client.id)
            family.is_over = True

    @rule(family=families)
    def revoke_for_a_stranger(self, family: Family) -> None:
        if family.refresh:
            self.server.grants.revoke_token(family.refresh[-1][0], client_id="stranger")

    @precondition(lambda self: not self.has_rotated)  # making a key takes a tenth of a second
    @rule()
    def rotate_keys(self) -> None:
        self.has_rotated = True
        self.server.rotate_keys()

    @rule(family=consumes(families))
    def forget(self, family: Family) -> None:
        """Nobody uses this one again; its tokens are still checked."""

    @rule(step=st.sampled_from([timedelta(seconds=59), timedelta(minutes=59), timedelta(days=1), timedelta(days=29)]))
    def wait(self, step: timedelta) -> None:
        self.now += step
        self.world.now = self.now

    @rule()
    def sweep(self) -> None:
        self.server.cleanup.sweep()

    def is_swept(self, family: Family) -> bool:
        return self.now > family.born + timedelta(days=1)

    @invariant()
    def exactly_the_right_tokens_work(self) -> None:
        for family in self.all:
            for token, born in family.access[-3:]:
                expected = family.is_live(self.now) and self.now < born + HOUR
                try:
                    self.server.access.principal(token)
                except InvalidToken:
                    assert not expected
                else:
                    assert expected


@pytest.mark.no_cover  # random examples, see tests/conftest.py
@pytest.mark.requirement("oauth.grant_states")
def test_grants_as_a_state_machine(tmp_path: Path) -> None:
    world = World(tmp_path)
    WORLD.append(world)
    bounded = settings(
        max_examples=examples(25),
        stateful_step_count=20,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Grants, settings=bounded)
    WORLD.pop()
    world.database.close()
