"""Many equal bookings cost no more each than few: what is counted is steps of our own code, not seconds."""

import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import FrameType
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

from analytics.frames import MOVED
from analytics.records import TransactionRecord
from analytics.statements.chain import StatementChain
from analytics.statements.told import Told
from storage.importing import statements
from storage.importing.matching.likely_matches import BEFORE, Remaining
from storage.importing.matching.stored_bookings import Item, StoredRow

DAY = date(2026, 11, 2)
SIZES = (200, 800)
RATIO_MAX = 6.0  # four times the rows: linear is 4, quadratic 16
NONE_BOOKED = pl.DataFrame(schema=MOVED)
COFFEE = TransactionRecord(amount=Decimal("-2.80"), currency="EUR", booking_date=DAY, counterpart_name="Cafe")
Case = tuple[Sequence[TransactionRecord], Sequence[TransactionRecord]]


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


def items(records: Sequence[TransactionRecord]) -> list[Item]:
    """Incoming bookings of a bank that gives no ids."""
    return [Item(record, place, None) for place, record in enumerate(records)]


def stored(records: Sequence[TransactionRecord]) -> list[StoredRow]:
    """The same as rows that a file has told."""
    return [
        StoredRow(
            id=f"row{number}",
            identity=f"content:{number}#1",
            created_at=datetime.combine(DAY, time(12)),
            record=record,
            claim=None,
            is_other_source=True,
            has_its_references=False,
            is_whole=False,
        )
        for number, record in enumerate(records)
    ]


def numbered(count: int, **common: object) -> list[TransactionRecord]:
    """Equal bookings under references of their own."""
    return [replace(COFFEE, references=(f"s:{number}",), **common) for number in range(count)]


def other_references(count: int) -> Case:
    return [replace(each, references=(f"s:x{each.references[0]}",)) for each in numbered(count)], numbered(count)


def other_texts(count: int) -> Case:
    def text(number: int, first: int) -> str:
        return " ".join(chr(first + int(digit)) * 4 for digit in f"{number:04}")

    told = [replace(COFFEE, counterpart_name=None, purpose=text(number, ord("k"))) for number in range(count)]
    return told, [replace(each, purpose=text(number, ord("a"))) for number, each in enumerate(told)]


def one_whole(count: int) -> Case:
    details = [replace(each, references=(f"s:7/{number}",)) for number, each in enumerate(numbered(count))]
    return [replace(COFFEE, amount=Decimal(-1), references=("s:7",))] * count, details


def kinds_of_their_own(count: int) -> Case:
    told = [replace(each, references=("a:1", f"kind{number}:1")) for number, each in enumerate(numbered(count))]
    return [replace(COFFEE, references=("a:2",))] * count, told


@pytest.mark.requirement("import.cost")
@pytest.mark.parametrize("are_lasting", [True, False])
@pytest.mark.parametrize("made", [other_references, other_texts, one_whole, kinds_of_their_own])
def test_alike_rows_cost_the_same_each(made: Callable[[int], Case], *, are_lasting: bool) -> None:
    def cost(count: int) -> int:
        told, known = made(count)
        remaining = Remaining(items(told), stored(known), are_references_lasting=are_lasting)
        return steps(remaining.match_by_day)

    small, large = map(cost, SIZES)
    assert large / small < RATIO_MAX


@pytest.mark.requirement("import.cost")
@pytest.mark.parametrize("made", [other_references, other_texts])
def test_alike_pending_rows_cost_the_same_each(made: Callable[[int], Case]) -> None:
    def cost(count: int) -> int:
        told, waiting = made(count)
        booked = [replace(each, booking_date=DAY + timedelta(days=5)) for each in told]
        remaining = Remaining(items(booked), stored(waiting), are_references_lasting=False)
        return steps(lambda: remaining.match_waiting([], BEFORE))

    small, large = map(cost, SIZES)
    assert large / small < RATIO_MAX


@pytest.mark.requirement("import.cost")
@pytest.mark.parametrize("length", [0, 1])
def test_statements_of_one_day_cost_the_same_each(length: int) -> None:
    def cost(count: int) -> int:
        noon = datetime.combine(DAY, time(12))
        told = [
            Told(
                sequence=str(number),
                opening=Decimal(3 * number),
                first=DAY - timedelta(days=length),
                closing=Decimal(3 * number + 1),
                last=DAY,
                arrived=(noon, number),
                places=frozenset(),
                bookings=Decimal(1),
            )
            for number in range(count)
        ]
        known = [
            {"opening": one.opening, "closing": one.closing, "sequence": one.sequence, "is_authoritative": True}
            | {"closing_date": DAY, "received_at": noon, "position": 0, "connection_id": "con_1"}
            for one in told
        ]
        return steps(lambda: StatementChain(told, NONE_BOOKED).gaps) + steps(
            lambda: statements._last_of_a_day(known, (), ())
        )

    small, large = map(cost, SIZES)
    assert large / small < RATIO_MAX
