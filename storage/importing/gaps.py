"""Between which statements of an account money moved without a statement that tells how."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A statement that proves its balances: what it opens and closes with, and when."""

    sequence: str | None
    opening: Decimal
    opening_date: date
    closing: Decimal
    closing_date: date


def gaps(statements: Sequence[Stated]) -> Iterator[tuple[Stated, Stated]]:
    """Each statement that does not open with what the one before it closed with, after that one.

    Statements of any length may overlap: days and months, the intraday report and the statement of a day. Where the
    order of two of one day cannot be told, nothing is claimed.
    """
    ordered = sorted(statements, key=lambda one: (one.closing_date, number(one.sequence), one.opening_date))
    days = [one.closing_date for one in ordered]
    earliest = list(accumulate(reversed([one.opening_date for one in ordered]), min, initial=date.max))[::-1]
    seen = set()
    for later in ordered:
        beginning = (later.opening_date, later.opening)
        place = bisect_right(days, later.opening_date)
        if beginning in seen or earliest[place] < later.opening_date:
            continue  # another begins like this one, or a longer one covers its beginning
        seen.add(beginning)
        earlier = _before(ordered[:place], later)
        if earlier is not None:
            yield earlier, later


def number(sequence: str | None) -> tuple[tuple[int, ...], str]:
    """Statement numbers in their order: 9 before 10, page 12/10 before 13/1, and no number before all of them."""
    return tuple(int(digits) for digits in re.findall(r"\d+", sequence or "")), sequence or ""


def _before(candidates: Sequence[Stated], later: Stated) -> Stated | None:
    """The statement before `later` that leaves a gap; None where there is none or it cannot be told."""
    last: Stated | None = None
    for one in reversed(candidates):
        if last is not None and one.closing_date < last.closing_date:
            break
        if one is later:
            continue
        if one.closing_date == later.closing_date and not _precedes(one, later):
            is_tail = one.closing == later.closing and one.opening_date < later.opening_date
            if is_tail or not _precedes(later, one):
                return None
            continue
        if one.closing == later.opening:
            return None
        last = last or one
    return last


def _precedes(one: Stated, other: Stated) -> bool:
    """Of two that close on one day."""
    first, second = number(one.sequence)[0], number(other.sequence)[0]
    return one.closing == other.opening or bool(first and second and first < second and other.closing != one.opening)
