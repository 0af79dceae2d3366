"""The days for which a batch reports every booking: on these, counts decide; on all others, only what is reported."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import NamedTuple

import polars as pl

from storage.importing.batches import AccountStatement

DAY = timedelta(days=1)
HAS_REPORTED = pl.col("reported_print").is_not_null()  # whether the source of the batch has reported the row before


class ReportedWindow(NamedTuple):
    """The days from `first` to `last`, of which all bookings are reported, except on the first day, which may have
    begun before, and on the last one, which is not over. A live source repeats whatever it has reported for its last
    day."""

    first: date
    last: date
    is_live: bool


def windows(reported: Iterable[AccountStatement]) -> list[ReportedWindow]:
    """The windows of a source that was asked for days, of records of earlier imports that claim complete days, and of
    statements whose balances prove that they are complete."""
    found = []
    for each in reported:
        said = each.statement
        if said.told_from is not None and said.told_until is not None:
            found.append(ReportedWindow(said.told_from, said.told_until, is_live=True))
        elif said.are_days_complete and each.first_day is not None and each.last_day is not None:
            found.append(ReportedWindow(each.first_day - DAY, each.last_day, is_live=True))
        elif said.is_authoritative and each.adds_up and said.opening_date is not None and said.closing_date is not None:
            found.append(ReportedWindow(said.opening_date + DAY, said.closing_date, is_live=False))
    return found


def is_whole(given: Iterable[ReportedWindow], is_ours: pl.Expr = HAS_REPORTED) -> pl.Expr:
    """Whether all bookings on `booking_date` are reported, as an expression; on the last day of a live source, this
    holds only for rows of its own (`is_ours`)."""
    day = pl.col("booking_date")
    among = [(day > each.first) & ((day < each.last) | ((day == each.last) & is_ours & each.is_live)) for each in given]
    return pl.any_horizontal(among) if among else pl.lit(value=False)


def is_asked_for(given: Iterable[ReportedWindow]) -> pl.Expr:
    """Whether `booking_date` is whole, or a day for which a live source was asked, the first and last included. On such
    days equal words under another id are the same booking, because two equal bookings would both be reported."""
    asked = [pl.col("booking_date").is_between(each.first, each.last) for each in given if each.is_live]
    return pl.any_horizontal(is_whole(given), *asked)
