"""The signing keys: RSA-2048, made when the server first starts, kept in one private file, rotated without a break."""

import base64
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    RSAPrivateNumbers,
    RSAPublicKey,
    generate_private_key,
)
from jwt.algorithms import RSAAlgorithm
from msgspec import Struct

from auth import lifetimes
from storage.database import Conflict
from storage.keys.places import KeyFile, KeyPlace, KeysUnusable
from storage.oauth.moments import aware

FILE_NAME = "oauth-keys.json"
KIND = "oauth keys"
RSA_BITS = 2048
KEYS_REMEMBERED = 4  # the active key and those that it replaced within the last hour


class SigningKey(Struct, frozen=True):
    """One key pair; `kid` is the public key's thumbprint, `retired_at` when a successor took over (None: active)."""

    kid: str
    private: RSAPrivateKey
    created_at: datetime
    retired_at: datetime | None


class _StoredKey(TypedDict):
    pem: str
    created_at: str
    retired_at: str | None


class KeyRing:
    """The signing keys of one store, and a lasting secret from which others are derived; kept in a folder or another
    place. Safe to use from any thread; notices rotations by other processes."""

    def __init__(self, kept: Path | KeyPlace, *, now: datetime) -> None:
        """Open the keys in this folder or place, or make them on the first start. Raises KeysUnusable."""
        self._lock = threading.Lock()
        self._secret = b""
        self._keys: tuple[SigningKey, ...] = ()
        self._read_at: object = None
        self._place: KeyPlace = KeyFile(kept / FILE_NAME) if isinstance(kept, Path) else kept
        if self._place.stamp() is None:
            self._place.create(_document(secrets.token_bytes(32), (_new_key(now),)))
        self._read()

    @property
    def path(self) -> Path | None:
        """The file of the keys; None where they are in the store."""
        return self._place.path

    def signing_key(self) -> SigningKey:
        """The active key, which signs new tokens."""
        self._refresh()
        return next(key for key in self._keys if key.retired_at is None)

    def public_key(self, kid: str, *, now: datetime) -> RSAPublicKey | None:
        """The key that verifies signatures with this `kid`; None where it is unknown, or was retired more than
        RETIRED_KEY ago."""
        return key.private.public_key() if (key := self._find(kid, now)) else None

    def is_in_use(self, kid: str, *, now: datetime) -> bool:
        """Whether signatures with this `kid` are accepted: it is the active key, or was retired at most RETIRED_KEY
        ago."""
        return self._find(kid, now) is not None

    def rotate(self, *, now: datetime) -> str:
        """Make and store a new active key, and return its kid; the previous one stays valid for one access lifetime,
        keys retired longer ago are deleted. Raises KeysUnusable, also where another process rotates them at the same
        moment."""
        new = _new_key(now)
        with self._lock:
            self._read()
            kept = [
                SigningKey(key.kid, key.private, key.created_at, key.retired_at or aware(now))
                for key in self._keys
                if self._is_valid(key, now)
            ]
            self._replace((new, *kept))
        return new.kid

    def reseal(self) -> None:
        """Store the same keys anew, sealed with the operator's present secret if this place seals them at all. Raises
        KeysUnusable."""
        with self._lock:
            self._read()
            self._replace(self._keys)

    def jwks(self, *, now: datetime) -> dict[str, list[dict[str, str]]]:
        """The public keys that are accepted, as a JWK set (RFC 7517), the active one first."""
        self._refresh()
        return {
            "keys": [
                {**public_jwk(key.private.public_key()), "alg": "RS256", "use": "sig", "kid": key.kid}
                for key in self._keys
                if self._is_valid(key, now)
            ]
        }

    def secret(self, purpose: str) -> bytes:
        """A secret of 32 bytes for one purpose, always the same; the secrets of other purposes cannot be derived from
        it."""
        return hmac.new(self._secret, purpose.encode(), hashlib.sha256).digest()

    def _find(self, kid: str, now: datetime) -> SigningKey | None:
        key = self._in_memory(kid, now)
        if key is None:
            self._refresh()
            key = self._in_memory(kid, now)
        return key

    def _in_memory(self, kid: str, now: datetime) -> SigningKey | None:
        for key in self._keys:
            if key.kid == kid and self._is_valid(key, now):
                return key
        return None

    def _is_valid(self, key: SigningKey, now: datetime) -> bool:
        return key.retired_at is None or aware(now) < key.retired_at + lifetimes.RETIRED_KEY

    def _refresh(self) -> None:
        """Read the keys again if another process has changed them."""
        if self._place.stamp() != self._read_at:
            with self._lock:
                self._read()

    def _replace(self, keys: tuple[SigningKey, ...]) -> None:
        try:
            self._place.replace(_document(self._secret, keys), self._read_at)
        except Conflict as error:
            raise KeysUnusable("The keys have just been rotated by somebody else.") from error
        self._read()

    def _read(self) -> None:
        stamp = self._place.stamp()
        if stamp is None:
            raise KeysUnusable(f"{self._place} is missing: restore it, or restart to make new keys")
        try:
            document = json.loads(self._place.read())
            secret = base64.urlsafe_b64decode(document["secret"])
            keys = tuple(_load_key(stored) for stored in document["keys"])
        except (ValueError, KeyError, TypeError, UnsupportedAlgorithm) as error:
            raise KeysUnusable(f"{self._place} is damaged: restore it from the backup") from error
        if len(secret) != 32 or sum(key.retired_at is None for key in keys) != 1:
            raise KeysUnusable(f"{self._place} is damaged: restore it from the backup")
        self._secret, self._keys, self._read_at = secret, keys, stamp


