"""POST, PATCH and DELETE /categories: a user's own categories, each below a finer one or one of the thirteen."""

from collections.abc import Callable, Mapping
from typing import Any

from analytics.classification.rules import TAG_LENGTH_MAX, is_tag
from analytics.messages import Message
from auth.principal import Principal
from handlers.json_shapes import members
from handlers.names import Json
from handlers.operations.categories.places import place_named
from handlers.operations.selection import owner_of
from handlers.operations.words import changed_rows
from handlers.web.errors import BadRequest, Conflicting, NotFound
from handlers.web.request import Request
from handlers.work.services import Services
from storage.annotations import annotations, own_categories
from storage.annotations.annotation import OwnCategory
from storage.annotations.own_categories import OWN_CATEGORIES_MAX, NameTaken, TooMany
from storage.database import Session, Transaction
from storage.importing import derivation

NO_OWN_CATEGORY = "Category not found. GET /categories lists your own"
NO_NAME = Message("name: 1 to {limit} printable characters", limit=TAG_LENGTH_MAX)
TAKEN = "name: one of your categories there has it already"


def create_own_category(services: Services, request: Request, *, body: Mapping[str, Any]) -> Json:
    """Create an own category below a category or a finer one, and return it; it has no bookings yet. Raises Conflicting
    if the name is taken there, and BadRequest."""
    user_id = owner_of(request)
    category, leaf, _ = place_named({key: body[key] for key in ("category", "detailedCategory") if key in body}, {})
    name = valid_name(body["name"])
    return _change(services, user_id, lambda session: own_categories.add(session, user_id, name, category, leaf))


def rename_own_category(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Give an own category another name, and return it. Raises NotFound, BadRequest, and Conflicting if the name is
    taken there."""
    user_id, name = owner_of(request), valid_name(body["name"])

    def work(session: Transaction) -> OwnCategory:
        return own_categories.rename(session, user_id, own_category(session, user_id, id), name)

    return _change(services, user_id, work)


def delete_own_category(services: Services, request: Request, *, id: str) -> Json:
    """Delete an own category; its bookings stay in the category above it, and `changed` is the number of bookings that
    are classified otherwise now. Raises NotFound."""
    user_id, now = owner_of(request), services.clock.now()

    def work(session: Transaction) -> Json:
        own_categories.remove(session, user_id, own_category(session, user_id, id).id)
        changed = derivation.apply_rules(session, user_id, now=now)
        return {"changed": changed_rows.seen(changed, request.principal).height}

    return services.alone(user_id, work)


def own_categories_for(session: Session, caller: Principal) -> Mapping[str, OwnCategory]:
    """The user's own categories by id; for a caller who may not read all accounts, only those used on bookings they may
    read."""
    own = annotations.own_categories(session, caller.user_id)
    if caller.is_whole or not own:
        return own
    used = {id_ for id_, account_id in own_categories.uses(session, caller.user_id) if caller.covers(account_id)}
    return {id_: each for id_, each in own.items() if id_ in used}


def shape(own: OwnCategory) -> Json:
    """The own category as JSON (OwnCategory of the contract)."""
    return members(own, "id", "name", "category", "detailedCategory")


def valid_name(name: str) -> str:
    """The name as it is, if a category may have it (a few printable characters); else raises BadRequest."""
    if not is_tag(name):
        raise BadRequest(NO_NAME)
    return name


def own_category(session: Session, user_id: str, id_: str) -> OwnCategory:
    """The user's own category with this id; raises NotFound."""
    own = annotations.own_categories(session, user_id).get(id_)
    if own is None:
        raise NotFound(NO_OWN_CATEGORY)
    return own


def _change(services: Services, user_id: str, work: Callable[[Transaction], OwnCategory]) -> Json:
    try:
        return shape(services.alone(user_id, work))
    except NameTaken as error:
        raise Conflicting(TAKEN) from error
    except TooMany as error:
        raise BadRequest("name: at most {limit} categories of your own", limit=OWN_CATEGORIES_MAX) from error
