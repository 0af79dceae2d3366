"""A question of a command that the server carries out is asked where its person sits."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from handlers.cli.terminal import Terminal
from handlers.commands import control_socket
from handlers.commands.control_socket import ControlServer, Interrupted, Report


class Person:
    """Answers what it is asked."""

    def __init__(self, answer: int | None) -> None:
        self.answer = answer
        self.heard: list[Any] = []

    def line(self, text: str) -> None:
        self.heard.append(text)

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        self.heard.append((question, choices))
        return self.answer


@contextmanager
def serving(folder: Path, perform: Callable[[str, Mapping[str, Any], Report], None]) -> Iterator[None]:
    server = ControlServer(folder, perform)
    try:
        yield
    finally:
        server.close(within=5.0)


def ask_which(_command: str, _arguments: Mapping[str, Any], report: Report) -> None:
    report.line(f"answered {report.choose('Which one?', ['red', 'blue'])}")


@pytest.mark.requirement("import.anonymous")
@pytest.mark.parametrize(("answer", "heard"), [(1, "answered 1"), (None, "answered None"), (2, "answered None")])
def test_the_answer_goes_back_to_the_server(tmp_path: Path, answer: int | None, heard: str) -> None:
    person = Person(answer)
    with serving(tmp_path, ask_which):
        control_socket.ask(tmp_path, "any", {}, person)
    assert person.heard == [("Which one?", ["red", "blue"]), heard]


def ask_for_a_tan(_command: str, _arguments: Mapping[str, Any], report: Any) -> None:
    report.ask("TAN")


@pytest.mark.requirement("import.anonymous")
@pytest.mark.parametrize("asking", [ask_which, ask_for_a_tan])
def test_a_person_who_goes_away_instead_of_answering_ends_the_command(
    tmp_path: Path, asking: Callable[[str, Mapping[str, Any], Report], None]
) -> None:
    ended = threading.Event()

    def perform(command: str, arguments: Mapping[str, Any], report: Report) -> None:
        try:
            asking(command, arguments, report)
        except Interrupted:
            ended.set()
            raise

    with serving(tmp_path, perform):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / control_socket.FILE_NAME))
            connection.sendall(json.dumps({"command": "any", "arguments": {}}).encode() + b"\n")
            assert b"question" in connection.recv(1000)
        assert ended.wait(60)


@pytest.mark.requirement("import.anonymous")
def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    assert Terminal().choose("Which one?", ["red"]) is None
