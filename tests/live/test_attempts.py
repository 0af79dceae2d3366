"""Attempts to connect a bank, and the secrets they lead to: what a person has answered goes to the source once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from connectors.connecting import Done, FormField, LiveSource, Question, Reply, Sentence, Step
from connectors.connector import Connection, Misconfigured
from handlers.sync.connecting import BROKEN_OFF, STEP_LASTS_MAX, Attempt, Connecting
from handlers.sync.stored_secrets import StoredSecrets
from storage import connections, users
from storage.bank_access import connection_attempts
from storage.bank_access.connection_attempts import LIFETIME
from storage.bank_access.connection_keys import ConnectionKeys
from storage.database import Database
from tests.conftest import NOW
from tests.service.test_sync_machine import Hand

pytestmark = pytest.mark.requirement("live.attempts")

ASK_TAN = Question(
    text=Sentence(en="TAN?", de="TAN?"), fields=(FormField(name="tan", label=Sentence(en="TAN", de="TAN")),)
)


@dataclass
class Bank:
    """Asks for a TAN and remembers those that came; `meanwhile` happens while it looks at one."""

    name: str = "bank"
    meanwhile: Callable[[], object] = int
    tans: list[str] = field(default_factory=list)

    def begin_connect(self, connection: Connection, answer: Reply, /, *, now: datetime) -> Step:  # noqa: ARG002 - the protocol names them
        if "tan" not in answer.given:
            return ASK_TAN
        self.tans.append(answer.given["tan"])
        self.meanwhile()
        return Done(bank_name="Bank", secrets={"pin": "12345"})


@dataclass
class Scene:
    """A person who connects the bank."""

    database: Database
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
def scene(database: Database, tmp_path: Path) -> Scene:
    user = users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    bank, clock, keys = Bank(), Hand(ZoneInfo("Europe/Berlin")), ConnectionKeys(tmp_path / "keys.json")
    secrets, sources = StoredSecrets(database, keys), {"bank": cast(LiveSource, bank)}
    connecting = Connecting(database, clock, keys, secrets, sources, return_url="https://here.example/connect/return")
    return Scene(database, bank, clock, secrets, connecting, user.id)


def test_an_answer_that_is_sent_twice_goes_to_the_bank_once(scene: Scene) -> None:
    attempt, seen = scene.begin(), list[Any]()
    scene.bank.meanwhile = lambda: seen.append(scene.answer(attempt, "111111"))
    done = scene.answer(attempt, "111111")
    assert done.connection is not None
    assert scene.bank.tans == ["111111"]
    assert [each.step.text for each in seen] == [ASK_TAN.text]
    assert scene.answer(attempt, "111111").connection == done.connection
    assert scene.bank.tans == ["111111"]


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
    scene.secrets.keep(made, {"pin": "54321"})
    assert scene.secrets.read(made) == {"pin": "54321"}
    connections.remove(scene.database, scene.user_id, made.id, now=NOW)
    scene.secrets.keep(made, {"pin": "54321"})
    assert scene.secrets.read(made) == {}


def test_where_the_keys_lie_is_for_the_log_alone(scene: Scene, tmp_path: Path) -> None:
    made = scene.answer(scene.begin(), "111111").connection
    assert made is not None
    (tmp_path / "keys.json").chmod(0o640)
    with pytest.raises(Misconfigured) as raised:
        scene.secrets.read(made)
    assert "keys.json" not in str(raised.value)
    assert "keys.json" in raised.value.detail
