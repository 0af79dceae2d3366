"""What the simulated providers have in common: a real web server on this machine, and the faults of real ones.

`POST /simulator/FAULT` has the next request fail in that way: a status such as 503 or 429 (`429:30` with Retry-After),
`malformed`, `truncated`, `html`, `hang-up`, `redirect`, `silent`, which answers when the simulator ends, `slow-head` or
`slow-body`, which send a byte every few milliseconds for some seconds.
"""

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


@dataclass(frozen=True, kw_only=True)
class Said:
    """An answer: a document for JSON, else text."""

    status: int = 200
    document: Any = None
    text: str = ""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        return (json.dumps(self.document) if self.document is not None else self.text).encode()


class WebBank(ThreadingHTTPServer):
    """Answers what `answer` says, unless a fault is due; keeps what was asked."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.asked: list[Asked] = []
        self.faults: deque[str] = deque()
        self.ended = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, asked: Asked) -> Said:
        raise NotImplementedError

    def paths(self) -> list[str]:
        """What was asked, as `METHOD /path`."""
        return [f"{each.method} {each.path}" for each in self.asked]


class Parrot(WebBank):
    """Answers what was put there last, whatever it is asked."""

    said = Said(document={})

    def answer(self, _asked: Asked) -> Said:
        return self.said


class Handler(BaseHTTPRequestHandler):
    server: WebBank
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        asked = Asked(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
        )
        if parts.path.startswith("/simulator/"):
            self.server.faults.append(parts.path.removeprefix("/simulator/"))
            self._say(Said(document={}))
            return
        self.server.asked.append(asked)
        with suppress(BrokenPipeError, ConnectionResetError):
            if self.server.faults:
                self._fail(self.server.faults.popleft(), asked)
            else:
                self._say(self.server.answer(asked))

    do_POST = do_DELETE = do_GET

    def _fail(self, fault: str, asked: Asked) -> None:
        status, _, wait = fault.partition(":")
        if status.isdecimal():
            self._say(Said(status=int(status), document={}, headers={"Retry-After": wait} if wait else {}))
            return
        body = self.server.answer(asked).body() if fault == "truncated" else b""
        match fault:
            case "malformed":
                self._say(Said(text='{"accounts": [{"id": "1", '))
            case "html":
                self._say(Said(text="<html><body>Maintenance</body></html>", content_type="text/html"))
            case "redirect":
                self._say(Said(status=302, text="", headers={"Location": "http://127.0.0.2:1/elsewhere"}))
            case "truncated":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body) + 10))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True
            case "slow-head":
                self._dribble(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            case "slow-body":
                self._dribble(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n")
            case "silent":
                self.server.ended.wait()
                self.close_connection = True
            case _:  # hang-up
                self.close_connection = True

    def _dribble(self, begun: bytes) -> None:
        self.close_connection = True
        self.wfile.write(begun)
        for _ in range(1_000):
            if self.server.ended.wait(0.005):
                return
            self.wfile.write(b" ")

    def _say(self, said: Said) -> None:
        body = said.body()
        self.send_response(said.status)
        for name, value in {"Content-Type": said.content_type, **said.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test is quiet."""


Served = TypeVar("Served", bound=WebBank)


@contextmanager
def serving(bank: Served) -> Iterator[Served]:
    """The simulator answers until the block ends."""
    thread = threading.Thread(target=bank.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield bank
    finally:
        bank.ended.set()
        bank.shutdown()
        bank.server_close()
