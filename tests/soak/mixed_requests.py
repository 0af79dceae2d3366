"""Mixed requests of several users from many threads: nobody ever sees another's row, and nothing fails.

    python -m tests.soak.mixed_requests --data DIR [--requests 20000] [--threads 8]

starts `bankdata demo` over a fresh data folder and prints what it did.
"""

import argparse
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.service.conftest import Served, account_ids, everything, running

USERS = ("demo", "solo", "globe", "empty")


@dataclass
class Outcome:
    """How often each kind of request got each status, and everything that was wrong."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Owned:
    """What one user may see."""

    accounts: Sequence[str]
    transactions: Sequence[str]
    ibans: frozenset[str]


def soak(served: Served, *, requests: int, threads: int) -> Outcome:
    """Ask at random; every id and IBAN in an answer must be the asker's."""
    owned = {user: _owned(served.client(user)) for user in USERS}
    tokens = {user: served.token(user) for user in USERS}
    outcome, lock = Outcome(), threading.Lock()

    def work(number: int) -> None:
        chance = random.Random(number)
        clients = {user: served.bare(token) for user, token in tokens.items()}
        mine: Outcome = Outcome()
        try:
            for _ in range(requests // threads):
                user = chance.choice(USERS)
                _ask(clients[user], user, owned, chance, mine)
        finally:
            for client in clients.values():
                client.close()
            with lock:
                outcome.answers += mine.answers
                outcome.wrong += mine.wrong

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return outcome


def _owned(client: httpx.Client) -> Owned:
    rows = everything(client)
    accounts = client.get("/accounts").json()["accounts"]
    return Owned(
        accounts=[account["id"] for account in accounts],
        transactions=[row["id"] for row in rows],
        ibans=frozenset(account["iban"] for account in accounts if account["iban"]),
    )


def _ask(client: httpx.Client, user: str, owned: Mapping[str, Owned], chance: random.Random, outcome: Outcome) -> None:
    other = chance.choice([name for name in USERS if name != user and owned[name].accounts])
    ids = ",".join(owned[user].accounts)
    kind = chance.choice(["accounts", "list", "search", "detail", "cashflow", "snapshot", "subscriptions", "sync",
                          "foreign account", "foreign transaction"])  # fmt: skip
    asked: dict[str, Any] = {"accountIds": ids}
    expected = {200}
    if kind == "detail" and not owned[user].transactions:
        kind = "accounts"
    match kind:
        case "accounts":
            path, asked = "/accounts", {}
        case "list":
            path = "/transactions"
            asked |= {"page": chance.randint(1, 20), "perPage": chance.randint(1, 100)}
        case "search":
            path = "/transactions"
            asked |= {"search": chance.choice(["e", "über", "a b", "%", "'"]), "perPage": 20}
        case "detail":
            path, asked = f"/transactions/{chance.choice(owned[user].transactions)}", {}
        case "sync":
            path, asked, expected = "/sync", {}, {202, 404, 429}
        case "foreign account":
            path, asked = "/transactions", {"accountIds": chance.choice(owned[other].accounts)}
            expected = {400}
        case "foreign transaction":
            path, asked = f"/transactions/{chance.choice(owned[other].transactions)}", {}
            expected = {404}
        case _:
            path = f"/{kind}"
    answer = client.post(path) if kind == "sync" else client.get(path, params=asked)
    outcome.answers[kind, answer.status_code] += 1
    if answer.status_code not in expected:
        outcome.wrong.append(f"{kind}: {answer.status_code} {answer.text[:200]}")
        return
    outcome.wrong += [f"{kind}: {user} saw {seen}" for seen in _foreign(answer, user, owned)]


def _foreign(answer: httpx.Response, user: str, owned: Mapping[str, Owned]) -> list[str]:
    if answer.status_code != 200:
        return []
    body = answer.json()
    accounts = {account["id"] for account in body.get("accounts", []) if "id" in account}
    rows = body.get("transactions", []) + ([body] if "bankAccount" in body else [])
    accounts |= {row["bankAccount"]["id"] for row in rows}
    ibans = {row["bankAccount"]["iban"] for row in rows} - {None}
    return sorted((accounts - set(owned[user].accounts)) | (ibans - owned[user].ibans))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=8)
    given = parser.parse_args()
    with running(given.data) as served:
        assert account_ids(served.client("demo"))
        began = time.monotonic()
        outcome = soak(served, requests=given.requests, threads=given.threads)
        seconds = time.monotonic() - began
    for (kind, status), count in sorted(outcome.answers.items()):
        print(f"{count:7} {kind} {status}")
    print(f"{sum(outcome.answers.values())} requests in {seconds:.0f} s, {len(outcome.wrong)} wrong answers")
    for line in outcome.wrong[:20]:
        print(line)
    raise SystemExit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
