"""Texts, amounts, dates and keys as banks write them, cleaned and parsed for storing; shared by all readers."""

import re
import unicodedata
from datetime import date, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Literal

import pycountry
import schwifty

from connectors.limits import AMOUNT_DIGITS_MAX, KEY_CHARACTERS_MAX, NAME_CHARACTERS_MAX, PURPOSE_CHARACTERS_MAX

# C0, C1, bidi marks, embeddings, overrides and isolates, zero-width characters, BOM, surrogates: never intended by a
# bank.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"
)
_PLACEHOLDERS = frozenset(
    {
        "NONREF", "NOREF", "NOTPROVIDED", "NOTAVAILABLE", "NOTSPECIFIED", "UNKNOWN", "KEINE", "KEINEREFERENZ",
        "NONE", "NULL", "NIL", "NA", "REF", "STARTUMS", "UNBEKANNT", "EREF", "KREF",
    }
)  # fmt: skip
_CREDITOR_ID = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{3}[A-Z0-9]{1,28}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_BIC = re.compile(r"[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?")
YEARS = range(1900, 2200)  # a day of any other is a mistake of whoever wrote it, and no calculation expects it
_NONZERO = re.compile("[1-9]")
_APPROXIMATE = re.compile(r"[0-9](?:[.,][0-9]*)?[eE]\+[0-9]{2,3}")  # what a spreadsheet has made of a long number
_PLAIN_AMOUNT = {mark: re.compile(f"-?[0-9]{{1,11}}(?:[{mark}][0-9]{{1,4}})?") for mark in ".,"}
_DIGITS = re.compile(r"[0-9]*")
_NOISY = re.compile(r"[+-]?[0-9]{1,11}\.[0-9]{8,20}")
_NOISE_DIGITS_MIN = 8  # behind the point: no bank writes as many, but programs that compute in binary do
_CURRENCY_CODE = re.compile("(?!XXX)[A-Z]{3}")  # XXX: no currency (ISO 4217)

# Countries whose accounts are not in euro unless the bank says so (ISO 3166 -> ISO 4217).
_CURRENCIES = {
    "CH": "CHF", "LI": "CHF", "GB": "GBP", "DK": "DKK", "SE": "SEK", "NO": "NOK", "IS": "ISK", "PL": "PLN", "CZ": "CZK",
    "HU": "HUF", "RO": "RON", "RS": "RSD", "MK": "MKD", "AL": "ALL", "BA": "BAM", "UA": "UAH", "TR": "TRY", "MD": "MDL",
    "GE": "GEL", "KZ": "KZT", "IL": "ILS", "AE": "AED", "SA": "SAR", "QA": "QAR", "KW": "KWD", "BH": "BHD", "JO": "JOD",
    "EG": "EGP", "TN": "TND", "PK": "PKR", "BR": "BRL", "BY": "BYN", "AZ": "AZN",
}  # fmt: skip
_FORMER_CURRENCIES = {
    "AFA", "ANG", "AOR", "ATS", "AZM", "BEF", "BGN", "BYB", "BYR", "CSD", "CUC", "CYP", "DEM", "EEK",
    "ESP", "FIM", "FRF", "GHC", "GRD", "HRK", "IEP", "ITL", "LTL", "LUF", "LVL", "MGF", "MRO", "MTL",
    "MZM", "NLG", "PTE", "ROL", "SDD", "SIT", "SKK", "SLL", "SRG", "STD", "TMM", "TRL", "VEB", "VEF",
    "YUM", "ZMK", "ZWD", "ZWL", "ZWR",
}  # fmt: skip  # since 1999: ISO 4217 list three
_NO_CURRENCIES = frozenset({"XXX", "XTS", "CHE", "CHW"})  # CHE is rather Switzerland than the WIR
_SUCCESSORS = {"BRC": "BRL", "RUR": "RUB"}  # codes of the eighties and nineties that banks still write
CURRENCY_UNSTATED = "EUR"  # the home currency of decision 19, for a source that names none


