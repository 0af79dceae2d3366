"""The socket between a command and a server: who goes away or interrupts, at every stage, and what both sides say."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from handlers.commands.control_socket import FILE_NAME, CommandError, ControlServer, Interrupted, Report, ask


class Told:
    """A report that keeps what it is told, and may run something at a line."""

    def __init__(self, at_line: Callable[[], None] = lambda: None) -> None:
        self.lines: list[str] = []
        self.notes: list[str] = []
        self.at_line = at_line

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.at_line()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, label: str, done: int, total: int) -> None:
        self.lines.append(f"{label} {done}/{total}")

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


@contextmanager
def server(folder: Path, perform: Callable[[str, Mapping[str, Any], Report], None]) -> Iterator[None]:
    listening = ControlServer(folder, perform)
    try:
        yield
    finally:
        listening.close(within=10)


class Keyboard:
    """Where Ctrl-C can be pressed while a command waits for the server."""

    def __init__(self) -> None:
        self.press: Callable[[], None] = lambda: None

    def __call__(self, act: Callable[[], None]) -> AbstractContextManager[None]:
        self.press = act
        return self._nothing()

    @contextmanager
    def _nothing(self) -> Iterator[None]:
        yield


@pytest.mark.requirement("decision 69")
def test_a_command_that_is_interrupted_stops_at_its_next_step(tmp_path: Path) -> None:
    keyboard, pressed = Keyboard(), threading.Event()

    def perform(_name: str, _arguments: Mapping[str, Any], report: Report) -> None:
        report.progress("step", 1, 2)
        report.line("begun")
        assert pressed.wait(60)
        report.progress("step", 2, 2)

    def press() -> None:
        keyboard.press()
        pressed.set()

    told = Told(at_line=press)
    with server(tmp_path, perform), pytest.raises(Interrupted, match="Only what was reported before"):
        ask(tmp_path, "x", {}, told, on_interrupt=keyboard)
    assert told.lines == ["step 1/2", "begun"]
    assert told.notes == ["Asking the server to stop ... (Ctrl-C again to leave without waiting for it)"]


@pytest.mark.requirement("decision 69")
def test_a_command_that_can_no_longer_be_stopped_says_so(tmp_path: Path) -> None:
    keyboard, pressed = Keyboard(), threading.Event()

    def perform(_name: str, _arguments: Mapping[str, Any], report: Report) -> None:
        report.line("stored")
        assert pressed.wait(60)

    def press() -> None:
        keyboard.press()
        pressed.set()

    told = Told(at_line=press)
    with server(tmp_path, perform):
        ask(tmp_path, "x", {}, told, on_interrupt=keyboard)
    assert told.notes[-1] == "The command was finished before it could be stopped."


@pytest.mark.requirement("decision 69")
@pytest.mark.parametrize("says", ["lines", "progress", "progress after a line that was not read"])
def test_a_client_that_is_gone_stops_the_command_without_a_traceback(
    tmp_path: Path, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun, gone, ended = threading.Event(), threading.Event(), []

    def perform(_name: str, _arguments: Mapping[str, Any], report: Report) -> None:
        if says.endswith("not read"):
            report.line("the client goes away and leaves this")
        begun.set()
        assert gone.wait(60)
        try:
            for _ in range(1000):
                if says == "lines":
                    report.line("nobody reads this")
                else:
                    report.progress("nobody reads this", 1, 2)
        except Interrupted:
            ended.append("interrupted")
            raise

    with server(tmp_path, perform):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / FILE_NAME))
            client.sendall(json.dumps({"command": "x", "arguments": {}}).encode() + b"\n")
            assert begun.wait(60)
        gone.set()
    assert ended == ["interrupted"]
    assert "Traceback" not in caplog.text


@pytest.mark.requirement("serve.stop")
def test_a_command_that_the_end_of_the_server_cuts_off_is_told_so_and_no_failure_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun, closed = threading.Event(), threading.Event()

    def perform(_name: str, _arguments: Mapping[str, Any], _report: Report) -> None:
        begun.set()
        assert closed.wait(60)
        raise RuntimeError("the store is closed")

    listening = ControlServer(tmp_path, perform)
    failures: list[str] = []

    def command() -> None:
        with pytest.raises(CommandError) as caught:
            ask(tmp_path, "x", {}, Told())
        failures.append(str(caught.value))

    client = threading.Thread(target=command)
    client.start()
    assert begun.wait(60)
    assert not listening.close(within=0)
    closed.set()
    client.join(60)
    assert failures == ["The server stopped before the command had ended; what was not stored by then is undone."]
    assert [record.exc_info for record in caplog.records] == [None]


@pytest.mark.requirement("cli.one-sentence")
def test_what_goes_wrong_inside_is_one_sentence_and_its_reason_stays_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def perform(_name: str, _arguments: Mapping[str, Any], _report: Report) -> None:
        raise ZeroDivisionError

    with server(tmp_path, perform), pytest.raises(CommandError) as caught:
        ask(tmp_path, "x", {}, Told())
    assert str(caught.value) == "The command failed because of an internal error; the server's log has more."
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.requirement("cli.one-sentence")
def test_a_server_that_is_killed_over_a_command_is_one_sentence(tmp_path: Path) -> None:
    def hang_up(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / FILE_NAME))
        listener.listen()
        killed = threading.Thread(target=hang_up, args=(listener,))
        killed.start()
        with pytest.raises(CommandError, match=r"^The server stopped before it had answered\. Try again\.$"):
            ask(tmp_path, "x", {}, Told())
        killed.join(60)
