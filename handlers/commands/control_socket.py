"""Lets commands reach a running server: one process holds the store, so others ask it through a socket in its data
folder.

One request per connection: a line of JSON with the command and its arguments. The answer is a line of JSON for every
line of output, every step of progress, and at last the end. A client that closes its sending side asks the command to
stop, and still learns the outcome. The socket has mode 0600: whoever may read the store may ask.
"""

import json
import logging
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from storage.boundary import begin_thread, contain, join_threads

FILE_NAME = "control.sock"
CUT_OFF = "The server stopped before the command had ended; what was not stored by then is undone."
FAILED = "The command failed because of an internal error; the server's log has more."
REQUEST_BYTES_MAX = 1 << 20
UNIX_PATH_BYTES_MAX = 100  # the kernel's limit is 108 on Linux and 104 on macOS

log = logging.getLogger("bankdata.control")


class CommandError(Exception):
    """The command cannot do what it was asked to; the message says why and what helps."""


class Interrupted(Exception):
    """Stopped. Only what was reported before has been stored."""


class NoServer(Exception):
    """No server listens in this folder."""


class Report(Protocol):
    """Where a command reports what it does."""

    def line(self, text: str) -> None:
        """Write a line of the result, for standard output."""
        ...

    def note(self, text: str) -> None:
        """Write a line for the person, for standard error."""
        ...

    def progress(self, label: str, done: int, total: int) -> None:
        """Report how far a longer piece of work is; raises Interrupted when the caller has gone or asked to stop."""
        ...

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask the person which choice is meant, and return its index from 0; None where nobody can be asked."""
        ...


class Dialogue(Report, Protocol):
    """A report to a person who can also be asked for text."""

    def ask(self, question: str, *, is_secret: bool = False, seconds: float | None = None) -> str | None:
        """A line that the person types, or that stands on standard input; None at its end, or when no line comes within
        `seconds`. A secret is not shown while it is typed, unless `seconds` is given."""
        ...


Perform = Callable[[str, Mapping[str, Any], Report], None]
"""Carry out a command by name; raises CommandError."""


class ControlServer:
    """Listens for commands on a socket in the data folder, in a thread of its own, and carries out each in a thread,
    while the server runs."""

    def __init__(self, folder: Path, perform: Perform) -> None:
        """Bind the socket. A socket file that a killed server left behind is replaced: this process holds the store's
        lock, so no other server runs."""
        self._path = folder / FILE_NAME
        self._path.unlink(missing_ok=True)

        self._busy: set[threading.Thread] = set()
        self._is_cut_off = threading.Event()
        busy, is_cut_off = self._busy, self._is_cut_off

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                busy.add(threading.current_thread())
                try:
                    _answer(self, perform, is_cut_off)
                finally:
                    busy.discard(threading.current_thread())

        before = os.umask(0o177)
        try:
            with _socket_address(self._path) as address:
                self._server = socketserver.ThreadingUnixStreamServer(address, Handler)
        finally:
            os.umask(before)
        self._server.daemon_threads = True
        listen = partial(self._server.serve_forever, poll_interval=0.1)  # seconds; a stop waits that long
        begin_thread("control", listen)

    def close(self, *, within: float) -> bool:
        """Stop listening, wait up to `within` seconds for running commands, and return whether all have ended. A
        command that is cut off after that stores nothing more."""
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)
        join_threads(list(self._busy), within=within)
        has_ended = not self._busy
        if not has_ended:
            self._is_cut_off.set()
        return has_ended


OnInterrupt = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Makes a context in which the first Ctrl-C calls the given function instead of ending the command."""


