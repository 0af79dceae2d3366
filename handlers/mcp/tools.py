"""The tools: each builds its answer from the operations that handlers/mcp/tools.json names."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from analytics.classification.facts import CATEGORIES
from handlers import json_shapes
from handlers.mcp import forecast_shapes, recurring_shapes
from handlers.mcp.annotating import annotate_transaction
from handlers.mcp.catalogue import WrongArgument
from handlers.mcp.masked_numbers import masked_field, whole_field
from handlers.mcp.notices import list_notices, waiting
from handlers.mcp.tool_call import ToolCall, account_texts, day, ref_of
from handlers.mcp.untrusted_texts import DETAIL_LENGTH_MAX, NamedTexts, bank_text, names_alike
from handlers.names import Json
from handlers.operations.rules_in_words import BY_USER
from handlers.web.errors import NotFound

UNKNOWN_MONTH = "key: must be a month as YYYY-MM, from the first booking to this month."
UNKNOWN_PAYMENT = (
    "key: must be the id of a recurring payment. list_recurring_payments lists them; ask with the same accountIds."
)
STREAMS_MAX = 60
SHORT_LIST = 10  # of so few recurring payments more is said
HISTORY_MAX = 24  # prices and missed charges of one recurring payment
ASK_AGAIN_SECONDS = 1.0
FINAL = ("completed", "failed")
NAMES_LENGTH_MAX = 200
NAMES = (
    "counterpartBic",
    "counterpartBankName",
    "counterpartMandateReference",
    "counterpartCreditorId",
    "counterpartDebitorId",
    "bankTransactionCode",
    "sepaPurposeCode",
)
HELD = ("date", "balance", "ownBalance", "ownCurrency")
FIGURES = ("count", "expenses", "refunds", "income")
WRITTEN = frozenset({"merchant", "ownCategory", "tag"})  # keys of groups that anybody may have written
MERCHANTS_MAX = 1000  # looked through for those called alike


async def get_overview(call: ToolCall, includeIban: bool) -> Json:
    """All accounts that the caller may read with balances, their sum, the last 30 days' expenses, and what waits."""
    shows_numbers = includeIban and call.shows_numbers
    _selected, currency = await call.select(None)
    listed = (await call.ask("listAccounts"))["accounts"]
    ids = ",".join(account["id"] for account in listed)
    snapshot = await call.ask("getSnapshot", accountIds=ids or None)
    # A grant of figures only may ask for no other days
    now = {"dateFrom": call.today, "dateTo": call.today, "every": "month"}
    balances = await call.ask("getBalances", accountIds=ids or None, **now)
    days = {each["accountId"]: each["date"] for each in balances["accounts"]}
    return {
        "today": call.today,
        "currency": currency,
        "totalBalance": snapshot["totalBalance"],
        "unconvertedCurrencies": call.unconverted_currencies,
        "accounts": await call.shape(
            lambda: [
                _account(call, account, days.get(account["id"]), shows_numbers=shows_numbers) for account in listed
            ]
        ),
        "last30Days": snapshot["last30Days"],
        "waiting": await waiting(call),
    }


async def search_transactions(
    call: ToolCall, accountIds: Sequence[str] | None, sort: str, page: int, perPage: int, **filters: Any
) -> Json:
    """One page of the transactions that match the filters, in the order `sort`, and the sums of all that match."""
    counted = "true" if filters["counted"] else "false"
    filters |= {"accountIds": await call.account_ids(accountIds), "counted": counted}
    matches = await call.ask("searchTransactions", sort=sort, page=page, perPage=perPage, **filters)
    totals = await call.ask("sumTransactions", **filters)
    more = () if filters["status"] == "booked" else ("status",)
    rows = await call.rows(matches["transactions"], *more)
    return {
        "today": call.today,
        **(await _nearest(call, filters, totals["count"])),
        "totals": totals,
        "unconvertedCurrencies": call.unconverted_currencies,
        "accounts": call.accounts,
        "transactions": rows,
        "pagination": matches["pagination"],
    }


async def summarize_transactions(
    call: ToolCall,
    accountIds: Sequence[str] | None,
    groupBy: str | None,
    compareWith: str | None,
    sort: str,
    limit: int,
    **filters: Any,
) -> Json:
    """The sums of all transactions that match the filters, and with `groupBy` also of each group, as a table."""
    filters["accountIds"] = await call.account_ids(accountIds)
    if compareWith is not None and filters["dateFrom"] is not None:
        filters["dateTo"] = filters["dateTo"] or call.today
    grouped = {"groupBy": groupBy, "compareWith": compareWith, "sort": sort, "limit": limit}
    sums = await call.ask("sumTransactions", **grouped, **filters)
    groups = sums.pop("groups", None)
    nearest = await _nearest(call, filters, sums["count"])
    answer = {"today": call.today, **nearest, **sums, "unconvertedCurrencies": call.unconverted_currencies}
    if groups is None:
        return answer
    listed = (await call.ask("listAccounts"))["accounts"] if any("account" in each["keys"] for each in groups) else []
    by_id = {account["id"]: account for account in listed}
    table = await call.shape(lambda: _table(call, groups, by_id))
    return {**answer, "groups": table, "accounts": call.accounts}


