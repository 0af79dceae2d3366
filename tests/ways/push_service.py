"""The push service of a browser's maker on this machine: it checks who sends, as RFC 8030 and 8292 want it, and opens
what came with the keys of the browser, as RFC 8291 says. Nothing of it is taken from the product."""

import base64
import hmac
import json
import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Json = dict[str, Any]


def text_of(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


class SubscribedBrowser:
    """A browser that has subscribed: what it tells, and what it can read."""

    def __init__(self, endpoint: str) -> None:
        self._key, self._secret = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        numbers = self._key.public_key().public_numbers()
        self._point = b"\4" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
        self.endpoint = endpoint
        self.subscription = {
            "endpoint": endpoint,
            "expirationTime": None,
            "keys": {"p256dh": text_of(self._point), "auth": text_of(self._secret)},
        }

    def read(self, body: bytes) -> Json:
        """What was said, by the steps of RFC 8291 section 3.4 with HMAC alone; its padding is checked."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert (size, length, len(record)) == (4096, 65, 3000 + 1 + 16)
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        known = self._key.exchange(ec.ECDH(), public)
        info = b"WebPush: info\0" + self._point + sender
        secret = hmac.digest(hmac.digest(self._secret, known, "sha256"), info + b"\1", "sha256")
        start = hmac.digest(salt, secret, "sha256")
        key = hmac.digest(start, b"Content-Encoding: aes128gcm\0\1", "sha256")[:16]
        nonce = hmac.digest(start, b"Content-Encoding: nonce\0\1", "sha256")[:12]
        said, _, padding = AESGCM(key).decrypt(nonce, record, None).partition(b"\2")
        assert set(padding) <= {0}
        found: Json = json.loads(said)
        return found


class PushService:
    """Answers 201 to what is as it has to be and 400 to the rest, or what `answers` say of a path: a status with header
    fields. `waits` is what a path waits for before it answers."""

    def __init__(self, key: str = "") -> None:
        self.key = key  # with which browsers have subscribed; empty for any
        self.heard: dict[str, list[tuple[dict[str, str], bytes]]] = defaultdict(list)
        self.complaints: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, str]]] = {}
        self.waits: dict[str, threading.Event] = {}
        service = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                service.heard[self.path].append((headers, body))
                if self.path in service.waits:
                    service.waits[self.path].wait(60)
                status, more = service.answers.get(self.path) or (service.judged(headers, body), {})
                with suppress(OSError):  # the other side has had enough
                    self.send_response(status)
                    for name, value in more.items():
                        self.send_header(name, value)
                    self.end_headers()

            def log_message(self, *_ignored: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def judged(self, headers: dict[str, str], body: bytes) -> int:
        try:
            self._check(headers, body)
        except Exception as error:
            self.complaints.append(f"{type(error).__name__}: {error}")
            return 400
        return 201

    def _check(self, headers: dict[str, str], body: bytes) -> None:
        scheme, _, rest = headers["authorization"].partition(" ")
        said = dict(each.strip().split("=", 1) for each in rest.split(","))
        assert (scheme, set(said)) == ("vapid", {"t", "k"})
        assert said["k"] == (self.key or said["k"])
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes_of(said["k"]))
        claims = jwt.decode(said["t"], public, algorithms=["ES256"], audience=self.origin)
        assert claims["aud"] == self.origin
        assert claims["sub"].startswith(("https://", "mailto:"))
        assert 0 < claims["exp"] - time.time() <= 12 * 3600 + 60
        assert headers["content-encoding"] == "aes128gcm"
        assert 0 <= int(headers["ttl"]) <= 3 * 86_400
        assert headers["urgency"] in ("very-low", "low", "normal", "high")
        assert 0 < len(headers["topic"]) <= 32
        assert bytes_of(headers["topic"])
        assert len(body) <= 4096

    def browser(self, path: str = "/w/1") -> SubscribedBrowser:
        return SubscribedBrowser(self.origin + path)

    def close(self) -> None:
        for each in self.waits.values():
            each.set()
        self._server.shutdown()
        self._server.server_close()


def digest_of(endpoint: str) -> str:
    return sha256(endpoint.encode()).hexdigest()
