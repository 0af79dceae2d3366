"""The operations of /rules: a user's own rules, which decide before any table, in the order that the user gives
them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from analytics.classification.rules import FIELDS, InvalidRule, Rule, parse_rules, render_rules, with_free_ids
from analytics.messages import message
from handlers.names import Json
from handlers.operations.selection import owner_of
from handlers.operations.words import changed_rows
from handlers.web.errors import BadRequest, NotFound
from handlers.web.request import Request
from handlers.work.services import Services
from storage import rules
from storage.database import Transaction
from storage.importing import derivation

NO_RULE = "Rule not found"
OF_SOME = ("detailedCategory", "ownCategoryId", "tags")
EVERY_RULE_ONCE = "ids: must name every rule once. GET /rules lists them"


def list_rules(services: Services, request: Request) -> Json:
    """List the user's rules in the order in which they are asked; the first that matches a booking decides."""
    user_id = owner_of(request)
    return {"rules": [shape(rule) for rule in rules.of_user(services.of(user_id), user_id)]}


def create_rule(
    services: Services, request: Request, *, dry_run: bool, include: str | None, body: Mapping[str, Any]
) -> Json:
    """Add a rule after the others, and apply the rules to stored bookings; return it with the number of bookings that
    changed. A dry run answers the same and stores nothing. Raises BadRequest for an invalid rule."""
    added: list[Rule] = []

    def behind(known: Sequence[Rule]) -> Sequence[Rule]:
        nonlocal added
        added, wanted = rules_with(known, json.dumps(dict(body)))
        return wanted

    kept, changed = _change_rules(services, request, behind, is_dry_run=dry_run, include=include)
    return {**_of_id(kept, added[0].id), **changed}


def change_rule(
    services: Services, request: Request, *, id: str, dry_run: bool, include: str | None, body: Mapping[str, Any]
) -> Json:
    """Change a rule without moving it, and apply the rules to stored bookings; a field that is left out stays as it is,
    and null removes what the rule gave. Return it with the number of bookings that changed. A dry run answers the same
    and stores nothing. Raises NotFound and BadRequest."""

    kept, changed = _change_rules(
        services, request, lambda known: with_edited(known, id, body), is_dry_run=dry_run, include=include
    )
    return {**_of_id(kept, id), **changed}


def order_rules(
    services: Services, request: Request, *, dry_run: bool, include: str | None, body: Mapping[str, Any]
) -> Json:
    """Put the rules into the order of `ids`, in which they are asked, and apply them to stored bookings; return how
    many changed. A dry run answers the same and stores nothing. Raises BadRequest unless every rule is named once."""

    return _change_rules(
        services, request, lambda known: in_order(known, body["ids"]), is_dry_run=dry_run, include=include
    )[1]


def delete_rule(services: Services, request: Request, *, id: str) -> Json:
    """Delete a rule, derive anew what it had decided, and return how many bookings changed. Raises NotFound."""

    return _change_rules(services, request, lambda known: without(known, id))[1]


def shape(rule: Rule) -> Json:
    """The rule as JSON; the fields that only some rules have (OF_SOME) are left out where empty."""
    said = {name: getattr(rule, field) for name, field in FIELDS.items()}
    return {name: value for name, value in said.items() if value or name not in OF_SOME}


def _of_id(kept: Sequence[Rule], id_: str) -> Json:
    return next(shape(rule) for rule in kept if rule.id == id_)


def rules_with(known: Sequence[Rule], text: str) -> tuple[list[Rule], list[Rule]]:
    """The rules of a text (JSON lines), with another id for each whose id a known rule has, and the known rules
    followed by these; raises InvalidRule."""
    added = with_free_ids(known, parse_rules(text))
    wanted = [*known, *added]
    parse_rules(render_rules(wanted))  # raises InvalidRule if all rules together are not valid
    return added, wanted


def with_edited(known: Sequence[Rule], id_: str, changes: Mapping[str, Any]) -> list[Rule]:
    """All rules in their order, with these changes made to the one with this id; they name fields of the contract, and
    unknown fields are ignored, as everywhere in a body. Raises NotFound and InvalidRule."""
    wanted = {FIELDS[name]: value for name, value in _whole_place(changes).items() if name in FIELDS and name != "id"}
    edited = [replace(rule, **wanted) for rule in known if rule.id == id_]
    if not edited:
        raise NotFound(NO_RULE)
    edited = parse_rules(render_rules(edited))
    return [edited[0] if rule.id == id_ else rule for rule in known]


def without(known: Sequence[Rule], id_: str) -> list[Rule]:
    """All rules in their order but the one with this id; raises NotFound."""
    others = [rule for rule in known if rule.id != id_]
    if len(others) == len(known):
        raise NotFound(NO_RULE)
    return others


def in_order(known: Sequence[Rule], ids: Sequence[str]) -> list[Rule]:
    """The rules in the order of `ids`; raises BadRequest unless `ids` names every rule once."""
    by_id = {rule.id: rule for rule in known}
    if sorted(by_id) != sorted(ids):
        raise BadRequest(EVERY_RULE_ONCE)
    return [by_id[id_] for id_ in ids]


def _whole_place(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, completed so that the place is consistent: a new category removes the finer and own category of the
    old one, and a new finer or own category removes the members above it, which then follow from it."""
    whole = dict(changes)
    if "category" in changes:
        whole = {"detailedCategory": None, "ownCategoryId": None, **whole}
    if "detailedCategory" in changes:
        whole = {"ownCategoryId": None, **({"category": None} if changes["detailedCategory"] else {}), **whole}
    if changes.get("ownCategoryId"):
        whole = {"category": None, "detailedCategory": None, **whole}
    return whole


def _change_rules(
    services: Services,
    request: Request,
    replaced: Callable[[Sequence[Rule]], Sequence[Rule]],
    *,
    is_dry_run: bool = False,
    include: str | None = None,
) -> tuple[list[Rule], Json]:
    """Store the rules that `replaced` makes of the known ones, and apply them; a dry run stores nothing. Returns the
    rules, and in JSON how many bookings changed and, if `include` asks for it, which. Raises BadRequest for invalid
    rules."""
    user_id, now = owner_of(request), services.clock.now()

    def work(session: Transaction) -> tuple[list[Rule], Json]:
        kept = rules.keep(session, user_id, replaced(rules.of_user(session, user_id)))
        changed = changed_rows.seen(derivation.apply_rules(session, user_id, now=now), request.principal)
        return kept, {"changed": changed.height, **changed_rows.examples(session, request, changed, include)}

    try:
        return services.change(user_id, work, is_dry_run=is_dry_run)
    except InvalidRule as error:
        raise BadRequest("body: {reason}", reason=message(error.reason)) from error
