"""Which reader this is: another one as soon as anything changes by which a file could be read or compared otherwise."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import msgspec

import connectors
import storage.importing
from connectors.bank_csv.profile import Profile

FOLDERS = tuple(Path(str(package.__file__)).parent for package in (connectors, storage.importing))
REGISTRIES = ("schwifty",)  # of bank names and account numbers

_written = msgspec.json.Encoder().encode


def reader_version(profiles: Sequence[Profile]) -> str:
    """The name of this program as a reader, with the user's own `profiles`."""
    return sha256(_program() + _written(tuple(profiles))).hexdigest()


@cache
def _program() -> bytes:
    digest = sha256()
    for name in REGISTRIES:
        digest.update(version(name).encode())
    for file in sorted(each for folder in FOLDERS for each in folder.rglob("*") if each.suffix != ".pyc"):
        if file.is_file():
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
    return digest.digest()
