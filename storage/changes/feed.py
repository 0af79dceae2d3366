"""The feed of changes to a user's transactions and accounts since a state of their data (`Store.state`).

Each transaction bears the state in which it was added and the one in which it last changed; a deleted one leaves its id
in `removed`. What accounts show is compared when a transaction of the store ends (`storage.changes.account_states`).
"""

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

import polars as pl

from storage import accounts, connections
from storage.accounts import StoredAccount
from storage.connections import Status
from storage.database import Row, Session, Transaction, set_values
from storage.transactions import DETAIL_COLUMNS, PORTION_ROWS, Selection

REMEMBERED_FOR = timedelta(days=400)  # how long removals are kept; whoever asks later has to read everything anew
AFTER_ALL = "~"  # sorts after every place
REMOVED = "-"  # sorts before digits
LAST_DAY, DIGITS = date.max.toordinal(), 7
STATES: dict[str, pl.DataType] = {"added_state": pl.Int64(), "changed_state": pl.Int64()}


class Position(NamedTuple):
    """A client's position in the feed: it has read all changes of earlier states, and of this state those up to this
    `place`. Places are texts that sort as what they stand for is read: transactions that were removed, by id
    (`removed_at`); then the others in the order in which they lie, the latest booking date first (`changed_at`)."""

    state: int
    place: str


def removed_at(id_: str) -> str:
    """The place of a removed transaction among the changes of a state."""
    return f"{REMOVED}{id_}"


def changed_at(day: date, id_: str) -> str:
    """The place of a new or changed transaction among the changes of a state."""
    return f"{LAST_DAY - day.toordinal():0{DIGITS}}{id_}"


def _day_and_id(place: str) -> tuple[date, str]:
    """The day and id of the last transaction at this place or before it, and a day after all others where there is
    none, as in a cursor of an earlier version, which had only an id."""
    day = place[:DIGITS]
    return (date.fromordinal(LAST_DAY - int(day)), place[DIGITS:]) if day.isdecimal() else (date.max, "")


class AccountFilter(NamedTuple):
    """The accounts whose removed transactions are asked for: these, or (`is_all_but`) all but these; by default all."""

    ids: Collection[str] = ()
    is_all_but: bool = True


class AccountState(NamedTuple):
    """An account with the states in which it was added and last changed; `shown` is it and its connection's status,
    None for one that is gone or hidden, in which case `changed_state` is that of going."""

    id: str
    added_state: int
    changed_state: int
    shown: tuple[StoredAccount, Status] | None


def mark_changed(session: Transaction, user_id: str, ids: Sequence[str]) -> None:
    """Mark these transactions as changed in the state in which this transaction of the store ends."""
    for first in range(0, len(ids), PORTION_ROWS):  # all ids of a long history in one statement take some 50 MB
        of_some = {"user_id": user_id, "id": list(ids[first : first + PORTION_ROWS])}
        set_values(session, "transactions", of_some, changed_state=session.coming_state(user_id))


def added_states(session: Session, user_id: str, ids: Sequence[str]) -> pl.DataFrame:
    """The states in which these transactions were added, to be kept when they are written again: `id`,
    `added_state`."""
    return session.frame(
        "SELECT id, added_state FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])",
        user_id,
        ids,
        schema={"id": pl.String(), "added_state": STATES["added_state"]},
    )


def record_removed(session: Transaction, user_id: str, rows: pl.DataFrame) -> None:
    """Record for clients that ask for changes that these transactions (`id`, `account_id`), which the caller deletes,
    are gone; those of hidden accounts were never shown and are left out."""
    if rows.is_empty():
        return
    present = "SELECT id FROM account_states WHERE user_id = $1 AND removed_state IS NULL"
    gone = rows.filter(pl.col("account_id").is_in([row["id"] for row in session.rows(present, user_id)]))
    for some in gone["id"].to_frame().iter_slices(PORTION_ROWS):
        session.execute(
            f"DELETE FROM removed WHERE user_id = $1 AND id = ANY($2::TEXT[]) AND account_id IN ({present})",
            *(user_id, some["id"].to_list()),
        )
    session.append(
        "removed",
        gone.select("id", "account_id", user_id=pl.lit(user_id), removed_state=pl.lit(session.coming_state(user_id))),
    )


def changed_transactions(
    session: Session, user_id: str, account_ids: Sequence[str] | None, *, after: Position, limit: int
) -> list[Row]:
    """Details and states of the next `limit` transactions that were added or changed after this position, in the order
    of the feed: state, then booking date, the latest first, then id; of these accounts, or (None) of all that are not
    hidden."""
    condition, values = Selection(account_ids=account_ids).condition(user_id)
    at, query = len(values) + 1, f"SELECT {DETAIL_COLUMNS}, {', '.join(STATES)} FROM transactions WHERE {condition}"
    rows: list[Row] = []
    if after.place != AFTER_ALL:  # a large import is one state: the rest of it, by the day up to which it was read
        rows += session.rows(
            f"{query} AND changed_state = ${at} AND booking_date <= ${at + 1}"
            f" AND (booking_date < ${at + 1} OR id > ${at + 2}) ORDER BY booking_date DESC, id LIMIT {int(limit)}",
            *(*values, after.state, *_day_and_id(after.place)),
        )
    if len(rows) < limit:
        rows += session.rows(
            f"{query} AND changed_state > ${at} ORDER BY changed_state, booking_date DESC, id"
            f" LIMIT {int(limit) - len(rows)}",
            *(*values, after.state),
        )
    return rows


def removed_transactions(
    session: Session, user_id: str, accounts_meant: AccountFilter, *, after: Position, since: int, limit: int
) -> list[Row]:
    """The next `limit` transactions (`id`, `account_id`, `removed_state`) that were removed after this position, by
    state and id; those removed in the state `since` or before are left out."""
    is_read = after.place == AFTER_ALL or after.place[:DIGITS].isdecimal()  # changed ones come after all removed ones
    last = AFTER_ALL if is_read else after.place[1:] if after.place.startswith(REMOVED) else ""
    return session.rows(
        "SELECT id, account_id, removed_state FROM removed WHERE user_id = $1 AND removed_state > $2"
        " AND (removed_state > $3 OR (removed_state = $3 AND id > $4)) AND (account_id = ANY($5::TEXT[])) <> $6"
        f" ORDER BY removed_state, id LIMIT {int(limit)}",
        *(user_id, since, after.state, last, list(accounts_meant.ids), accounts_meant.is_all_but),
    )


def accounts_by_state(session: Session, user_id: str) -> list[AccountState]:
    """All accounts that the user has or had, hidden ones as gone, with their states, in no particular order."""
    statuses = connections.statuses(session, user_id)
    shown = {each.id: each for each in accounts.of_user(session, user_id)}
    found = []
    for row in session.rows(
        "SELECT id, added_state, changed_state, removed_state FROM account_states WHERE user_id = $1", user_id
    ):
        account = shown.get(row["id"])
        now = (account, statuses[account.connection_id]) if account is not None else None
        changed = row["removed_state"] if account is None else row["changed_state"]
        found.append(AccountState(row["id"], row["added_state"], changed, now))
    return found


def forget_removed(session: Session, *, before: datetime) -> None:
    """Delete records of what was gone before this time; the journal tells which states had been reached by then."""
    session.execute(
        "DELETE FROM removed WHERE EXISTS (SELECT 1 FROM journal AS j WHERE j.user_id = removed.user_id"
        " AND j.sequence >= removed.removed_state AND j.recorded_at < $1)",
        before,
    )
