"""Letters to the targets of people: one for each notice and target, written by the commit that tells of the notice.
What a letter says is read when it is sent."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from msgspec import Struct

from analytics.notices.found import INTERRUPTS
from storage.database import Row, Session, add_row_unless_there, as_json, names_of, set_values
from storage.notices import of_access, stored
from storage.notices.stored import NEW, OVER
from storage.notices.ways import settings, targets

KEPT = 100  # finished deliveries of each target
KEPT_FOR = timedelta(days=30)
CLAIMED_MAX = timedelta(hours=1)  # longer than any process claims a letter
GIVEN_UP_AFTER = timedelta(days=5)  # without a process that sends
TOLD_AS_OVER = ("overdraft.ahead", "income.late", "payment.failed")


class NoticeDelivery(Struct, frozen=True, kw_only=True):
    """One letter for one target. `due_at` is when it is sent next, None for never."""

    user_id: str
    id: str
    target_id: str
    what: str
    kind: str | None
    notice_id: str | None
    content: Mapping[str, Any]
    state: str
    reason: str | None
    due_at: datetime | None
    is_claimed: bool
    attempts: Sequence[Mapping[str, Any]]
    made_at: datetime

    @property
    def is_of_notice(self) -> bool:
        """Whether it tells of its notice, and not how many more there are."""
        return self.what == "notice" and not self.content


COLUMNS = names_of(NoticeDelivery)


def announce(
    session: Session, user_id: str, told: Sequence[tuple[str, str, Mapping[str, Any]]], now: datetime, number: int
) -> None:
    """Add the letters on what this commit tells of notices (event, id, data with the kind): of new ones to each working
    target, if the person is told of the kind at once; of three kinds that are over, to the targets that were told.
    `number` is unlike that of any other commit of the user."""
    working = targets.of_user(session, user_id, state="working") if told else []
    wanted = settings.find(session, user_id) if working else None
    for event, notice_id, data in told:
        kind, notice = data["kind"], stored.find(session, user_id, notice_id) if working else None
        interrupts = notice is not None and notice.interrupts and kind in INTERRUPTS
        is_now = wanted is None or wanted.told(kind) == "now"
        is_last = notice is not None and notice.content["message"] == f"{of_access.KIND}.{of_access.SILENCED}"
        for each in working:
            is_new = event == NEW and (is_now or is_last) and interrupts
            is_over = event == OVER and kind in TOLD_AS_OVER and _was_told(session, user_id, each.id, notice_id)
            if is_new or is_over:
                add(
                    session,
                    user_id,
                    target_id=each.id,
                    what="notice" if is_new else "over",
                    now=now,
                    kind=kind,
                    notice_id=notice_id,
                    id_=f"{number}-{notice_id}",
                )


def add(
    session: Session,
    user_id: str,
    *,
    target_id: str,
    what: str,
    now: datetime,
    kind: str | None = None,
    notice_id: str | None = None,
    content: Mapping[str, Any] | None = None,
    id_: str = "",
) -> str:
    """Add a letter that is due now, unless there is one with this id; returns its whole id."""
    made = f"{target_id}-{id_ or token_hex(8)}"
    said = {"what": what, "kind": kind, "notice_id": notice_id, "content": as_json(content or {})}
    state = {"state": "waiting", "due_at": now, "is_claimed": False, "attempts": "[]", "made_at": now}
    add_row_unless_there(session, "notice_deliveries", user_id=user_id, id=made, target_id=target_id, **said, **state)
    return made


def due(session: Session, *, now: datetime, but: Sequence[str], limit: int) -> list[NoticeDelivery]:
    """The next letters to send, digests last and the longest due first, but for those to the targets and users in
    `but`."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM notice_deliveries WHERE due_at <= $1 AND NOT target_id = ANY($2::TEXT[])"
        f" AND NOT user_id = ANY($2::TEXT[]) ORDER BY what = 'digest', due_at, id LIMIT {int(limit)}",
        *(now, list(but)),
    )
    return list(map(_delivery, rows))


def claim(session: Session, due: NoticeDelivery, *, until: datetime) -> NoticeDelivery | None:
    """Claim a letter for one process; None where another one was faster. If the outcome is not settled by `until`, it
    is due again."""
    rows = session.rows(
        "UPDATE notice_deliveries SET due_at = $4, is_claimed = TRUE WHERE user_id = $1 AND id = $2 AND due_at = $3"
        f" RETURNING {COLUMNS}",
        *(due.user_id, due.id, due.due_at, until),
    )
    return _delivery(rows[0]) if rows else None


