"""Commands on a user's own rules and corrections: add, list, edit, order, remove, and apply them to stored bookings."""

from collections.abc import Callable, Sequence
from typing import Any

from analytics.classification.rules import InvalidRule, Rule, render_rules
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.commands.words.annotations import annotate
from handlers.commands.words.own_categories import place_named
from handlers.operations.corrections import key_of
from handlers.operations.rules import in_order, rules_with, with_edited, without
from handlers.web.errors import BadRequest, NotFound
from handlers.work.services import Services
from storage import rules, transactions
from storage.annotations.portable import place_members
from storage.database import Transaction
from storage.importing import derivation
from storage.users import User

NO_RULE = "There is no rule with this id. `bankdata rules list` shows them."


def add_rules(services: Services, report: Report, *, user: User, text: str) -> None:
    """Append rules, given as JSON lines, to the user's; a rule without an id gets one. Stored bookings stay as they are
    until the rules are applied."""

    def work(session: Transaction) -> int:
        added, wanted = rules_with(rules.of_user(session, user.id), text)
        rules.keep(session, user.id, wanted)
        return len(added)

    count = services.alone(user.id, work)
    report.note(
        f"Added {count}. They apply from now on; `bankdata rules apply` applies them to what is already stored."
    )


def list_rules(services: Services, report: Report, *, user: User) -> None:
    """List the user's rules in the order in which they are asked, as JSON lines that can be added again."""
    for line in render_rules(rules.of_user(services.everybody, user.id)).split("\n")[:-1]:
        report.line(line)


def remove_rule(services: Services, report: Report, *, user: User, rule_id: str) -> None:
    """Remove a rule, which leaves stored bookings as they are; raises CommandError for an unknown id."""
    services.alone(user.id, lambda session: _replace(session, user, lambda known: without(known, rule_id)))
    report.note("Removed.")


def edit_rule(services: Services, report: Report, *, user: User, rule_id: str, changes: dict[str, Any]) -> None:
    """Change a rule without moving it, apply the rules to stored bookings, and report how many changed; `category` may
    be any place as people type it."""
    place = place_named(services.everybody, user.id, changes["category"]) if changes.get("category") else None
    wanted = changes if place is None else {**changes, **place_members(place)}
    _apply(
        services,
        report,
        user,
        lambda session: _replace(session, user, lambda known: with_edited(known, rule_id, wanted)),
    )


def order_rules(services: Services, report: Report, *, user: User, rule_ids: list[str]) -> None:
    """Put the rules into this order, in which they are asked, apply them to stored bookings, and report how many
    changed."""
    _apply(services, report, user, lambda session: _replace(session, user, lambda known: in_order(known, rule_ids)))


def _replace(session: Transaction, owner: User, replaced: Callable[[Sequence[Rule]], Sequence[Rule]]) -> None:
    try:
        rules.keep(session, owner.id, replaced(rules.of_user(session, owner.id)))
    except InvalidRule as error:
        raise CommandError(error.reason) from error
    except BadRequest as error:
        raise CommandError("Every rule has to be named once. `bankdata rules list` shows them.") from error
    except NotFound as error:
        raise CommandError(NO_RULE) from error


def apply_rules(services: Services, report: Report, *, user: User) -> None:
    """Classify all stored bookings anew under the present rules, and report how many changed."""
    _apply(services, report, user, lambda _: None)


def correct_category(
    services: Services, report: Report, *, user: User, transaction_id: str, place: str, is_one: bool
) -> None:
    """Remember a booking's correct place (category, finer or own category) for all bookings of its counterpart, past
    and future, and report how many changed; with `is_one`, for it alone."""
    choice = place_named(services.everybody, user.id, place)
    if is_one:
        annotate(services, report, user=user, transaction_id=transaction_id, changes=place_members(choice), tags=[])
        return
    row = transactions.find(services.everybody, user.id, transaction_id)
    if row is None:
        raise CommandError("The user has no transaction with this id.")
    key = key_of(row)
    if key is None:
        raise CommandError("This booking names no counterpart to remember. Write a rule: bankdata rules add.")
    _apply(services, report, user, lambda session: rules.correct(session, user.id, key, choice))


def _apply(services: Services, report: Report, owner: User, change: Callable[[Transaction], None]) -> None:
    now = services.clock.now()

    def work(session: Transaction) -> int:
        change(session)
        return derivation.apply_rules(session, owner.id, now=now).height

    report.line(f"{quantity(services.change(owner.id, work), 'booking')} changed.")