def public_jwk(key: RSAPublicKey) -> dict[str, str]:
    """The public members of an RSA key as a JWK (RFC 7518 section 6.3.1)."""
    jwk = RSAAlgorithm.to_jwk(key, as_dict=True)
    return {name: jwk[name] for name in ("kty", "n", "e")}


def thumbprint(jwk: Mapping[str, str]) -> str:
    """The thumbprint of a key (RFC 7638 section 3): SHA-256 over the required members in lexicographic order, without
    white space."""
    required = json.dumps({name: jwk[name] for name in ("e", "kty", "n")}, sort_keys=True, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(required.encode()).digest()).rstrip(b"=").decode()


def _new_key(now: datetime) -> SigningKey:
    private = generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    return SigningKey(thumbprint(public_jwk(private.public_key())), private, aware(now), None)


def _document(secret: bytes, keys: tuple[SigningKey, ...]) -> bytes:
    stored = [
        _StoredKey(
            pem=key.private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ).decode(),
            created_at=key.created_at.isoformat(),
            retired_at=key.retired_at.isoformat() if key.retired_at else None,
        )
        for key in keys
    ]
    return json.dumps({"secret": base64.urlsafe_b64encode(secret).decode(), "keys": stored}, indent=1).encode()


def _load_key(stored: _StoredKey) -> SigningKey:
    private = _load_private_key(stored["pem"])
    retired_at = stored["retired_at"]
    return SigningKey(
        thumbprint(public_jwk(private.public_key())),
        private,
        datetime.fromisoformat(stored["created_at"]),
        datetime.fromisoformat(retired_at) if retired_at else None,
    )


@lru_cache(maxsize=KEYS_REMEMBERED)
def _load_private_key(pem: str) -> RSAPrivateKey:
    """The private key in a PEM text, remembered; raises ValueError for a short one, and where its numbers do not fit
    each other, which shows damage. The primes were checked when the key was made here; checking them again, as the
    library does, would cost every command and start 40 ms."""
    private = serialization.load_pem_private_key(pem.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(private, RSAPrivateKey) or private.key_size < RSA_BITS:
        raise ValueError("not an RSA key of 2048 bits or more")
    if not numbers_fit(private.private_numbers()):
        raise ValueError("not the numbers of one key")
    return private


def numbers_fit(key: RSAPrivateNumbers) -> bool:
    """Whether these numbers belong to one RSA key (RFC 8017 section 3.2); whether its factors are prime is not
    checked."""
    p, q, d, public = key.p, key.q, key.d, key.public_numbers
    return (
        min(p, q) > 1
        and p * q == public.n
        and d * public.e % (p - 1) == d * public.e % (q - 1) == 1
        and (key.dmp1, key.dmq1) == (d % (p - 1), d % (q - 1))
        and key.iqmp * q % p == 1
    )
