"""A real web server on this machine that answers, byte for byte, what a test wants the other side to say."""

import io
import ssl
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RateServer(ThreadingHTTPServer):
    """Answers the pages it has, each a whole response in pieces, and closes the connection; keeps what was asked."""

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, Iterable[bytes]] = {}
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self._scheme = "https" if tls else "http"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    @property
    def address(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.server_port}"

    def page(self, path: str, *pieces: bytes) -> str:
        """Have this address answer with these bytes, head and all; the address."""
        self.pages[path] = pieces
        return self.address + path


class Handler(BaseHTTPRequestHandler):
    server: RateServer

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):  # the other side has had enough
            for piece in self.server.pages[self.path]:
                self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def rate_server(tls: ssl.SSLContext | None = None) -> Iterator[RateServer]:
    """A server that ends with the block."""
    server = RateServer(tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def response(body: bytes, *, status: str = "200 OK", length: int | None = None, headers: str = "") -> bytes:
    """A whole answer; `length` is what it says of itself, whatever is true."""
    announced = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {announced}\r\n{headers}\r\n".encode() + body


def ecb_zip(day: date) -> bytes:
    """A file like the bank's, with one day."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("eurofxref-hist.csv", f"Date,USD\n{day},1.2345\n")
    return file.getvalue()
