"""Recurring flows in and out of accounts, as they were visible on several days: one call of the detector."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from datetime import date

import polars as pl

from analytics.forecasting.projection import Stream
from analytics.frames import CHARGES
from analytics.recurring.detection import detect
from analytics.recurring.directions import INCOMING, with_direction
from analytics.recurring.history import Charge

SEPARATOR = "\x1f"  # in no account id and in no day


def recurring_flows(rows: pl.DataFrame, days: Sequence[date]) -> pl.DataFrame:
    """The recurring payments and income (streams) of each `user_id` of the rows (CHARGES) that were visible and went on
    at each of the days, as SUBSCRIPTIONS whose `user_id` consists of the rows' own and the day, joined by SEPARATOR,
    with `directions.MARK` at the end for incoming ones. Nothing is left out for its wording or type, because savings,
    loans and own transfers change a balance, too.
    """
    asked = (
        rows.select(whose="user_id")
        .unique()
        .join(pl.DataFrame({"today": days}, schema={"today": pl.Date}), how="cross")
        .with_columns(user_id=pl.concat_str("whose", pl.col("today").cast(pl.String), separator=SEPARATOR))
    )
    copies = (
        rows.rename({"user_id": "whose"})
        .join(asked, on="whose")
        .filter(pl.col("booking_date") <= pl.col("today"))
        .select(*CHARGES)
    )
    return detect(copies, asked.select("user_id", "today"), of_any_kind=True, incoming=True)


def streams_of(
    flows: pl.DataFrame, charges: Mapping[str, Charge], ids: Mapping[str, str], *, salaries: Container[str] = ()
) -> defaultdict[tuple[str, date], list[Stream]]:
    """The streams in the result of `recurring_flows`, by the rows' own `user_id` (in which a caller may have put an
    account) and day.

    `charges` are all charges by id, with positive amounts. `ids` has the ids of listed recurring payments by their
    charges, and `salaries` the ids of charges that are pay; in both, a stream is looked up by its latest charge.
    """
    streams: defaultdict[tuple[str, date], list[Stream]] = defaultdict(list)
    for row in with_direction(flows).iter_rows(named=True):
        whose, day = row["user_id"].split(SEPARATOR)
        streams[whose, date.fromisoformat(day)].append(
            Stream(
                name=row["merchant_name"],
                id=ids.get(row["charge_ids"][-1]),
                frequency=row["frequency"],
                expected=row["amount"] if row["direction"] == INCOMING else -row["amount"],
                charges=[charges[id_] for id_ in row["charge_ids"]],
                is_pay=row["charge_ids"][-1] in salaries,
            )
        )
    return streams


def ids_by_charge(subscriptions: pl.DataFrame) -> dict[str, str]:
    """The ids of recurring payments (SUBSCRIPTIONS) by each of their charges."""
    return {charge: row["id"] for row in subscriptions.iter_rows(named=True) for charge in row["charge_ids"]}
