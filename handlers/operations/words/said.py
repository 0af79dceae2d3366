"""What a person says of single bookings, beside the rows of a list: for whoever asks, and may read it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from auth.principal import Principal
from auth.scopes import READ_ANNOTATIONS
from handlers.cache.entries import Shown
from handlers.cache.reader import Reading
from handlers.http.errors import BadRequest, Forbidden
from handlers.http.request import Json
from handlers.operations.words import parts
from handlers.operations.words.parts import own_shape
from storage.words.annotations import Annotation, OwnCategory

ASKED = "annotation"
DETAILED = "detailedCategory"
SILENT = Annotation("")


def asks_for_words(include: str | None) -> bool:
    """Whether `include` names annotations."""
    return include is not None and ASKED in map(str.strip, include.split(","))


def wants_words(arguments: Mapping[str, Any]) -> bool:
    """Whether what an operation is asked needs annotations."""
    filters = (arguments.get("tag"), arguments.get("own_category"))
    return filters != (None, None) or asks_for_words(arguments.get("include"))


def check_words(caller: Principal, include: str | None, tag: str | None, own_category: str | None = None) -> None:
    """Raises Forbidden for whoever asks for annotations and may not read them: by a filter they could be guessed."""
    if ((tag, own_category) != (None, None) or asks_for_words(include)) and READ_ANNOTATIONS not in caller.scopes:
        raise Forbidden(f"Insufficient scope. Required: {READ_ANNOTATIONS}")


def meant(
    reading: Reading,
    caller: Principal,
    tag: str | None,
    own_category: str | None,
    category: str | None = None,
    leaf: str | None = None,
) -> Sequence[str] | None:
    """The ids of the bookings with this tag and in this own category; None for all. Of a booking with parts one is in
    the other categories as well, where they are named. Raises BadRequest."""
    if (tag, own_category) == (None, None):
        return None
    words = reading.words
    tagged = words.tagged(tag) if tag is not None else list(words.accounts)
    if own_category is None:
        return tagged
    within = words.in_own(own_category)
    is_seen = caller.coverage is None or any(caller.covers(words.accounts[id_]) for id_ in within)
    if own_category not in words.own or not is_seen:
        raise BadRequest("ownCategory: must be an id that GET /categories lists")
    return [*set(words.in_own(own_category, category, leaf)).intersection(tagged)]


def words_of(reading: Reading, caller: Principal, leaf: Shown | None) -> Callable[[str, str], Json]:
    """What the members `note`, `tags`, `splits` and `ownCategory` of a booking say, by its id and currency, and beside
    an own category the finer one, as `leaf` shows it, unless that is told already."""
    words = reading.words
    names = words.names(caller.covers)

    def said(id_: str, currency: str) -> Json:
        own_id, detailed = words.owned.get(id_, ("", None))
        finer = {DETAILED: leaf(detailed)} if own_id and leaf is not None else {}
        return {
            **finer,
            **own_shape(words.own.get(own_id)),
            **told(words.by_id.get(id_, SILENT), names, currency, words.own),
        }

    return said


def with_words(rows: Sequence[bytes], reading: Reading, caller: Principal, leaf: Shown | None) -> list[bytes]:
    """The rows of a page, which are JSON already, with these members at their end. Raises Forbidden."""
    check_words(caller, ASKED, None)
    said = words_of(reading, caller, leaf)
    each = [orjson.loads(row) for row in rows]
    members = [orjson.dumps(said(row["id"], row["currency"])) for row in each]
    return [row[:-1] + b"," + of_row[1:] for row, of_row in zip(rows, members, strict=True)]


def told(
    annotation: Annotation, names: Mapping[str, tuple[str, int]], currency: str, own: Mapping[str, OwnCategory]
) -> Json:
    """Note, tags and parts, each tag as it was spelled first; tags of rules apart, where there are any."""
    by_rules = [names[tag][0] for tag in annotation.rule_tags]
    return {
        "note": annotation.note,
        "tags": [names[tag][0] for tag in annotation.tags],
        "splits": parts.told(annotation.parts, currency, names, own),
        **({"ruleTags": by_rules} if by_rules else {}),
    }
