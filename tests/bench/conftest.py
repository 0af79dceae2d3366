"""A server of a few lines, which answers as a test wants it to and counts what it is asked."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest

from tests.benchmarks.bench.servers import MeasuredServer
from tests.benchmarks.bench.store import Audience, Someone

TODAY = date(2026, 11, 22)
EVA = Someone(user_id="u1", token="eva", transaction_ids=["txn_1"], rows=100)
BEN = Someone(user_id="u2", token="ben", transaction_ids=["txn_2"], rows=100)
AUDIENCE = Audience(warm=[EVA, BEN], cold=[], today=TODAY)

Answers = Callable[[str], tuple[int, bytes]]
Asked = list[tuple[str, str]]  # token, path


@pytest.fixture(scope="module", autouse=True)
def untraced() -> Iterator[None]:
    """Servers that are measured run without the tracer of coverage, which would be measured with them."""
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
            patched.delenv(name)
        yield


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def _answering(answers: Answers) -> Iterator[tuple[MeasuredServer, Asked]]:
    asked: Asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append((self.headers["Authorization"].removeprefix("Bearer "), self.path))
            status, body = answers(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            port = server.server_address[1]
            yield MeasuredServer(name="a server", port=port, process=psutil.Process(), audience=AUDIENCE), asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def answering() -> Callable[[Answers], AbstractContextManager[tuple[MeasuredServer, Asked]]]:
    """Starts such a server."""
    return _answering
