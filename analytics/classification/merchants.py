"""The merchant's name as a person would recognise it: the shop behind intermediaries, slips and store numbers; none for
people."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import dropwhile
from typing import NamedTuple

from analytics.classification.facts import CACHED_TEXTS_MAX, LEAVES, category_of, table
from analytics.classification.intermediaries import Intermediary, intermediary_of
from analytics.classification.keywords import Keyword, trades_of
from analytics.classification.persons import is_person
from analytics.classification.phrases import Found, Phrases, words_of
from analytics.classification.shop_names import (
    before_number,
    is_slip,
    slip_text,
    tidy,
    without_reference,
    without_words,
)


class Brand(NamedTuple):
    """A known company or service and the category of its sales; `leaf`, the finer category, is None where it sells
    several things."""

    name: str
    category: str
    rule: str
    leaf: str | None = None


class Merchant(NamedTuple):
    """The counterpart of a booking, as far as the texts show it: a company, or a private person, who gets no `name`.
    `rule` says where the name, or the lack of one, comes from. `brand` and `intermediary` are None where none is
    recognised, `is_person` is None where it is unknown. `label_words` are the folded words in which keywords are looked
    up: the shop's name, else the purpose."""

    name: str | None
    rule: str
    brand: Brand | None
    intermediary: Intermediary | None
    label_words: tuple[str, ...]  # the folded words of the shop's name, in which keywords are looked up
    is_person: bool | None  # None: unknown


SHOPPING_TYPES = {"card_payment", "direct_debit"}
PAYMENT_TYPES = {"transfer", "standing_order"}
OF_THE_BANK = {"interest", "fee", "cash_withdrawal", "cash_deposit"}
GLUED_BEHIND_LENGTH_MIN = 4
GLUED_LENGTH_MIN = 6  # DISNEYPLUS, SPOTIFYP2B6A1: shorter stems begin too many other words
NO_NAME = {"issuer", "unknown", "na", "unbekannt", "notprovided", "verschiedene", "nicht", "empfanger"}
OTHER_SIDE = re.compile(  # banks without a field for the counterpart print it into the purpose
    r"\b(?:auftraggeber|empf(?:ä|ae)nger|beg(?:ü|ue)nstigter|naam|donneur d'ordre|b(?:é|e)n(?:é|e)ficiaire|ordinante)"
    r"\s*:\s*(\S[^:]{3,60})",
    re.IGNORECASE,
)
TRANSFER_HEAD = re.compile(  # the bank's word before the name
    r"^(?:vir(?:ement)?\b(?: (?:sepa|inst|instantan[eé]|re[cç]u|faveur|de|permanent))*|"
    r"bonifico(?: sepa)?(?: a favore di)?|transferencia(?: (?:de|a favor de|a))?|bizum (?:a favor de|de|a)|"
    r"mobilepay:?|vipps\b[*:]?|swish(?: till| fr[aå]n)?|"
    r"(?:internet-|online-)?(?:ü|ue)berweisung)\s*",
    re.IGNORECASE,
)
BEHIND_PATTERNS = (  # where PayPal, Klarna and others name the shop in the purpose
    re.compile(r"[Ee]inkauf bei\s+([^,;]{2,60})"),
    re.compile(r"\bPP\s{0,3}\.\s{0,3}\d{2,6}\s{0,3}\.\s{0,3}PP\s{0,3}[/.]{0,3}\s{0,3}\.?\s{0,3}([^,;]{2,60})"),
    re.compile(r"\b(?:purchase at|achat chez|aankoop bij|acquisto presso)\s+([^,;]{2,60})", re.IGNORECASE),
)
_LEGAL = (
    "europe europa s a r l sarl et cie sca c bank ab publ gmbh ag nv n v ltd limited luxembourg inst xfer payments "
    "payment services llc inc bv b"
)
LEGAL_WORDS = frozenset(_LEGAL.split())


