"""The days on which statements book what notifications date up to a bank day earlier or later."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date

import polars as pl

from analytics.bank_days import DAY, bank_day_by, bank_day_from
from storage.importing import contributions, statements
from storage.importing.matching.exact_matches import left_over
from storage.importing.matching.likely_matches import Remaining, as_found
from storage.importing.teller import Teller

AMOUNT = ("amount", "currency")


class BookedDays:
    """The days on which statements book what only notifications tell on another day: of the `left` bookings of a batch
    (COMPARED) and the `rows` (STORED) of an account, which are the `stored` ones left, nothing is the same on its own
    day. `remaining` makes a matcher of some of both."""

    def __init__(
        self,
        teller: Teller,
        account_id: str,
        batch_id: str,
        remaining: Callable[[pl.DataFrame, pl.DataFrame], Remaining],
    ) -> None:
        self._about = teller.session, teller.user.id, account_id
        self._batch_id = batch_id
        self._remaining = remaining

    def of_items(self, left: pl.DataFrame, rows: pl.DataFrame, stored: pl.DataFrame) -> dict[int, date]:
        """The days of those bookings of a notification that are rows of statements, by place."""
        found, rows = dict[int, date](), rows.filter(~pl.col("is_notified"))
        for day, booked_on in _days_and_near(left["booking_date"]):
            pairs = self._same(left.filter(booking_date=day), rows.filter(booking_date=booked_on), stored, booked_on)
            left, rows = left_over(left, rows, pairs)
            found |= dict.fromkeys(pairs["place"], booked_on)
        return found

    def of_rows(self, left: pl.DataFrame, rows: pl.DataFrame, stored: pl.DataFrame) -> dict[str, date]:
        """The days of those rows told by notifications alone that are bookings of this statement, by id."""
        found, rows = dict[str, date](), rows.filter("is_notified")
        for day, booked_on in _days_and_near(rows["booking_date"]):
            pairs = self._same(left.filter(booking_date=booked_on), rows.filter(booking_date=day), stored, booked_on)
            left, rows = left_over(left, rows, pairs)
            found |= dict.fromkeys(pairs["stored_id"], booked_on)
        return found

    def _same(self, items: pl.DataFrame, rows: pl.DataFrame, stored: pl.DataFrame, booked_on: date) -> pl.DataFrame:
        """The pairs of a booking and one of these rows of one day, both taken for ones of the day `booked_on`; only
        rows that, being told by notifications, no statement has told, or the other way round."""
        if items.is_empty() or rows.is_empty():
            return as_found([])
        (day, are_notified), *_ = rows.select("booking_date", "is_notified").iter_rows()
        told = contributions.told_on(*self._about, day, besides=self._batch_id, by_notifications=not are_notified)
        money = [(each.amount, each.currency) for each in told]
        known = pl.DataFrame(money, schema=stored.select(AMOUNT).schema, orient="row")
        number = pl.int_range(pl.len()).over(AMOUNT)
        of_day = stored.filter(booking_date=day).sort(pl.col("is_notified") == are_notified, maintain_order=True)
        of_day = of_day.with_columns(number=number).join(known.group_by(AMOUNT).len(), on=AMOUNT, how="left")
        rows = rows.join(of_day.filter(pl.col("number") >= pl.col("len").fill_null(0)), on="id", how="semi")
        if are_notified:
            rows = rows.filter(~pl.col("id").is_in(statements.told_of(*self._about)))
        remaining = self._remaining(items, rows)
        remaining.put_on(booked_on)
        remaining.match_by_day()
        return pl.concat(map(as_found, (remaining.pairs, remaining.parts, remaining.replaced)))


def on_days(bookings: pl.DataFrame, key: str, days: Mapping[int, date] | Mapping[str, date]) -> pl.DataFrame:
    """The bookings, those whose `key` is named on the day given for it."""
    if not days:
        return bookings
    found = pl.col(key).replace_strict(list(days), list(days.values()), default=None, return_dtype=pl.Date())
    return bookings.with_columns(booking_date=pl.coalesce(found, "booking_date"))


def _days_and_near(days: pl.Series) -> Iterator[tuple[date, date]]:
    """Each of these days, the first one first, with the days after it up to the next bank day, then with those before
    it back to the last one, the nearest first."""
    for day in days.unique().sort():
        ahead, back = (bank_day_from(day + DAY) - day).days, (day - bank_day_by(day - DAY)).days
        yield from ((day, day + n * DAY) for n in (*range(1, ahead + 1), *range(-1, -back - 1, -1)))
