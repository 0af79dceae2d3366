"""GET /forecast: the balances that accounts are expected to have on the coming days, and how wrong earlier forecasts
were."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import chain

import polars as pl

from analytics.forecasting.back_test import TESTED_DAYS, Accuracy, accuracy
from analytics.forecasting.flows import streams_of
from analytics.forecasting.projection import Event, NextPay, Stream, by_month, next_pay, project
from analytics.periods import last_day
from analytics.recurring.directions import INCOMING
from analytics.recurring.history import Charge
from analytics.recurring.payment import DISMISSED, RecurringPayment, ids_by_charge
from handlers.json_shapes import money
from handlers.names import Json
from handlers.operations.selection import selected_or_all
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import UserData
from handlers.work.services import Services
from handlers.work.sync.detection import recurring_of
from handlers.work.sync.forecasts.basis import Basis, basis_of
from handlers.work.sync.forecasts.series import Series
from storage import accounts


def get_forecast(
    services: Services, request: Request, _reading: UserData, *, days: int, account_ids: str | None
) -> Answer:
    """Forecast the balances of the coming days for each account and each currency, with a formula that anyone can
    check. A grant of figures only gets sums by month, for days to the end of the last month."""
    caller, today = request.principal, services.clock.today()
    if caller.figures_only:  # of two answers that end a day apart the difference is what is due on that day
        days = (last_day(today + timedelta(days=days)) - today).days
    user_id = caller.user_id
    database = services.of(user_id)
    with database.transaction() as session:
        everything = accounts.everything(session, user_id)
        selected = selected_or_all(everything.accounts, account_ids, caller)
        found = basis_of(database, user_id, selected, today=today, session=session)
        known = selected_or_all(everything.accounts, None, caller) if caller.is_their_own else everything
        recurring = recurring_of(database, user_id, known, today=today, session=session)
    added = [each for each in recurring if each.goes_on]
    charges = _mentioned(found, added)
    dismissed = list(ids_by_charge(each for each in recurring if each.confirmation == DISMISSED))
    streams = streams_of(
        found.flows.filter(~pl.col("charge_ids").list.eval(pl.element().is_in(dismissed)).list.any()),
        _by_id(charges),
        ids_by_charge(recurring),
        asked=found.asked,
        salaries=set(charges.filter(pl.col("amount") > 0, type="salary")["id"]),
    )
    _add(streams, added, found, _by_id(charges), today)
    of_charges = {each.id: each.added_to for each in added if each.added_to}
    of_charges |= dict(charges.select("id", "account_id").iter_rows())
    series = {each.key: each for each in [*found.of_accounts, *found.of_currencies.values()]}  # one may be both
    shapes = {
        key: _shape(each, streams, of_charges, days=days, of_months=caller.figures_only) for key, each in series.items()
    }
    ids = {
        currency: [one.key for one in found.of_accounts if one.ledger.currency == currency]
        for currency in found.of_currencies
    }
    return Answer(
        body={
            "from": (today + timedelta(days=1)).isoformat(),
            "until": (today + timedelta(days=days)).isoformat(),
            "accounts": [{"accountId": each.key, **shapes[each.key]} for each in found.of_accounts],
            "currencies": [
                {"accountIds": ids[currency], **shapes[each.key]} for currency, each in found.of_currencies.items()
            ],
            "leftOut": [{"accountId": id_, "reason": reason} for id_, reason in found.left_out],
        }
    )


def _mentioned(found: Basis, recurring: Iterable[RecurringPayment]) -> pl.DataFrame:
    """The bookings (CHARGES) that recurring flows or payments name, and those that are to come."""
    named = [
        *found.flows["charge_ids"].explode().drop_nulls(),
        *chain.from_iterable(one.charge_ids for one in recurring),
    ]
    coming = [one.id for each in found.of_accounts for one in each.ledger.pending]
    return found.rows.filter(pl.col("id").is_in([*named, *coming]))


def _add(
    streams: defaultdict[tuple[str, date], list[Stream]],
    recurring: Iterable[RecurringPayment],
    found: Basis,
    charges: Mapping[str, Charge],
    today: date,
) -> None:
    """Add each recurring payment that was added by hand to today's streams of its account and of its currency, unless
    it is among them already, as detection found it too; changes `streams`, which are by key of the series and day."""
    by_key = {each.key: each for each in found.of_accounts}
    for payment in recurring:
        if payment.added_to is None or payment.added_to not in by_key:
            continue
        stream = Stream(
            name=payment.merchant_name,
            id=payment.id,
            frequency=payment.frequency,
            expected=payment.amount if payment.direction == INCOMING else -payment.amount,
            charges=[charges[id_] for id_ in payment.charge_ids]
            # A charge of zero, because nothing was booked yet
            or [Charge(id=payment.id, day=payment.last_charged, amount=Decimal(0))],
            first_due=None if payment.charge_ids else payment.next_expected,
            asked=payment.asked,
        )
        of_currency = found.of_currencies[by_key[payment.added_to].ledger.currency]
        for key in {payment.added_to, of_currency.key}:
            if all(each.id != payment.id for each in streams[key, today]):
                streams[key, today].append(stream)


def _by_id(rows: pl.DataFrame) -> dict[str, Charge]:
    named = rows.select("id", "booking_date", pl.col("amount").abs()).iter_rows()
    return {id_: Charge(id=id_, day=day, amount=amount) for id_, day, amount in named}


def _shape(
    series: Series,
    streams: Mapping[tuple[str, date], Sequence[Stream]],
    of_charges: Mapping[str, str],
    *,
    days: int,
    of_months: bool,
) -> Json:
    """The forecast of one account or currency as JSON (AccountForecast of the contract without the account);
    `of_charges` are the accounts of charges by their ids.
    `of_months`, for a grant of figures only, sums the days of a month up, because the day of a recurring payment would
    reveal a booking."""
    ledger, currency = series.ledger, series.ledger.currency
    of_days = {day: found for (key, day), found in streams.items() if key == series.key}
    found = project(ledger, of_days.get(ledger.day, ()), days=days)
    if of_months:
        found = by_month(found)
    lowest = found.lowest
    return {
        "currency": currency,
        "balance": money(ledger.balance, currency),
        "balanceDate": series.balance_date.isoformat(),
        "days": [
            {
                "date": day.day.isoformat(),
                "expected": money(day.expected, currency),
                "low": money(day.low, currency),
                "high": money(day.high, currency),
            }
            for day in found.days
        ],
        "lowest": {
            "date": lowest.day.isoformat(),
            "expected": money(lowest.expected, currency),
            "low": money(lowest.low, currency),
        },
        "events": [_event(event, currency, of_charges) for event in found.events],
        "restPerDay": money(found.rest_per_day, currency),
        "trendWeight": round(found.trend_weight, 4),
        "accuracy": _accuracy(accuracy(ledger, of_days), currency),
        "nextPay": None if of_months else _next_pay(next_pay(ledger, of_days.get(ledger.day, ())), currency),
    }


def _event(value: Event, currency: str, of_charges: Mapping[str, str]) -> Json:
    return {
        "date": value.day.isoformat(),
        "from": value.first.isoformat(),
        "until": value.last.isoformat(),
        "amount": money(value.amount, currency),
        "name": value.name,
        "accountId": of_charges.get(value.last_charge or ""),
        "subscriptionId": value.id,
        "isOverdue": value.is_overdue,
        "isPending": value.is_pending,
    }


def _next_pay(value: NextPay | None, currency: str) -> Json | None:
    if value is None:
        return None
    return {"date": value.day.isoformat(), "due": money(value.due, currency), "left": money(value.left, currency)}


def _accuracy(value: Accuracy | None, currency: str) -> Json | None:
    if value is None:
        return None
    return {
        "tests": value.tests,
        "days": TESTED_DAYS,
        "meanAbsoluteError": money(value.mean_absolute_error, currency),
        "lastBalanceError": money(value.last_balance_error, currency),
        "coverage": round(value.coverage, 4),
        "beatsLastBalance": value.beats_last_balance,
    }
