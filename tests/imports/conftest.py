"""What the tests of imports share: the real command line on a store of its own, and files to import."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.imports.command_line import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A store with the users eva and tom."""
    made = Shell(tmp_path / "data")
    for name in ("eva", "tom"):
        made("users", "add", name, "--random")
    return made


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Puts a file of this content somewhere and says where."""

    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / "files" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put
