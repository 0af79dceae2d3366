"""Many equal bookings cost no more each than few: what is counted is steps of our own code, not seconds."""

import sys
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.statement_gaps import Stated, gaps
from storage.importing import statements
from storage.importing.matching.compared_rows import StoredRow
from storage.importing.matching.counted_merge import Match, match_booked
from storage.importing.records import TransactionRecord
from tests.storage.test_matching_agrees import BANK, items, rows

DAY = date(2026, 11, 2)
SIZES = (200, 800)
RATIO_MAX = 6.0  # four times the rows: linear is 4, quadratic 16
COFFEE = TransactionRecord(amount=Decimal("-2.80"), currency="EUR", booking_date=DAY, counterpart_name="Cafe")


def steps(work: Callable[[], object]) -> int:
    """Lines of Python that the work takes."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    others = sys.gettrace()  # coverage's, which would see no later test of this process
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(others)
    return count


def numbered(count: int, **common: object) -> list[TransactionRecord]:
    """Equal bookings under references of their own."""
    return [replace(COFFEE, references=(f"s:{number}",), **common) for number in range(count)]


def other_references(count: int) -> tuple[Sequence[TransactionRecord], list[StoredRow], list[StoredRow]]:
    told = rows(numbered(count), [None] * count)
    return [replace(each, references=(f"s:x{each.references[0]}",)) for each in numbered(count)], told, []


def booked_now(count: int) -> tuple[Sequence[TransactionRecord], list[StoredRow], list[StoredRow]]:
    booked = [replace(each, booking_date=DAY + timedelta(days=5), purpose="gebucht") for each in numbered(count)]
    return booked, [], rows(numbered(count), [None] * count)


def other_texts(count: int) -> tuple[Sequence[TransactionRecord], list[StoredRow], list[StoredRow]]:
    def text(number: int, first: int) -> str:
        return " ".join(chr(first + int(digit)) * 4 for digit in f"{number:04}")

    pending = [
        replace(COFFEE, counterpart_name=None, purpose=text(number, ord("a")), references=(f"s:{number}",))
        for number in range(count)
    ]
    booked = [replace(each, purpose=text(number, ord("k"))) for number, each in enumerate(pending)]
    return [replace(each, references=()) for each in booked], [], rows(pending, [None] * count)


def one_whole(count: int) -> tuple[Sequence[TransactionRecord], list[StoredRow], list[StoredRow]]:
    details = [replace(each, references=(f"s:7/{number}",)) for number, each in enumerate(numbered(count))]
    whole = replace(COFFEE, amount=Decimal(-1), references=("s:7",))
    return [whole] * count, rows(details, [None] * count), []


def kinds_of_their_own(count: int) -> tuple[Sequence[TransactionRecord], list[StoredRow], list[StoredRow]]:
    told = [replace(each, references=("a:1", f"kind{number}:1")) for number, each in enumerate(numbered(count))]
    return [replace(COFFEE, references=("a:2",))] * count, rows(told, [None] * count), []


@pytest.mark.requirement("import.cost")
@pytest.mark.parametrize("made", [other_references, booked_now, other_texts, one_whole, kinds_of_their_own])
def test_alike_rows_cost_the_same_each(
    made: Callable[[int], tuple[Sequence[TransactionRecord], list[StoredRow], list[StoredRow]]],
) -> None:
    def cost(count: int) -> int:
        records, stored, pending = made(count)

        def work() -> list[Match]:
            return match_booked(items(records, BANK), stored, pending, source=BANK)

        return steps(work)

    small, large = map(cost, SIZES)
    assert large / small < RATIO_MAX


@pytest.mark.requirement("import.cost")
@pytest.mark.parametrize("length", [0, 1])
def test_statements_of_one_day_cost_the_same_each(length: int) -> None:
    def cost(count: int) -> int:
        told = [
            Stated(
                sequence=str(number),
                opening=Decimal(3 * number),
                opening_date=DAY - timedelta(days=length),
                closing=Decimal(3 * number + 1),
                closing_date=DAY,
            )
            for number in range(count)
        ]
        stored = [
            {"opening": one.opening, "closing": one.closing, "sequence": one.sequence, "is_authoritative": True}
            | {"received_at": DAY, "position": 0, "connection_id": "con_1"}
            for one in told
        ]
        return steps(lambda: list(gaps(told))) + steps(lambda: statements._last_of_a_day(stored, ()))

    small, large = map(cost, SIZES)
    assert large / small < RATIO_MAX
