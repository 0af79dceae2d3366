"""Files in and out: statements of any known format, and all that is booked in one file."""

from pathlib import Path

from handlers.commands.connections import bank_name
from handlers.commands.control_socket import Report
from handlers.commands.counts import counted
from handlers.commands.exports import export
from handlers.commands.imports import import_files
from handlers.services import Services
from storage import users


def import_statements(
    services: Services,
    report: Report,
    *,
    user: str,
    files: list[str],
    connection: str | None,
    account: str | None,
    is_dry_run: bool,
    is_json: bool,
) -> None:
    """Statement files of any known format."""
    import_files(
        services,
        report,
        user=users.named(services.database, user),
        files=files,
        connection=bank_name(connection) if connection else None,
        account=account,
        is_dry_run=is_dry_run,
        is_json=is_json,
    )


def export_bookings(services: Services, report: Report, *, user: str, format_: str, path: str) -> None:
    """All booked transactions of a user, into a file."""
    owner = users.named(services.database, user)
    count = export(
        services.database, owner.id, format_, Path(path), now=services.clock.now(), today=services.clock.today()
    )
    report.note(f"Exported {counted(count, 'transaction')}.")
