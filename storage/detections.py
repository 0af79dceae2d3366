"""Detected recurring payments for lists and forecasts, stored with their accounts, data version and day."""

import hashlib
from collections.abc import Iterable
from datetime import date
from io import StringIO

import polars as pl

from analytics.frames import SUBSCRIPTIONS
from storage.database import Session, add_row, set_values


def find(session: Session, user_id: str, account_ids: Iterable[str], *, day: date) -> tuple[int, pl.DataFrame | None]:
    """The user's present data version, and the recurring payments (SUBSCRIPTIONS) that are stored for just these
    accounts, that version and `day`; None in their place where none are.

    Two look-ups by key: joined, DuckDB reads the results of all users to find one, also where a condition names the
    user beside the key. A cluster needs that condition, because the user tells it the machine.
    """
    key = _key(user_id, account_ids)
    whose, values = (" AND user_id = $2", (key, user_id)) if session.is_shared else ("", (key,))
    kept = session.rows(f"SELECT data_version, day, found FROM detections WHERE id = $1{whose}", *values)
    version = present_version(session, user_id)
    is_present = bool(kept) and (kept[0]["data_version"], kept[0]["day"]) == (version, day)
    return version, pl.read_json(StringIO(kept[0]["found"]), schema=SUBSCRIPTIONS) if is_present else None


def present_version(session: Session, user_id: str) -> int:
    """The present data version of the user: the state in which that last changed by which recurring payments are
    found."""
    return int(session.rows("SELECT data_version FROM users WHERE id = $1", user_id)[0]["data_version"])


def keep(
    session: Session, user_id: str, account_ids: Iterable[str], *, data_version: int, day: date, found: pl.DataFrame
) -> None:
    """Store the recurring payments `found` in just these accounts, at this data version and on this day, in place of
    earlier ones. Raises Conflict where somebody else, who computed them at the same time, was first."""
    which = {"user_id": user_id, "id": _key(user_id, account_ids)}
    values = {"data_version": data_version, "day": day, "found": found.write_json()}
    if not set_values(session, "detections", which, **values):
        add_row(session, "detections", **which, **values)


def forget(session: Session, user_id: str) -> None:
    """Delete what is stored of this user, for whatever accounts; it is computed again when it is needed."""
    session.execute("DELETE FROM detections WHERE user_id = $1", user_id)


def _key(user_id: str, account_ids: Iterable[str]) -> str:
    """The id of the result for a set of accounts, whatever their order: the user's, and a hash of theirs."""
    digest = hashlib.sha256("\n".join(sorted(set(account_ids))).encode()).hexdigest()
    return f"{user_id}:{digest[:32]}"
