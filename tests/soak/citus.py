"""A worker of a Citus cluster is stopped and started, and one more takes shards, while many users read and import.

    BANKDATA_TEST_CITUS_URL=postgresql://... python -m tests.soak.citus --data DIR \\
        --stop COMMAND --start COMMAND --add COMMAND [--users 24] [--seconds 15]

The URL names an empty database on the coordinator. The commands are those of whoever runs the cluster: one stops a
worker as if its machine died, one starts it again, one brings a further worker that the coordinator knows
(`citus_add_node`).

Users import their first files into a store that lies on the coordinator alone; `bankdata distribute` spreads it, filled
as it is. From then on nobody may see anything but their own rows, each once, or 503 with `Retry-After` while their own
worker is the one that is stopped. In the end each acknowledged file is there once.
"""

import argparse
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
import psycopg

from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from storage.database import StoreUnavailable
from tests.citus import CITUS_URL
from tests.engines import KEYS_SECRET, opened
from tests.service.conftest import BANKDATA, Served, environment, running
from tests.soak.killed_imports import ROWS_PER_FILE, check_counts, statement

READERS = 4
WRITERS = 2
PAUSE = 0.02  # seconds between the requests of a reader
BACK_WITHIN = 5.0  # seconds, after which a worker that was started is used again
SCOPES = frozenset({"read:accounts", "read:transactions", "read:cashflow", "write:imports"})
PATHS = ("/accounts", "/transactions", "/cashflow", "/snapshot", "/subscriptions")
OF_BYTES = {"content-type": "application/octet-stream"}
PLACE = (
    "SELECT n.nodename || ':' || n.nodeport FROM pg_dist_placement AS p JOIN pg_dist_node AS n ON n.groupid = p.groupid"
    " WHERE p.shardid = get_shard_id_for_distribution_column('users', '{}')"
)
AWAY = (
    "SELECT nodename || ':' || nodeport FROM pg_dist_node"
    " WHERE shouldhaveshards AND NOT coalesce(citus_check_connection_to_node(nodename, nodeport), FALSE)"
)
STORED = "SELECT purpose, count(*) AS n FROM transactions WHERE user_id = $1 GROUP BY purpose"
REBALANCED = (
    "SELECT citus_rebalance_start(shard_transfer_mode => 'force_logical')",
    "SELECT citus_rebalance_wait()",
)


@dataclass
class Person:
    """A user, the files that were acknowledged, and the one that may be stored although nothing was heard of it."""

    id: str
    name: str
    token: str
    files: set[int] = field(default_factory=set)
    sent: int | None = None


class Answer(NamedTuple):
    """What somebody was told."""

    person: Person
    path: str
    phase: str
    status: int
    at: float
    seconds: float


