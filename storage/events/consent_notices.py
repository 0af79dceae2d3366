"""The events that say that a bank's consent ends soon: 14 days, 7 days and one day before."""

from datetime import datetime, timedelta
from typing import Any

from storage.database import Database, Session, set_values

NOTICES = (1, 7, 14)  # days before a consent ends at which a notice is due; of several due at once, the first
PIECE = 500  # consents of which notices are written at once

NEXT_NOTICE = (
    "CASE WHEN noticed_days IS NULL OR consent_expires_at > noticed_end + INTERVAL '1 day'"
    " THEN consent_expires_at - INTERVAL '14 days'"
    " WHEN noticed_days = 14 THEN consent_expires_at - INTERVAL '7 days'"
    " WHEN noticed_days = 7 THEN consent_expires_at - INTERVAL '1 day' END"
)
"""When the next notice of a consent is due, as the index has it. A source that moves the end of a consent by hours does
not make it a new consent."""
NOTICE_DUE = f"status IN ('ACTIVE', 'ERROR') AND consent_expires_at > $1 AND {NEXT_NOTICE} <= $1"


def record(database: Database, *, now: datetime) -> None:
    """Write the due notices of up to PIECE consents, by marking their users' data as changed; otherwise nothing might
    change for long."""
    rows = database.rows(
        f"SELECT user_id FROM connections WHERE {NOTICE_DUE} ORDER BY {NEXT_NOTICE} LIMIT {PIECE}", now
    )
    for user_id in dict.fromkeys(row["user_id"] for row in rows):
        database.changes(user_id)


def due(session: Session, user_id: str, now: datetime) -> list[tuple[str, str, dict[str, Any]]]:
    """The events (type, connection's id, data) for consents of this user of which a notice is due; each is marked as
    given."""
    rows = session.rows(
        f"SELECT id, consent_expires_at FROM connections WHERE {NOTICE_DUE} AND user_id = $2 ORDER BY id",
        *(now, user_id),
    )
    events = []
    for row in rows:
        end = row["consent_expires_at"]
        notice = next(days for days in NOTICES if end <= now + timedelta(days=days))
        set_values(session, "connections", {"user_id": user_id, "id": row["id"]}, noticed_days=notice, noticed_end=end)
        events.append(("consent.expiring", row["id"], {"expiresAt": f"{end.isoformat()}Z", "notice": notice}))
    return events
