"""Every operation of the contract as one user would call it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from auth.scopes import SCOPES
from tests.contract.demo_server import Demo

UNKNOWN = {
    "accountIds": "",
    "format": "csv",
    "month": "2026-10",
    "category": "GROCERIES",
    "id": "unknown",
    "syncId": "unknown",
    "subscription": "unknown",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with arguments by the names of the description, and its path with the path's arguments in it."""

    operation_id: str
    method: str
    tag: str
    path: str
    arguments: Mapping[str, str]


def all_calls(demo: Demo, description: Mapping[str, Any], token: str) -> list[Call]:
    """One call of each operation that apps may call, with ids that exist where the user has any."""
    known = known_arguments(demo, token)
    return [
        call(description, path, method, known)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if is_for_apps(path, operation)
    ]


def is_for_apps(path: str, operation: Mapping[str, Any]) -> bool:
    """Whether its scope is one that every app may ask for (others are for the page) and its answer one that ends."""
    if "/webhooks/" in path or operation["operationId"] == "createWebhook":
        return False  # of one grant, and in an order: tests/webhooks
    if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}):
        return False
    return all(scope in SCOPES for asked in operation["security"] for scope in asked["oauth2"])


def call(description: Mapping[str, Any], path: str, method: str, known: Mapping[str, str]) -> Call:
    operation = description["paths"][path][method]
    shared = description["components"]["parameters"]
    parameters = [
        shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in operation.get("parameters", [])
    ]
    needed = [each["name"] for each in parameters if each.get("required") or each["name"] == "accountIds"]
    given = {name: known["subscription" if (path, name) == ("/subscriptions/{id}", "id") else name] for name in needed}
    return Call(
        operation_id=operation["operationId"],
        method=method.upper(),
        tag=operation["tags"][0],
        path=path.format_map(given),
        arguments={name: value for name, value in given.items() if value},
    )


def known_arguments(demo: Demo, token: str) -> Mapping[str, str]:
    """Ids of the user; a user without data, or without access to them, asks for what does not exist."""
    answer = demo.call("GET", "/accounts", token)
    accounts = ",".join(each["id"] for each in answer.body.get("accounts", []))
    if not accounts:
        return UNKNOWN
    chosen = f"?accountIds={accounts}"
    return {
        "accountIds": accounts,
        "format": UNKNOWN["format"],
        "month": demo.read(f"/cashflow{chosen}", token)["cashflow"][0]["month"],
        "category": demo.read(f"/snapshot{chosen}", token)["last30Days"]["topCategories"][0]["category"],
        "id": demo.read(f"/transactions{chosen}", token)["transactions"][0]["id"],
        "syncId": demo.finished_sync(token),
        "subscription": demo.read(f"/subscriptions/details{chosen}", token)["subscriptions"][0]["id"],
    }