def is_currency(said: object) -> bool:
    """Whether a value has the form of a currency code: three capital letters, but not XXX, the code for no currency
    (ISO 4217)."""
    return isinstance(said, str) and _CURRENCY_CODE.fullmatch(said) is not None


@cache
def _currencies() -> frozenset[str]:
    listed = frozenset(each.alpha_3 for each in pycountry.currencies)
    return (listed | _FORMER_CURRENCIES) - _NO_CURRENCIES


def currency_code(text: str) -> str | None:
    """The code of ISO 4217 that a text is, in capitals, also one that was replaced since 1999; None for anything else,
    such as a country."""
    code = text.strip().upper()
    code = _SUCCESSORS.get(code, code)
    return code if len(code) == 3 and code in _currencies() else None


def clean(text: str | None, characters: int = NAME_CHARACTERS_MAX) -> str | None:
    """The text as one line of visible characters in NFC, with white space reduced to single spaces, cut at
    `characters`; None when empty."""
    if not text:
        return None
    if not text.isascii():
        text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    elif text.isprintable() and "  " not in text and len(text) <= characters:
        return text.strip() or None  # true for nearly all texts, and three times as fast
    elif not (text := " ".join(text.split())).isprintable():
        text = _INVISIBLE.sub("", text)
    text = " ".join(text.split())
    return text[:characters].rstrip() or None


def clean_purpose(*parts: str | None) -> str | None:
    """The parts of a remittance text as one line, repeated parts only once, cut at 2,000 characters; None when
    empty."""
    if len(parts) == 1:
        return clean(parts[0], PURPOSE_CHARACTERS_MAX)
    lines: dict[str, None] = {}
    length = 0
    for part in parts:
        line = clean(part, PURPOSE_CHARACTERS_MAX)
        if line and line not in lines:
            lines[line] = None
            length += len(line)
            if length > PURPOSE_CHARACTERS_MAX:
                break
    return " ".join(lines)[:PURPOSE_CHARACTERS_MAX].rstrip() or None


def clean_key(text: str | None) -> str | None:
    """A reference, mandate or id as one clean line; None for an empty text and for placeholders that banks write
    instead."""
    key = clean(text, KEY_CHARACTERS_MAX) if text else None
    return None if key is None or is_placeholder(key) else key


def is_placeholder(key: str) -> bool:
    """Whether a text stands for "no reference": NONREF, NOT PROVIDED, KEINE, "-", zeros and the like, and 2,026E+13."""
    if _APPROXIMATE.fullmatch(key):
        return True
    if _NONZERO.search(key):
        return False
    letters = "".join(character for character in key.upper() if character.isalnum())
    return letters in _PLACEHOLDERS or not letters.strip("0X")


def parse_amount(text: str, decimal_mark: Literal[",", "."] = ".") -> Decimal:
    """An exact amount. Raises `ValueError` for NaN, infinity, exponents, doubtful grouping and more than 15 digits.

    Spaces, apostrophes and the mark that is not the decimal mark may group thousands.
    """
    if _PLAIN_AMOUNT[decimal_mark].fullmatch(text):
        return Decimal(text if decimal_mark == "." else text.replace(",", "."))
    compact = text.strip().replace("\u2212", "-").replace("\u2019", "'")
    sign = ""
    if compact[:1] in ("+", "-"):
        sign, compact = compact[0], compact[1:].lstrip()
    whole, mark, fraction = compact.partition(decimal_mark)
    fraction = fraction[:2] + fraction[2:].rstrip("0")  # some programs write six decimals
    if len(fraction) >= _NOISE_DIGITS_MIN and fraction.isascii() and fraction.isdigit():
        return _without_noise(f"{sign}{_ungroup(whole, '.' if decimal_mark == ',' else ',') or '0'}.{fraction}")
    if not whole.isascii() or not whole.isdigit():
        whole = _ungroup(whole, "." if decimal_mark == "," else ",")
    if not _is_number(whole, fraction) or (not mark and not whole):
        raise ValueError("not an amount")
    if len(whole.lstrip("0")) + len(fraction.rstrip("0")) > AMOUNT_DIGITS_MAX:
        raise ValueError("an amount of too many digits")
    return Decimal(f"{sign}{whole or '0'}.{fraction or '0'}") if fraction else Decimal(f"{sign}{whole}")


