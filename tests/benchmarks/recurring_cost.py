"""What detecting recurring payments costs: one user with few and many bookings, and hundreds of users in one call.

    python tests/benchmarks/recurring_cost.py

Prints the least wall and CPU time of several runs; the bookings are made up (contracts, shops, coffee, cash).
"""

import random
import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl

# a script's own folder comes first on the path, and there is an analytics.py beside this one
sys.path[0] = str(Path(__file__).resolve().parents[2])

from analytics.frames import CHARGES  # noqa: E402 - after the line above
from analytics.recurring.detection import detect  # noqa: E402

TODAY = date(2026, 11, 20)
DAYS = 760
LIMITS = {500: 0.060, 5_000: 0.150, 50_000: 0.700}  # seconds, issue 5
BATCH_USERS, BATCH_BOOKINGS, BATCH_LIMIT = 300, 500, 0.010
CITIES = ["BERLIN", "LINZ", "UTRECHT", "LEEDS", "BRNO"]


def bookings(user: str, count: int, seed: int) -> list[dict[str, object]]:
    """A quarter contracts with mandates or card plans, the rest purchases at ever more payees."""
    rnd = random.Random(seed)
    rows: list[dict[str, object]] = []

    def book(day: int, amount: int, name: str, **other: object) -> None:
        rows.append(
            {
                **dict.fromkeys(CHARGES),
                "user_id": user,
                "id": f"{user}-{len(rows):06}",
                "account_id": "a",
                "booking_date": TODAY - timedelta(days=day),
                "amount": Decimal(-amount) / 100,
                "currency": "EUR",
                "counterpart_name": name,
                "is_potential_duplicate": False,
                "is_adjusting_entry": False,
                **other,
            }
        )

    stream = 0
    while len(rows) < count // 4:
        start, price, mandated = rnd.randrange(30), rnd.randrange(299, 9999), rnd.random() < 0.5
        for month in range(DAYS // 30):
            late = rnd.choice([0, 0, 0, 1, 2])
            text = (
                {"mandate_reference": f"M{stream}", "purpose": f"Rechnung {rnd.randrange(10**8)}"} if mandated else {}
            )
            book(max(0, start + round(month * 30.44) - late), price, f"Contract{stream:04} GmbH", **text)
        stream += 1
    shops = max(8, count // 60)
    while len(rows) < count:
        name = f"SHOP{rnd.randrange(shops):04} {rnd.choice(CITIES)} {rnd.randrange(10**5)}"
        price = rnd.choice([350, 420, rnd.randrange(300, 9000), rnd.randrange(300, 9000)])
        book(rnd.randrange(DAYS), price, name, purpose=f"card {rnd.randrange(10**9)}", type="card_payment")
    return rows


def least(work: Callable[[], object], times: int) -> tuple[float, float]:
    """The least wall and CPU seconds of several runs; the first one only warms up."""
    work()
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def main() -> int:
    one = pl.DataFrame({"user_id": ["u"], "today": [TODAY]})
    slow = 0
    for count, limit in LIMITS.items():
        charges = pl.DataFrame(bookings("u", count, count), schema=CHARGES)
        wall, cpu = least(lambda charges=charges: detect(charges, one), 20 if count < 50_000 else 5)  # type: ignore[misc]
        found = detect(charges, one).height
        slow += cpu > limit
        print(
            f"{count:>7} bookings, 1 user: {found:>4} found, {wall:.3f} s wall, {cpu:.3f} s CPU (limit {limit:.3f} s)"
        )
    names = [f"u{number:03}" for number in range(BATCH_USERS)]
    rows = [row for number, name in enumerate(names) for row in bookings(name, BATCH_BOOKINGS, number)]
    charges, users = pl.DataFrame(rows, schema=CHARGES), pl.DataFrame({"user_id": names, "today": [TODAY] * len(names)})
    wall, cpu = (seconds / BATCH_USERS for seconds in least(lambda: detect(charges, users), 3))
    slow += cpu > BATCH_LIMIT
    cost = f"{wall:.4f} s wall, {cpu:.4f} s CPU a user (limit {BATCH_LIMIT:.4f} s)"
    print(f"{BATCH_BOOKINGS:>7} bookings, each of {BATCH_USERS} users in one call: {cost}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
