"""The addresses at which people are told. What is stored of one shows its scheme and last characters; the address
itself is sealed."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from storage.database import Row, Session, add_row, names_of, set_values, values_of

State = Literal["unconfirmed", "working", "paused", "removed"]
OF_ONE = {"connection_secrets": "connection_id", "notice_deliveries": "target_id", "notice_targets": "id"}
"""For each table, the column with the id of the target that a row belongs to."""


class NoticeTarget(Struct, frozen=True, kw_only=True):
    """One target. Only a `working` one is told; a `removed` one is there until its last sentence was sent. `only_of` is
    what no other target may have, empty for nothing; `session_hash` names the session of a browser; `tries` are codes
    entered in vain, `refusals` those in a row, since `refused_since`."""

    user_id: str
    id: str
    way: str
    scheme: str
    last: str
    only_of: str = ""
    name: str | None
    whole_sentences: bool
    state: State = "unconfirmed"
    reason: str | None = None
    tries: int = 0
    refusals: int = 0
    refused_since: datetime | None = None
    created_at: datetime
    session_hash: str | None = None


COLUMNS = names_of(NoticeTarget)


def add(session: Session, target: NoticeTarget) -> None:
    """Store a new target."""
    add_row(session, "notice_targets", **values_of(target))


def of_user(session: Session, user_id: str, *, state: State | None = None) -> list[NoticeTarget]:
    """The user's targets that are not removed, or those in this state, in the order in which they were made."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM notice_targets WHERE user_id = $1"
        " AND (state = $2 OR ($2::TEXT IS NULL AND state <> 'removed')) ORDER BY created_at, id",
        *(user_id, state),
    )
    return list(map(_target, rows))


def find(session: Session, user_id: str, id_: str) -> NoticeTarget | None:
    """The user's target with this id, also a removed one; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM notice_targets WHERE user_id = $1 AND id = $2", user_id, id_)
    return _target(rows[0]) if rows else None


def owned_elsewhere(everybody: Session, only_of: str, *, but: str) -> list[NoticeTarget]:
    """The targets of all users with the same `only_of`, but for the target with the id `but`."""
    rows = everybody.rows(
        f"SELECT {COLUMNS} FROM notice_targets WHERE only_of = $1 AND id <> $2 ORDER BY id", only_of, but
    )
    return list(map(_target, rows))


def work(session: Session, user_id: str, id_: str) -> None:
    """Have the target told from now on."""
    fresh = {"state": "working", "reason": None, "tries": 0, "refusals": 0, "refused_since": None}
    set_values(session, "notice_targets", {"user_id": user_id, "id": id_}, **fresh)


def pause(session: Session, user_id: str, id_: str, *, because: str) -> None:
    """Send nothing more to a working target until its person acts, nor what waits for it."""
    which = {"user_id": user_id, "id": id_, "state": "working"}
    if set_values(session, "notice_targets", which, state="paused", reason=because):
        _drop_waiting(session, user_id, id_, because)


def set_session(session: Session, user_id: str, id_: str, session_hash: str | None) -> None:
    """Store in which session the browser is."""
    set_values(session, "notice_targets", {"user_id": user_id, "id": id_}, session_hash=session_hash)


def set_tries(session: Session, user_id: str, id_: str, tries: int) -> None:
    """Store how many codes were entered in vain."""
    set_values(session, "notice_targets", {"user_id": user_id, "id": id_}, tries=tries)


def set_refusals(session: Session, user_id: str, id_: str, refusals: int, since: datetime | None) -> None:
    """Store how often the target has refused in a row, and since when; 0 and None once it has not."""
    which = {"user_id": user_id, "id": id_}
    set_values(session, "notice_targets", which, refusals=refusals, refused_since=since)


def end(session: Session, user_id: str, id_: str) -> None:
    """Mark the target as removed: what waits is not sent, but for the last sentence that is added next."""
    set_values(session, "notice_targets", {"user_id": user_id, "id": id_}, state="removed", only_of="")
    _drop_waiting(session, user_id, id_, "gone")


def remove(session: Session, user_id: str, id_: str) -> None:
    """Delete the target with its address and its deliveries."""
    for table, column in OF_ONE.items():
        session.execute(f"DELETE FROM {table} WHERE user_id = $1 AND {column} = $2", user_id, id_)


def forget(session: Session) -> None:
    """Delete the removed targets whose last sentence will never be sent."""
    for table, column in OF_ONE.items():
        session.execute(
            f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM notice_targets AS t WHERE t.user_id = {table}.user_id"
            f" AND t.id = {table}.{column} AND t.state = 'removed' AND NOT EXISTS (SELECT 1 FROM notice_deliveries AS d"
            " WHERE d.user_id = t.user_id AND d.target_id = t.id AND d.state = 'waiting'))"
        )


def _drop_waiting(session: Session, user_id: str, id_: str, reason: str) -> None:
    waiting = {"user_id": user_id, "target_id": id_, "state": "waiting"}
    dropped = {"state": "dropped", "reason": reason, "due_at": None, "is_claimed": False}
    set_values(session, "notice_deliveries", waiting, **dropped)


def _target(row: Row) -> NoticeTarget:
    return NoticeTarget(**row)
