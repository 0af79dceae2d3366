"""Web Push: what the service of a browser's vendor is sent (RFC 8030), encrypted for that browser alone (RFC 8291) and
signed with the key of this store (RFC 8292)."""

import base64
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from analytics.messages import Message
from connectors.public_addresses import Network
from connectors.ways import DELIVERED, Address, AddressRefused, Letter, LetterOutcome, State
from connectors.webhooks.client import SendingProcess, SendingProcessGone
from connectors.webhooks.urls import is_usable

PADDED = 3000  # bytes of every message, which so tells nobody by its length what it says
RECORD = 4096  # bytes of the one record (RFC 8291 section 4)
VALID_SECONDS = 12 * 3600  # of a signature; RFC 8292 section 2 allows a day
TTL_MAX = 3 * 86_400
ENDPOINT_MAX = 2000  # characters
FILLED = ("=", "%3d", "%3D")  # with which every endpoint of Edge ends
AUTH_BYTES = 16
TEXT_MAX = 600  # characters, of four bytes at most
TOPIC = 32  # characters at most (RFC 8030 section 5.4)
SECONDS = 15  # that an exchange may take
LOOK = 0.2  # seconds until somebody else may read
JUDGED: Mapping[int, tuple[State, str]] = {
    404: ("gone", "gone"),
    410: ("gone", "gone"),
    401: ("paused", "not_allowed"),
    403: ("paused", "not_allowed"),
}
NO_ANSWER: Mapping[str, Any] = {"status": None, "error": "no_answer", "retryAfter": 0}
UNUSABLE = Message("subscription: must be what a browser gives for this server's key")


class WebPushKey:
    """The key pair by which push services know this store."""

    def __init__(self, private: str) -> None:
        """The key of what `new` made."""
        self._key = ec.derive_private_key(int.from_bytes(_bytes(private), "big"), ec.SECP256R1())
        self.public = _text(_point(self._key.public_key()))  # as browsers want it: `applicationServerKey`

    @staticmethod
    def new() -> str:
        """The text of a new private key."""
        number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
        return _text(number.to_bytes(32, "big"))

    def authorization(self, endpoint: str, *, contact: str, now: int) -> str:
        """The header that shows the push service of this endpoint whose message it is. `contact` is an https or mailto
        address, `now` the true time in seconds since 1970."""
        parts = urlsplit(endpoint)
        claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": now + VALID_SECONDS, "sub": contact}
        return f"vapid t={jwt.encode(claims, self._key, algorithm='ES256')}, k={self.public}"


class WebPush:
    """The way to a browser. Requests go through the process that sends webhooks, for endpoints are strangers'
    addresses: checked when they are connected to, no redirect followed."""

    def __init__(self, key: Callable[[], WebPushKey], *, contact: str, allowed: Sequence[Network]) -> None:
        """`key` gives the key of the store, `contact` is where push services find the operator, and `allowed` are
        networks besides public ones."""
        self._key = key
        self._contact = contact
        self._allowed = allowed
        self._exchanges = _Exchanges(allowed)

    def checked(self, given: Any) -> Address:
        """The subscription as a browser made it: an endpoint, as usable as a webhook's, and the keys `p256dh` and
        `auth`. Raises AddressRefused."""
        endpoint, keys = str(given.get("endpoint", "")), given.get("keys")
        try:
            _point_of(keys["p256dh"])
            is_whole = len(_bytes(keys["auth"])) == AUTH_BYTES
        except (ValueError, KeyError, TypeError):
            is_whole = False
        if not is_whole or len(endpoint) > ENDPOINT_MAX or not is_usable(endpoint, self._allowed):
            raise AddressRefused(UNUSABLE)
        kept = {"endpoint": endpoint, "keys": {name: keys[name] for name in ("p256dh", "auth")}}
        unique = hashlib.sha256(endpoint.encode()).hexdigest()
        end = endpoint  # by whose last letters the page knows its own browser
        while end.endswith(FILLED):
            end = end.removesuffix("=") if end.endswith("=") else end[:-3]
        return Address(
            sealed=json.dumps(kept), scheme="https", last=end[-4:], unique=unique
        )  # the page knows itself by it

    def send(self, address: str, letter: Letter) -> LetterOutcome:
        """Send a letter to a subscription, within 20 seconds."""
        subscription = json.loads(address)
        said = {"title": letter.title, "text": letter.text[:TEXT_MAX], "tag": letter.tag, "link": letter.link}
        body = encrypted(
            json.dumps({**said, "isSilent": letter.is_silent}, ensure_ascii=False).encode(),
            subscription["keys"],
            salt=os.urandom(16),
            own=ec.generate_private_key(ec.SECP256R1()),
        )
        endpoint, now = subscription["endpoint"], int(letter.at.replace(tzinfo=UTC).timestamp())
        headers = {
            "Authorization": self._key().authorization(endpoint, contact=self._contact, now=now),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": max(0, min(letter.seconds, TTL_MAX)),
            "Topic": _text(hashlib.sha256(letter.tag.encode()).digest())[:TOPIC],
            "Urgency": "high" if letter.is_urgent else "low" if letter.is_silent else "normal",
        }
        request = {"url": endpoint, "headers": headers, "base64": base64.b64encode(body).decode(), "seconds": SECONDS}
        return _outcome(self._exchanges.post(request))

    def close(self) -> None:
        """End the process that sends."""
        self._exchanges.close()


