"""The rules and remembered corrections of a user, as the store keeps them."""

from collections.abc import Mapping, Sequence

from analytics.classification.rules import Rule, parse_rules, render_rules
from storage.database import Session, Transaction


def of_user(session: Session, user_id: str) -> list[Rule]:
    """The user's rules in their order; the first that holds wins."""
    rows = session.rows("SELECT rules FROM user_rules WHERE user_id = $1", user_id)
    return parse_rules(str(rows[0]["rules"])) if rows else []


def keep(session: Transaction, user_id: str, rules: Sequence[Rule]) -> None:
    """Replace the user's rules; they act on what is imported from now on, and on everything when applied."""
    session.changes(user_id)  # the reason of a transaction quotes them
    session.execute(
        "INSERT INTO user_rules (user_id, rules) VALUES ($1, $2)"
        " ON CONFLICT (user_id) DO UPDATE SET rules = excluded.rules",
        user_id,
        render_rules(rules),
    )


def corrections(session: Session, user_id: str) -> Mapping[str, str]:
    """Category by the key under which a correction is remembered."""
    rows = session.rows("SELECT key, category FROM corrections WHERE user_id = $1", user_id)
    return {row["key"]: row["category"] for row in rows}


def forget_correction(session: Session, user_id: str, key: str) -> None:
    """Remember nothing under this key."""
    session.execute("DELETE FROM corrections WHERE user_id = $1 AND key = $2", user_id, key)


def correct(session: Session, user_id: str, key: str, category: str) -> None:
    """Remember a correction under its key."""
    session.execute(
        "INSERT INTO corrections (user_id, key, category) VALUES ($1, $2, $3)"
        " ON CONFLICT (user_id, key) DO UPDATE SET category = excluded.category",
        user_id,
        key,
        category,
    )
