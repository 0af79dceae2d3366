"""Targets: amounts to compare with what was spent in a category; each holds from its month until a later one begins."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from analytics.frames import columns
from analytics.messages import Saying
from storage.database import Session, Transaction, put_row

TARGETS_MAX = 1_000  # of one user, past ones included
AMOUNT_MAX = 999_999_999_999
PERIODS = ("month", "year")
COLUMNS = columns("place, first_month, amount, currency, period")


class TooManyTargets(Saying, ValueError):
    """The user has the maximum number of targets already."""


class Target(NamedTuple):
    """An amount to compare with what is spent in a category, from the month that begins on `first_month` until another
    target of the same `place` begins. `place` is the code of a category or finer category, or the id of an own one. An
    amount of zero ends the target."""

    place: str
    first_month: date
    amount: Decimal
    currency: str
    period: str  # of PERIODS


def of_user(session: Session, user_id: str, *, until: date = date.max) -> list[Target]:
    """All targets of the user that begin no later than `until`, sorted by place and month."""
    rows = session.rows(
        "SELECT place, first_month, amount, currency, period FROM targets WHERE user_id = $1 AND first_month <= $2"
        " ORDER BY place, first_month",
        *(user_id, until),
    )
    return [Target(**row) for row in rows]


def of_month(session: Session, user_id: str, month: date) -> list[Target]:
    """The targets that hold in the month that begins on this day, the latest of each place; those of zero are left
    out."""
    latest = {target.place: target for target in of_user(session, user_id, until=month)}
    return [target for target in latest.values() if target.amount > 0]


def put(session: Transaction, user_id: str, target: Target) -> None:
    """Set a target; it replaces one of the same place and month. The caller has called `hold`. Raises
    TooManyTargets."""
    known = {(each.place, each.first_month) for each in of_user(session, user_id)}
    if len(known | {(target.place, target.first_month)}) > TARGETS_MAX:
        raise TooManyTargets("more than {limit} targets", limit=TARGETS_MAX)
    session.changes(user_id)
    put_row(session, "targets", ["user_id", "place", "first_month"], user_id=user_id, **target._asdict())


def add(session: Transaction, user_id: str, found: Sequence[Target]) -> None:
    """Add targets, unchecked: the caller knows that none has the place and month of a stored one and that they stay
    within TARGETS_MAX, and has called `hold`."""
    session.changes(user_id)
    frame = pl.DataFrame(found, schema=COLUMNS, orient="row")
    session.append("targets", frame.select(pl.lit(user_id).alias("user_id"), pl.all()))
