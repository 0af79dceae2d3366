"""Commits that are checked: what each leaves in a user's first answers is what the tables say."""

import zlib
from collections.abc import Collection, Sequence
from datetime import date
from io import BytesIO
from typing import cast

import msgspec
import polars as pl
import pytest

from analytics.frames import COUNTED
from analytics.refunds import refund_places
from handlers.work.sync import detection
from storage import accounts, connections, transactions
from storage.annotations import annotations
from storage.changes import first_answers
from storage.changes.first_answers import Recurring
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
    begun = first_answers.begin(session, user_id, with_bookings=True)
    found = begun.answers() if begun is not None and begun.state == state else None
    owned = accounts.every(session, user_id)
    if not owned:
        assert found is None
        return
    assert found is not None
    assert found.accounts == owned
    statuses = connections.statuses(session, user_id)
    assert all(found.statuses[each.connection_id] == statuses[each.connection_id] for each in owned)
    assert found.has_parts == annotations.has_parts(session, user_id)
    shown = [account for account in owned if not account.is_hidden]
    newest = first_answers.newest_of(session, user_id, shown, has_parts=found.has_parts)
    assert told(msgspec.msgpack.encode(found.newest)) == told(newest)
    if found.recurring is not None and found.recurring.account_ids == [each.id for each in shown]:
        check_recurring(session, user_id, found.recurring)
    if found.newest is not None and found.newest.recent is not None and found.newest.since is not None:
        check_recent(session, user_id, [each.id for each in shown], found.newest.recent, found.newest.since)


def check_recurring(session: Session, user_id: str, told: Recurring) -> None:
    """The recurring payments are those that the tables tell of the day on which they were found."""
    everything = accounts.everything(session, user_id)
    found = detection.find_recurring(cast(Database, session), user_id, everything, today=told.first, session=session)
    assert found == told


def told(newest: bytes) -> list[object]:
    """What first answers hold, frames as their rows: of equal frames neither the order of groups nor the bytes between
    columns are the same."""
    lines, *members = msgspec.msgpack.decode(newest)
    return [
        msgspec.msgpack.decode(zlib.decompress(lines)),
        *(
            sorted(pl.read_ipc_stream(BytesIO(zlib.decompress(each))).rows(), key=repr)
            if isinstance(each, bytes)
            else each
            for each in members
        ),
    ]


def check_recent(session: Session, user_id: str, shown: Sequence[str], here: pl.DataFrame, since: date) -> None:
    """The recent bookings are those of the table, and what is a refund among them is that among all bookings, whichever
    accounts are chosen."""
    every = transactions.everything(session, user_id, COUNTED).filter(pl.col("account_id").is_in(list(shown)))
    wanted, got = (each.filter(pl.col("booking_date") >= since).sort(*COUNTED) for each in (every, here))
    assert got.rows() == wanted.rows()
    credited = got.with_row_index("place")
    for chosen in (shown, *([each] for each in shown)):
        here_refunded, refunded = (refund_places(credited, each, selection=chosen) for each in (here, every))
        assert set(here_refunded) == set(refunded)
