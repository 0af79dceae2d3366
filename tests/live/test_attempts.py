"""Attempts to connect a bank, and the secrets they lead to: what a person has answered goes to the source once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from analytics.messages import Message
from connectors.connecting import Done, FormField, LiveSource, Question, Reply, Step
from connectors.connector import Connection, Misconfigured, UserActionRequired
from handlers.work.sync.connecting import (
    BROKEN_OFF,
    FAILED,
    INTERNAL,
    NO_ANSWER,
    RENEWED,
    STEP_LASTS_MAX,
    Attempt,
    AttemptUnknown,
    Connecting,
)
from handlers.work.sync.source_connections import source_connection
from handlers.work.sync.stored_secrets import KEYS_UNUSABLE, StoredSecrets
from storage import connections, jobs, users
from storage.bank_access import connection_attempts
from storage.bank_access.connection_attempts import LIFETIME
from storage.bank_access.connection_keys import ConnectionKeys
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.service.test_sync_machine import Hand

pytestmark = pytest.mark.requirement("live.attempts")

ASK_TAN = Question(text=Message("TAN?"), fields=(FormField(name="tan", label=Message("TAN")),))


ASK_LOGIN = Question(
    text=Message("Who?"),
    fields=(
        FormField(name="login", label=Message("Login")),
        FormField(name="pin", label=Message("PIN"), is_secret=True),
    ),
)


@dataclass
class Bank:
    """Asks for a TAN and remembers those that came; `meanwhile` happens while it looks at one."""

    name: str = "bank"
    meanwhile: Callable[[], object] = int
    is_same: bool | None = True
    asks_login: bool = False
    tans: list[str] = field(default_factory=list)

    def next_step(self, connection: Connection, answer: Reply, /, *, now: datetime) -> Step:  # noqa: ARG002 - the protocol names them
        if self.asks_login and "login" not in answer.given:
            return ASK_LOGIN
        if "tan" not in answer.given:
            return ASK_TAN
        self.tans.append(answer.given["tan"])
        self.meanwhile()
        return Done(bank_name="Bank", secrets={"pin": "12345"})

    def is_same_login(self, known: Connection, done: Done, /) -> bool | None:  # noqa: ARG002 - as above
        return self.is_same


@dataclass
class Scene:
    """A person who connects the bank."""

    database: OpenStore
    bank: Bank
    clock: Hand
    secrets: StoredSecrets
    connecting: Connecting
    user_id: str

    def begin(self) -> Attempt:
        return self.connecting.begin(self.user_id, "bank", browser="b1")

    def answer(self, attempt: Attempt, tan: str) -> Attempt:
        return self.connecting.answer(self.user_id, attempt.id, {"tan": tan}, browser="b1")

    def find(self, attempt: Attempt) -> Attempt:
        return self.connecting.find(self.user_id, attempt.id, browser="b1")


@pytest.fixture
def scene(database: OpenStore, tmp_path: Path) -> Scene:
    user = users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    bank, clock, keys = Bank(), Hand(ZoneInfo("Europe/Berlin")), ConnectionKeys(tmp_path / "keys.json")
    secrets, sources = StoredSecrets(database, keys), {"bank": cast(LiveSource, bank)}
    connecting = Connecting(
        database,
        clock,
        keys,
        secrets,
        sources,
        return_url="https://here.example/connect/return",
        did=lambda _user_id, _deed: None,
    )
    return Scene(database, bank, clock, secrets, connecting, user.id)


def test_an_answer_that_is_sent_twice_goes_to_the_bank_once(scene: Scene) -> None:
    attempt, seen = scene.begin(), list[Any]()
    scene.bank.meanwhile = lambda: seen.append(scene.answer(attempt, "111111"))
    done = scene.answer(attempt, "111111")
    assert done.connection is not None
    assert scene.bank.tans == ["111111"]
    assert [each.step.text for each in seen] == [ASK_TAN.text]
    again = scene.answer(attempt, "111111")
    assert (again.connection, done.is_new, again.is_new) == (done.connection, True, False)
    assert scene.bank.tans == ["111111"]


def test_back_leads_to_the_question_before_with_what_was_answered_except_secrets_and_asks_the_bank_nothing(
    scene: Scene,
) -> None:
    scene.bank.asks_login = True
    attempt = scene.begin()
    assert not attempt.can_go_back
    given = {"login": "eva", "pin": "12345"}
    scene.connecting.answer(scene.user_id, attempt.id, given, browser="b1")
    assert scene.find(attempt).can_go_back
    scene.connecting.back(scene.user_id, attempt.id, browser="b1")
    again = scene.find(attempt)
    assert isinstance(again.step, Question)
    assert [(each.name, each.default) for each in again.step.fields] == [("login", "eva"), ("pin", "")]
    assert not again.can_go_back
    scene.connecting.back(scene.user_id, attempt.id, browser="b1")  # pressed twice
    with pytest.raises(AttemptUnknown):
        scene.connecting.back(scene.user_id, attempt.id, browser="another")
    scene.connecting.answer(scene.user_id, attempt.id, {**given, "login": "adam"}, browser="b1")
    assert scene.answer(attempt, "111111").connection is not None
    assert scene.bank.tans == ["111111"]


@pytest.mark.parametrize(
    ("is_same", "status", "called"),
    [
        (True, "ACTIVE", "Bank"),
        (True, "EXPIRED", "Bank"),
        (False, "ACTIVE", "Bank 2"),
        (False, "EXPIRED", "Bank 2"),
        (None, "ACTIVE", "Bank 2"),
        (None, "ERROR", "Bank 2"),
        (None, "EXPIRED", "Bank"),
        (None, "DISCONNECTED", "Bank"),
        (False, "DISCONNECTED", "Bank"),
    ],
)
def test_a_second_login_at_a_bank_stands_beside_the_first_and_a_renewal_takes_its_place(
    scene: Scene, is_same: bool | None, status: str, called: str
) -> None:
    first = scene.answer(scene.begin(), "111111").connection
    assert first is not None
    scene.database.execute("UPDATE connections SET status = $1", status)
    scene.bank.is_same = is_same
    second = scene.answer(scene.begin(), "222222").connection
    assert second is not None
    assert (second.bank_name, second.status) == (called, "ACTIVE")
    assert (second.id == first.id) == (called == "Bank")
    if called == "Bank 2":
        assert scene.secrets.read(first) == {"pin": "12345"}
        scene.bank.is_same = True
        renewed = scene.answer(scene.begin(), "333333").connection
        assert renewed is not None
        assert renewed.id == first.id


def test_a_removed_connection_is_not_taken_for_the_living_one_beside_it(scene: Scene) -> None:
    scene.answer(scene.begin(), "111111")
    scene.bank.is_same = False
    second = scene.answer(scene.begin(), "222222").connection
    scene.database.execute("UPDATE connections SET status = 'DISCONNECTED' WHERE bank_name = 'Bank'")
    scene.bank.is_same = True
    again = scene.answer(scene.begin(), "333333").connection
    assert second is not None
    assert again is not None
    assert again.id == second.id


@dataclass
class Provider:
    """Ends an access, or does not."""

    name: str
    does: Callable[[], object]

    def disconnect(self, connection: Connection, *, now: datetime) -> None:  # noqa: ARG002 - the protocol names them
        self.does()


def test_access_is_ended_at_the_providers_side_by_side_and_what_could_not_be_is_said_in_time(
    scene: Scene, tmp_path: Path
) -> None:
    hangs, both = threading.Event(), threading.Barrier(2, timeout=60)

    def refuses() -> None:
        both.wait()
        raise UserActionRequired("It wants to see you.")

    does: dict[str, Callable[[], object]] = {
        "refuses": refuses, "ends": both.wait, "hangs": lambda: hangs.wait(60), "breaks": lambda: 1 / 0, "file": int,
    }  # fmt: skip
    sources = {name: cast(LiveSource, Provider(name, work)) for name, work in does.items() if name != "file"}
    scene.connecting.sources = sources
    made = [
        connections.add(
            scene.database, user_id=scene.user_id, user_name="eva", connector=name, bank_name=name, settings={}, now=NOW
        )
        for name in does
    ]
    left = scene.connecting.disconnect(made, within=1)
    hangs.set()
    assert scene.secrets.keep(made[0], {"pin": "12345"}, instead_of={})
    (tmp_path / "keys.json").chmod(0o640)
    assert [why for _, why in scene.connecting.disconnect(made[:1])] == [KEYS_UNUSABLE]
    assert {each.bank_name: why for each, why in left} == {
        "refuses": "It wants to see you.", "hangs": NO_ANSWER, "breaks": INTERNAL,
    }  # fmt: skip


def test_a_step_that_a_crash_cut_off_ends_the_attempt_after_five_minutes(scene: Scene) -> None:
    class Crash(BaseException): ...

    def crash() -> None:
        raise Crash

    attempt, scene.bank.meanwhile = scene.begin(), crash
    with pytest.raises(Crash):
        scene.answer(attempt, "111111")
    scene.clock.moment = NOW + STEP_LASTS_MAX - timedelta(seconds=1)
    assert scene.find(attempt).step is not None
    scene.clock.moment = NOW + STEP_LASTS_MAX
    assert (scene.find(attempt).step, scene.answer(attempt, "111111").refusal) == (None, BROKEN_OFF)
    assert scene.bank.tans == ["111111"]


def test_of_an_attempt_that_nobody_ends_nothing_stays(scene: Scene) -> None:
    scene.begin()
    connection_attempts.forget(scene.database, now=NOW + LIFETIME - timedelta(seconds=1))
    assert len(scene.database.rows("SELECT id FROM connection_attempts")) == 1
    connection_attempts.forget(scene.database, now=NOW + LIFETIME)
    assert scene.database.rows("SELECT id FROM connection_attempts") == []


def test_a_sync_that_outlives_its_connection_keeps_no_secrets_of_it(scene: Scene) -> None:
    made = scene.answer(scene.begin(), "111111").connection
    assert made is not None
    assert scene.secrets.keep(made, {"pin": "54321"}, instead_of={"pin": "12345"})
    assert scene.secrets.read(made) == {"pin": "54321"}
    connections.remove(scene.database, scene.user_id, made.id, now=NOW)
    assert not scene.secrets.keep(made, {"pin": "54321"}, instead_of={"pin": "54321"})
    assert scene.secrets.read(made) == {}


def test_a_sync_replaces_the_secrets_that_it_began_with_and_never_those_of_a_renewal(scene: Scene) -> None:
    made = scene.answer(scene.begin(), "111111").connection
    assert made is not None
    syncing = source_connection(made, scene.secrets)
    syncing.keep_secrets({"pin": "12345", "state": ["a"]})
    assert scene.secrets.read(made) == {"pin": "12345", "state": ["a"]}
    renewal = scene.connecting.begin(scene.user_id, "bank", renewed=made, browser="b1")
    assert scene.answer(renewal, "222222").connection is not None
    syncing.keep_secrets({"state": ["b"]})
    assert scene.secrets.read(made) == {"pin": "12345"}


def test_a_renewal_ends_the_sync_that_still_asks_with_what_is_past_and_the_next_one_may_begin(scene: Scene) -> None:
    made = scene.answer(scene.begin(), "111111").connection
    assert made is not None
    now = scene.clock.now()
    old = jobs.start(scene.database, user_id=made.user_id, connection_id=made.id, cooldown=timedelta(1), now=now)
    assert old is not None
    renewal = scene.connecting.begin(scene.user_id, "bank", renewed=made, browser="b1")
    assert scene.answer(renewal, "222222").connection is not None
    ended = jobs.find(scene.database, made.user_id, old.id)
    assert ended is not None
    assert (ended.status, ended.error) == ("failed", RENEWED)
    assert jobs.start(scene.database, user_id=made.user_id, connection_id=made.id, cooldown=timedelta(0), now=now)


def test_where_the_keys_lie_is_for_the_log_alone(scene: Scene, tmp_path: Path) -> None:
    made = scene.answer(scene.begin(), "111111").connection
    assert made is not None
    (tmp_path / "keys.json").chmod(0o640)
    assert scene.secrets.can_read(made), "that is not for other machines to do"
    with pytest.raises(Misconfigured) as raised:
        scene.secrets.read(made)
    assert "keys.json" not in str(raised.value)
    assert "keys.json" in raised.value.detail


def test_a_source_that_breaks_ends_the_attempt_and_that_stays_its_outcome(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks() -> None:
        raise ZeroDivisionError

    attempt = scene.begin()
    scene.bank.meanwhile = breaks
    assert scene.answer(attempt, "123456").refusal == FAILED
    assert scene.find(attempt).refusal == FAILED
    assert scene.answer(attempt, "123456").refusal == FAILED
    assert scene.bank.tans == ["123456"]
    assert caplog.messages == ["bank could not be connected"]


def test_an_attempt_that_has_ended_gets_no_content_again(scene: Scene, tmp_path: Path) -> None:
    attempt, keys = scene.begin(), ConnectionKeys(tmp_path / "keys.json")
    stored = connection_attempts.find(scene.database, keys, scene.user_id, attempt.id)
    assert stored is not None
    connection_attempts.end(scene.database, keys, stored, outcome=FAILED)
    kept = scene.database.rows("SELECT sealed FROM connection_attempts")
    connection_attempts.go_on(scene.database, keys, stored, {"given": {"pin": "12345"}})
    assert scene.database.rows("SELECT sealed FROM connection_attempts") == kept


def test_of_two_answers_that_have_looked_at_once_one_is_sent(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    both_have_looked, find = threading.Barrier(2), connection_attempts.find

    def found(*arguments: Any) -> Any:
        stored = find(*arguments)
        both_have_looked.wait(60)
        return stored

    attempt = scene.begin()
    monkeypatch.setattr(connection_attempts, "find", found)
    with ThreadPoolExecutor(2) as pool:
        told = [pool.submit(scene.answer, attempt, tan) for tan in ("123456", "654321")]
        refused = [each.exception() for each in told]
    assert sorted(type(each).__name__ for each in refused) == ["AttemptUnknown", "NoneType"]
    assert len(scene.bank.tans) == 1


def test_an_attempt_belongs_to_its_browser_and_to_the_key_that_sealed_it(scene: Scene, tmp_path: Path) -> None:
    attempt = scene.begin()
    with pytest.raises(AttemptUnknown):
        scene.connecting.find(scene.user_id, attempt.id, browser="b2")
    for unknown in ("", f"{scene.user_id}.other"):
        with pytest.raises(AttemptUnknown):
            scene.connecting.resume({"state": unknown}, browser="b1")
    keys = tmp_path / "keys.json"
    keys.unlink()
    with pytest.raises(AttemptUnknown):
        scene.find(attempt)


def test_a_connection_whose_secrets_cannot_be_read_any_more_is_connected_anew(scene: Scene, tmp_path: Path) -> None:
    made = scene.answer(scene.begin(), "123456").connection
    assert made is not None
    (tmp_path / "keys.json").unlink()
    with pytest.raises(UserActionRequired):
        scene.secrets.read(made)
    renewal = scene.connecting.begin(scene.user_id, "bank", browser="b1", renewed=made)
    again = scene.answer(renewal, "654321").connection
    assert again is not None
    assert (again.id, scene.secrets.read(again)) == (made.id, {"pin": "12345"})
