"""The rows behind every figure (of a month, of a category), and the reasons for a booking's type, category and
merchant.

Each answer is made from one state of the store and is never cut into pages, so that it always adds up.
"""

from datetime import date
from decimal import Decimal

import polars as pl

from analytics.cashflow import NO_RATE, MonthOutsideHistory, month_transactions
from analytics.periods import InvalidMonth, last_30_days, month_of
from analytics.snapshot import category_transactions, percentage, snapshot
from handlers import json_shapes
from handlers.names import Json
from handlers.operations import rules_in_words
from handlers.operations.categories.finer import INCLUDED, leaf_as_seen
from handlers.operations.reports import balances, money_of, unconverted_header
from handlers.operations.selection import listed_values, readable_booking, selected_accounts
from handlers.operations.words.row_words import DETAILED, asks_for_words, check_words
from handlers.web.errors import NotFound
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import UserData
from handlers.work.services import Services
from storage.accounts import SelectedAccounts
from storage.importing.derivation import OWN_ACCOUNT_RULE

RULES_OF_ACCOUNTS = ("category_rule", "merchant_rule", "detailed_rule")
END_TO_END = "endToEndId"
OUT_OF_SIGHT = "out-of-sight"  # shown instead of a rule about an account that the caller may not read
MONTH_NOT_FOUND = "Month not found. It is written YYYY-MM and lies in the history that GET /cashflow lists"


def list_cashflow_transactions(
    services: Services, request: Request, reading: UserData, *, month: str, account_ids: str | None
) -> Answer:
    """List the transactions that add up to the income and expenses of a month, and those that are left out and why
    (decisions 14, 15). Raises NotFound for a month outside the history."""
    today = services.clock.today()
    selected = selected_accounts(reading.accounts, account_ids, request.principal)
    first = _month(month, today)
    currency, rates = money_of(services, reading, selected.accounts, reading.figures)
    try:
        judged = month_transactions(
            reading.figures,
            selection=selected.ids,
            month=first,
            today=today,
            currency=currency,
            rates=rates,
            pending=reading.pending,
        )
    except MonthOutsideHistory:
        raise NotFound(MONTH_NOT_FOUND) from None
    rows = _counted_rows(reading, selected, judged, currency)
    income, expenses = _total(judged, "income"), -_total(judged, "expenses")
    figures = json_shapes.month(
        {"month": first, "income": income, "expenses": expenses, "net": income - expenses}, currency
    )
    return Answer(
        body={**figures, "currency": currency, "transactions": rows},
        headers=unconverted_header(_currencies_without_rate(judged)),
    )


def list_category_transactions(
    services: Services, request: Request, reading: UserData, *, category: str, account_ids: str | None
) -> Answer:
    """List the transactions that add up to a category's amount in the last 30 days, and those that are left out and why
    (decisions 14 to 17)."""
    today = services.clock.today()
    since, until = last_30_days(today)
    selected = selected_accounts(reading.accounts, account_ids, request.principal)
    currency, rates = money_of(services, reading, selected.accounts, reading.figures)
    whole = snapshot(
        balances(selected.accounts), reading.figures, today=today, currency=currency, rates=rates, parts=reading.parts
    )
    judged = category_transactions(
        reading.figures,
        selection=selected.ids,
        category=category,
        today=today,
        currency=currency,
        rates=rates,
        pending=reading.pending,
        parts=reading.parts,
    )
    rows = _counted_rows(reading, selected, judged, currency)
    amount = -_total(judged, "expenses") - _total(judged, "refund")
    return Answer(
        body={
            "category": category,
            "currency": currency,
            "since": json_shapes.day(since),
            "until": json_shapes.day(until),
            "amount": json_shapes.money(amount, currency),
            "percentage": percentage(amount, whole.total_expenses),
            "totalExpenses": json_shapes.money(whole.total_expenses, currency),
            "transactions": rows,
        },
        headers=unconverted_header([*whole.unconverted, *_currencies_without_rate(judged)]),
    )