class _Exchanges:
    """Requests of several threads through one sending process; of those who wait one reads for all."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        self._heard = threading.Condition()
        self._is_read = False
        self._process: SendingProcess | None = None  # started with the first request
        self._outcomes: dict[str, Mapping[str, Any]] = {}

    def post(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The outcome of a request (`connectors.webhooks.process.outcome_of`)."""
        id_, until = os.urandom(8).hex(), time.monotonic() + request["seconds"] + 1
        with self._heard:
            process = self._process = self._process or SendingProcess(self._allowed)
            try:
                process.send({**request, "id": id_})
                while id_ not in self._outcomes and self._process is process and time.monotonic() < until:
                    if self._is_read:
                        self._heard.wait(LOOK)
                    else:
                        self._read(process)
            except SendingProcessGone:
                self._end(process)
            return self._outcomes.pop(id_, NO_ANSWER)

    def _read(self, process: SendingProcess) -> None:
        """Keep what came within a moment, in which others may send."""
        self._is_read = True
        self._heard.release()
        try:
            found = process.outcomes(within=LOOK)
        except ValueError as error:  # what a pipe says that was closed meanwhile
            raise SendingProcessGone from error
        finally:
            self._heard.acquire()
            self._is_read = False
            self._heard.notify_all()
        self._outcomes.update({each["id"]: each for each in found})

    def _end(self, process: SendingProcess) -> None:
        """End this process; the next request starts another one."""
        if self._process is process:
            self._process = None
            process.close()

    def close(self) -> None:
        """End the process."""
        with self._heard:
            if self._process is not None:
                self._end(self._process)


def _outcome(said: Mapping[str, Any]) -> LetterOutcome:
    """What an answer of a push service means (RFC 8030 section 8)."""
    status, wait = said["status"], said["retryAfter"]
    if status is None:
        return LetterOutcome(state="later", reason=said["error"])
    if 200 <= status < 300:
        return DELIVERED
    if status == 429 or status >= 500:
        return LetterOutcome(state="later", reason="too_many" if status == 429 else "no_answer", wait=wait)
    state, reason = JUDGED.get(status, ("refused", "refused"))
    return LetterOutcome(state=state, reason=reason, wait=wait)


def encrypted(
    text: bytes, keys: Mapping[str, str], *, salt: bytes, own: ec.EllipticCurvePrivateKey, padded: int = PADDED
) -> bytes:
    """The text for whoever has the private half of these keys: one record of aes128gcm (RFC 8188), padded to so many
    bytes. `salt` are sixteen random bytes, `own` is a key for this message alone."""
    receiver, sender = _point_of(keys["p256dh"]), _point(own.public_key())
    known = own.exchange(ec.ECDH(), receiver)
    shared = _derived(known, _bytes(keys["auth"]), b"WebPush: info\0" + _point(receiver) + sender, 32)
    key = _derived(shared, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(shared, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD.to_bytes(4, "big") + bytes([len(sender)]) + sender
    return head + AESGCM(key).encrypt(nonce, (text + b"\2").ljust(padded + 1, b"\0"), None)


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt=salt, info=info).derive(secret)


def _point_of(text: str) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(text))


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
