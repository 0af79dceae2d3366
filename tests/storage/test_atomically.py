"""Changes as a whole: what is tried again, how often, and what is told at last."""

import pytest

from storage import users
from storage.database import Conflict, ConstraintViolated, Database, Session, state_in
from tests.conftest import NOW


@pytest.mark.requirement("store.constraints")
def test_a_violated_constraint_is_tried_again_once_and_then_told(database: Database) -> None:
    database.execute("CREATE TABLE named (name TEXT PRIMARY KEY)")
    database.execute("INSERT INTO named VALUES ('eva')")
    attempts: list[str] = []

    def always(session: Session) -> None:
        attempts.append("insert")
        session.execute("INSERT INTO named VALUES ('eva')")

    with pytest.raises(ConstraintViolated):
        database.atomically(always)
    assert len(attempts) == 2


@pytest.mark.requirement("store.constraints")
def test_a_row_that_another_transaction_brought_meanwhile_is_seen_at_the_second_attempt(database: Database) -> None:
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
def test_a_conflict_is_tried_again_after_every_pause_and_then_told(
    database: Database, monkeypatch: pytest.MonkeyPatch
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
def test_a_transaction_raises_the_state_of_a_user_once_however_often_it_changes_something(database: Database) -> None:
    eva = users.add(database, name="Eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    before = database.state(eva.id)
    with database.transaction() as session:
        session.changes(eva.id)
        raised = state_in(session, eva.id)
        session.changes(eva.id)
    assert database.state(eva.id) == raised != before
