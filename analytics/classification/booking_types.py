"""The type of a booking: from its codes, then the bank's words, then its other properties (sources: ISO 20022, DK,
SWIFT)."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from analytics.classification.facts import CACHED_TEXTS_MAX, signed_codes, spread, table, value_of
from analytics.classification.phrases import Phrases, words_of


class Verdict(NamedTuple):
    """A derived value, and the lasting name of the rule that gave it ("gvc:105"); the value is None when the rule gives
    none."""

    value: str | None
    rule: str


class BookingFacts(NamedTuple):
    """What the classification reads of one booking; blank texts are None. `name` is that of the merchant where the
    source states one, else the counterpart's; `account_kind` is the kind of the account on which it is booked."""

    is_credit: bool
    name: str | None
    iban: str | None
    creditor_id: str | None
    mandate: str | None
    purpose: str | None
    purpose_words: tuple[str, ...]
    bank_transaction_code: str | None
    purpose_code: str | None
    gvc: str | None
    swift_code: str | None
    mcc: str | None
    bank_text: str | None
    account_kind: str | None

    @property
    def has_mandate(self) -> bool:
        """Whether a mandate or a creditor id is named."""
        return self.mandate is not None or self.creditor_id is not None


NOTHING = "nothing"  # the rule name of a value that is None
UNDECIDED = "?"
OFX_SIGNS = {"DEBIT", "CREDIT"}  # the TRNTYPEs that only state the sign
SILENT = OFX_SIGNS | {"NMSC", "999"}  # SWIFT's "miscellaneous", and the GVC for bookings without structure
NAMED_TYPES = {"cash_withdrawal", "cash_deposit", "standing_order", "direct_debit", "card_payment", "fee", "interest"}
CODE_LENGTH_MAX = 2  # letters of a code such as "DD", "SO", "tb", which counts only as the bank's whole text
HEAD_WORDS_MAX = 8  # banks without a field for the kind of booking write it into the first words of the purpose
CASH_MCCS = {"6010", "6011"}
# These say "some transfer"; the bank's own words know better
WEAK_SWIFT = {"NTRF", "XFER", "FTRF", "STRF", "DIRECTDEP", "PAYMENT"}
CARD_MARKS = re.compile(  # card slips as Austrian, German, Dutch, French and Spanish banks print them
    r"\bk\d \d\d \d\d \d\d \d\d\b|\bpas ?\d{3}\b|\bkarte ?\d|\bdebitk\b|\bkfn \d|\bfolgenr \d|\bpasvolgnr\b|"
    r"^cb \w|\bcb \d{4}\b|\btarj(?:eta)? [x\d]|"
    r"\bdankt \d{3,}|\bvisa debit\b|\bgirocard\b|\b(?:mobile|card|pin|sign) purchase\b|\bkauf dienstleistung\b"
)
CASH_MARKS = re.compile(r"\bga nr ?\d|\bgaa\b|\bgeldautomat")
SHOP_DESCRIPTOR = re.compile(r"//|\w ?\*")  # EDEKA//MUENCHEN/DE, SUMUP *CAFE: how card schemes write a shop
US_SHOP = re.compile(  # DUNKIN #3311 PROVIDENCE RI: American cards print town and state after the shop
    r"[A-Z0-9] [A-Z][A-Z .'-]{1,40} (?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|"
    r"O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY])$"
)


def booking_type(booking: BookingFacts) -> Verdict:
    """The type of a booking, one of the ten of interface 2.4, with its rule: "other" where the facts fit no type, None
    where there are none: no telling code, no name and no word. A credit that is a transfer or "other" and mentions pay
    is a salary."""
    words = booking.purpose_words
    verdict = _from_codes(booking) or _from_words(booking)
    if verdict is None and booking.has_mandate:
        verdict = Verdict("direct_debit", "mandate")  # a credit is money back
    if verdict is None and (booking.swift_code or "").upper() in WEAK_SWIFT:
        verdict = Verdict("transfer", f"swift:{booking.swift_code}")
    if verdict is None and booking.iban is not None:
        verdict = Verdict("transfer", "counterpart-iban")
    if verdict is None:
        verdict = Verdict("other", "default:other") if _speaks(booking) else Verdict(None, NOTHING)
    if booking.is_credit and verdict.value in ("transfer", "other"):
        # Many banks book wages as an ordinary credit transfer: the code says how, the word says what.
        payroll = PAYROLL.best(words) or (PAYROLL.best(words_of(booking.name)) if booking.name and not words else None)
        if payroll is not None:
            return Verdict("salary", f"word:{payroll.phrase}")
    return verdict


def _speaks(booking: BookingFacts) -> bool:
    """Whether the booking has any fact from which a type could follow; numbers alone are no such fact."""
    codes = (booking.bank_transaction_code, booking.purpose_code, booking.gvc, booking.swift_code, booking.mcc)
    has_code = any(code is not None and code.upper() not in SILENT for code in (*codes, booking.bank_text))
    return has_code or booking.name is not None or any(not word.isdecimal() for word in booking.purpose_words)


