"""The `splits` of an annotation: reads and shows the parts into which a person divides a booking."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.classification.rules import TAG_LENGTH_MAX, TAGS_MAX, ChosenCategory, is_tag
from analytics.minor_digits import in_digits, minor_digits
from handlers import json_shapes
from handlers.names import Json
from handlers.operations.categories.places import Place
from handlers.web.errors import BadRequest
from storage.annotations import annotations
from storage.annotations.annotation import (
    NOTE_LENGTH_MAX,
    SPLITS_MAX,
    SPLITS_MIN,
    Annotation,
    OwnCategory,
    Split,
    Tag,
    is_note,
)
from storage.database import Row

NOT_BY_A_BANK = "splits: this entry was written by the service and has no parts"


def parts_of(
    row: Row,
    given: Sequence[Mapping[str, Any]],
    places: Sequence[Place],
    known: Mapping[str, Tag],
    *,
    now: datetime,
) -> list[Split]:
    """The parts into which the user divides this booking, each with its place; tags that are `known` keep their
    spelling. Raises BadRequest for wrong amounts, too many or too few parts, and an entry that the service wrote
    itself."""
    if not given:
        return []
    if row["is_adjusting_entry"]:
        raise BadRequest(NOT_BY_A_BANK)
    if not SPLITS_MIN <= len(given) <= SPLITS_MAX:
        raise BadRequest("splits: {least} to {limit} parts", least=SPLITS_MIN, limit=SPLITS_MAX)
    amounts = [Decimal(str(each["amount"])) for each in given]
    _check_amounts(amounts, row["amount"], row["currency"])
    return [
        _part(each, amount, place, known, now=now) for each, amount, place in zip(given, amounts, places, strict=True)
    ]


def check_bounds(annotation: Annotation) -> None:
    """Raise BadRequest if parts and booking together have longer notes or more tags than one booking may: exports write
    them in one line."""
    notes = [annotation.note, *(part.note for part in annotation.parts)]
    if annotation.parts and sum(len(note or "") for note in notes) > NOTE_LENGTH_MAX:
        raise BadRequest(
            "splits: notes of a transaction and its parts have at most {limit} characters together",
            limit=NOTE_LENGTH_MAX,
        )
    count = len(annotation.tags) + sum(len(part.tags) for part in annotation.parts)
    if annotation.parts and count > TAGS_MAX:
        raise BadRequest("splits: at most {limit} tags on a transaction and its parts together", limit=TAGS_MAX)


def part_shapes(
    parts: Sequence[Split], currency: str, names: Mapping[str, tuple[str, int]], own: Mapping[str, OwnCategory]
) -> list[Json]:
    """The parts as JSON of the contract, each tag in its first spelling, own categories by their names."""
    return [
        {
            "amount": json_shapes.money(part.amount, currency),
            "category": part.place.category,
            "detailedCategory": part.place.detailed_category,
            "note": part.note,
            "tags": [names[tag][0] if tag in names else said.name for tag, said in part.tags.items()],
            **own_shape(own.get(part.place.own_category_id or "")),
        }
        for part in parts
    ]


def own_shape(own: OwnCategory | None) -> Json:
    """The member `ownCategory` of a booking or a part; empty where it has none."""
    return {} if own is None else {"ownCategory": {"id": own.id, "name": own.name}}


def _check_amounts(amounts: Sequence[Decimal], whole: Decimal, currency: str) -> None:
    whole = in_digits(whole, currency)
    if not all(each * whole > 0 for each in amounts):
        raise BadRequest("splits: no amount may be zero, and each has the sign of the transaction's")
    if any(each != in_digits(each, currency) for each in amounts):
        raise BadRequest(
            "splits: amounts in {currency} have {digits} digits after the point",
            currency=currency,
            digits=minor_digits(currency),
        )
    if sum(amounts) != whole:
        raise BadRequest("splits: must add up to {whole}, not to {sum}", whole=f"{whole:f}", sum=f"{sum(amounts):f}")


def _part(
    given: Mapping[str, Any],
    amount: Decimal,
    place: Place,
    known: Mapping[str, Tag],
    *,
    now: datetime,
) -> Split:
    category, leaf, own_id = place
    if category is None:
        raise BadRequest("splits: each part needs a category, a detailedCategory or an ownCategoryId")
    note, names = given.get("note") or None, given.get("tags") or []
    if not is_note(note or ""):
        raise BadRequest(
            "splits: a note has at most {limit} characters, none of them a control character", limit=NOTE_LENGTH_MAX
        )
    if not all(map(is_tag, names)):
        raise BadRequest("splits: a tag has 1 to {limit} printable characters", limit=TAG_LENGTH_MAX)
    tags = annotations.tags_of(names, known, now=now)
    return Split(amount, ChosenCategory(category, leaf, own_id), note, tags)
