"""GET /cashflow, /snapshot and /subscriptions (interface 4.5 to 4.7); balances and categories over time."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import chain
from urllib.parse import urlencode

import polars as pl

from analytics.balances import Every, balance_series, shown_days
from analytics.cashflow import monthly_cashflow
from analytics.cashflow_categories import monthly_categories
from analytics.currencies import NO_RATES, reporting_currency
from analytics.frames import BALANCES, HOLDINGS
from analytics.periods import last_30_days, last_day
from analytics.recurring.directions import OUTGOING
from analytics.snapshot import snapshot
from handlers import json_shapes
from handlers.operations.selection import check_window, selected_accounts, selected_or_all
from handlers.web.errors import Forbidden
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import UserData
from handlers.work.services import Services
from handlers.work.sync.detection import recurring_in
from storage.accounts import SelectedAccounts, StoredAccount

MONTHS_ONLY = "This connection shows figures only: every must be month"


def get_cashflow(
    services: Services, request: Request, reading: UserData, *, account_ids: str | None, months: int
) -> Answer:
    """List income, expenses and net of each of the last months, the current month last (decisions 3, 13 to 16, 19)."""
    selected = selected_accounts(reading.accounts, account_ids, request.principal)
    rows, currency, _rates = _monthly(services, reading, selected, months, reading.flows)
    return Answer(
        body={"cashflow": [json_shapes.month(row, currency) for row in rows.iter_rows(named=True)]},
        headers=unconverted_header(chain.from_iterable(rows["unconverted"].to_list())),
    )


def get_cashflow_categories(
    services: Services, request: Request, reading: UserData, *, account_ids: str | None, months: int
) -> Answer:
    """List the expenses of each of the last months by category, the current month last; they add up to those of the
    cashflow (decisions 3, 13 to 17, 19)."""
    selected = selected_or_all(reading.accounts, account_ids, request.principal)
    rows, currency, rates = _monthly(services, reading, selected, months, reading.spendings)
    spent = monthly_categories(
        reading.spendings,
        selection=selected.ids,
        months=rows["month"].to_list(),
        currency=currency,
        rates=rates,
        parts=reading.parts,
    )
    return Answer(
        body={
            "currency": currency,
            "months": [json_shapes.month_of_categories(row, spent[row["month"]], currency) for row in rows.to_dicts()],
        },
        headers=unconverted_header(chain.from_iterable(rows["unconverted"].to_list())),
    )


def _monthly(
    services: Services, reading: UserData, selected: SelectedAccounts, months: int, flows: pl.DataFrame
) -> tuple[pl.DataFrame, str, pl.DataFrame]:
    """The cashflow of the last months, counted from `flows`, with its currency and the rates by which it was
    converted."""
    currency, rates = money_of(services, reading, selected.accounts, flows)
    today = services.clock.today()
    rows = monthly_cashflow(flows, selection=selected.ids, months=months, today=today, currency=currency, rates=rates)
    return rows, currency, rates


def get_balances(
    services: Services,
    request: Request,
    reading: UserData,
    *,
    account_ids: str | None,
    date_from: date | None,
    date_to: date | None,
    every: Every,
    per_account: bool,
) -> Answer:
    """List the accounts' balances at the end of each day, week or month, the earliest first, at most up to today, whose
    point equals the snapshot. A grant of figures only gets the ends of months and today, and Forbidden if `every` is
    day or week."""
    check_window(date_from, date_to)
    today = services.clock.today()
    selected = selected_or_all(reading.accounts, account_ids, request.principal)
    bookings = reading.figures.filter(pl.col("account_id").is_in(selected.ids))
    currency, rates = money_of(services, reading, selected.accounts, bookings)
    known_from, last = bookings["booking_date"].min() or today, min(date_to or today, today)
    if request.principal.figures_only:  # balances of successive days would reveal bookings
        if every != "month":
            raise Forbidden(MONTHS_ONLY)
        month = last.replace(day=1)
        if last not in (today, last_day(last)) and month > date.min:
            last = month - timedelta(days=1)
    assert isinstance(known_from, date)
    series = balance_series(
        holdings(selected.accounts),
        bookings,
        days=shown_days(every, first=max(date_from or known_from, known_from), last=last),
        today=today,
        currency=currency,
        rates=rates,
        as_of=last,
    )
    return Answer(body=json_shapes.balances(series, per_account=per_account))


def get_snapshot(services: Services, request: Request, reading: UserData, *, account_ids: str | None) -> Answer:
    """Show present balances, and the expenses of the last 30 days with the five categories that cost most (decisions 16
    to 20)."""
    today = services.clock.today()
    selected = selected_accounts(reading.accounts, account_ids, request.principal)
    bookings = reading.figures_since(last_30_days(today)[0])
    currency, rates = money_of(services, reading, selected.accounts, bookings)
    figures = snapshot(
        balances(selected.accounts), bookings, today=today, currency=currency, rates=rates, parts=reading.parts
    )
    return Answer(body=json_shapes.snapshot(figures), headers=unconverted_header(figures.unconverted))


def list_subscriptions(services: Services, request: Request, reading: UserData, *, account_ids: str | None) -> Answer:
    """List the detected outgoing recurring payments that were charged in the last six months, go on, and are not
    dismissed, the one with the highest yearly cost first (decisions 21, 22)."""
    selected = selected_accounts(reading.accounts, account_ids, request.principal)
    user_id, today = request.principal.user_id, services.clock.today()
    found = [
        each
        for each in recurring_in(
            services.of(user_id), user_id, selected, told=reading.recurring, state=reading.state, today=today
        )
        if each.added_to is None and each.direction == OUTGOING and each.is_current(today)
    ]
    return Answer(
        body={"subscriptions": [json_shapes.subscription(each, today) for each in found]},
        headers={"link": _details_link(request, account_ids)},
    )


def _details_link(request: Request, account_ids: str | None) -> str:
    """The Link header (RFC 8288) to the same list with ids and charges, for which this body has no room (decision
    12)."""
    query = f"?{urlencode({'accountIds': account_ids})}" if account_ids else ""
    return f'<{request.path}/details{query}>; rel="alternate"'


def money_of(
    services: Services, reading: UserData, owned: Sequence[StoredAccount], bookings: pl.DataFrame
) -> tuple[str, pl.DataFrame]:
    """The currency of the selection's figures, and the reference rates if anything has to be converted (else NO_RATES,
    which is empty): even an account of that currency may hold a booking in another one."""
    currency = currency_of(services, reading, owned)
    is_mixed = any(account.currency != currency for account in owned) or bool((bookings["currency"] != currency).any())
    return currency, services.rates if is_mixed else NO_RATES


def currency_of(services: Services, reading: UserData, owned: Sequence[StoredAccount]) -> str:
    """The currency of the selection's figures: the one of all its accounts, else the user's home currency (decision
    19)."""
    currencies = {account.currency for account in owned}
    home = reading.home_currency if len(currencies) != 1 else services.settings.home_currency
    return reporting_currency(currencies, home=home)


def unconverted_header(currencies: Iterable[str]) -> dict[str, str]:
    """The header Unconverted-Currencies, which names the currencies without a reference rate, whose rows a figure
    leaves out, because the bodies have no room for that (decisions 12 and 19); no header if everything was
    converted."""
    names = sorted(set(currencies))
    return {"unconverted-currencies": ", ".join(names)} if names else {}


def balances(owned: Sequence[StoredAccount]) -> pl.DataFrame:
    """The accounts as a frame of analytics.frames.BALANCES, one row for each."""
    return pl.DataFrame([{name: getattr(account, name) for name in BALANCES} for account in owned], schema=BALANCES)


def holdings(owned: Sequence[StoredAccount]) -> pl.DataFrame:
    """The accounts as a frame of analytics.frames.HOLDINGS, one row for each."""
    return pl.DataFrame([{name: getattr(account, name) for name in HOLDINGS} for account in owned], schema=HOLDINGS)
