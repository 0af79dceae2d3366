"""kill -9 during imports: nothing that was acknowledged is lost, and no import is there by half.

    python -m tests.soak.killed_imports --data DIR [--cycles 30]

Each cycle starts a demo server, makes one user sync and another import files, kills the server at a random moment,
and reads the store.
"""

import argparse
import json
import random
import sqlite3
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from handlers.commands.control_socket import CommandError
from storage.engines.duckdb_file import DuckDBFile
from tests.engines import OpenStore, whole
from tests.imports.mirrors import MIRROR
from tests.service.conftest import Said, Served, get, start

ROWS_PER_FILE = 60
PASSWORD = "Regenturm-4711-quer"
ALIVE_SECONDS = (0.3, 2.5)
USER = "walker"


@dataclass
class Ledger:
    """What the server has acknowledged."""

    files: set[int] = field(default_factory=set)  # numbers of files that were reported as imported
    tried: int = 0
    days_synced: int = 0
    copy: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:", check_same_thread=False))
    cut_off: int = 0  # cycles in which the kill hit a file that was being imported
    completed: dict[str, int] = field(default_factory=dict)  # sync id -> newTransactions


def cycle(folder: Path, ledger: Ledger, chance: random.Random) -> None:
    """One server's life and violent death, and what the store says afterwards."""
    served = start(folder, is_measured=False)
    if not ledger.tried:
        served.command("users add", name=USER, password=PASSWORD, is_generated=False, has_subscription=True)
    read_copy(served.client("solo"), ledger, is_compared=True)
    ended = threading.Event()
    walker = threading.Thread(target=_import_files, args=(served, folder.parent, ledger, ended))
    syncer = threading.Thread(target=_sync_days, args=(served, ledger, ended))
    walker.start()
    syncer.start()
    time.sleep(chance.uniform(*ALIVE_SECONDS))
    served.process.kill()
    ended.set()
    walker.join(30)
    syncer.join(30)
    served.stop()
    _check(folder, ledger)


def _import_files(served: Served, folder: Path, ledger: Ledger, ended: threading.Event) -> None:
    while not ended.is_set():
        ledger.tried += 1
        number = ledger.tried
        file = folder / f"file{number}.ofx"
        file.write_text(statement(number))
        said = Said()
        try:
            said.lines += served.command(
                "import", user=USER, files=[str(file)], connection=None, is_dry_run=False, is_json=False
            )
        except (CommandError, OSError, ValueError):
            ledger.cut_off += 1
            return
        finally:
            file.unlink()
        ledger.files.add(number)


def _sync_days(served: Served, ledger: Ledger, ended: threading.Event) -> None:
    with suppress(httpx.TransportError, CommandError, OSError, ValueError, AssertionError):
        client = served.client("solo")
        while not ended.is_set():
            served.advance(86_400)
            for job in client.post("/sync").json()["syncJobs"]:
                while not ended.is_set():
                    read = get(client, f"/sync/{job['syncId']}")
                    if read["status"] == "completed":
                        ledger.completed[job["syncId"]] = read["newTransactions"]
                        ledger.days_synced += 1
                        break
            read_copy(client, ledger, is_compared=False)


def read_copy(client: httpx.Client, ledger: Ledger, *, is_compared: bool) -> None:
    """Bring the copy of the user's transactions up to date, by the text of docs/mirror.md, across all kills."""
    MIRROR(ledger.copy, lambda cursor: get(client, "/transactions/changes", **({"cursor": cursor} if cursor else {})))
    if is_compared:
        rows = [json.loads(row) for (row,) in ledger.copy.execute("SELECT row FROM transactions")]
        ids = ",".join(account["id"] for account in get(client, "/accounts")["accounts"])
        listed = get(client, "/transactions", accountIds=ids, perPage=100)
        first = sorted(rows, key=lambda row: (row["bookingDate"], row["id"]), reverse=True)[:100]
        assert len(rows) == listed["pagination"]["total"], "the copy is not the list"
        assert [
            {name: row[name] for name in shown} for row, shown in zip(first, listed["transactions"], strict=True)
        ] == (listed["transactions"])


def _check(folder: Path, ledger: Ledger) -> None:
    """The store opens, holds every acknowledged file and sync, and no part of another."""
    database = whole(DuckDBFile(folder / "bankdata.duckdb"))
    try:
        rows = database.rows(
            "SELECT purpose, count(*) AS n FROM transactions JOIN users ON users.id = user_id WHERE users.name = $1"
            " GROUP BY purpose",
            USER,
        )
        stored = {int(row["purpose"].removeprefix("File ")): row["n"] for row in rows}
        assert set(stored) >= ledger.files, "an acknowledged file is lost"
        assert set(stored.values()) <= {ROWS_PER_FILE}, "half an import"
        jobs = {row["id"]: row for row in database.rows("SELECT id, status, new_transactions FROM jobs")}
        for id_, count in ledger.completed.items():
            assert (jobs[id_]["status"], jobs[id_]["new_transactions"]) == ("completed", count)
        check_counts(database)
    finally:
        database.close()


def check_counts(database: OpenStore) -> None:
    """Journal, jobs and bookings tell the same numbers."""
    journal = database.rows(
        "SELECT user_id, max(sequence) AS last, state FROM journal JOIN users ON users.id = user_id"
        " GROUP BY user_id, state"
    )
    for row in journal:
        assert row["last"] <= row["state"], "the journal knows a state that was never reached"
    added = database.rows("SELECT count(*) AS n FROM journal WHERE change = 'added'")[0]["n"]
    removed = database.rows("SELECT count(*) AS n FROM journal WHERE change = 'removed'")[0]["n"]
    assert added - removed == database.rows("SELECT count(*) AS n FROM transactions")[0]["n"]
    counted = database.rows("SELECT coalesce(sum(new_transactions), 0) AS n FROM jobs")[0]["n"]
    assert counted == added, "newTransactions and the journal disagree"


def statement(number: int) -> str:
    """An OFX file of sixty bookings that no file of another number has."""
    head = (
        "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\nENCODING:USASCII\nCHARSET:1252\n\n<OFX><BANKMSGSRSV1><STMTTRNRS>"
        "<STMTRS><CURDEF>EUR<BANKACCTFROM><BANKID>99910000<ACCTID>1234567<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>"
    )
    row = (
        "<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>202611{day:02d}<TRNAMT>-{n}.00<FITID>{f}-{n}<NAME>Shop"
        "<MEMO>File {f}</STMTTRN>"
    )
    rows = "".join(row.format(day=n % 28 + 1, n=n, f=number) for n in range(1, ROWS_PER_FILE + 1))
    return f"{head}{rows}</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cycles", type=int, default=30)
    given = parser.parse_args()
    given.data.parent.mkdir(parents=True, exist_ok=True)
    ledger, chance = Ledger(), random.Random(4711)
    for number in range(given.cycles):
        cycle(given.data, ledger, chance)
        print(f"cycle {number + 1}: {len(ledger.files)} files, {ledger.days_synced} syncs acknowledged", flush=True)
    print(f"{given.cycles} kills, {ledger.cut_off} of them in the middle of a file: nothing lost, nothing half")


if __name__ == "__main__":
    main()
