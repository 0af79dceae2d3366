"""What a person says of single bookings, beside the rows of a list: for whoever asks, and may read it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from auth.principal import Principal
from auth.scopes import READ_ANNOTATIONS
from handlers.cache.reader import Reading
from handlers.http.errors import Forbidden
from handlers.http.request import Json
from handlers.operations.words import parts
from storage.words.annotations import Annotation

ASKED = "annotation"
SILENT = Annotation("")


def asks_for_words(include: str | None) -> bool:
    """Whether `include` names annotations."""
    return include is not None and ASKED in map(str.strip, include.split(","))


def wants_words(arguments: Mapping[str, Any]) -> bool:
    """Whether what an operation is asked needs annotations."""
    return arguments.get("tag") is not None or asks_for_words(arguments.get("include"))


def check_words(caller: Principal, include: str | None, tag: str | None) -> None:
    """Raises Forbidden for whoever asks for annotations and may not read them: by a filter they could be guessed."""
    if (tag is not None or asks_for_words(include)) and READ_ANNOTATIONS not in caller.scopes:
        raise Forbidden(f"Insufficient scope. Required: {READ_ANNOTATIONS}")


def words_of(reading: Reading, caller: Principal) -> Callable[[str, str], Json]:
    """What the members `note`, `tags` and `splits` of a booking say, by its id and currency."""
    words = reading.words
    names = words.names(caller.covers)

    def said(id_: str, currency: str) -> Json:
        return told(words.by_id.get(id_, SILENT), names, currency)

    return said


def with_words(rows: Sequence[bytes], reading: Reading, caller: Principal) -> list[bytes]:
    """The rows of a page, which are JSON already, with these members at their end. Raises Forbidden."""
    check_words(caller, ASKED, None)
    said = words_of(reading, caller)
    each = [orjson.loads(row) for row in rows]
    members = [orjson.dumps(said(row["id"], row["currency"])) for row in each]
    return [row[:-1] + b"," + of_row[1:] for row, of_row in zip(rows, members, strict=True)]


def told(annotation: Annotation, names: Mapping[str, tuple[str, int]], currency: str) -> Json:
    """Note, tags and parts, each tag as it was spelled first; tags of rules apart, where there are any."""
    by_rules = [names[tag][0] for tag in annotation.rule_tags]
    return {
        "note": annotation.note,
        "tags": [names[tag][0] for tag in annotation.tags],
        "splits": parts.told(annotation.parts, currency, names),
        **({"ruleTags": by_rules} if by_rules else {}),
    }
