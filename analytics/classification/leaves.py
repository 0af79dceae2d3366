"""The leaves, or finer categories: each is below one of the thirteen categories, and determined after that."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from typing import Literal

from analytics.classification.booking_types import Verdict
from analytics.classification.categories import Evidence
from analytics.classification.facts import (
    CACHED_TEXTS_MAX,
    CATEGORIES,
    LEAVES,
    category_of,
    signed_codes,
    spread,
    table,
    value_of,
)
from analytics.classification.persons import COMPANY, INVOICE, TITLES
from analytics.classification.phrases import Found, Phrases, words_of

Place = Literal["name", "text", "else"]
OWN_TRANSFER = "OWN_TRANSFER"


def leaf_below(category: Verdict, evidence: Evidence) -> tuple[str | None, str | None]:
    """The finer category below this category and the rule that gave it, from the first source that has one; both None
    where none has, or where the evidence for the category is doubtful."""
    if category.value is None:
        return None, None
    for source in OTHER_ORDERS.get(category.value, SOURCES):
        leaf = source(category, evidence)
        if leaf is not None and leaf.value is not None and category_of(leaf.value) == category.value:
            return (None, None) if _is_doubtful(category, leaf, evidence) else leaf
    return None, None


def own_transfer(kinds: Iterable[str | None]) -> str:
    """The finer category of a transfer between accounts of these kinds that belong to the same person: that of building
    savings, securities, savings or credit card, the first of them that is among the kinds, else OWN_TRANSFER."""
    return next((OF_KINDS[kind] for kind in OF_KINDS if kind in set(kinds)), OWN_TRANSFER)


def _is_doubtful(category: Verdict, leaf: Verdict, evidence: Evidence) -> bool:
    """Whether the evidence for the category is weak: the category stays then, but gets no finer one, which is better
    than a wrong one."""
    if not category.rule.startswith(TOLD_BY_WORDS):
        return False
    if leaf.rule.startswith("default:"):  # a person's name
        is_bare = evidence.kind == "other" and TITLES.isdisjoint(evidence.merchant.label_words)  # John Lewis is a shop
        is_trade = INVOICE.best(evidence.booking.purpose_words) is not None
        # Friends share a concert
        return is_bare or is_trade or _is_elsewhere(category, leaf, evidence, unheard=OF_SHOPS)
    # What an inn transfers is as likely a wage as a refund
    is_paid_out = evidence.booking.is_credit and evidence.kind == "transfer" and category.rule.startswith("keyword:")
    return (is_paid_out and category.value in OF_SHOPS) or _is_elsewhere(category, leaf, evidence)


def _is_elsewhere(category: Verdict, leaf: Verdict, evidence: Evidence, *, unheard: Set[str] = frozenset()) -> bool:
    """Whether the texts speak for another category (TRANSFER and those in `unheard` do not count): by a word that is
    longer than any for this category, or because the word that gave the finer category also stands for another
    category."""
    assert category.value is not None
    name: Place = "name" if category.value == "OTHER" and category.rule.startswith("default:") else "text"
    for place, words in ((name, evidence.merchant.label_words), ("text", evidence.booking.purpose_words)):
        for hit in _all_words(place, words):
            categories = {other for other, scope in hit.meaning if evidence.booking.is_credit or scope != "credit"}
            is_ours, others = category.value in categories, categories - {category.value, "TRANSFER", *unheard}
            if others and (
                leaf.rule == f"keyword:{hit.phrase}" if is_ours else hit.length > _longest(category.value, evidence)
            ):
                return True
    return False


def _longest(category: str, evidence: Evidence) -> int:
    """The length of the longest word for this category in the texts."""
    heard = (*_texts(evidence), *_other_texts(evidence))
    own = (hit.length for place, words in heard for hit in _words(category, place, words))
    return max(own, default=SHORT_WORD_LENGTH_MAX)


def _by_mcc(_category: Verdict, evidence: Evidence) -> Verdict | None:
    return Verdict(MCCS[evidence.booking.mcc], f"mcc:{evidence.booking.mcc}") if evidence.booking.mcc in MCCS else None


def _by_purpose_code(_category: Verdict, evidence: Evidence) -> Verdict | None:
    code = evidence.booking.purpose_code or ""
    leaf = value_of(code, PURPOSES, is_credit=evidence.booking.is_credit)
    return Verdict(leaf, f"purpose-code:{code.upper()}") if leaf else None


def _by_brand(_category: Verdict, evidence: Evidence) -> Verdict | None:
    brand = evidence.merchant.brand
    return Verdict(brand.leaf, brand.rule) if brand else None


def _by_word(category: Verdict, evidence: Evidence) -> Verdict | None:
    return _leaf_of_words(category, evidence, _texts(evidence))


def _texts(evidence: Evidence) -> Iterable[tuple[Place, tuple[str, ...]]]:
    said = words_of(evidence.booking.bank_text or "")
    return ("name", evidence.merchant.label_words), ("text", evidence.booking.purpose_words), ("text", said)


def _other_texts(evidence: Evidence) -> Iterable[tuple[Place, tuple[str, ...]]]:
    return ("else", evidence.merchant.label_words), ("else", evidence.booking.purpose_words)


def _by_other_word(category: Verdict, evidence: Evidence) -> Verdict | None:
    return _leaf_of_words(category, evidence, _other_texts(evidence))


def _by_own_account(category: Verdict, evidence: Evidence) -> Verdict | None:
    kinds = (evidence.booking.account_kind, evidence.other_kind)
    return Verdict(own_transfer(kinds), category.rule) if category.rule == "own-account" else None


def _by_type(category: Verdict, evidence: Evidence) -> Verdict | None:
    if category.value == "TRANSFER":
        is_no_company = COMPANY.best(evidence.merchant.label_words) is None  # no Mr. Wash AG
        is_person = is_no_company and category.rule.startswith(OF_PEOPLE)
        return Verdict("PERSON_TO_PERSON", category.rule) if is_person else None
    brand = evidence.merchant.brand
    if evidence.kind == "fee" and brand is not None and category_of(brand.leaf or "OTHER") != category.value:
        return None
    leaf = OF_TYPES.get((evidence.kind, evidence.booking.is_credit))
    return Verdict(leaf, f"type:{evidence.kind}") if leaf else None


def _by_bank(category: Verdict, evidence: Evidence) -> Verdict | None:
    """The finer category of cash bookings and fees, by their type; of a fee that words ascribe to the town or a gym, by
    the word. None for other types: words have to tell dividends from interest."""
    if evidence.kind != "fee":
        return _by_type(category, evidence) if evidence.kind in OF_THE_BANK else None
    leaf = _by_word(category, evidence)
    return leaf if leaf is not None and leaf.value in WITH_FEES else _by_type(category, evidence)


def _leaf_of_words(
    category: Verdict, evidence: Evidence, texts: Iterable[tuple[Place, tuple[str, ...]]]
) -> Verdict | None:
    assert category.value is not None
    is_credit = evidence.booking.is_credit
    for place, words in texts:
        best: Found[tuple[str, str]] | None = None
        for hit in _words(category.value, place, words):
            if (is_credit or hit.meaning[1] != "credit") and (best is None or hit.length > best.length):
                best = hit
        if best is not None:
            leaf, scope = best.meaning
            turned = IF_MONEY_COMES_IN.get(leaf, leaf) if is_credit and scope != "name" else leaf
            return Verdict(turned, f"keyword:{best.phrase}")
    return None


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _words(category: str, place: Place, words: Sequence[str]) -> tuple[Found[tuple[str, str]], ...]:
    return tuple(_phrases(category, place).all(words))


@cache
def _phrases(category: str, place: Place) -> Phrases[tuple[str, str]]:
    return Phrases(lambda: _entries(category, place))


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _all_words(place: Place, words: Sequence[str]) -> tuple[Found[frozenset[tuple[str, str]]], ...]:
    return tuple(ALL_PHRASES[place].all(words))


def _all_entries(place: Place) -> Iterator[tuple[str, frozenset[tuple[str, str]]]]:
    """The words of all finer categories that count in this place, each with the categories that it stands for and its
    scopes."""
    categories_of: dict[str, set[tuple[str, str]]] = {}
    for category in CATEGORIES:
        for phrase, (_, scope) in _entries(category, place):
            categories_of.setdefault(phrase, set()).add((category, scope))
    return ((phrase, frozenset(categories)) for phrase, categories in categories_of.items())


def _entries(category: str, place: Place) -> Iterator[tuple[str, tuple[str, str]]]:
    for leaf, scope, phrases in table("leaf_words.tsv"):
        if LEAVES[leaf].category == category and scope in SCOPES[place]:
            yield from ((phrase, (leaf, scope)) for phrase in phrases.split(", "))


def _mccs() -> dict[str, str]:
    """The finer category of each merchant category code; a code listed for two is left out."""
    leaves_of: dict[str, set[str]] = {}
    for leaf in LEAVES.values():
        for code in (f"{code:04}" for codes in leaf.mccs.split() for code in spread(codes)):
            leaves_of.setdefault(code, set()).add(leaf.code)
    return {code: leaves.pop() for code, leaves in leaves_of.items() if len(leaves) == 1}


Source = Callable[[Verdict, Evidence], Verdict | None]
SOURCES: Sequence[Source] = (
    _by_own_account,
    _by_brand,
    _by_mcc,
    _by_purpose_code,
    _by_word,
    _by_type,
    _by_other_word,
)
"""The order in which sources are tried. A brand comes before the code of its terminal, which for UBER EATS says fast
food."""
OF_PEOPLE = ("default:", "intermediary:")
OTHER_ORDERS: Mapping[str, Sequence[Source]] = {
    # The codes of card schemes do not distinguish a café from a restaurant
    "DINING": (_by_brand, _by_word, _by_mcc),
    # The words for a contract ("Abschlag Gas", "Hausrat") say more than a company that sells several things
    "INSURANCE": (_by_mcc, _by_purpose_code, _by_word, _by_brand, _by_other_word),
    "OTHER": (_by_bank, _by_mcc, _by_purpose_code, _by_word, _by_brand, _by_type, _by_other_word),
}
SCOPES: Mapping[Place, Sequence[str]] = {
    "name": ("name", "text", "credit"),
    "text": ("text", "credit"),
    "else": ("else",),
}
IF_MONEY_COMES_IN: Mapping[str, str | None] = {
    "GOVERNMENT_FEES": None,  # a town pays for many things
    "HOME_RENT": "RENTAL_INCOME",
    "INCOME_TAX": "TAX_REFUND",
    "PROPERTY_TAX": "TAX_REFUND",
    "VEHICLE_TAX": "TAX_REFUND",
    "OTHER_TAXES": "TAX_REFUND",
    "INTEREST_PAID": "INTEREST_EARNED",
    "LOAN_PAYMENT": "LOAN_DISBURSEMENT",
}
OF_THE_BANK = {"cash_withdrawal", "cash_deposit"}
WITH_FEES = {"WASTE", "WATER", "GOVERNMENT_FEES", "EDUCATION", "CHILDCARE", "BROADCASTING_FEE", "HOME_REPAIR", "FINES"}
OF_TYPES: Mapping[tuple[str | None, bool], str] = {
    ("salary", True): "WAGES",
    ("fee", False): "BANK_FEES",
    ("interest", False): "INTEREST_PAID",
    ("interest", True): "INTEREST_EARNED",
    ("cash_withdrawal", False): "CASH_WITHDRAWAL",
    ("cash_deposit", True): "CASH_DEPOSIT",
}
OF_KINDS = {
    "building_savings": "BUILDING_SAVINGS",
    "securities": "SECURITIES",
    "savings": "SAVINGS_ACCOUNT",
    "credit_card": "CARD_SETTLEMENT",
}
"""The leaf by the kind of either account; the first kind in this order counts."""
PURPOSES = signed_codes("purpose_leaves.tsv")
ALL_PHRASES: Mapping[Place, Phrases[frozenset[tuple[str, str]]]] = {
    "name": Phrases(lambda: _all_entries("name")),
    "text": Phrases(lambda: _all_entries("text")),
}
TOLD_BY_WORDS = ("brand:", "default:", "intermediary:", "keyword:", "type:fee")
OF_SHOPS = {"DINING", "ENTERTAINMENT", "GROCERIES", "SHOPPING", "SUBSCRIPTION", "TRANSPORT"}
SHORT_WORD_LENGTH_MAX = 5  # "miet*", "spar*", "home", "auto": beside a brand they stand for nothing
MCCS = _mccs()
