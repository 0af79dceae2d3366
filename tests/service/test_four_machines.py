"""Four servers over one store, a PostgreSQL or a Citus cluster, and one Redis: each race has one winner, what ends in
one ends in all, one that is killed at work is followed by another, and neither PostgreSQL nor Redis needs a restart of
theirs when it was away."""

import os
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import psycopg
import pytest

from handlers.settings import load
from handlers.work.services import Services, open_services
from handlers.work.sync.statement_files import ENDED
from storage import connections, jobs, users
from storage.oauth.pending import AccessRequest
from storage.users import User
from tests.engines import EMPTY, ENGINE, KEYS_SECRET, STORE, Cluster
from tests.oauth.conftest import REDIRECT, challenge_of
from tests.service.conftest import Served, running
from tests.service.test_shared_limit import Redis

pytestmark = pytest.mark.engine("postgresql")

T = TypeVar("T")

MACHINES = 4
AT_ONCE = 40  # requests of a race, ten at each machine
ROUNDS = 3
SECOND = 1.0  # within which every machine knows of an end
SOON = 5.0  # seconds, within which a request hears that a store does not answer, or that it does again
LONG = 120.0  # seconds; ten on an idle machine
SCOPES = "read:accounts read:transactions write:imports"
ROWS = 28
CSV = "Date,Description,Amount,Currency\n" + "".join(
    f"2026-03-{day:02},shop {day},-3.50,EUR\n" for day in range(1, ROWS + 1)
)


