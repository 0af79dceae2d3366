"""Commits that are checked: what each leaves in a user's first answers is what the tables say."""

from collections.abc import Collection

import pytest

from storage import accounts, connections
from storage.changes import first_answers
from storage.database import Database, Session, Transaction
from tests.conftest import chance

__all__ = ["checked_commits"]


@pytest.fixture(autouse=True)
def checked_commits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every transaction of a test ends with this comparison: of each under `--long`, of an eighth in the gate."""
    if not request.config.getoption("--long") and chance(request.node.nodeid).randrange(8):
        return
    settle = first_answers.settle

    def checked(session: Session, user_id: str, *, before: int, state: int, written: Collection[str | None]) -> None:
        settle(session, user_id, before=before, state=state, written=written)
        check(session, user_id, state)

    monkeypatch.setattr(first_answers, "settle", checked)


def change(database: Database, user_id: str, sql: str, *parameters: object) -> None:
    """Change rows of a user by a statement of the test's own, as the product would have to."""

    def work(session: Transaction) -> None:
        session.changes(user_id)
        session.execute(sql, *parameters)

    database.atomically(work)


def check(session: Session, user_id: str, state: int) -> None:
    """The user's first answers of this state are what the tables say; somebody without accounts has none."""
    found = first_answers.find(session, user_id, state, with_bookings=True)
    owned = accounts.every(session, user_id)
    if not owned:
        assert found is None
        return
    assert found is not None
    assert (found.accounts, found.statuses) == (owned, connections.statuses(session, user_id))
    shown = [account.id for account in owned if not account.is_hidden]
    assert found.newest == first_answers.newest_of(session, user_id, shown)
