"""Commands that carry everything a user says about their bookings out of one store and into another."""

from pathlib import Path

from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.work.services import Services
from handlers.work.sync.statement_files import keep_account_words
from storage.annotations import anchors, portable
from storage.database import Transaction
from storage.importing import derivation
from storage.users import User


def export_words(services: Services, report: Report, *, user: User) -> None:
    """Print everything the user says as lines of JSON: own categories, rules, corrections, targets, annotations of
    bookings, and what they say of accounts and recurring payments."""
    with services.everybody.transaction() as session:
        for line in portable.lines(session, user.id):
            report.line(line)


def import_words(services: Services, report: Report, *, user: User, path: str) -> None:
    """Import lines as `export_words` prints them, except where the user has said something else here, apply them to the
    stored bookings, and report how many were imported."""
    now = services.clock.now()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not a text in UTF-8.") from error

    def work(session: Transaction) -> tuple[int, int, int]:
        count = portable.read(session, user.id, text, now=now)
        derivation.apply_rules(session, user.id, now=now)
        taken = keep_account_words(session, text, user=user, clock=services.clock)
        return count + taken.count, anchors.waiting(session, user.id), taken.absent

    count, waiting, absent = services.change(user.id, work)
    report.line(f"Imported {_entries(count)}.")
    if waiting:
        report.line(f"{quantity(waiting, 'annotation')} {'waits' if waiting == 1 else 'wait'} for bookings to come.")
    if absent:
        report.line(f"Left out: {_entries(absent)} about accounts or recurring payments that are not here yet.")
        report.note("Import the file again when they are here: nothing is taken over twice.")


def _entries(count: int) -> str:
    return f"{count} {'entry' if count == 1 else 'entries'}"
