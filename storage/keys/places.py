"""Storage places for keys: one private file, or, for several processes, the store itself, sealed, so that a copy of the
store signs nothing and opens no bank."""

import base64
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from storage import documents
from storage.boundary import undo_on_failure
from storage.database import Database, StoreError

NONCE_BYTES = 12  # "96-bit IVs ... are recommended" NIST SP 800-38D 5.2.1.1


class KeysUnusable(StoreError):
    """Keys cannot be read or written."""


class KeyPlace(Protocol):
    """The place of a document that holds keys."""

    @property
    def path(self) -> Path | None:
        """The path of the file; None where the place is no file."""

    def stamp(self) -> object:
        """A value that changes with every change of the document; None while there is no document."""

    def read(self) -> str:
        """The text of the document. Raises KeysUnusable."""

    def create(self, content: bytes) -> None:
        """Store the first document; of two at once, the first one wins."""

    def replace(self, content: bytes, before: object) -> None:
        """Replace the document whose stamp is `before`. Raises Conflict where another process was faster."""


class KeyFile:
    """A file that only its owner may read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def stamp(self) -> object:
        """Modification time, inode and mode of the file, from one stat call; None while there is no file."""
        with self._translate_errors():
            try:
                status = self.path.stat()
            except FileNotFoundError:
                return None
            return status.st_mtime_ns, status.st_ino, status.st_mode

    def read(self) -> str:
        """The text of the file. Raises KeysUnusable for a file that others may read."""
        with self._translate_errors():
            if self.path.stat().st_mode & 0o077:
                raise KeysUnusable(
                    f"{self.path} can be read by other users: chmod 600 it, or delete it if somebody may have read it"
                )
            return self.path.read_text("utf-8")

    def create(self, content: bytes) -> None:
        """Create the file, whole or not at all, and its folder if missing; do nothing if there already is a file."""
        with self._translate_errors():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._private_file(content)
            try:
                os.link(temporary, self.path)
            except FileExistsError:
                pass
            finally:
                temporary.unlink()

    def replace(self, content: bytes, before: object) -> None:  # noqa: ARG002 - what a KeyPlace is asked
        """Replace the file; `before` is not checked, because only one server writes it."""
        with self._translate_errors():
            self._private_file(content).replace(self.path)

    def _private_file(self, content: bytes) -> Path:
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".keys-")  # mkstemp makes mode 0600
        with undo_on_failure(Path(name).unlink), os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return Path(name)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise KeysUnusable(f"{self.path} cannot be used: {error.strerror or error}.") from error


class SealedKeys:
    """A sealed document in the store. `secret` is the operator's and not in the store. Of several lines in the secret,
    the first one seals and each one opens, so that servers that know a new line work beside those that do not yet."""

    path = None

    def __init__(self, database: Database, kind: str, secret: str, now: Callable[[], datetime]) -> None:
        """Derive a cipher from each line of `secret`, bound to `kind`: what is sealed for one kind cannot be opened as
        another. The sealed document is kept in `database` and dated by `now`. Raises KeysUnusable for an empty
        secret."""
        if not secret:
            raise KeysUnusable(
                "BANKDATA_KEYS_SECRET is missing: PostgreSQL keeps the keys too, and a copy of it must not be enough to"
                " make tokens or open banks. Set it to what `openssl rand -base64 32` prints, once for all servers."
            )
        self.name = kind + documents.SEALED
        self._kind = kind
        self._database = database
        self._now = now
        self._ciphers = [_cipher(kind, line) for line in secret.splitlines()]

    def __str__(self) -> str:
        return f"The document of {self._kind} in the store"

    def stamp(self) -> object:
        """The sealed text, None while there are no keys; each sealing changes it, so it shows whether keys were
        replaced."""
        return documents.find(self._database, self.name)

    def read(self) -> str:
        """The decrypted document. Raises KeysUnusable where it was sealed with another secret."""
        try:
            content = base64.b64decode(documents.find(self._database, self.name) or "")
        except ValueError:
            content = b""
        for cipher in self._ciphers:
            with suppress(ValueError, InvalidTag):
                return cipher.decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], self.name.encode()).decode()
        raise KeysUnusable(
            "BANKDATA_KEYS_SECRET does not open the keys of this store: set the one that they were made with."
        )

    def create(self, content: bytes) -> None:
        """Store the first keys; of two first starts at once, the first one wins."""
        documents.add(self._database, self.name, self._seal(content), now=_in_utc(self._now()))

    def replace(self, content: bytes, before: object) -> None:
        """Replace the keys whose stamp is `before`. Raises Conflict where another process was faster."""
        assert before is None or isinstance(before, str)
        documents.replace(self._database, self.name, self._seal(content), before=before, now=_in_utc(self._now()))

    def _seal(self, content: bytes) -> str:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return base64.b64encode(nonce + self._ciphers[0].encrypt(nonce, content, self.name.encode())).decode()


def _cipher(kind: str, secret: str) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=f"bankdata {kind}".encode()).derive(secret.encode()))


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
