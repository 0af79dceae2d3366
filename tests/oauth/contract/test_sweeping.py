"""What expires is swept by one process of all, in nobody's request, and finds its rows by indexes."""

from datetime import timedelta
from typing import Any

import pytest

from auth.cleanup import Cleanup
from auth.lifetimes import SWEEP_EVERY
from storage.database import Conflict, StoreUnavailable
from storage.oauth import access_record


def sweeps(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> list[Cleanup]:
    """The sweeps from now on, by who sweeps."""
    done: list[Cleanup] = []
    monkeypatch.setattr(Cleanup, "sweep", lambda self: done.append(self))
    return done


@pytest.mark.requirement("oauth.what_is_stored")
def test_no_request_sweeps_for_others(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done = sweeps(fresh, monkeypatch)
    tokens = fresh.tokens()
    fresh.clock.forward(minutes=11)
    assert fresh.refresh(tokens["refresh_token"], tokens["client_id"]).status_code == 200
    assert done == []


@pytest.mark.requirement("oauth.what_is_stored")
def test_of_all_processes_one_sweeps_every_ten_minutes_also_where_a_clock_was_set_back(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = sweeps(fresh, monkeypatch)
    processes = [Cleanup(fresh.database, fresh.clock) for _ in range(3)]

    def look() -> int:
        before = len(done)
        for each in processes:
            each.sweep_when_due()
        return len(done) - before

    assert look() == 1
    fresh.clock.forward(seconds=SWEEP_EVERY.total_seconds() - 1)
    assert look() == 0
    fresh.clock.forward(seconds=1)
    assert look() == 1
    fresh.clock.forward(days=-1)
    assert look() == 1


@pytest.mark.requirement("oauth.what_is_stored")
def test_whoever_loses_the_turn_or_the_rows_leaves_them_to_the_next_sweep(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_work: Any) -> Any:
        raise Conflict("always")

    monkeypatch.setattr(fresh.database, "atomically", never)
    fresh.server.cleanup.sweep_when_due()
    fresh.server.cleanup.sweep()


@pytest.mark.requirement("oauth.what_is_stored")
def test_a_machine_that_is_away_keeps_its_record_alone(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.tokens()
    fresh.clock.forward(seconds=timedelta(days=31).total_seconds())

    def is_away(*_: Any) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(access_record, "remove_before", is_away)
    with pytest.raises(StoreUnavailable):
        fresh.server.cleanup.sweep()
    assert fresh.database.rows("SELECT id FROM oauth_grants") == []


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("oauth.what_is_stored")
def test_a_sweep_reads_what_it_deletes_and_nothing_else(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.database.execute(
        "INSERT INTO access_record (user_id, grant_id, operation, hour, client_id, client_name, calls, refusals,"
        " last_at) SELECT 'usr_' || n, '', 'signIn', $1, '', '', 1, 0, $1 FROM generate_series(1, 20000) AS s(n)",
        fresh.clock().replace(tzinfo=None),
    )
    from storage.engines.postgresql_session import Statements

    run, plans = Statements._run, dict[str, str]()

    def explained(session: Statements, sql: str, parameters: Any, *more: Any) -> Any:
        if sql.startswith("DELETE"):
            run(session, "SET LOCAL citus.propagate_set_commands = 'local'", ())  # a cluster plans elsewhere
            run(session, "SET LOCAL enable_seqscan = off", ())  # a small table is read whole
            plan = run(session, f"EXPLAIN {sql}", parameters).fetchall()
            plans[sql] = "\n".join(row[0] for row in plan)
        return run(session, sql, parameters, *more)

    monkeypatch.setattr(Statements, "_run", explained)
    fresh.server.cleanup.sweep()
    scans = [sql for sql, plan in plans.items() if "Seq Scan" in plan]
    assert (len(plans), [sql[:30] for sql in scans]) == (13, ["DELETE FROM oauth_clients WHER"])
