"""How near forecasts of balances come to what is booked in the 90 days after them.

    python tests/benchmarks/forecasts.py FOLDER

FOLDER is that of `recurring.py`. Each user's bookings are one account, forecast 90, 180 and 270 days before the end
from what was booked until then, if that is 90 days or more. The loss is that of three quantiles (the pinball loss of
low, expected and high at 0.1, 0.5 and 0.9), doubled, as a mean over the days, in half-months of the account's turnover.
It stands beside that of two forecasts that nothing changes: alone, and with the band of the account's weeks around it.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from math import sqrt
from pathlib import Path
from statistics import mean, variance
from typing import NamedTuple

import polars as pl

# a script's own folder comes first on the path, and there is an analytics.py beside this one
sys.path[0] = str(Path(__file__).resolve().parents[2])

from analytics.forecasting.flows import recurring_flows, streams_of  # noqa: E402 - after the line above
from analytics.forecasting.ledgers import AccountLedger, DayMoved  # noqa: E402
from analytics.forecasting.projection import BAND, Stream, project  # noqa: E402
from analytics.recurring.history import Charge  # noqa: E402
from tests.benchmarks.recurring import charges_of  # noqa: E402

AHEAD = 90
DAYS_BEFORE = (90, 180, 270)
YEAR = 365
QUANTILES = (0.1, 0.5, 0.9)
OPENING = Decimal(1000)


class Outcome(NamedTuple):
    """One forecast: the days of history behind it, the losses of all three, and the share of days within its band."""

    age: int
    unmoved: float
    banded: float
    forecast: float
    covered: float


def ledger_of(moved: dict[date, DayMoved], until: date) -> AccountLedger:
    """The account as it was at the end of a day."""
    known = {day: each for day, each in moved.items() if day <= until}
    return AccountLedger(
        currency="EUR",
        day=until,
        balance=OPENING + sum((each.total for each in known.values()), Decimal(0)),
        first=min(moved),
        bookings=sum(each.bookings for each in known.values()),
        opening=OPENING,
        moved=known,
    )


def outcome_of(then: AccountLedger, streams: Sequence[Stream], moved: dict[date, DayMoved]) -> Outcome:
    """How near the forecast of this account, and that nothing changes, came to what was booked then."""
    turnover = 15 * sum(abs(float(each.total)) for each in then.moved.values()) / then.age
    weeks = [float(sum(then.usual_sums(then.age)[at : at + 7])) for at in range(0, then.age - 6, 7)]
    weekly, balance, came = variance(weeks), float(then.balance), float(then.balance)
    losses: list[tuple[float, float, float, bool]] = []
    for step, day in enumerate(project(then, streams, days=AHEAD).days, 1):
        came += float(moved.get(day.day, DayMoved()).total)
        half, told = BAND * sqrt(weekly * step / 7), tuple(map(float, (day.low, day.expected, day.high)))
        banded = (balance - half, balance, balance + half)
        losses.append((loss((balance,) * 3, came), loss(banded, came), loss(told, came), told[0] <= came <= told[2]))
    unmoved, with_band, forecast, covered = (mean(each) for each in zip(*losses, strict=True))
    return Outcome(then.age, unmoved / turnover, with_band / turnover, forecast / turnover, covered)


def loss(told: Sequence[float], came: float) -> float:
    """Twice the mean pinball loss of the three quantiles: the absolute error where all three are one."""
    each = (
        max(share * (came - value), (share - 1) * (came - value)) for value, share in zip(told, QUANTILES, strict=True)
    )
    return 2 * mean(each)


def outcomes(rows: pl.DataFrame, ends: dict[str, date]) -> list[Outcome]:
    """The outcomes of all users and days from which there are 90 days before and after."""
    origins: defaultdict[int, dict[str, date]] = defaultdict(dict)
    by_user: dict[str, dict[date, DayMoved]] = defaultdict(dict)
    by_day = rows.group_by("user_id", "booking_date").agg(pl.col("amount").sum(), pl.len())
    for user, day, total, count in by_day.iter_rows():
        by_user[user][day] = DayMoved(total=total, usual=total, bookings=count)
    for before in DAYS_BEFORE:
        for user, end in ends.items():
            if min(by_user[user]) <= (origin := end - timedelta(days=before)) - timedelta(days=AHEAD - 1):
                origins[before][user] = origin
    charges = {
        id_: Charge(id=id_, day=day, amount=abs(amount))
        for id_, day, amount in rows.select("id", "booking_date", "amount").iter_rows()
    }
    found = []
    for days in origins.values():
        seen = pl.DataFrame({"user_id": list(days), "until": list(days.values())})
        known = rows.join(seen, on="user_id").filter(pl.col("booking_date") <= pl.col("until")).drop("until")
        for origin in sorted(set(days.values())):
            users = [user for user, day in days.items() if day == origin]
            flows = recurring_flows(known.filter(pl.col("user_id").is_in(users)), [origin])
            streams = streams_of(flows, charges, {}, asked={})
            found += [
                outcome_of(ledger_of(by_user[user], origin), streams[user, origin], by_user[user]) for user in users
            ]
    return found


def main() -> int:
    folder = Path(sys.argv[1])
    users = pl.read_parquet(folder / "users.parquet")
    rows = charges_of(pl.read_parquet(folder / "transactions.parquet"), users)
    rows = rows.filter(~pl.col("is_potential_duplicate").fill_null(False), currency="EUR")
    ends = dict(users.select("userId", pl.col("asOf").cast(pl.Date)).iter_rows())
    found = outcomes(rows, ends)
    for title, some in (
        ("all", found),
        ("less than a year before", [each for each in found if each.age < YEAR]),
        ("a year or more before", [each for each in found if each.age >= YEAR]),
    ):
        unmoved, banded, forecast, covered = (mean(each) for each in list(zip(*some, strict=True))[1:])
        print(f"{title}: {len(some)} forecasts; no change {unmoved:.2f}, with a band {banded:.2f},", end=" ")
        print(f"the forecast {forecast:.2f}; {covered:.0%} of the days inside")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
