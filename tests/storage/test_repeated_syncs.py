"""Syncs without news leave one contribution, however many they are, and what is made anew of the rest is the same."""

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from msgspec.structs import replace

from analytics.records import StatementRecord
from storage import jobs
from storage.database import Transaction, as_json
from storage.undo_and_merge import rebuild
from tests.storage.conftest import GIRO, Bank, bookings, dump, files_of

pytestmark = pytest.mark.requirement("store.repeated-syncs")

DAY = timedelta(days=1)
HELD = ("contributions", "contribution_bookings", "booking_wordings", "statements")
MADE_ANEW = ("transactions", "pending_transactions", "taken_back_transactions", "statements", "accounts")
BOOKED = """
    2026-10-22 | -900.00 | Miete   | Oktober | provider_id=1
    2026-11-02 | -2.80   | Cafe    | Kaffee  | provider_id=2
    2026-11-02 | -2.80   | Cafe    | Kaffee  | provider_id=3
    2026-11-19 | -5.00   | Shop    | Brot    | provider_id=4
"""
ROWS = f"{BOOKED.rstrip()}\n2026-11-20 | -7.00 | Tanke | Benzin | provider_id=5;status=pending"


def days(bank: Bank, *, balance: str = "100.00", last: int = 30) -> StatementRecord:
    """What a bank says today that is asked for so many days."""
    today = bank.now.date()
    return StatementRecord(
        told_from=today - last * DAY,
        told_until=today,
        closing=Decimal(balance),
        closing_date=today,
        is_pending_complete=True,
    )


def sync(bank: Bank, rows: str = ROWS, *, balance: str = "100.00", last: int = 30) -> None:
    """A day later the bank tells those of these rows that it is asked for."""
    bank.now += DAY
    statement = days(bank, balance=balance, last=last)
    assert statement.told_from is not None
    told = [each for each in bookings(rows) if each.booking_date >= statement.told_from]
    bank.bring(told, statement=statement)


def counts(bank: Bank) -> dict[str, int]:
    return {table: bank.database.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in HELD}


def anew(bank: Bank) -> None:
    ids = {row["id"] for row in bank.database.rows("SELECT id FROM accounts")}
    bank.database.atomically(
        lambda session: rebuild.rebuild(session, user=bank.user, account_ids=ids, job_id="anew", now=bank.now)
    )


@pytest.mark.long
def test_a_hundred_syncs_without_news_leave_as_much_as_two(bank: Bank) -> None:
    sync(bank, BOOKED)
    sync(bank, BOOKED)
    before = counts(bank)
    ids = bank.ids()
    for _ in range(100):
        sync(bank, BOOKED)
    after = counts(bank)
    assert after["contributions"] == before["contributions"] == 2
    assert all(after[table] <= before[table] for table in HELD)
    assert bank.ids() == ids
    told = bank.database.rows("SELECT told_from, told_until FROM statements WHERE told_from IS NOT NULL ORDER BY 1")
    for one, following in pairwise(told):
        assert following["told_from"] <= one["told_until"] + DAY, "no day between them is said to be untold"
    assert told[-1]["told_until"] == bank.now.date()


@pytest.mark.long
def test_what_is_made_anew_of_the_rest_is_what_was_there(bank: Bank) -> None:
    for day in range(60):
        news = f"\n{bank.now.date() + DAY} | -{day}.00 | Laden | {day} | provider_id=n{day}" if day % 7 == 3 else ""
        sync(bank, ROWS + news, last=20)
    assert counts(bank)["contributions"] < 30
    before = {table: rows for table, rows in dump(bank.database).items() if table in MADE_ANEW}
    anew(bank)
    after = dump(bank.database)
    assert {table: after[table] for table in before} == before


@pytest.mark.long
def test_an_account_without_any_booking_is_told_by_two_contributions(bank: Bank) -> None:
    for _ in range(50):
        sync(bank, "")
    assert counts(bank)["contributions"] == 2
    (gapless,) = bank.database.rows("SELECT min(told_from) AS first, max(told_until) AS last FROM statements")
    assert (gapless["first"], gapless["last"]) == (bank.now.date() - 79 * DAY, bank.now.date())


@pytest.mark.long
def test_a_bank_that_names_no_days_and_an_opening_balance_is_told_by_two_contributions(bank: Bank) -> None:
    for _ in range(20):
        bank.now += DAY
        whole = StatementRecord(
            opening=Decimal(1000),
            opening_date=bank.user.created_at.date(),
            closing=Decimal(100),
            closing_date=bank.now.date(),
        )
        bank.bring(bookings(BOOKED), statement=whole)
    assert counts(bank)["contributions"] == 2
    before = dump(bank.database)
    anew(bank)
    after = dump(bank.database)
    assert {table: after[table] for table in MADE_ANEW} == {table: before[table] for table in MADE_ANEW}


def _another_balance(bank: Bank) -> None:
    sync(bank, balance="99.00")


