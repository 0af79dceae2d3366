"""A running demo, its description, and for every user the arguments of every operation."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.demo_server import Demo, running_demo

ROOT = Path(__file__).parents[2]
UNKNOWN = {
    "accountIds": "",
    "month": "2026-10",
    "category": "GROCERIES",
    "id": "unknown",
    "syncId": "unknown",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with arguments by the names of the description, and its path with the path's arguments in it."""

    operation_id: str
    method: str
    tag: str
    path: str
    arguments: Mapping[str, str]


CallsOf = Callable[[str], list[Call]]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(tmp_path_factory.mktemp("demo"), RATE_LIMIT="off", SYNC_COOLDOWN_SECONDS="0") as running:
        yield running


@pytest.fixture(scope="session")
def description() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "openapi.json").read_bytes())
    return document


@pytest.fixture(scope="session")
def calls_of(demo: Demo, description: Mapping[str, Any]) -> CallsOf:
    """Every operation as one user would call it: with ids that exist where the user has any."""

    def calls(user: str) -> list[Call]:
        known = known_arguments(demo, demo.token(user))
        return [
            call(description, path, method, known)
            for path, methods in description["paths"].items()
            for method in methods
        ]

    return calls


def call(description: Mapping[str, Any], path: str, method: str, known: Mapping[str, str]) -> Call:
    operation = description["paths"][path][method]
    shared = description["components"]["parameters"]
    parameters = [
        shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in operation.get("parameters", [])
    ]
    names = {each["name"]: each["in"] for each in parameters}
    given = {
        name: known["subscription" if (path, name) == ("/subscriptions/{id}", "id") else name]
        for name, where in names.items()
        if where == "path" or name == "accountIds"
    }
    return Call(
        operation_id=operation["operationId"],
        method=method.upper(),
        tag=operation["tags"][0],
        path=path.format_map(given),
        arguments={name: value for name, value in given.items() if value},
    )


def known_arguments(demo: Demo, token: str) -> dict[str, str]:
    """Ids of the user; a user without data, or without access to them, asks for what does not exist."""
    answer = demo.call("GET", "/accounts", token)
    accounts = ",".join(each["id"] for each in answer.body.get("accounts", []))
    if not accounts:
        return {**UNKNOWN, "subscription": "unknown"}
    chosen = f"?accountIds={accounts}"
    return {
        "accountIds": accounts,
        "month": demo.read(f"/cashflow{chosen}", token)["cashflow"][0]["month"],
        "category": demo.read(f"/snapshot{chosen}", token)["last30Days"]["topCategories"][0]["category"],
        "id": demo.read(f"/transactions{chosen}", token)["transactions"][0]["id"],
        "syncId": demo.finished_sync(token),
        "subscription": demo.read(f"/subscriptions/details{chosen}", token)["subscriptions"][0]["id"],
    }
