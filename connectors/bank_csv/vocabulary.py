"""The words of bank exports in some fifteen languages: names of columns, labels around a table, words for totals.

Collected from published layouts (bank2ynab, firefly-iii import configurations, ofxstatement plugins, the banks' help).
"""

import json
import re
from collections.abc import Mapping
from importlib import resources

from connectors.bank_csv.currencies import currencies_called
from connectors.bank_csv.profile import comparable

_WORDS = json.loads((resources.files("connectors.bank_csv") / "vocabulary.json").read_text("utf-8"))


def _names(key: str) -> frozenset[str]:
    return frozenset(map(comparable, _WORDS[key]))


# field -> names of columns; the first field with a name takes it
COLUMNS: Mapping[str, frozenset[str]] = {
    field: frozenset(map(comparable, names)) for field, names in _WORDS["columns"].items()
}
DEBIT_WORDS, CREDIT_WORDS = _names("debit"), _names("credit")
PENDING_WORDS, SKIP_WORDS = _names("pending"), _names("skip")
OPENING_WORDS, CLOSING_WORDS, TOTAL_WORDS = _names("opening"), _names("closing"), _names("total")
LABELS = {kind: re.compile("|".join(patterns)) for kind, patterns in _WORDS["labels"].items()}
"""Patterns of the beginnings of labels, made `comparable`, in the order in which they are tried; a day or account may
follow ("kontostand vom 31.12.2026")."""
MONTHS = {name: int(number) for number, names in _WORDS["months"].items() for name in names}
WEEKDAYS = frozenset(_WORDS["weekdays"].split())
"""The beginnings of three letters, or the usual two, of the days of the week in some twenty languages."""


def label_kind(label: str) -> str | None:
    """The kind of a label above or below the table: opening, closing, account, account_name, dated, currency; None for
    others."""
    label = comparable(label).rstrip(" :")
    if label in COLUMNS["currency"]:
        return "currency"
    return next((kind for kind, pattern in LABELS.items() if pattern.match(label)), None)


_UNIT = re.compile(
    r" ?(?:\((?:in |en )?([^()]{1,12}) ?\)|\[([^\[\]]{1,12})\]|[ei]n ([a-z]{3}|€)|"
    r"(?<=[ _])(eur|usd|gbp|chf|czk|pln|sek|nok|dkk|huf|ron|rsd|rub|uah|brl|inr|aud|cad|nzd|jpy|cny|zar|euros?|€|£))$"
)


def column_field(name: str) -> str | None:
    """The field of a column with this name, a currency in the name ignored; None for unknown names."""
    base = comparable(name).rstrip(":")
    unit = _unit(base)
    is_unit = len(unit) == 3 or bool(currencies_called(unit))
    for candidate in (base, _UNIT.sub("", base).strip() if is_unit else base, base.replace("_", " ")):
        for field, names in COLUMNS.items():
            if candidate in names:
                return field
    return None


def column_currencies(name: str) -> frozenset[str]:
    """The currencies that a column name may state, as in "Betrag (EUR)" or "Amount ($)"; none where it states none."""
    return currencies_called(_unit(comparable(name)))


def column_currency(name: str) -> str | None:
    """The only currency that a column name may state, None for none or several."""
    called = column_currencies(name)
    return next(iter(called)) if len(called) == 1 else None


def _unit(name: str) -> str:
    match = _UNIT.search(name)
    return next((group.strip() for group in match.groups() if group), "") if match else ""
