"""The derivation of type, category and merchant of bookings, each with the name of the rule that gave it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import polars as pl

from analytics.classification.booking_types import BookingFacts, Verdict, booking_type
from analytics.classification.categories import Evidence, category
from analytics.classification.facts import CACHED_TEXTS_MAX, CATEGORIES
from analytics.classification.intermediaries import is_intermediary
from analytics.classification.leaves import leaf_below
from analytics.classification.merchants import Merchant, merchant
from analytics.classification.rules import ChosenCategory, Rule, comparable_value, correction_keys, first_rule, payee
from analytics.frames import CLASSIFIABLE, columns
from analytics.search_text import fold_column

DERIVED = columns(
    "type, type_rule, category, category_rule, merchant_name, merchant_rule, detailed_category, detailed_rule,"
    " own_category_id"
)
"""The columns that `classify` adds or replaces; type and category are null where the booking has no facts at all."""

NUMBER_LENGTH_MIN = 5  # no table of facts has a number of so many digits
_NUMBER = re.compile(rf"(?<![^\s/.,:+-])[0-9]{{{NUMBER_LENGTH_MIN},}}(?![^\s/.,:+-])")


def classify(
    rows: pl.DataFrame,
    *,
    own_ibans: Mapping[str, str | None],
    rules: Sequence[Rule] = (),
    corrections: Mapping[str, ChosenCategory] | None = None,
) -> pl.DataFrame:
    """The rows (`CLASSIFIABLE`; other columns and the order stay) with type, category and merchant of each and the
    rules that gave them (`DERIVED`).

    `own_ibans` are the user's own IBANs with the kind of the account (None when unknown), `rules` the user's rules in
    order, and `corrections` the chosen categories by `analytics.classification.rules.correction_keys`. The chains are
    those of docs/analytics.md, "Why a booking is what it is".
    """
    own = {comparable_value("counterpartIban", iban): kind for iban, kind in own_ibans.items()}
    derive = lru_cache(CACHED_TEXTS_MAX)(lambda row: _derive(row, own, rules, corrections or {}))
    is_same = not any(letter.isnumeric() for rule in rules for letter in rule.value)  # to rules, whatever the number
    derived = [derive(row) for row in _rows(_with_zeros(rows) if is_same else rows)]
    shown = [place for place, (*_, name, _, _, _, _) in enumerate(derived) if name and "0" in name]
    for place, row in zip(shown, _rows(rows[shown]) if shown else (), strict=True):
        derived[place] = derive(row)
    return _add_columns(rows, DERIVED, derived)


def with_leaves(rows: pl.DataFrame, *, own_ibans: Mapping[str, str | None], rules: Sequence[Rule] = ()) -> pl.DataFrame:
    """The rows (`CLASSIFIABLE`, with `category` and `category_rule`) with the finer category that is derived below
    their category, and its rule: `detailed_category` and `detailed_rule`, null for none. The category itself is not
    derived anew. A finer category that the user chose by a rule or correction is not applied; that is up to the
    caller."""
    own = {comparable_value("counterpartIban", iban): kind for iban, kind in own_ibans.items()}
    decided = (Verdict(value, rule or "") for value, rule in rows.select("category", "category_rule").iter_rows())
    leaves = [_derive(row, own, rules, {}, said)[6:8] for row, said in zip(_rows(rows), decided, strict=True)]
    return _add_columns(rows, {name: DERIVED[name] for name in ("detailed_category", "detailed_rule")}, leaves)


def _with_zeros(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with zeros in place of numbers of five digits or more, which only identify a booking, card or contract;
    bookings that differ in them alone are then derived once."""
    texts = rows[["counterpart_name", "merchant_name", "purpose", "mandate_reference"]]
    return rows.with_columns(
        pl.Series(text.name, [value and _NUMBER.sub(_zeros, value) for value in text], dtype=pl.String)
        for text in texts.iter_columns()
    )


def _zeros(number: re.Match[str]) -> str:
    return "0" * len(number[0])


def _add_columns(
    rows: pl.DataFrame, schema: Mapping[str, pl.DataType], derived: Sequence[tuple[str | None, ...]]
) -> pl.DataFrame:
    columns = list(zip(*derived, strict=True)) if derived else [()] * len(schema)
    return rows.with_columns(
        pl.Series(name, values, dtype=dtype) for (name, dtype), values in zip(schema.items(), columns, strict=True)
    )


