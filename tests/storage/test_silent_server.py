"""PostgreSQL that fails without a word, cannot be written to, or stands behind a pooler: whoever asks is told soon, and
uses it again as soon as it is back."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from typing import Any

import psycopg
import pytest

from storage import store_facts
from storage.boundary import carry
from storage.database import Session, StoreUnavailable, Transaction
from storage.engines import postgresql, postgresql_connections, postgresql_session, watched_connection
from storage.migrations import runner
from tests.conftest import NOW
from tests.engines import Cluster, OpenStore, free_port, opened
from tests.silence import between, pooled
from tests.storage.conftest import make_bank

pytestmark = pytest.mark.engine("postgresql")

TEN_SECONDS = 10.0  # within which whatever fails silently is over
END_OTHERS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
)
AWAY_AND_BACK = ["the database is away", "the database is back"]


@pytest.fixture(scope="module")
def mortal() -> Iterator[Cluster]:
    """A cluster that tests stop, silence and lock."""
    cluster = Cluster()
    with closing(opened(cluster.url("postgres"))) as database:
        runner.migrate(database, now=NOW)
    yield cluster
    cluster.remove()


def url_of(cluster: Cluster, port: int | None = None, more: str = "") -> str:
    return f"postgresql://bankdata@127.0.0.1:{port or cluster.port}/postgres{more}"


def again(work: Callable[[], Any]) -> float:
    """Try until it works, for at most ten seconds; how long it took."""
    began = time.monotonic()
    while True:
        try:
            work()
        except StoreUnavailable:
            assert time.monotonic() - began < TEN_SECONDS
            time.sleep(0.02)
        else:
            return time.monotonic() - began


def write(session: Session) -> None:
    store_facts.remember(session, "a", "b")


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(":")[0] for record in caplog.records if record.name == "bankdata.store"]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test waits for comes sooner than by default, which `tests.service.test_silent_database` waits for."""
    monkeypatch.setattr(postgresql, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(postgresql_session, "LOOK_SECONDS", 0.3)
    monkeypatch.setattr(postgresql, "WAIT_SECONDS", 0.3)
    monkeypatch.setattr(postgresql, "LOCK_SECONDS", 0.2)
    monkeypatch.setattr(watched_connection, "CANCEL_SECONDS", 0.3)


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.silence")
def test_what_still_acknowledges_and_says_nothing_is_given_up(
    mortal: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with between(mortal.port) as proxy, closing(opened(url_of(mortal, proxy.port), is_serving=True)) as database:
        with ThreadPoolExecutor(4) as several:  # so that the pool has several connections
            list(several.map(lambda _: write(database), range(8)))
        proxy.fall_silent()
        with ThreadPoolExecutor(4) as several:
            list(several.map(lambda _: again(lambda: write(database)), range(4)))
    assert said(caplog) == AWAY_AND_BACK


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.silence")
def test_a_server_process_that_is_stopped_is_given_up(mortal: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with closing(opened(mortal.url("postgres"), pool=1, is_serving=True)) as database:
        pid = database.rows("SELECT pg_backend_pid() AS pid")[0]["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable):
                write(database)
            again(lambda: write(database))
        finally:
            os.kill(pid, signal.SIGCONT)
    assert said(caplog) == AWAY_AND_BACK


def hold_twice(database: OpenStore, then: Callable[[int], None]) -> None:
    """Write much of a user in one transaction; after the first statement `then` hears which process is asked."""
    with database.transaction() as session:
        session.hold("nobody")
        [row] = session.rows("SELECT pg_backend_pid() AS pid")
        then(row["pid"])
        session.hold("nobody")


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.patience")
def test_who_has_patience_loses_it_where_nothing_comes_any_more(mortal: Cluster) -> None:
    with between(mortal.port) as proxy, closing(opened(url_of(mortal, proxy.port), is_serving=True)) as database:
        with pytest.raises(StoreUnavailable):
            hold_twice(database, lambda _pid: proxy.fall_silent())
        again(lambda: write(database))


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.patience")
def test_who_has_patience_loses_it_where_the_process_of_the_server_is_stopped(mortal: Cluster) -> None:
    stopped: list[int] = []

    def stop(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)

    with closing(opened(mortal.url("postgres"), is_serving=True)) as database:
        try:
            with pytest.raises(StoreUnavailable):
                hold_twice(database, stop)
        finally:
            os.kill(stopped[0], signal.SIGCONT)
        again(lambda: write(database))


@pytest.mark.requirement("postgresql.patience")
def test_who_writes_much_of_a_user_while_the_server_freezes_is_told_within_ten_seconds(mortal: Cluster) -> None:
    def hold(database: OpenStore) -> None:
        with database.transaction() as session:
            session.hold("nobody")
            session.rows("SELECT pg_sleep(60)::TEXT AS slept")

    with ThreadPoolExecutor(1) as other, closing(opened(mortal.url("postgres"), is_serving=True)) as database:
        holding = other.submit(hold, database)
        while not mortal.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            time.sleep(0.01)
        with mortal.frozen():
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                holding.result()
            assert time.monotonic() - began < TEN_SECONDS
        again(lambda: write(database))


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.patience")
def test_who_waits_for_another_import_of_a_user_waits_as_long_as_that_takes(
    mortal: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor(1) as other, closing(opened(mortal.url("postgres"), is_serving=True)) as database:
        eva = make_bank(database, NOW).user.id
        with database.transaction() as session:
            session.hold(eva)
            waiting = other.submit(carry(lambda: database.atomically(lambda again: again.hold(eva))))
            session.rows("SELECT pg_sleep(1.5)::TEXT AS slept")
            assert not waiting.done()
        waiting.result(TEN_SECONDS)
    assert said(caplog) == []


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.silence")
def test_a_statement_that_takes_too_long_is_cancelled_and_its_connection_kept(
    mortal: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(opened(mortal.url("postgres"), pool=1, is_serving=True)) as database:
        before = database.rows("SELECT pg_backend_pid() AS pid")
        with pytest.raises(StoreUnavailable):
            database.rows("SELECT pg_sleep(60)::TEXT AS slept")
        assert database.rows("SELECT pg_backend_pid() AS pid") == before
        with database.transaction() as session:
            session.hold("nobody")
            session.rows("SELECT pg_sleep(0.8)::TEXT AS slept")  # as statements of an import may
    assert said(caplog) == []


@pytest.mark.requirement("postgresql.silence")
def test_connections_of_before_are_no_sign_that_the_database_is_back_nor_that_it_is_away_again(
    mortal: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    def cut_off(session: Session) -> None:
        [row] = session.rows("SELECT pg_backend_pid() AS pid")
        mortal.sql(f"SELECT pg_terminate_backend({row['pid']}, 5000)")
        session.rows("SELECT 1 AS one")

    def both_cut_off(database: OpenStore) -> None:
        with database.transaction() as second:
            with pytest.raises(StoreUnavailable), database.transaction() as first:
                cut_off(first)
            cut_off(second)

    with closing(opened(mortal.url("postgres"), is_serving=True)) as database:
        with database.transaction() as ends_well:
            with pytest.raises(StoreUnavailable):
                both_cut_off(database)
            write(ends_well)
        assert said(caplog) == AWAY_AND_BACK[:1]
        write(database)
    assert said(caplog) == AWAY_AND_BACK


@pytest.mark.requirement("postgresql.unavailable")
def test_what_was_committed_is_no_failure_though_its_connection_ends_just_after(
    mortal: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_read_only = postgresql_connections.is_read_only

    def asked_too_late(connection: postgresql.Connection) -> bool:
        mortal.sql(END_OTHERS)
        return is_read_only(connection)

    monkeypatch.setattr(postgresql, "is_read_only", asked_too_late)
    with closing(opened(mortal.url("postgres"))) as database:
        mortal.sql(END_OTHERS)
        with pytest.raises(StoreUnavailable):
            write(database)
        write(database)


@pytest.mark.requirement("postgresql.silence")
def test_the_kernel_watches_the_peer_of_each_connection_unless_the_address_says_otherwise(mortal: Cluster) -> None:
    def watched(url: str) -> list[int]:
        arguments = postgresql_connections.arguments_of(url, prepare=True)
        with (
            closing(watched_connection.WatchedConnection.connect(url, **arguments)) as connection,
            socket.socket(fileno=os.dup(connection.pgconn.socket)) as own,
        ):
            options = (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            return [own.getsockopt(socket.IPPROTO_TCP, each) for each in options]

    assert watched(mortal.url("postgres")) == [5000, 5, 2, 3]
    assert watched(url_of(mortal, more="?tcp_user_timeout=9000&keepalives_idle=7")) == [9000, 7, 2, 3]


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.unavailable")
def test_a_database_that_takes_no_more_connections_is_said_to_be_away_and_why(
    mortal: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    mortal.sql("ALTER ROLE bankdata_app CONNECTION LIMIT 1")
    with closing(opened(mortal.app_url("postgres"), is_serving=True)) as database:
        with database.transaction() as session:
            session.rows("SELECT 1 AS one")
            with pytest.raises(StoreUnavailable):
                database.rows("SELECT 1 AS one")
        assert said(caplog) == AWAY_AND_BACK
    assert "too many connections for role" in caplog.text


@pytest.mark.requirement("postgresql.failover")
@pytest.mark.parametrize(
    ("more", "is_pooled"), [("", False), ("?target_session_attrs=any", False), ("?target_session_attrs=any", True)]
)
def test_a_database_that_turns_read_only_is_unavailable_until_it_can_be_written_to(
    mortal: Cluster, caplog: pytest.LogCaptureFixture, more: str, is_pooled: bool
) -> None:
    def write_until_said() -> None:  # a pooler may give the look after a write a connection that has ended
        write(database)
        if said(caplog)[-1:] != AWAY_AND_BACK[-1:]:
            raise StoreUnavailable

    with (
        pooled(mortal) if is_pooled else nullcontext(url_of(mortal)) as url,
        closing(opened(url + more, prepare=not is_pooled, is_serving=True)) as database,
    ):
        write(database)
        mortal.sql("ALTER DATABASE postgres SET default_transaction_read_only = on")
        try:
            mortal.sql(END_OTHERS)
            for _ in range(5):
                with pytest.raises(StoreUnavailable):
                    write(database)
                with suppress(StoreUnavailable):
                    assert database.rows("SELECT 1 AS one") == [{"one": 1}]
                    assert more, "no connection to what cannot be written to"
        finally:
            mortal.sql("BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT")
            mortal.sql(END_OTHERS)  # a pooler goes on with those that it has
        again(write_until_said)
    assert said(caplog) == AWAY_AND_BACK, "what is read meanwhile, where the address allows that, is no sign"


@pytest.mark.requirement("postgresql.failover")
def test_of_several_hosts_the_one_that_answers_is_used(mortal: Cluster) -> None:
    url = f"postgresql://bankdata@127.0.0.1:{free_port()},127.0.0.1:{mortal.port}/postgres"
    with closing(opened(url, is_serving=True)) as database:
        write(database)


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.failover")
def test_several_hosts_of_which_none_answers_are_told_in_one_sentence_each() -> None:
    ports = free_port(), free_port()
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    with pytest.raises(StoreUnavailable, match="cannot be used") as told:
        opened(f"postgresql://eva:secret@{hosts}/none")
    assert str(told.value).count("Connection refused") == 2
    assert hosts in str(told.value)
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.requirement("postgresql.pooler")
def test_behind_pgbouncer_a_database_that_stops_is_unavailable_and_used_again_when_it_is_back(
    mortal: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pooled(mortal) as url:
        with closing(opened(url, prepare=False, is_serving=True)) as database:
            goes_on = threading.Event()

            def interrupted() -> None:
                with database.transaction() as session:
                    write(session)
                    assert goes_on.wait(TEN_SECONDS)
                    session.rows("SELECT 1 AS one")

            with ThreadPoolExecutor(1) as other:
                cut_off = other.submit(interrupted)
                write_is_open = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"
                while not mortal.sql(write_is_open):
                    time.sleep(0.01)
                mortal.stop()
                goes_on.set()
                with pytest.raises(StoreUnavailable):
                    cut_off.result()
            for _ in range(5):
                with pytest.raises(StoreUnavailable):
                    write(database)
            with pytest.raises(StoreUnavailable, match="cannot be used: server"):
                opened(url, prepare=False)
            mortal.start()
            again(lambda: write(database))
            assert said(caplog) == AWAY_AND_BACK
            monkeypatch.setattr(database, "_patience", 0.2)
            assert database.rows("SHOW timezone") == [{"TimeZone": "UTC"}]
            with pytest.raises(StoreUnavailable):
                database.rows("SELECT pg_sleep(60)::TEXT AS slept")
            write(database)
        with pytest.raises(StoreUnavailable, match="unsupported startup parameter: options"):
            opened(url)


@pytest.mark.requirement("postgresql.silence")
def test_the_server_ends_what_a_process_that_died_or_froze_has_begun_for_a_user(mortal: Cluster) -> None:
    names = ("tcp_user_timeout", "tcp_keepalives_idle", "client_connection_check_interval")
    with closing(opened(mortal.url("postgres"))) as database:
        assert [database.rows(f"SHOW {name}")[0][name] for name in names] == ["10000", "5", "5s"]
        bank = make_bank(database, NOW)
        frozen = opened(url_of(mortal, more="?options=-c%20idle_in_transaction_session_timeout%3D200"))

        def holds_on(session: Transaction) -> None:
            session.hold(bank.user.id)
            database.atomically(lambda other: other.hold(bank.user.id))
            session.rows("SELECT 1 AS one")

        with closing(frozen), pytest.raises(StoreUnavailable):
            frozen.atomically(holds_on)


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("postgresql.migrations")
def test_a_migration_takes_its_time_but_does_not_wait_long_for_a_table_in_use(mortal: Cluster) -> None:
    with closing(opened(mortal.url("postgres"), is_serving=True)) as database:
        with database.migrating() as session:
            assert session.rows("SHOW statement_timeout") == [{"statement_timeout": "0"}]
            session.rows("SELECT pg_sleep(0.8)::TEXT AS slept")
        with psycopg.connect(mortal.url("postgres")) as other:
            other.execute("LOCK TABLE settings IN ACCESS SHARE MODE")
            with pytest.raises(StoreUnavailable, match="one has been in use"), database.migrating() as session:
                session.execute("ALTER TABLE settings ADD COLUMN more TEXT")
