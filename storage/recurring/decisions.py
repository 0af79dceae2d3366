"""Decisions of users on recurring payments: confirmed or dismissed."""

from collections.abc import Sequence
from datetime import datetime

from analytics.recurring.confirmations import Decision
from storage.database import Session, Transaction, put_row, values_of


def of_user(session: Session, user_id: str) -> Sequence[Decision]:
    """The user's decisions, the latest first."""
    return [decision for decision, _ in decided(session, user_id)]


def decided(session: Session, user_id: str) -> Sequence[tuple[Decision, datetime]]:
    """The user's decisions, the latest first, each with when it was made."""
    rows = session.rows(
        "SELECT id, transaction_id, confirmation, decided_at FROM recurring_decisions WHERE user_id = $1"
        " ORDER BY decided_at DESC, id",
        user_id,
    )
    return [(Decision(**row), at) for row in rows for at in [row.pop("decided_at")]]


def keep(session: Transaction, user_id: str, decision: Decision, *, now: datetime) -> None:
    """Store a decision; it replaces one about a payment of the same id."""
    session.changes(user_id)
    values = {"user_id": user_id, **values_of(decision), "decided_at": now}
    put_row(session, "recurring_decisions", ["user_id", "id"], **values)


def forget(session: Transaction, user_id: str, ids: Sequence[str]) -> None:
    """Delete the decisions with these ids."""
    session.changes(user_id)
    session.execute("DELETE FROM recurring_decisions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, list(ids))