def settle(session: Session, claimed: NoticeDelivery, **values: Any) -> bool:
    """Store what came of a claimed letter: its `state`, `reason`, `attempts` and `due_at`, None for never; False where
    that was stored before, or it is gone."""
    which = {"user_id": claimed.user_id, "id": claimed.id, "is_claimed": True, "due_at": claimed.due_at}
    attempts = {"attempts": as_json(list(values.pop("attempts", claimed.attempts)))}
    return set_values(session, "notice_deliveries", which, is_claimed=False, **attempts, **values)


def set_count(session: Session, claimed: NoticeDelivery, *, is_count: bool) -> None:
    """Note whether a letter says how many more notices there are, instead of its own."""
    which = {"user_id": claimed.user_id, "id": claimed.id}
    set_values(session, "notice_deliveries", which, content=as_json({"isCount": True} if is_count else {}))


def release(session: Session, user_id: str, *, now: datetime) -> None:
    """Make due at once what waits for the end of a user's quiet hours, since these have changed."""
    session.execute(
        "UPDATE notice_deliveries SET due_at = $2 WHERE user_id = $1 AND due_at > $2 AND NOT is_claimed"
        " AND attempts = '[]'",
        *(user_id, now),
    )


def release_all(session: Session, *, now: datetime) -> None:
    """Make due at once what a previous process was sending when it ended; only for a store that one process opens."""
    session.execute("UPDATE notice_deliveries SET due_at = $1, is_claimed = FALSE WHERE is_claimed", now)


def make_due(session: Session, *, now: datetime) -> None:
    """Make due at once what waits for a moment that a clock has given which was set since, also what a process has
    claimed until then, and plan digests anew."""
    session.execute(
        "UPDATE notice_deliveries SET due_at = $1, is_claimed = FALSE"
        " WHERE due_at > $2 OR (due_at > $1 AND NOT is_claimed)",
        *(now, now + CLAIMED_MAX),
    )
    settings.plan_digests_anew(session, after=now)


def past_all(session: Session) -> None:
    """Send nothing of another life of the store: what waited in a backup has most likely been sent."""
    session.execute(
        "UPDATE notice_deliveries SET state = 'dropped', reason = 'over', due_at = NULL, is_claimed = FALSE"
        " WHERE state = 'waiting'"
    )
    settings.plan_digests_anew(session, after=settings.LONG_AGO)
    targets.forget(session)


def last(session: Session, user_id: str, target_id: str) -> list[NoticeDelivery]:
    """The newest KEPT letters to a target, the newest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM notice_deliveries WHERE user_id = $1 AND target_id = $2"
        f" ORDER BY made_at DESC, id DESC LIMIT {KEPT}",
        *(user_id, target_id),
    )
    return list(map(_delivery, rows))


def keep_last(session: Session, user_id: str, target_id: str) -> None:
    """Delete all but the newest KEPT letters to a target; those that still have to be sent stay."""
    session.execute(
        "DELETE FROM notice_deliveries WHERE user_id = $1 AND target_id = $2 AND due_at IS NULL AND id NOT IN"
        " (SELECT id FROM notice_deliveries WHERE user_id = $1 AND target_id = $2"
        f" ORDER BY made_at DESC, id DESC LIMIT {KEPT})",
        *(user_id, target_id),
    )


def of_notice(session: Session, user_id: str, target_id: str, notice_id: str) -> list[NoticeDelivery]:
    """The letters on one notice to a target, the newest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM notice_deliveries WHERE user_id = $1 AND target_id = $2 AND notice_id = $3"
        " ORDER BY made_at DESC, id DESC",
        *(user_id, target_id, notice_id),
    )
    return list(map(_delivery, rows))


def waiting(session: Session, user_id: str, target_id: str) -> list[NoticeDelivery]:
    """The letters that still have to be sent to a target, the oldest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM notice_deliveries WHERE user_id = $1 AND target_id = $2 AND state = 'waiting'"
        " ORDER BY made_at, id",
        *(user_id, target_id),
    )
    return list(map(_delivery, rows))


def forget(session: Session, *, now: datetime) -> None:
    """Delete letters that are long done, and those that have been due for so long that no process sends."""
    session.execute("DELETE FROM notice_deliveries WHERE made_at < $1", now - KEPT_FOR)
    session.execute("DELETE FROM notice_deliveries WHERE due_at < $1", now - GIVEN_UP_AFTER)
    targets.forget(session)


def _was_told(session: Session, user_id: str, target_id: str, notice_id: str) -> bool:
    """Whether the target was told of the notice, or is just being told, and not yet that it is over."""
    before = of_notice(session, user_id, target_id, notice_id)
    return bool(before) and before[0].is_of_notice and (before[0].state == "delivered" or before[0].is_claimed)


def _delivery(row: Row) -> NoticeDelivery:
    return NoticeDelivery(**{**row, "content": json.loads(row["content"]), "attempts": json.loads(row["attempts"])})
