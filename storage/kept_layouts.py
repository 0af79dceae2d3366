"""What users chose for CSV files of layouts that are not known, kept for the next ones like them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.database import Session, names_of, put_row, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLayout:
    """A profile as JSON, the file for which it was chosen, and the account of files that do not say theirs."""

    id: str
    file_name: str
    profile: str
    account_id: str | None
    kept_at: datetime


def of_user(session: Session, user_id: str) -> Sequence[KeptLayout]:
    """The user's layouts, in the order in which they were kept."""
    columns = names_of(KeptLayout)
    rows = session.rows(f"SELECT {columns} FROM kept_layouts WHERE user_id = $1 ORDER BY kept_at, id", user_id)
    return [KeptLayout(**row) for row in rows]


def keep(session: Session, user_id: str, layout: KeptLayout) -> None:
    """Keep a layout, in place of the one of the same id."""
    put_row(session, "kept_layouts", ["user_id", "id"], user_id=user_id, **values_of(layout))


def remove(session: Session, user_id: str, id_: str) -> bool:
    """Forget a layout; whether there was one of this id."""
    return session.execute("DELETE FROM kept_layouts WHERE user_id = $1 AND id = $2", user_id, id_) > 0
