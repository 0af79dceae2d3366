"""GET, POST and DELETE /rules: a user's own rules, which decide before every table."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from analytics.classification.rules import InvalidRule, Rule, parse_rules, render_rules
from handlers.http.errors import BadRequest, NotFound
from handlers.http.request import Json, Request
from handlers.operations.selection import owner_of
from handlers.services import Services
from handlers.sync.detection import detect_after_import
from handlers.sync.file_import import kept_or_tried
from storage import rules
from storage.database import Transaction
from storage.importing import derivation


def list_rules(services: Services, request: Request) -> Json:
    """The rules in their order; the first that holds decides."""
    return {"rules": [asdict(rule) for rule in rules.of_user(services.database, owner_of(request))]}


def create_rule(services: Services, request: Request, *, dry_run: bool, body: Mapping[str, Any]) -> Json:
    """Add a rule behind the others, and apply it to what is stored. A dry run says the same and keeps nothing."""
    added: list[Rule] = []

    def behind(known: Sequence[Rule]) -> Sequence[Rule]:
        nonlocal added
        added, wanted = with_added(known, json.dumps(dict(body)))
        return wanted

    try:
        changed = _kept(services, request, behind, is_dry_run=dry_run)
    except InvalidRule as error:
        raise BadRequest(f"body: {error.reason}") from error
    return {**asdict(added[0]), "changed": changed}


def delete_rule(services: Services, request: Request, *, id: str) -> Json:
    """Forget a rule, and derive what it decided anew."""

    def others(known: Sequence[Rule]) -> Sequence[Rule]:
        kept = [rule for rule in known if rule.id != id]
        if len(kept) == len(known):
            raise NotFound("Rule not found")
        return kept

    return {"changed": _kept(services, request, others)}


def with_added(known: Sequence[Rule], text: str) -> tuple[list[Rule], list[Rule]]:
    """The rules of a text (JSON lines) under ids that no known one has, and all of them in their order; raises
    InvalidRule."""
    added = _with_free_ids(known, parse_rules(text))
    wanted = [*known, *added]
    parse_rules(render_rules(wanted))  # the whole must be a valid file, too
    return added, wanted


def _with_free_ids(known: Sequence[Rule], added: Sequence[Rule]) -> list[Rule]:
    taken = {rule.id for rule in known}
    numbered = []
    for rule in added:
        number = int(rule.id) if rule.id.isdigit() else 0
        wanted = rule.id
        while wanted in taken:
            number += 1
            wanted = str(number)
        taken.add(wanted)
        numbered.append(replace(rule, id=wanted))
    return numbered


def _kept(
    services: Services,
    request: Request,
    replaced: Callable[[Sequence[Rule]], Sequence[Rule]],
    *,
    is_dry_run: bool = False,
) -> int:
    """Keep what `replaced` makes of the known rules, and apply it; how many bookings are others now."""
    user_id, now = owner_of(request), services.clock.now()
    changed = 0

    def work(session: Transaction) -> None:
        nonlocal changed
        session.hold(user_id)
        rules.keep(session, user_id, replaced(rules.of_user(session, user_id)))
        changed = derivation.apply_rules(session, user_id, now=now)

    kept_or_tried(services.database, work, is_dry_run=is_dry_run)
    if not is_dry_run:
        detect_after_import(services.database, [user_id], today=services.clock.today())
    return changed
