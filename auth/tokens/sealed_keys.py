"""The signing keys in the store, for several processes: sealed, so that a copy of the store signs nothing."""

import base64
import secrets
from contextlib import suppress
from datetime import UTC, datetime

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from auth.errors import KeysUnusable
from auth.instants import Now
from storage import documents
from storage.database import Conflict, Database

NAME = "oauth keys, sealed"
NONCE_BYTES = 12  # "96-bit IVs ... are recommended" NIST SP 800-38D 5.2.1.1


class SealedKeys:
    """The document with the keys. `secret` is the operator's and stands nowhere in the store. Of several lines the
    first one seals and each one opens: servers that know a new secret work beside those that do not yet."""

    path = None

    def __init__(self, database: Database, secret: str, now: Now) -> None:
        if not secret:
            raise KeysUnusable(
                "BANKDATA_KEYS_SECRET is missing: PostgreSQL keeps the signing keys too, and a copy of it must"
                " not be enough to make tokens. Set it to what `openssl rand -base64 32` prints, once for all servers."
            )
        self._database = database
        self._now = now
        self._ciphers = [_cipher(line) for line in secret.splitlines()]

    def __str__(self) -> str:
        return "The sealed keys in the store"

    def stamp(self) -> object:
        """Another one after every change; None while there are no keys."""
        return documents.find(self._database, NAME)

    def read(self) -> str:
        """The document in clear; raises KeysUnusable where it was sealed with another secret."""
        try:
            content = base64.b64decode(documents.find(self._database, NAME) or "")
        except ValueError:
            content = b""
        for cipher in self._ciphers:
            with suppress(ValueError, InvalidTag):
                return cipher.decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], NAME.encode()).decode()
        raise KeysUnusable(
            "BANKDATA_KEYS_SECRET does not open the keys of this store: set the one that they were made with."
        )

    def create(self, content: bytes) -> None:
        """Keep the first keys; of two first starts at once, the first one wins."""
        documents.add(self._database, NAME, self._sealed(content), now=_plain(self._now()))

    def replace(self, content: bytes, before: object) -> None:
        """Keep other keys than those of the stamp `before`; raises KeysUnusable where somebody was first."""
        assert isinstance(before, str)
        try:
            documents.replace(self._database, NAME, self._sealed(content), before=before, now=_plain(self._now()))
        except Conflict as error:
            raise KeysUnusable("The keys have just been rotated by somebody else.") from error

    def _sealed(self, content: bytes) -> str:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return base64.b64encode(nonce + self._ciphers[0].encrypt(nonce, content, NAME.encode())).decode()


def _cipher(secret: str) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=b"bankdata oauth keys").derive(secret.encode()))


def _plain(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