def explain_transaction(
    _services: Services, request: Request, reading: UserData, *, id: str, include: str | None = None
) -> Answer:
    """Explain which rules gave a booking its type, category and merchant, and which one made it an own transfer. To a
    caller who may not read the other account, the transfer looks like a payment to somebody else. Raises NotFound.

    `include` may also ask for the payer's own reference (END_TO_END), which the booking itself does not show."""
    asked = listed_values("include", include, (*INCLUDED, END_TO_END))
    is_detailed, has_words = DETAILED in asked, asks_for_words(include)
    check_words(request.principal, include, None)
    row = readable_booking(reading.find(id), request.principal)
    row = {**row, "detailed_category": leaf_as_seen(row["detailed_category"], request.principal)}
    if row["transfer_account_id"] is not None and not request.principal.covers(row["transfer_account_id"]):
        # To this caller, an account that they may not read looks like somebody else's
        row = {**row, **dict.fromkeys(("transfer_account_id", "transfer_id", "transfer_rule"))}
        row |= {rule: OUT_OF_SIGHT for rule in RULES_OF_ACCOUNTS if row[rule] == OWN_ACCOUNT_RULE}
    if has_words:
        own = reading.words.own.get(reading.words.owned.get(id, ("", None))[0])
        row |= {"own_category": own and own.name, "own_rule": row["category_rule"] if own else None}
    derived = {
        key: {
            "value": row[column],
            "rule": row[rule],
            "reason": rules_in_words.reason(sentences, row[rule], reading.own_rules),
        }
        for key, column, rule, sentences in (
            ("type", "type", "type_rule", rules_in_words.TYPE),
            ("category", "category", "category_rule", rules_in_words.CATEGORY),
            ("merchantName", "merchant_name", "merchant_rule", rules_in_words.MERCHANT),
            *([(DETAILED, "detailed_category", "detailed_rule", rules_in_words.CATEGORY)] if is_detailed else []),
            *([("ownCategory", "own_category", "own_rule", rules_in_words.CATEGORY)] if has_words else []),
        )
    }
    transfer = {
        "accountId": row["transfer_account_id"],
        "transactionId": row["transfer_id"],
        "rule": row["transfer_rule"],
        "reason": rules_in_words.transfer_reason(row),
    }
    reference = {END_TO_END: row["end_to_end_id"]} if END_TO_END in asked else {}
    return Answer(body={"transactionId": id, **derived, "transfer": transfer, **reference})


def _month(text: str, today: date) -> date:
    try:
        first = month_of(text)
    except InvalidMonth:
        raise NotFound(MONTH_NOT_FOUND) from None
    if first > today:
        raise NotFound(MONTH_NOT_FOUND)
    return first


def _counted_rows(reading: UserData, selected: SelectedAccounts, judged: pl.DataFrame, currency: str) -> list[Json]:
    """The judged rows as JSON (CountedTransaction of the contract), in their order; pending and booked rows are looked
    up apart, because they may share an id."""
    is_pending = judged["left_out"].eq_missing("pending")
    full = {
        waiting: reading.rows_by_id(judged["id"].filter(is_pending == waiting).to_list(), pending=waiting)
        for waiting in (False, True)
    }
    by_id = {account.id: account for account in selected.accounts}
    return [
        json_shapes.counted_transaction(row, full[row["left_out"] == "pending"][row["id"]], by_id, currency)
        for row in judged.iter_rows(named=True)
    ]


def _currencies_without_rate(judged: pl.DataFrame) -> pl.Series:
    return judged.filter(pl.col("left_out") == NO_RATE)["currency"]


def _total(judged: pl.DataFrame, counted_as: str) -> Decimal:
    total = judged.filter(pl.col("counted_as") == counted_as)["counted_amount"].sum()
    assert isinstance(total, Decimal)
    return total
