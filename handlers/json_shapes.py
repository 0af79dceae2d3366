"""Turns rows and frames into the JSON shapes of the interface; decimals become numbers here, and dates strings."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson

from analytics.balances import BalanceSeries
from analytics.minor_digits import in_digits, minor_digits
from analytics.recurring.frequencies import SAID_AS
from analytics.recurring.history import History, Price, outlook_of
from analytics.recurring.payment import RecurringPayment
from analytics.searching.comparison import Span
from analytics.searching.totals import Sums
from analytics.snapshot import Snapshot
from handlers.names import Json, python_name
from storage.accounts import StoredAccount
from storage.jobs import Job
from storage.oauth.access_record import Entry


def members(value: object, *names: str) -> Json:
    """Members of the contract that stand under the same name in a record: `hasHeader` is the attribute `has_header`, a
    moment (UTC) becomes text with milliseconds, a day YYYY-MM-DD."""
    values = {name: getattr(value, python_name(name)) for name in names}
    return {
        name: instant(each) if isinstance(each, datetime) else each.isoformat() if isinstance(each, date) else each
        for name, each in values.items()
    }


def money(amount: Decimal, currency: str) -> orjson.Fragment:
    """The amount as an exact JSON number, rounded to the decimals of its currency; never by way of binary floating
    point."""
    return orjson.Fragment(f"{_exact_amount(amount, currency):f}")


def money_text(amount: Decimal, currency: str) -> str:
    """The amount as text, rounded to the decimals of its currency but with at least two, because one app turns it into
    cents by deleting the point."""
    exact = _exact_amount(amount, currency)
    return f"{exact:.2f}" if minor_digits(currency) < 2 else f"{exact:f}"


def _exact_amount(amount: Decimal, currency: str) -> Decimal:
    # Adding zero turns -0.00 into 0.00
    return in_digits(amount, currency) + 0


def day(value: date | None) -> str | None:
    """A bank's calendar day as the text of a date-time at midnight, never shifted by a time zone (decision 10); None
    for None."""
    return f"{value.isoformat()}T00:00:00.000Z" if value is not None else None


def instant(value: datetime | None) -> str | None:
    """An instant of the store (UTC) as ISO 8601 text with milliseconds and Z; None for None."""
    return f"{value.isoformat(timespec='milliseconds')}Z" if value is not None else None


def account(value: StoredAccount, connection_status: str) -> Json:
    """The account as JSON (Account of the contract, interface 2.1)."""
    return {
        "id": value.id,
        "accountName": value.name,
        "iban": value.iban,
        "accountType": value.kind,
        "balance": money(value.balance, value.currency) if value.balance is not None else None,
        "currency": value.currency,
        "lastSyncedAt": instant(value.last_synced_at),
        "bankConnection": {"bankName": value.bank_name, "status": connection_status},
    }


def transaction(row: Mapping[str, Any], accounts: Mapping[str, StoredAccount]) -> Json:
    """The row as JSON (Transaction of the contract, interface 2.4); `accounts` has its account by id."""
    owner = accounts[row["account_id"]]
    return {
        "id": row["id"],
        "amount": money(row["amount"], row["currency"]),
        "currency": row["currency"],
        "bookingDate": day(row["booking_date"]),
        "valueDate": day(row["value_date"]),
        "merchantName": row["merchant_name"],
        "counterpartName": row["counterpart_name"],
        "counterpartIban": row["counterpart_iban"],
        "counterpartMandateReference": row["mandate_reference"],
        "type": row["type"],
        "category": row["category"],
        "purpose": row["purpose"],
        "bankAccount": {
            "id": owner.id,
            "iban": owner.iban,
            "accountName": owner.name,
            "bankConnection": {"bankName": owner.bank_name},
        },
    }


def transaction_detail(row: Mapping[str, Any], accounts: Mapping[str, StoredAccount]) -> Json:
    """The row with all its details as JSON (TransactionDetail of the contract, interface 2.5)."""
    return {
        **transaction(row, accounts),
        "counterpartBic": row["counterpart_bic"],
        "counterpartBankName": row["counterpart_bank_name"],
        "counterpartCreditorId": row["creditor_id"],
        "counterpartDebitorId": row["debitor_id"],
        "bankTransactionCode": row["bank_transaction_code"],
        "sepaPurposeCode": row["purpose_code"],
        "isPotentialDuplicate": row["is_potential_duplicate"],
        "isAdjustingEntry": row["is_adjusting_entry"],
        "createdAt": instant(row["created_at"]),
    }


def month(row: Mapping[str, Any], currency: str) -> Json:
    """One month's figures as JSON (MonthlyCashflow of the contract, interface 2.7)."""
    return {
        "month": row["month"].strftime("%Y-%m"),
        **{name: money(row[name], currency) for name in ("income", "expenses", "net")},
    }


