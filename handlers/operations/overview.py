"""GET /overview: what the first screen of an app shows, in one request: the answers of nine operations, as they
are."""

import inspect
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
from msgspec.structs import replace

from analytics.periods import months_later
from auth.scopes import READ_ACCOUNTS, READ_CASHFLOW
from handlers.operations.cached_answers import CachedOperation
from handlers.web import call
from handlers.web.errors import BadRequest, Forbidden, NotFound
from handlers.web.request import Answer, Operation, Request
from handlers.work.services import Services

MONTHS = 12  # of balances and cash flow, the present one included
LATEST = 8  # transactions
DAYS_AHEAD = 30
SPENDABLE = ("checking", "credit_card", None)  # account types; None: the bank does not say
NOTICES_MAX = 200


def get_overview(services: Services, operations: Mapping[str, Operation], request: Request) -> Answer:
    """Answer with what each of `operations` answers for a first screen, without those that need an account where there
    is none. Raises Forbidden for a caller who lacks a scope of one."""
    for scope in (READ_ACCOUNTS, READ_CASHFLOW):
        if scope not in request.principal.scopes:
            raise Forbidden(f"Insufficient scope. Required: {scope}")
    made: dict[str, bytes] = {}

    def take(member: str, name: str, path: str, **given: Any) -> None:
        try:
            made[member] = _answer(operations[name], request, path, given)
        except (BadRequest, NotFound):
            return  # such as where no account has a balance

    take("profile", "getProfile", "/profile")
    take("accounts", "listAccounts", "/accounts")
    take("notices", "listNotices", "/notices", state="open", limit=NOTICES_MAX)
    accounts = orjson.loads(made["accounts"])["accounts"]
    if accounts:
        ids = ",".join(each["id"] for each in accounts)
        spendable = ",".join(each["id"] for each in accounts if each["accountType"] in SPENDABLE)
        today = services.clock.today()
        since = months_later(today, -MONTHS)
        take("snapshot", "getSnapshot", "/snapshot", account_ids=ids)
        take("balances", "getBalances", "/balances", date_from=since, date_to=today, every="day", per_account=False)
        take("cashflow", "getCashflow", "/cashflow", account_ids=ids, months=MONTHS)
        take("latest", "listTransactions", "/transactions", account_ids=ids, per_page=LATEST, page=1)
        details = {"account_ids": ids, "status": "ongoing", "with_charges": False}
        take("recurring", "listSubscriptionDetails", "/subscriptions/details", **details)
        take("forecast", "getForecast", "/forecast", account_ids=spendable or ids, days=DAYS_AHEAD)
    return Answer(body={name: orjson.Fragment(each) for name, each in made.items()})


def _answer(operation: Operation, request: Request, path: str, given: Mapping[str, Any]) -> bytes:
    """The JSON that an operation answers to the caller of `request`, as if it were asked at `path` with the arguments
    `given`; all others are None."""
    own = operation.function if isinstance(operation, CachedOperation) else operation
    known = inspect.signature(own).parameters.values()
    arguments = {**{each.name: None for each in known if each.kind is each.KEYWORD_ONLY}, **given}
    asked = replace(request, path=request.path.removesuffix("/overview") + path, query=urlencode(given))
    answer: Any = operation(asked, **arguments)
    body = answer.body if isinstance(answer, Answer) else answer
    return body if isinstance(body, bytes) else call.json_bytes(body)