async def get_balances(
    call: ToolCall, accountIds: Sequence[str] | None, dateFrom: str | None, dateTo: str | None, every: str
) -> Json:
    """The accounts' balances on the last day of the period, and the sum of all over time."""
    ids = await call.account_ids(accountIds)
    balances = await call.ask("getBalances", accountIds=ids, dateFrom=dateFrom, dateTo=dateTo, every=every)
    return {
        "today": call.today,
        "currency": balances["currency"],
        "accounts": [
            {**{name: each[name] for name in HELD}, "ref": ref_of(each["accountId"])} for each in balances["accounts"]
        ],
        "leftOut": _left_out(balances),
        "points": [[each["date"], each["balance"]] for each in balances["points"]],
    }


async def get_forecast(call: ToolCall, accountIds: Sequence[str] | None, days: int, price: str | None = None) -> Json:
    """The balances that the accounts are expected to have in so many days, the payments due until then, and whether a
    price can be paid besides, from what can be spent where no account is named."""
    selected, currency = await call.select(accountIds)
    ids = selected.ids
    if price is not None and accountIds is None:
        ids = [each.id for each in selected.accounts if each.kind in forecast_shapes.SPENDABLE] or ids
    forecast = await call.ask("getForecast", accountIds=",".join(ids) or None, days=days)
    return {
        "today": call.today,
        "until": forecast["until"],
        **forecast_shapes.afford(price, forecast, currency),
        "currencies": await call.shape(lambda: [forecast_shapes.of_currency(each) for each in forecast["currencies"]]),
        "accounts": [forecast_shapes.of_account(each) for each in forecast["accounts"]],
        "leftOut": _left_out(forecast),
    }


async def get_cashflow(call: ToolCall, accountIds: Sequence[str] | None, months: int) -> Json:
    """Income and expenses of the last `months` months, this one included, by month; and what was spent of the targets
    that hold, on all accounts that the caller may read."""
    selected, currency = await call.select(accountIds)
    cashflow = await call.ask("getCashflow", accountIds=",".join(selected.ids) or None, months=months)
    held = (await call.ask("listTargets"))["targets"]
    targets = [{name: value for name, value in each.items() if value is not None} for each in held]
    return {
        "today": call.today,
        "currency": currency,
        "unconvertedCurrencies": call.unconverted_currencies,
        "cashflow": cashflow["cashflow"],
        **({"targets": targets} if targets else {}),
    }


async def list_recurring_payments(
    call: ToolCall, accountIds: Sequence[str] | None, status: str, direction: str
) -> Json:
    """The first 60 recurring payments, the highest yearly cost first, without their charges; how many there are, and
    what all of them come to in a year, by currency and direction."""
    ids = await call.account_ids(accountIds)
    asked = {"accountIds": ids, "status": status, "direction": direction}
    payments = (await call.ask("listSubscriptionDetails", **asked))["subscriptions"]
    is_short = len(payments) <= SHORT_LIST
    entries = await call.shape(
        lambda: [recurring_shapes.list_entry(each, is_short=is_short) for each in payments[:STREAMS_MAX]]
    )
    return {
        "today": call.today,
        "total": len(payments),
        **recurring_shapes.sums_of(payments),
        "subscriptions": entries,
    }


async def _nearest(call: ToolCall, filters: Mapping[str, Any], count: int) -> Json:
    """Where no booking is with the merchant that was asked for: the merchants of these accounts called most like it, as
    strangers' texts."""
    if count > 0 or not filters.get("merchant"):
        return {}
    asked = {"accountIds": filters["accountIds"], "groupBy": "merchant", "limit": MERCHANTS_MAX}
    groups = (await call.ask("sumTransactions", **asked))["groups"]
    known = [group["keys"]["merchant"] for group in groups if group["keys"]["merchant"]]
    texts = await call.shape(lambda: names_alike(filters["merchant"], known))
    return {"nearest": texts} if texts["bank_text"] else {}


