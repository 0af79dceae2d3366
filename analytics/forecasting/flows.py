"""Recurring flows in and out of accounts, as they were visible on several days: one call of the detector."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from datetime import date

import polars as pl

from analytics.forecasting.projection import Stream
from analytics.frames import SUBSCRIPTIONS
from analytics.recurring.detection import detect
from analytics.recurring.directions import INCOMING
from analytics.recurring.history import Charge
from analytics.recurring.payment import payments_in

ROWS_AT_ONCE = 50_000
SEPARATOR = "\x1f"  # in no account id and in no day


def recurring_flows(rows: pl.DataFrame, days: Sequence[date]) -> pl.DataFrame:
    """The recurring payments and income (streams) of each `user_id` of the rows (CHARGES) that were visible on each of
    the days, ended ones too, as SUBSCRIPTIONS whose `user_id` consists of the rows' own and the day, joined by
    SEPARATOR, with `directions.MARK` at the end for incoming ones. Nothing is left out for its wording or type, because
    savings, loans and own transfers change a balance, too. Days are looked at together, as far as their rows are few.
    """
    at_once = max(1, ROWS_AT_ONCE // max(1, rows.height))
    some = (days[first : first + at_once] for first in range(0, len(days), at_once))
    # As rows: the texts of a frame hold on to all texts that it was made from
    return pl.DataFrame(
        [row for each in some for row in _visible_on(rows, each).rows()], schema=SUBSCRIPTIONS, orient="row"
    )


def _visible_on(rows: pl.DataFrame, days: Sequence[date]) -> pl.DataFrame:
    users = (
        rows.select("user_id")
        .unique()
        .join(pl.DataFrame({"today": days}, schema={"today": pl.Date}), how="cross")
        .with_columns(called=pl.concat_str("user_id", pl.col("today").cast(pl.String), separator=SEPARATOR))
    )
    return detect(rows, users, of_any_kind=True, incoming=True, with_ended=True)


def streams_of(
    flows: pl.DataFrame,
    charges: Mapping[str, Charge],
    ids: Mapping[str, str],
    *,
    asked: Mapping[str, date],
    salaries: Container[str] = (),
) -> defaultdict[tuple[str, date], list[Stream]]:
    """The streams in the result of `recurring_flows` that go on, by the rows' own `user_id` (in which a caller may have
    put an account) and day.

    `charges` are all charges by id, with positive amounts. `ids` has the ids of listed recurring payments by their
    charges, and `salaries` the ids of charges that are pay; a stream is looked up by its latest charge there. `asked`
    has for each account the day until which its bookings are known: what was not over then is not.
    """
    streams: defaultdict[tuple[str, date], list[Stream]] = defaultdict(list)
    for user_id, payment in zip(flows["user_id"], payments_in(flows), strict=True):
        whose, day, *_ = user_id.split(SEPARATOR)
        seen = date.fromisoformat(day)
        known = min(seen, asked.get(payment.account_id, seen))
        if payment.over_on <= known:
            continue
        streams[whose, seen].append(
            Stream(
                name=payment.merchant_name,
                id=next((ids[charge] for charge in reversed(payment.charge_ids) if charge in ids), None),
                asked=known,
                frequency=payment.frequency,
                expected=payment.amount if payment.direction == INCOMING else -payment.amount,
                charges=[charges[id_] for id_ in payment.charge_ids],
                is_pay=payment.charge_ids[-1] in salaries,
            )
        )
    return streams
