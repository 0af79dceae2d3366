"""The words of bank exports in some fifteen languages: names of columns, labels around a table, words for totals.

Collected from published layouts (bank2ynab, firefly-iii import configurations, ofxstatement plugins, the banks' help).
"""

import json
import re
from collections.abc import Mapping
from importlib import resources

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


def label_kind(label: str) -> str | None:
    """The kind of a label above or below the table: opening, closing, account, account_name, dated, currency; None for
    others."""
    label = comparable(label).rstrip(" :")
    return next((kind for kind, pattern in LABELS.items() if pattern.match(label)), None)


_UNIT = re.compile(
    r" ?(?:\((?:in )?([a-z]{3}|euros?|€|\$|£|r\$|kr\.?|kc|zl) ?\)|[ei]n (eur|usd|chf|gbp|€)|"
    r"(?<= )(eur|usd|gbp|chf|czk|pln|sek|nok|dkk|inr|aud|cad|euros?))$"
)
_UNITS = {"€": "EUR", "euro": "EUR", "euros": "EUR", "£": "GBP", "$": "USD", "r$": "BRL", "zl": "PLN", "kc": "CZK"}


def column_field(name: str) -> str | None:
    """The field of a column with this name, a currency in the name ignored; None for unknown names."""
    base = comparable(name).rstrip(":")
    for candidate in (base, _UNIT.sub("", base).strip(), base.replace("_", " ")):
        for field, names in COLUMNS.items():
            if candidate in names:
                return field
    return None


def column_currency(name: str) -> str | None:
    """The currency that a column name states, as in "Betrag (EUR)"; None where it states none."""
    match = _UNIT.search(comparable(name))
    unit = next((group for group in match.groups() if group), None) if match else None
    if unit is None:
        return None
    code = _UNITS.get(unit, unit.upper())
    return code if len(code) == 3 and code.isalpha() else None
