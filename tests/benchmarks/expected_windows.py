"""How often the next charge comes within the days between which it is expected.

    python tests/benchmarks/expected_windows.py FOLDER

FOLDER is that of `recurring.py`. What is detected by the bookings until 30 to 150 days before the end is held against
the charge that the whole history shows next.
"""

import sys
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import polars as pl

# a script's own folder comes first on the path, and there is an analytics.py beside this one
sys.path[0] = str(Path(__file__).resolve().parents[2])

from analytics.recurring.detection import detect  # noqa: E402 - after the line above
from analytics.recurring.history import Charge, history, outlook_of  # noqa: E402
from tests.benchmarks.recurring import charges_of  # noqa: E402

DAYS_BEFORE = (30, 60, 90, 120, 150)


def main() -> int:
    folder = Path(sys.argv[1])
    users = pl.read_parquet(folder / "users.parquet")
    rows = charges_of(pl.read_parquet(folder / "transactions.parquet"), users)
    asked = users.select(user_id="userId", today=pl.col("asOf").cast(pl.Date))
    booked: dict[str, tuple[date, Decimal]] = {
        id_: (day, -amount) for id_, day, amount in rows.select("id", "booking_date", "amount").iter_rows()
    }
    after = {
        earlier: later
        for charges in detect(rows, asked, with_ended=True)["charge_ids"]
        for earlier, later in pairwise(charges)
    }
    todays = dict(asked.iter_rows())
    found = hit = on_the_day = same = 0
    width = 0
    for days in DAYS_BEFORE:
        then = asked.with_columns(today=pl.col("today") - timedelta(days=days))
        seen = rows.join(then, on="user_id").filter(pl.col("booking_date") <= pl.col("today")).drop("today")
        for row in detect(seen, then).iter_rows(named=True):
            today = todays[row["user_id"]] - timedelta(days=days)
            charges = [Charge(id=id_, day=booked[id_][0], amount=booked[id_][1]) for id_ in row["charge_ids"]]
            told = history(charges, frequency=row["frequency"], currency=row["currency"], today=today)
            stands = outlook_of(told, is_over=False, today=today)
            coming = after.get(row["charge_ids"][-1])
            if stands.status != "active" or coming is None or booked[coming][0] <= today:
                continue
            assert stands.expected_from is not None
            assert stands.expected_until is not None
            day, amount = booked[coming]
            found += 1
            hit += stands.expected_from <= day <= stands.expected_until
            on_the_day += day == told.next_expected
            same += amount == row["amount"]
            width += (stands.expected_until - stands.expected_from).days + 1
    print(f"{found} next charges: {on_the_day / found:.1%} on the day, {hit / found:.1%} within the expected days,")
    print(f"which are {width / found:.1f} on average; {same / found:.1%} of the latest amount.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
