"""Commands that carry everything a user says about their bookings out of one store and into another."""

from pathlib import Path

from handlers.commands.control_socket import CommandError, Report
from handlers.services import Services
from handlers.sync.detection import detect_after_import
from storage import users
from storage.database import Transaction
from storage.importing import derivation
from storage.words import portable


def export_words(services: Services, report: Report, *, user: str) -> None:
    """Print the user's rules, corrections and annotations as lines of JSON."""
    owner = users.named(services.everybody, user)
    with services.everybody.transaction() as session:
        for line in portable.lines(session, owner.id):
            report.line(line)


def import_words(services: Services, report: Report, *, user: str, path: str) -> None:
    """Import lines as `export_words` prints them, except where the user has said something else here, and apply them to
    the stored bookings."""
    owner, now = users.named(services.everybody, user), services.clock.now()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not a text in UTF-8.") from error

    def work(session: Transaction) -> int:
        count = portable.read(session, owner.id, text, now=now)
        derivation.apply_rules(session, owner.id, now=now)
        return count

    count = services.everybody.atomically(work)
    detect_after_import(services.everybody, [owner.id], today=services.clock.today())
    report.line(f"{count} taken over.")
