"""The JSON shapes of events: ids and counts only, limited to what the listener's grant covers."""

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from analytics.recurring import news
from auth.principal import PAGE, Principal
from auth.scopes import READ_ACCOUNTS, READ_CASHFLOW, READ_TRANSACTIONS
from handlers.json_shapes import instant
from handlers.names import Json
from handlers.operations.covered_jobs import hide_uncovered
from handlers.operations.notices.covered import may_see
from storage import connections, jobs
from storage.changes.incarnation import Incarnation
from storage.database import Session
from storage.events.outbox import REMEMBERED_FOR, StoredEvent
from storage.notices.stored import NEW, OVER
from storage.webhooks.deliveries import Delivery

SIGNATURE_CHARACTERS = 24
_ID = re.compile(rf"evt_([0-9]{{1,19}})-([0-9]{{1,12}})-([0-9a-f]{{{SIGNATURE_CHARACTERS}}})", re.ASCII)


class EventIds(Struct, frozen=True, kw_only=True):
    """Writes and reads the signed event ids of one user; they do not outlive a restore of the store (`incarnation`)."""

    incarnation: Incarnation
    user_id: str

    def write(self, sequence: int, moment: datetime) -> str:
        """The id of the event with this sequence number and moment."""
        said = f"{sequence}-{int(moment.replace(tzinfo=UTC).timestamp())}"
        return f"evt_{said}-{self._signature(said)}"

    def read(self, text: str, now: datetime) -> int | None:
        """The sequence number in an id. None for a text that is no id, and for an id of another user, from before a
        restore of the store, or too old."""
        match = _ID.fullmatch(text)
        if match is None or not hmac.compare_digest(match[3], self._signature(f"{match[1]}-{match[2]}")):
            return None
        return int(match[1]) if int(match[2]) >= (now - REMEMBERED_FOR).replace(tzinfo=UTC).timestamp() else None

    def _signature(self, said: str) -> str:
        about = f"event\n{self.incarnation.id}\n{self.user_id}\n{said}"
        return hmac.digest(self.incarnation.key, about.encode(), "sha256").hex()[:SIGNATURE_CHARACTERS]


NEEDS: Mapping[str, str] = {
    "sync.completed": READ_ACCOUNTS,
    "sync.failed": READ_ACCOUNTS,
    "connection.status_changed": READ_ACCOUNTS,
    "consent.expiring": READ_ACCOUNTS,
    "balance.low": READ_ACCOUNTS,
    "transactions.changed": READ_TRANSACTIONS,
    news.NEW: READ_CASHFLOW,
    news.PRICE_CHANGED: READ_CASHFLOW,
    news.MISSED: READ_CASHFLOW,
    news.ENDED: READ_CASHFLOW,
    news.RETRACTED: READ_CASHFLOW,
    NEW: READ_ACCOUNTS,
    OVER: READ_ACCOUNTS,
}
"""By type of event: the scope that its listener must have; of a notice, its kind may need another one besides."""


def receives(caller: Principal, type_: str) -> bool:
    """Whether the caller may receive events of this type at all: they have the scope it needs and, unless it is about
    accounts and syncs, their grant is not of figures only."""
    is_of_bookings = NEEDS[type_] != READ_ACCOUNTS
    return NEEDS[type_] in caller.scopes and not (is_of_bookings and caller.figures_only)


def data_of(session: Session, caller: Principal, event: StoredEvent) -> Json | None:
    """The data of the event as JSON, as far as this caller's grant covers them; None if it covers nothing in the
    event."""
    if event.type == "transactions.changed":
        return _change_counts(caller, event.data["accounts"])
    if event.type == "balance.low":
        return {"accountId": event.subject} if caller.covers(event.subject) else None
    if event.type in (NEW, OVER):
        kind, about = event.data["kind"], event.data["accountIds"]
        return {"noticeId": event.subject, "kind": kind} if may_see(caller, kind, about) else None
    if NEEDS[event.type] == READ_CASHFLOW:
        further = {name: value for name, value in event.data.items() if name != "accountId"}
        return {"subscriptionId": event.subject, **further} if caller.covers(event.data["accountId"]) else None
    brought = connections.account_ids(session, caller.user_id, event.subject) if caller.coverage is not None else ()
    covered = any(caller.covers(each) for each in brought) or (caller.is_whole and not brought)
    return {**_of_sync(session, caller, event.data), "connectionId": event.subject} if covered else None


def id_of_event(delivery: Delivery, ids: EventIds) -> str:
    """The id of the event that is delivered, the same as in a stream of events; an event made for this webhook alone
    has one of its own."""
    if delivery.sequence is None:
        return delivery.event_id or ""
    return ids.write(delivery.sequence, delivery.made_at)


def shape(id_: str, type_: str, moment: datetime, data: Json) -> Json:
    """The JSON object of an event as it is sent."""
    return {"id": id_, "type": type_, "timestamp": instant(moment), "data": data}


def _change_counts(caller: Principal, accounts: Mapping[str, list[int]]) -> Json | None:
    covered = {id_: counts for id_, counts in accounts.items() if caller.covers(id_)}
    if not covered and caller.client_id != PAGE:  # which hears that a share has ended, and nothing of what it was
        return None
    added, modified, removed = (sum(each) for each in zip((0, 0, 0), *covered.values(), strict=True))
    return {"accountIds": list(covered), "added": added, "modified": modified, "removed": removed}


def _of_sync(session: Session, caller: Principal, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a sync event; under a grant of some accounts, error and count are those that the grant sees in the
    job."""
    if caller.coverage is None or "syncId" not in data:
        return data
    job = jobs.find(session, caller.user_id, data["syncId"])
    if job is None:  # a job that brought nothing has been forgotten
        return {name: None if name == "error" else value for name, value in data.items()}
    seen = hide_uncovered(session, caller, job)
    of_job = {"error": seen.error, "newTransactions": seen.new_transactions}
    return {name: of_job.get(name, value) for name, value in data.items()}