async def explain_figure(
    call: ToolCall, kind: str, key: str, accountIds: Sequence[str] | None, page: int, perPage: int
) -> Json:
    """A figure (a month, a category or a recurring payment, by `key`), and one page of the bookings behind it. Raises
    WrongArgument for an unknown key."""
    ids = await call.account_ids(accountIds)
    shown = slice((page - 1) * perPage, page * perPage)
    answer: Json = {"today": call.today, "kind": kind, "key": key}
    if kind == "recurring_payment":
        payment = await _ask_or_refuse(call, UNKNOWN_PAYMENT, "getSubscription", id=key, accountIds=ids)
        charges = payment["charges"]
        answer["figure"] = {
            **await call.shape(partial(recurring_shapes.stream_of, payment)),
            "cadence": payment["cadence"],
            "priceHistory": [
                {**price, "since": day(price["since"]), "until": day(price["until"])}
                for price in payment["priceHistory"][-HISTORY_MAX:]
            ],
            "missedCharges": [day(missed) for missed in payment["missedCharges"][-HISTORY_MAX:]],
        }
        answer["charges"] = [recurring_shapes.charge_of(charge) for charge in charges[shown]]
        total = len(charges)
    else:
        if kind == "month":
            figure = await _ask_or_refuse(call, UNKNOWN_MONTH, "listCashflowTransactions", month=key, accountIds=ids)
        else:
            key = key.upper()
            if key not in CATEGORIES:
                raise WrongArgument(f"key: must be one of {', '.join(CATEGORIES)}.")
            figure = await call.ask("listCategoryTransactions", category=key, accountIds=ids)
        rows = figure.pop("transactions")
        answer["figure"] = {name: day(value) if name in ("since", "until") else value for name, value in figure.items()}
        answer["unconvertedCurrencies"] = call.unconverted_currencies
        answer["transactions"] = await call.rows(rows[shown], "countedAs", "leftOut", "countedAmount")
        total = len(rows)
    pagination = json_shapes.pagination(page=page, per_page=perPage, total=total)
    return {**answer, "accounts": call.accounts, "pagination": pagination}


async def _ask_or_refuse(call: ToolCall, unknown: str, operation_id: str, **arguments: Any) -> Json:
    """The operation's answer; where it finds nothing (NotFound), raises WrongArgument with the sentence `unknown`."""
    try:
        return await call.ask(operation_id, **arguments)
    except NotFound as error:
        raise WrongArgument(unknown) from error


async def get_transaction(call: ToolCall, id: str, includeIban: bool) -> Json:
    """One transaction with all its details, and the reasons for its type, category and merchant."""
    booking_id = await call.booking_id(id)
    row = await call.ask("getTransaction", id=booking_id)
    why = await call.ask("explainTransaction", id=booking_id)
    shows_numbers = includeIban and call.shows_numbers
    remarkable = (await call.relations([row])).flags(row)
    return await call.shape(lambda: _detail(call, row, why, remarkable, shows_numbers=shows_numbers))


def _detail(call: ToolCall, row: Json, why: Json, remarkable: frozenset[str], *, shows_numbers: bool) -> Json:
    texts = {name: row.get(name) for name in ("purpose", "counterpartName", "merchantName")}
    fenced, flags = bank_text(
        texts,
        limit=DETAIL_LENGTH_MAX,
        shows_numbers=shows_numbers,
        withholds=False,
        more_flags=remarkable,
    )
    names, more = bank_text(
        {name: row.get(name) for name in NAMES}, limit=NAMES_LENGTH_MAX, shows_numbers=shows_numbers, withholds=False
    )
    iban = row["counterpartIban"]
    return {
        "today": call.today,
        "transaction": {
            "id": row["id"],
            "bookingDate": day(row["bookingDate"]),
            "valueDate": day(row["valueDate"]),
            "amount": row["amount"],
            "currency": row["currency"],
            "account": call.mention(row["bankAccount"]),
            "category": row["category"],
            "type": row["type"],
            "counterpartIban": iban and (whole_field(iban) if shows_numbers else masked_field(iban)),
            **{name: row[name] for name in ("isPotentialDuplicate", "isAdjustingEntry", "createdAt")},
            "flags": sorted({*flags, *more}),
            "bank_text": {**fenced, **names},
        },
        "accounts": call.accounts,
        "explanation": {
            **{
                name: _derivation(why[name], is_text=name == "merchantName", shows_numbers=shows_numbers)
                for name in ("type", "category", "merchantName")
            },
            "transfer": why["transfer"],
        },
    }