class Crowd:
    """All users, with readers and writers who ask in their names."""

    def __init__(self, people: list[Person]) -> None:
        self.people = people
        self.phase = "on the coordinator"
        self.answers: list[Answer] = []
        self.wrong: list[str] = []
        self._number = 0
        self._lock = threading.Lock()

    @contextmanager
    def at_work(self, served: Served) -> Iterator[None]:
        """Readers and writers ask this server meanwhile."""
        is_over = threading.Event()
        asking = [partial(self._read, number) for number in range(READERS)]
        asking += [partial(self._write, number) for number in range(WRITERS)]
        threads = [threading.Thread(target=_until, args=(is_over, served, ask)) for ask in asking]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            for thread in threads:
                thread.join()

    def send(self, client: httpx.Client, person: Person) -> None:
        """A new file, or again the last one where nothing was heard of it."""
        if person.sent is None:
            with self._lock:
                self._number += 1
                person.sent = self._number
        content, named = statement(person.sent), {"filename": f"{person.sent}.ofx"}
        answer = self.ask(client, person, "/imports", method="POST", params=named, content=content, headers=OF_BYTES)
        while answer is not None and answer.json()["status"] == "running":
            answer = self.ask(client, person, f"/imports/{answer.json()['importId']}")
        if answer is None or answer.json()["error"] == StoreUnavailable.__doc__:
            return
        if answer.json()["error"] is not None:
            self.wrong.append(f"{self.phase}: {person.name} was told of an import: {answer.json()['error']}")
            return
        person.files.add(person.sent)
        person.sent = None

    def ask(
        self, client: httpx.Client, person: Person, path: str, *, method: str = "GET", **more: Any
    ) -> httpx.Response | None:
        """What a person is answered; None where they are told to come again."""
        began, phase = time.monotonic(), self.phase
        headers = {**more.pop("headers", {}), "Authorization": f"Bearer {person.token}"}
        try:
            answer = client.request(method, path, headers=headers, **more)
        except httpx.TransportError as error:
            self.wrong.append(f"{phase}: {person.name} got no answer: {error!r}")
            return None
        now = time.monotonic()
        self.answers.append(Answer(person, path, phase, answer.status_code, now, now - began))
        if answer.status_code in (200, 202):  # and the import goes on
            return answer
        if answer.status_code != 503 or not answer.headers.get("retry-after"):
            self.wrong.append(f"{phase}: {person.name} was told {answer.status_code} {answer.text[:200]}")
        return None

    def _read(self, number: int, client: httpx.Client) -> None:
        chance = random.Random(number + time.monotonic())
        person, path = chance.choice(self.people), chance.choice(PATHS)
        acknowledged = len(person.files)
        answer = self.ask(client, person, path)
        if answer is not None and path == "/transactions":
            total = answer.json()["pagination"]["total"]
            if total % ROWS_PER_FILE or not acknowledged <= total // ROWS_PER_FILE <= len(person.files) + 1:
                self.wrong.append(f"{self.phase}: {person.name} saw {total} bookings of {acknowledged} files")
        time.sleep(PAUSE)

    def _write(self, number: int, client: httpx.Client) -> None:
        for person in self.people[number::WRITERS]:
            self.send(client, person)


def _until(is_over: threading.Event, served: Served, ask: Callable[[httpx.Client], None]) -> None:
    with served.bare() as client:
        while not is_over.is_set():
            ask(client)


class Cluster:
    """A store that is to be spread, and what its operator does with the machines under it."""

    def __init__(self, url: str, folder: Path, commands: dict[str, str]) -> None:
        self.url = url
        self.folder = folder
        self.settings = {"DATABASE_URL": url, "KEYS_SECRET": KEYS_SECRET, "PUBLIC_URL": "http://127.0.0.1:9999"}
        self._commands = commands

    def do(self, what: str) -> None:
        """One of the operator's commands."""
        subprocess.run(self._commands[what], shell=True, check=True, stdout=subprocess.DEVNULL)

    def sql(self, statement: str) -> list[Any]:
        """What the coordinator says."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def distribute(self) -> str:
        """What `bankdata distribute` prints."""
        command = (BANKDATA, "distribute", "--data", self.folder)
        done = subprocess.run(
            command, env=environment(False, **self.settings), check=True, stdout=subprocess.PIPE, text=True
        )
        return str(done.stdout)

    def serving(self, folder: Path, workers: int) -> AbstractContextManager[Served]:
        """A server of the store."""
        arguments = ["--workers", str(workers)]
        return running(folder, command="serve", settings=self.settings, arguments=arguments, is_measured=False)

    def people(self, count: int) -> list[Person]:
        """New users with a token each."""
        given = {f"BANKDATA_{name}": value for name, value in self.settings.items()}
        with closing(open_services(load(given, data_dir=self.folder))) as here:
            added = [
                users.add(
                    here.everybody,
                    name=f"user {number}",
                    password_hash=None,
                    has_subscription=True,
                    home_currency="EUR",
                    now=here.clock.now(),
                )
                for number in range(count)
            ]
            return [
                Person(each.id, each.name, here.authorization.issue_token(each.id, SCOPES, timedelta(days=1)))
                for each in added
            ]

    def place(self, person: Person) -> str:
        """The worker that has somebody's rows."""
        ((node,),) = self.sql(PLACE.format(person.id))
        return str(node)

    def away(self) -> set[str]:
        """Workers that the coordinator cannot reach."""
        return {node for (node,) in self.sql(AWAY)}

    def check(self, crowd: Crowd) -> None:
        """Each acknowledged file is in the store once, and no other but one that was on its way."""
        with closing(opened(self.url)) as database:
            check_counts(database)
            for person in crowd.people:
                rows = database.rows(STORED, person.id)
                stored = {int(row["purpose"].removeprefix("File ")): row["n"] for row in rows}
                is_whole = set(stored.values()) <= {ROWS_PER_FILE}
                if not is_whole or not person.files <= set(stored) <= person.files | {person.sent}:
                    crowd.wrong.append(f"{person.name} sent {sorted(person.files)}, {person.sent}; there is {stored}")