def _a_pending_one_that_ended(bank: Bank) -> None:
    sync(bank, BOOKED)


def _another_id(bank: Bank) -> None:
    sync(bank, ROWS.replace("provider_id=4", "provider_id=44"))


def _a_new_booking(bank: Bank) -> None:
    sync(bank, f"{ROWS}\n{bank.now.date() + DAY} | -1.00 | Neu | Neu | provider_id=9")


def _no_days(bank: Bank) -> None:
    bank.now += DAY
    bank.bring(bookings(ROWS), statement=StatementRecord(closing=Decimal(100), closing_date=bank.now.date()))


def _another_name(bank: Bank) -> None:
    bank.now += DAY
    bank.bring(bookings(ROWS), account=replace(GIRO, name="Other"), statement=days(bank))


def _a_file(bank: Bank) -> None:
    files_of(bank).bring(bookings("2026-11-03 | -3.00 | Kiosk | Zeitung"))


@pytest.mark.parametrize(
    "between",
    [
        _another_balance,
        _a_pending_one_that_ended,
        _another_id,
        _a_new_booking,
        _no_days,
        _another_name,
        _a_file,
    ],
)
@pytest.mark.sampled
def test_what_says_anything_else_is_kept(bank: Bank, between: object) -> None:
    sync(bank)
    assert callable(between)
    between(bank)
    sync(bank)
    assert counts(bank)["contributions"] == 3


def test_what_names_no_days_speaks_for_those_of_no_other(bank: Bank) -> None:
    sync(bank)
    sync(bank)
    _no_days(bank)
    assert counts(bank)["contributions"] == 3


def test_two_answers_of_one_moment_and_content_both_stay(bank: Bank) -> None:
    for _ in range(2):
        bank.bring(bookings(BOOKED), statement=days(bank), id_="the same content")
    sync(bank, BOOKED)
    assert counts(bank)["contributions"] == 3


@pytest.mark.parametrize(("age", "is_kept"), [(jobs.KEPT_FOR, True), (jobs.KEPT_FOR + timedelta(seconds=1), False)])
@pytest.mark.parametrize("has_failed", [False, True])
def test_a_job_that_brought_nothing_is_known_for_a_week(
    bank: Bank, age: timedelta, is_kept: bool, has_failed: bool
) -> None:
    def synced(new: int) -> jobs.Job:
        job = bank.database.atomically(
            lambda session: jobs.start(
                session,
                user_id=bank.user.id,
                connection_id=bank.connection.id,
                cooldown=timedelta(),
                now=bank.now,
            )
        )
        assert job is not None
        jobs.add_stored(bank.database, job, new_transactions=new, now=bank.now)
        if has_failed and not new:
            jobs.fail(bank.database, job, error="The bank is away.", now=bank.now)
        else:
            jobs.complete(bank.database, job, now=bank.now)
        return job

    brought, nothing = synced(3), synced(0)
    bank.now += age
    last = synced(0)
    found = {each.id for each in (brought, nothing, last) if jobs.find(bank.database, bank.user.id, each.id)}
    assert found == {brought.id, last.id} | ({nothing.id} if is_kept else set())


@pytest.mark.parametrize("claims", [None, "claims"], ids=["known by its identity", "known by its claims"])
@pytest.mark.parametrize("renewed", ["", "n"], ids=["same ids", "new ids"])
@pytest.mark.sampled
def test_bookings_whose_ids_were_made_by_other_rules_are_known(bank: Bank, claims: str | None, renewed: str) -> None:
    """As an older program stored them: what ids and fingerprints are made of has changed, what was said has not."""
    bank.bring(bookings(BOOKED), statement=days(bank))
    files = files_of(bank)
    files.bring(bookings("2026-11-10 | -1.00 | Kiosk | Zeitung"))

    def by_other_rules(session: Transaction) -> None:
        session.changes(bank.user.id)
        for number, row in enumerate(bank.rows("id, identity, claims, booking_date, amount")):
            identity = f"older:{number}#0" if claims else row["identity"]
            provider_id = row["identity"].removeprefix("provider:").partition("#")[0]
            known = {f"{bank.connection.id}:{provider_id}": f"{number:032x}"} if claims else None
            session.execute(
                "UPDATE transactions SET id = $3, identity = $4, fingerprint = $5, claims = $6"
                " WHERE user_id = $1 AND id = $2",
                bank.user.id,
                row["id"],
                f"txn_{number:032x}",
                identity,
                f"{number:032x}",
                as_json(known) if known else None,
            )

    bank.database.atomically(by_other_rules)
    before = bank.ids()
    for _ in range(2):
        sync(bank, f"{BOOKED}2026-11-10 | -1.00 | Kiosk | Zeitung".replace("provider_id=", f"provider_id={renewed}"))
        files.bring(bookings(BOOKED, provider_id=None))
        assert bank.ids() == before
