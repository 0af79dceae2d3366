"""The leaves, or finer categories: each is below one of the thirteen categories, and determined after that."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from analytics.classification.booking_types import Verdict
from analytics.classification.facts import CACHED_TEXTS_MAX, CATEGORIES, spread, table
from analytics.classification.persons import COMPANY
from analytics.classification.phrases import Found, Phrases

Place = Literal["name", "text", "else"]
OWN_TRANSFER = "OWN_TRANSFER"


class Leaf(NamedTuple):
    """A finer category, as in `leaves.tsv`."""

    code: str
    category: str
    english: str
    german: str
    coicop: str
    mccs: str
    plaid: str


LEAVES: Mapping[str, Leaf] = {row[0]: Leaf(*row) for row in table("leaves.tsv")}
"""Every leaf by its code, in the order in which they are shown."""


def category_of(code: str) -> str:
    """The category above a leaf; a category itself is returned unchanged."""
    return LEAVES[code].category if code in LEAVES else code


class Clues(NamedTuple):
    """The facts that may determine a leaf, besides the category and its rule."""

    kind: str | None
    is_credit: bool
    purpose_code: str | None
    mcc: str | None
    name_words: tuple[str, ...]
    purpose_words: tuple[str, ...]
    bank_words: tuple[str, ...]
    brand: Verdict | None
    account_kinds: tuple[str | None, str | None]


def detailed(category: Verdict, clues: Clues) -> tuple[str | None, str | None]:
    """The leaf below this category and the rule that gave it, from the first source that has one; both None where none
    has."""
    if category.value is None:
        return None, None
    for source in OTHER_ORDERS.get(category.value, SOURCES):
        leaf = source(category, clues)
        if leaf is not None and leaf.value is not None and category_of(leaf.value) == category.value:
            return leaf
    return None, None


def own_transfer(kinds: Iterable[str | None]) -> str:
    """The leaf of a transfer between accounts of these kinds that belong to the same person."""
    return next((OF_KINDS[kind] for kind in OF_KINDS if kind in set(kinds)), OWN_TRANSFER)


def _by_mcc(_category: Verdict, clues: Clues) -> Verdict | None:
    return Verdict(MCCS[clues.mcc], f"mcc:{clues.mcc}") if clues.mcc in MCCS else None


def _by_purpose_code(_category: Verdict, clues: Clues) -> Verdict | None:
    code = (clues.purpose_code or "").upper()
    leaf = PURPOSES.get((code, "+" if clues.is_credit else "-")) or PURPOSES.get((code, "*"))
    return Verdict(leaf, f"purpose-code:{code}") if leaf else None


def _by_brand(_category: Verdict, clues: Clues) -> Verdict | None:
    return clues.brand


def _by_word(category: Verdict, clues: Clues) -> Verdict | None:
    return _leaf_of_words(
        category, clues, (("name", clues.name_words), ("text", clues.purpose_words), ("text", clues.bank_words))
    )


def _by_other_word(category: Verdict, clues: Clues) -> Verdict | None:
    return _leaf_of_words(category, clues, (("else", clues.name_words), ("else", clues.purpose_words)))


def _by_own_account(category: Verdict, clues: Clues) -> Verdict | None:
    return Verdict(own_transfer(clues.account_kinds), category.rule) if category.rule == "own-account" else None


def _by_type(category: Verdict, clues: Clues) -> Verdict | None:
    if category.value == "TRANSFER":
        is_told = category.rule.startswith(OF_PEOPLE) and COMPANY.best(clues.name_words) is None  # no Mr. Wash AG
        return Verdict("PERSON_TO_PERSON", category.rule) if is_told else None
    if clues.kind == "fee" and clues.brand is not None and category_of(clues.brand.value or "OTHER") != category.value:
        return None
    leaf = OF_TYPES.get((clues.kind, clues.is_credit))
    return Verdict(leaf, f"type:{clues.kind}") if leaf else None


def _by_bank(category: Verdict, clues: Clues) -> Verdict | None:
    """The leaf of a booking by the bank itself, from its type alone, except that words tell dividends from interest,
    and that a fee may be somebody else's: the town's, or a gym's."""
    if clues.kind != "fee":
        return _by_type(category, clues) if clues.kind in OF_THE_BANK else None
    told = _by_word(category, clues)
    return told if told is not None and told.value in WITH_FEES else _by_type(category, clues)


def _leaf_of_words(category: Verdict, clues: Clues, texts: Iterable[tuple[Place, tuple[str, ...]]]) -> Verdict | None:
    assert category.value is not None
    for place, words in texts:
        best: Found[tuple[str, str]] | None = None
        for hit in _words(category.value, place, words):
            if (clues.is_credit or hit.meaning[1] != "credit") and (best is None or hit.length > best.length):
                best = hit
        if best is not None:
            leaf, scope = best.meaning
            turned = IF_MONEY_COMES_IN.get(leaf, leaf) if clues.is_credit and scope != "name" else leaf
            return Verdict(turned, f"keyword:{best.phrase}")
    return None


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _words(category: str, place: Place, words: Sequence[str]) -> tuple[Found[tuple[str, str]], ...]:
    return tuple(_phrases(category, place).all(words))


@cache
def _phrases(category: str, place: Place) -> Phrases[tuple[str, str]]:
    return Phrases(lambda: _entries(category, place))


def _entries(category: str, place: Place) -> Iterator[tuple[str, tuple[str, str]]]:
    for leaf, scope, phrases in table("leaf_words.tsv"):
        if LEAVES[leaf].category == category and scope in SCOPES[place]:
            yield from ((phrase, (leaf, scope)) for phrase in phrases.split(", "))


def _mccs() -> dict[str, str]:
    """The leaf of each merchant category code; a code listed for two leaves is left out."""
    told: dict[str, set[str]] = {}
    for leaf in LEAVES.values():
        for code in (f"{code:04}" for codes in leaf.mccs.split() for code in spread(codes)):
            told.setdefault(code, set()).add(leaf.code)
    return {code: leaves.pop() for code, leaves in told.items() if len(leaves) == 1}


Source = Callable[[Verdict, Clues], Verdict | None]
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
    ("fee", True): "BANK_FEES",
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
PURPOSES: Mapping[tuple[str, str], str] = {
    (code, sign): leaf for codes, sign, leaf in table("purpose_leaves.tsv") for code in codes.split()
}
MCCS = _mccs()
assert {leaf.category for leaf in LEAVES.values()} == set(CATEGORIES)
assert not set(LEAVES) & set(CATEGORIES)
