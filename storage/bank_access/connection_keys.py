"""The keys that seal what opens bank connections: in one private file beside the store and in no backup of it, or in a
store that several machines share, sealed.

A copy of the store, or of a backup, opens no bank account; whoever loses the keys connects the banks anew.
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

from storage.database import tried_again
from storage.keys.places import NONCE_BYTES, KeyFile, KeyPlace, KeysUnusable

FILE_NAME = "connection-keys.json"
KIND = "connection keys"
KEY_BYTES = 32
KEY_ID_BYTES = 8
KEPT_WHERE_SHARED = 4  # keys, though nothing is sealed with them: another machine may be about to commit what is

Keys = dict[str, bytes]


class KeyMissing(KeysUnusable):
    """What opens the banks of this store was sealed with a key that is not here."""

    def __init__(self, place: KeyPlace) -> None:
        super().__init__(
            f"{place} does not hold the key of this store's bank connections: {how_to_bring(place)}. Nothing was"
            " changed."
        )


class SecretsUnreadable(Exception):
    """The key that sealed this is not among the keys, or the sealed text is damaged or another one's."""


class ConnectionKeys:
    """The keys of one store; the first one seals. They are made when something is sealed first. Safe from any thread,
    and sees what other processes write."""

    def __init__(self, kept: Path | KeyPlace, *, may_begin: Callable[[], bool] = lambda: True) -> None:
        """Raises KeysUnusable for a file that others may read, or keys that are damaged; none is no fault.
        `may_begin` says whether a first key may be made where there is none."""
        self.place: KeyPlace = KeyFile(kept) if isinstance(kept, Path) else kept
        self._may_begin = may_begin
        self._lock = threading.Lock()
        self._stamp: object = None
        self._keys: Keys = {}
        self.look_again()

    @property
    def ids(self) -> list[str]:
        """The ids of the keys, the one that seals first; none while there are no keys."""
        self._glance()
        return list(self._keys)

    def look_again(self) -> bool:
        """Read what others have written; whether they have. A store is asked, which takes a connection of its own."""
        if self.place.stamp() == self._stamp:
            return False
        with self._lock:
            self._read()
        return True

    def get_ready(self) -> None:
        """Have a key that seals, where none is a first one: before a transaction that has the one connection to the
        store. Raises KeyMissing."""
        self._glance()
        if not self._keys:
            if not self._may_begin():
                raise KeyMissing(self.place)
            self.place.create(_document({secrets.token_hex(KEY_ID_BYTES): secrets.token_bytes(KEY_BYTES)}))
            self.look_again()

    def seal(self, text: str, *, about: str) -> str:
        """The text encrypted, bound to what it is `about`: sealed texts cannot change places. Raises KeyMissing."""
        self.get_ready()
        key_id, key = next(iter(self._keys.items()))
        nonce = secrets.token_bytes(NONCE_BYTES)
        return f"{key_id}.{_text(nonce + AESGCM(key).encrypt(nonce, text.encode(), about.encode()))}"

    def open(self, sealed: str, *, about: str) -> str:
        """The text in clear; raises SecretsUnreadable."""
        self._glance()
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
    def held(self) -> Iterator[None]:
        """No key is forgotten meanwhile: for a transaction from its sealing to its commit. Any number at once."""
        self.look_again()
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Where the keys are a file, nobody seals for the store meanwhile, nor rotates: who is at it is waited for, in
        any process of this machine. Keys in the store are forgotten so late that nobody has to wait."""
        with self._locked(fcntl.LOCK_EX):
            yield

    def begin_rotation(self) -> str:
        """A new key that seals from now on; the others still open. Its id."""
        new = secrets.token_hex(KEY_ID_BYTES)
        self._change(lambda keys: {new: secrets.token_bytes(KEY_BYTES), **keys})
        return new

    def forget_all_but(self, used: Iterable[str]) -> None:
        """Keep the key that seals and those that something is still sealed with; where others may be sealing, also the
        last few."""
        used, most = set(used), 1 if self.place.path is not None else KEPT_WHERE_SHARED
        self._change(lambda keys: {id_: keys[id_] for place, id_ in enumerate(keys) if place < most or id_ in used})

    def reseal(self) -> None:
        """Write the same keys anew: where they are sealed, with the secret that seals now."""
        if self.ids:
            self._change(lambda keys: keys)

    def take_over(self, file: Path, used: Callable[[], Iterable[str]]) -> int:
        """Keep the keys of a file that are not here, too: all where there are none yet, else those that are used. How
        many these are."""
        found = ConnectionKeys(file)._keys
        new = {id_: key for id_, key in found.items() if id_ not in self._keys}
        if new and self._keys:
            wanted = set(used())
            new = {id_: key for id_, key in new.items() if id_ in wanted}
        if new:
            self._change(lambda keys: {**keys, **new})
        return len(new)

    def _change(self, change: Callable[[Keys], Keys]) -> None:
        """Keep others, made of those that are kept; tried again where another machine was first."""

        def once(_: None) -> None:
            with self._lock:
                self._read()
                self.place.replace(_document(change(self._keys)), self._stamp)
                self._read()

        tried_again(nullcontext, once)

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        """A lock of the folder, for the file itself is another one after each change; it ends with its process."""
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

    def _glance(self) -> None:
        """Read the keys again, as `look_again` does, where that costs next to nothing."""
        if self.place.path is not None:
            self.look_again()

    def _read(self) -> None:
        stamp = self.place.stamp()
        self._keys = _keys_of(self.place) if stamp is not None else {}
        self._stamp = stamp


def how_to_bring(place: KeyPlace) -> str:
    """What the operator does about keys that are not here."""
    if place.path is not None:
        return "bring the file back"
    return f"restart the service on the machine that has them in {FILE_NAME}"


def _document(keys: Keys) -> bytes:
    return json.dumps({"keys": [{"id": id_, "key": _text(key)} for id_, key in keys.items()]}, indent=1).encode()


def _keys_of(place: KeyPlace) -> Keys:
    text = place.read()
    try:
        keys = {str(each["id"]): base64.urlsafe_b64decode(each["key"]) for each in json.loads(text)["keys"]}
    except (ValueError, KeyError, TypeError):
        keys = {}
    if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
        raise KeysUnusable(f"{place} is damaged. Restore it, or move it away.")
    return keys


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()
