"""What is asked in each operation that is measured, and how much of what is possible it should reach."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from tests.benchmarks.bench.data import CATEGORIES, WORDS
from tests.benchmarks.bench.store import Audience, Someone

PAGE_ROWS = 50
LATER_DAYS = 300_000
EARLIER_DAYS = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One operation; `path` draws what this person asks today. `share_min` is the part of the requests a second of our
    own stack with a constant answer that it should reach, `times_min` how much faster than FastAPI on SQLite."""

    name: str
    operation_id: str
    path: Callable[[random.Random, Someone, date], str]
    share_min: float
    times_min: int | None = None


def _list(draw: random.Random, someone: Someone, today: date, *, pages: int = 20, **asked: str | date) -> str:
    """A page of the list that nobody has asked for before: up to another day of the future each time, which changes
    nothing about its rows. A request that is repeated is answered by heart, and that is measured by itself."""
    asked.setdefault("dateTo", today + timedelta(days=draw.randrange(1, LATER_DAYS)))
    asked["page"] = str(draw.randint(1, max(1, min(pages, someone.rows // PAGE_ROWS))))
    return f"/transactions?{urlencode({'perPage': PAGE_ROWS, **asked})}"


def _page(draw: random.Random, someone: Someone, today: date) -> str:
    return _list(draw, someone, today)


def _category(draw: random.Random, someone: Someone, today: date) -> str:
    return _list(draw, someone, today, pages=1, category=draw.choice(CATEGORIES))


def _dates(draw: random.Random, someone: Someone, today: date) -> str:
    first, last = sorted(today - timedelta(days=draw.randrange(EARLIER_DAYS)) for _ in range(2))
    return _list(draw, someone, today, pages=1, dateFrom=first, dateTo=last)


def _search(draw: random.Random, someone: Someone, today: date) -> str:
    return _list(draw, someone, today, pages=1, search=draw.choice(WORDS))


def _detail(draw: random.Random, someone: Someone, _today: date) -> str:
    return f"/transactions/{draw.choice(someone.transaction_ids)}"


def _always(path: str) -> Callable[[random.Random, Someone, date], str]:
    return lambda _draw, _someone, _today: path


REPEATED = "repeated request"
WORKS = {
    work.name: work
    for work in (
        Work(name="page", operation_id="listTransactions", path=_page, share_min=0.6, times_min=10),
        Work(name="category filter", operation_id="listTransactions", path=_category, share_min=0.4, times_min=5),
        Work(name="date filter", operation_id="listTransactions", path=_dates, share_min=0.4, times_min=5),
        Work(name="search", operation_id="listTransactions", path=_search, share_min=0.2, times_min=5),
        Work(name="one transaction", operation_id="getTransaction", path=_detail, share_min=0.7),
        Work(name="accounts", operation_id="listAccounts", path=_always("/accounts"), share_min=0.7),
        Work(name="cashflow", operation_id="getCashflow", path=_always("/cashflow"), share_min=0.7, times_min=12),
        Work(name="snapshot", operation_id="getSnapshot", path=_always("/snapshot"), share_min=0.7, times_min=12),
        Work(name="subscriptions", operation_id="listSubscriptions", path=_always("/subscriptions"), share_min=0.7),
        Work(
            name=REPEATED,
            operation_id="listTransactions",
            path=_always(f"/transactions?perPage={PAGE_ROWS}"),
            share_min=0.85,
        ),
    )
}
"""By name, in the order in which they are measured and shown."""


def first_path(work: Work, audience: Audience) -> str:
    """What the first of the audience asks first; the same in every run."""
    return work.path(random.Random(0), audience.warm[0], audience.today)
