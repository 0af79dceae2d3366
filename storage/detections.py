"""Detected recurring payments for lists and forecasts, stored with their accounts, data version and days."""

import hashlib
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

from storage.database import Session, add_row, set_values


class Detected(NamedTuple):
    """What was found: a text of the caller's own, and the first and last day for which it is true."""

    text: str
    first: date
    last: date


def find(session: Session, user_id: str, account_ids: Iterable[str], *, day: date) -> tuple[int, Detected | None]:
    """The user's present data version, and what is stored for just these accounts, that version and `day`; None in its
    place where nothing is.

    Two look-ups by key: joined, DuckDB reads the results of all users to find one, also where a condition names the
    user beside the key. A cluster needs that condition, because the user tells it the machine.
    """
    key = _key(user_id, account_ids)
    whose, values = (" AND user_id = $2", (key, user_id)) if session.is_shared else ("", (key,))
    kept = session.rows(f"SELECT data_version, found, day, last_day FROM detections WHERE id = $1{whose}", *values)
    version = present_version(session, user_id)
    if not kept or kept[0]["data_version"] != version or kept[0]["last_day"] is None:
        return version, None
    found = Detected(kept[0]["found"], kept[0]["day"], kept[0]["last_day"])
    return version, found if found.first <= day <= found.last else None


def present_version(session: Session, user_id: str) -> int:
    """The present data version of the user: the state in which that last changed by which recurring payments are
    found."""
    return int(session.rows("SELECT data_version FROM users WHERE id = $1", user_id)[0]["data_version"])


def keep(session: Session, user_id: str, account_ids: Iterable[str], *, data_version: int, found: Detected) -> None:
    """Store what was found for just these accounts, at this data version, in place of what was before. Raises Conflict
    where somebody else, who computed it at the same time, was first."""
    which = {"user_id": user_id, "id": _key(user_id, account_ids)}
    values = {"data_version": data_version, "day": found.first, "last_day": found.last, "found": found.text}
    if not set_values(session, "detections", which, **values):
        add_row(session, "detections", **which, **values)


def forget(session: Session, user_id: str) -> None:
    """Delete what is stored of this user, for whatever accounts; it is computed again when it is needed."""
    session.execute("DELETE FROM detections WHERE user_id = $1", user_id)


def _key(user_id: str, account_ids: Iterable[str]) -> str:
    """The id of the result for a set of accounts, whatever their order: the user's, and a hash of theirs."""
    digest = hashlib.sha256("\n".join(sorted(set(account_ids))).encode()).hexdigest()
    return f"{user_id}:{digest[:32]}"
