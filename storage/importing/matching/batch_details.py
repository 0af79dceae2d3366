"""A batch that one source books as a whole and another one by its details."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import TypeVar

from msgspec.structs import replace

from analytics.records import TransactionRecord
from storage.importing.matching.evidence import evidence, references_contradict
from storage.importing.matching.stored_bookings import Item, StoredRow

PART = re.compile(r"(.+)/(\d+)")  # a detail of a batch: the batch's reference and its number
PAIRS_MAX = 10_000  # of what bookings of one day and amount say; more are compared where they have a text in common
CANDIDATES_MAX = 100  # of one booking, where they are many

T = TypeVar("T", Item, StoredRow)
T2 = TypeVar("T2", Item, StoredRow)


def grouped(key: Callable[[Item | StoredRow], Hashable], each: Iterable[T]) -> dict[Hashable, list[T]]:
    found: dict[Hashable, list[T]] = defaultdict(list)
    for one in each:
        found[key(one)].append(one)
    return found


def details_of_batches(each: Iterable[T]) -> dict[tuple[str, date, str], list[T]]:
    """The details of each batch, by the batch's reference, the day and the currency. Their numbers begin with 0 and
    leave none out; other references only look like those of details. Equal batches without a reference of their own
    have the same one, and so each number as often."""
    found: dict[tuple[str, date, str], list[T]] = defaultdict(list)
    for one in each:
        if part := _part(one):
            found[part[1], one.record.booking_date, one.record.currency].append(one)
    return {key: parts for key, parts in found.items() if _are_whole_batches(parts)}


def _part(one: Item | StoredRow) -> re.Match[str] | None:
    return next(filter(None, map(PART.fullmatch, one.record.references)), None)


def _are_whole_batches(parts: Sequence[Item | StoredRow]) -> bool:
    numbers = Counter(int(part[2]) for each in parts if (part := _part(each)))
    return max(numbers) == len(numbers) - 1 > 0 and len(set(numbers.values())) == 1


def number_of_batches(parts: Iterable[Item | StoredRow]) -> int:
    """How many equal batches these are the details of."""
    return sum((part := _part(each)) is not None and int(part[2]) == 0 for each in parts)


def sum_of(each: Iterable[Item | StoredRow]) -> Decimal:
    return sum((one.record.amount for one in each), Decimal(0))


def is_one_way(each: Iterable[Item | StoredRow]) -> bool:
    """Whether all amounts have the same sign: credits and debits that happen to add up to a whole are not its details,
    for a file that makes up their references could hide them behind it."""
    amounts = [one.record.amount for one in each]
    return min(amounts) >= 0 or max(amounts) <= 0


def money_of_whole(parts: Sequence[Item | StoredRow]) -> Hashable:
    """Day, sum and currency of details: the money of their whole, or of each of several equal ones."""
    return parts[0].record.booking_date, sum_of(parts) / number_of_batches(parts), parts[0].record.currency


def _day_and_sign(one: Item | StoredRow) -> Hashable:
    return one.record.booking_date, one.record.currency, one.record.amount > 0


def of_notifications(told: Iterable[T], among: Iterable[T2]) -> list[tuple[list[T2], list[T]]]:
    """Wholes without a counterpart, each time with the details told by notifications that add up to them: of one day
    and sign all details with one or several wholes, else each whole with some of them."""
    by_day = grouped(_day_and_sign, (each for each in told if each.is_notified))
    unnamed = (each for each in among if not (each.is_notified or each.record.counterpart_name))
    wholes_of = grouped(_day_and_sign, (each for each in unnamed if each.record.counterpart_iban is None))
    found: list[tuple[list[T2], list[T]]] = []
    for key, details in by_day.items():
        wholes = sorted(wholes_of.get(key, ()), key=lambda one: -abs(one.record.amount))
        if several := _adding_up(wholes, sum_of(details)):
            found.append((several, details))
            continue
        for whole in wholes:
            if parts := _adding_up(details, whole.record.amount):
                found.append(([whole], parts))
                details = [each for each in details if each not in parts]
    return found


def _adding_up(among: Sequence[T], total: Decimal) -> list[T]:
    """Some of these, all of one sign, that add up to the total; empty where there are none, or too many to try."""
    if among and sum_of(among) == total:
        return list(among)
    return [among[place] for place in _places([one.record.amount for one in among], total)]


def _places(amounts: Sequence[Decimal], total: Decimal) -> Sequence[int]:
    sums: dict[Decimal, Sequence[int]] = {Decimal(0): ()}
    for place, amount in enumerate(amounts):
        for before, places in list(sums.items())[:PAIRS_MAX]:
            if abs(before + amount) <= abs(total):
                sums.setdefault(before + amount, [*places, place])
    return sums.get(total, ())


def take_wholes(parts: Sequence[Item | StoredRow], among: list[T]) -> list[T]:
    """Remove from `among`, which all have the money of the details, those that may be their batch, or their equal
    batches, and return them; one that names a counterpart only where there is none without. Empty where there is
    none."""
    if not is_one_way(parts):
        return []
    likely = [each for each in among[:CANDIDATES_MAX] if _may_be_whole(each.record, parts)]
    unnamed = [each for each in likely if each.record.counterpart_name is None]
    found = (unnamed or likely)[: number_of_batches(parts)]
    for whole in found:
        among.remove(whole)
    return found


def _may_be_whole(whole: TransactionRecord, parts: Iterable[Item | StoredRow]) -> bool:
    """Whether there is a detail whose references and identifiers the booking does not contradict."""
    unnamed = replace(whole, counterpart_name=None, purpose=None)
    return any(
        not references_contradict(whole.references, each.record.references)
        and evidence(unnamed, each.record, is_other_source=True) is not None
        for each in parts
    )
