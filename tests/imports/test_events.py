"""What a commit changes is told by that commit: once, in order, and to whom it concerns."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from analytics.records import StatementRecord
from auth.principal import Coverage, Principal
from auth.scopes import ALL_SCOPES, READ_ACCOUNTS
from connectors import connector as source
from handlers.commands.control_socket import CommandError
from handlers.operations.covered_jobs import BANK_FAILED, hide_uncovered
from handlers.operations.events.event_shapes import NEEDS, EventIds, data_of, receives
from handlers.work.sync.outcomes import Outcomes
from storage import accounts, connections, jobs, users
from storage.database import Transaction
from storage.events import consent_notices, outbox
from storage.events.outbox import StoredEvent
from storage.undo_and_merge import rebuild
from tests.imports.household import Household
from tests.imports.test_change_feed import CARD, GIRO, Life, booked


@pytest.fixture
def life(eva: Household) -> Life:
    return Life(eva)


def told(life: Life, after: int = -1) -> list[StoredEvent]:
    """The events after this one; those of notices have tests of their own."""
    every = outbox.after(life.eva.services.everybody, life.eva.user.id, after, limit=1000)
    return [each for each in every if not each.type.startswith("notice.")]


def kinds(life: Life, after: int = -1) -> list[str]:
    return [each.type for each in told(life, after)]


def now_at(life: Life) -> int:
    return outbox.position(life.eva.services.everybody, life.eva.user.id)


def caller(life: Life, *account_ids: str, scopes: frozenset[str] = frozenset(ALL_SCOPES)) -> Principal:
    return Principal(
        user_id=life.eva.user.id,
        client_id="app",
        scopes=scopes,
        grant_id="grant",
        has_subscription=True,
        coverage=Coverage(frozenset(account_ids)) if account_ids else None,
    )


@pytest.mark.requirement("events.once")
def test_what_is_added_minus_what_is_removed_is_the_length_of_the_list(life: Life) -> None:
    first, second = booked("2026-03-02", "-5.00", "Rewe", "Brot"), booked("2026-03-03", "-7.00", "Kino", "Film")
    life.bring(GIRO, first, second, of=life.files)
    life.bring(CARD, booked("2026-03-04", "-9.00", "Spotify", "Abo"), of=life.files)
    life.bring(GIRO, first, replace(second, purpose="Film und noch viel mehr davon"), of=life.files)
    card = life.account(CARD)
    life.do("accounts hide", account=card, is_hidden=True)
    life.bring(CARD, booked("2026-03-05", "-1.00", "Spotify", "Abo"), of=life.files)
    assert card is not None
    hidden = life.eva.services.everybody
    assert len(told(life)[-1].data.get("accounts", {})) <= 1
    life.do("accounts show", account=card, is_hidden=False)
    changed = [each.data["accounts"] for each in told(life) if each.type == "transactions.changed"]
    sums = [sum(counts[place] for each in changed for counts in each.values()) for place in range(3)]
    owned = [each.id for each in accounts.of_user(hidden, life.eva.user.id)]
    rows = hidden.rows(
        "SELECT id FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[])", life.eva.user.id, owned
    )
    assert sums[0] - sums[2] == len(rows) == 4
    assert sums[1] == 1
    sequences = [each.sequence for each in told(life)]
    assert sequences == sorted(set(sequences))


@pytest.mark.requirement("events.once")
def test_an_import_is_told_with_its_end_and_one_that_is_undone_leaves_nothing(life: Life) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    assert kinds(life) == ["transactions.changed", "sync.completed"]
    [changed, completed] = told(life)
    assert changed.data == {"accounts": {life.account(GIRO): [1, 0, 0]}}
    assert (completed.subject, completed.data["newTransactions"]) == (life.live.id, 1)
    assert completed.recorded_at <= life.eva.services.clock.now()
    before = now_at(life)
    everybody = life.eva.services.everybody

    def fail(session: Transaction) -> None:
        connections.need_user(session, life.eva.user.id, life.live.id)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        everybody.atomically(fail)
    everybody.changes(life.eva.user.id)
    assert kinds(life, before) == []


@pytest.mark.requirement("events.once")
def test_a_failed_sync_and_what_it_does_to_its_connection(life: Life) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    before, services = now_at(life), life.eva.services
    job = jobs.start(
        services.everybody,
        user_id=life.eva.user.id,
        connection_id=life.live.id,
        cooldown=timedelta(),
        now=services.clock.now(),
    )
    assert job is not None
    Outcomes(services.store, services.clock).refuse(
        job, life.live, source.UserActionRequired("{host} wants a sign-in.", host="bank.example"), is_local=True
    )
    [status, failed] = told(life, before)
    assert (status.type, status.subject) == ("connection.status_changed", life.live.id)
    assert status.data == {"from": "ACTIVE", "to": "REAUTH_REQUIRED"}
    assert (failed.type, failed.data) == (
        "sync.failed",
        {"syncId": job.id, "error": "bank.example wants a sign-in."},
    )


@pytest.mark.requirement("events.notices")
def test_a_consent_that_ends_soon_is_noticed_once_for_each_of_three_days_and_the_nearest_alone(life: Life) -> None:
    services, user_id = life.eva.services, life.eva.user.id
    everybody, start = services.everybody, services.clock.now()
    connections.keep_consent(everybody, user_id, life.live.id, expires_at=start + timedelta(days=20))

    def told_at(days: float) -> list[tuple[str, object]]:
        before = now_at(life)
        services.clock.offset += start + timedelta(days=days) - services.clock.now()
        consent_notices.record(everybody, now=services.clock.now())
        consent_notices.record(everybody, now=services.clock.now())
        return [(each.type, each.data.get("notice")) for each in told(life, before)]

    assert told_at(1) == []
    assert told_at(6.5) == [("consent.expiring", 14)]
    assert told_at(19.5) == [("consent.expiring", 1)]
    [last] = [each for each in told(life) if each.data.get("notice") == 1]
    assert last.data["expiresAt"] == f"{(start + timedelta(days=20)).isoformat()}Z"
    connections.keep_consent(everybody, user_id, life.live.id, expires_at=start + timedelta(days=20, hours=3))
    assert told_at(19.6) == []
    connections.keep_consent(everybody, user_id, life.live.id, expires_at=start + timedelta(days=26))
    assert told_at(19.7) == [("consent.expiring", 7)]
    before = now_at(life)
    services.clock.offset += timedelta(days=10)
    connections.expire_consents(everybody, now=services.clock.now())
    assert [each.data for each in told(life, before)] == [{"from": "ACTIVE", "to": "EXPIRED"}]


@pytest.mark.requirement("events.alerts")
def test_a_balance_is_low_once_until_it_was_above_again(life: Life) -> None:
    everybody, user_id = life.eva.services.everybody, life.eva.user.id
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    giro = life.account(GIRO)
    assert giro is not None

    def becomes(balance: str) -> list[tuple[str, str]]:
        before = now_at(life)
        with everybody.transaction() as session:
            session.changes(user_id)
            session.execute(
                "UPDATE accounts SET balance = $3 WHERE user_id = $1 AND id = $2", user_id, giro, Decimal(balance)
            )
        return [(each.type, each.subject) for each in told(life, before)]

    assert becomes("500") == []
    life.do("alerts balance", account="Giro", amount="100")
    assert life.eva.notes[-1] == "A balance.low event is sent when the balance of Giro falls below 100 EUR."
    assert [becomes(each) for each in ("100", "99.99", "50", "200", "20")] == [
        [], [("balance.low", giro)], [], [], [("balance.low", giro)]]  # fmt: skip
    before = now_at(life)
    life.do("alerts balance", account="Giro", amount="10")
    assert kinds(life, before) == []
    life.do("alerts balance", account="Giro", amount="1000")
    assert kinds(life, before) == ["balance.low"]
    life.do("alerts balance", account="Giro", amount="off")
    assert life.eva.notes[-1] == "The balance of Giro is watched no more."
    assert [*becomes("5000"), *becomes("1")] == []
    life.do("alerts balance", account="Giro", amount="100")
    with everybody.transaction() as session:
        accounts.hide(session, user_id=user_id, account_id=giro, since=life.eva.services.clock.now())
    assert [*becomes("500"), *becomes("1")] == [], "a hidden account is not spoken of"
    for wrong in ("much", "NaN", "1e40", "1.123456"):
        with pytest.raises(CommandError, match="An amount is a number such as"):
            life.do("alerts balance", account="Giro", amount=wrong)


@pytest.mark.requirement("events.covered")
def test_a_grant_of_some_accounts_hears_of_these_alone(life: Life) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    life.bring(CARD, booked("2026-03-04", "-9.00", "Spotify", "Abo"))
    giro, card = life.account(GIRO), life.account(CARD)
    assert giro is not None
    assert card is not None
    everybody = life.eva.services.everybody
    of_giro, of_card, of_none = caller(life, giro), caller(life, card), caller(life, "acc_none")
    [first, synced, second, _] = told(life)
    assert data_of(everybody, of_giro, first) == {"accountIds": [giro], "added": 1, "modified": 0, "removed": 0}
    assert data_of(everybody, of_giro, second) is None
    said = data_of(everybody, of_card, synced)
    assert said is not None
    assert said["newTransactions"] == 0
    assert data_of(everybody, caller(life), synced) == {**synced.data, "connectionId": life.live.id}
    assert data_of(everybody, of_none, synced) is None
    gone = StoredEvent(
        sequence=1,
        type="sync.failed",
        subject=life.live.id,
        data={"syncId": "syn_gone", "error": "Spotify"},
        recorded_at=first.recorded_at,
    )
    assert data_of(everybody, of_card, gone) == {"syncId": "syn_gone", "error": None, "connectionId": life.live.id}
    status = StoredEvent(
        sequence=1,
        type="connection.status_changed",
        subject=life.live.id,
        data={"from": "ACTIVE", "to": "ERROR"},
        recorded_at=first.recorded_at,
    )
    assert data_of(everybody, of_card, status) == {"from": "ACTIVE", "to": "ERROR", "connectionId": life.live.id}
    low = StoredEvent(sequence=1, type="balance.low", subject=giro, data={}, recorded_at=first.recorded_at)
    assert data_of(everybody, of_giro, low) == {"accountId": giro}
    assert data_of(everybody, of_card, low) is None


@pytest.mark.requirement("events.scopes")
def test_an_event_is_for_who_has_its_scope(life: Life) -> None:
    narrow = caller(life, scopes=frozenset({READ_ACCOUNTS}))
    assert [each for each in NEEDS if not receives(narrow, each)] == [
        "transactions.changed",
        "subscription.new",
        "subscription.price_changed",
        "subscription.missed",
        "subscription.ended",
        "subscription.retracted",
    ]
    assert all(receives(caller(life), each) for each in NEEDS)


@pytest.mark.requirement("events.ids")
def test_an_id_is_good_for_its_user_its_life_of_the_store_and_thirty_days(life: Life) -> None:
    services = life.eva.services
    now = services.clock.now()
    ids = EventIds(incarnation=services.incarnation, user_id=life.eva.user.id)
    id_ = ids.write(42_000, now)
    assert ids.read(id_, now) == 42_000
    assert ids.read(id_, now + timedelta(days=29)) == 42_000
    assert ids.read(id_, now + timedelta(days=31)) is None
    assert EventIds(incarnation=services.incarnation, user_id="another").read(id_, now) is None
    assert ids.read(id_.replace("42000", "43000"), now) is None
    assert ids.read("evt_1", now) is None


@pytest.mark.requirement("events.once")
def test_events_are_kept_for_thirty_days_and_no_longer_than_their_user(life: Life) -> None:
    services, user_id = life.eva.services, life.eva.user.id
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    outbox.forget(services.everybody, before=services.clock.now() - outbox.REMEMBERED_FOR)
    assert len(told(life)) == 2
    outbox.forget(services.everybody, before=services.clock.now() + timedelta(seconds=1))
    assert told(life) == []
    life.bring(GIRO, booked("2026-03-03", "-5.00", "Rewe", "Brot"))
    services.everybody.atomically(lambda session: users.remove(session, user_id))
    assert services.everybody.rows("SELECT user_id FROM events") == []


@pytest.mark.requirement("grants.sync")
def test_a_narrowed_count_of_new_bookings_leaves_out_adjusting_entries_as_the_whole_one_does(life: Life) -> None:
    def stated(opening: str, first: str, closing: str, last: str) -> StatementRecord:
        return StatementRecord(
            opening=Decimal(opening),
            opening_date=date.fromisoformat(first),
            closing=Decimal(closing),
            closing_date=date.fromisoformat(last),
            is_authoritative=True,
        )

    january, march = stated("1000", "2025-12-31", "900", "2026-01-31"), stated("700", "2026-02-28", "650", "2026-03-31")
    life.bring(CARD, booked("2026-01-05", "-7", "Kino", "k"))
    life.bring(GIRO, booked("2026-01-05", "-100", "A", "a"), statement=january)
    life.bring(GIRO, booked("2026-03-05", "-50", "B", "b"), statement=march)
    database, user_id, giro = life.eva.services.everybody, life.eva.user.id, life.account(GIRO)
    assert giro is not None
    assert sum(row["is_adjusting_entry"] for row in life.eva.rows("transactions")) == 1
    job = jobs.newest_by_connection(database, user_id)[life.live.id]
    only = Coverage(accounts=frozenset({giro}))
    caller = Principal(
        user_id=user_id,
        client_id="app",
        scopes=frozenset(ALL_SCOPES),
        grant_id="g",
        has_subscription=True,
        coverage=only,
    )
    assert (job.new_transactions, hide_uncovered(database, caller, job).new_transactions) == (1, 1)


@pytest.mark.requirement("grants.covered")
def test_a_narrowed_job_tells_nothing_of_an_account_that_is_gone(life: Life) -> None:
    life.bring(GIRO, booked("2026-01-05", "-100", "A", "a"))
    life.bring(CARD, booked("2026-01-05", "-7", "Kino", "k"))
    database, user, giro, card = life.eva.services.everybody, life.eva.user, life.account(GIRO), life.account(CARD)
    job = jobs.newest_by_connection(database, user.id)[life.live.id]
    assert giro is not None
    assert card is not None
    job = replace(job, error="The card 4711 is locked")
    seen = hide_uncovered(database, caller(life, giro), job)
    assert (seen.new_transactions, seen.error) == (0, BANK_FAILED)
    now = life.eva.services.clock.now()
    database.atomically(lambda session: rebuild.delete(session, user=user, account_id=card, now=now))
    assert hide_uncovered(database, caller(life, giro), job) == seen
    assert hide_uncovered(database, caller(life), job) == job
