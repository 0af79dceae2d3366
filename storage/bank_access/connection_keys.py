"""The keys that seal secrets of bank connections: in one private file beside the store, in no backup of the store, or
sealed in a store that several machines share.

A copy of the store or of a backup opens no bank account. Whoever loses the keys has to connect the banks anew.
"""

import base64
import fcntl
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.database import retry
from storage.keys.places import NONCE_BYTES, KeyFile, KeyPlace, KeysUnusable

FILE_NAME = "connection-keys.json"
KIND = "connection keys"
KEY_BYTES = 32
KEY_ID_BYTES = 8
KEPT_WHERE_SHARED = 4  # keys, also unused ones: another machine may be about to commit a secret sealed with one

Keys = dict[str, bytes]


class KeyMissing(KeysUnusable):
    """The secrets of this store were sealed with a key that is not here."""

    def __init__(self, place: KeyPlace) -> None:
        super().__init__(
            f"{place} does not hold the key of this store's bank connections: {how_to_bring(place)}. Nothing was"
            " changed."
        )


class SecretsUnreadable(Exception):
    """The key that sealed a text is not among the keys, or the text is damaged or was sealed for something else."""


class ConnectionKeys:
    """The sealing keys of one store; the first one seals, all of them open. The first key is made when something is
    first sealed. Safe to use from any thread. Keys that other processes write to the file are seen at each use; those
    in a store are seen by `look_again`, which `open` calls for a key that it does not know."""

    def __init__(self, kept: Path | KeyPlace, *, may_begin: Callable[[], bool] = lambda: True) -> None:
        """Read the keys, if there are any. Raises KeysUnusable for a file that others may read, or for damaged keys.

        `may_begin` says whether a first key may be made where there is none: not if secrets of the store are sealed
        already, because their key is missing.
        """
        self.place: KeyPlace = KeyFile(kept) if isinstance(kept, Path) else kept
        self._may_begin = may_begin
        self._lock = threading.Lock()
        self._stamp: object = None
        self._keys: Keys = {}
        self.look_again()

    @property
    def ids(self) -> list[str]:
        """The ids of the keys, the one that seals first; empty while there are no keys."""
        self._refresh_file()
        return list(self._keys)

    def look_again(self) -> bool:
        """Read the keys again if another process has changed them; True if so. For keys in a store, this takes a
        connection."""
        if self.place.stamp() == self._stamp:
            return False
        with self._lock:
            self._read()
        return True

    def get_ready(self) -> None:
        """Make a first key where there is none. Call it before a transaction that holds the only connection to the
        store. Raises KeyMissing where no first key may be made (`may_begin`)."""
        if not self.ids:
            self.look_again()  # another process may have made the first one
        if not self._keys:
            if not self._may_begin():
                raise KeyMissing(self.place)
            self.place.create(_document({secrets.token_hex(KEY_ID_BYTES): secrets.token_bytes(KEY_BYTES)}))
            self.look_again()

    def seal(self, text: str, *, about: str) -> str:
        """The text encrypted and bound to `about`, so that sealed texts cannot be swapped. Raises KeyMissing."""
        self.get_ready()
        key_id, key = next(iter(self._keys.items()))
        nonce = secrets.token_bytes(NONCE_BYTES)
        return f"{key_id}.{_text(nonce + AESGCM(key).encrypt(nonce, text.encode(), about.encode()))}"

    def open(self, sealed: str, *, about: str) -> str:
        """The decrypted text, which must have been sealed for the same `about`. Raises SecretsUnreadable."""
        self._refresh_file()
        key_id, _, content = sealed.partition(".")
        if key_id not in self._keys:
            self.look_again()
        key = self._keys.get(key_id)
        if key is None:
            raise SecretsUnreadable("its key is gone")
        try:
            raw = base64.urlsafe_b64decode(content)
            return AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], about.encode()).decode()
        except (ValueError, InvalidTag) as error:
            raise SecretsUnreadable("damaged, or something else's") from error

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Read the keys again, and keep every key of a file from being forgotten inside the `with` block, which reaches
        from the sealing in a transaction to its commit. Any number may hold them; `alone` waits for all of these."""
        self.look_again()
        with self._lock_folder(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from sealing and rotating inside the `with` block, if the keys are a file; waits for those at
        work in any process of this machine.

        Does nothing for keys in a store: they are forgotten so late that nobody has to wait.
        """
        with self._lock_folder(fcntl.LOCK_EX):
            yield

    def begin_rotation(self) -> str:
        """Add a new key, which seals from now on while the older ones still open; returns its id."""
        new = secrets.token_hex(KEY_ID_BYTES)
        self._change(lambda keys: {new: secrets.token_bytes(KEY_BYTES), **keys})
        return new

    def forget_all_but(self, used: Iterable[str]) -> None:
        """Forget all keys but the sealing one and those in `used`; keys in a shared store also keep the last few,
        because another machine may be sealing."""
        used, most = set(used), 1 if self.place.path is not None else KEPT_WHERE_SHARED
        self._change(lambda keys: {id_: keys[id_] for place, id_ in enumerate(keys) if place < most or id_ in used})

    def reseal(self) -> None:
        """Store the same keys anew, sealed with the present secret of the operator where they are sealed at all."""
        if self.ids:
            self._change(lambda keys: keys)

    def take_over(self, file: Path, used: Callable[[], Iterable[str]]) -> int:
        """Add the keys of a file that are missing here: all of them where there are none yet, else those in `used`.
        Returns how many were added."""
        found = ConnectionKeys(file)._keys
        new = {id_: key for id_, key in found.items() if id_ not in self._keys}
        if new and self._keys:
            wanted = set(used())
            new = {id_: key for id_, key in new.items() if id_ in wanted}
        if new:
            self._change(lambda keys: {**keys, **new})
        return len(new)

    def _change(self, change: Callable[[Keys], Keys]) -> None:
        """Replace the keys by what `change` makes of them; tried again where another machine was faster."""

        def once(_: None) -> None:
            with self._lock:
                self._read()
                self.place.replace(_document(change(self._keys)), self._stamp)
                self._read()

        retry(nullcontext, once)

    @contextmanager
    def _lock_folder(self, kind: int) -> Iterator[None]:
        """Hold a lock on the folder (each change replaces the file itself); the lock ends with its process."""
        path = self.place.path
        if path is None:
            yield
            return
        try:
            descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise KeysUnusable(f"{path} cannot be used: {error.strerror or error}.") from error
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def _refresh_file(self) -> None:
        """Read the keys again if they are a file, where looking costs next to nothing."""
        if self.place.path is not None:
            self.look_again()

    def _read(self) -> None:
        stamp = self.place.stamp()
        self._keys = _keys_of(self.place) if stamp is not None else {}
        self._stamp = stamp


def how_to_bring(place: KeyPlace) -> str:
    """A part of a message: how the operator can bring back missing keys."""
    if place.path is not None:
        return "bring the file back"
    return f"restart the service on the machine that has them in {FILE_NAME}"


def _document(keys: Keys) -> bytes:
    return json.dumps({"keys": [{"id": id_, "key": _text(key)} for id_, key in keys.items()]}, indent=1).encode()


def _keys_of(place: KeyPlace) -> Keys:
    try:
        keys = {str(each["id"]): base64.urlsafe_b64decode(each["key"]) for each in json.loads(place.read())["keys"]}
    except (ValueError, KeyError, TypeError):
        keys = {}
    if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
        raise KeysUnusable(f"{place} is damaged. Restore it, or move it away.")
    return keys


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()
