"""The user's rules in a text file, and their remembered corrections; both come before every table."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from analytics.classification.facts import CASH, CATEGORIES, LEAVES, OF_CASH, TYPES, category_of
from analytics.letters import fold
from analytics.messages import Message, message

Operator = Literal["contains", "equals", "startswith"]
OPERATORS: dict[str, Operator] = {"contains": "contains", "equals": "equals", "startswith": "startswith"}
TEXT_FIELDS = ("counterpartName", "merchantName", "purpose", "text")
KEY_FIELDS = ("counterpartIban", "counterpartCreditorId", "counterpartMandateReference")
FIELDS = {
    **{name: name for name in ("id", "field", "operator", "value", "category", "merchant", "type")},
    "detailedCategory": "detailed_category",
    "ownCategoryId": "own_category_id",
    "tags": "tags",
}
"""The field of `Rule` for each key of a line."""
VALUE_LENGTH_MAX = 200
RULES_MAX = 1_000
TAG_LENGTH_MAX = 100
TAGS_MAX = 50  # of one booking, and of one rule
ID = re.compile(r"(?!\.{1,2}\Z)[^\x00-\x1f\x7f/]{1,200}")  # as the contract has it; in addresses "." and ".." go up
NUMBER = re.compile(r"[0-9]{1,18}")
HALF_LETTER = re.compile("[\ud800-\udfff]")  # JSON can spell it, and no store can keep it


class ChosenCategory(NamedTuple):
    """The category that a user chose for bookings, perhaps with a finer one and an own one below it."""

    category: str
    detailed_category: str | None = None
    own_category_id: str | None = None


class InvalidRule(ValueError):
    """A line of a rules file cannot be used."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(Message("line {line}: {reason}", line=line, reason=message(reason)))
        self.line = line
        self.reason = reason


class Rule(Struct, frozen=True, kw_only=True):
    """A rule: if `field` `operator` `value`, then this category, merchant and type; what is None stays derived. Of the
    rules that match a booking, only the first gives these (a rule with tags alone is passed over), but all give their
    tags.

    `field` is a name of the interface (counterpartName, merchantName, purpose, counterpartIban, counterpartCreditorId,
    counterpartMandateReference) or "text", the first three together. Texts are compared folded (decision 9), keys
    without spaces and case. There are no regular expressions, so no rule can run away.
    """

    id: str
    field: str
    operator: Operator
    value: str
    category: str | None = None
    merchant: str | None = None
    type: str | None = None
    detailed_category: str | None = None
    own_category_id: str | None = None
    tags: tuple[str, ...] = ()  # given by every rule that matches, not only by the first

    @property
    def place(self) -> ChosenCategory | None:
        """The category that the rule gives, with the finer and own one; None where it gives none."""
        if self.category is None:
            return None
        return ChosenCategory(self.category, self.detailed_category, self.own_category_id)

    @property
    def decides(self) -> bool:
        """Whether the rule gives a category, a merchant or a type, and not only tags."""
        return any(given is not None for given in (self.category, self.merchant, self.type))

    def holds(self, values: Mapping[str, str]) -> bool:
        """Whether the rule matches a booking, given as `comparable_value` values by field."""
        text = values.get(self.field, "")
        wanted = comparable_value(self.field, self.value)
        if self.operator == "equals":
            return text == wanted
        return text.startswith(wanted) if self.operator == "startswith" else wanted in text


def parse_rules(text: str) -> list[Rule]:
    """Rules from JSON lines, in order; the first match wins. Blank lines and lines that begin with `#` are skipped.

    {"field": "counterpartName", "operator": "contains", "value": "Kita", "category": "OTHER", "merchant": "Kita"}

    `id` may be given; it is the line's number otherwise. A finer category brings the category above it. Whether an own
    category exists is not known here: the caller checks it and fills in the categories above it. Raises InvalidRule,
    which names the line.
    """
    rules: list[Rule] = []
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):  # other ends of lines stand in values
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        rule = _parse_rule(number, line)
        if rule.id in seen:
            raise InvalidRule(number, Message("id {id} is taken by an earlier line", id=rule.id))
        if len(rules) == RULES_MAX:
            raise InvalidRule(number, Message("more than {limit} rules", limit=RULES_MAX))
        seen.add(rule.id)
        rules.append(rule)
    return rules


def with_free_ids(known: Iterable[Rule], added: Iterable[Rule]) -> list[Rule]:
    """The added rules with ids that are free: each keeps its own, unless a known or an earlier added rule has it, or no
    address can contain it; then it gets the next free number."""
    taken = {rule.id for rule in known}
    numbered = []
    for rule in added:
        number = int(rule.id) if NUMBER.fullmatch(rule.id) else 0
        wanted = rule.id
        while wanted in taken or not ID.fullmatch(wanted):
            number += 1
            wanted = str(number)
        taken.add(wanted)
        numbered.append(replace(rule, id=wanted))
    return numbered


def render_rules(rules: Sequence[Rule]) -> str:
    """The text of these rules, one JSON object a line, which `parse_rules` reads."""
    return "".join(json.dumps(as_json(rule), ensure_ascii=False) + "\n" for rule in rules)


def as_json(rule: Rule) -> dict[str, object]:
    """A rule as the JSON object of its line, with the interface's names and without empty members."""
    values = {name: getattr(rule, field) for name, field in FIELDS.items()}
    return {key: value for key, value in values.items() if value}


