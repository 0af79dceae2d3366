"""Sentences of the service, which speaks English, in German: the table of the page serves the account pages too."""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources

TABLE = "export const sentences = ["
PLACE = re.compile(r"\\\{(?:word)?\\\}")  # `{}` or `{word}`, as `re.escape` writes them


def in_german(sentence: str) -> str | None:
    """The sentence in German, with what stands in its places translated too where it is known; None for one that the
    table does not have."""
    for pattern, german in _table():
        if found := pattern.fullmatch(sentence):
            parts = [in_german(part) or part for part in found.groups()]
            return german.replace("{word}", "{}").format(*parts)
    return None


@lru_cache(maxsize=1)
def _table() -> Sequence[tuple[re.Pattern[str], str]]:
    """Each line of the table is an array of two texts as JSON writes them."""
    module = (resources.files("handlers.page") / "static" / "words-de.js").read_text("utf-8")
    lines = (line.strip().rstrip(",") for line in module.partition(TABLE)[2].splitlines())
    pairs = [json.loads(line) for line in lines if line.startswith("[")]
    return [(re.compile(PLACE.sub("(.+)", re.escape(en)), re.DOTALL | re.IGNORECASE), de) for en, de in pairs]
