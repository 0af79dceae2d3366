"""Commands on past imports: list them, undo one."""

from handlers.commands.control_socket import Report
from handlers.commands.counts import counted
from handlers.services import Services
from handlers.sync.detection import detect_after_import
from storage import accounts, connections, users
from storage.undo_and_merge import rebuild, undoable_imports


def list_imports(services: Services, report: Report, *, user: str) -> None:
    """List the imports and syncs that can be undone, oldest first."""
    owner = users.named(services.everybody, user)
    names = {each.id: each.called for each in accounts.every(services.everybody, owner.id)}
    for each in undoable_imports.of_user(services.everybody, owner.id):
        source = connections.find(services.everybody, owner.id, each.connection_id)
        cells = (
            each.job_id,
            f"{each.imported_at:%Y-%m-%d %H:%M}",
            ", ".join(each.labels) or (source.bank_name if source else ""),
            ", ".join(names[id_] for id_ in each.account_ids),
            f"{each.new or 0} new",
        )
        report.line("\t".join(cells))
    older = undoable_imports.older_imports(services.everybody, owner.id)
    if older:
        report.note(
            f"{counted(older, 'older file')} arrived before imports were recorded and cannot be undone."
            " `bankdata accounts delete` deletes a whole account."
        )


def undo_import(services: Services, report: Report, *, user: str, import_id: str) -> None:
    """Remove what an import brought, as if it had never been made; imports before and after it stay."""
    owner = users.named(services.everybody, user)
    now = services.clock.now()
    rebuilt = services.everybody.atomically(
        lambda session: rebuild.undo(session, user=owner, job_id=import_id, now=now)
    )
    detect_after_import(services.everybody, [owner.id], today=services.clock.today())
    gone = len(rebuilt.accounts_gone)
    report.line(
        f"Taken back: {counted(rebuilt.removed, 'booking')}"
        + (f" and {counted(gone, 'account')}" if gone else "")
        + "."
    )
    if rebuilt.added:
        report.note(
            f"{counted(rebuilt.added, 'booking')} of other imports had been hidden behind them and are shown again."
        )
