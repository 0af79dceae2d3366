"""What a ledger is proven by, from tables of text: days of January 2026 as numbers, amounts, and hours of knowledge."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import polars as pl

from analytics.frames import FLAGGED, FORMER, MOVED, STATED, WAITING
from analytics.integrity import AccountIntegrity, LedgerEvidence, LedgerProblem, integrity

TODAY = date(2026, 1, 31)
Row = dict[str, object]
Said = tuple[str, int, int, str | None]


def day(number: int) -> date:
    """A day of January, counted on into the months around it."""
    return date(2026, 1, 1) + timedelta(days=number - 1)


def at(number: int, hour: int = 12) -> datetime:
    """A moment of such a day."""
    return datetime(2026, 1, 1, hour) + timedelta(days=number - 1)  # noqa: DTZ001 - the store keeps UTC without zone


def statement(
    first: int, last: int, opening: str, closing: str, *, sequence: str | None = None, adds_up: bool | None = True
) -> Row:
    """A statement of these days; one that does not add up proves nothing, nor does a report (None)."""
    return {
        "sequence": sequence,
        "opening": Decimal(opening),
        "opening_date": day(first),
        "closing": Decimal(closing),
        "closing_date": day(last),
        "is_authoritative": adds_up is True,
        "adds_up": adds_up,
        "received_at": at(last, 23),
    }


def told(number: int, balance: str | None, *, hour: int = 12, since: int | None = None, until: int = 0) -> Row:
    """A balance that a source told on this day at this hour, and the days whose bookings it told."""
    return {
        "closing": Decimal(balance) if balance is not None else None,
        "closing_date": day(number) if balance is not None else None,
        "is_authoritative": False,
        "told_from": day(since) if since is not None else None,
        "told_until": day(until or number) if since is not None else None,
        "received_at": at(number, hour),
    }


def booking(number: int, amount: str, *, known: datetime | None = None, **marks: object) -> Row:
    """A booking of this day, known from its morning on unless said otherwise."""
    return {"booking_date": day(number), "amount": Decimal(amount), "created_at": known or at(number, 8), **marks}


def frame(rows: Sequence[Row], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """A frame of one account; what a row does not say is null, and its id and position are its place."""
    defaults = [{"account_id": "a", "id": str(place), "position": place} for place in range(len(rows))]
    values = [[{**default, **row}.get(name) for name in schema] for default, row in zip(defaults, rows, strict=True)]
    return pl.DataFrame(values, schema=dict(schema), orient="row")


def judged(
    stated: list[Row],
    moved: list[Row],
    flagged: Sequence[Row] = (),
    waiting: Sequence[Row] = (),
    former: Sequence[Row] = (),
) -> AccountIntegrity:
    """What comes of it."""
    marks = {"is_adjusting_entry": False, "is_potential_duplicate": False}
    evidence = LedgerEvidence(
        stated=frame(stated, STATED),
        moved=frame(moved, MOVED),
        former=frame(former, FORMER),
        flagged=frame([{**marks, **row} for row in flagged], FLAGGED),
        waiting=frame(waiting, WAITING),
    )
    (found,) = integrity(["a"], evidence, today=TODAY)
    return found


def said(problem: LedgerProblem) -> Said:
    """A problem: its kind, its days and its amount."""
    amount = f"{problem.amount.normalize():f}" if problem.amount is not None else None
    return problem.kind, (problem.first - day(1)).days + 1, (problem.last - day(1)).days + 1, amount


def problems(
    stated: list[Row], moved: list[Row], waiting: Sequence[Row] = (), former: Sequence[Row] = ()
) -> list[Said]:
    """What makes the account unsound."""
    return [said(each) for each in judged(stated, moved, waiting=waiting, former=former).problems if each.is_unsound]
