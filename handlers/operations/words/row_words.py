"""Adds what a person says about single bookings to the rows of lists, for requests that ask for that and may read
it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from auth.principal import Principal
from auth.scopes import READ_ANNOTATIONS
from handlers.names import Json
from handlers.operations.words import parts
from handlers.operations.words.parts import own_shape
from handlers.web.errors import Forbidden
from handlers.work.cache.entries import Shown
from handlers.work.cache.user_data import UserData
from storage.annotations.annotation import Annotation, OwnCategory

ASKED = "annotation"
DETAILED = "detailedCategory"
OF_WORDS = frozenset({"tag", "ownCategory"})
"""Keys of groups that are made of what a person says."""
SILENT = Annotation("")


def asks_for_words(include: str | None) -> bool:
    """Whether the comma-separated `include` asks for annotations."""
    return include is not None and ASKED in map(str.strip, include.split(","))


def wants_words(arguments: Mapping[str, Any]) -> bool:
    """Whether these arguments of an operation need annotations to be read: by a `tag` or an `own_category`, as a filter
    or as groups, by a search in them, or because `include` asks for annotations."""
    filters = [arguments.get(name) for name in ("tag", "own_category", "search_in")]
    grouped = OF_WORDS.intersection(map(str.strip, (arguments.get("group_by") or "").split(",")))
    return any(each is not None for each in filters) or bool(grouped) or asks_for_words(arguments.get("include"))


def check_words(caller: Principal, include: str | None, *filters: str | None) -> None:
    """Raise Forbidden for a request for annotations by a caller who may not read them; a filter counts too, since
    annotations could be guessed by it."""
    if (any(each is not None for each in filters) or asks_for_words(include)) and READ_ANNOTATIONS not in caller.scopes:
        raise Forbidden("Insufficient scope. Required: {wanted}", wanted=READ_ANNOTATIONS)


def words_of(reading: UserData, caller: Principal, leaf: Shown | None) -> Callable[[str, str], Json]:
    """A function from a booking's id and currency to its members `note`, `tags`, `splits` and `ownCategory`; with
    `leaf`, for rows that do not show it anyway, also the finer category of a booking in an own category, as `leaf`
    shows it."""
    words = reading.words
    names = words.names(caller.covers)

    def members(id_: str, currency: str) -> Json:
        own_id, detailed = words.owned.get(id_, ("", None))
        finer = {DETAILED: leaf(detailed)} if own_id and leaf is not None else {}
        return {
            **finer,
            **own_shape(words.own.get(own_id)),
            **word_members(words.by_id.get(id_, SILENT), names, currency, words.own),
        }

    return members


def with_words(rows: Sequence[bytes], reading: UserData, caller: Principal, leaf: Shown | None) -> list[bytes]:
    """The rows of a page, which are JSON already, with the members that `words_of` (with this `leaf`) gives at their
    end. Raises Forbidden for a caller who may not read them."""
    check_words(caller, ASKED, None)
    said = words_of(reading, caller, leaf)
    each = [orjson.loads(row) for row in rows]
    members = [orjson.dumps(said(row["id"], row["currency"])) for row in each]
    return [row[:-1] + b"," + of_row[1:] for row, of_row in zip(rows, members, strict=True)]


def word_members(
    annotation: Annotation, names: Mapping[str, tuple[str, int]], currency: str, own: Mapping[str, OwnCategory]
) -> Json:
    """The JSON members for note, tags and parts, each tag in its first spelling (`names`); tags given by rules are
    listed apart in `ruleTags`, if there are any."""
    by_rules = [names[tag][0] for tag in annotation.rule_tags]
    return {
        "note": annotation.note,
        "tags": [names[tag][0] for tag in annotation.tags],
        "splits": parts.part_shapes(annotation.parts, currency, names, own),
        **({"ruleTags": by_rules} if by_rules else {}),
    }
