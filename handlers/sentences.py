"""The words of the browser page, for pages and charts that are made on the server."""

import json
import re
from collections.abc import Collection, Mapping
from importlib import resources

WORD = re.compile(r'^  (\w+): ("(?:[^"\\]|\\.)*"),$', re.MULTILINE)


def words_of_page(language: str, names: Collection[str]) -> Mapping[str, str]:
    """The browser page's texts under these names, in the language `en` or `de`; unknown names are left out."""
    text = (resources.files("handlers.page") / "static" / f"words-{language}.js").read_text("utf-8")
    return {name: json.loads(word) for name, word in WORD.findall(text) if name in names}