async def refresh_bank_data(
    call: ToolCall, accountIds: Sequence[str] | None, syncIds: Sequence[str] | None, waitSeconds: int
) -> Json:
    """Start syncs of the named accounts' banks, or of all, or look at the jobs `syncIds`, and wait up to `waitSeconds`
    until all have ended; returns whether they have, the state of each, and the connections that were skipped."""
    loop = asyncio.get_running_loop()
    until = loop.time() + waitSeconds
    skipped: Json = {}
    if syncIds is None:
        ids = await call.account_ids(accountIds) if accountIds is not None else None
        started = await call.ask("startSync", accountIds=ids)
        jobs, skipped = started["syncJobs"], {"skippedConnections": started["skippedConnections"]}
    else:
        jobs = [await call.ask("getSyncJob", syncId=each) for each in dict.fromkeys(syncIds)]
    while not _is_done(jobs) and loop.time() < until:
        jobs = [each if _is_done([each]) else await call.ask("getSyncJob", syncId=each["syncId"]) for each in jobs]
        if not _is_done(jobs):
            await asyncio.sleep(min(ASK_AGAIN_SECONDS, max(0.0, until - loop.time())))
    states = await call.shape(lambda: [_job(each) for each in jobs])
    return {"done": _is_done(jobs), **skipped, "jobs": states}


TOOLS: Mapping[str, Callable[..., Awaitable[Json]]] = {
    function.__name__: function
    for function in (
        get_overview,
        search_transactions,
        summarize_transactions,
        get_cashflow,
        get_balances,
        get_forecast,
        list_recurring_payments,
        list_notices,
        explain_figure,
        get_transaction,
        refresh_bank_data,
        annotate_transaction,
    )
}
"""The tools by name: each takes the call (`ToolCall`) and the arguments that handlers/mcp/tools.json describes."""


def _account(call: ToolCall, account: Json, balance_date: str | None, *, shows_numbers: bool) -> Json:
    texts, flags = bank_text(account_texts(account))
    shown = whole_field if shows_numbers else masked_field
    return {
        "ref": call.mention(account),
        "id": account["id"],
        "accountType": account["accountType"],
        "balance": account["balance"],
        "balanceDate": balance_date,
        "currency": account["currency"],
        "iban": shown(account["iban"]) if account["iban"] else None,
        "status": account["bankConnection"]["status"],
        "lastSyncedAt": account["lastSyncedAt"],
        "flags": flags,
        "bank_text": texts,
    }


def _left_out(answer: Json) -> list[Json]:
    return [{"reason": each["reason"], "ref": ref_of(each["accountId"])} for each in answer["leftOut"]]


def _table(call: ToolCall, groups: Sequence[Json], by_id: Mapping[str, Json]) -> Json:
    """Groups as rows under columns; a merchant is a stranger's text, as are tags and own categories, which files may
    bring, so their cells hold keys into bank_text. The groups' accounts are added to those of the call."""
    keys = [*groups[0]["keys"]] if groups else []
    names = NamedTexts("m")

    def cell(key: str, value: str | None) -> str | None:
        if key in WRITTEN:
            return names.add(value)
        return call.mention(by_id[value]) if key == "account" and value is not None else value

    def figures(group: Json) -> list[Any]:
        return [group[name] for name in FIGURES] + [group["compared"][name] for name in FIGURES if "compared" in group]

    rows = [[*(cell(key, value) for key, value in group["keys"].items()), *figures(group)] for group in groups]
    compared = [f"compared_{name}" for name in FIGURES if groups and "compared" in groups[0]]
    return {"columns": [*keys, *FIGURES, *compared], "rows": rows, "flags": names.flags, "bank_text": names.texts}


def _derivation(why: Json, *, is_text: bool, shows_numbers: bool) -> Json:
    """The contract's Derivation, with strangers' texts fenced: its value if `is_text`, as with a merchant's name, and
    the reason of a user's own rule, which may quote one and is replaced by a fixed sentence."""
    is_users = (why["rule"] or "").startswith(f"{BY_USER}:")
    rule, reason = (BY_USER, "A rule of the user's own says so.") if is_users else (why["rule"], why["reason"])
    foreign = {"value": why["value"] if is_text else None, "reason": why["reason"] if is_users else None}
    texts, _flags = bank_text(foreign, limit=NAMES_LENGTH_MAX, shows_numbers=shows_numbers, withholds=False)
    value = {} if is_text else {"value": why["value"]}
    return {**value, "rule": rule, "reason": reason, **({"bank_text": texts} if texts or is_text else {})}


def _is_done(jobs: Sequence[Json]) -> bool:
    return all(each["syncId"] is None or each["status"] in FINAL for each in jobs)


def _job(job: Json) -> Json:
    state: Json = {name: job[name] for name in ("syncId", "status", "newTransactions") if name in job}
    texts, _flags = bank_text({"error": job.get("error")})
    return {**state, **({"bank_text": texts} if texts else {})}
