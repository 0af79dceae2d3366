"""The rules and remembered corrections of a user, as the store keeps them."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from analytics.classification.rules import (
    ChosenCategory,
    InvalidRule,
    Rule,
    is_correction_key,
    parse_rules,
    render_rules,
)
from storage.annotations import annotations
from storage.database import Session, Transaction, put_row


def of_user(session: Session, user_id: str) -> list[Rule]:
    """The user's rules in their order; the first one that matches a booking wins."""
    rows = session.rows("SELECT rules FROM user_rules WHERE user_id = $1", user_id)
    return parse_rules(str(rows[0]["rules"])) if rows else []


def keep(session: Transaction, user_id: str, rules: Sequence[Rule]) -> list[Rule]:
    """Replace the user's rules, and return them with the categories above own categories filled in.

    They act on new imports from now on, and on everything when applied. Raises InvalidRule.
    """
    session.changes(user_id)  # the explanation of a transaction quotes the rules
    placed = _with_places(session, user_id, rules)
    put_row(session, "user_rules", ["user_id"], user_id=user_id, rules=render_rules(placed))
    return placed


def corrections(session: Session, user_id: str) -> Mapping[str, ChosenCategory]:
    """The categories that the user chose for all bookings of a counterpart, by the key of the correction
    (`creditor:...`, `iban:...`, `merchant:...` or `name:...`). Others, which imports of words have once let in, decide
    nothing."""
    columns = ", ".join(ChosenCategory._fields)
    rows = session.rows(f"SELECT key, {columns} FROM corrections WHERE user_id = $1", user_id)
    return {
        row["key"]: ChosenCategory(*(row[name] for name in ChosenCategory._fields))
        for row in rows
        if is_correction_key(row["key"])
    }


def forget_correction(session: Session, user_id: str, key: str) -> None:
    """Delete the correction with this key. The caller derives the bookings anew, and declares the change
    (`Session.changes`)."""
    session.execute("DELETE FROM corrections WHERE user_id = $1 AND key = $2", user_id, key)


def correct(session: Session, user_id: str, key: str, choice: ChosenCategory) -> None:
    """Store a correction (the category of all bookings of a counterpart) under its key; it replaces one with the same
    key. The caller derives the bookings anew, and declares the change (`Session.changes`)."""
    put_row(session, "corrections", ["user_id", "key"], user_id=user_id, key=key, **choice._asdict())


def _with_places(session: Session, user_id: str, rules: Sequence[Rule]) -> list[Rule]:
    """The rules, with category and finer category filled in where a rule names an own category. Raises InvalidRule for
    an own category that is unknown, or below another category than the rule names."""
    if not any(rule.own_category_id for rule in rules):
        return list(rules)
    own = annotations.own_categories(session, user_id)
    placed = []
    for number, rule in enumerate(rules, start=1):
        if rule.own_category_id is not None:
            place = own.get(rule.own_category_id)
            if place is None:
                raise InvalidRule(number, "ownCategoryId must be one that GET /categories lists")
            if (rule.category or place.category) != place.category or (
                rule.detailed_category or place.detailed_category
            ) != place.detailed_category:
                raise InvalidRule(number, f"ownCategoryId lies below {place.detailed_category or place.category}")
            rule = replace(rule, category=place.category, detailed_category=place.detailed_category)
        placed.append(rule)
    return placed
