"""Several processes over one PostgreSQL: races have one winner, revocations are heard of, who dies is replaced."""

import errno
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing import Pipe
from pathlib import Path
from subprocess import run
from types import SimpleNamespace
from typing import Any

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from connectors.reference.exchange_rates import bundled_rates
from handlers.commands import access, upkeep
from handlers.commands.control_socket import CommandError
from handlers.metrics import _StoreFigures
from handlers.work.clock import Clock
from handlers.work.services import open_services
from handlers.work.sync.engine import LEFT_TO_OTHERS
from handlers.work.sync.scheduler import PLAN_EVERY
from handlers.work.sync.statement_files import ENDED
from handlers.workers import FROZEN_AFTER, Watch, _end_with_parent, _serve
from storage import connections, store_facts, users
from storage.bank_access.sync_time_limits import LEASE
from storage.importing import file_imports
from storage.keys.places import KeysUnusable
from storage.migrations import soundness
from tests.conftest import NOW
from tests.engines import ENGINE, KEYS_SECRET, STORE, whole
from tests.service.conftest import BANKDATA, Said, Served, environment, running
from tests.storage.conftest import make_bank

pytestmark = pytest.mark.engine("postgresql")

ADDRESS = {"PUBLIC_URL": "http://127.0.0.1:9999"}  # as whom commands make tokens, which do not ask the server
CSV = "Date,Description,Amount,Currency\n" + "".join(f"2026-03-{day:02},shop {day},-3.50,EUR\n" for day in range(1, 29))
SECOND = 1.0  # within which every process knows