def sums(value: Sums, currency: str, *, with_days: bool) -> Json:
    """The figures of a TransactionSums of the contract as JSON; with `with_days` False, first and last day are null,
    for they would tell of single bookings."""
    days = (value.first, value.last) if with_days else (None, None)
    return {
        "count": value.count,
        **{name: money(getattr(value, name), currency) for name in ("income", "expenses", "refunds", "net")},
        **{name: day and day.isoformat() for name, day in zip(("first", "last"), days, strict=True)},
    }


def span(value: Span) -> Json:
    """The span as JSON (ComparedSpan of the contract)."""
    return {"dateFrom": value.first.isoformat(), "dateTo": value.last.isoformat()}


def month_of_categories(row: Mapping[str, Any], spent: Iterable[tuple[str, Decimal]], currency: str) -> Json:
    """One month's expenses by category as JSON (MonthOfCategories of the contract), in the order of `spent`."""
    return {
        "month": row["month"].strftime("%Y-%m"),
        "expenses": money(row["expenses"], currency),
        "categories": [{"category": category, "amount": money(amount, currency)} for category, amount in spent],
    }


def balances(value: BalanceSeries, *, per_account: bool) -> Json:
    """The body of GET /balances as JSON; each account has points of its own only if `per_account`."""
    return {
        "currency": value.currency,
        "accounts": [
            {
                "accountId": each.account_id,
                "date": each.day.isoformat(),
                "balance": money(each.balance, value.currency) if each.balance is not None else None,
                "currency": value.currency,
                "ownBalance": money(each.own_balance, each.own_currency),
                "ownCurrency": each.own_currency,
                "isOld": each.is_old,
                **({"points": points(each.points, each.own_currency)} if per_account else {}),
            }
            for each in value.accounts
        ],
        "leftOut": [{"accountId": account_id, "reason": reason} for account_id, reason in value.left_out],
        "points": points(value.points, value.currency),
    }


def points(values: Iterable[tuple[date, Decimal]], currency: str) -> list[Json]:
    """The balances as JSON (BalancePoints of the contract), in the order given."""
    return [{"date": day.isoformat(), "balance": money(balance, currency)} for day, balance in values]


def snapshot(value: Snapshot) -> Json:
    """The body of GET /snapshot as JSON (interface 4.6)."""
    currency = value.currency
    return {
        "totalBalance": money(value.total_balance, currency),
        "accountCount": value.accounts.height,
        "accounts": [
            {**row, "balance": money(row["balance"], row["currency"])} for row in value.accounts.iter_rows(named=True)
        ],
        "last30Days": {
            "totalExpenses": money(value.total_expenses, currency),
            "topCategories": [
                {**row, "amount": money(row["amount"], currency)} for row in value.top_categories.iter_rows(named=True)
            ],
        },
    }


def subscription(payment: RecurringPayment, today: date) -> Json:
    """The recurring payment as JSON (DetectedSubscription of the contract, interface 2.10)."""
    return {
        "merchantName": payment.merchant_name,
        "amount": money(payment.amount, payment.currency),
        "currency": payment.currency,
        "frequency": SAID_AS[payment.frequency],
        "lastCharged": day(payment.last_charged),
        "occurrences": payment.occurrences(today),
    }


def counted_transaction(
    judged: Mapping[str, Any], row: Mapping[str, Any], accounts: Mapping[str, StoredAccount], currency: str
) -> Json:
    """The transaction as JSON with the amount that it adds to the figure being explained (CountedTransaction of the
    contract)."""
    return {
        **transaction(row, accounts),
        "countedAs": judged["counted_as"],
        "leftOut": judged["left_out"],
        "countedAmount": money(judged["counted_amount"], currency),
    }


