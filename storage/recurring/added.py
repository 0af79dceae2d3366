"""Recurring payments that users have added by hand."""

from collections.abc import Collection, Sequence

from analytics.recurring.added import AddedPayment, id_of
from storage.database import Session, Transaction, names_of, set_values, values_of


def of_user(session: Session, user_id: str) -> Sequence[AddedPayment]:
    """The payments that the user has added, sorted by name. One of an account that was merged is of the account that
    this one is a part of now, for as long as it is."""
    columns = names_of(AddedPayment)
    rows = session.rows(f"SELECT {columns} FROM recurring_added WHERE user_id = $1 ORDER BY name, id", user_id)
    merged = session.rows("SELECT source_id, account_id FROM account_aliases WHERE user_id = $1", user_id)
    whole = {row["source_id"]: row["account_id"] for row in merged}
    return [AddedPayment(**{**row, "account_id": whole.get(row["account_id"], row["account_id"])}) for row in rows]


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


def give_back(session: Transaction, user_id: str, account_id: str, parts: Collection[str]) -> None:
    """Let payments that were added to one of these parts of the account be of that part again, where an older version
    has moved them with a merge: their ids are made of the account that they were added to."""
    for each in of_user(session, user_id):
        whose = (id_ for id_ in parts if each.id == id_of(user_id, id_, each.name, each.direction, each.frequency))
        if each.account_id == account_id and (part := next(whose, None)):
            set_values(session, "recurring_added", {"user_id": user_id, "id": each.id}, account_id=part)