def soak(cluster: Cluster, crowd: Crowd, seconds: float) -> None:
    """One worker away and back, one more added and given its part, and what is said of it."""
    with cluster.serving(cluster.folder / "plain", 1) as served, served.bare() as client:
        for person in crowd.people:
            crowd.send(client, person)
    print(cluster.distribute(), end="")
    print("Again:", cluster.distribute(), end="", flush=True)
    with cluster.serving(cluster.folder / "spread", 2) as served, crowd.at_work(served):
        crowd.phase = "all there"
        time.sleep(seconds)
        crowd.phase = "one away"
        began = time.monotonic()
        cluster.do("stop")
        away = cluster.away()
        waiting = {person.id for person in crowd.people if cluster.place(person) in away}
        print(f"{', '.join(away)} is away: {len(waiting)} of {len(crowd.people)} users wait", flush=True)
        with cluster.serving(cluster.folder / "late", 1) as late, late.bare() as client:
            for person in crowd.people:
                if (crowd.ask(client, person, "/accounts") is None) is not (person.id in waiting):
                    crowd.wrong.append(f"{person.name} met another answer at a server that was started meanwhile")
        time.sleep(seconds)
        cluster.do("start")
        back = time.monotonic()
        crowd.phase = "back"
        time.sleep(seconds)
        crowd.phase = "rebalancing"
        cluster.do("add")
        before = {person.id: cluster.place(person) for person in crowd.people}
        moved = time.monotonic()
        for statement in REBALANCED:
            cluster.sql(statement)
        crowd.phase = "one more"
        moves = sum(before[person.id] != cluster.place(person) for person in crowd.people)
        print(f"{moves} users moved in {time.monotonic() - moved:.0f} s")
        time.sleep(seconds)
    refused = [each for each in crowd.answers if each.status == 503]
    for each in refused:
        if each.person.id not in waiting or not began <= each.at <= back + BACK_WITHIN:
            crowd.wrong.append(f"{each.phase}: {each.person.name} was told to come again")
    if {each.person.id for each in refused} != waiting or not moves:
        crowd.wrong.append("nobody had to wait, or nobody was moved: nothing was tried")
    print(f"The last one was told to come again {max(each.at for each in refused) - back:.1f} s after the start")
    if "Traceback" in served.log.read_text():
        crowd.wrong.append(f"an error is in {served.log}")


def report(crowd: Crowd) -> None:
    """How many were told what, and how long it took."""
    for phase in dict.fromkeys(each.phase for each in crowd.answers):
        for kind, is_import in (("read", False), ("imported", True)):
            told = [
                each for each in crowd.answers if each.phase == phase and each.path.startswith("/imports") is is_import
            ]
            good = [each.seconds for each in told if each.status != 503]
            if told:
                middle = f"{median(good):.2f} s, at most {max(good):.1f} s" if good else "-"
                print(f"{phase:20} {kind:8} {len(good):6} in {middle}; {len(told) - len(good)} times 503")
    files = sum(len(person.files) for person in crowd.people)
    print(f"{files} files acknowledged, {files * ROWS_PER_FILE} bookings; {len(crowd.wrong)} wrong")
    for line in crowd.wrong[:20]:
        print("WRONG:", line)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    for command in ("stop", "start", "add"):
        parser.add_argument(f"--{command}", metavar="COMMAND", required=True)
    parser.add_argument("--users", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=15)
    given = parser.parse_args()
    given.data.mkdir(parents=True, exist_ok=True)
    commands = {"stop": given.stop, "start": given.start, "add": given.add}
    cluster = Cluster(os.environ.pop(CITUS_URL), given.data, commands)
    crowd = Crowd(cluster.people(given.users))
    soak(cluster, crowd, given.seconds)
    cluster.check(crowd)
    report(crowd)
    sys.exit(bool(crowd.wrong))


if __name__ == "__main__":
    main()
