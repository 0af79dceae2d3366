"""Targets: an amount to compare with what was spent at a place, which holds from its month until another one does."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from analytics.frames import MONEY
from storage.database import Session, Transaction, put_row

TARGETS_MAX = 1_000  # of one user, those that were before as well
AMOUNT_MAX = 999_999_999_999
PERIODS = ("month", "year")
COLUMNS: dict[str, pl.DataType] = {
    "place": pl.String(),
    "first_month": pl.Date(),
    "amount": MONEY,
    "currency": pl.String(),
    "period": pl.String(),
}


class TooManyTargets(ValueError):
    """The user has as many as there may be."""


class Target(NamedTuple):
    """What holds at a place from a month on; `place` is the code of a category or a finer one, or the id of an own one.
    An amount of zero says that none holds."""

    place: str
    first_month: date
    amount: Decimal
    currency: str
    period: str  # of PERIODS


def of_user(session: Session, user_id: str, *, until: date = date.max) -> list[Target]:
    """All that were ever set for months up to this one, by place, the earliest first."""
    rows = session.rows(
        "SELECT place, first_month, amount, currency, period FROM targets WHERE user_id = $1 AND first_month <= $2"
        " ORDER BY place, first_month",
        *(user_id, until),
    )
    return [Target(**row) for row in rows]


def holding(session: Session, user_id: str, month: date) -> list[Target]:
    """Those that hold in the month that begins on this day."""
    latest = {target.place: target for target in of_user(session, user_id, until=month)}
    return [target for target in latest.values() if target.amount > 0]


def put(session: Transaction, user_id: str, target: Target) -> None:
    """Let this one hold from its month on, in place of one that was set for it. Whoever says it has said `hold`."""
    known = {(each.place, each.first_month) for each in of_user(session, user_id)}
    if len(known | {(target.place, target.first_month)}) > TARGETS_MAX:
        raise TooManyTargets(f"more than {TARGETS_MAX} targets")
    session.changes(user_id)
    put_row(session, "targets", ["user_id", "place", "first_month"], user_id=user_id, **target._asdict())


def add(session: Transaction, user_id: str, found: Sequence[Target]) -> None:
    """Let these hold from their months on, for which none was set, and of which there are not too many. Whoever says it
    has said `hold`."""
    session.changes(user_id)
    frame = pl.DataFrame(found, schema=COLUMNS, orient="row")
    session.append("targets", frame.select(pl.lit(user_id).alias("user_id"), pl.all()))
