"""The days of which a batch tells every booking: there what is counted decides, elsewhere only what is said."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import NamedTuple

import polars as pl

from storage.importing.batches import AccountStatement

DAY = timedelta(days=1)
HAS_TOLD = pl.col("told_print").is_not_null()  # whether the source of a batch has told a row before


class ToldWindow(NamedTuple):
    """The days from `first` to `last`: all of their bookings are told, but the first day's, which may have begun
    before, and the last one's, which goes on. What a live source has told of its last day it tells again."""

    first: date
    last: date
    is_live: bool


def windows(told: Iterable[AccountStatement]) -> list[ToldWindow]:
    """Those of a source that was asked for days, and those of statements whose balances prove them."""
    found = []
    for each in told:
        said = each.statement
        if said.told_from is not None and said.told_until is not None:
            found.append(ToldWindow(said.told_from, said.told_until, is_live=True))
        elif said.are_days_complete and each.first_day is not None and each.last_day is not None:
            found.append(ToldWindow(each.first_day - DAY, each.last_day, is_live=True))
        elif said.is_authoritative and each.adds_up and said.opening_date is not None and said.closing_date is not None:
            found.append(ToldWindow(said.opening_date + DAY, said.closing_date, is_live=False))
    return found


def is_whole(given: Iterable[ToldWindow], is_ours: pl.Expr = HAS_TOLD) -> pl.Expr:
    """Whether all bookings of `booking_date` are told, as an expression: on the last day of a live source only those
    that are its own (`is_ours`)."""
    day = pl.col("booking_date")
    among = [(day > each.first) & ((day < each.last) | ((day == each.last) & is_ours & each.is_live)) for each in given]
    return pl.any_horizontal(among) if among else pl.lit(value=False)


def is_asked_for(given: Iterable[ToldWindow]) -> pl.Expr:
    """Whether `booking_date` is whole, or a day that a live source was asked for, its first and last included: there
    the same words under another id are no other booking, for twins are told together."""
    asked = [pl.col("booking_date").is_between(each.first, each.last) for each in given if each.is_live]
    return pl.any_horizontal(is_whole(given), *asked)
