"""The category of a booking: from the first of a chain of rules that gives one, with the name of that rule."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from analytics.classification.booking_types import NOTHING, BookingFacts, Verdict
from analytics.classification.facts import CACHED_TEXTS_MAX, signed_codes, spread, table, value_of
from analytics.classification.keywords import Keyword, keywords_of
from analytics.classification.merchants import OF_THE_BANK, PAYMENT_TYPES, Merchant
from analytics.classification.persons import INVOICE
from analytics.classification.phrases import Found, words_of

SAVINGS_KINDS = {"savings", "securities", "building_savings"}
OF_A_HOME = Keyword("RENT", "text")  # service charges, frais and canone are words of banks and of landlords
MASKED = re.compile(r"(.)\1\1")  # stands for a removed name, which cannot be judged
LAST_RESORT_CODES = {"GDDS", "POPE"}  # goods and point of sale: SHOPPING only when nothing else decides


class Evidence(NamedTuple):
    """A booking with its type (`kind`; None for none) and merchant; whether its counterpart is an own account
    (`is_own`), and the kind of that account, None where it is unknown or not an own one."""

    booking: BookingFacts
    kind: str | None
    merchant: Merchant
    is_own: bool
    other_kind: str | None  # of the own account on the other side


def category(evidence: Evidence) -> Verdict:
    """One of the thirteen values of interface 4.2 with its rule; None where there is no type either (decision 65).
    Rules and corrections of the user have been tried before."""
    booking, merchant = evidence.booking, evidence.merchant
    if evidence.kind is None:
        return Verdict(None, NOTHING)
    if evidence.is_own:
        kinds = {booking.account_kind, evidence.other_kind}
        return Verdict("SAVINGS" if kinds & SAVINGS_KINDS else "TRANSFER", "own-account")
    if evidence.kind == "salary":
        return Verdict("SALARY", "type:salary")
    word = _best_word(evidence)
    if evidence.kind in OF_THE_BANK and not (word is not None and word.meaning == OF_A_HOME):
        return Verdict("OTHER", f"type:{evidence.kind}")
    coded = _category_of_codes(booking)
    if coded is not None:
        return coded
    if merchant.brand is not None and not (word is not None and _outweighs(word, merchant)):
        return Verdict(merchant.brand.category, merchant.brand.rule)
    if word is not None:
        return Verdict(word.meaning.category, f"keyword:{word.phrase}")
    if merchant.intermediary is not None and merchant.intermediary.category != "OTHER":
        return Verdict(merchant.intermediary.category, f"intermediary:{merchant.intermediary.name.lower()}")
    if booking.purpose_code in LAST_RESORT_CODES and not booking.is_credit:
        return Verdict("SHOPPING", f"purpose-code:{booking.purpose_code}")
    if evidence.kind in PAYMENT_TYPES and _may_be_private(merchant, booking.purpose_words):
        return Verdict("TRANSFER", f"default:{evidence.kind}")
    if evidence.kind == "other" and merchant.is_person is True and all(len(word) > 1 for word in merchant.label_words):
        return Verdict("TRANSFER", "default:other")  # one letter may be a person's or a company's (E. LECLERC)
    return Verdict("OTHER", f"default:{evidence.kind}")


def _category_of_codes(booking: BookingFacts) -> Verdict | None:
    code = booking.purpose_code or ""
    by_purpose = value_of(code, PURPOSES, is_credit=booking.is_credit)
    if by_purpose is not None:
        return Verdict(by_purpose, f"purpose-code:{code.upper()}")
    by_mcc = MCCS.get(booking.mcc or "")
    return Verdict(by_mcc, f"mcc:{booking.mcc}") if by_mcc else None


def _best_word(evidence: Evidence) -> Found[Keyword] | None:
    """The keyword that decides, None for none: the longest one in the name, else in the purpose, else in the bank's
    text. The name of a private person has none."""
    booking, merchant = evidence.booking, evidence.merchant
    is_nameless = merchant.label_words == booking.purpose_words
    counted = {"text"} if merchant.is_person is True else {"text", "company"}
    if booking.is_credit:
        counted.add("credit")
    named = set(counted)
    if merchant.is_person is True and not is_nameless:
        named.clear()  # Jana Lindström sells no electricity
    elif merchant.is_person is not True and not (is_nameless and evidence.kind in PAYMENT_TYPES):
        named.add("name")  # not in a bare purpose, which may contain addresses: Place de la Gare
        if evidence.kind == "card_payment":
            named.add("card")
    return (
        _longest(keywords_of(merchant.label_words), named)
        or _longest(keywords_of(booking.purpose_words), counted)
        or _settlement(booking.bank_text)
    )


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _settlement(bank_text: str | None) -> Found[Keyword] | None:
    """The keyword in the bank's text, if it means a card settlement, a saving or a move between own accounts; else
    None."""
    known = _longest(keywords_of(words_of(bank_text or "")), {"text"})
    return known if known is not None and known.meaning.category in ("TRANSFER", "SAVINGS") else None


def _outweighs(word: Found[Keyword], merchant: Merchant) -> bool:
    """Whether a keyword decides against the brand that carries the payment out: one about saving, one about electricity
    against a brand of SUBSCRIPTION, and one of any category but OTHER against a brand of OTHER. It has to count in
    every text, or in every text of a credit, not only in names."""
    assert merchant.brand is not None
    if word.meaning.scope not in ("text", "credit"):
        return False
    if word.meaning.category == "OTHER":
        return merchant.brand.category == "SUBSCRIPTION" and word.phrase.startswith("strom")
    return word.meaning.category == "SAVINGS" or merchant.brand.category == "OTHER"


def _longest(hits: Iterable[Found[Keyword]], scopes: set[str]) -> Found[Keyword] | None:
    best: Found[Keyword] | None = None
    for hit in hits:
        if hit.meaning.scope in scopes and (best is None or _says_more(hit, best)):
            best = hit
    return best


def _says_more(hit: Found[Keyword], best: Found[Keyword]) -> bool:
    """Whether a keyword is better than the best so far: the longer one is, but SAVINGS always beats TRANSFER ("Übertrag
    auf Tagesgeld")."""
    if {hit.meaning.category, best.meaning.category} == {"SAVINGS", "TRANSFER"}:
        return hit.meaning.category == "SAVINGS"
    return hit.length > best.length


def _may_be_private(merchant: Merchant, purpose_words: Sequence[str]) -> bool:
    """Whether the counterpart may be a private person: known as one, or named by two to four plain words (not masked,
    longer than a letter) with no company word and no mention of invoices."""
    if merchant.intermediary is not None or merchant.brand is not None:
        return False
    if merchant.is_person is not None:
        return merchant.is_person
    is_plain = all(len(word) > 1 and MASKED.search(word) is None for word in merchant.label_words)
    return 2 <= len(merchant.label_words) <= 4 and is_plain and INVOICE.best(purpose_words) is None


PURPOSES = signed_codes("purpose_categories.tsv")
# Of codes that several lines name, the first line counts
MCCS = {f"{code:04}": value for codes, value in reversed(table("mcc_categories.tsv")) for code in spread(codes)}
