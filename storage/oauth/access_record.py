"""The access record, which shows who read what: sums by grant, hour and operation."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import polars as pl
from msgspec import Struct
from msgspec.structs import astuple

from analytics.frames import columns
from storage.database import Database, Session, Transaction, without_zone

SCHEMA = columns("user_id, grant_id, client_id, operation, hour, client_name, calls, refusals, last_at")
ROWS_AT_ONCE = 1000

Counted = tuple[str, str, str, str]
"""The key of one count: user, grant, app, operation; grant and app are empty for what a person did."""


class Count(Struct):
    """The number of calls, and how many of them were refused."""

    calls: int = 0
    refusals: int = 0


class Entry(Struct, frozen=True, kw_only=True):
    """A sum of calls: in a list, those of one `hour` (UTC); in an overview, those of all hours, of which `hour` is the
    first. Grant and app are empty for what the user did without one, `client_name` also for an app that was removed
    before the first call was written."""

    hour: datetime
    grant_id: str
    client_id: str
    client_name: str
    operation: str
    calls: int
    refusals: int
    last_at: datetime


def add(database: Database, counted: Mapping[Counted, Count], *, now: datetime) -> None:
    """Add counts to those of the present hour, with the present names of the apps, also while other processes do;
    counts of deleted users are dropped."""

    def work(session: Transaction) -> None:
        clients = sorted({client_id for _, _, client_id, _ in counted})
        rows = session.rows("SELECT id, name FROM oauth_clients WHERE id = ANY($1::TEXT[])", clients)
        names = {row["id"]: row["name"] for row in rows}
        user_ids = sorted({user_id for user_id, _, _, _ in counted})
        there = {row["id"] for row in session.rows("SELECT id FROM users WHERE id = ANY($1::TEXT[])", user_ids)}
        at = without_zone(now)
        hour = at.replace(minute=0, second=0, microsecond=0)
        # In the order of the key, so that of two processes writing the same rows one waits for the other, without
        # deadlock
        frame = pl.DataFrame(
            [
                (user_id, grant_id, client_id, operation, hour, names.get(client_id, ""), *astuple(count), at)
                for (user_id, grant_id, client_id, operation), count in sorted(counted.items())
                if user_id in there
            ],
            schema=SCHEMA,
            orient="row",
        )
        columns = ", ".join(SCHEMA)
        with session.stage("counted", frame):
            session.execute(
                f"INSERT INTO access_record ({columns}) SELECT {columns} FROM counted"
                " ON CONFLICT (user_id, grant_id, client_id, operation, hour) DO UPDATE SET"
                " calls = access_record.calls + excluded.calls,"
                " refusals = access_record.refusals + excluded.refusals,"
                " last_at = greatest(access_record.last_at, excluded.last_at)"
            )

    database.atomically(work)


def hours(session: Session, user_id: str, *, since: datetime) -> Iterator[list[Entry]]:
    """Yield the user's entries (one per hour, grant, app and operation) with a last call at or after `since`, the
    latest hour first, in lists of at most ROWS_AT_ONCE, to bound memory; the last list may be empty."""
    hour, grant_id, client_id, operation = datetime.max.replace(tzinfo=UTC), "", "", ""
    while True:
        rows = session.rows(
            "SELECT hour, grant_id, client_id, client_name, operation, calls, refusals, last_at FROM access_record"
            " WHERE user_id = $1 AND last_at >= $2"
            " AND (hour < $3 OR (hour = $3 AND (grant_id, client_id, operation) > ($4, $5, $6)))"
            f" ORDER BY hour DESC, grant_id, client_id, operation LIMIT {ROWS_AT_ONCE}",
            *(user_id, since, hour, grant_id, client_id, operation),
        )
        piece = [Entry(**row) for row in rows]
        yield piece
        if len(piece) < ROWS_AT_ONCE:
            return
        last = piece[-1]
        hour, grant_id, client_id, operation = last.hour, last.grant_id, last.client_id, last.operation


def overview(session: Session, user_id: str, *, since: datetime) -> list[Entry]:
    """The entries of hours with a call since a time, summed over these hours by grant, app and operation, the most
    recently used first."""
    rows = session.rows(
        "SELECT min(hour) AS hour, grant_id, client_id, max(client_name) AS client_name, operation,"
        " CAST(sum(calls) AS BIGINT) AS calls, CAST(sum(refusals) AS BIGINT) AS refusals, max(last_at) AS last_at"
        " FROM access_record WHERE user_id = $1 AND last_at >= $2 GROUP BY grant_id, client_id, operation"
        " ORDER BY last_at DESC, grant_id, operation",
        *(user_id, since),
    )
    return [Entry(**row) for row in rows]


def last_of(session: Session, user_id: str, operation: str) -> datetime | None:
    """When this was last done, without being refused, by the user themselves; None where it is not in the record."""
    rows = session.rows(
        "SELECT max(last_at) AS last_at FROM access_record"
        " WHERE user_id = $1 AND operation = $2 AND grant_id = '' AND calls > refusals",
        *(user_id, operation),
    )
    moment: datetime | None = rows[0]["last_at"]
    return moment


def remove_before(session: Session, moment: datetime) -> None:
    """Delete everybody's entries of hours that began before this time."""
    session.execute("DELETE FROM access_record WHERE hour < $1", moment)
