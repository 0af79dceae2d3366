"""The modules that compute, in Node.js; and that every word the page says is one it has."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from handlers.languages import catalogue
from handlers.page.serving import module_files

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "handlers" / "page" / "static"


@pytest.mark.requirement("page.words")
def test_the_modules_that_compute_keep_their_promises(tmp_path: Path) -> None:
    for name, content in module_files().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    ran = subprocess.run(
        ["node", "--test", "modules.test.mjs"],
        cwd=HERE, env={**os.environ, "TZ": "America/Los_Angeles", "STATIC": str(tmp_path)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _modules() -> str:
    return "\n".join(path.read_text() for path in STATIC.glob("*.js"))


@pytest.mark.requirement("page.words")
def test_every_word_that_is_said_exists() -> None:
    known = {*catalogue("en").named("page"), *catalogue("en").named("place")}
    said = set(re.findall(r'\bt\("(\w+)"', _modules()))
    assert len(said) > 80
    assert sorted(said - known) == []