def ask(
    folder: Path,
    command: str,
    arguments: Mapping[str, Any],
    report: Report,
    *,
    on_interrupt: OnInterrupt = lambda _: nullcontext(),
) -> None:
    """Have the server of this folder carry out a command, passing to `report` what it says; raises NoServer,
    CommandError and Interrupted. In the context that `on_interrupt` makes, the first Ctrl-C asks the server to stop the
    command, and its outcome is still awaited."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with _socket_address(folder / FILE_NAME) as address:
                connection.connect(address)
        except OSError as error:
            raise NoServer from error
        request = json.dumps({"command": command, "arguments": arguments}).encode() + b"\n"
        if len(request) > REQUEST_BYTES_MAX:
            raise CommandError(f"The command is too large: at most {REQUEST_BYTES_MAX // 2**20} MB go to the server.")
        connection.sendall(request)

        is_stopping = threading.Event()

        def stop() -> None:
            is_stopping.set()
            report.note("Asking the server to stop ... (Ctrl-C again to leave without waiting for it)")
            with suppress(OSError):  # the server has answered at this moment
                connection.shutdown(socket.SHUT_WR)

        with on_interrupt(stop), connection.makefile("r", encoding="utf-8") as answers:
            for answer in answers:
                message = json.loads(answer)
                match message.pop("kind"):
                    case "line" | "note" | "progress" as kind:
                        getattr(report, kind)(**message)
                    case "choose" | "ask" as kind:
                        reply = getattr(report, kind)(**message)
                        connection.sendall(json.dumps(reply).encode() + b"\n")
                    case "error":
                        raise CommandError(message["text"])
                    case "stopped":
                        raise Interrupted(message["text"])
                    case _:  # the end
                        if is_stopping.is_set():
                            report.note("The command was finished before it could be stopped.")
                        return
    raise CommandError("The server stopped before it had answered. Try again.")


class _Sender:
    """A report that sends each line, note and question through the socket to the process that gave the command."""

    def __init__(self, handler: socketserver.StreamRequestHandler) -> None:
        self._connection: socket.socket = handler.connection
        self._answers = handler.rfile

    def send(self, **message: Any) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:  # else the command would take this OSError for one of its own files
            raise Interrupted(Interrupted.__doc__) from error

    def line(self, text: str) -> None:
        self.send(kind="line", text=text)

    def note(self, text: str) -> None:
        self.send(kind="note", text=text)

    def progress(self, label: str, done: int, total: int) -> None:
        if self._is_closed():
            raise Interrupted(Interrupted.__doc__)
        self.send(kind="progress", label=label, done=done, total=total)

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        chosen = self._reply(kind="choose", question=question, choices=list(choices))
        return chosen if isinstance(chosen, int) and 0 <= chosen < len(choices) else None

    def ask(self, question: str, *, is_secret: bool = False, seconds: float | None = None) -> str | None:
        typed = self._reply(kind="ask", question=question, is_secret=is_secret, seconds=seconds)
        return typed if isinstance(typed, str) else None

    def _reply(self, **question: Any) -> Any:
        """What the other side answers; raises Interrupted where it has gone."""
        self.send(**question)
        answer = self._answers.readline(REQUEST_BYTES_MAX)
        if not answer:
            raise Interrupted(Interrupted.__doc__)
        return json.loads(answer)

    def _is_closed(self) -> bool:
        """Whether the other side has closed its sending side: it was interrupted, or is gone."""
        try:
            return self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


def _answer(handler: socketserver.StreamRequestHandler, perform: Perform, is_cut_off: threading.Event) -> None:
    sender = _Sender(handler)
    with suppress(Interrupted):  # the other side has gone
        with contain(log, "a command failed", is_expected=is_cut_off.is_set, passes=(Interrupted,)):
            _carry_out(handler, sender, perform)
            return
        if is_cut_off.is_set():  # the store was closed under it
            log.warning("a command was cut off by the end of the server")
        sender.send(kind="error", text=CUT_OFF if is_cut_off.is_set() else FAILED)


def _carry_out(handler: socketserver.StreamRequestHandler, sender: _Sender, perform: Perform) -> None:
    try:
        request = json.loads(handler.rfile.readline(REQUEST_BYTES_MAX))
        perform(request["command"], request["arguments"], sender)
        sender.send(kind="end")
    except CommandError as error:
        sender.send(kind="error", text=str(error))
    except Interrupted as interrupted:
        log.info("a command was interrupted")
        sender.send(kind="stopped", text=str(interrupted))


@contextmanager
def _socket_address(path: Path) -> Iterator[str]:
    """A context with an address for a socket path of any length, for the kernel takes only about a hundred bytes."""
    if len(os.fsencode(path)) <= UNIX_PATH_BYTES_MAX:
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
