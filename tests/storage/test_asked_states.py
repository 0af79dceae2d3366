"""States that the event loop asks of PostgreSQL by itself: never older than their question, and never waited for where
something is wrong."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from storage.engines import asked_states, distribution
from storage.engines.postgresql import PostgreSQL
from tests.engines import ENGINE, Cluster, OpenStore, opened
from tests.storage.conftest import Bank

pytestmark = pytest.mark.engine("one server")

SOON = 5.0  # seconds
CONNECTIONS = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'PREPARE state%' AND datname = $1"


async def told(database: OpenStore, user_id: str) -> int:
    """The state, as soon as a connection is there on which it can be asked."""
    deadline = time.monotonic() + SOON
    while (state := await database.state_without_thread(user_id)) is None:
        assert time.monotonic() < deadline, "no connection is opened"
        await asyncio.sleep(0.01)
    return state


def name_of(database: OpenStore) -> str:
    return str(database.rows("SELECT current_database() AS name")[0]["name"])


def asking(database: OpenStore) -> list[int]:
    """The processes of the server that answer the event loop."""
    return [row["pid"] for row in database.rows(CONNECTIONS, name_of(database))]


@contextmanager
def locked(database: OpenStore) -> Iterator[None]:
    """Meanwhile nobody is told any state."""
    with psycopg.connect(ENGINE.cluster.url(name_of(database))) as other:
        other.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.mark.requirement("postgresql.states")
def test_what_another_process_has_committed_is_told_to_whoever_asks_then(bank: Bank) -> None:
    with closing(opened(ENGINE.cluster.url(name_of(bank.database)))) as other:

        async def compared() -> None:
            await told(bank.database, bank.user.id)
            is_over = False

            async def others_ask() -> None:
                while not is_over:
                    assert await bank.database.state_without_thread(bank.user.id) is not None

            others = [asyncio.create_task(others_ask()) for _ in range(20)]
            for _ in range(50):
                await asyncio.to_thread(other.changes, bank.user.id)
                assert await bank.database.state_without_thread(bank.user.id) == other.state(bank.user.id)
            is_over = True
            await asyncio.gather(*others)

        asyncio.run(compared())


@pytest.mark.requirement("postgresql.states")
def test_each_is_told_the_state_of_the_one_who_was_asked_for(bank: Bank, new_bank: Callable[..., Bank]) -> None:
    people = [bank.user.id, *(new_bank(name).user.id for name in ("ada", "max")), "u_nobody"]
    for user_id in people:
        bank.database.changes(user_id)
    states = [bank.database.state(user_id) for user_id in people]

    async def all_at_once() -> list[int | None]:
        await told(bank.database, bank.user.id)
        return await asyncio.gather(*(bank.database.state_without_thread(user_id) for user_id in people * 50))

    assert states[-1] == 0
    assert len(set(states)) == 4
    assert asyncio.run(all_at_once()) == states * 50


@pytest.mark.requirement("postgresql.states")
def test_no_connection_of_the_pool_is_taken(bank: Bank) -> None:
    with closing(opened(ENGINE.cluster.url(name_of(bank.database)), pool=1)) as database:

        async def asked_beside_a_transaction() -> None:
            with database.transaction() as session:
                session.rows("SELECT 1 AS one")
                assert await told(database, bank.user.id) == bank.database.state(bank.user.id)

        asyncio.run(asked_beside_a_transaction())


@pytest.mark.requirement("postgresql.states")
def test_after_a_question_that_fails_states_are_told_again(bank: Bank) -> None:
    async def asked() -> None:
        await told(bank.database, bank.user.id)
        ENGINE.cluster.sql("ALTER TABLE users RENAME TO others", name_of(bank.database))
        assert await bank.database.state_without_thread(bank.user.id) is None
        ENGINE.cluster.sql("ALTER TABLE others RENAME TO users", name_of(bank.database))
        assert await told(bank.database, bank.user.id) == bank.database.state(bank.user.id)

    asyncio.run(asked())


@pytest.mark.requirement("postgresql.states")
@pytest.mark.parametrize("is_asked_meanwhile", [True, False])
def test_a_connection_that_the_server_ends_is_followed_by_another(bank: Bank, *, is_asked_meanwhile: bool) -> None:
    async def asked() -> None:
        await told(bank.database, bank.user.id)
        [process] = asking(bank.database)
        with locked(bank.database):
            waiting = [
                asyncio.create_task(bank.database.state_without_thread(bank.user.id))
                for _ in range(3 * is_asked_meanwhile)
            ]
            await asyncio.sleep(0)
            ENGINE.cluster.sql(f"SELECT pg_terminate_backend({process}, 5000)")
            assert await asyncio.gather(*waiting) == [None] * len(waiting)
            assert await bank.database.state_without_thread(bank.user.id) is None
        await told(bank.database, bank.user.id)
        [another] = asking(bank.database)
        assert another != process

    asyncio.run(asked())


@pytest.mark.requirement("postgresql.states")
def test_a_connection_that_ends_before_anything_is_asked_is_followed_by_another(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked_states, "OPEN_AGAIN_SECONDS", 0.0)
    states: Any = bank.database._asked_states  # type: ignore[attr-defined]  # which PostgreSQL has
    connect = states._connect

    def ended_by_the_server() -> psycopg.Connection[Any]:
        monkeypatch.setattr(states, "_connect", connect)
        ended: psycopg.Connection[Any] = connect()
        ENGINE.cluster.sql(f"SELECT pg_terminate_backend({ended.info.backend_pid}, 5000)")
        return ended

    ended_later = connect()
    ended_later.close()
    states._opened = ended_later
    monkeypatch.setattr(states, "_connect", ended_by_the_server)
    assert asyncio.run(told(bank.database, bank.user.id)) == bank.database.state(bank.user.id)
    assert states._connect is connect


@pytest.mark.requirement("postgresql.states")
def test_a_server_that_stops_and_comes_back_is_asked_again() -> None:
    mortal = Cluster()
    try:
        mortal.sql("CREATE TABLE users (id TEXT, state BIGINT)")
        mortal.sql("INSERT INTO users (id, state) VALUES ('eva', 7)")
        mortal.sql("CHECKPOINT")
        with closing(opened(mortal.url("postgres"))) as database:

            async def asked() -> None:
                assert await told(database, "eva") == 7
                mortal.stop()
                for _ in range(3):
                    assert await database.state_without_thread("eva") is None
                mortal.start()
                assert await told(database, "eva") == 7

            asyncio.run(asked())
    finally:
        mortal.remove()


@pytest.mark.requirement("postgresql.states")
def test_a_server_that_answers_nothing_is_not_waited_for(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_states, "SILENT_SECONDS", 0.2)

    async def asked() -> None:
        await told(bank.database, bank.user.id)
        with locked(bank.database):
            many = [bank.database.state_without_thread(f"{number}".rjust(10_000)) for number in range(1_000)]
            assert set(await asyncio.gather(*many)) == {None}
        await told(bank.database, bank.user.id)

    asyncio.run(asked())


@pytest.mark.requirement("postgresql.states")
def test_what_is_answered_late_is_waited_for(bank: Bank) -> None:
    async def asked() -> None:
        await told(bank.database, bank.user.id)
        with locked(bank.database):
            many = [
                asyncio.create_task(bank.database.state_without_thread(f"{number}".rjust(10_000)))
                for number in range(1_000)
            ]
            await asyncio.sleep(0)
        assert set(await asyncio.gather(*many)) == {0}  # more than a socket takes at once

    asyncio.run(asked())


@pytest.mark.requirement("postgresql.states")
def test_a_server_that_has_answered_others_lately_is_waited_for(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_states, "SILENT_SECONDS", 0.5)

    async def asked() -> None:
        state = await told(bank.database, bank.user.id)
        line: Any = bank.database._asked_states._line  # type: ignore[attr-defined]  # which PostgreSQL has
        first = line._watch
        with locked(bank.database):
            waiting = asyncio.create_task(bank.database.state_without_thread(bank.user.id))
            while line._watch is first:
                await asyncio.sleep(0.01)
        assert await waiting == state
        while line._watch is not None:  # nobody waits
            await asyncio.sleep(0.01)
        assert await bank.database.state_without_thread(bank.user.id) == state
        line._connection.close()
        assert await bank.database.state_without_thread(bank.user.id) is None

    asyncio.run(asked())


@pytest.mark.requirement("postgresql.states")
def test_who_leaves_takes_no_answer_from_others(bank: Bank) -> None:
    async def asked() -> None:
        state = await told(bank.database, bank.user.id)
        with locked(bank.database):
            first, second = (asyncio.create_task(bank.database.state_without_thread(bank.user.id)) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
        assert await second == state

    asyncio.run(asked())


@pytest.mark.requirement("postgresql.states")
def test_each_event_loop_has_a_connection_of_its_own_and_the_end_of_the_store_ends_it(bank: Bank) -> None:
    name = name_of(bank.database)
    with closing(opened(ENGINE.cluster.url(name))) as database:
        for _ in range(2):
            assert asyncio.run(told(database, bank.user.id)) == bank.database.state(bank.user.id)
        assert len(asking(bank.database)) == 1

    async def closed_meanwhile() -> None:
        with closing(opened(ENGINE.cluster.url(name))) as other:
            await told(other, bank.user.id)
            with locked(bank.database):
                waiting = asyncio.create_task(other.state_without_thread(bank.user.id))
                await asyncio.sleep(0)
                other.close()
                assert await waiting is None
            assert await other.state_without_thread(bank.user.id) is None

    asyncio.run(closed_meanwhile())


@pytest.mark.requirement("postgresql.states")
@pytest.mark.parametrize("is_late", [True, False])
def test_a_connection_that_nobody_asks_any_more_is_closed(bank: Bank, *, is_late: bool) -> None:
    opened: list[psycopg.Connection[Any]] = []
    goes_on, is_opened = threading.Event(), threading.Event()

    def connect() -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(ENGINE.cluster.url(name_of(bank.database)), autocommit=True))
        is_opened.set()
        assert goes_on.wait(SOON)
        return opened[0]

    async def asked_once() -> None:
        assert await states.of(bank.user.id) is None

    states = asked_states.AskedStates(connect)
    asyncio.run(asked_once())
    assert is_opened.wait(SOON)
    if is_late:
        states.close()
    goes_on.set()
    for opening in [each for each in threading.enumerate() if each.name == "states"]:
        opening.join(SOON)
    states.close()
    assert opened[0].closed


@pytest.mark.requirement("postgresql.states")
@pytest.mark.parametrize("is_pooled", [True, False])
def test_behind_a_pooler_and_of_several_machines_nothing_is_asked_this_way(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, *, is_pooled: bool
) -> None:
    monkeypatch.setattr(distribution, "is_distributed", lambda _database: not is_pooled)
    with closing(PostgreSQL(ENGINE.cluster.url(name_of(bank.database)), prepare=not is_pooled)) as database:

        async def asked() -> None:
            for _ in range(3):
                assert await database.state_without_thread(bank.user.id) is None

        asyncio.run(asked())
        assert asking(bank.database) == []
