"""Whose account a column of an unknown layout names: the file's own, a counterpart's, or nobody can tell.

Money in the wrong account is the worst that a guess can do, so the name of a column decides nothing: a bank calls the
account of the counterpart "IBAN" or "Konto", too. What stands in its rows beside the names of the counterparts decides.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from connectors.bank_csv.around_the_table import Metadata
from connectors.bank_csv.column_places import place_of, references
from connectors.bank_csv.profile import comparable
from connectors.bank_csv.vocabulary import column_field
from connectors.text import clean

Whose = Literal["own", "theirs", "neither", "unclear"]
_OWN = re.compile(r"\b(?:auftragskonto|eigen\w*|own|my|mein\w*|product iban)\b")
_SENDER = re.compile(r"nadawc|sender|absender|from|source|payer|auftraggeberkonto")  # ours or theirs, by the sign
_NUMBER_DIGITS_MIN = 4  # of an account number, with its middle hidden or not; a name has fewer


def settle_accounts(
    fields: dict[str, tuple[str, ...]],
    header: Sequence[str],
    data: Sequence[Sequence[str]],
    preamble: Sequence[Sequence[str]],
) -> list[str]:
    """Keep in `fields` as the account of the file what can be nobody else's, and as the counterpart's what is theirs.
    An account above the table wins over any column. Returns what is in doubt: columns that may be either."""
    doubts = []
    above = Metadata()
    for row in preamble:
        above.take(row, ".")
    is_named_above = bool(above.iban or above.account)
    names = [comparable(cell) for cell in header]
    accounts = [(each, cell) for each, cell in references(header) if column_field(cell) in ("account", "account_name")]
    for field in ("account", "account_name"):
        fields.pop(field, None)
    for reference, cell in accounts:
        whose = whose_account(reference, fields, names, data)
        field = column_field(cell) or ""
        if whose == "unclear":
            doubts.append(f'the column "{clean(cell)}" may name your accounts or those of others')
        if whose == "own" and not is_named_above:
            fields.setdefault(field, (reference,))
        elif whose == "theirs" and field == "account":
            fields.setdefault("counterpart_iban", (reference,))
        elif whose == "theirs":
            fields.setdefault("name", (reference,))
    return doubts


def whose_account(
    reference: str, fields: Mapping[str, Sequence[str]], names: Sequence[str], rows: Sequence[Sequence[str]]
) -> Whose:
    """Whose account the column `reference` names, `fields` being the columns that were recognised, `names` those of all
    columns, made `comparable`.

    It is our own where its name says so, or where it is the same beside different counterparts. It is theirs where most
    values have one counterpart, most rows a value of their own, or some rows none. Names, such as "Savings", are those
    of our own accounts where they recur. What is the same in all rows without showing whose it is, or ours or theirs by
    the direction of the payment, is "neither"; a column that may mean several accounts of either is "unclear".
    """
    if _OWN.search(reference):
        return "own"
    is_named = any(each in fields for each in ("name", "payer", "payee"))
    beside = [each for each in ("name", "payer", "payee") if each in fields] or ["purpose"]
    known: dict[str, set[str]] = {}
    blank = count = 0
    for row in rows:
        cells = {field: _cell(fields.get(field, ()), names, row) for field in ("date", "amount", "debit", "credit")}
        if not cells["date"] or not (cells["amount"] or cells["debit"] or cells["credit"]):
            continue  # no booking
        value = _cell((reference,), names, row)
        blank, count = blank + (not value), count + bool(value)
        if value:
            known.setdefault(value, set()).add(" ".join(_cell(fields.get(each, ()), names, row) for each in beside))
    are_several = [len(texts) > 1 for texts in known.values()]
    if len(known) < 2:
        return "own" if any(are_several) and not blank else "theirs" if is_named and known else "neither"
    if _SENDER.search(reference):
        return "neither"
    if any(sum(map(str.isdigit, value)) < _NUMBER_DIGITS_MIN for value in known):
        is_recurring = not blank and len(known) * 2 <= count
        return "own" if is_recurring and (is_named or all(are_several)) else "unclear"
    is_theirs = blank or len(known) * 2 > count or (is_named and are_several.count(False) * 2 >= len(known))
    return "theirs" if is_theirs else "unclear"


def _cell(references: Sequence[str], names: Sequence[str], row: Sequence[str]) -> str:
    places = (place_of(each, names) for each in references)
    cells = (row[place].strip() for place in places if place is not None and -len(row) <= place < len(row))
    return next((comparable(cell) for cell in cells if cell), "")
