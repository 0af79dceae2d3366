"""The libraries of the page, as npm publishes them: `python -m tests.page.vendored` fetches what the lock names.

A library lies in handlers/page/static/vendor/ as it was published; only the name under which one imports another is
made an address, because the page has no build step and no import map.
"""

import hashlib
import json
import subprocess
import tarfile
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict

FOLDER = Path(__file__).resolve().parents[2] / "handlers" / "page" / "static" / "vendor"
LOCK = FOLDER / "lock.json"
BARE_NAMES = {b'from"preact"': b'from"./preact.js"'}


class Library(TypedDict):
    """One npm package: what it is, and which of its files lie here, each with the SHA-256 it has here."""

    name: str
    version: str
    license: str
    integrity: str
    files: dict[str, str]
    sha256: dict[str, str]


class Different(Exception):
    """What npm handed over is not what the lock names."""


def libraries() -> list[Library]:
    """What the lock names."""
    locked: list[Library] = json.loads(LOCK.read_text())
    return locked


def fetched(library: Library) -> dict[str, bytes]:
    """The files of a library, by the name they have here; raises Different."""
    with TemporaryDirectory() as folder:
        asked = f"{library['name']}@{library['version']}"
        subprocess.run(
            ["npm", "pack", "--silent", asked], cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL
        )
        (archive,) = Path(folder).glob("*.tgz")
        packed = archive.read_bytes()
        if library["integrity"] != "sha512-" + b64encode(hashlib.sha512(packed).digest()).decode():
            raise Different(asked)
        with tarfile.open(archive) as opened:
            members = {there: opened.extractfile(f"package/{there}") for there in library["files"]}
            return {library["files"][there]: _addressed(file.read()) for there, file in members.items() if file}


def _addressed(content: bytes) -> bytes:
    for bare, address in BARE_NAMES.items():
        content = content.replace(bare, address)
    return content


def main() -> None:
    """Write the files of the lock, and into the lock what they are."""
    locked = libraries()
    for library in locked:
        for name, content in fetched(library).items():
            (FOLDER / name).write_bytes(content)
            library["sha256"][name] = hashlib.sha256(content).hexdigest()
    LOCK.write_text(json.dumps(locked, indent=2) + "\n")


if __name__ == "__main__":
    main()
