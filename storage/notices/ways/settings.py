"""What each person has said of when and how they are told, and what they were told on their day."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field, to_builtins

from storage.database import Row, Session, as_json, put_row, set_values

Told = Literal["now", "digest", "off"]
LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001 - without zone as in the store


class NoticeSettings(Struct, frozen=True, kw_only=True):
    """What a person wants: the language of letters, the zone of their days, the quiet hours (two times, `22:00`) by its
    wall clock, the digest (`off`, `weekly`, `monthly`), and how they are told of kinds, `now` where none is said."""

    language: str
    time_zone: str
    quiet_hours: tuple[str, str] | None = None
    digest: str = "off"
    kinds: Mapping[str, Told] = field(default_factory=dict)

    def told(self, kind: str) -> Told:
        """How the person is told of this kind."""
        return self.kinds.get(kind, "now")


class DueDigest(Struct, frozen=True, kw_only=True):
    """A digest of a user that is due, and since when."""

    user_id: str
    digest_at: datetime


def find(session: Session, user_id: str) -> NoticeSettings | None:
    """The settings of the user; None where they have said nothing."""
    rows = session.rows("SELECT content FROM notice_settings WHERE user_id = $1", user_id)
    return _settings(rows[0]) if rows else None


def keep(session: Session, user_id: str, settings: NoticeSettings, *, digest_at: datetime | None) -> None:
    """Store the settings, and when the next digest is due (None: never)."""
    said = {"content": as_json(to_builtins(settings)), "digest_at": digest_at}
    if not set_values(session, "notice_settings", {"user_id": user_id}, **said):
        put_row(session, "notice_settings", ["user_id"], user_id=user_id, counted="{}", **said)


def plan_digests_anew(session: Session, *, after: datetime) -> None:
    """Have digests that are due after this moment planned anew: they are due at once, and none is sent so late."""
    session.execute("UPDATE notice_settings SET digest_at = $2 WHERE digest_at > $1", after, LONG_AGO)


def counted(session: Session, user_id: str) -> dict[str, Any]:
    """What was counted of the user's day, as `count` has stored it; empty where nothing was."""
    rows = session.rows("SELECT counted FROM notice_settings WHERE user_id = $1", user_id)
    return dict(json.loads(rows[0]["counted"])) if rows else {}


def count(session: Session, user_id: str, counted: Mapping[str, Any]) -> None:
    """Store what was counted; of two processes that do so at once one has to begin anew."""
    set_values(session, "notice_settings", {"user_id": user_id}, counted=as_json(counted))


def due_digests(session: Session, *, now: datetime, limit: int) -> list[DueDigest]:
    """The digests that are due, the longest due first."""
    rows = session.rows(
        "SELECT user_id, digest_at FROM notice_settings WHERE digest_at <= $1"
        f" ORDER BY digest_at, user_id LIMIT {int(limit)}",
        now,
    )
    return [DueDigest(**row) for row in rows]


def take_digest(session: Session, due: DueDigest, *, next_at: datetime | None) -> bool:
    """Take a digest that is due; False where another process was faster, or the settings were changed."""
    which = {"user_id": due.user_id, "digest_at": due.digest_at}
    return set_values(session, "notice_settings", which, digest_at=next_at)


def _settings(row: Row) -> NoticeSettings:
    said = json.loads(row["content"])
    hours = said["quiet_hours"]
    return NoticeSettings(**{**said, "quiet_hours": tuple(hours) if hours is not None else None})
