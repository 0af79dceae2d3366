"""Exchanges with a provider in a form that can be sent with a report: every value is masked, its shape stays."""

import json
import re
from typing import Any

from connectors.outgoing_http import Exchange

BODY_CHARACTERS_MAX = 20_000
WORDS = frozenset(
    {"code", "error", "status", "currency", "credit_debit_indicator", "balance_type", "cash_account_type", "psu_type"}
)
"""Members whose values are fixed words of the protocol and reveal nothing about anybody."""
PATH_WORDS = frozenset(
    [
        "simplefin",
        "claim",
        "accounts",
        "aspsps",
        "auth",
        "sessions",
        "balances",
        "transactions",
        "details",
        "api",
        "v1",
        "v2",
        "oauth",
        "token",
        "users",
        "webForms",
        "bankConnectionImport",
        "bankConnectionUpdate",
        "tasks",
        "backgroundUpdate",
        "bankConnections",
        "pendingTransactions",
    ]
)
"""The fixed words in paths, besides ids and tokens."""
PLAIN_WORD = re.compile(r"[A-Za-z_.-]{1,40}")
LETTER, DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")


def as_text(exchange: Exchange) -> str:
    """One exchange in a few lines. In the values of path, parameters and body, which may contain tokens and account
    numbers, letters become x and digits 0; only fixed words of the protocol, true, false and null stay, as do host,
    content type and names. The body is cut at 20,000 characters."""
    request, answer = exchange.request, exchange.answer
    parameters = "&".join(f"{name}={mask(value)}" for name, value in (request.parameters or {}).items())
    path = "/".join(part if part in PATH_WORDS else mask(part) for part in request.path.split("/"))
    asked = f"{request.method} {exchange.host}{path}" + (f"?{parameters}" if parameters else "")
    if answer is None:
        return f"{asked}\n  no answer\n"
    return f"{asked}\n  {answer.status} {answer.content_type}\n  {_body(answer.body)[:BODY_CHARACTERS_MAX]}\n"


def mask(text: str) -> str:
    """The text with x for every letter and 0 for every digit, so that only its shape is left."""
    return DIGIT.sub("0", LETTER.sub("x", text))


def _body(body: bytes) -> str:
    try:
        return json.dumps(_shape(json.loads(body), ""), ensure_ascii=False)
    except (ValueError, RecursionError):
        return mask(body.decode("utf-8", "replace"))


def _shape(value: Any, name: str) -> Any:
    match value:
        case dict():
            return {key if PLAIN_WORD.fullmatch(key) else mask(key): _shape(each, key) for key, each in value.items()}
        case list():
            return [_shape(each, name) for each in value]
        case str():
            return value if name in WORDS and PLAIN_WORD.fullmatch(value) else mask(value)
        case bool() | None:
            return value
        case _:
            return mask(str(value))
