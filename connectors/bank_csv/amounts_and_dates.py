"""Amounts and dates in bank CSV files: how to read them, and which notation a column uses."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import lru_cache

from analytics.letters import plain
from connectors.bank_csv.currencies import currencies_called, one_currency
from connectors.bank_csv.profile import Mark
from connectors.bank_csv.vocabulary import MONTHS, WEEKDAYS
from connectors.text import YEARS, day_or_month_end, parse_amount

_PLAIN = re.compile(r"[+-]?[0-9]{1,13}(?:[.,][0-9]{1,2})?")
_NUMBER = re.compile(r"([^0-9]{0,16}?)([.,]?[0-9](?:[0-9.,'’\s]*[0-9])?[.,]?)([^0-9]{0,16})")
_WHOLE = re.compile(r"(?<=[0-9])[.,][-–—]{1,2}(?![0-9])")  # "12.–" is twelve francs, "12,-" twelve kroner
_SIGNS = re.compile(r"[-+−–()\s\u00a0*]+")
_SIDES = {"S": -1, "D": -1, "DR": -1, "DR.": -1, "H": 1, "C": 1, "CR": 1, "CR.": 1}
_LAKHS = re.compile(r"^[0-9]{1,2}(?:,[0-9]{2}){1,4},[0-9]{3}(?=\.|$)")  # as in India: 1,25,000.00
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")  # or a figure with three decimals
_NO_FIGURE = re.compile(r"[^0-9.,]")
_FORM = re.compile("[A-Z]{3}")

_BLANK_IN_DATE = re.compile(r"(?<=[0-9])\.[ \u00a0]{1,3}(?=[0-9]{1,4}(?![0-9:]))")  # "2026. 03. 02."
_TOKEN = re.compile(r"YYYY|YY|MMM|MM|DD|\s+|.")
_TIME = r"(?:\.?[\sT,/-]+\(?\d{1,2}[:.]\d{2}.*|T.*|\.)?"  # what may follow a date: a time of day, never used
_CLOCK = re.compile(r"(?:\d.*[ T])?(\d{1,2})(:\d\d(?::\d\d)?)")
FORMATS = (
    "YYYY-MM-DD", "DD.MM.YYYY", "DD.MM.YY", "YYYY/MM/DD", "YYYY.MM.DD", "YYYYMMDD", "DD/MM/YYYY", "MM/DD/YYYY",
    "DD/MM/YY", "MM/DD/YY", "DD-MM-YYYY", "MM-DD-YYYY", "DD-MM-YY", "DD MMM YYYY", "DD MMM YY", "DD-MMM-YYYY",
    "DD-MMM-YY", "MMM DD, YYYY", "MMM DD YYYY", "YYYY MM DD", "DD/MMM/YYYY", "DD. MMM YYYY",
)  # fmt: skip


def read_amount(text: str, mark: Mark) -> tuple[Decimal, str | None]:
    """The signed amount, and the currency written beside it, None for none or one that is not clear ("$"). Raises
    `ValueError` when it cannot be read.

    The sign may come first or last, as brackets, or as S/H, D/C, DR/CR. A single mark other than `mark` counts as the
    decimal mark unless it can group thousands (1.450, not 5000.001): some banks mix both in one file (DKB).
    """
    text = text.strip()
    if _PLAIN.fullmatch(text) and (mark in text or ("." not in text and "," not in text)):
        return Decimal(text.replace(",", ".")), None
    before, number, after = _parts(text)
    if sum(sign in "-−–" for sign in before + after) > 1:
        raise ValueError("two signs")
    sides, units = _sides_and_units(text)
    if len(sides) > 1 or len(units) > 2 or not all(_FORM.fullmatch(each) or currencies_called(each) for each in units):
        raise ValueError("not an amount")
    other: Mark = "," if mark == "." else "."
    if mark not in number and number.count(other) == 1:
        before_mark, after_mark = number.split(other)
        if len(after_mark) != 3 or len(before_mark) > 3:
            mark = other
    amount = parse_amount(_LAKHS.sub(lambda match: match[0].replace(",", ""), number), mark)
    is_negative = any(sign in before + after for sign in "-−–(") or -1 in sides
    code = next((code for each in units if (code := one_currency(each) or (_FORM.fullmatch(each) and each))), None)
    return (-amount if is_negative else amount), code


def _sides_and_units(text: str) -> tuple[list[int], list[str]]:
    """What stands beside the figure of an amount: -1 or 1 for each word that says whose side it is on (S/H, D/C,
    Dr/Cr), and the other words, which name its currency. Raises ValueError where there is no figure."""
    before, _, after = _parts(text.strip())
    words = [word for each in (before, after) for word in _SIGNS.split(each) if word]
    sides = [_SIDES[word.upper()] for word in words if word.upper() in _SIDES]
    return sides, [word for word in words if word.upper() not in _SIDES]


def sides_beside(text: str) -> bool:
    """Whether a word beside an amount says whose side it is on."""
    with suppress(ValueError):
        return bool(_sides_and_units(text)[0])
    return False


def currencies_beside(text: str) -> frozenset[str]:
    """The currencies that the word beside an amount may mean; none where there is none, or no amount."""
    with suppress(ValueError):
        return next((called for each in _sides_and_units(text)[1] if (called := currencies_called(each))), frozenset())
    return frozenset()


def has_odd_unit(text: str) -> bool:
    """Whether a word beside an amount is no currency."""
    with suppress(ValueError):
        return not all(map(currencies_called, _sides_and_units(text)[1]))
    return False


def currency_beside(text: str) -> str | None:
    """The currency beside an amount; None where there is none, or several may be meant."""
    called = currencies_beside(text)
    return next(iter(called)) if len(called) == 1 else None


def _parts(text: str) -> tuple[str, str, str]:
    """What stands before a figure, the figure, and what stands behind it. Raises ValueError."""
    match = _NUMBER.fullmatch(_WHOLE.sub("", text))
    if match is None:
        raise ValueError("not an amount")
    before, number, after = match.groups()
    if number[0] == "." and before[-1:].isalpha():
        before, number = before + ".", number[1:]  # Rs.500
    return before, number, after


def figure(text: str) -> str:
    """The digits of an amount with the marks between them."""
    return _NO_FIGURE.sub("", _WHOLE.sub("", text)).strip(".,")


def decimal_mark(samples: Iterable[str]) -> Mark | None:
    """The decimal mark of these amounts; None where they leave it open. Raises `ValueError` where they disagree."""
    marks: set[Mark] = set()
    for sample in samples:
        number = figure(sample)
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


def time_in(cell: str) -> str:
    """The time of day that a cell is, or that follows a date in it, with two digits for the hour; empty where there is
    none."""
    match = _CLOCK.fullmatch(cell.strip())
    return f"{int(match[1]):02}{match[2]}" if match else ""


def date_reader(formats: Sequence[str]) -> Callable[[str], date]:
    """A function that reads a date in one of these formats and ignores a time of day after it.

    Two-digit years are 1980 to 2079. The function raises `ValueError` for anything else, and remembers its results.
    """
    patterns = [re.compile(pattern_of(text)) for text in formats]

    @lru_cache(maxsize=65536)
    def read(text: str) -> date:
        stripped = _BLANK_IN_DATE.sub(".", text.strip())
        for written in (stripped, without_weekday(stripped)):
            for pattern in patterns:
                if match := pattern.fullmatch(written):
                    return _day(match)
        raise ValueError("not a date of this format")

    return read


def without_weekday(text: str) -> str:
    """The text without a day of the week as its first or last word."""
    first, _, rest = text.partition(" ")
    before, _, last = text.rpartition(" ")
    return rest.lstrip() if _is_weekday(first) else before.rstrip(" ,") if _is_weekday(last) else text


def _is_weekday(word: str) -> bool:
    letters = plain(word.strip("().,"))
    return letters.isalpha() and (letters in WEEKDAYS or letters[:3] in WEEKDAYS)


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
    if year not in YEARS:
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
