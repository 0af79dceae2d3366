"""A store with invented bookings, and tokens of some of its users."""

import os
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

import polars as pl

from auth.scopes import SCOPES
from handlers.commands.control_socket import Report
from handlers.settings import load
from handlers.work.services import Services, open_services
from handlers.work.sync.detection import detect_after_import
from storage import compaction, store_facts
from storage.changes import first_answers
from storage.database import state_in
from tests.benchmarks.bench import data
from tests.benchmarks.bench.data import Size

WARM_USERS = 20  # who ask again and again
COLD_USERS_MAX = 500  # who ask once; each needs a token


@dataclass(frozen=True, slots=True, kw_only=True)
class Someone:
    """A user who asks."""

    user_id: str
    token: str
    transaction_ids: list[str]
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who asks: `warm` again and again, `cold` once each. `today` is the store's."""

    warm: list[Someone]
    cold: list[Someone]
    today: date


def filled(folder: Path, size: Size, report: Report) -> Audience:
    """Make a store of this size in the folder; whoever asks something of it is drawn at random, always the same."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BANKDATA_")}
    with closing(open_services(load(kept, data_dir=folder))) as services:
        today = services.clock.today()
        now = datetime.combine(today, time())  # of what is stored: the same for everybody who stores it
        for numbers in data.user_numbers(size):
            report.progress(f"Filling a store with {size.rows:,} bookings", numbers.start, size.users)
            _append(services, numbers, size.rows_each, today=today, now=now)
        store_facts.remember(services.everybody, compaction.SORTED_UNTIL, now.isoformat())  # as they were appended
        drawn = random.Random(7).sample(range(size.users), min(size.users, WARM_USERS + COLD_USERS_MAX))
        asking = list(_asking(services, drawn, size, report))
    # As many who are asked for the first time as there are others, at least: small stores have few users
    warm = min(WARM_USERS, -(-len(asking) // 2))
    return Audience(warm=asking[:warm], cold=asking[warm:], today=today)


def _append(services: Services, numbers: range, rows_each: int, *, today: date, now: datetime) -> None:
    ids = [data.user_id(number) for number in numbers]
    accounts = data.accounts(numbers, today=today, now=now)
    database = services.everybody
    database.append(
        "users",
        pl.DataFrame({"id": ids}).with_columns(
            name=pl.format("person{}", pl.Series(list(numbers))),
            has_subscription=True,
            home_currency=pl.lit("EUR"),
            data_version=1,
            created_at=pl.lit(now),
        ),
    )
    database.append(
        "connections",
        pl.DataFrame({"user_id": ids, "id": [data.connection_id(number) for number in numbers]}).with_columns(
            connector=pl.lit("files"),
            bank_name=pl.lit("Beispielbank"),
            status=pl.lit("ACTIVE"),
            settings=pl.lit("{}"),
            failures_in_row=0,
            created_at=pl.lit(now),
        ),
    )
    database.append("accounts", accounts)
    database.append("account_sources", accounts.select("user_id", "connection_id", account_id="id"))
    database.append("transactions", data.bookings(numbers, rows_each, today=today, now=now))
    for user_id in ids:
        state = state_in(database, user_id)
        first_answers.settle(database, user_id, before=-1, state=state, written={"transactions"})
    detect_after_import(database, ids, today=today)


def _asking(services: Services, numbers: list[int], size: Size, report: Report) -> Iterator[Someone]:
    for done, number in enumerate(numbers):
        report.progress("Issuing tokens", done, len(numbers))
        user_id = data.user_id(number)
        yield Someone(
            user_id=user_id,
            token=services.authorization.issue_token(user_id, frozenset(SCOPES), timedelta(hours=12)),
            transaction_ids=data.transaction_ids(number, size.rows_each)[:100],
            rows=size.rows_each,
        )
