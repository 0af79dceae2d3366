"""Amounts and dates in bank CSV files: how to read them, and which notation a column uses."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import lru_cache

from analytics.letters import plain
from connectors.bank_csv.profile import Mark
from connectors.bank_csv.vocabulary import MONTHS
from connectors.text import day_or_month_end, parse_amount

_PLAIN = re.compile(r"[+-]?[0-9]{1,13}(?:[.,][0-9]{1,2})?")
_NUMBER = re.compile(r"([^0-9.,]{0,12}?)([.,]?[0-9](?:[0-9.,'’\s]*[0-9])?[.,]?)([^0-9]{0,12})")
_SIGNS = r"[-+−–()\s\u00a0*]*"
_AFFIX = re.compile(rf"{_SIGNS}(?:(?:[A-Z]{{3}}|[$€£¥₹]|zł|Kč|kr|Ft|Fr|Rs|[SHDC]|DR|CR){_SIGNS}){{0,2}}")
_SIDE = re.compile(r"[A-Z]{1,2}(?![A-Za-z])")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")  # or a figure with three decimals
_NO_FIGURE = re.compile(r"[^0-9.,]")
_CODE = re.compile(r"(?<![A-Z])[A-Z]{3}(?![A-Z])")
_SYMBOLS = {"€": "EUR", "£": "GBP", "zł": "PLN", "Kč": "CZK", "₹": "INR"}  # "$" and "kr" name several currencies

_TOKEN = re.compile(r"YYYY|YY|MMM|MM|DD|\s+|.")
_TIME = r"(?:\.?[\sT,/-]+\(?\d{1,2}[:.]\d{2}.*|T.*|\.)?"  # what may follow a date: a time of day, never used
FORMATS = (
    "YYYY-MM-DD", "DD.MM.YYYY", "DD.MM.YY", "YYYY/MM/DD", "YYYY.MM.DD", "YYYYMMDD", "DD/MM/YYYY", "MM/DD/YYYY",
    "DD/MM/YY", "MM/DD/YY", "DD-MM-YYYY", "MM-DD-YYYY", "DD-MM-YY", "DD MMM YYYY", "DD MMM YY", "DD-MMM-YYYY",
    "DD-MMM-YY", "MMM DD, YYYY", "MMM DD YYYY", "YYYY MM DD", "DD/MMM/YYYY", "DD. MMM YYYY",
)  # fmt: skip


def read_amount(text: str, mark: Mark) -> tuple[Decimal, str | None]:
    """The signed amount, and the currency written beside it, None for none. Raises `ValueError` when it cannot be read.

    The sign may come first or last, as brackets, or as S/H, D/C, DR/CR. A single mark other than `mark` counts as the
    decimal mark unless it can group thousands (1.450, not 5000.001): some banks mix both in one file (DKB).
    """
    text = text.strip()
    if _PLAIN.fullmatch(text) and (mark in text or ("." not in text and "," not in text)):
        return Decimal(text.replace(",", ".")), None
    match = _NUMBER.fullmatch(text)
    if match is None or not _AFFIX.fullmatch(match[1]) or not _AFFIX.fullmatch(match[3]):
        raise ValueError("not an amount")
    before, number, after = match.groups()
    if sum(sign in "-−–" for sign in before + after) > 1:
        raise ValueError("two signs")
    other: Mark = "," if mark == "." else "."
    if mark not in number and number.count(other) == 1:
        before_mark, after_mark = number.split(other)
        if len(after_mark) != 3 or len(before_mark) > 3:
            mark = other
    amount = parse_amount(number, mark)
    words = set(_SIDE.findall(after)) if after else set()
    is_negative = any(sign in before + after for sign in "-−–(") or bool(words & {"S", "D", "DR"})
    return (-amount if is_negative else amount), currency_in(before + after)


def currency_in(text: str) -> str | None:
    """The ISO code, or the code of an unambiguous symbol, of the currency in a text; None where there is none."""
    if match := _CODE.search(text):
        return match[0]
    return next((code for symbol, code in _SYMBOLS.items() if symbol in text), None)


def decimal_mark(samples: Iterable[str]) -> Mark | None:
    """The decimal mark of these amounts; None where they leave it open. Raises `ValueError` where they disagree."""
    marks: set[Mark] = set()
    for sample in samples:
        number = _NO_FIGURE.sub("", sample).strip(".,")
        comma, point = number.rfind(","), number.rfind(".")
        if comma < 0 and point < 0:
            continue
        last: Mark = "," if comma > point else "."
        other: Mark = "." if last == "," else ","
        if number.count(last) > 1:
            marks.add(other)
        elif min(comma, point) >= 0 or not _THOUSANDS.fullmatch(number):
            marks.add(last)
    if len(marks) > 1:
        raise ValueError("two decimal marks")
    return marks.pop() if marks else None


def date_reader(formats: Sequence[str]) -> Callable[[str], date]:
    """A function that reads a date in one of these formats and ignores a time of day after it.

    Two-digit years are 1980 to 2079. The function raises `ValueError` for anything else, and remembers its results.
    """
    patterns = [re.compile(pattern_of(text)) for text in formats]

    @lru_cache(maxsize=65536)
    def read(text: str) -> date:
        stripped = text.strip()
        for pattern in patterns:
            if match := pattern.fullmatch(stripped):
                return _day(match)
        raise ValueError("not a date of this format")

    return read


_reader_of = lru_cache(maxsize=100)(date_reader)


def fitting_formats(formats: Sequence[str], samples: Sequence[str]) -> list[str]:
    """The formats that all samples fit; only one of them if any begins with the month.

    That is the first, unless some begin with the day: then the one by which the samples are sorted, up or down (or the
    first where day and month are the same number in every sample). Raises `ValueError` when that leaves it open.
    """
    fitting = date_formats(samples, formats)
    doubtful = [text for text in fitting if text[:2] in ("DD", "MM") and text[2] != "."]
    swapped = {text for text in doubtful if text.startswith("MM")}
    if not swapped or len(swapped) == len(doubtful) or all(map(_is_same_both_ways, samples)):
        return fitting[:1] if swapped else fitting
    ordered = [text for text in doubtful if _is_ordered([date_reader((text,))(cell) for cell in samples])]
    if len(ordered) != 1:
        raise ValueError("day and month cannot be told apart")
    return ordered


def _is_same_both_ways(text: str) -> bool:
    parts = text.replace("/", "-").split("-")
    return len(parts) > 1 and parts[0].zfill(2) == parts[1].zfill(2)


def _is_ordered(days: Sequence[date]) -> bool:
    return list(days) == sorted(days) or list(days) == sorted(days, reverse=True)


def date_formats(samples: Sequence[str], formats: Sequence[str] = FORMATS) -> list[str]:
    """The formats that all of these texts fit with real dates, in the order of `formats`, which begins with the
    likeliest."""
    fitting = []
    for text in formats:
        read = _reader_of((text,))
        with suppress(ValueError):
            for sample in samples:
                read(sample)
            fitting.append(text)
    return fitting


def pattern_of(text: str) -> str:
    """The regular expression for dates of a format such as "DD.MM.YY", with the groups year, month (or name) and day; a
    time of day may follow."""
    is_packed = text.isalpha()
    parts = []
    for part in _TOKEN.findall(text):
        if part == "YYYY":
            parts.append(r"(?P<year>[0-9]{4})")
        elif part == "YY":
            parts.append(r"(?P<year>[0-9]{2})")
        elif part == "MMM":
            parts.append(r"(?P<name>[^\W\d_]{3,12})\.?")
        elif part == "MM":
            parts.append(r"(?P<month>[0-9]{2})" if is_packed else r"(?P<month>[0-9]{1,2})")
        elif part == "DD":
            parts.append(r"(?P<day>[0-9]{2})" if is_packed else r"(?P<day>[0-9]{1,2})")
        else:
            parts.append(r"[\s\u00a0]+" if part.isspace() else re.escape(part))
    return "".join(parts) + _TIME


def _day(match: re.Match[str]) -> date:
    groups = match.groupdict()
    year = int(groups["year"])
    if len(groups["year"]) == 2:
        year += 2000 if year < 80 else 1900
    if not 1900 <= year <= 2199:
        raise ValueError("a year no booking has")
    month = int(groups["month"]) if groups.get("month") else _month(groups["name"])
    if not 1 <= month <= 12:
        raise ValueError("not a month")
    return day_or_month_end(year, month, int(groups["day"]))


def _month(name: str) -> int:
    letters = plain(name)
    month = MONTHS.get(letters[:4]) or MONTHS.get(letters[:3])
    if month is None:
        raise ValueError("not a month")
    return month
