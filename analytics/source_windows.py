"""Days that no source has reported, because a bank reports only so many days back and was not asked in time."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta

import polars as pl
from msgspec import Struct


class Hole(Struct, frozen=True, kw_only=True):
    """The days, both included, between everything reported before and the period that a source reported at `met_at`."""

    first: date
    last: date
    met_at: datetime


def hole_before_window(stated: pl.DataFrame) -> Iterator[Hole]:
    """The holes in the reported days of an account (analytics.frames.STATED), the earliest first. A hole lies between
    the last day that statements and sources reported before and the first day of a later period that a source states,
    because it could not go back further; a statement never ends a hole."""
    windows = stated.filter(pl.col("told_from").is_not_null()).select(
        first="told_from", last="told_until", met_at="received_at"
    )
    statements = stated.filter(pl.col("is_authoritative") & pl.col("opening_date").is_not_null()).select(
        first="opening_date", last="closing_date", met_at=pl.lit(None, dtype=pl.Datetime("us"))
    )
    until: date | None = None
    for first, last, met_at in pl.concat([windows, statements]).sort("first", "last").iter_rows():
        if until is not None and met_at is not None and first > until + timedelta(days=1):
            yield Hole(first=until + timedelta(days=1), last=first - timedelta(days=1), met_at=met_at)
        until = max(until, last) if until is not None else last
