"""What the service says in each language: catalogues in the format of gettext, one file of `words` for each. Sentences
are written in the code in English; every other text, such as the words of the pages, has a name there."""

import json
import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from importlib import resources
from operator import itemgetter
from typing import Any

import orjson
from msgspec import Struct

from analytics.messages import Amount, Message, Word, filled
from handlers.web.steps.request_headers import weights

ENGLISH = "en"
ACCEPT_CHARACTERS_MAX = 500  # of an Accept-Language that are looked at
_QUOTED = r'("[^\n]*"(?:\n"[^\n]*")*)'
_ENTRY = re.compile(rf"^(?:msgctxt {_QUOTED}\n)?msgid {_QUOTED}\nmsgstr {_QUOTED}$", re.MULTILINE)
_MONTHS = "January February March April May June July August September October November December"


class Language(Struct, frozen=True):
    """The texts of one language by context and id. The id of a sentence is its English template, with a capital letter
    and without a full stop."""

    language: str
    texts: Mapping[tuple[str, str], str]

    def said(self, text: Message) -> str | None:
        """The message in this language, with what stands in its places; None where the catalogue does not have it."""
        known = text.template[:1].upper() + text.template[1:]
        own = self.texts.get(("", known.removesuffix(".")))
        if own is None:
            return None
        return filled(own + "." if known.endswith(".") else own, text.arguments, self._written)

    def named(self, context: str) -> dict[str, str]:
        """The texts of a context by their names, in the order of the file."""
        return {name: text for (there, name), text in self.texts.items() if there == context}

    @property
    def _marks(self) -> dict[int, str]:
        written = self.texts["number", "1,234.56"]
        return {ord(","): written[1], ord("."): written[5]}

    def _written(self, value: Any) -> str:
        match value:
            case Message():
                return self.said(value) or str.__str__(value)
            case Word():
                return self.texts.get(("word", value), value.english)
            case Amount():
                return value.translate(self._marks)
            case list():
                return ", ".join(map(self._written, value))
            case date():
                month = self.texts["date", _MONTHS].split()[value.month - 1]
                return self.texts["date", "{day} {month} {year}"].format(day=value.day, month=month, year=value.year)
        return str(value)


def _languages() -> tuple[str, ...]:
    files = (resources.files("handlers") / "words").iterdir()
    return tuple(sorted(file.name.removesuffix(".po") for file in files if file.name.endswith(".po")))


LANGUAGES = _languages()
"""The languages that the service speaks, English among them, as codes of two letters."""


@lru_cache(maxsize=len(LANGUAGES))
def catalogue(language: str) -> Language:
    """The catalogue of one of `LANGUAGES`."""
    text = (resources.files("handlers") / "words" / f"{language}.po").read_text("utf-8")
    entries = [[_joined(each) for each in entry] for entry in _ENTRY.findall(text)]
    return Language(language, {(context, id_): own for context, id_, own in entries})


def _joined(quoted: str) -> str:
    """The text of strings in quotes, one on each line; empty where there is none."""
    whole = quoted.replace('"\n"', "")
    return str(json.loads(whole)) if "\\" in whole else whole[1:-1]


@lru_cache(maxsize=200)
def preferred(accept_language: str) -> str:
    """The language of ours to which an Accept-Language header gives the greatest weight (RFC 9110 section 12.5.4), the
    first of several; English if it names none of ours."""
    named = [
        (weight, tag.partition("-")[0]) for tag, weight in weights(accept_language[:ACCEPT_CHARACTERS_MAX]).items()
    ]
    spoken = [(weight, tag) for weight, tag in named if weight and tag in LANGUAGES]
    return max(spoken, key=itemgetter(0), default=(1.0, ENGLISH))[1]


def translated(body: Any, language: str) -> bytes | None:
    """The body as JSON with its messages in this language; None if it has none that the catalogue knows, or cannot be
    written by orjson."""
    is_translated = False

    def said(value: Any) -> str:
        nonlocal is_translated
        if not isinstance(value, str):
            raise TypeError
        own = catalogue(language).said(value) if isinstance(value, Message) else None
        is_translated |= own is not None
        return str.__str__(value) if own is None else own

    try:
        content = orjson.dumps(body, default=said, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        return None
    return content if is_translated else None