STANDING = frozenset(
    {
        "status",
        "direction",
        "nextExpectedFrom",
        "nextExpectedUntil",
        "expectedAmount",
        "overdueSince",
        "confirmation",
        "addedTo",
        "category",
    }
)
"""The fields of a SubscriptionDetail that only requests with a status or a direction get."""


def subscription_detail(
    payment: RecurringPayment, past: History, charges: Iterable[Json], today: date, *, category: str | None
) -> Json:
    """The recurring payment with its history as JSON (SubscriptionDetail of the contract); `category` is that of its
    latest charge."""
    currency = payment.currency
    outlook = outlook_of(past, is_over=payment.is_over, today=today)
    has_ended = outlook.status == "ended"
    return {
        **subscription(payment, today),
        "id": payment.id,
        "confidence": round(payment.confidence, 2),
        "firstCharged": day(past.first_charged),
        "nextExpected": None if has_ended else day(past.next_expected),
        "comingCharges": [] if has_ended else [day(coming) for coming in past.coming],
        "cadence": members(past.cadence, "every", "unit", "weekday", "dayOfMonth", "secondDayOfMonth", "month"),
        "intervalMonths": past.cadence.interval_months,
        "yearlyCost": money(past.yearly_cost, currency),
        "priceChange": price_change(past.prices, currency),
        "priceHistory": [
            {
                "since": day(price.since),
                "until": day(price.until),
                "amount": money(price.amount, currency),
                "change": money(price.change, currency) if price.change is not None else None,
                "charges": price.charges,
            }
            for price in past.prices
        ],
        "missedCharges": [day(missed) for missed in past.missed],
        "charges": list(charges),
        "status": outlook.status,
        "direction": payment.direction,
        "nextExpectedFrom": day(outlook.expected_from),
        "nextExpectedUntil": day(outlook.expected_until),
        "expectedAmount": money(payment.amount, currency),
        "overdueSince": day(outlook.overdue_since),
        "confirmation": payment.confirmation,
        "addedTo": payment.added_to,
        "category": category,
    }


def price_change(prices: Sequence[Price], currency: str) -> Json | None:
    """The latest change of price as JSON (PriceChange of the contract); None where the price has always been the same,
    or rose from zero."""
    last = prices[-1]
    if last.change is None or last.change == last.amount:  # there is no percentage of a price of zero
        return None
    return {
        "amount": money(last.change, currency),
        "percent": float(round(100 * last.change / (last.amount - last.change), 1)),
        "since": day(last.since),
    }


def charge(row: Mapping[str, Any], *, is_counted: bool) -> Json:
    """The booking as a charge of a recurring payment, its amount without sign (SubscriptionCharge of the contract);
    `is_counted` says whether it counts as an occurrence."""
    return {
        "transactionId": row["id"],
        "accountId": row["account_id"],
        "bookingDate": day(row["booking_date"]),
        "amount": money(abs(row["amount"]), row["currency"]),
        "isOccurrence": is_counted,
    }


def job(value: Job) -> Json:
    """The sync job as JSON (SyncJobStatus of the contract, interface 2.12); newTransactions is absent until the job is
    completed (decision 12)."""
    shown = {"syncId": value.id, **members(value, "status", "error", "createdAt", "updatedAt")}
    if value.status == "completed":
        shown["newTransactions"] = value.new_transactions
    return shown


def pagination(*, page: int, per_page: int, total: int) -> Json:
    """The position of a page as JSON (Pagination of the contract, interface 2.6, decision 2); no row makes no page."""
    return {"page": page, "perPage": per_page, "total": total, "pageCount": -(-total // per_page)}


def record_entry(entry: Entry) -> Json:
    """One entry of a user's access record as JSON, for its export: what an app (or, with `app` null, the person) did
    within an hour."""
    app = {"id": entry.client_id, "name": entry.client_name, "grant": entry.grant_id or None}
    return {
        "hour": instant(entry.hour),
        "app": app if entry.client_id else None,
        **members(entry, "operation", "calls", "refusals", "lastAt"),
    }
