"""Translates the service's English sentences into German, with the tables of the browser page, for the account pages
too."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from importlib import resources

TABLES = ("words-de.js", "more-words-de.js", "bank-sentences-de.js")
BEGIN = "export const sentences = ["
WORD = re.compile(r'^  (\w+): ("(?:[^"\\]|\\.)*"),$', re.MULTILINE)
PLACE = re.compile(r"\\\{(?:word)?\\\}")  # `{}` or `{word}`, as `re.escape` writes them


def in_german(sentence: str) -> str | None:
    """The sentence in German, or None where the tables do not have it; texts in its placeholders are translated too
    where the tables have them, and a subject before a colon, such as a file, stays."""
    for pattern, german in _table():
        if found := pattern.fullmatch(sentence):
            parts = [in_german(part) or part for part in found.groups()]
            return german.replace("{word}", "{}").format(*parts)
    name, colon, rest = sentence.partition(": ")  # the subject, such as an account or a file
    own = in_german(rest) if colon else None
    return f"{name}: {own}" if own is not None else None


def words_of_page(language: str, names: Collection[str]) -> Mapping[str, str]:
    """The browser page's texts under these names, in the language `en` or `de`; unknown names are left out."""
    text = (resources.files("handlers.page") / "static" / f"words-{language}.js").read_text("utf-8")
    return {name: json.loads(word) for name, word in WORD.findall(text) if name in names}


@lru_cache(maxsize=1)
def _table() -> Sequence[tuple[re.Pattern[str], str]]:
    """The pairs of pattern and German text. In the files, each line of a table is an array of two texts as JSON writes
    them."""
    folder = resources.files("handlers.page") / "static"
    modules = ((folder / name).read_text("utf-8") for name in TABLES)
    lines = (line.strip().rstrip(",") for each in modules for line in each.partition(BEGIN)[2].splitlines())
    pairs = [json.loads(line) for line in lines if line.startswith("[")]
    return [(re.compile(PLACE.sub("(.+)", re.escape(en)), re.DOTALL | re.IGNORECASE), de) for en, de in pairs]