@dataclass(frozen=True)
class Machines:
    """Four servers, and a process that looks into their store."""

    cluster: Cluster | None  # of these tests alone, which may stop it; None over Citus
    redis: Redis
    settings: dict[str, str]
    here: Services
    stack: ExitStack
    servers: list[Served] = field(default_factory=list)

    def begin(self, machine: int) -> Served:
        """Start a machine's server."""
        folder = self.here.settings.data_dir.with_name(str(machine))
        served = running(folder, command="serve", settings=self.settings, is_measured=False)
        return self.stack.enter_context(served)

    def person(self, name: str) -> User:
        """A new user with a subscription."""
        now = self.here.clock.now()
        return users.add(
            self.here.everybody, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=now
        )

    def token(self, user: User) -> str:
        """An access token of somebody's own."""
        scopes = frozenset(SCOPES.split())
        return self.here.authorization.issue_token(user.id, scopes, timedelta(days=1), resource="data")

    def code(self, user: User) -> dict[str, str]:
        """The form that redeems a new authorization code."""
        server, verifier = self.here.authorization, secrets.token_urlsafe(48)
        client = server.clients.add("Budget", (REDIRECT,))
        asked = AccessRequest(
            client_id=client.id,
            redirect_uri=REDIRECT,
            scope="read:accounts",
            state=None,
            code_challenge=challenge_of(verifier),
        )
        code = server.consent.allow_at_once(server.sessions.sign_in(None, user.id), asked)
        return {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": client.id,
            "code_verifier": verifier,
            "redirect_uri": REDIRECT,
        }

    def post(self, machine: int, path: str, form: dict[str, str]) -> httpx.Response:
        """A form sent to one of the machines, on a connection of its own."""
        return httpx.post(f"{self.servers[machine].address}{path}", data=form, timeout=LONG, trust_env=False)

    def at_once(self, form: dict[str, str]) -> list[httpx.Response]:
        """The answers to forty senders of a form."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda n: self.post(n % MACHINES, "/oauth/token", form), range(AT_ONCE)))

    def one_wins(self, form: dict[str, str]) -> tuple[dict[str, Any], list[httpx.Response]]:
        """What the one winner among forty senders of a form got, and the answers to the others."""
        answers = self.at_once(form)
        (winner,) = [answer for answer in answers if answer.status_code == 200]
        return winner.json(), [answer for answer in answers if answer is not winner]

    def statuses(self, token: str) -> list[int]:
        """What each machine answers this token."""
        found = []
        for server in self.servers:
            with server.bare(token) as client:
                found.append(client.get("/accounts").status_code)
        return found

    def refuse(self, token: str) -> None:
        """Within a second none takes this token any more."""
        until(lambda: self.statuses(token) == [401] * MACHINES or None, within=SECOND)

    def bookings(self, user: User) -> int:
        (row,) = self.here.everybody.rows("SELECT count(*) AS n FROM transactions WHERE user_id = $1", user.id)
        return int(row["n"])

    def sync(self, user: User, inbox: Path) -> str:
        """Have a file of a connected folder imported by whoever takes the job; its id."""
        store, now = self.here.everybody, self.here.clock.now()
        connection = connections.add(
            store,
            user_id=user.id,
            user_name=user.name,
            connector="folder",
            bank_name="Hausbank",
            settings={"folder": str(inbox)},
            now=now,
        )
        (inbox / "march.csv").write_text(CSV)
        os.utime(inbox / "march.csv", (0, 0))  # a folder leaves alone what may still be written
        job = jobs.start(store, user_id=user.id, connection_id=connection.id, cooldown=timedelta(0), now=now)
        assert job is not None
        return job.id

    def ended(self, machine: int, token: str, job_id: str) -> tuple[str, int | None]:
        """What a machine says of a job when it has ended: its status and new bookings."""

        def read() -> tuple[str, int | None] | None:
            with self.servers[machine].bare(token) as client:
                job = client.get(f"/sync/{job_id}").json()
            return (job["status"], job["newTransactions"]) if job["status"] in jobs.FINAL else None

        return until(read)

    def send(self, machine: int, token: str) -> dict[str, Any]:
        """What becomes of a file that is sent to a machine."""
        of_bytes, named = {"content-type": "application/octet-stream"}, {"filename": "march.csv"}
        with self.servers[machine].bare(token) as client:
            taken = client.post("/imports", params=named, content=CSV, headers=of_bytes, timeout=LONG)

            def read() -> dict[str, Any] | None:
                found: dict[str, Any] = client.get(f"/imports/{taken.json()['importId']}").json()
                return found if found["status"] == "done" else None

            return until(read)

    def kill(self, process: psutil.Process) -> int:
        """End a server by kill -9; which machine it was."""
        (machine,) = [n for n, server in enumerate(self.servers) if server.process.pid == process.pid]
        self.servers[machine].stop(signal.SIGKILL)
        return machine

    def says(self, text: str) -> bool:
        """Whether this stands in the log of a machine."""
        return any(text in server.log.read_text() for server in self.servers)

    def forget_leases(self) -> None:
        """As if a minute had passed: who is at work renews them every 20 seconds."""
        jobs.release_all(self.here.everybody)

    def are_counted_together(self, token: str) -> bool:
        """Whether each machine knows what the ones before it have counted."""
        left = []
        for server in self.servers:
            with server.bare(token) as client:
                said = client.get("/accounts").headers["ratelimit"]
            left.append(int(re.findall(r"r=(\d+)", said)[0]))
        return left == list(range(left[0], left[0] - MACHINES, -1))

    @contextmanager
    def held_up(self) -> Iterator[Callable[[], psutil.Process]]:
        """While this lasts, imports stop when they have written their bookings, before their end; the process of the
        one that has."""
        with psycopg.connect(self.settings["DATABASE_URL"]) as connection:
            connection.execute("LOCK TABLE journal IN SHARE MODE")
            yield lambda: self._waiting(connection)

    def _waiting(self, connection: psycopg.Connection[Any]) -> psutil.Process:
        asked = "SELECT client_port FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"

        def look() -> tuple[Any, ...] | None:
            connection.execute("SELECT pg_stat_clear_snapshot()")  # within a transaction the first look is kept
            return connection.execute(asked).fetchone()

        (port,) = until(look)
        for server in self.servers:
            process = psutil.Process(server.process.pid)
            if port in {each.laddr.port for each in process.net_connections("tcp")}:
                return process
        raise AssertionError("none of the servers is at work")


def until(look: Callable[[], T | None], *, within: float = LONG) -> T:
    """The first thing that is found, at the latest by a look that begins when the time is over."""
    deadline = time.monotonic() + within
    while True:
        is_last = time.monotonic() >= deadline
        if (found := look()) is not None:
            return found
        assert not is_last, f"nothing within {within} seconds"
        time.sleep(0.05)


@contextmanager
def _own_cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.sql("ALTER SYSTEM SET synchronous_commit = on")  # what was acknowledged outlives the database
        cluster.sql("SELECT pg_reload_conf()")
        cluster.sql(f"CREATE DATABASE bankdata {EMPTY}")
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """All of it; what a test takes away it brings back."""
    with ExitStack() as stack:
        folder, redis = tmp_path_factory.mktemp("machines"), Redis(tmp_path_factory.mktemp("redis"))
        cluster = None if ENGINE.citus else stack.enter_context(_own_cluster())
        stack.callback(redis.stop)
        redis.start()
        settings = {
            "PUBLIC_URL": "http://127.0.0.1:9999",  # of all of them; tokens are made here, too
            "DATABASE_URL": cluster.url("bankdata") if cluster else ENGINE.url(folder / STORE),
            "KEYS_SECRET": KEYS_SECRET,
            "RATE_LIMIT": "1000000/9999s",  # of requests that are counted none is forgotten meanwhile
            "RATE_LIMIT_URL": redis.url,
        }
        if cluster:
            settings["DATABASE_APP_URL"] = cluster.app_url("bankdata")  # its own second wall
        read = load({f"BANKDATA_{name}": value for name, value in settings.items()}, data_dir=folder / "here")
        here = stack.enter_context(closing(open_services(read)))
        made = Machines(cluster, redis, settings, here, stack)
        made.servers.extend(made.begin(machine) for machine in range(MACHINES))
        yield made


@pytest.mark.requirement("workers.one-winner")
def test_of_forty_who_redeem_one_code_at_four_machines_one_wins_and_its_tokens_end(machines: Machines) -> None:
    user = machines.person("redeemer")
    for _ in range(ROUNDS):
        form = machines.code(user)
        tokens, refused = machines.one_wins(form)
        assert {(answer.status_code, answer.json()["error"]) for answer in refused} == {(400, "invalid_grant")}
        machines.refuse(tokens["access_token"])  # a code came twice (RFC 6749 4.1.2)
        again = {
            "grant_type": "refresh_token",
            "refresh_token": tokens["refresh_token"],
            "client_id": form["client_id"],
        }
        assert machines.post(0, "/oauth/token", again).json()["error"] == "invalid_grant"


@pytest.mark.requirement("workers.one-winner")
def test_forty_who_refresh_one_token_at_four_machines_get_one_successor_which_goes_on(machines: Machines) -> None:
    user = machines.person("refresher")
    for _ in range(ROUNDS):
        form = machines.code(user)
        first = machines.post(0, "/oauth/token", form).json()
        assert machines.statuses(first["access_token"]) == [200] * MACHINES
        refresh = {
            "grant_type": "refresh_token",
            "refresh_token": first["refresh_token"],
            "client_id": form["client_id"],
        }
        answers = machines.at_once(refresh)
        assert [answer.status_code for answer in answers] == [200] * AT_ONCE
        (successor,) = {answer.json()["refresh_token"] for answer in answers}
        assert machines.statuses(answers[-1].json()["access_token"]) == [200] * MACHINES
        third = machines.post(1, "/oauth/token", {**refresh, "refresh_token": successor}).json()
        again = machines.post(2, "/oauth/token", refresh)  # its successor is used: that is a thief's
        assert again.json()["error"] == "invalid_grant"
        machines.refuse(third["access_token"])


@pytest.mark.requirement("workers.revoked")
def test_what_an_app_revokes_at_one_machine_ends_at_all_within_a_second(machines: Machines) -> None:
    form = machines.code(machines.person("revoker"))
    tokens = machines.post(0, "/oauth/token", form).json()
    assert machines.statuses(tokens["access_token"]) == [200] * MACHINES
    revoked = machines.post(3, "/oauth/revoke", {"token": tokens["refresh_token"], "client_id": form["client_id"]})
    assert revoked.status_code == 200
    machines.refuse(tokens["access_token"])


@pytest.mark.requirement("workers.killed")
def test_a_sync_whose_process_is_killed_before_its_end_is_finished_by_another_once(
    machines: Machines, tmp_path: Path
) -> None:
    user, inbox = machines.person("syncer"), tmp_path / "inbox"
    inbox.mkdir()
    token = machines.token(user)
    with machines.held_up() as at_work:
        job_id = machines.sync(user, inbox)
        killed = machines.kill(at_work())
        machines.forget_leases()
    assert machines.ended((killed + 1) % MACHINES, token, job_id) == ("completed", ROWS)
    assert machines.bookings(user) == ROWS
    assert [path.name for path in (inbox / "done").iterdir()] == ["march.csv"]
    machines.servers[killed] = machines.begin(killed)


@pytest.mark.requirement("workers.killed")
def test_a_file_whose_process_is_killed_before_its_end_is_sent_again_and_there_once(machines: Machines) -> None:
    user = machines.person("sender")
    token = machines.token(user)
    with machines.held_up() as at_work, ThreadPoolExecutor(1) as pool:
        cut_off = pool.submit(machines.send, 2, token)
        assert machines.kill(at_work()) == 2
        with pytest.raises(httpx.TransportError):
            cut_off.result(LONG)
    assert machines.bookings(user) == 0
    for machine in (0, 3):
        answer = machines.send(machine, token)
        assert answer["error"] is None
    assert machines.bookings(user) == ROWS
    machines.servers[2] = machines.begin(2)


@pytest.mark.requirement("decision 152")
def test_a_file_whose_process_is_asked_to_end_is_told_by_another_at_once_to_be_sent_again(machines: Machines) -> None:
    user = machines.person("interrupted")
    token = machines.token(user)
    with machines.held_up() as at_work, ThreadPoolExecutor(1) as pool:
        cut_off = pool.submit(machines.send, 1, token)
        at_work()
        assert machines.servers[1].stop() == 0
        [sent] = machines.here.everybody.rows("SELECT id FROM file_imports WHERE user_id = $1", user.id)
        with machines.servers[0].bare(token) as client:
            told = client.get(f"/imports/{sent['id']}").json()
        assert (told["status"], told["error"]) == ("done", ENDED)
        with pytest.raises(KeyError, match="importId"):
            cut_off.result(LONG)
    *_, last = machines.servers[1].log.read_text().splitlines()
    assert last.endswith("an unfinished import is undone, a sync goes on elsewhere or after the next start")
    assert machines.bookings(user) == 0
    machines.servers[1] = machines.begin(1)


@pytest.mark.requirement("postgresql.unavailable")
def test_a_sync_that_has_lost_its_connection_before_its_end_goes_on(machines: Machines, tmp_path: Path) -> None:
    user, inbox = machines.person("unlucky"), tmp_path / "inbox"
    inbox.mkdir()
    token = machines.token(user)
    with machines.held_up() as at_work:
        job_id = machines.sync(user, inbox)
        at_work()
        waiting = "wait_event_type = 'Lock' AND datname = current_database()"
        machines.here.everybody.rows(f"SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE {waiting}")
        until(lambda: machines.says("goes on when the database answers") or None)
    assert machines.ended(0, token, job_id) == ("completed", ROWS)
    assert machines.bookings(user) == ROWS


@pytest.mark.engine("one server")  # it is stopped; one machine of a cluster that is: tests.soak.citus
@pytest.mark.requirement("postgresql.unavailable")
def test_a_database_that_was_away_is_used_again_by_all_and_a_sync_that_it_cut_off_goes_on(
    machines: Machines, tmp_path: Path
) -> None:
    user, inbox = machines.person("patient"), tmp_path / "inbox"
    inbox.mkdir()
    token = machines.token(user)
    assert machines.cluster is not None
    assert machines.statuses(token) == [200] * MACHINES
    with suppress(psycopg.OperationalError), machines.held_up() as at_work:
        job_id = machines.sync(user, inbox)
        at_work()
        machines.cluster.stop()
        for server in machines.servers:
            with server.bare(token) as client:
                began = time.monotonic()
                answer = client.get("/accounts")
                assert time.monotonic() - began < SOON
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
            assert server.process.poll() is None
    machines.cluster.start()
    until(lambda: machines.statuses(token) == [200] * MACHINES or None, within=MACHINES * SOON)
    assert machines.bookings(user) == 0
    assert machines.ended(0, token, job_id) == ("completed", ROWS)
    assert machines.bookings(user) == ROWS


@pytest.mark.requirement("decision.32.outage")
def test_counts_that_were_away_are_shared_again_by_all(machines: Machines) -> None:
    token = machines.token(machines.person("counted"))
    assert machines.are_counted_together(token)
    machines.redis.stop()
    assert machines.statuses(token) == [200] * MACHINES
    assert not machines.are_counted_together(token)
    machines.redis.start()
    until(lambda: machines.are_counted_together(token) or None, within=20.0)
