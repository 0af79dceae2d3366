"""Reads from requests where bookings belong: in a category, a finer one, or an own category below either."""

from collections.abc import Mapping
from typing import Any

from analytics.classification.facts import LEAVES, category_of
from analytics.classification.rules import ChosenCategory
from handlers.web.errors import BadRequest
from storage.annotations.annotation import OwnCategory

Place = tuple[str | None, str | None, str | None]
"""Category, finer category, own category."""
PLACES = ("category", "detailedCategory", "ownCategoryId")
NOWHERE: Place = (None, None, None)
NO_PLACE = "body: give category, detailedCategory or ownCategoryId"
NO_OWN_CATEGORY = "ownCategoryId: must be one that GET /categories lists"


def place_after(before: Place, changes: Mapping[str, Any], own: Mapping[str, OwnCategory]) -> Place:
    """The place after these changes of `category`, `detailedCategory` and `ownCategoryId`: a category removes what lay
    below the old one, a finer category also sets the category above it, an own category sets both, and null removes
    one. `own` has the own categories by id. Raises BadRequest for unknown ones and for contradictions."""
    category, leaf, own_id = before
    if "category" in changes:
        category, leaf, own_id = changes["category"], None, None
    if "detailedCategory" in changes:
        leaf = changes["detailedCategory"]
        if leaf is None:
            own_id = own_id if before[1] is None else None
        else:
            if leaf not in LEAVES:
                raise BadRequest("detailedCategory: must be one that GET /categories lists")
            if changes.get("category") not in (None, category_of(leaf)):
                raise BadRequest("detailedCategory: lies below {category}", category=category_of(leaf))
            category, own_id = category_of(leaf), None
    if "ownCategoryId" in changes:
        own_id = changes["ownCategoryId"]
        if own_id is not None:
            if own_id not in own:
                raise BadRequest(NO_OWN_CATEGORY)
            _, _, category, leaf = own[own_id]
            given = (changes.get("category") or category, changes.get("detailedCategory") or leaf)
            if given != (category, leaf):
                raise BadRequest("ownCategoryId: lies below {category}", category=leaf or category)
    return category, leaf, own_id


def place_named(changes: Mapping[str, Any], own: Mapping[str, OwnCategory]) -> ChosenCategory:
    """The category, finer and own category that a request names, which has to name one; raises BadRequest."""
    category, leaf, own_id = place_after(NOWHERE, changes, own)
    if category is None:
        raise BadRequest(NO_PLACE)
    return ChosenCategory(category, leaf, own_id)
