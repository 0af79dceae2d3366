"""Sentences that explain why a booking has its type, category and merchant, and why it is an own transfer."""

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.classification.rules import Rule
from analytics.messages import Message, Word, message
from analytics.transfers import BY_AMOUNT, BY_EXCHANGE, BY_IBAN, BY_OTHER_LEG, BY_SETTLEMENT

BY_USER = "user-rule"
_ADJUSTING = "The service wrote this entry itself, so that an incomplete history meets the bank's balance."
_OUT_OF_SIGHT = "What it follows from is nothing that this connection may read."
_ISO = "The bank's ISO 20022 transaction code {detail} says so."
_PURPOSE_CODE = "The ISO 20022 purpose code {detail} says so."
_MCC = "The merchant category code {detail} of the card payment says so."

TYPE = {
    "iso-code": _ISO,
    "gvc": "The bank's German transaction code (GVC) {detail} says so.",
    "swift": "The bank's SWIFT or OFX transaction type {detail} says so.",
    "purpose-code": _PURPOSE_CODE,
    "mcc": _MCC,
    "word": "The words of the bank or of the purpose say so (“{detail}”).",
    "mandate": "A mandate or a creditor id is given, which only direct debits have.",
    "counterpart-iban": "The payee or payer has an IBAN, and nothing speaks for another type.",
    "default": "What the transaction says fits none of the types.",
    "nothing": "The transaction says nothing but its amount and its day.",
    "adjusting-entry": _ADJUSTING,
}
CATEGORY = {
    "own-account": "The payee or payer is an account of yours.",
    "type": "Every transaction of the type {detail} has this category.",
    "purpose-code": _PURPOSE_CODE,
    "mcc": _MCC,
    "brand": "It is what people buy from this company, which is in the table of known ones ({detail}).",
    "keyword": "A word in the names or in the purpose stands for it (“{detail}”).",
    "intermediary": "It is what payments through this service are mostly for ({detail}).",
    "out-of-sight": _OUT_OF_SIGHT,
    "chosen": "You have said so of this transaction alone.",
    "correction": "You have corrected a transaction with the same {detail} before.",
    "default": "Nothing in the transaction says more than its type ({detail}).",
    "nothing": "The transaction says nothing but its amount and its day.",
    "adjusting-entry": _ADJUSTING,
}
MERCHANT = {
    "brand": "The name or the purpose names a company in the table of known ones ({detail}).",
    "counterpart": "It is the name of the payee or payer, without branch numbers and places.",
    "behind-intermediary": "The payment service that carried the money names it in the purpose.",
    "intermediary": "Only the payment service that carried the money is named.",
    "purpose": "The bank gives no name in a field of its own; the purpose begins with it.",
    "person": "The payee or payer is a person, not a merchant.",
    "own-account": "The payee or payer is an account of yours, not a merchant.",
    "out-of-sight": _OUT_OF_SIGHT,
    "none": "Nothing in the transaction names a merchant.",
}
TRANSFER = {
    BY_IBAN: "The IBAN of the payee or payer is that of another account of yours",
    BY_OTHER_LEG: "The transaction on your other account names the IBAN of this one, with the opposite amount",
    BY_SETTLEMENT: "It settles your credit card, and each is the only one of the opposite amount within 4 days",
    BY_EXCHANGE: "It exchanges one currency for another at one bank, with the transaction of the same day there",
    BY_AMOUNT: "Neither transaction names an IBAN, and each is the only one of the opposite amount within 4 days",
}
OWN_RULE = {
    "contains": "Your rule {id} says so: {field} contains “{value}”.",
    "equals": "Your rule {id} says so: {field} is “{value}”.",
    "startswith": "Your rule {id} says so: {field} begins with “{value}”.",
}
OF_TYPE = ("type", "default")  # rules whose detail is a type of booking
CORRECTED_BY = {"creditor": "creditor id", "iban": "IBAN of payee or payer", "merchant": "merchant", "name": "name"}


def reason(sentences: Mapping[str, str], rule: str | None, users: Sequence[Rule]) -> Message:
    """The sentence for the stored name of a rule, from one of the tables above (`sentences`), or about the user's own
    rule, which is among `users` if it still exists. None has a sentence too: no rule gave a value."""
    if rule is None:
        return Message("No rule gave a value.")
    name, _, detail = rule.partition(":")
    if name == BY_USER:
        return _own_rule(detail, users)
    if name not in sentences:
        return Message("The rule {detail} says so.", detail=rule)
    known = message(CORRECTED_BY[detail]) if detail in CORRECTED_BY else Word(detail) if name in OF_TYPE else detail
    return Message(sentences[name], detail=known)


def transfer_reason(row: Mapping[str, Any]) -> Message:
    """A sentence on whether the booking is a transfer between two accounts of the user, how that was found, and whether
    the booking on the other account is there yet."""
    if row["transfer_rule"] is None:
        return Message("Nothing shows that the payee or payer is an account of yours.")
    known = message(TRANSFER[row["transfer_rule"]])
    if row["transfer_id"] is None:
        return Message(
            "{reason}; no transaction there belongs to it yet, so it counts as income or expense until one arrives.",
            reason=known,
        )
    if row["transfer_fee"] is not None:
        return Message(
            "{reason}; where both accounts are selected, only the fee counts that it lost on its way.", reason=known
        )
    return Message("{reason}; it is left out where both accounts are selected.", reason=known)


def _own_rule(id_: str, users: Sequence[Rule]) -> Message:
    rule = next((rule for rule in users if rule.id == id_), None)
    if rule is None:
        return Message("Your rule {id} said so; you have changed your rules since.", id=id_)
    return Message(OWN_RULE[rule.operator], id=id_, field=Word(rule.field), value=rule.value)