def first_rule(rules: Sequence[Rule], values: Mapping[str, str]) -> Rule | None:
    """The first rule that gives a category, a merchant or a type and matches a booking, given as comparable values by
    field; None for none."""
    return next((rule for rule in rules if rule.decides and rule.holds(values)), None)


def comparable_value(field: str, value: str) -> str:
    """The form in which a field's value is compared: keys (IBAN, creditor id, mandate) in capitals without spaces, any
    other text folded, with single spaces."""
    return "".join(value.split()).upper() if field in KEY_FIELDS else " ".join(fold(value).split())


def is_tag(text: object) -> bool:
    """Whether a value may be a tag: one line of printable characters, not blank, within the length limit."""
    return isinstance(text, str) and text.isprintable() and bool(text.split()) and len(text) <= TAG_LENGTH_MAX


def payee(merchant_name: str | None, kind: str | None) -> str | None:
    """What rules and corrections compare as the merchant of a booking of this type: of cash without one, CASH."""
    return merchant_name or (CASH if kind in OF_CASH else None)


def correction_keys(
    *,
    creditor_id: str | None,
    counterpart_iban: str | None,
    merchant_name: str | None,
    counterpart_name: str | None,
    kind: str | None = None,
) -> list[str]:
    """The keys under which a correction of a booking may be remembered, the surest first: "creditor:" and the creditor
    id, "iban:" and the counterpart's IBAN, "merchant:" and "name:" with the merchant's and the counterpart's name. Of
    cash the merchant comes first, since the others are those of one slip or machine.

    Pass None for all but the merchant of a payment intermediary: they stand for a thousand shops
    (`analytics.classification.intermediaries.is_intermediary`).
    """
    known = [
        ("creditor", "counterpartCreditorId", creditor_id),
        ("iban", "counterpartIban", counterpart_iban),
        ("merchant", "merchantName", payee(merchant_name, kind)),
        ("name", "counterpartName", counterpart_name),
    ]
    if kind in OF_CASH:
        known.insert(0, known.pop(2))
    return [f"{kind}:{comparable_value(field, value)}" for kind, field, value in known if value]


def is_correction_key(key: object) -> bool:
    """Whether this is a key as `correction_keys` makes them."""
    kind, _, value = str(key).partition(":")
    return kind in ("creditor", "iban", "merchant", "name") and value != ""


def _parse_rule(number: int, line: str) -> Rule:
    try:
        given: object = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidRule(number, "not a JSON object") from None
    if not isinstance(given, dict):
        raise InvalidRule(number, "not a JSON object")
    if unknown := [key for key in given if key not in FIELDS]:
        raise InvalidRule(
            number, Message("unknown key {key}; allowed are {allowed}", key=repr(unknown[0]), allowed=", ".join(FIELDS))
        )
    tags = _tags(number, given.pop("tags", None))
    texts = {key: _text(number, key, value) for key, value in given.items() if value is not None}
    field, operator, value = (texts.get(key) for key in ("field", "operator", "value"))
    if field not in TEXT_FIELDS + KEY_FIELDS:
        raise InvalidRule(
            number, Message("field must be one of {allowed}", allowed=", ".join(TEXT_FIELDS + KEY_FIELDS))
        )
    if operator not in OPERATORS:
        raise InvalidRule(number, Message("operator must be one of {allowed}", allowed=", ".join(OPERATORS)))
    if value is None or not comparable_value(field, value):
        raise InvalidRule(number, "value must not be empty")
    if len(value) > VALUE_LENGTH_MAX:
        raise InvalidRule(number, Message("value is longer than {limit} characters", limit=VALUE_LENGTH_MAX))
    category, merchant, kind = (texts.get(key) for key in ("category", "merchant", "type"))
    if category is not None and category not in CATEGORIES:
        raise InvalidRule(number, Message("category must be one of {allowed}", allowed=", ".join(CATEGORIES)))
    if kind is not None and kind not in TYPES:
        raise InvalidRule(number, Message("type must be one of {allowed}", allowed=", ".join(TYPES)))
    leaf, own = texts.get("detailedCategory"), texts.get("ownCategoryId")
    if leaf is not None:
        if leaf not in LEAVES:
            raise InvalidRule(number, "detailedCategory must be one that GET /categories lists")
        if category not in (None, category_of(leaf)):
            raise InvalidRule(number, Message("detailedCategory lies below {category}", category=category_of(leaf)))
        category = category_of(leaf)
    if category is None and merchant is None and kind is None and own is None and not tags:
        raise InvalidRule(number, "nothing to do: give category, merchant, type or tags")
    return Rule(
        id=texts.get("id", str(number)),
        field=field,
        operator=OPERATORS[operator],
        value=value,
        category=category,
        merchant=merchant,
        type=kind,
        detailed_category=leaf,
        own_category_id=own,
        tags=tags,
    )


def _tags(number: int, names: object) -> tuple[str, ...]:
    if names is None:
        return ()
    if not isinstance(names, list) or len(names) > TAGS_MAX or not all(map(is_tag, names)):
        raise InvalidRule(
            number,
            Message(
                "tags must be at most {limit} texts of 1 to {characters} printable characters",
                limit=TAGS_MAX,
                characters=TAG_LENGTH_MAX,
            ),
        )
    return tuple(names)


def _text(number: int, key: str, value: object) -> str:
    if key == "id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or HALF_LETTER.search(value):
        raise InvalidRule(number, Message("{key} must be a text", key=key))
    return value