def _derive(
    row: BookingFacts,
    own: Mapping[str, str | None],
    rules: Sequence[Rule],
    corrections: Mapping[str, ChosenCategory],
    decided: Verdict | None = None,
) -> tuple[str | None, ...]:
    kind = booking_type(row)
    iban = comparable_value("counterpartIban", row.iban) if row.iban else None
    is_own = iban in own
    shop = merchant(row.name, row.purpose, row.purpose_words, kind.value or "other")
    if is_own:
        shop = shop._replace(name=None, rule="own-account", brand=None)
    rule = _users_rule(row, shop, kind.value, rules)
    if rule is not None and rule.merchant is not None:
        shop = shop._replace(name=rule.merchant, rule=f"user-rule:{rule.id}")
    if rule is not None and rule.type is not None:
        kind = Verdict(rule.type, f"user-rule:{rule.id}")
    chosen = _users_choice(row, iban, shop, kind.value, rule, corrections) if decided is None else None
    place, by = chosen or (None, "")
    evidence = Evidence(row, kind.value, shop, is_own, own.get(iban) if iban else None)
    value = decided or (Verdict(place.category, by) if place else None) or category(evidence)
    leaf = (place.detailed_category, by) if place and place.detailed_category else leaf_below(value, evidence)
    own_id = place.own_category_id if place else None
    return kind.value, kind.rule, value.value, value.rule, shop.name, shop.rule, *leaf, own_id


def _users_choice(
    row: BookingFacts,
    iban: str | None,
    shop: Merchant,
    kind: str | None,
    rule: Rule | None,
    corrections: Mapping[str, ChosenCategory],
) -> tuple[ChosenCategory, str] | None:
    """The category that the user chose, and its rule: by a rule of theirs, else by an earlier correction for the
    creditor id, IBAN, merchant or name (for an intermediary only the merchant); None where neither applies."""
    if rule is not None and rule.place is not None:
        return rule.place, f"user-rule:{rule.id}"
    if not corrections:
        return None
    carried = shop.intermediary is not None or is_intermediary(row.name)
    candidates = correction_keys(
        creditor_id=None if carried else row.creditor_id,
        counterpart_iban=None if carried else iban,
        merchant_name=shop.name,
        counterpart_name=None if carried else row.name,
        kind=kind,
    )
    for key in candidates:
        if key in corrections:
            assert corrections[key].category in CATEGORIES, corrections[key]
            return corrections[key], f"correction:{key.partition(':')[0]}"
    return None


def _users_rule(row: BookingFacts, shop: Merchant, kind: str | None, rules: Sequence[Rule]) -> Rule | None:
    if not rules:
        return None
    given = {
        "counterpartName": row.name,
        "merchantName": payee(shop.name, kind),
        "purpose": row.purpose,
        "text": " ".join(text for text in (row.name, shop.name, row.purpose) if text),
        "counterpartIban": row.iban,
        "counterpartCreditorId": row.creditor_id,
        "counterpartMandateReference": row.mandate,
    }
    return first_rule(rules, {field: comparable_value(field, text) for field, text in given.items() if text})


def _rows(rows: pl.DataFrame) -> Iterable[BookingFacts]:
    """The rows as BookingFacts; the words of purposes are folded and split by Polars, all at once."""
    folded = fold_column(pl.col("purpose").fill_null("")).str.replace_all(r"['’`´]", "")
    words = rows.select(folded.str.replace_all(r"[^\p{L}\p{N}]+", " ")).to_series()
    text = {name: _filled(rows[name]) for name, dtype in CLASSIFIABLE.items() if dtype == pl.String()}
    columns = {
        **text,
        "is_credit": (rows["amount"] > 0).to_list(),
        "name": [ours or theirs for ours, theirs in zip(text["merchant_name"], text["counterpart_name"], strict=True)],
        "iban": text["counterpart_iban"],
        "mandate": text["mandate_reference"],
        "purpose_words": [tuple(each.split()) for each in words],
    }
    return map(BookingFacts._make, zip(*(columns[name] for name in BookingFacts._fields), strict=True))


def _filled(texts: pl.Series) -> list[str | None]:
    if texts.null_count() == texts.len():
        return [None] * texts.len()
    return [(text or "").strip() or None for text in texts.to_list()]
