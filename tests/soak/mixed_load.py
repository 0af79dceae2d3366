"""Mixed load on one server while syncs, imports and rules go on: no error, no other user's row, no stale answer.

    python -m tests.soak.mixed_load [--minutes 10] [--readers 4]

The server of the product over a fresh store, in this process, so that the store is at hand: each answer that was given
at one state of a user's data is held against what the store, asked without anything in memory, says at that state.
"""

import argparse
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import uvicorn
from msgspec.structs import replace

from analytics.classification.rules import parse_rules
from analytics.records import AccountRecord, TransactionRecord
from auth.scopes import SCOPES
from handlers.names import python_name
from handlers.server import application
from handlers.settings import load
from handlers.work.services import Services, open_services
from storage import accounts, rules
from storage.database import Transaction
from storage.importing import derivation
from tests.cache.conftest import Operations
from tests.cache.from_store import FromStoreReader
from tests.engines import whole
from tests.storage.conftest import Bank, make_bank

USERS = ("eva", "max", "kim", "tom")
SHOPS = ("Rewe", "Bäckerei Müller", "Netflix", "Stadtwerke", "Tankstelle")
FIRST_BOOKINGS = 200
FILTERS: dict[str, Any] = {
    **dict.fromkeys(("account_ids", "category", "date_from", "date_to", "search", "amount_min", "amount_max")),
    **dict.fromkeys(("direction", "categories", "types", "merchant", "counterpart_iban", "words", "flag")),
    "status": "booked",
    "counted": False,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "listAccounts": {},
    "listTransactions": {
        **dict.fromkeys(("account_ids", "category", "date_from", "date_to", "search")),
        "page": 1,
        "per_page": 50,
    },
    "searchTransactions": {**FILTERS, "sort": "-bookingDate", "page": 1, "per_page": 50},
    "sumTransactions": {**FILTERS, "group_by": None, "limit": 50, "compare_with": None},
    "getTransaction": {},
    "explainTransaction": {},
    "getCashflow": {"account_ids": None, "months": 6},
    "getSnapshot": {"account_ids": None},
    "listSubscriptions": {"account_ids": None},
    "listCashflowTransactions": {"account_ids": None},
    "listCategoryTransactions": {"account_ids": None},
}


