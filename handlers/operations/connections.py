"""GET /connections: where the user's accounts come from, how the last sync went, and when the next one is allowed."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from analytics.messages import Message, message
from auth.principal import PAGE
from handlers import integrity_sentences
from handlers.json_shapes import instant, members
from handlers.names import Json
from handlers.operations.covered_jobs import hide_uncovered
from handlers.operations.selection import covered_accounts
from handlers.web.request import Request
from handlers.work.services import Services
from handlers.work.sync.outcomes import NOT_SYNCABLE, ONLY_ATTENDED
from handlers.work.sync.reminders import consent_reminder
from handlers.work.sync.stored_secrets import KEY_MISSING
from storage import accounts, connections, jobs
from storage.connections import NEED_USER, SHARED, StoredConnection
from storage.jobs import Job


def list_connections(services: Services, request: Request) -> Json:
    """List all connections that have not been removed, the oldest first, from one state of the store; under a grant of
    some accounts, only those that bring one of these. What others share is shown on the page of this server alone."""
    caller, now = request.principal, services.clock.now()
    user_id = caller.user_id
    with services.of(user_id).transaction() as session:
        known = connections.of_user(session, user_id)
        owned = accounts.every(session, user_id)
        visible = covered_accounts([each for each in owned if not each.is_hidden], caller)
        brought, latest = connections.accounts_of(session, user_id), jobs.newest_by_connection(session, user_id)
        if caller.client_id != PAGE:
            known = [each for each in known if each.connector not in SHARED]
        known = _each_person_once(known, brought)
        if not caller.is_whole:
            covered = {account.id for account in visible}
            known = [each for each in known if not covered.isdisjoint(brought.get(each.id, ()))]
        if caller.coverage is not None:
            latest = {id_: hide_uncovered(session, caller, job) for id_, job in latest.items()}
        next_at = {each.id: jobs.next_sync_at(session, user_id, [each.id]) for each in known}
        quotas = {each.id: services.sync_engine.quota(session, each, now=now) for each in known}
        today = services.clock.today()
        found = integrity_sentences.of_accounts(session, user_id, visible, today=today)
        taken_back = integrity_sentences.taken_back_lately(session, user_id, visible, today=today)
    wrong = integrity_sentences.warnings(found, visible)
    asked = integrity_sentences.questions_of(covered_accounts(owned, caller)) if caller.is_whole else {}
    warnings = (asked, {} if caller.figures_only else taken_back, wrong)

    def shape(each: StoredConnection) -> Json:
        """The connection as JSON (Connection of the contract)."""
        ids, last, quota = brought.get(each.id, ()), latest.get(each.id), quotas[each.id]
        synced = [account.last_synced_at for account in visible if account.id in ids and account.last_synced_at]
        is_syncing, needs_user = last is not None and not last.is_final, each.status in NEED_USER
        allowed_at = [next_at[each.id], quota.resets_at(now) if quota is not None and not quota.remaining else None]
        waits_until = max((moment for moment in allowed_at if moment is not None and moment > now), default=None)
        left = each.consent_expires_at - now if each.consent_expires_at is not None else None
        doubts = [text for id_ in sorted(ids) for of_account in warnings for text in of_account.get(id_, ())]
        return {
            "id": each.id,
            "bankName": each.bank_name,
            "source": each.connector,
            "status": each.status,
            "accountIds": [account.id for account in visible if account.id in ids],
            "createdAt": instant(each.created_at),
            "lastSyncedAt": instant(max(synced, default=None)),
            "lastSync": _last_sync(last) if last is not None else None,
            "isSyncing": is_syncing,
            "canSync": not (is_syncing or needs_user or each.is_attended_only or each.connector in SHARED)
            and waits_until is None,
            "nextSyncAllowedAt": instant(waits_until),
            "needsUser": needs_user,
            "message": message(said) if (said := _message(services, each, last)) is not None else None,
            "warnings": [*_of_connection(each, last, now), *doubts],
            "consentExpiresAt": instant(each.consent_expires_at),
            "consentDaysLeft": max(left.days, 0) if left is not None else None,
            "quota": members(quota, "limit", "used", "remaining") | {"resetsAt": instant(quota.resets_at(now))}
            if quota is not None
            else None,
        }

    return {"connections": [shape(each) for each in known]}


def _each_person_once(known: Sequence[StoredConnection], brought: dict[str, set[str]]) -> list[StoredConnection]:
    """The connections, of those to one person who shares the first, which then has `brought` what all of them have."""
    first: dict[str, StoredConnection] = {}
    for each in known:
        shown = first.setdefault(each.bank_name if each.connector in SHARED else each.id, each)
        brought[shown.id] = brought.get(shown.id, set()) | brought.get(each.id, set())
    return list(first.values())


def _of_connection(connection: StoredConnection, last: Job | None, now: datetime) -> Iterator[Message]:
    """What is to be said of a connection as a whole: that its consent ends, and what its latest sync refused."""
    if (reminder := consent_reminder(connection, now=now)) is not None:
        yield reminder
    for refusal in last.refusals if last is not None else ():
        yield Message("{name}: {reason}", name=refusal.name, reason=message(refusal.reason))


def _last_sync(value: Job) -> Json:
    """The latest sync job as JSON (LastSync of the contract)."""
    return {
        "syncId": value.id,
        "status": value.status,
        "newTransactions": value.new_transactions if value.status == "completed" else None,
        "error": message(value.error) if value.error is not None else None,
        "finishedAt": instant(value.updated_at) if value.is_final else None,
    }


def _message(services: Services, connection: StoredConnection, last: Job | None) -> str | None:
    """A sentence on what the user should know of the connection; None if all is well. In this order: the key to its
    secrets is missing, its status forbids syncs, its last sync failed, it is synced only while the person is
    present."""
    if not services.sync_engine.has_key(connection):
        return KEY_MISSING
    if connection.status in NOT_SYNCABLE:
        return NOT_SYNCABLE[connection.status]
    if last is not None and last.error is not None:
        return last.error
    return ONLY_ATTENDED if connection.is_attended_only else None
