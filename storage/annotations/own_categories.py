"""Own categories, which users name themselves: added, renamed, and removed, which leaves their bookings in the category
above."""

import re
from collections.abc import Mapping
from hashlib import blake2b
from itertools import count

from msgspec.structs import replace

from analytics.messages import Saying
from storage import rules
from storage.annotations import annotations
from storage.annotations.annotation import OwnCategory, fold_tag
from storage.database import Session, Transaction, add_row, set_values
from storage.transactions import NOT_HIDDEN

OWN_CATEGORIES_MAX = 500
OWN_ID = re.compile(r"own_[0-9a-f]{32}")
SAID_BY = ("annotations", "annotation_splits", "correction_batches", "corrections")
NOT_DERIVED_AGAIN = (
    "pending_transactions",
    "taken_back_transactions",
    "earlier_transactions",
    "earlier_pending_transactions",
)


class TooMany(Saying, ValueError):
    """The user has the maximum number of own categories already."""


class NameTaken(Exception):
    """Another own category below the same category has this name, in whatever case."""


def uses(session: Session, user_id: str) -> list[tuple[str, str]]:
    """Pairs of ids, of an own category and an account with bookings (or parts of some) in it; hidden accounts are left
    out."""
    rows = session.rows(
        "SELECT own_category_id, account_id FROM transactions WHERE user_id = $1 AND own_category_id IS NOT NULL"
        f" AND {NOT_HIDDEN}"
        " UNION SELECT s.own_category_id, t.account_id FROM annotation_splits AS s"
        " JOIN transactions AS t ON t.user_id = s.user_id AND t.id = s.transaction_id"
        f" WHERE s.user_id = $1 AND t.user_id = $1 AND s.own_category_id IS NOT NULL AND {NOT_HIDDEN}",
        user_id,
    )
    return [(row["own_category_id"], row["account_id"]) for row in rows]


def of_booking(session: Session, user_id: str, transaction_id: str) -> OwnCategory | None:
    """The own category of this booking; None where it is in none."""
    rows = session.rows(
        "SELECT own_category_id FROM transactions WHERE user_id = $1 AND id = $2", user_id, transaction_id
    )
    return annotations.own_categories(session, user_id).get(rows[0]["own_category_id"]) if rows else None


def add(
    session: Transaction,
    user_id: str,
    name: str,
    category: str,
    detailed_category: str | None,
    *,
    wanted_id: str | None = None,
) -> OwnCategory:
    """Add an own category and return it, with the wanted id where that is given and free, else with one made of user,
    place and name. White space in the name is tidied. The caller has called `hold`. Raises TooMany and NameTaken."""
    known = annotations.own_categories(session, user_id)
    name = " ".join(name.split())
    if len(known) >= OWN_CATEGORIES_MAX:
        raise TooMany("more than {limit} own categories", limit=OWN_CATEGORIES_MAX)
    own = OwnCategory(wanted_id or "", name, category, detailed_category)
    _check_name(known, own)
    if wanted_id is None or wanted_id in known:
        own = own._replace(id=_free_id(user_id, own, known))
    session.changes(user_id)
    add_row(session, "own_categories", user_id=user_id, **own._asdict())
    return own


def find_or_add(
    session: Transaction, user_id: str, name: str, category: str, detailed_category: str | None
) -> OwnCategory | None:
    """The own category with this name, in whatever case, below this category and finer category; added where there is
    none. None where it would be one too many. The caller has called `hold`."""
    own = OwnCategory("", name, category, detailed_category)
    known = annotations.own_categories(session, user_id).values()
    there = next((each for each in known if _name_key(each) == _name_key(own)), None)
    try:
        return there or add(session, user_id, name, category, detailed_category)
    except TooMany:
        return None


def rename(session: Transaction, user_id: str, own: OwnCategory, name: str) -> OwnCategory:
    """Rename an own category, white space in the name tidied, and return it. The caller has called `hold`. Raises
    NameTaken."""
    renamed = own._replace(name=" ".join(name.split()))
    _check_name(annotations.own_categories(session, user_id), renamed)
    session.changes(user_id)
    set_values(session, "own_categories", {"user_id": user_id, "id": renamed.id}, name=renamed.name)
    return renamed


def remove(session: Transaction, user_id: str, own_id: str) -> None:
    """Delete an own category with its targets; choices, corrections and rules that name it then name the category
    above. The caller goes on with `derivation.apply_rules`, which moves the bookings."""
    session.changes(user_id)
    for table in (*SAID_BY, *NOT_DERIVED_AGAIN):
        set_values(session, table, {"user_id": user_id, "own_category_id": own_id}, own_category_id=None)
    known = rules.of_user(session, user_id)
    if any(rule.own_category_id == own_id for rule in known):
        kept = [replace(rule, own_category_id=None) if rule.own_category_id == own_id else rule for rule in known]
        rules.keep(session, user_id, kept)
    session.execute("DELETE FROM targets WHERE user_id = $1 AND place = $2", user_id, own_id)
    session.execute("DELETE FROM own_categories WHERE user_id = $1 AND id = $2", user_id, own_id)


def _check_name(known: Mapping[str, OwnCategory], own: OwnCategory) -> None:
    if any(_name_key(each) == _name_key(own) and each.id != own.id for each in known.values()):
        raise NameTaken


def _name_key(own: OwnCategory) -> tuple[str, str | None, str]:
    return own.category, own.detailed_category, fold_tag(own.name)


def _free_id(user_id: str, own: OwnCategory, known: Mapping[str, OwnCategory]) -> str:
    """An unused id derived from user, place and name; with a number where a renamed category has the first one."""
    said = "\n".join((user_id, own.detailed_category or own.category, fold_tag(own.name)))
    ids = ("own_" + blake2b(f"{said}\n{number}".encode(), digest_size=16).hexdigest() for number in count())
    return next(id_ for id_ in ids if id_ not in known)
