"""Sentences that explain why a booking has its type, category and merchant, and why it is an own transfer."""

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.classification.rules import Rule
from analytics.transfers import BY_AMOUNT, BY_EXCHANGE, BY_IBAN, BY_OTHER_LEG, BY_SETTLEMENT

BY_USER = "user-rule"
_ADJUSTING = "The service wrote this entry itself, so that an incomplete history meets the bank's balance."
_OUT_OF_SIGHT = "What it follows from is nothing that this connection may read."
_ISO = "The bank's ISO 20022 transaction code {} says so."
_PURPOSE_CODE = "The ISO 20022 purpose code {} says so."
_MCC = "The merchant category code {} of the card payment says so."

TYPE = {
    "iso-code": _ISO,
    "gvc": "The bank's German transaction code (GVC) {} says so.",
    "swift": "The bank's SWIFT or OFX transaction type {} says so.",
    "purpose-code": _PURPOSE_CODE,
    "mcc": _MCC,
    "word": "The words of the bank or of the purpose say so (“{}”).",
    "mandate": "A mandate or a creditor id is given, which only direct debits have.",
    "counterpart-iban": "The other side has an IBAN, and nothing speaks for another type.",
    "default": "What the booking says fits none of the types.",
    "nothing": "The booking says nothing but its amount and its day.",
    "adjusting-entry": _ADJUSTING,
}
CATEGORY = {
    "own-account": "The other side is an account of yours.",
    "type": "Every booking of the type {} has this category.",
    "purpose-code": _PURPOSE_CODE,
    "mcc": _MCC,
    "brand": "It is what people buy from this company, which is in the table of known ones ({}).",
    "keyword": "A word in the names or in the purpose stands for it (“{}”).",
    "intermediary": "It is what payments through this service are mostly for ({}).",
    "out-of-sight": _OUT_OF_SIGHT,
    "chosen": "You have said so of this booking alone.",
    "correction": "You have corrected a booking with the same {} before.",
    "default": "Nothing in the booking says more than its type ({}).",
    "nothing": "The booking says nothing but its amount and its day.",
    "adjusting-entry": _ADJUSTING,
}
MERCHANT = {
    "brand": "The name or the purpose names a company in the table of known ones ({}).",
    "counterpart": "It is the name of the other side, without branch numbers and places.",
    "behind-intermediary": "The payment service that carried the money names it in the purpose.",
    "intermediary": "Only the payment service that carried the money is named.",
    "purpose": "The bank gives no name in a field of its own; the purpose begins with it.",
    "person": "The other side is a person, not a merchant.",
    "own-account": "The other side is an account of yours, not a merchant.",
    "out-of-sight": _OUT_OF_SIGHT,
    "none": "Nothing in the booking names a merchant.",
}
TRANSFER = {
    BY_IBAN: "The IBAN of the other side is that of another account of yours",
    BY_OTHER_LEG: "The booking on your other account names the IBAN of this one, with the opposite amount",
    BY_SETTLEMENT: "It settles your credit card, and each is the only one of the opposite amount within 4 days",
    BY_EXCHANGE: "It exchanges one currency for another at one bank, with the booking of the same day there",
    BY_AMOUNT: "Neither booking names an IBAN, and each is the only one of the opposite amount within 4 days",
}
CORRECTED_BY = {"creditor": "creditor id", "iban": "IBAN on the other side", "merchant": "merchant"}


def reason(sentences: Mapping[str, str], rule: str | None, users: Sequence[Rule]) -> str:
    """The sentence for the stored name of a rule, from one of the tables above (`sentences`), or about the user's own
    rule, which is among `users` if it still exists. None has a sentence too: no rule gave a value."""
    if rule is None:
        return "No rule gave a value."
    name, _, detail = rule.partition(":")
    if name == BY_USER:
        return _own_rule(detail, users)
    sentence = sentences.get(name, "The rule {} says so.")
    return sentence.format(CORRECTED_BY.get(detail, detail) if name in sentences else rule)


def transfer_reason(row: Mapping[str, Any]) -> str:
    """A sentence on whether the booking is a transfer between two accounts of the user, how that was found, and whether
    the booking on the other account is there yet."""
    if row["transfer_rule"] is None:
        return "Nothing shows that the other side is an account of yours."
    known = TRANSFER[row["transfer_rule"]]
    if row["transfer_id"] is None:
        return f"{known}; no booking there belongs to it yet, so it counts as income or expense until one arrives."
    if row["transfer_fee"] is not None:
        return f"{known}; where both accounts are selected, only the fee counts that it lost on its way."
    return f"{known}; it is left out where both accounts are selected."


def _own_rule(id_: str, users: Sequence[Rule]) -> str:
    rule = next((rule for rule in users if rule.id == id_), None)
    if rule is None:
        return f"Your rule {id_} said so; you have changed your rules since."
    verb = {"contains": "contains", "equals": "is", "startswith": "begins with"}[rule.operator]
    return f"Your rule {id_} says so: {rule.field} {verb} “{rule.value}”."