def command(folder: Path, *arguments: str) -> str:
    """A command in a process of its own, as a person types it; what it prints."""
    done = run(
        [BANKDATA, *arguments, "--data", folder],
        env={**environment(**ADDRESS), **ENGINE.environment(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two workers."""
    folder = tmp_path_factory.mktemp("several") / "data"
    command(folder, "users", "add", "eva", "--random")
    with running(folder, command="serve", settings=ADDRESS, arguments=["--workers", "2"]) as served:
        yield served
        assert "Traceback" not in served.log.read_text()


def token(served: Served, user: str = "eva") -> str:
    return command(served.folder, "token", "--user", user)


def workers(served: Served) -> list[psutil.Process]:
    found = []
    for each in psutil.Process(served.process.pid).children():
        with suppress(psutil.Error):  # it ends just now
            if each.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(each.cmdline()):
                found.append(each)
    return found


COUNTED = "bankdata_request_duration_seconds_count listAccounts 200"


def figures(served: Served) -> dict[str, float]:
    """What one of the processes tells of all, by name and labels."""
    answer = httpx.get(f"{served.address}/metrics", timeout=60, trust_env=False)
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def answers(served: Served, bearer: str, times: int) -> set[int]:
    """Statuses of requests on connections of their own, which reach all workers."""

    def ask(_: int) -> int:
        with served.bare(bearer) as client:
            return client.get("/accounts").status_code

    with ThreadPoolExecutor(8) as pool:
        return set(pool.map(ask, range(times)))


@pytest.mark.requirement("workers.revoked")
def test_a_subscription_that_ends_by_a_command_ends_in_every_process_within_a_second(several: Served) -> None:
    bearer = token(several)
    assert answers(several, bearer, 20) == {200}
    for state, status in (("off", 403), ("on", 200)):
        command(several.folder, "users", "subscription", "eva", state)
        time.sleep(SECOND)
        assert answers(several, bearer, 20) == {status}


@pytest.mark.requirement("workers.one-winner")
def test_one_file_imported_by_four_processes_at_once_is_there_once(several: Served, tmp_path: Path) -> None:
    file = tmp_path / "march.csv"
    file.write_text(CSV)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: command(several.folder, "import", "--user", "eva", str(file)), range(4)))
    bearer = token(several)
    with several.bare(bearer) as client:
        ids = [each["id"] for each in client.get("/accounts").json()["accounts"]]
        found = client.get("/transactions", params={"accountIds": ",".join(ids), "perPage": 1}).json()
    assert found["pagination"]["total"] == 28


@pytest.mark.requirement("workers.one-winner")
def test_a_name_added_by_four_processes_at_once_in_any_case_is_one_user(several: Served) -> None:
    def add(name: str) -> bool:
        with suppress(AssertionError):
            command(several.folder, "users", "add", name, "--random")
            return True
        return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, ["ada", "Ada", "ADA", "aDA"])) == 1


@pytest.mark.requirement("workers.imports")
def test_every_process_tells_what_became_of_a_file_that_one_of_them_took(several: Served) -> None:
    scope = "read:accounts read:transactions write:imports"
    bearer = command(several.folder, "token", "--user", "eva", "--scope", scope)
    named, of_bytes = {"filename": "kiosk.csv", "dryRun": "true"}, {"content-type": "application/octet-stream"}
    with several.bare(bearer) as client:
        file = CSV.replace("shop", "kiosk")
        taken = client.post("/imports", params=named, content=file, headers=of_bytes).json()
        while taken["status"] == "running":
            taken = client.get(f"/imports/{taken['importId']}").json()
    told = []
    for _ in range(12):  # each on a connection of its own
        with several.bare(bearer) as client:
            told.append(client.get(f"/imports/{taken['importId']}"))
    assert {answer.status_code for answer in told} == {200}
    assert all(answer.json()["statements"] == taken["statements"] != [] for answer in told)


@pytest.mark.requirement("workers.imports")
def test_a_file_whose_process_has_died_is_told_to_be_sent_again_and_its_rows_are_forgotten(tmp_path: Path) -> None:
    with closing(open_services(ENGINE.settings(tmp_path / "data"))) as services:
        now, store = services.clock.now(), services.everybody
        sent: Any = SimpleNamespace(id="syn_1", user_id="u")
        file_imports.begin(store, sent, holder="dead", answer='{"status": "running"}', now=now)
        running = services.uploads.find("u", "syn_1")
        assert running is not None
        assert not running.is_done
        services.clock.offset += LEASE
        dead = services.uploads.find("u", "syn_1")
        assert dead is not None
        assert dead.is_done
        assert json.loads(dead.answer) == {"status": "done", "error": ENDED}
        assert services.uploads.find("somebody else", "syn_1") is None
        file_imports.forget(store, before=now + timedelta(days=1))
        assert services.uploads.find("u", "syn_1") is None
        assert store.rows("SELECT job_id FROM job_leases") == []


@pytest.mark.requirement("workers.folders")
def test_a_sync_of_a_folder_that_another_machine_has_is_left_to_it_for_a_minute(tmp_path: Path) -> None:
    folder = tmp_path / "statements"
    folder.mkdir()
    command(tmp_path / "data", "users", "add", "ada", "--random")
    command(tmp_path / "data", "connect", "folder", str(folder), "--user", "ada", "--bank", "Bank")
    with closing(open_services(ENGINE.settings(tmp_path / "data"))) as services:
        ada = users.get_by_name(services.everybody, "ada")
        [connection] = connections.of_user(services.everybody, ada.id)
        shutil.rmtree(folder)
        job = services.sync_engine.start(connection, is_forced=True).job
        assert job is not None
        assert services.sync_engine.read(ada.id, job.id) == job
        services.clock.offset = LEFT_TO_OTHERS
        ended = services.sync_engine.read(ada.id, job.id)
        assert ended is not None
        assert ended.status == "failed"


@pytest.mark.requirement("workers.clocks")
def test_a_machine_whose_clock_is_not_that_of_the_database_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_services(ENGINE.settings(tmp_path / "data"))) as services:
        services.settings.data_dir.chmod(0o700)
        upkeep.check(services, Said())
        slow, said = services.clock.now() - timedelta(seconds=60), Said()
        monkeypatch.setattr(services.clock, "now", lambda: slow)
        with pytest.raises(CommandError, match="1 problem found"):
            upkeep.check(services, said)
        assert re.search(r"This machine's clock is -\d+ s off the database's: have NTP set both", said.lines[-1])


@pytest.mark.requirement("workers.clocks")
def test_a_clock_that_goes_wrong_while_the_server_runs_is_said_once_and_so_is_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(open_services(ENGINE.settings(tmp_path / "data"), for_server=True)) as services:
        assert abs(services.clock_watch.apart()) < timedelta(seconds=0.1)
        now = services.clock.now
        with monkeypatch.context() as wrong:
            for _ in range(2):
                services.clock.offset += PLAN_EVERY  # a machine on which a minute passes
                wrong.setattr(services.clock, "now", lambda: now() + timedelta(seconds=8))
                services.scheduler.round()
            assert timedelta(seconds=7) < services.clock_watch.apart() < timedelta(seconds=9)
        for _ in range(2):
            services.clock.offset += PLAN_EVERY
            services.scheduler.round()
    assert caplog.messages == [
        "This machine's clock is +8 s off the database's: have NTP set both. Until then machines may refuse each"
        " other's tokens.",
        "This machine's clock is that of the database again.",
    ]


@pytest.mark.requirement("decision 25")
def test_the_start_of_a_server_forgets_the_pauses_of_a_wrong_clock_by_the_clock_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ENGINE.settings(tmp_path / "data")
    with closing(open_services(settings)) as services:
        now = services.clock.now()
        make_bank(whole(services.store), now)

    def paused(until: datetime) -> bool:
        with closing(open_services(settings)) as services:
            services.everybody.execute("UPDATE connections SET next_sync_at = $1", until)
        open_services(settings, for_server=True).close()
        with closing(open_services(settings)) as services:
            return services.everybody.rows("SELECT next_sync_at FROM connections") != [{"next_sync_at": None}]

    assert not paused(now + timedelta(days=3))
    assert paused(now + timedelta(minutes=29))
    monkeypatch.setattr(Clock, "now", lambda _: now - timedelta(days=30))
    assert paused(now + timedelta(minutes=29))


@pytest.mark.requirement("monitoring.metrics")
def test_every_process_tells_the_figures_of_all_and_none_that_counts_ever_falls(several: Served) -> None:
    bearer, told = token(several), list[dict[str, float]]()
    before = figures(several).get(COUNTED, 0)
    for _ in range(10):
        assert answers(several, bearer, 3) == {200}
        told.append(figures(several))
    assert [each[COUNTED] - before for each in told] == list(range(3, 33, 3))
    for name in ("process_cpu_seconds_total", "bankdata_cache_hits_total", "bankdata_event_loop_lag_seconds_count"):
        assert all(name in each for each in told)
        assert [each[name] for each in told] == sorted(each[name] for each in told)
    last = told[-1]
    alone = max(each.memory_info().rss for each in workers(several))
    assert last["process_resident_memory_bytes"] > 1.5 * alone
    assert (last["bankdata_store_up"], last["bankdata_store_waiting"]) == (1, 0)
    assert last["bankdata_sync_overdue_seconds"] < 120, "every connection that is due is looked at each minute"
    assert time.time() - 60 < last["bankdata_scheduler_round_timestamp_seconds"] <= time.time()


@pytest.mark.engine("one server")
@pytest.mark.requirement("workers.watched")
def test_a_worker_that_begins_while_the_database_is_away_says_why_in_one_line_and_is_replaced(several: Served) -> None:
    url, before = ENGINE.url(several.folder / STORE), workers(several)
    allow = f"ALTER DATABASE {url.rpartition('/')[2]} ALLOW_CONNECTIONS"
    ENGINE.cluster.sql(f"{allow} false")
    try:
        before[0].send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while "another one takes its place" not in several.log.read_text().partition("cannot be used")[2]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        ENGINE.cluster.sql(f"{allow} true")
    [line] = {line.partition("ERROR ")[2] for line in several.log.read_text().splitlines() if "cannot be used" in line}
    assert line.startswith("bankdata The database at postgresql://127.0.0.1:")
    assert line.endswith("is not currently accepting connections")
    while len(now := {each.pid for each in workers(several)}) < 2:
        time.sleep(0.1)
    assert before[0].pid not in now
    assert answers(several, token(several), 20) == {200}


@pytest.mark.requirement("workers.watched")
def test_a_worker_that_dies_is_replaced_and_all_end_with_the_one_that_was_typed(several: Served) -> None:
    before, counted = workers(several), figures(several)[COUNTED]
    assert len(before) == 2
    before[0].send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        len(now := workers(several)) == 2 and before[0].pid not in {each.pid for each in now}
    ):
        time.sleep(0.1)
    assert len(workers(several)) == 2
    assert answers(several, token(several), 20) == {200}
    assert figures(several)[COUNTED] >= counted, "what a process counted stays, though it has ended"
    ended = workers(several)
    assert several.stop() == 0
    assert not any(each.is_running() for each in ended)


@pytest.mark.requirement("keys.sealed")
def test_another_secret_does_not_open_the_keys_and_a_copy_of_the_store_names_none(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(open_services(ENGINE.settings(folder))) as services:
        before = services.authorization.jwks()
        kid = services.authorization.rotate_keys()
        (sealed,) = [row["content"] for row in services.everybody.rows("SELECT content FROM documents")]
        assert "PRIVATE KEY" not in sealed
        opens = services.connection_keys.seal("what opens a bank", about="it")
        assert services.authorization.keys.path is None
    with closing(open_services(ENGINE.settings(folder))) as services:
        assert services.authorization.keys.signing_key().kid == kid
        assert before["keys"][0] in services.authorization.jwks()["keys"]
    new = "another secret of 32 characters or more"
    with closing(open_services(ENGINE.settings(folder, KEYS_SECRET=f"{new}\n{KEYS_SECRET}"))) as services:
        access.reseal_keys(services, Said())
    with closing(open_services(ENGINE.settings(folder, KEYS_SECRET=new))) as services:
        assert services.authorization.keys.signing_key().kid == kid
        assert services.connection_keys.open(opens, about="it") == "what opens a bank"
    for secret, reason in ((KEYS_SECRET, "does not open"), (" ", "is missing")):
        with pytest.raises(KeysUnusable, match=reason):
            open_services(ENGINE.settings(folder, KEYS_SECRET=secret))


@pytest.mark.requirement("rates.update")
def test_rates_that_one_process_installs_are_those_of_all(tmp_path: Path) -> None:
    day = max(bundled_rates()["day"].to_list()) + timedelta(days=1)
    (tmp_path / "rates.csv").write_text(f"Date,USD\n{day},1.25\n")
    one = ENGINE.settings(tmp_path / "one")
    two = replace(one, data_dir=tmp_path / "two")
    with closing(open_services(one)) as here, closing(open_services(two)) as there:
        users.add(here.everybody, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
        [before] = there.everybody.rows("SELECT state FROM users")
        upkeep.install_rates(here, Said(), file=str(tmp_path / "rates.csv"))
        assert here.rates["day"].max() == day
        assert there.rates["day"].max() == day
        [after] = there.everybody.rows("SELECT state FROM users")
        assert after["state"] > before["state"], "answers made of older rates end"


@pytest.mark.requirement("postgresql.backups")
def test_a_database_that_sorts_itself_is_not_compacted(tmp_path: Path) -> None:
    with (
        closing(open_services(ENGINE.settings(tmp_path / "one"))) as services,
        pytest.raises(CommandError, match=r"PostgreSQL keeps its tables in order by itself \(autovacuum\)\."),
    ):
        upkeep.compact(services, Said())


@pytest.mark.requirement("workers.watched")
def test_a_worker_ends_when_the_process_that_started_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    sentinel, other_end = Pipe()
    other_end.close()  # as that of a process that is gone
    monkeypatch.setattr("multiprocessing.parent_process", lambda: SimpleNamespace(sentinel=sentinel))
    monkeypatch.setattr("os.kill", lambda *arguments: sent.append(arguments))
    _end_with_parent()
    assert sent == [(os.getpid(), signal.SIGTERM)]
    sentinel.close()


@pytest.mark.requirement("workers.watched")
def test_a_worker_that_may_not_read_its_data_folder_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/data/keys.json")

    nothing: Any = None
    for name in ("logging.config.dictConfig", "signal.signal", "handlers.workers.begin_thread"):
        monkeypatch.setattr(name, lambda *_: None)
    monkeypatch.setattr("handlers.work.services.open_services", refused)
    with pytest.raises(SystemExit):
        _serve(ENGINE.settings(tmp_path), nothing, nothing, False, [0.0], 0)
    assert caplog.messages == ["[Errno 13] Permission denied: '/data/keys.json'"]


@pytest.mark.requirement("workers.clocks")
def test_check_names_tables_and_keys_that_are_gone_an_archive_that_fails_and_an_old_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ENGINE.settings(tmp_path / "data")
    with closing(open_services(settings)) as services:
        said = Said()
        upkeep.check(services, said)
        assert "backup     none is known" in said.lines
        services.everybody.execute("DROP TABLE corrections")
    with closing(open_services(settings)) as services:
        database = services.everybody
        archive = soundness.archive(database)
        assert archive is not None
        assert not archive.is_failing
        database.execute("ALTER TABLE accounts DROP CONSTRAINT accounts_pkey")
        store_facts.remember(database, soundness.BACKED_UP, "2026-01-02T03:04:05Z")
        monkeypatch.setattr(soundness, "archive", lambda _session: soundness.Archive(True, 0))
        with pytest.raises(CommandError, match="3 problems found"):
            upkeep.check(services, said)
        told = {name: value for name, _, value in _StoreFigures(services)._kept_safe()}
        monkeypatch.setattr(soundness, "archive", lambda _session: soundness.Archive(False, 6 * 2**30))
        with pytest.raises(CommandError, match="3 problems found"):
            upkeep.check(services, said)
    lacks, is_behind, is_old = said.lines[-3:]
    assert "The store lacks corrections, the primary key of accounts, which" in lacks
    assert any("fails to archive its WAL" in line for line in said.lines)
    assert "keeps 6,144 MB of WAL: archive_command or a replication slot is behind." in is_behind
    assert "The newest backup is of 2026-01-02" in is_old
    assert told == {
        "bankdata_archive_failing": True,
        "bankdata_wal_kept_bytes": 0,
        "bankdata_backup_timestamp_seconds": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp(),
    }


@pytest.mark.requirement("workers.watched")
def test_a_worker_without_a_beat_is_frozen_unless_it_starts_or_the_whole_machine_stood_still() -> None:
    watch, steps = Watch(), int(FROZEN_AFTER)
    for second in range(100, 102 + steps):
        watch.look(second)
    assert [watch.is_frozen(beat) for beat in (0, 99, 100, 101, 102)] == [False, True, True, False, False]
    watch.look(10_000)
    assert not watch.is_frozen(101)
    for second in range(10_001, 10_002 + steps):
        watch.look(second)
    assert watch.is_frozen(101)


@pytest.mark.requirement("workers.clocks")
def test_a_machine_whose_clock_is_400_days_ahead_deletes_nothing_and_tells_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_services(ENGINE.settings(tmp_path / "data"), for_server=True)) as services:
        right, now = services.clock.today(), services.clock.now_in_utc
        services.authorization.sessions.start()
        monkeypatch.setattr(services.clock, "now_in_utc", lambda: now() + timedelta(days=400))
        services.clock.offset += PLAN_EVERY
        services.scheduler.round()
        assert services.everybody.rows("SELECT count(*) AS n FROM oauth_sessions") == [{"n": 1}]
        assert (services.clock.today(), services.clock_watch.today()) == (right + timedelta(days=400), right)
        monkeypatch.undo()
        services.scheduler.round()
        assert (services.clock_watch.is_off(), services.clock_watch.today()) == (False, right)