def _ungroup(whole: str, thousands_mark: str) -> str:
    for mark in (thousands_mark, "'", " ", "\u00a0", "\u202f"):
        first, *groups = whole.split(mark)
        if groups and 1 <= len(first) <= 3 and all(len(group) == 3 for group in groups):
            return "".join((first, *groups))
    return whole


def _without_noise(text: str) -> Decimal:
    """The amount that a binary number stands for: 19.989999999999998 is 19.99. Raises `ValueError` for any other."""
    if not _NOISY.fullmatch(text):
        raise ValueError("not an amount")
    amount = Decimal(text)
    rounded = amount.quantize(Decimal("0.001")).normalize()
    if abs(amount - rounded) > Decimal("1e-7"):
        raise ValueError("an amount of too many digits")
    return rounded.quantize(Decimal("0.01")) if rounded == rounded.quantize(Decimal("0.01")) else rounded


def _is_number(whole: str, fraction: str) -> bool:
    return bool(_DIGITS.fullmatch(whole) and _DIGITS.fullmatch(fraction) and (whole or fraction))


def parse_date(text: str) -> date:
    """The calendar day of an ISO date or date-time; its zone is not applied (decision 10). Raises `ValueError`, also
    for a year outside of `YEARS`."""
    return _day(text.strip()[:10])


@lru_cache(maxsize=4096)
def _day(text: str) -> date:
    day = date.fromisoformat(text)
    if day.year not in YEARS:
        raise ValueError("a year no booking has")
    return day


def day_or_month_end(year: int, month: int, day: int) -> date:
    """The day; 29 to 31 become the last day of a shorter month (interest bookings of 30 February). Raises
    `ValueError`."""
    try:
        return date(year, month, day)
    except ValueError:
        if not (28 < day < 32 and 1 <= month <= 12):
            raise
        return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def parse_iban(text: str | None) -> str | None:
    """The compact IBAN when length, form and check digits are right, else None."""
    compact = compact_iban(text)
    return compact if compact and _is_iban(compact) else None


@lru_cache(maxsize=65536)  # of short texts only, because the cache outlives the file
def _is_iban(compact: str) -> bool:
    return schwifty.IBAN(compact, allow_invalid=True).is_valid


def compact_iban(text: str | None) -> str | None:
    """The compact form (capitals, no spaces) of a text that looks like an IBAN, whatever its check digits, else None;
    for fields that the bank itself calls IBAN."""
    if not text:
        return None
    compact = text if text.isalnum() else "".join(text.split())
    compact = compact.upper()
    return compact if _IBAN.fullmatch(compact) else None


def parse_bic(text: str | None) -> str | None:
    """The text in capitals without spaces around it, if it has the form of a BIC (ISO 9362), else None."""
    bic = text.strip().upper() if text else ""
    return bic if _BIC.fullmatch(bic) else None


def parse_creditor_id(text: str | None) -> str | None:
    """The SEPA creditor identifier in capitals without spaces, if its form and check digits are right, else None. The
    business code (characters 5 to 7) stays in it, but the check leaves it out (EPC262-08)."""
    if not text:
        return None
    compact = "".join(text.split()).upper()
    return compact if _CREDITOR_ID.fullmatch(compact) and _is_creditor_id(compact) else None


@lru_cache(maxsize=65536)
def _is_creditor_id(compact: str) -> bool:
    digits = "".join(str(int(character, 36)) for character in compact[7:] + compact[:4])
    return int(digits) % 97 == 1


def reference(kind: str, text: str | None) -> str | None:
    """A weak key with its kind, such as "servicer:20260131-17"; None for placeholders."""
    key = clean_key(text) if text else None
    return f"{kind}:{key}" if key else None


def currency_of(iban: str | None, bic: str | None = None) -> str:
    """The currency of the account's country by IBAN, else by BIC, for sources that state none; EUR for any other
    country."""
    country = iban[:2] if iban else bic[4:6] if bic else ""
    return _CURRENCIES.get(country, CURRENCY_UNSTATED)
