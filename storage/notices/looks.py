"""The last look at what each user might be told, and when the next one is due though nothing comes."""

import json
from collections.abc import Collection, Mapping
from datetime import date, timedelta

from msgspec import Struct

from storage.database import Session, Transaction, as_json, put_row, set_values
from storage.transactions import days_of_accounts

PIECE = 50  # users read at once
BEHIND = timedelta(days=5)  # what comes later for days before that was known to its person


class NoticeLook(Struct, frozen=True, kw_only=True):
    """A look: the last day of the bookings of each account at that time, by id; the accounts of which it was looked
    whether they add up; and whether it was in another life of the store (`is_past`), as before a restore."""

    last_days: Mapping[str, date]
    checked: frozenset[str] = frozenset()
    is_past: bool


class DueLook(Struct, frozen=True, kw_only=True):
    """A look that is due at a user's data: at whether ledgers add up, or (`is_whole`) at everything else, too."""

    user_id: str
    is_whole: bool


def last_look(session: Session, user_id: str) -> NoticeLook:
    """The last look at the user's data; an empty one where there was none."""
    rows = session.rows("SELECT is_past, accounts, ledgers FROM notice_looks WHERE user_id = $1", user_id)
    if not rows:
        return NoticeLook(last_days={}, is_past=False)
    days = {id_: date.fromisoformat(day) for id_, day in json.loads(rows[0]["accounts"]).items()}
    checked = frozenset(json.loads(rows[0]["ledgers"] or "[]"))
    return NoticeLook(last_days=days, checked=checked, is_past=rows[0]["is_past"])


def keep(
    session: Transaction, user_id: str, last_days: Mapping[str, date], *, today: date, look_on: date | None
) -> None:
    """Store a look in place of the last one, and the day of the next one (None: with the next import). Whether ledgers
    add up is to be looked at now."""
    said = {"accounts": as_json({id_: day.isoformat() for id_, day in last_days.items()}), "is_past": False, "life": ""}
    due = {"ledgers_on": today, "look_on": look_on, "due_on": today}
    put_row(session, "notice_looks", ["user_id"], user_id=user_id, **said, **due)


def due(session: Session, *, today: date) -> list[DueLook]:
    """The looks that are due at the data of up to PIECE users, the longest due first."""
    rows = session.rows(
        "SELECT user_id, coalesce(look_on <= $1, FALSE) AS is_whole FROM notice_looks"
        f" WHERE due_on <= $1 ORDER BY due_on, user_id LIMIT {PIECE}",
        today,
    )
    return [DueLook(**row) for row in rows]


def take(session: Session, due: DueLook, *, today: date) -> bool:
    """Take the look that is due; False where another process was faster. If it is never made, the next one is due
    tomorrow."""
    column, other = ("look_on", "ledgers_on") if due.is_whole else ("ledgers_on", "look_on")
    changed = session.execute(
        f"UPDATE notice_looks SET {column} = $3, due_on = least($3, {other}) WHERE user_id = $1 AND {column} <= $2",
        *(due.user_id, today, today + timedelta(days=1)),
    )
    return changed > 0


def join(session: Session, user_id: str, account_ids: Collection[str]) -> None:
    """Have each of these accounts count as known as far as the last known of them: they become one, or are two again,
    which makes nothing new of their bookings until then."""
    last = last_look(session, user_id).last_days
    days = [last[id_] for id_ in account_ids if id_ in last]
    if days:
        booked = [last_day for id_, (_, last_day) in days_of_accounts(session, user_id).items() if id_ in account_ids]
        until = dict.fromkeys(account_ids, min(max(days), max(booked, default=max(days))) + BEHIND)
        accounts = as_json({id_: day.isoformat() for id_, day in {**last, **until}.items()})
        set_values(session, "notice_looks", {"user_id": user_id}, accounts=accounts)


def keep_ledgers(session: Session, user_id: str, account_ids: Collection[str], *, look_on: date | None) -> None:
    """Store of which accounts it was looked whether they add up, and when to do so again though nothing comes."""
    session.execute(
        "UPDATE notice_looks SET ledgers = $2, ledgers_on = $3::DATE, due_on = least($3::DATE, look_on)"
        " WHERE user_id = $1",
        *(user_id, as_json(sorted(account_ids)), look_on),
    )


def look_by(session: Session, user_id: str, day: date) -> None:
    """Have a look at the user's data on this day at the latest."""
    session.execute(
        "UPDATE notice_looks SET look_on = least(look_on, $2), due_on = least(due_on, $2) WHERE user_id = $1",
        *(user_id, day),
    )


def past_all(session: Session) -> None:
    """Note that a life of the store has begun: what was looked at until now was in another one."""
    session.execute("UPDATE notice_looks SET is_past = TRUE WHERE NOT is_past")
