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
OF_LANGUAGE = ("content-language", "vary")  # headers of an answer whose sentences are translated


def get_overview(services: Services, operations: Mapping[str, Operation], request: Request) -> Answer:
    """Answer with what each of `operations` answers for a first screen, without those that need an account where there
    is none. Raises Forbidden for a caller who lacks a scope of one."""
    for scope in (READ_ACCOUNTS, READ_CASHFLOW):
        if scope not in request.principal.scopes:
            raise Forbidden("Insufficient scope. Required: {wanted}", wanted=scope)
    made: dict[str, bytes] = {}
    headers: dict[str, str] = {}  # of its sentences

    def take(member: str, name: str, path: str, **given: Any) -> None:
        try:
            answer = answer_of(operations[name], request, path, given)
        except (BadRequest, NotFound):
            return  # such as where no account has a balance
        made[member] = answer.body
        headers.update({name: value for name, value in answer.headers.items() if name in OF_LANGUAGE})

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
    return Answer(body={name: orjson.Fragment(each) for name, each in made.items()}, headers=headers)


def answer_of(operation: Operation, request: Request, path: str, given: Mapping[str, Any]) -> Answer:
    """What an operation answers, as JSON, to the caller of `request`, as if it were asked at `path` with the arguments
    `given`; all others are None."""
    own = operation.function if isinstance(operation, CachedOperation) else operation
    known = inspect.signature(own).parameters.values()
    arguments = {**{each.name: None for each in known if each.kind is each.KEYWORD_ONLY}, **given}
    asked = replace(request, path=request.path.removesuffix("/overview") + path, query=urlencode(given))
    answer: Any = operation(asked, **arguments)
    answer = answer if isinstance(answer, Answer) else Answer(body=answer)
    return answer if isinstance(answer.body, bytes) else call.in_language(answer, request.language)
