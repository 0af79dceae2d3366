"""The keys that seal what opens bank connections: in one private file beside the store, in no backup of it.

A copy of the store, or of a backup, opens no bank account; whoever loses the file connects the banks anew.
"""

import base64
import fcntl
import json
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.database import StoreError

FILE_NAME = "connection-keys.json"
KEY_BYTES = 32
KEY_ID_BYTES = 8
NONCE_BYTES = 12  # "96-bit IVs ... are recommended" NIST SP 800-38D 5.2.1.1


class ConnectionKeysUnusable(StoreError):
    """The file with the keys of the bank connections cannot be used."""


class KeyMissing(ConnectionKeysUnusable):
    """What opens the banks of this store was sealed with a key that this machine does not have."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} does not hold the key of this store's bank connections: bring the file from where it is. Nothing"
            " was changed."
        )


class SecretsUnreadable(Exception):
    """The key that sealed this is not in the file of keys, or the sealed text is damaged or another one's."""


class ConnectionKeys:
    """The keys of one store; the first one seals. The file is made when something is sealed first. Safe from any
    thread, and sees what other processes write."""

    def __init__(self, path: Path, *, may_begin: Callable[[], bool] = lambda: True) -> None:
        """Raises ConnectionKeysUnusable for a file that others may read, or that is damaged; none is no fault.
        `may_begin` says whether a first key may be made here where there is no file."""
        self.path = path
        self._may_begin = may_begin
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._keys: dict[str, bytes] = {}
        self._refresh()

    @property
    def ids(self) -> list[str]:
        """The ids of the keys, the one that seals first; none while there is no file."""
        self._refresh()
        return list(self._keys)

    def seal(self, text: str, *, about: str) -> str:
        """The text encrypted, bound to what it is `about`: sealed texts cannot change places. Raises KeyMissing."""
        self._refresh()
        if not self._keys:
            if not self._may_begin():
                raise KeyMissing(self.path)
            self._write_first()
        key_id, key = next(iter(self._keys.items()))
        nonce = secrets.token_bytes(NONCE_BYTES)
        return f"{key_id}.{_text(nonce + AESGCM(key).encrypt(nonce, text.encode(), about.encode()))}"

    def open(self, sealed: str, *, about: str) -> str:
        """The text in clear; raises SecretsUnreadable."""
        self._refresh()
        key_id, _, content = sealed.partition(".")
        key = self._keys.get(key_id)
        if key is None:
            raise SecretsUnreadable("its key is gone")
        try:
            raw = base64.urlsafe_b64decode(content)
            return AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], about.encode()).decode()
        except (ValueError, InvalidTag) as error:
            raise SecretsUnreadable("damaged, or something else's") from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """No key is forgotten meanwhile: for a transaction from its sealing to its commit. Any number at once."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody seals for the store meanwhile, nor rotates: who is at it is waited for, in any process of this
        machine."""
        with self._locked(fcntl.LOCK_EX):
            yield

    def begin_rotation(self) -> str:
        """A new key that seals from now on; the others still open. Its id."""
        self._refresh()
        with self._lock:
            new = secrets.token_hex(KEY_ID_BYTES)
            self._write({new: secrets.token_bytes(KEY_BYTES), **self._keys})
        return new

    def forget_all_but(self, used: Iterable[str]) -> None:
        """Keep the key that seals and those that something is still sealed with."""
        kept = set(used)
        self._refresh()
        with self._lock:
            newest = next(iter(self._keys), None)
            self._write({id_: key for id_, key in self._keys.items() if id_ == newest or id_ in kept})

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        """A lock of the folder, for the file itself is another one after each change; it ends with its process."""
        try:
            descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ConnectionKeysUnusable(f"{self.path} cannot be used: {error.strerror or error}.") from error
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def _write_first(self) -> None:
        with self._lock:
            temporary = self._temporary({secrets.token_hex(KEY_ID_BYTES): secrets.token_bytes(KEY_BYTES)})
            try:
                os.link(temporary, self.path)  # of two processes the first one wins
            except FileExistsError:
                pass
            finally:
                temporary.unlink()
        self._refresh()

    def _write(self, keys: dict[str, bytes]) -> None:
        self._temporary(keys).replace(self.path)
        self._read()

    def _temporary(self, keys: dict[str, bytes]) -> Path:
        document = {"keys": [{"id": id_, "key": _text(key)} for id_, key in keys.items()]}
        try:
            descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".keys-")  # mkstemp makes mode 0600
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ConnectionKeysUnusable(f"{self.path} cannot be written: {error.strerror or error}.") from error
        return Path(name)

    def _refresh(self) -> None:
        if self._stamped() != self._stamp:
            with self._lock:
                self._read()

    def _stamped(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConnectionKeysUnusable(f"{self.path} cannot be used: {error.strerror or error}.") from error
        if status.st_mode & 0o077:
            raise ConnectionKeysUnusable(f"{self.path} can be read by other users: chmod 600 it.")
        return status.st_mtime_ns, status.st_ino

    def _read(self) -> None:
        stamp = self._stamped()
        keys: dict[str, bytes] = {}
        if stamp is not None:
            try:
                document = json.loads(self.path.read_text("utf-8"))
                keys = {str(each["id"]): base64.urlsafe_b64decode(each["key"]) for each in document["keys"]}
            except OSError as error:
                raise ConnectionKeysUnusable(f"{self.path} cannot be used: {error.strerror or error}.") from error
            except (ValueError, KeyError, TypeError) as error:
                raise ConnectionKeysUnusable(f"{self.path} is damaged. Restore it, or move it away.") from error
            if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
                raise ConnectionKeysUnusable(f"{self.path} is damaged. Restore it, or move it away.")
        self._keys, self._stamp = keys, stamp


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()