def merchant(name: str | None, purpose: str | None, purpose_words: Sequence[str], kind: str) -> Merchant:
    """The counterpart of a booking of type `kind`, recognised by its name, else by the purpose: a company by the name
    of the shop or brand, also behind an intermediary; a private person, or one that is not recognised, without a
    name."""
    if name is None:
        return _from_purpose(purpose or "", purpose_words, kind)
    known = _from_label(name, kind)
    if known.intermediary is not None and known.brand is None and known.name == known.intermediary.name:
        return _shop_behind(known, purpose or "", purpose_words)
    if known.brand is None and kind == "card_payment" and known.is_person is not True:
        brand = _brand(tuple(purpose_words), is_shop=False)
        if brand is not None:
            return known._replace(name=brand.name, rule=brand.rule, brand=brand)
    return known


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _from_label(label: str, kind: str) -> Merchant:
    label = without_reference(label.split("//")[0].split(" : ")[0].strip())
    if is_slip(label):
        label = slip_text(label)
    label_words = words_of(label)
    if kind in PAYMENT_TYPES and _is_named(label):
        return Merchant(None, "person", None, None, label_words, True)
    carrier = intermediary_of(label_words, has_star="*" in label)
    person: bool | None
    intermediary: Intermediary | None
    if carrier is not None:
        intermediary, used = carrier
        rest = [word for word in label_words[used:] if word not in LEGAL_WORDS]
        if not rest:
            return Merchant(intermediary.name, "intermediary", None, intermediary, (), False)
        label = without_words(label, used)
        label_words = words_of(label)
        is_shop, person = True, False
    else:
        intermediary = None
        person = is_person(label, label_words)
        is_shop = kind in SHOPPING_TYPES
        if kind in PAYMENT_TYPES | {"salary", "other"} and person:
            return Merchant(None, "person", None, None, label_words, True)
    is_shop_or_bare = is_shop or (kind == "other" and _is_bare(label_words))
    brand = _brand(label_words, is_shop=is_shop_or_bare) or (
        _brand_stem(label_words) if intermediary is not None else None
    )
    if brand is not None:
        return Merchant(brand.name, brand.rule, brand, intermediary, label_words, False)
    if kind in OF_THE_BANK or not label_words or set(label_words) <= NO_NAME:
        return Merchant(None, "none", None, intermediary, label_words, person)
    if not is_shop and person is None:
        return Merchant(None, "none", None, None, label_words, None)
    if person and kind != "card_payment":
        return Merchant(None, "person", None, None, label_words, True)
    return Merchant(
        tidy(label), "counterpart", None, intermediary, label_words, person if kind != "card_payment" else False
    )


def _from_purpose(purpose: str, purpose_words: Sequence[str], kind: str) -> Merchant:
    """The merchant of a booking without a counterpart's name, from the purpose, which may name one."""
    all_words = tuple(purpose_words)
    if kind in PAYMENT_TYPES and _is_named(purpose):
        return Merchant(None, "person", None, None, all_words, True)
    slip = slip_text(without_reference(purpose).split(" : ")[0]) if kind in (*SHOPPING_TYPES, "other") else ""
    slip_words = tuple(dropwhile(_has_digit, words_of(slip)))  # the card's number comes first, then the shop
    carrier = intermediary_of(slip_words or all_words, has_star="*" in purpose)
    if carrier is not None:
        intermediary, _ = carrier
        known = Merchant(intermediary.name, "intermediary", None, intermediary, (), False)
        behind = _shop_behind(known, purpose, purpose_words)
        if behind.name != intermediary.name or "*" not in slip:
            return behind
        return _from_label(slip, "card_payment")  # PAYPAL *WOLLKISTE: the whole line is the label
    brand = _brand(slip_words, is_shop=True) if slip_words else None
    brand = brand or _brand(all_words, is_shop=False)
    if brand is not None:
        return Merchant(brand.name, brand.rule, brand, None, all_words, False)
    if kind != "card_payment":
        return Merchant(None, "none", None, None, all_words, False)
    head = before_number(slip)
    return Merchant(tidy(head) if head else None, "purpose" if head else "none", None, None, all_words, False)


