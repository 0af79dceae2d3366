"""Commands on a user's own rules and corrections: add, list, edit, order, remove, and apply them to stored bookings."""

from collections.abc import Callable, Sequence
from typing import Any

from analytics.classification.rules import InvalidRule, Rule, render_rules
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import counted
from handlers.commands.words.annotations import annotate
from handlers.commands.words.own_categories import place_named, placed
from handlers.http.errors import BadRequest, NotFound
from handlers.operations.corrections import remembered_under
from handlers.operations.rules import in_order, with_added, with_edited
from handlers.services import Services
from handlers.sync.detection import detect_after_import
from storage import rules, transactions, users
from storage.database import Transaction
from storage.importing import derivation
from storage.users import User

NO_RULE = "There is no rule with this id. `bankdata rules list` shows them."


def add_rules(services: Services, report: Report, *, user: str, text: str) -> None:
    """Append rules, given as JSON lines; a rule without an id gets one."""
    owner = users.named(services.everybody, user)

    def work(session: Transaction) -> int:
        session.hold(owner.id)
        added, wanted = with_added(rules.of_user(session, owner.id), text)
        rules.keep(session, owner.id, wanted)
        return len(added)

    count = services.everybody.atomically(work)
    report.note(
        f"Added {count}. They apply from now on; `bankdata rules apply` applies them to what is already stored."
    )


def list_rules(services: Services, report: Report, *, user: str) -> None:
    """List the rules in their order, as JSON lines that can be added again."""
    owner = users.named(services.everybody, user)
    for line in render_rules(rules.of_user(services.everybody, owner.id)).splitlines():
        report.line(line)


def remove_rule(services: Services, report: Report, *, user: str, rule_id: str) -> None:
    """Remove a rule; raises CommandError for an unknown id."""
    owner = users.named(services.everybody, user)

    def work(session: Transaction) -> None:
        session.hold(owner.id)
        known = rules.of_user(session, owner.id)
        kept = [rule for rule in known if rule.id != rule_id]
        if len(kept) == len(known):
            raise CommandError(NO_RULE)
        rules.keep(session, owner.id, kept)

    services.everybody.atomically(work)
    report.note("Removed.")


def edit_rule(services: Services, report: Report, *, user: str, rule_id: str, changes: dict[str, Any]) -> None:
    """Change a rule without moving it, and apply the rules; `category` may be any place as people type it."""
    owner = users.named(services.everybody, user)
    place = place_named(services.everybody, owner.id, changes["category"]) if changes.get("category") else None
    wanted = changes if place is None else {**changes, **placed(place)}
    _apply(
        services,
        report,
        owner,
        lambda session: _replace(session, owner, lambda known: with_edited(known, rule_id, wanted)),
    )


def order_rules(services: Services, report: Report, *, user: str, rule_ids: list[str]) -> None:
    """Put the rules into this order, in which they are asked, and apply them."""
    owner = users.named(services.everybody, user)
    _apply(services, report, owner, lambda session: _replace(session, owner, lambda known: in_order(known, rule_ids)))


def _replace(session: Transaction, owner: User, replaced: Callable[[Sequence[Rule]], Sequence[Rule]]) -> None:
    try:
        rules.keep(session, owner.id, replaced(rules.of_user(session, owner.id)))
    except InvalidRule as error:
        raise CommandError(error.reason) from error
    except BadRequest as error:
        raise CommandError("Every rule has to be named once. `bankdata rules list` shows them.") from error
    except NotFound as error:
        raise CommandError(NO_RULE) from error


def apply_rules(services: Services, report: Report, *, user: str) -> None:
    """Classify all stored bookings anew under the present rules."""
    _apply(services, report, users.named(services.everybody, user), lambda _: None)


def correct_category(
    services: Services, report: Report, *, user: str, transaction_id: str, place: str, is_one: bool
) -> None:
    """Remember a booking's correct place for all bookings of its counterpart, past and future; with `is_one`, for it
    alone."""
    owner = users.named(services.everybody, user)
    choice = place_named(services.everybody, owner.id, place)
    if is_one:
        annotate(services, report, user=user, transaction_id=transaction_id, changes=placed(choice), tags=[])
        return
    row = transactions.find(services.everybody, owner.id, transaction_id)
    if row is None:
        raise CommandError("The user has no transaction with this id.")
    key = remembered_under(row)
    if key is None:
        raise CommandError("This booking names no counterpart to remember. Write a rule: bankdata rules add.")
    _apply(services, report, owner, lambda session: rules.correct(session, owner.id, key, choice))


def _apply(services: Services, report: Report, owner: User, change: Callable[[Transaction], None]) -> None:
    now = services.clock.now()

    def work(session: Transaction) -> int:
        session.hold(owner.id)
        change(session)
        return derivation.apply_rules(session, owner.id, now=now).height

    changed = services.everybody.atomically(work)
    detect_after_import(services.everybody, [owner.id], today=services.clock.today())
    report.line(f"{counted(changed, 'booking')} changed.")
