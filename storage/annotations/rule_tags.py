"""Tags that a user's rules give to bookings, kept apart from the user's own: a rule gives its tags to every booking
that it matches, and deleting the rule removes them."""

from collections.abc import Iterator, Sequence
from itertools import chain

import polars as pl

from analytics.classification.rules import Rule, comparable_value
from storage.annotations.annotation import fold_tag
from storage.database import Row, Transaction
from storage.transactions import PORTION_ROWS, portions

COLUMNS = {
    "counterpartName": "counterpart_name",
    "merchantName": "merchant_name",
    "purpose": "purpose",
    "counterpartIban": "counterpart_iban",
    "counterpartCreditorId": "creditor_id",
    "counterpartMandateReference": "mandate_reference",
}
"""The columns that rules compare, by the rule's field."""
TEXTS = ("counterpartName", "merchantName", "purpose")
OF_THESE = "user_id = $1 AND ($2::TEXT[] IS NULL OR {} = ANY($2))"
SCHEMA = dict.fromkeys(("user_id", "transaction_id", "tag", "name"), pl.String())


def apply(
    session: Transaction, user_id: str, rules: Sequence[Rule], transaction_ids: Sequence[str] | None = None
) -> list[str]:
    """Store for these bookings (None: all) exactly the tags of the rules that match them, deleting others that rules
    gave, and return the ids of those with other tags than before. The user's own tags are kept apart and stay."""
    giving = [rule for rule in rules if rule.tags]
    some = _in_portions(transaction_ids)
    query = f"SELECT transaction_id, tag, name FROM rule_tags WHERE {OF_THESE.format('transaction_id')}"
    rows = chain.from_iterable(session.rows(query, user_id, ids) for ids in some)
    known = {(row["transaction_id"], row["tag"]): row["name"] for row in rows}
    wanted: dict[tuple[str, str], str] = {}
    for row in _bookings(session, user_id, transaction_ids) if giving else ():
        values = _values(row)
        for rule in giving:
            if row["merchant_rule"] == f"user-rule:{rule.id}" or rule.holds(values):  # a rule may have renamed
                for name in rule.tags:
                    wanted.setdefault((row["id"], fold_tag(name)), name)
    if wanted == known:
        return []
    session.changes(user_id)
    for ids in some:
        session.execute(f"DELETE FROM rule_tags WHERE {OF_THESE.format('transaction_id')}", user_id, ids)
    given = [(user_id, id_, tag, name) for (id_, tag), name in wanted.items()]
    session.append("rule_tags", pl.DataFrame(given, schema=SCHEMA, orient="row"))
    return list({id_ for (id_, _tag), _name in wanted.items() ^ known.items()})


def _in_portions(ids: Sequence[str] | None) -> list[Sequence[str] | None]:
    """All, or these ids in portions, because all ids of a long history in one statement take some 50 MB."""
    return [None] if ids is None else [ids[first : first + PORTION_ROWS] for first in range(0, len(ids), PORTION_ROWS)]


def _bookings(session: Transaction, user_id: str, transaction_ids: Sequence[str] | None) -> Iterator[Row]:
    columns = ", ".join(("id", "merchant_rule", "source_merchant_name", *COLUMNS.values()))
    query = f"SELECT {columns} FROM transactions WHERE user_id = $1 AND NOT is_adjusting_entry AND "
    for condition, values in portions(session, user_id, transaction_ids):
        yield from session.rows(query + condition, user_id, *values)


def _values(row: Row) -> dict[str, str]:
    """The values of a booking that rules compare, by the rule's field and in the form for comparisons; empty ones are
    absent. A merchant named by the source stands for the counterpart."""
    said = {field: row[column] for field, column in COLUMNS.items()}
    said["counterpartName"] = (row["source_merchant_name"] or "").strip() or row["counterpart_name"]
    said["text"] = " ".join(said[field] for field in TEXTS if said[field])
    return {field: comparable_value(field, text) for field, text in said.items() if text}
