"""Changes as a whole: what is tried again, how often, and what is told at last."""

import threading
import time

import pytest

from analytics.classification.rules import ChosenCategory
from storage import rules, users
from storage.database import Conflict, ConstraintViolated, Session, Transaction, state_in
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.storage.conftest import Bank


@pytest.mark.requirement("store.constraints")
def test_a_violated_constraint_is_tried_again_for_a_moment_and_then_told(database: OpenStore) -> None:
    database.execute("CREATE TABLE named (name TEXT PRIMARY KEY)")
    database.execute("INSERT INTO named VALUES ('eva')")
    attempts: list[str] = []

    def always(session: Session) -> None:
        attempts.append("insert")
        session.execute("INSERT INTO named VALUES ('eva')")

    with pytest.raises(ConstraintViolated):
        database.atomically(always)
    assert len(attempts) == 7  # six pauses, together 88 ms


@pytest.mark.requirement("store.constraints")
def test_a_row_that_another_transaction_brought_meanwhile_is_seen_at_the_second_attempt(database: OpenStore) -> None:
    database.execute("CREATE TABLE named (name TEXT PRIMARY KEY)")
    found: list[int] = []

    def once(session: Session) -> None:
        found.append(len(session.rows("SELECT name FROM named")))
        if not found[0] and len(found) == 1:
            database.execute("INSERT INTO named VALUES ('eva')")
        if not found[-1]:
            session.execute("INSERT INTO named VALUES ('eva')")

    database.atomically(once)
    assert found == [0, 1]


@pytest.mark.requirement("store.constraints")
def test_a_violated_constraint_after_many_conflicts_is_tried_again_too(database: OpenStore) -> None:
    failures = [*[Conflict()] * 6, ConstraintViolated()]  # the winner has committed, and is not visible yet

    def work(_session: Session) -> str:
        if failures:
            raise failures.pop(0)
        return "done"

    assert database.atomically(work) == "done"


@pytest.mark.requirement("store.constraints")
def test_a_conflict_is_tried_again_after_every_pause_and_then_told(
    database: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.database.CONFLICT_PAUSES", (0.0, 0.0))
    for conflicts in (2, 3):
        attempts: list[int] = []

        def work(_session: Session, most: int = conflicts, attempts: list[int] = attempts) -> str:
            attempts.append(1)
            if len(attempts) <= most:
                raise Conflict
            return "done"

        if conflicts == 2:
            assert database.atomically(work) == "done"
        else:
            with pytest.raises(Conflict):
                database.atomically(work)
        assert len(attempts) == 3


@pytest.mark.requirement("cache.state")
def test_a_transaction_raises_the_state_of_a_user_once_however_often_it_changes_something(database: OpenStore) -> None:
    eva = users.add(database, name="Eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    before = database.state(eva.id)
    with database.transaction() as session:
        session.changes(eva.id)
        raised = state_in(session, eva.id)
        session.changes(eva.id)
    assert database.state(eva.id) == raised != before


@pytest.mark.requirement("postgresql.snapshot")
@pytest.mark.parametrize("by", ["hold", "changes"])
def test_the_second_of_two_transactions_of_a_user_waits_before_it_works(bank: Bank, by: str) -> None:
    has_begun, order = threading.Event(), []

    def second() -> None:
        def work(session: Transaction) -> None:
            has_begun.set()
            getattr(session, by)(bank.user.id)
            order.append("second")
            session.changes(bank.user.id)

        bank.database.atomically(work)

    thread = threading.Thread(target=second)
    with bank.database.transaction() as session:
        session.hold(bank.user.id)
        thread.start()
        has_begun.wait(60)
        time.sleep(0.1)
        order.append("first")
        session.changes(bank.user.id)
    thread.join(60)
    assert order == ["first", "second"]


@pytest.mark.requirement("postgresql.snapshot")
def test_whoever_waited_sees_what_the_first_one_brought(bank: Bank) -> None:
    seen: list[str] = []

    def also() -> None:
        def work(session: Transaction) -> None:
            session.hold(bank.user.id)
            known = rules.corrections(session, bank.user.id)
            seen[:] = known
            rules.correct(session, bank.user.id, f"merchant:{len(known)}", ChosenCategory("DINING"))

        bank.database.atomically(work)

    threads = [threading.Thread(target=also) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(rules.corrections(bank.database, bank.user.id)) == [f"merchant:{number}" for number in range(8)]
    assert len(seen) == 7


@pytest.mark.requirement("store.constraints")
def test_a_statement_on_its_own_comes_after_the_transaction_that_was_first(bank: Bank) -> None:
    late = threading.Thread(target=lambda: users.set_password_hash(bank.database, bank.user.id, "late"))
    with bank.database.transaction() as session:
        users.set_password_hash(session, bank.user.id, "first")
        late.start()
        time.sleep(0.1)
    late.join(60)
    found = users.find(bank.database, bank.user.id)
    assert found is not None
    assert found.password_hash == "late"
