"""The same rows by Datasette: canned queries, one per operation, behind the paths of the interface.

    python tests/benchmarks/peers/datasette_service.py sqlite FOLDER PORT TODAY

Its answers are its own: rows as JSON objects, not the shapes of the contract. A token costs a look into a dictionary;
the user is put into the query's parameters there.
"""

import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from analytics.letters import fold
from analytics.periods import last_30_days, months_back
from tests.benchmarks.peers.fill import SQLITE_FILE

ROWS = """
SELECT t.*, a.iban, a.name, a.bank_name, (SELECT count(*) FROM transactions t WHERE {where}) AS total
FROM transactions t JOIN accounts a ON a.id = t.account_id WHERE {where}
ORDER BY t.booking_date DESC, t.id DESC LIMIT :limit OFFSET :offset
"""
DAYS = "t.user_id = :user AND t.booking_date >= :since AND t.booking_date <= :until"
QUERIES = {
    "page": ROWS.format(where=DAYS),
    "category": ROWS.format(where=f"{DAYS} AND t.category = :category"),
    "search": ROWS.format(where=f"{DAYS} AND instr(t.search_text, :search) > 0"),
    "transaction": "SELECT t.*, a.iban, a.name, a.bank_name FROM transactions t JOIN accounts a ON a.id = t.account_id"
    " WHERE t.user_id = :user AND t.id = :id",
    "accounts": "SELECT * FROM accounts WHERE user_id = :user",
    "cashflow": "SELECT substr(booking_date, 1, 7) AS month, round(sum(max(amount, 0)), 2) AS income,"
    " round(-sum(min(amount, 0)), 2) AS expenses, round(sum(amount), 2) AS net FROM transactions t"
    f" WHERE {DAYS} GROUP BY 1",
    "snapshot": "SELECT category, round(-sum(amount), 2) AS amount,"
    " (SELECT sum(balance) FROM accounts WHERE user_id = :user) AS balance FROM transactions t"
    f" WHERE {DAYS} AND NOT (amount > 0 AND category = 'SALARY') GROUP BY category HAVING sum(amount) < 0"
    " ORDER BY 2 DESC LIMIT 5",
    "subscriptions": "SELECT found FROM subscriptions WHERE user_id = :user",
}
EVER = {"since": "0001-01-01", "until": "9999-12-31"}


def query(path: str, asked: dict[str, str], today: date) -> tuple[str, dict[str, Any]]:
    """Which canned query answers a path of the interface, and with which parameters."""
    kind, _, rest = path.removeprefix("/api/v1/").partition("/")
    if kind == "transactions" and rest:
        return "transaction", {"id": rest}
    if kind == "transactions":
        limit = int(asked.get("perPage", "50"))
        given = {
            "since": asked.get("dateFrom", EVER["since"]),
            "until": asked.get("dateTo", EVER["until"]),
            "limit": limit,
            "offset": (int(asked.get("page", "1")) - 1) * limit,
        }
        if "category" in asked:
            return "category", {**given, "category": asked["category"]}
        if "search" in asked:
            return "search", {**given, "search": fold(asked["search"])}
        return "page", given
    if kind == "cashflow":
        return kind, {"since": months_back(today, 6)[0].isoformat(), "until": f"{today:%Y-%m}-31"}
    if kind == "snapshot":
        since, until = last_30_days(today)
        return kind, {"since": since.isoformat(), "until": until.isoformat()}
    return kind, {}


class Paths:
    """The plugin that leads from the interface's paths and tokens to queries."""

    def __init__(self, people: dict[str, str], today: date) -> None:
        self.__name__ = "paths"  # by which Datasette knows a plugin
        self._people = people
        self._today = today

    @hookimpl
    def asgi_wrapper(self, datasette: Datasette) -> Callable[[Any], Any]:  # noqa: ARG002 - pluggy's names
        def wrapped(app: Any) -> Any:
            async def led(scope: Any, receive: Any, send: Any) -> None:
                if scope["type"] == "http":
                    token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
                    name, parameters = query(
                        scope["path"], dict(parse_qsl(scope["query_string"].decode())), self._today
                    )
                    parameters |= {"user": self._people.get(token, ""), "_shape": "array"}
                    path = f"/peers/{name}.json".encode()
                    scope = {
                        **scope,
                        "path": path.decode(),
                        "raw_path": path,
                        "query_string": urlencode(parameters).encode(),
                    }
                await app(scope, receive, send)

            return led

        return wrapped


def main() -> None:
    _, folder, port, today = sys.argv[1:]
    people = json.loads((Path(folder) / "people.json").read_text())
    pm.register(Paths(people, date.fromisoformat(today)))
    datasette = Datasette(
        [],
        immutables=[str(Path(folder) / SQLITE_FILE)],
        settings={"cache_size_kb": 262_144, "num_sql_threads": 3, "sql_time_limit_ms": 60_000},
        metadata={"databases": {"peers": {"queries": {name: {"sql": sql} for name, sql in QUERIES.items()}}}},
    )
    uvicorn.run(datasette.app(), port=int(port), log_level="error", access_log=False, loop="uvloop", http="httptools")


if __name__ == "__main__":
    main()