def _from_codes(booking: BookingFacts) -> Verdict | None:
    """The type by the first code that has one: ISO 20022, GVC, SWIFT, purpose code, merchant category code
    (docs/analytics.md, "Why a booking is what it is"); None where they leave it open."""
    sign = "+" if booking.is_credit else "-"
    iso, swift = (booking.bank_transaction_code or "").upper(), _swift_key(booking.swift_code)
    if (value := _iso_type(iso, sign)) is not None:
        return Verdict(value, f"iso-code:{'-'.join(iso.split('-')[:2])}")
    for kind, code, values in (
        ("gvc", booking.gvc, GVCS),
        ("swift", swift, SWIFTS),
        ("purpose-code", booking.purpose_code, PURPOSES),
    ):
        if (value := value_of(code, values, is_credit=booking.is_credit)) is not None:
            return Verdict(value, f"{kind}:{code}")
    if booking.mcc:
        return Verdict("cash_withdrawal" if booking.mcc in CASH_MCCS else "card_payment", f"mcc:{booking.mcc}")
    return None


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _iso_type(code: str, sign: str) -> str | None:
    parts = (*code.split("-"), "", "")[:3]
    if not parts[0]:
        return None
    for pattern, wanted_sign, value in ISO:
        if wanted_sign in ("*", sign) and all(p in ("*", part) for p, part in zip(pattern, parts, strict=True)):
            return None if value == UNDECIDED else value
    return None


def _swift_key(code: str | None) -> str | None:
    """The SWIFT code in capitals, with its first letter S or F replaced by N where the table knows that code, as FTRF
    by NTRF, which means the same (MT940: S own message, N other message, F first advice); None for none."""
    if not code:
        return None
    key = code.strip().upper()
    return f"N{key[1:]}" if len(key) == 4 and key[0] in "SF" and f"N{key[1:]}" in SWIFT_KEYS else key


def _from_words(booking: BookingFacts) -> Verdict | None:
    """The type by words: from the bank's text, else, where no mandate decides, from a card slip, the name or the first
    words of the purpose, where many banks print it, else from the codes of account management. None where they leave
    it open."""
    name, purpose_words, has_iban = booking.name, booking.purpose_words, booking.iban is not None
    bank = _bank_word(booking.bank_text or "")
    slip = None if booking.has_mandate else _slip(purpose_words)  # whatever else a mandate says of cards
    if bank is not None:
        value, phrase = bank
        if slip is not None and value in ("direct_debit", "transfer", "other"):
            return slip  # the bank calls a card slip "Lastschrift"
        if value == "fee" and "abschlu" in phrase and _says_interest(purpose_words):
            return Verdict("interest", "word:zinsen")
        return Verdict(value, f"word:{phrase}")
    if booking.has_mandate:
        return None  # without a word of the bank itself, the mandate decides: rule 7
    if slip is not None:
        return slip
    if name is not None and not has_iban:
        called = _bank_word(name)
        if called is not None and called[0] in NAMED_TYPES:
            return Verdict(called[0], f"word:{called[1]}")
        if SHOP_DESCRIPTOR.search(name) or "sagt danke" in name.lower():
            return Verdict("card_payment", "word:card")
        if booking.swift_code in OFX_SIGNS and US_SHOP.search(name):
            return Verdict("card_payment", "word:card")
    word = TYPE_WORDS.best(purpose_words[:HEAD_WORDS_MAX])
    if word is not None and len(word.phrase) > CODE_LENGTH_MAX:
        if word.meaning == "fee" and _says_interest(purpose_words):
            return Verdict("interest", "word:zinsen")
        if not has_iban or word.meaning in NAMED_TYPES - {"fee", "interest"}:
            return Verdict(word.meaning, f"word:{word.phrase}")
    iso = booking.bank_transaction_code or ""
    if iso.startswith("ACMT-") or booking.gvc == "805":
        return Verdict("interest" if _says_interest(purpose_words) else "fee", f"iso-code:{iso}" if iso else "gvc:805")
    return None


def _slip(purpose_words: Sequence[str]) -> Verdict | None:
    """The type of a card or cash slip in the purpose, whatever the bank calls the booking; None for no slip."""
    spoken = TYPE_WORDS.best(purpose_words[:3])
    text = " ".join(purpose_words)
    if (spoken is not None and spoken.meaning == "cash_withdrawal") or CASH_MARKS.search(text):
        return Verdict("cash_withdrawal", "word:cash")
    if (spoken is not None and spoken.meaning == "card_payment") or CARD_MARKS.search(text):
        return Verdict("card_payment", "word:card")
    return None


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _bank_word(text: str) -> tuple[str, str] | None:
    words = words_of(text)
    whole = " ".join(words)
    hits = [hit for hit in TYPE_WORDS.all(words) if len(hit.phrase) > CODE_LENGTH_MAX or hit.phrase == whole]
    best = max(hits, key=lambda hit: (hit.length, -hit.position), default=None)
    return (best.meaning, best.phrase) if best else None


def _says_interest(words: Sequence[str]) -> bool:
    return any("zins" in word or word == "interest" for word in words)


def _ranges(name: str) -> dict[tuple[str, str], str]:
    return {(f"{code:03}", sign): value for codes, sign, value in table(name) for code in spread(codes)}


ISO = [(tuple(pattern.split("-")), sign, value) for pattern, sign, value in table("iso_types.tsv")]
GVCS = _ranges("gvc_types.tsv")
SWIFTS = signed_codes("swift_types.tsv")
SWIFT_KEYS = {code for code, _ in SWIFTS}
PURPOSES = signed_codes("purpose_types.tsv")
TYPE_WORDS = Phrases(
    lambda: ((phrase, value) for value, phrases in table("type_words.tsv") for phrase in phrases.split(", "))
)
PAYROLL = Phrases(lambda: ((phrase, "salary") for [phrase] in table("payroll_words.txt")))
