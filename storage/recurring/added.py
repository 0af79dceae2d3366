"""Recurring payments that users have added by hand."""

from collections.abc import Sequence

from analytics.recurring.added import AddedPayment
from storage.database import Session, Transaction, names_of, set_values, values_of


def of_user(session: Session, user_id: str) -> Sequence[AddedPayment]:
    """The payments that the user has added, sorted by name."""
    columns = names_of(AddedPayment)
    rows = session.rows(f"SELECT {columns} FROM recurring_added WHERE user_id = $1 ORDER BY name, id", user_id)
    return [AddedPayment(**row) for row in rows]


def keep(session: Transaction, user_id: str, payment: AddedPayment) -> None:
    """Store an added payment; of one that is stored with the same id, only amount and next day are changed."""
    session.changes(user_id)
    session.execute(
        f"INSERT INTO recurring_added (user_id, {names_of(AddedPayment)}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        " ON CONFLICT (user_id, id) DO UPDATE SET amount = excluded.amount, next_day = excluded.next_day",
        *(user_id, *values_of(payment).values()),
    )


def remove(session: Transaction, user_id: str, id: str) -> bool:
    """Delete an added payment; False where there was none with this id."""
    session.changes(user_id)
    return bool(session.execute("DELETE FROM recurring_added WHERE user_id = $1 AND id = $2", user_id, id))


def hand_over(session: Transaction, user_id: str, source_id: str, target_id: str) -> None:
    """Move added payments from an account to the one into which it is merged."""
    set_values(session, "recurring_added", {"user_id": user_id, "account_id": source_id}, account_id=target_id)
