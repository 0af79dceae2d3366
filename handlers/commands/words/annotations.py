"""The command that annotates one booking."""

from typing import Any

from handlers.commands.control_socket import CommandError, Report
from handlers.commands.words.own_categories import place_named
from handlers.operations.words.annotations import annotation_after
from handlers.work.services import Services
from storage import transactions
from storage.annotations import annotations
from storage.annotations.portable import place_members
from storage.database import Transaction
from storage.importing import derivation
from storage.users import User

UNKNOWN = "The user has no transaction with this id."


def annotate(
    services: Services, report: Report, *, user: User, transaction_id: str, changes: dict[str, Any], tags: list[str]
) -> None:
    """Change what the user says about one booking (its category, note, tags or parts), classify it anew, and detect
    recurring payments again; `tags` are added to its present ones. CommandError for an unknown booking."""
    now = services.clock.now()

    def work(session: Transaction) -> None:
        row = transactions.find(session, user.id, transaction_id)
        if row is None:
            raise CommandError(UNKNOWN)
        before = annotations.find(session, user.id, transaction_id)
        wanted = {**changes, "tags": [*(said.name for said in before.tags.values()), *tags]} if tags else changes
        if "splits" in changes:
            sign = "-" if row["amount"] < 0 else ""
            parts = [(f"{sign}{each['amount']}", each["place"]) for each in changes["splits"]]
            named = [{"amount": size, **place_members(place_named(session, user.id, name))} for size, name in parts]
            wanted = {**wanted, "splits": named}
        after = annotation_after(session, user.id, row, before, wanted, now=now)
        annotations.say(session, user.id, after, now=now)
        derivation.apply_rules(session, user.id, now=now, transaction_ids=[transaction_id])

    services.change(user.id, work)
    report.note("Saved.")
