"""The events of each user, written by the commit that changes the data (`settle`): each event is stored once, in order,
and none for changes that were rolled back.

Events are found by comparing with what was reported before, so code that changes a transaction, a connection, a sync or
a balance only has to call `changes`.
"""

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct

from analytics.messages import unpack
from storage.database import Session, add_row, as_json, set_values, state_in
from storage.events import consent_notices
from storage.notices import from_state, stored
from storage.notices.ways import deliveries as letters
from storage.webhooks import deliveries

REMEMBERED_FOR = timedelta(days=30)
OF_A_COMMIT = 1000  # event numbers available to each state of the data


class StoredEvent(Struct, frozen=True, kw_only=True):
    """Something that happened to a user's data, with its number (`sequence`). `subject` is the id of the account,
    connection or recurring payment concerned; empty where several are."""

    sequence: int
    type: str
    subject: str
    data: Mapping[str, Any]
    recorded_at: datetime


def settle(
    session: Session,
    user_id: str,
    state: int,
    now: datetime,
    balances: Mapping[str, Decimal | None],
    written: Collection[str | None],
) -> None:
    """Store events for everything that this transaction, which ends in `state`, has changed; `balances` are those of
    the accounts that are shown, `written` the tables of which it has written rows. Has to be the last thing before the
    commit."""
    changed = _changed_transactions(session, user_id, state, balances.keys(), written)
    events = [
        *changed,
        *_changed_statuses(session, user_id),
        *_ended_syncs(session, user_id),
        *consent_notices.due(session, user_id, now),
        *_low_balances(session, user_id, balances, now),
        *(_payments(session, user_id) if "recurring_told" in written else ()),
    ]
    from_state.settle(session, user_id, now, balances, with_bookings=bool(changed))
    told = stored.told_now(session, user_id, now)
    letters.announce(session, user_id, told, now, state)
    events += told
    for number, (type_, subject, data) in enumerate(events):
        said = {"type": type_, "subject": subject, "data": as_json(data), "recorded_at": now}
        add_row(session, "events", user_id=user_id, sequence=state * OF_A_COMMIT + number, **said)
    if events:
        sequences = {state * OF_A_COMMIT + number: type_ for number, (type_, _, _) in enumerate(events)}
        deliveries.announce(session, user_id, sequences, now)


_Found = list[tuple[str, str, dict[str, Any]]]


def _changed_transactions(
    session: Session, user_id: str, state: int, shown: Collection[str], written: Collection[str | None]
) -> _Found:
    """One event with the numbers of added, changed and removed transactions of each account, by account id; none where
    there are no such transactions."""
    accounts: dict[str, list[int]] = {}
    marked = (
        "SELECT account_id, sum(CASE WHEN added_state = $2 THEN 1 ELSE 0 END)::BIGINT AS added, count(*) AS marked"
        " FROM transactions WHERE user_id = $1 AND changed_state = $2 GROUP BY account_id ORDER BY account_id"
    )
    for row in session.rows(marked, user_id, state) if "transactions" in written else ():
        if row["account_id"] in shown:
            accounts[row["account_id"]] = [row["added"], row["marked"] - row["added"], 0]
    gone = (
        "SELECT account_id, count(*) AS gone FROM removed WHERE user_id = $1 AND removed_state = $2"
        " GROUP BY account_id ORDER BY account_id"
    )
    for row in session.rows(gone, user_id, state) if "removed" in written else ():
        accounts.setdefault(row["account_id"], [0, 0, 0])[2] = row["gone"]
    return [("transactions.changed", "", {"accounts": accounts})] if accounts else []


def _changed_statuses(session: Session, user_id: str) -> _Found:
    """Events for connections whose status differs from the one last reported, and note that it is reported now; a new
    connection is no change."""
    changed = session.rows(
        "SELECT id, status, told_status FROM connections WHERE user_id = $1 AND status IS DISTINCT FROM told_status"
        " ORDER BY id",
        user_id,
    )
    if changed:
        session.execute("UPDATE connections SET told_status = status WHERE user_id = $1", user_id)
    return [
        ("connection.status_changed", row["id"], {"from": row["told_status"], "to": row["status"]})
        for row in changed
        if row["told_status"] is not None
    ]


