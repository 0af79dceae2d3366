"""The most memory that a server ever held, and the processor time it took, for each thing that somebody with a long
history asks of it: every question has a server and a copy of the store of its own.

    python -m tests.benchmarks.long_history [--rows 200000] [--store NAME] [QUESTION ...]

There are two stores: one whose bookings name seventeen payees, and one imported from a camt file in which each booking
names another (`imported`), which alone has an import to undo.
"""

import argparse
import hashlib
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from auth.scopes import ALL_SCOPES
from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.servers import MeasuredServer, called, free_port, running
from tests.benchmarks.bench.store import Audience, filled
from tests.benchmarks.readers import camt
from tests.benchmarks.sync_memory import peak
from tests.benchmarks.unrestricted import Silent

Question = Callable[[httpx.Client], None]
COPY_PAGE = 500
TOTALS = "/transactions/totals?groupBy=merchant,month"
TEN = ("first page", "search", "totals", "one booking", "explanation", "forecast", "balances", "integrity", "export")
READ = {
    "first page": ["/transactions"],
    "cash flow": ["/cashflow?months=12"],
    "search": ["/transactions/search?amountMin=20&amountMax=30"],
    "words": ["/transactions?search=rewe", "/transactions/search?q=markt"],
    "totals": [TOTALS],
    "one booking": ["/transactions/{id}"],
    "explanation": ["/transactions/{id}/explanation"],
    "forecast": ["/forecast"],
    "balances": ["/balances"],
    "integrity": ["/integrity"],
    "recurring": ["/subscriptions", "/subscriptions/details"],
    "export": ["/transactions/export?format=csv"],
    "jsonl": ["/transactions/export?format=jsonl"],
}


def ask(client: httpx.Client, path: str) -> bytes:
    """The answer, which has to succeed."""
    if "{id}" in path:
        path = path.replace("{id}", client.get("/transactions?perPage=1").json()["transactions"][0]["id"])
    with client.stream("GET", path) as answer:  # an export is not kept here
        digest, first = hashlib.sha256(), b""
        for piece in answer.iter_bytes():
            digest.update(piece)
            first = first or piece
    assert answer.status_code == 200, (path, first[:300])
    return digest.digest()


def copy(client: httpx.Client) -> None:
    """The whole copy by the feed of changes."""
    said: dict[str, str | int] = {"limit": COPY_PAGE}
    while True:
        page = client.get("/transactions/changes", params=said).raise_for_status().json()
        said["cursor"] = page["nextCursor"]
        if not page["hasMore"]:
            return


def correct(client: httpx.Client) -> None:
    """A correction, which concerns everything of a counterpart."""
    [row] = client.get("/transactions", params={"perPage": 1}).json()["transactions"]
    client.post("/corrections", json={"transactionId": row["id"], "category": "HEALTH"}).raise_for_status()


def rule(client: httpx.Client, **asked: str) -> None:
    """A rule that changes the type of everything."""
    about = {"field": "purpose", "operator": "contains", "value": "a"}
    client.post("/rules", params=asked, json={**about, "category": "HEALTH", "type": "fee"}).raise_for_status()


def preview(client: httpx.Client) -> None:
    """What that rule would change."""
    rule(client, dryRun="true", include="transactions")


def undo(client: httpx.Client) -> None:
    """The import of everything, undone."""
    [run] = client.get("/imports").json()["imports"]
    assert client.delete(f"/imports/{run['importId']}").status_code < 300


def at_once(client: httpx.Client) -> None:
    """Ten things at once."""
    asked = [READ[name][0] for name in (*TEN, "recurring")]
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda path: ask(client, path), asked))


def one_by_one(client: httpx.Client) -> None:
    """Everything that reads, one after the other."""
    for paths in READ.values():
        for path in paths:
            ask(client, path)


def reading(paths: list[str]) -> Question:
    """A question that reads these paths, one after the other."""

    def read(client: httpx.Client) -> None:
        for path in paths:
            ask(client, path)

    return read


def after_page(then: Question) -> Question:
    """What is done with the list in memory."""

    def asked(client: httpx.Client) -> None:
        ask(client, READ["search"][0])
        then(client)

    return asked


QUESTIONS: Mapping[str, Question] = {
    **{name: reading(paths) for name, paths in READ.items()},
    "copy": copy,
    "correction": after_page(correct),
    "rule": after_page(rule),
    "preview": after_page(preview),
    "undo": after_page(undo),
    "ten at once": at_once,
    "one by one": one_by_one,
}


def serve(name: str, folder: Path, question: Question, token: str) -> None:
    """Ask a new server over this folder, and print a line."""
    port = free_port()
    arguments = called("handlers.cli", "serve", "--port", port, "--data", folder)
    nobody = Audience(warm=[], cold=[], today=date.today())  # noqa: DTZ011 - nobody looks at it
    with running("server", arguments, port, nobody, folder.parent) as server:
        address = f"http://127.0.0.1:{port}/api/v1"
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=300) as client:
            client.get("/accounts").raise_for_status()
            report(name, server, lambda: question(client))


def report(name: str, server: MeasuredServer, work: Callable[[], None]) -> None:
    """Do it, and print what it took."""
    before, cpu, began = peak(server.process.pid), server.processor_seconds(), time.monotonic()
    work()
    took, busy = time.monotonic() - began, server.processor_seconds() - cpu
    after = peak(server.process.pid)
    print(
        f"  {name:<14} {took:6.2f} s  {busy:6.2f} s CPU  {before:4.0f} MB before, {after:5.0f} MB at most", flush=True
    )


def import_file(path: Path) -> Question:
    """The import of a file by the contract."""

    def work(client: httpx.Client) -> None:
        kind = {"content-type": "application/octet-stream"}
        answer = client.post("/imports", params={"filename": path.name}, headers=kind, content=path.read_bytes())
        path_of = f"/imports/{answer.raise_for_status().json()['importId']}"
        while (said := client.get(path_of).raise_for_status().json())["status"] != "done":
            time.sleep(0.5)
        assert said["error"] is None, said

    return work


def made(folder: Path, name: str, rows: int) -> str:
    """A store in the folder, and the token of whose it is."""
    if name == "payees":
        [someone] = filled(folder, Size(rows=rows, rows_each=rows), Silent()).warm
    with closing(open_services(load({}, data_dir=folder))) as services:
        everybody, now = services.everybody, services.clock.now()
        if name == "imported":
            eva = users.add(
                everybody, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=now
            )
        whose = someone.user_id if name == "payees" else eva.id
        token = services.authorization.issue_token(whose, frozenset(ALL_SCOPES), timedelta(hours=12))
    if name == "imported":
        path = folder.parent / "statement.xml"
        with path.open("w", encoding="utf-8") as stream:
            stream.writelines(camt(rows))
        serve("import", folder, import_file(path), token)
    return token


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--store", choices=["payees", "imported"])
    parser.add_argument("questions", nargs="*")
    given = parser.parse_args()
    for name in [given.store] if given.store else ["payees", "imported"]:
        print(f"{name}, {given.rows:,} bookings", flush=True)
        with TemporaryDirectory(prefix="bankdata-long-") as parent:
            store = Path(parent) / "store"
            token = made(store, name, given.rows)
            for question in given.questions or QUESTIONS:
                if question == "undo" and name == "payees":
                    continue
                served = Path(parent) / "data"
                shutil.copytree(store, served)
                serve(question, served, QUESTIONS[question], token)
                shutil.rmtree(served)


if __name__ == "__main__":
    main()
