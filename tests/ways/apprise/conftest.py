"""Receivers on loopback that speak as ntfy, Gotify, Telegram, Discord, Slack and Matrix do, and nothing else."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from connectors.waiting_process import WaitingProcess
from connectors.ways.apprise import ByApprise
from tests.days import days_ago

Json = dict[str, Any]
SCHEMES = ("ntfy", "ntfys", "gotify", "gotifys", "tgram", "matrixs", "discord", "slack", "evil")
NAMES = ["ntfy.test", "gotify.test", "matrix.test", "twice.test", "inside.test"]
NAMES += ["api.telegram.org", "discord.com", "hooks.slack.com"]


class Receiver:
    """An HTTP server over TLS, or in the clear, for all names of the tests. `heard` has method, path, headers and JSON
    of each request; `answer` replaces what the service would say, and `wait` is what it waits for before it answers."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.heard: list[tuple[str, dict[str, str], Json]] = []
        self.answer: tuple[int, dict[str, str], bytes] | None = None
        self.wait: threading.Event | None = None
        receiver = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                heard = (
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    json.loads(body or "{}"),
                )
                receiver.heard.append(heard)
                if receiver.wait is not None:
                    receiver.wait.wait(60)
                status, further, said = receiver.answer or strictly(*heard)
                with suppress(OSError):  # the other side has had enough
                    self.send_response(status)
                    for name, value in {**further, "Content-Length": str(len(said))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(said)

            do_PUT = do_GET = do_POST

            def log_message(self, *_ignored: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_ignored: Any) -> None:  # whoever does not know the certificate
                pass

        self.server = Server(("0.0.0.0", 0), Answering)
        self.server.daemon_threads = True
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


def strictly(path: str, headers: dict[str, str], body: Json) -> tuple[int, dict[str, str], bytes]:
    """What the services say to a request by their documents: 400 to whatever they do not know."""
    host, answer = headers["host"].partition(":")[0], dict[str, Any]()
    if host.startswith(("ntfy", "public", "twice", "inside", "127")) and path == "/":  # ntfy: publish as JSON
        known = {"topic", "message", "title", "priority", "tags", "click"}
        if not body.keys() <= known or not body["topic"].isalnum():
            return 400, {}, b'{"code":40024,"http":400,"error":"invalid request: request body must be valid JSON"}'
        answer = {"id": "x", "time": 1, "expires": 2, "event": "message", "topic": body["topic"]}
    elif host == "gotify.test" and path == "/message":
        if headers.get("x-gotify-key") != "AbCdEfGhIjKlMnO":
            return 401, {}, b'{"error":"Unauthorized","errorCode":401}'
        if not body.keys() <= {"title", "message", "priority", "extras"} or not body["message"]:
            return 400, {}, b'{"error":"Bad Request","errorCode":400}'
        answer = {"id": 1, "appid": 1, **body}
    elif host == "api.telegram.org" and path.endswith("/sendMessage"):
        if body["parse_mode"] != "HTML" or body["chat_id"] != 4711:
            return 400, {}, b'{"ok":false,"error_code":400,"description":"Bad Request"}'
        answer = {"ok": True, "result": {"message_id": 1}}
    elif host == "discord.com" and path.startswith("/api/webhooks/"):
        return (204, {}, b"") if 0 < len(body["content"]) <= 2000 else (400, {}, b"{}")
    elif host == "hooks.slack.com" and path.startswith("/services/"):
        return 200, {}, b"ok"
    elif host == "matrix.test" and path.endswith("/login") and body.get("password") == "wrong":
        return 403, {}, b'{"errcode":"M_FORBIDDEN","error":"Invalid username or password"}'
    elif host == "matrix.test" and path.endswith("/login"):
        answer = {"user_id": "@eva:matrix.test", "access_token": "token", "home_server": "matrix.test"}
    elif host == "matrix.test" and "/join/" in path:
        answer = {"room_id": "!room:matrix.test"}
    elif host == "matrix.test" and "/send/m.room.message" in path:
        answer = {"event_id": "$1"}
    else:
        return 404, {}, b"{}"
    return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of the names, and its key: its own authority."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    begin, end = (datetime.combine(days_ago(each), time(), UTC) for each in (2, -2))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in NAMES]), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return path


def begun(certificate: Path, *, is_safe: bool) -> Iterator[tuple[ByApprise, Receiver]]:
    """The way by Apprise, which may write to 127.0.0.2, and the receiver that has all names of the test."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    receiver, way = Receiver(tls if is_safe else None), ByApprise(SCHEMES, [ip_network("127.0.0.2")])
    environment = {"HOME": "/nonexistent", "REQUESTS_CA_BUNDLE": str(certificate), "RECEIVER": str(receiver.port)}
    way._process = WaitingProcess("tests.ways.apprise.named", environment)
    yield way, receiver
    way.close()
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture(scope="session")
def by_tls(certificate: Path) -> Iterator[tuple[ByApprise, Receiver]]:
    yield from begun(certificate, is_safe=True)


@pytest.fixture(scope="session")
def in_clear(certificate: Path) -> Iterator[tuple[ByApprise, Receiver]]:
    yield from begun(certificate, is_safe=False)
