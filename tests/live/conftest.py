"""Live sources over the real command line, server and store, against simulated providers on this machine."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from handlers.commands import control_socket
from handlers.commands.control_socket import CommandError
from tests.cli.conftest import bankdata
from tests.conftest import empty_folder
from tests.days import today, whole_day
from tests.service.conftest import BANKDATA, Served, environment, get, running
from tests.simulators import finapi, fints
from tests.simulators.enable_banking import APPLICATION, EnableBankingSimulator
from tests.simulators.finapi import FinApiHost
from tests.simulators.simplefin import SimpleFinBridge
from tests.simulators.web_bank import serving

NUMBERS = count(1)


@dataclass
class Talk:
    """A person at a terminal, and what was said there."""

    answers: list[str]
    meanwhile: Callable[[], object]
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""

    def line(self, text: str) -> None:
        self.lines.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, label: str, done: int, total: int) -> None:
        """Not looked at."""

    def choose(self, question: str, choices: Sequence[str]) -> int | None:  # noqa: ARG002 - the protocol names it
        if not self.answers:
            return None
        wanted = self.answers.pop(0)
        return next(place for place, choice in enumerate(choices) if choice.startswith(wanted))

    def ask(self, question: str, *, is_secret: bool = False, seconds: float | None = None) -> str | None:  # noqa: ARG002 - as above
        if seconds is None:
            return self.answers.pop(0) if self.answers else None
        self.meanwhile()
        return None


@dataclass(frozen=True)
class Live:
    """A server, and the simulated providers that it may ask."""

    served: Served
    simplefin: SimpleFinBridge
    enable_banking: EnableBankingSimulator
    finapi: FinApiHost

    def user(self) -> str:
        """A new user."""
        name = f"eva{next(NUMBERS)}"
        self.served.command(
            "users add", name=name, password="correct horse 7 battery", is_generated=False, has_subscription=True
        )
        return name

    def bankdata(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """A command in this process, with this on its standard input: another Python takes a second to start."""
        with _on_standard_input(stdin):
            done = bankdata(*arguments, "--data", self.served.folder)
        return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)

    def started(self, *arguments: str) -> "subprocess.Popen[str]":
        """A command that goes on, with nobody who types."""
        return subprocess.Popen(
            [BANKDATA, *arguments, "--data", str(self.served.folder)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def sync(self, user: str) -> list[str]:
        """Sync as the operator does; the lines that are printed."""
        done = self.bankdata("sync", "--user", user)
        return [line.partition("\t")[2] for line in done.stdout.splitlines() if "\t" in line]

    def talk(self, name: str, *answers: str, meanwhile: Callable[[], object] = int, **arguments: Any) -> "Talk":
        """A command through the control socket, with these answers to its questions; while it waits, `meanwhile`
        happens elsewhere."""
        talk = Talk(list(answers), meanwhile)
        try:
            control_socket.ask(self.served.folder, name, arguments, talk)
        except CommandError as error:
            talk.error = str(error)
        return talk

    def client(self, user: str) -> httpx.Client:
        return self.served.client(user)

    def status(self, user: str) -> str:
        """The state of the user's one connection."""
        (found,) = get(self.client(user), "/connections")["connections"]
        return str(found["status"])

    def _transactions(self, user: str) -> list[dict[str, Any]]:
        client = self.client(user)
        ids = ",".join(each["id"] for each in get(client, "/accounts")["accounts"])
        return list(get(client, "/transactions", accountIds=ids, perPage=100)["transactions"])

    def bookings(self, user: str) -> list[tuple[str, float, str | None]]:
        """Day, amount and purpose of what is booked, oldest first."""
        return sorted((each["bookingDate"][:10], each["amount"], each["purpose"]) for each in self._transactions(user))

    def ids(self, user: str) -> set[str]:
        return {each["id"] for each in self._transactions(user)}

    def balances(self, user: str) -> dict[str, float | None]:
        return {each["accountName"]: each["balance"] for each in get(self.client(user), "/accounts")["accounts"]}


@contextmanager
def _on_standard_input(text: str) -> Iterator[None]:
    """The file descriptor itself, from which `bankdata` reads what it asks for, brings this text and ends."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    before = os.dup(0)
    os.dup2(reading, 0)
    os.close(reading)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def connection(live: Live, user: str) -> dict[str, Any]:
    """What apps are told of the user's one connection."""
    (found,) = get(live.client(user), "/connections")["connections"]
    return dict(json.loads(json.dumps(found)))


@pytest.fixture(autouse=True)
def one_day() -> None:
    """Servers, and the banks that they ask, live on one day while a test runs."""
    whole_day()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server whose rate rule lets every sync through."""
    folder: Path = empty_folder(tmp_path_factory.mktemp("live") / "data")
    secret = folder.with_name("finapi-secret")
    secret.write_text(f"{finapi.SECRET}\n")
    with (
        serving(SimpleFinBridge()) as simplefin,
        serving(EnableBankingSimulator()) as enable_banking,
        serving(FinApiHost(finapi.example(today()))) as host,
    ):
        settings = {
            "SIMPLEFIN_URL": simplefin.address,
            "ENABLE_BANKING_URL": enable_banking.address,
            "ENABLE_BANKING_APPLICATION": APPLICATION,
            "ENABLE_BANKING_KEY_FILE": str(enable_banking.write_key(folder.parent)),
            "FINAPI_URL": host.address,
            "FINAPI_WEBFORM_URL": host.address,
            "FINAPI_CLIENT": finapi.CLIENT,
            "FINAPI_SECRET_FILE": str(secret),
            "FINTS_PRODUCT": fints.PRODUCT,
            "SYNC_COOLDOWN_SECONDS": "0",
        }
        with running(folder, command="serve", settings=settings) as served:
            yield Live(served, simplefin, enable_banking, host)
        assert "Traceback" not in served.log.read_text()
