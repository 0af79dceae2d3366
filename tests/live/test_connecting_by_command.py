"""A bank connected by command whose browser does not come back: the person says where it ended."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from connectors.connecting import Done, LiveSource, Redirect, Reply, Step
from connectors.connector import Connection
from connectors.exchange_protocol import as_text
from connectors.outgoing_http import WATCHED_BY, Exchange, Outgoing
from handlers.commands.connections import _come_back, _trace_into
from handlers.commands.control_socket import CommandError
from handlers.work.sync.connecting import Connecting
from handlers.work.sync.stored_secrets import StoredSecrets
from storage import users
from storage.bank_access.connection_keys import ConnectionKeys
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.service.conftest import Said
from tests.service.test_sync_machine import Hand

pytestmark = pytest.mark.requirement("live.attempts")


class Bank:
    """Sends the person away and takes whoever comes back with a code."""

    name = "bank"
    sent_with = ""

    def next_step(self, connection: Connection, answer: Reply, /, *, now: datetime) -> Step:  # noqa: ARG002 - the protocol names them
        self.sent_with = answer.state
        return Done(bank_name="Bank") if answer.returned.get("code") else Redirect(url="https://bank.example/sign-in")


@dataclass
class Person(Said):
    """Types these lines, one after each question."""

    typed: list[str] = field(default_factory=list)

    def ask(self, question: str, *, is_secret: bool = False, seconds: float | None = None) -> str | None:  # noqa: ARG002 - as a terminal is asked
        return self.typed.pop(0)


@dataclass
class Scene:
    """Eva, who has been sent to the bank by a command."""

    bank: Bank
    connecting: Connecting
    user_id: str

    def come_back(self, *typed: str) -> str | None:
        """The bank that was connected in the end."""
        attempt = self.connecting.begin(self.user_id, "bank", browser=None)
        lines = [line.replace("STATE", self.bank.sent_with) for line in typed]
        ended = _come_back(self.connecting, Person(typed=lines), self.user_id, attempt)
        return ended.connection.bank_name if ended.connection is not None else None


@pytest.fixture
def scene(database: OpenStore, tmp_path: Path) -> Scene:
    user = users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    bank, keys = Bank(), ConnectionKeys(tmp_path / "keys.json")
    connecting = Connecting(
        database,
        Hand(ZoneInfo("Europe/Berlin")),
        keys,
        StoredSecrets(database, keys),
        {"bank": cast(LiveSource, bank)},
        return_url="https://here.example/connect/return",
        did=lambda _user_id, _deed: None,
    )
    return Scene(bank, connecting, user.id)


def test_the_address_at_which_the_browser_ended_connects_the_bank(scene: Scene) -> None:
    assert scene.come_back("", "https://here.example/connect/return?code=7&state=STATE") == "Bank"


def test_only_the_browser_that_comes_back_goes_on(scene: Scene) -> None:
    attempt = scene.connecting.begin(scene.user_id, "bank", browser=None)
    again = scene.connecting.answer(scene.user_id, attempt.id, {"code": "7"}, browser=None)
    assert (again.step, again.connection) == (Redirect(url="https://bank.example/sign-in"), None)


@pytest.mark.parametrize("typed", ["https://here.example/connect/return?code=7&state=other", "http://[oops"])
def test_an_address_of_another_attempt_or_none_at_all_ends_the_command(scene: Scene, typed: str) -> None:
    with pytest.raises(CommandError):
        scene.come_back(typed)


def test_what_is_said_after_the_command_is_in_no_trace(tmp_path: Path) -> None:
    asked = Exchange(host="api.example", request=Outgoing(method="GET", path="/accounts"), answer=None)
    with _trace_into(str(tmp_path / "trace")):
        watch = WATCHED_BY.get()
        assert watch is not None
        watch(asked)
    watch(asked)
    assert (tmp_path / "trace").read_text("utf-8") == as_text(asked)
    assert WATCHED_BY.get() is None
