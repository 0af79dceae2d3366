"""The modules that compute, in Node.js; and that every word the page says is one it has."""

import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "handlers" / "page" / "static"


@pytest.mark.requirement("page.words")
def test_the_modules_that_compute_keep_their_promises() -> None:
    ran = subprocess.run(
        ["node", "--test", "modules.test.mjs"],
        cwd=HERE, env={**os.environ, "TZ": "America/Los_Angeles"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _without_words() -> str:
    return "\n".join(path.read_text() for path in STATIC.glob("*.js") if "words-" not in path.name)


@pytest.mark.requirement("page.words")
def test_every_word_that_is_said_exists() -> None:
    words = (STATIC / "words-en.js").read_text() + (STATIC / "more-words-en.js").read_text()
    known = set(re.findall(r"^  (\w+): ", words, re.MULTILINE))
    said = set(re.findall(r'\bt\("(\w+)"', _without_words()))
    assert len(said) > 80
    assert sorted(said - known) == []
