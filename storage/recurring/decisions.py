"""Decisions of users on recurring payments: confirmed or dismissed."""

from collections.abc import Sequence
from datetime import datetime

from analytics.recurring.confirmations import Decision
from storage.database import Session, Transaction


def of_user(session: Session, user_id: str) -> Sequence[Decision]:
    """The user's decisions, the latest first."""
    rows = session.rows(
        "SELECT id, transaction_id, confirmation FROM recurring_decisions WHERE user_id = $1"
        " ORDER BY decided_at DESC, id",
        user_id,
    )
    return [Decision(**row) for row in rows]


def keep(session: Transaction, user_id: str, decision: Decision, *, now: datetime) -> None:
    """Store a decision; it replaces one about a payment of the same id."""
    session.changes(user_id)
    session.execute(
        "INSERT INTO recurring_decisions (user_id, id, transaction_id, confirmation, decided_at)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (user_id, id) DO UPDATE SET"
        " transaction_id = excluded.transaction_id, confirmation = excluded.confirmation,"
        " decided_at = excluded.decided_at",
        user_id,
        decision.id,
        decision.transaction_id,
        decision.confirmation,
        now,
    )


def forget(session: Transaction, user_id: str, ids: Sequence[str]) -> None:
    """Delete the decisions with these ids."""
    session.changes(user_id)
    session.execute("DELETE FROM recurring_decisions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, list(ids))
