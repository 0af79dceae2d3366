"""The last look at what each user might be told, and when the next one is due though nothing comes."""

import json
from collections.abc import Mapping
from datetime import date, timedelta

from msgspec import Struct

from storage import store_facts
from storage.changes.incarnation import LIFE
from storage.database import Session, Transaction, as_json, put_row

PIECE = 200  # users read at once


class NoticeLook(Struct, frozen=True, kw_only=True):
    """A look: the last day of the bookings of each account at that time, by id, when it was last looked whether ledgers
    add up, and whether the look was in another life of the store, as before a restore."""

    last_days: Mapping[str, date]
    ledgers_on: date
    is_of_another_life: bool


def last_look(session: Session, user_id: str) -> NoticeLook:
    """The last look at the user's data; an empty one where there was none."""
    rows = session.rows("SELECT life, accounts, ledgers_on FROM notice_looks WHERE user_id = $1", user_id)
    if not rows:
        return NoticeLook(last_days={}, ledgers_on=date.min, is_of_another_life=False)
    days = {id_: date.fromisoformat(day) for id_, day in json.loads(rows[0]["accounts"]).items()}
    life, ledgers_on = rows[0]["life"], rows[0]["ledgers_on"]
    return NoticeLook(last_days=days, ledgers_on=ledgers_on, is_of_another_life=life != _life(session))


def keep(session: Transaction, user_id: str, look: NoticeLook, *, look_on: date | None) -> None:
    """Store a look in place of the last one, and the day of the next one (None: with the next import)."""
    days = as_json({id_: day.isoformat() for id_, day in look.last_days.items()})
    said = {"life": _life(session), "accounts": days, "ledgers_on": look.ledgers_on, "look_on": look_on}
    put_row(session, "notice_looks", ["user_id"], user_id=user_id, **said)


def due(session: Session, *, today: date) -> list[str]:
    """The ids of up to PIECE users at whose data a look is due, the longest due first."""
    rows = session.rows(
        f"SELECT user_id FROM notice_looks WHERE look_on <= $1 ORDER BY look_on, user_id LIMIT {PIECE}", today
    )
    return [row["user_id"] for row in rows]


def take(session: Session, user_id: str, *, today: date) -> bool:
    """Take the look that is due at the user's data; False where another process was faster. If it is never made, the
    next one is due tomorrow."""
    changed = session.execute(
        "UPDATE notice_looks SET look_on = $3 WHERE user_id = $1 AND look_on <= $2",
        *(user_id, today, today + timedelta(days=1)),
    )
    return changed > 0


def look_by(session: Session, user_id: str, day: date) -> None:
    """Have a look at the user's data on this day at the latest."""
    session.execute(
        "UPDATE notice_looks SET look_on = $2 WHERE user_id = $1 AND (look_on IS NULL OR look_on > $2)", user_id, day
    )


def _life(session: Session) -> str:
    return store_facts.recall(session, LIFE) or ""
