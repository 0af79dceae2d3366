"""GET /connections: where the user's accounts come from, how the last sync went, and when the next one is allowed."""

from handlers import integrity_sentences, json_shapes
from handlers.http.request import Request
from handlers.names import Json
from handlers.operations.covered_jobs import as_covered
from handlers.operations.selection import covered_accounts
from handlers.services import Services
from handlers.sync.outcomes import NOT_SYNCABLE, ONLY_ATTENDED
from handlers.sync.reminders import consent_reminder
from handlers.sync.stored_secrets import KEY_MISSING
from storage import accounts, connections, jobs
from storage.connections import StoredConnection
from storage.jobs import Job


def list_connections(services: Services, request: Request) -> Json:
    """List all connections that have not been removed, the oldest first, from one state of the store; under a grant of
    some accounts, only those that bring one of these."""
    caller, now = request.principal, services.clock.now()
    user_id = caller.user_id
    with services.of(user_id).transaction() as session:
        known = connections.of_user(session, user_id)
        owned = accounts.every(session, user_id)
        visible = covered_accounts([each for each in owned if not each.is_hidden], caller)
        brought, latest = connections.accounts_of(session, user_id), jobs.latest(session, user_id)
        if caller.coverage is not None:
            covered = {account.id for account in visible}
            known = [each for each in known if not covered.isdisjoint(brought.get(each.id, ()))]
            latest = {id_: as_covered(session, caller, job) for id_, job in latest.items()}
        next_at = {each.id: jobs.next_sync_at(session, user_id, [each.id]) for each in known}
        quotas = {each.id: services.sync_engine.quota(session, each, now=now) for each in known}
        today = services.clock.today()
        found = integrity_sentences.of_accounts(session, user_id, visible, today=today)
        taken_back = integrity_sentences.taken_back_lately(session, user_id, visible, today=today)
    wrong = integrity_sentences.warnings(found, visible)
    asked = integrity_sentences.questions_of(owned) if caller.coverage is None else {}
    return {
        "connections": [
            json_shapes.connection(
                each,
                [account for account in visible if account.id in brought.get(each.id, ())],
                latest.get(each.id),
                now=now,
                next_at=next_at[each.id],
                quota=quotas[each.id],
                reminder=consent_reminder(each, now=now),
                message=_message(services, each, latest.get(each.id)),
                wrong=[
                    text
                    for id_ in sorted(brought.get(each.id, ()))
                    for of_account in (asked, {} if caller.figures_only else taken_back, wrong)
                    for text in of_account.get(id_, ())
                ],
            )
            for each in known
        ]
    }


def _message(services: Services, connection: StoredConnection, last: Job | None) -> str | None:
    """A sentence on what the user should know of the connection; None if all is well."""
    if not services.sync_engine.has_key(connection):
        return KEY_MISSING
    if connection.status in NOT_SYNCABLE:
        return NOT_SYNCABLE[connection.status]
    if last is not None and last.error is not None:
        return last.error
    return ONLY_ATTENDED if connection.is_attended_only else None