def _ended_syncs(session: Session, user_id: str) -> _Found:
    ended = session.rows(
        "SELECT id, connection_id, status, new_transactions, error FROM jobs WHERE user_id = $1 AND NOT is_told"
        " AND status IN ('completed', 'failed') ORDER BY created_at, id",
        user_id,
    )
    if ended:
        set_values(session, "jobs", {"user_id": user_id, "id": [row["id"] for row in ended]}, is_told=True)
    return [
        (
            "sync.failed",
            row["connection_id"],
            {"syncId": row["id"], "error": row["error"] and str.__str__(unpack(row["error"]))},
        )
        if row["status"] == "failed"
        else ("sync.completed", row["connection_id"], {"syncId": row["id"], "newTransactions": row["new_transactions"]})
        for row in ended
    ]


def _low_balances(session: Session, user_id: str, balances: Mapping[str, Decimal | None], now: datetime) -> _Found:
    """One event for each account that is not hidden and whose balance has fallen below the user's limit. Notes which
    balances are below it since when, so that the next event comes only after a balance has not been below it in
    between."""
    found: _Found = []
    for row in session.rows(
        "SELECT account_id, amount, is_low FROM balance_alerts WHERE user_id = $1 ORDER BY account_id", user_id
    ):
        balance = balances.get(row["account_id"])
        if balance is None or (balance < row["amount"]) == row["is_low"]:
            continue
        alert = {"user_id": user_id, "account_id": row["account_id"]}
        set_values(session, "balance_alerts", alert, is_low=not row["is_low"], low_since=now.date())
        found += [] if row["is_low"] else [("balance.low", row["account_id"], {})]
    return found


def _payments(session: Session, user_id: str) -> _Found:
    """The events of recurring payments that `storage.recurring.looks` has noted in this transaction; deletes these
    notes."""
    noted = session.rows("SELECT untold FROM recurring_told WHERE user_id = $1 AND untold <> ''", user_id)
    if noted:
        set_values(session, "recurring_told", {"user_id": user_id}, untold="")
    return [(type_, id_, data) for row in noted for type_, id_, data in json.loads(row["untold"])]


def set_alert(session: Session, user_id: str, account_id: str, amount: object) -> None:
    """Set or (None) remove the limit below which the account's balance is reported; the commit reports a balance that
    is below it already, unless one below the former limit has been reported."""
    session.changes(user_id)
    if amount is None:
        session.execute("DELETE FROM balance_alerts WHERE user_id = $1 AND account_id = $2", user_id, account_id)
        return
    session.execute(
        "INSERT INTO balance_alerts (user_id, account_id, amount, is_low) VALUES ($1, $2, $3, FALSE)"
        " ON CONFLICT (user_id, account_id) DO UPDATE SET amount = excluded.amount",
        *(user_id, account_id, amount),
    )


def position(session: Session, user_id: str) -> int:
    """The highest event number that the user's data can have so far; later events have greater ones."""
    return position_of(state_in(session, user_id))


def position_of(state: int) -> int:
    """The highest event number that data in this state can have."""
    return (state + 1) * OF_A_COMMIT - 1


def after(session: Session, user_id: str, sequence: int, *, limit: int) -> list[StoredEvent]:
    """The user's next `limit` events with numbers above `sequence`, in their order."""
    rows = session.rows(
        "SELECT sequence, type, subject, data, recorded_at FROM events WHERE user_id = $1 AND sequence > $2"
        f" ORDER BY sequence LIMIT {int(limit)}",
        *(user_id, sequence),
    )
    return [StoredEvent(**{**row, "data": json.loads(row["data"])}) for row in rows]


def about(session: Session, user_id: str, account_ids: Collection[str]) -> list[StoredEvent]:
    """The user's events that name one of these accounts, in their order."""
    rows = session.rows(
        "SELECT sequence, type, subject, data, recorded_at FROM events WHERE user_id = $1 AND EXISTS ("
        "SELECT 1 FROM unnest($2::TEXT[]) AS named(id) WHERE subject = id OR data LIKE '%\"' || id || '\"%')"
        " ORDER BY sequence",
        *(user_id, sorted(account_ids)),
    )
    return [StoredEvent(**{**row, "data": json.loads(row["data"])}) for row in rows]


def forget(session: Session, *, before: datetime) -> None:
    """Delete the events recorded before this time."""
    session.execute("DELETE FROM events WHERE recorded_at < $1", before)