def _is_named(text: str) -> bool:
    """Whether a line of the bank names a person, after "Auftraggeber:" or after the bank's own word."""
    named = OTHER_SIDE.search(text)
    label = named[1] if named else TRANSFER_HEAD.sub("", text)
    return is_person(label, words_of(label)) is True


def _is_bare(label_words: Sequence[str]) -> bool:
    """Whether all words of a name but the first contain digits (BP 0412, BOOTS 1223), as statements write only
    shops."""
    return all(_has_digit(word) for word in label_words[1:])


def _has_digit(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _shop_behind(known: Merchant, purpose: str, purpose_words: Sequence[str]) -> Merchant:
    """The shop behind an intermediary, from the purpose; the intermediary itself where the purpose names none."""
    for pattern in BEHIND_PATTERNS:
        match = pattern.search(purpose)
        shop_words = words_of(match[1]) if match else ()
        if match and shop_words and intermediary_of(shop_words, has_star=False) is None:
            brand = _brand(shop_words, is_shop=True)
            if brand is not None:
                return known._replace(name=brand.name, rule=brand.rule, brand=brand, label_words=shop_words)
            return known._replace(name=tidy(match[1]), rule="behind-intermediary", label_words=shop_words)
    brand = _brand(tuple(purpose_words), is_shop=False)
    if brand is not None and brand.name != known.name:
        return known._replace(name=brand.name, rule=brand.rule, brand=brand)
    return known


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _brand(label_words: tuple[str, ...], *, is_shop: bool) -> Brand | None:
    """The brand in a text: the first one in a shop's label, else the longest one, the earliest of equals; None for
    none.

    A shop's trade may rule a brand out: a BAECKEREI KLINGEL is a bakery whatever Klingel sells elsewhere, and an
    ambiguous name counts only as the first word of a shop that names no other trade (SATURN APOTHEKE).
    """
    trades = list(trades_of(label_words)) if is_shop else []
    best: tuple[int, Brand] | None = None
    for hit in BRANDS.all(label_words):
        brand, is_ambiguous = hit.meaning
        if is_ambiguous and not (is_shop and hit.position == 0 and _agree(trades, brand)):
            continue
        if is_shop and hit.position > 0 and not _agree([trade for trade in trades if trade.position == 0], brand):
            continue
        if best is None or (hit.length > best[0] and not is_shop):
            best = (hit.length, brand)
    if best is None and is_shop:
        return _brand_stem(label_words, length_min=GLUED_LENGTH_MIN)
    return best[1] if best else None


def _agree(trades: Sequence[Found[Keyword]], brand: Brand) -> bool:
    return all(trade.meaning.category == brand.category for trade in trades)


def _brand_stem(label_words: Sequence[str], *, length_min: int = 0) -> Brand | None:
    """The longest brand with whose letters the first word begins (EBAYO, IKEADEUTSCHLAN), of at least `length_min`
    letters and never fewer than four; None for none."""
    word = label_words[0] if label_words else ""
    lengths = range(len(word), max(length_min, GLUED_BEHIND_LENGTH_MIN) - 1, -1)
    known = _brands_without_gaps()
    return next((known[word[:length]] for length in lengths if word[:length] in known), None)


@cache
def _brands_without_gaps() -> dict[str, Brand]:
    """Brands by the letters of their names without gaps; ambiguous names and those of fewer than four letters are left
    out."""
    sure = (("".join(words_of(alias)), brand) for alias, (brand, is_ambiguous) in _entries() if not is_ambiguous)
    return {letters: brand for letters, brand in sure if len(letters) >= GLUED_BEHIND_LENGTH_MIN}


@cache
def _entries() -> list[tuple[str, tuple[Brand, bool]]]:
    entries: list[tuple[str, tuple[Brand, bool]]] = []
    for code, name, *aliases in table("brands.tsv"):
        slug = "-".join(words_of(name))
        brand = Brand(name, category_of(code), f"brand:{slug}", code if code in LEAVES else None)
        for alias in aliases[0].split(", ") if aliases else [name]:
            entries.append((alias.removeprefix("?"), (brand, alias.startswith("?"))))
    return entries


BRANDS = Phrases(_entries)
