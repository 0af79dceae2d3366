"""What two apps of others make of this service: run by the Python that has them, prints JSON.

python_apps.py simplefin4py|goetta claim TOKEN
python_apps.py simplefin4py|goetta read URL [FOLDER]
"""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any


def simplefin4py(action: str, argument: str, _folder: str = "") -> Any:
    """The library of Home Assistant."""
    from simplefin4py import SimpleFin

    if action == "claim":
        return asyncio.run(SimpleFin.claim_setup_token(argument))
    data = asyncio.run(SimpleFin(argument).fetch_data())
    return {
        "errors": data.errors,
        "accounts": {
            account.id: [str(account.balance), account.name, account.org.name, len(account.transactions)]
            for account in data.accounts
        },
    }


def goetta(action: str, argument: str, folder: str = "") -> Any:
    """An app with a store of its own, which it fills by what is new."""
    from goetta_finance.collector import collect
    from goetta_finance.simplefin import SimpleFinClient
    from goetta_finance.store.duckdb_store import DuckDBStore

    if action == "claim":
        return SimpleFinClient.claim(argument)
    client = SimpleFinClient(argument)
    store = DuckDBStore(Path(folder) / "app.duckdb")
    store.init()
    run = collect(store, client)
    now = datetime.now(UTC)
    told = [
        row["id"]
        for window in client.fetch_chunked(now - timedelta(days=4000), now)
        for account in window["accounts"]
        for row in account["transactions"]
    ]
    [[rows, total]] = store.conn.execute("SELECT count(*), sum(amount) FROM transactions").fetchall()
    store.close()
    return {
        "new": run.transactions_new,
        "updated": run.transactions_updated,
        "warnings": run.warnings,
        "rows": rows,
        "total": str(total),
        "told": len(told),
        "different": len(set(told)),
    }


if __name__ == "__main__":
    app, *rest = sys.argv[1:]
    try:
        answer = {"simplefin4py": simplefin4py, "goetta": goetta}[app](*rest)
    except Exception as error:
        answer = {"failed": type(error).__name__}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
