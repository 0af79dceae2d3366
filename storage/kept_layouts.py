"""CSV profiles that users chose for files of unknown layout, kept for later files like them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.database import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLayout:
    """A CSV profile as JSON, the name of the file for which it was chosen, and the account for files that name none."""

    id: str
    file_name: str
    profile: str
    account_id: str | None
    kept_at: datetime


def of_user(session: Session, user_id: str) -> Sequence[KeptLayout]:
    """The user's kept layouts, in the order in which they were kept."""
    rows = session.rows(
        "SELECT id, file_name, profile, account_id, kept_at FROM kept_layouts WHERE user_id = $1 ORDER BY kept_at, id",
        user_id,
    )
    return [KeptLayout(**row) for row in rows]


def keep(session: Session, user_id: str, layout: KeptLayout) -> None:
    """Store a layout; it replaces one with the same id."""
    session.execute(
        "INSERT INTO kept_layouts (user_id, id, file_name, profile, account_id, kept_at)"
        " VALUES ($1, $2, $3, $4, $5, $6)"
        " ON CONFLICT (user_id, id) DO UPDATE SET file_name = excluded.file_name, profile = excluded.profile,"
        " account_id = excluded.account_id, kept_at = excluded.kept_at",
        user_id,
        layout.id,
        layout.file_name,
        layout.profile,
        layout.account_id,
        layout.kept_at,
    )


def remove(session: Session, user_id: str, id_: str) -> bool:
    """Delete a layout; False where there is none with this id."""
    return session.execute("DELETE FROM kept_layouts WHERE user_id = $1 AND id = $2", user_id, id_) > 0
