"""/transactions/{id}/annotation and /tags: what a person says about one booking, and the tags that they use."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from analytics.classification.rules import TAG_LENGTH_MAX, TAGS_MAX, ChosenCategory, is_tag
from auth.principal import Principal
from handlers.names import Json
from handlers.operations.categories.own import own_categories_for
from handlers.operations.categories.places import NOWHERE, PLACES, place_after
from handlers.operations.selection import readable_booking
from handlers.operations.words import parts
from handlers.operations.words.parts import own_shape
from handlers.operations.words.row_words import word_members
from handlers.web.errors import BadRequest
from handlers.web.request import Request
from handlers.work.services import Services
from storage import transactions
from storage.annotations import annotations
from storage.annotations.annotation import DIFFERENT_TAGS_MAX, NOTE_LENGTH_MAX, Annotation, OwnCategory, is_note
from storage.database import Row, Session, Transaction
from storage.importing import derivation

NOT_BY_A_BANK = "category: this entry was written by the service and is in no category of yours"


def get_annotation(services: Services, request: Request, *, id: str) -> Json:
    """Show what the user says about a booking: category, note, tags and parts; parts that no longer fit the booking's
    amount stand apart as `sleepingSplits`. Raises NotFound."""
    user_id = request.principal.user_id
    with services.of(user_id).transaction() as session:
        row = readable_booking(transactions.find(session, user_id, id), request.principal)
        return _shape(session, request, annotations.find(session, user_id, id), row)


def change_annotation(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Change what the user says about a booking, and return it: members left out stay, null or an empty list removes
    one. If the category of the booking or of a part changes, the booking is classified anew. Raises NotFound and
    BadRequest."""
    user_id, now = request.principal.user_id, services.clock.now()

    def work(session: Transaction) -> Json:
        row = readable_booking(transactions.find(session, user_id, id), request.principal)
        before = annotations.find(session, user_id, id)
        own = before if id not in annotations.said_by_others(session, user_id) else Annotation(id)
        after = annotation_after(session, user_id, row, own, body, now=now, caller=request.principal)
        annotations.say(session, user_id, after, now=now, day=row["booking_date"])
        if after.places != before.places:
            derivation.apply_rules(session, user_id, now=now, transaction_ids=[id])
        return _shape(session, request, after, row)

    return services.change(user_id, work, is_of_one=True)


def list_tags(services: Services, request: Request) -> Json:
    """List the tags on bookings that the caller may read, by name without regard to case, each with the number of its
    bookings."""
    user_id = request.principal.user_id
    names = annotations.of_user(services.of(user_id), user_id).names(request.principal.covers)
    by_name = sorted(names.items(), key=lambda each: each[0])
    return {"tags": [{"name": name, "count": count} for _, (name, count) in by_name]}


def annotation_after(
    session: Session,
    user_id: str,
    row: Row,
    annotation: Annotation,
    changes: Mapping[str, Any],
    *,
    now: datetime,
    caller: Principal | None = None,
) -> Annotation:
    """The annotation after these changes by `caller`, or by the user themselves if None, not stored yet. Raises
    BadRequest for values beyond their bounds, unknown categories, and a category or parts for an entry that the service
    wrote itself."""
    if row["is_adjusting_entry"] and any(changes.get(name) for name in PLACES):
        raise BadRequest(NOT_BY_A_BANK)
    if "note" in changes:
        if not is_note(changes["note"] or ""):
            raise BadRequest(
                "note: at most {limit} characters, none of them a control character", limit=NOTE_LENGTH_MAX
            )
        annotation = replace(annotation, note=changes["note"] or None)
    own: Mapping[str, OwnCategory] = {}
    if any(each.get("ownCategoryId") for each in (changes, *(changes.get("splits") or ()))):
        own = own_categories_for(session, caller) if caller else annotations.own_categories(session, user_id)
    category, leaf, own_id = place_after(annotation.place or NOWHERE, changes, own)
    annotation = replace(annotation, place=ChosenCategory(category, leaf, own_id) if category is not None else None)
    if "tags" in changes:
        names = changes["tags"] or []
        if not all(map(is_tag, names)):
            raise BadRequest("tags: 1 to {limit} printable characters each", limit=TAG_LENGTH_MAX)
        annotation = annotations.with_tags(annotation, names, now=now)
        if len(annotation.tags) > TAGS_MAX:
            raise BadRequest("tags: at most {limit} on one transaction", limit=TAGS_MAX)
    if "splits" in changes:
        given = changes["splits"] or []
        places = [place_after(NOWHERE, each, own) for each in given]
        annotation = replace(annotation, parts=parts.parts_of(row, given, places, annotation.own_tags, now=now))
    parts.check_bounds(annotation)
    if changes.keys() & {"tags", "splits"}:
        different = annotations.different_tags(session, user_id) | annotation.own_tags.keys()
        if len(different) > DIFFERENT_TAGS_MAX:
            raise BadRequest("tags: at most {limit} different ones", limit=DIFFERENT_TAGS_MAX)
    return annotation


def _shape(session: Session, request: Request, annotation: Annotation, row: Row) -> Json:
    user_id, currency = request.principal.user_id, row["currency"]
    names = annotations.spellings(session, user_id, annotation).names(request.principal.covers)
    places = (annotation.place, *(part.place for part in annotation.parts))
    is_owned = any(place.own_category_id for place in places if place is not None)
    own = annotations.own_categories(session, user_id) if is_owned else {}
    category, leaf, own_id = annotation.place or NOWHERE
    chosen = {"category": category, "detailedCategory": leaf, **own_shape(own.get(own_id or ""))}
    if not annotation.parts or annotation.fits(row):
        return {**chosen, **word_members(annotation, names, currency, own)}
    asleep = parts.part_shapes(annotation.parts, currency, names, own)
    return {**chosen, **word_members(replace(annotation, parts=()), names, currency, own), "sleepingSplits": asleep}
