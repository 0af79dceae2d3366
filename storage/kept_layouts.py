"""CSV profiles that users chose for files of unknown layout, kept for later files like them."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from storage.database import Session, names_of, put_row, values_of


class KeptLayout(Struct, frozen=True, kw_only=True):
    """A CSV profile as JSON, the name of the file for which it was chosen, and the account for files that name none."""

    id: str
    file_name: str
    profile: str
    account_id: str | None
    kept_at: datetime


def of_user(session: Session, user_id: str) -> Sequence[KeptLayout]:
    """The user's kept layouts, in the order in which they were kept."""
    columns = names_of(KeptLayout)
    rows = session.rows(f"SELECT {columns} FROM kept_layouts WHERE user_id = $1 ORDER BY kept_at, id", user_id)
    return [KeptLayout(**row) for row in rows]


def keep(session: Session, user_id: str, layout: KeptLayout) -> None:
    """Store a layout; it replaces one with the same id."""
    put_row(session, "kept_layouts", ["user_id", "id"], user_id=user_id, **values_of(layout))


def remove(session: Session, user_id: str, id_: str) -> bool:
    """Delete a layout; False where there is none with this id."""
    return session.execute("DELETE FROM kept_layouts WHERE user_id = $1 AND id = $2", user_id, id_) > 0