@dataclass
class Outcome:
    """How many answers there were, how many could be held against the store, and everything that was wrong."""

    answers: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Load:
    """One service with its users, its readers and its writers."""

    def __init__(self, services: Services, port: int) -> None:
        now = services.clock.now()
        self.services = services
        self.url = f"http://127.0.0.1:{port}/api/v1"
        self.banks = {name: make_bank(whole(services.store), now, name) for name in USERS}
        self.slow = Operations(replace(services, reader=FromStoreReader(services.store, services.reader.render)))
        self.outcome, self.is_over, self._lock = Outcome(), threading.Event(), threading.Lock()
        for bank in self.banks.values():
            self.bring(bank, random.Random(bank.user.name), FIRST_BOOKINGS)

    def bring(self, bank: Bank, chance: random.Random, count: int) -> None:
        """An import."""
        name, today = bank.user.name, self.services.clock.today()
        account = AccountRecord(stable_key=f"giro of {name}", currency="EUR", name=f"Account of {name}")
        told = [
            TransactionRecord(
                amount=Decimal(-chance.randrange(1, 9999)).scaleb(-2),
                currency="EUR",
                booking_date=today - timedelta(days=chance.randrange(400)),
                counterpart_name=f"{chance.choice(SHOPS)} of {name}",
                purpose=f"Number {chance.getrandbits(60)}",
            )
            for _ in range(count)
        ]
        bank.bring(told, account=account)

    def change(self, name: str, chance: random.Random) -> str:
        """Something happens to the data of this user."""
        bank, database = self.banks[name], self.services.everybody
        account = accounts.every(database, bank.user.id)[0]
        changes: dict[str, Callable[[], object]] = {
            "import": lambda: self.bring(bank, chance, chance.randrange(1, 20)),
            "rules": lambda: self._rule(bank, chance.choice(["DINING", "SHOPPING", "OTHER"])),
            "name": lambda: database.atomically(
                lambda session: accounts.rename(
                    session, user_id=bank.user.id, account_id=account.id, name=f"{chance.choice(SHOPS)} of {name}"
                )
            ),
            "sync": lambda: self.services.sync_engine.start(bank.connection, cooldown=timedelta(0)),
        }
        kind = chance.choice(list(changes))
        changes[kind]()
        return kind

    def _rule(self, bank: Bank, category: str) -> None:
        line = f'{{"field": "counterpartName", "operator": "contains", "value": "Rewe", "category": "{category}"}}'
        now, database = self.services.clock.now(), self.services.everybody

        def work(session: Transaction) -> None:
            session.hold(bank.user.id)
            rules.keep(session, bank.user.id, parse_rules(line))
            derivation.apply_rules(session, bank.user.id, now=now)

        database.atomically(work)

    def write(self, number: int) -> None:
        """Changes until it is over, a few in a second."""
        chance = random.Random(number)
        while not self.is_over.wait(chance.random()):
            try:
                self.outcome.changes[self.change(chance.choice(USERS), chance)] += 1
            except Exception as error:
                self.outcome.wrong.append(f"a writer failed: {error!r}")

    def read(self, number: int) -> None:
        """Requests until it is over, each held against the store."""
        chance = random.Random(1000 + number)
        with ExitStack() as opened:
            clients = {}
            for name, bank in self.banks.items():
                token = self.services.authorization.issue_token(bank.user.id, frozenset(SCOPES), timedelta(days=1))
                clients[name] = opened.enter_context(
                    httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
                )
            while not self.is_over.is_set():
                name = chance.choice(USERS)
                try:
                    self.ask(clients[name], name, chance)
                except Exception as error:
                    self.outcome.wrong.append(f"a reader failed: {error!r}")

    def ask(self, client: httpx.Client, name: str, chance: random.Random) -> None:
        """One request, and what the store says to it."""
        user_id, database = self.banks[name].user.id, self.services.store
        before = database.state(user_id)
        operation, path, asked = self._drawn(user_id, chance)
        answer = client.get(path, params=asked)
        is_of_one_state = database.state(user_id) == before
        with self._lock:
            self.outcome.answers[f"{operation} {answer.status_code}"] += 1
        if answer.status_code not in (200, 404) and is_of_one_state:
            self.outcome.wrong.append(f"{operation}: {answer.status_code} {answer.text[:200]}")
        if any(f" of {other}" in answer.text for other in USERS if other != name):
            self.outcome.wrong.append(f"{operation}: {name} was shown somebody else's data")
        named = {python_name(key): value for key, value in asked.items()} | (
            {"id": path.split("/")[2]} if operation in ("getTransaction", "explainTransaction") else {}
        )
        if operation == "listCashflowTransactions":
            named["month"] = path.split("/")[2]
        if operation == "listCategoryTransactions":
            named["category"] = path.split("/")[3]
        status, body, _ = self.slow.ask(operation, user_id, query=urlencode(asked), **{**DEFAULTS[operation], **named})
        if is_of_one_state and database.state(user_id) == before:
            with self._lock:
                self.outcome.compared += 1
            if status != answer.status_code or (status == 200 and body != answer.content):
                self.outcome.wrong.append(
                    f"{operation} {path} {asked} of {name} at state {before} is not the store's:"
                    f" {_difference(answer.content, body)}"
                )

    def _drawn(self, user_id: str, chance: random.Random) -> tuple[str, str, dict[str, Any]]:
        today = self.services.clock.today()
        operation = chance.choice([*DEFAULTS, "listTransactions", "listTransactions"])
        owned = [account.id for account in accounts.of_user(self.services.everybody, user_id)]
        ids = {"accountIds": ",".join(chance.sample(owned, chance.randrange(1, len(owned) + 1)))}
        if len(owned) == 1 and chance.random() < 0.5:
            ids = {}
        asked: dict[str, Any] = ids if "account_ids" in DEFAULTS[operation] else {}
        if operation in ("getTransaction", "explainTransaction"):
            rows = self.services.everybody.rows("SELECT id FROM transactions WHERE user_id = $1 LIMIT 50", user_id)
            path = f"/transactions/{chance.choice(rows)['id']}"
            return operation, path + ("/explanation" if operation == "explainTransaction" else ""), asked
        if operation == "listTransactions":
            asked = ids | {"page": chance.randrange(1, 9), "perPage": chance.choice([5, 50, 100])}
        if operation in ("listTransactions", "searchTransactions", "sumTransactions"):
            if chance.random() < 0.3:
                asked["search"] = chance.choice(["rewe", "müller", "number 1", "e"])
            if chance.random() < 0.3:
                asked["category"] = chance.choice(["GROCERIES", "DINING", "OTHER"])
        paths = {
            "listAccounts": "/accounts",
            "listTransactions": "/transactions",
            "searchTransactions": "/transactions/search",
            "sumTransactions": "/transactions/totals",
            "getCashflow": "/cashflow",
            "getSnapshot": "/snapshot",
            "listSubscriptions": "/subscriptions",
            "listCashflowTransactions": f"/cashflow/{today:%Y-%m}/transactions",
            "listCategoryTransactions": "/snapshot/categories/GROCERIES/transactions",
        }
        return operation, paths[operation], asked


def _difference(given: bytes, expected: bytes) -> str:
    """Where the two part, with what stands there."""
    at = next((at for at, pair in enumerate(zip(given, expected, strict=False)) if pair[0] != pair[1]), 0)
    return f"{given[max(0, at - 150) : at + 100]!r} instead of {expected[max(0, at - 150) : at + 100]!r}"


def soak(*, minutes: float, readers: int) -> Outcome:
    """Run it."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        services = open_services(load({"BANKDATA_RATE_LIMIT": "off"}, data_dir=Path(folder)))
        given = Load(services, listening.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(application(services), log_level="error", access_log=False))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        while not server.started:
            time.sleep(0.01)
        work = [threading.Thread(target=given.read, args=(number,)) for number in range(readers)]
        work += [threading.Thread(target=given.write, args=(number,)) for number in range(2)]
        for thread in work:
            thread.start()
        given.is_over.wait(minutes * 60)
        given.is_over.set()
        for thread in work:
            thread.join()
        server.should_exit = True
        serving.join()
    return given.outcome


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--readers", type=int, default=4)
    options = parser.parse_args()
    outcome = soak(minutes=options.minutes, readers=options.readers)
    for kind, count in sorted(outcome.answers.items()):
        print(f"{count:8} {kind}")
    print(f"{outcome.compared} of {outcome.answers.total()} answers were held against the store at their state, while")
    print(", ".join(f"{count} x {kind}" for kind, count in sorted(outcome.changes.items())), "went on.")
    for wrong in outcome.wrong[:20]:
        print("WRONG:", wrong)
    sys.exit(f"{len(outcome.wrong)} wrong" if outcome.wrong else 0)


if __name__ == "__main__":
    main()
