"""The modules that compute, in Node.js; and that every word the page says is one it has."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from handlers.notice_sentences import AMOUNTS, DAYS, TEXTS, TITLES, text_of
from handlers.operations.rules_in_words import CATEGORY, CORRECTED_BY, TRANSFER, transfer_reason
from handlers.sentences import in_german

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


@pytest.mark.requirement("page.words")
def test_every_reason_for_a_category_and_a_transfer_is_known_in_german() -> None:
    known = [
        re.compile(re.sub(r"\\{(word)?\\}", "(.+)", re.escape(english)))
        for english in re.findall(r'^  \["(.+?)", ', (STATIC / "words-de.js").read_text(), re.MULTILINE)
    ]
    category = [sentence.format("x") for name, sentence in CATEGORY.items() if name != "correction"]
    corrected = [CATEGORY["correction"].format(by) for by in CORRECTED_BY.values()]
    transfer = [
        transfer_reason({"transfer_rule": rule, "transfer_id": id_, "transfer_fee": fee})
        for rule in TRANSFER
        for id_, fee in ((None, None), ("x", None), ("x", 1))
    ]
    assert [each for each in category + corrected + transfer if not any(one.fullmatch(each) for one in known)] == []


@pytest.mark.requirement("page.answers")
def test_every_sentence_of_a_notice_is_said_in_german() -> None:
    day, amount = "2026-11-20", "1250.00 EUR"
    others = {"name": "Kino GmbH", "bank": "Hausbank", "n": "3", "days": "60"}
    values = {**dict.fromkeys(DAYS, day), **dict.fromkeys(AMOUNTS, amount), **others}
    said = [text_of(message, values) for message in TEXTS]
    assert [each for each in (*said, *TITLES.values()) if in_german(f"Giro: {each}") is None] == []
    assert in_german(text_of("charge.double", values)) == (
        "Kino GmbH hat 1,250.00 EUR am 20. November 2026 und noch einmal am 20. November 2026 abgebucht."
    )
