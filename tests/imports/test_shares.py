"""Shares between two people: handed over whole, kept up to date, gone when they end, and for no app of the receiver."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from analytics.classification.rules import ChosenCategory
from analytics.notices.found import Finding
from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from auth.tokens.access_check import principal_of
from handlers.work.services import Services, open_services
from handlers.work.sync import household
from storage import accounts, connections, transactions, users
from storage.annotations import annotations, of_shares
from storage.annotations.annotation import Annotation
from storage.database import Transaction
from storage.importing import derivation, ingest, same_accounts
from storage.importing.batches import read_batch
from storage.notices import stored
from storage.oauth import grants, shares
from storage.oauth.grants import EVERYTHING, Terms
from storage.oauth.shares import Share
from storage.row_owners import OF_USERS
from storage.undo_and_merge import handed_over, merges, rebuild
from storage.undo_and_merge.merges import NotOneAccount
from storage.undo_and_merge.rebuild import SharedByOthers
from storage.users import User
from tests.engines import ENGINE

GIRO = AccountRecord(stable_key="DE89370400440532013000", iban="DE89370400440532013000", currency="EUR", name="Giro")
VISA = AccountRecord(stable_key="DE12500105170648489890", iban="DE12500105170648489890", currency="EUR", name="Visa")
SPAR = AccountRecord(stable_key="DE75512108001245126199", iban="DE75512108001245126199", currency="EUR", name="Spar")


def booking(day: str, amount: str, purpose: str, **more: Any) -> TransactionRecord:
    said = {"currency": "EUR", "counterpart_name": "Shop", **more}
    return TransactionRecord(booking_date=date.fromisoformat(day), amount=Decimal(amount), purpose=purpose, **said)


def closing(amount: str, day: str = "2026-11-20") -> StatementRecord:
    return StatementRecord(closing=Decimal(amount), closing_date=date.fromisoformat(day))


@dataclass
class Home:
    """Two people of one store, and what is brought to them."""

    services: Services
    eva: User
    ben: User
    brought: int = 0

    def bring(self, user: User, *records: Record, connector: str = "demo", bank: str = "Bank") -> str:
        """Import what a bank, or a file (`files`), tells; returns the id of the import."""
        self.brought += 1
        own, now = self.services.of(user.id), self.services.clock.now()
        job_id = f"job{self.brought}"
        connection = connections.add(
            own, user_id=user.id, user_name=user.name, connector=connector, bank_name=bank, settings={}, now=now
        )
        batch = read_batch(Batch(id=job_id, records=iter(records)), today=self.services.clock.today())
        self.services.alone(
            user.id,
            lambda session: ingest.store(
                session, user=user, connection=connection, job_id=job_id, batch=batch, now=now
            ),
        )
        return job_id

    def share(self, terms: Terms = EVERYTHING, **more: Any) -> Share:
        """What Eva offers and Ben accepts."""
        life = self.services.incarnation.id
        made = self.services.authorization.shares.offer(self.eva, "ben", terms=terms, ends_at=None, life=life, **more)
        assert isinstance(made, Share)
        assert self.services.authorization.shares.accept(self.ben, made.id)
        return made

    def merge(self, user: User, source_id: str, target_id: str) -> None:
        """This person says that two accounts of theirs are one."""
        now = self.services.clock.now()
        self.services.alone(
            user.id,
            lambda session: merges.merge(session, user=user, source_id=source_id, target_id=target_id, now=now),
        )

    def undo(self, user: User, job: str) -> None:
        """Take back what this import of a bank brought."""
        self.services.everybody.execute(
            "INSERT INTO jobs (id, user_id, connection_id, status, created_at, updated_at) SELECT $1, user_id, id,"
            " 'completed', created_at, created_at FROM connections WHERE user_id = $2 AND connector = 'demo'",
            *(job, user.id),
        )
        now = self.services.clock.now()
        self.services.alone(user.id, lambda session: rebuild.undo(session, user=user, job_id=job, now=now))

    def settle(self) -> None:
        """What the scheduler does within a few seconds."""
        for _ in range(4):
            self.services.households.round()

    def rows(self, user: User) -> list[tuple[Any, ...]]:
        """The bookings of a person: account, day, amount, purpose."""
        own = self.services.of(user.id)
        names = {each.id: each.iban for each in accounts.every(own, user.id)}
        found = own.rows(
            "SELECT account_id, booking_date, amount, purpose FROM transactions WHERE user_id = $1", user.id
        )
        return sorted((names[row["account_id"]], row["booking_date"], row["amount"], row["purpose"]) for row in found)

    def account(self, user: User, iban: str | None) -> str:
        (found,) = (each.id for each in accounts.every(self.services.of(user.id), user.id) if each.iban == iban)
        return found

    def covers(self, account_id: str, client_id: str = "app", terms: Terms = EVERYTHING) -> bool:
        """Whether an app of Ben's with such a grant may read this account."""
        server = self.services.authorization
        everybody = self.services.everybody
        with everybody.transaction() as session:
            grant = server.grants.add(session, user_id=self.ben.id, client_id=client_id, scope="a", terms=terms)
        standing = grants.standing(everybody, grant.id, self.ben.id, grants.held_by_all(everybody))
        assert standing is not None
        caller = principal_of(standing, client_id=client_id, scopes=frozenset(), grant_id=grant.id)
        return caller.covers(account_id)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    services = open_services(ENGINE.settings(tmp_path / "data"))
    made = [
        users.add(
            services.everybody, name=name, password_hash=None, has_subscription=True, home_currency="EUR",
            now=services.clock.now(),
        )
        for name in ("eva", "ben")
    ]  # fmt: skip
    opened = Home(services, made[0], made[1])
    yield opened
    opened.services.close()


@pytest.fixture
def two_accounts(home: Home) -> Home:
    """Eva's bank has told two accounts, a file one of them."""
    home.bring(home.eva, GIRO, booking("2026-11-02", "-5.00", "a"), booking("2026-11-03", "-6.00", "b"), closing("89"))
    home.bring(home.eva, SPAR, booking("2026-11-04", "7.00", "c"), closing("7"))
    home.bring(home.eva, GIRO, booking("2026-10-30", "100.00", "d"), closing("100", "2026-10-31"), connector="files")
    return home


@pytest.mark.requirement("household.shares")
def test_what_is_shared_is_the_receivers_to_the_cent_under_the_givers_name(two_accounts: Home) -> None:
    home = two_accounts
    home.share()
    assert home.rows(home.ben) == []
    home.settle()
    assert home.rows(home.ben) == home.rows(home.eva)
    assert len(home.rows(home.ben)) == 4
    own = home.services.of(home.ben.id)
    assert {(each.name, each.balance) for each in accounts.every(own, home.ben.id)} == {
        ("Giro (eva)", Decimal("89")),
        ("Spar (eva)", Decimal("7")),
    }
    assert {each.bank_name for each in connections.of_user(own, home.ben.id)} == {"eva"}


@pytest.mark.requirement("household.shares")
def test_later_bookings_come_and_what_the_giver_takes_back_leaves(two_accounts: Home) -> None:
    home = two_accounts
    home.share()
    home.settle()
    job = home.bring(home.eva, GIRO, booking("2026-11-05", "-9.00", "e"), closing("80"))
    home.settle()
    assert home.rows(home.ben) == home.rows(home.eva)
    assert len(home.rows(home.ben)) == 5
    home.undo(home.eva, job)
    home.settle()
    assert home.rows(home.ben) == home.rows(home.eva)
    assert len(home.rows(home.ben)) == 4


@pytest.mark.requirement("household.shares")
def test_one_account_of_two_is_shared_and_narrowing_takes_it_away(two_accounts: Home) -> None:
    home = two_accounts
    giro = home.account(home.eva, GIRO.iban)
    made = home.share(Terms(accounts=(giro,)))
    home.settle()
    assert home.rows(home.ben) == [row for row in home.rows(home.eva) if row[0] == GIRO.iban]
    spar = Terms(accounts=(home.account(home.eva, SPAR.iban),))
    home.services.authorization.shares.change(home.eva, made, terms=spar, ends_at=None, pass_on=False, is_wider=True)
    home.settle()
    assert home.rows(home.ben) == [row for row in home.rows(home.eva) if row[0] == SPAR.iban]


def tables_with(home: Home, user: User, word: str) -> list[str]:
    """The tables of people that have this word in a row of this person."""
    everybody = home.services.everybody
    return [
        table
        for table, column in OF_USERS.items()
        if word in str(everybody.rows(f"SELECT * FROM {table} WHERE {column} = $1", user.id))
    ]


@pytest.mark.requirement("household.shares")
@pytest.mark.parametrize("who", ["eva", "ben"])
def test_after_the_end_nothing_is_left_and_the_same_share_again_has_the_same_ids(two_accounts: Home, who: str) -> None:
    home = two_accounts
    made = home.share()
    home.settle()
    own = home.services.of(home.ben.id)
    ids = sorted(row["id"] for row in own.rows("SELECT id FROM transactions WHERE user_id = $1", home.ben.id))
    now = home.services.clock.now()
    with own.transaction() as session:
        booked = transactions.find(session, home.ben.id, ids[0], may_be_hidden=False)
        assert booked is not None
        annotations.say(session, home.ben.id, Annotation(ids[0], note="between us"), now=now)
    assert home.services.authorization.shares.end(home.eva if who == "eva" else home.ben, made.id)
    home.settle()
    assert home.rows(home.ben) == []
    assert accounts.every(own, home.ben.id) == []
    for word in ("Shop", "between us", "Giro", "DE89370400440532013000", "eva"):
        assert tables_with(home, home.ben, word) == [], word
    assert home.services.everybody.rows("SELECT id FROM oauth_shares") == []
    home.share()
    home.settle()
    again = sorted(row["id"] for row in own.rows("SELECT id FROM transactions WHERE user_id = $1", home.ben.id))
    assert again == ids


@pytest.mark.requirement("household.shares")
def test_no_app_of_the_receiver_may_read_it_but_the_page(two_accounts: Home) -> None:
    home = two_accounts
    home.bring(home.ben, AccountRecord(stable_key="x", currency="EUR", name="Own"), booking("2026-11-02", "-1", "own"))
    home.share()
    home.settle()
    from auth.apps.clients import PAGE

    giro, own = home.account(home.ben, GIRO.iban), home.account(home.ben, None)
    assert home.covers(own)
    assert not home.covers(giro)
    assert not home.covers(giro, terms=Terms(accounts=(giro, own)))
    assert home.covers(own, terms=Terms(accounts=(giro, own)))
    assert not home.covers(giro, terms=Terms(accounts=("other",), all_but=True))
    assert home.covers(giro, client_id=PAGE)


@pytest.mark.requirement("household.shares")
def test_apps_are_kept_out_before_anything_is_handed_over(two_accounts: Home) -> None:
    home = two_accounts
    made = home.share()
    home.services.households.round()
    kept = shares.find(home.services.everybody, made.id)
    assert kept is not None
    assert len(kept.held) == 2
    assert home.rows(home.ben) == []
    home.services.households.round()
    assert len(home.rows(home.ben)) == 4


@pytest.mark.requirement("household.shares")
def test_a_joint_account_that_the_receiver_had_is_one_stays_theirs_and_is_for_their_apps(two_accounts: Home) -> None:
    home = two_accounts
    home.bring(home.ben, GIRO, booking("2026-11-02", "-5.00", "a"), booking("2026-11-03", "-6.00", "b"), closing("89"))
    before = home.rows(home.ben)
    made = home.share()
    home.settle()
    assert home.rows(home.ben) == home.rows(home.eva)
    assert home.covers(home.account(home.ben, GIRO.iban))
    home.services.authorization.shares.end(home.eva, made.id)
    home.settle()
    assert home.rows(home.ben) == before


@pytest.mark.requirement("household.shares")
def test_a_share_says_nothing_of_a_joint_account_that_the_receivers_apps_see(two_accounts: Home) -> None:
    home = two_accounts
    home.bring(home.ben, replace(GIRO, name=None), booking("2026-11-02", "-5.00", "a"), closing("89"))
    (before,) = accounts.of_user(home.services.everybody, home.ben.id)
    home.share()
    home.settle()
    after = {each.id: each for each in accounts.of_user(home.services.everybody, home.ben.id)}[before.id]
    own = ("name", "kind", "bic", "bank_name", "iban")
    assert [getattr(after, name) for name in own] == [getattr(before, name) for name in own]


@pytest.mark.requirement("household.shares")
@pytest.mark.parametrize("pass_on", [False, True])
def test_with_a_share_goes_what_was_told_of_its_accounts_and_of_its_bookings_in_a_joint_one(
    two_accounts: Home, pass_on: bool
) -> None:
    home = two_accounts
    home.bring(home.ben, GIRO, booking("2026-11-02", "-5.00", "a"), booking("2026-11-03", "-6.00", "b"), closing("89"))
    made = home.share(pass_on=pass_on)
    home.settle()
    own, today = home.services.of(home.ben.id), home.services.clock.today()
    rows = own.rows("SELECT id, account_id, purpose FROM transactions WHERE user_id = $1", home.ben.id)
    for row in (row for row in rows if row["purpose"] in "acd"):
        found = Finding(
            kind="payment.failed",
            subject=row["id"],
            day=today,
            message="payment.failed",
            arguments={"name": f"payee of {row['purpose']}"},
            account_ids=(row["account_id"],),
            transaction_ids=(row["id"],),
        )
        own.atomically(partial(stored.add, user_id=home.ben.id, each=found, today=today))
    assert len(stored.of_kinds(own, home.ben.id, ["payment.failed"])) == 3
    home.services.authorization.shares.end(home.eva, made.id)
    home.settle()
    [left] = stored.of_kinds(own, home.ben.id, ["payment.failed"])
    assert left.content["arguments"] == {"name": "payee of a"}


@pytest.mark.requirement("household.shares")
def test_a_shared_account_that_a_bank_of_the_receiver_tells_becomes_theirs_a_file_makes_none_theirs(
    two_accounts: Home,
) -> None:
    home = two_accounts
    home.share()
    home.settle()
    giro = home.account(home.ben, GIRO.iban)
    home.bring(home.ben, GIRO, booking("2026-11-02", "-5.00", "a"), closing("89"), connector="files")
    home.settle()
    assert not home.covers(giro)
    home.bring(home.ben, GIRO, booking("2026-11-02", "-5.00", "a"), closing("89"))
    home.settle()
    assert home.covers(giro)


@pytest.mark.requirement("household.shares")
def test_a_shared_account_goes_as_far_below_zero_as_its_giver_says_unless_the_receiver_says_otherwise(
    two_accounts: Home,
) -> None:
    home, line = two_accounts, Decimal(2000)
    eva, ben = home.services.of(home.eva.id), home.services.of(home.ben.id)

    def says(user: User, amount: Decimal | None) -> None:
        id_, own = home.account(user, GIRO.iban), home.services.of(user.id)
        own.atomically(
            lambda session: accounts.set_credit_line(session, user_id=user.id, account_id=id_, amount=amount)
        )

    def lines() -> list[Decimal | None]:
        return [each.credit_line for each in accounts.every(ben, home.ben.id) if each.iban == GIRO.iban]

    says(home.eva, line)
    home.share()
    home.services.households.round()
    home.services.households.round()
    assert lines() == [line]
    says(home.eva, Decimal(500))
    home.settle()
    assert lines() == [500]
    states = users.states(home.services.everybody, [home.eva.id, home.ben.id])
    home.settle()
    assert users.states(home.services.everybody, [home.eva.id, home.ben.id]) == states
    granted = StatementRecord(closing=Decimal(80), closing_date=date(2026, 11, 21), credit_line=line)
    home.bring(home.eva, GIRO, booking("2026-11-21", "-9.00", "e"), granted)
    home.settle()
    assert lines() == [500]
    says(home.ben, Decimal(100))
    home.settle()
    assert lines() == [100]
    says(home.ben, None)
    says(home.eva, None)
    home.settle()
    assert lines() == [line]
    assert {each.credit_line for each in accounts.every(eva, home.eva.id)} == {line, None}


@pytest.mark.requirement("household.shares")
def test_shares_both_ways_neither_echo_nor_keep_alive(two_accounts: Home) -> None:
    home = two_accounts
    home.share()
    home.settle()
    server = home.services.authorization
    back = server.shares.offer(home.ben, "eva", terms=EVERYTHING, ends_at=None, life=home.services.incarnation.id)
    assert isinstance(back, Share)
    assert server.shares.accept(home.eva, back.id)
    home.settle()
    assert len(home.rows(home.eva)) == 4
    owned = home.services.of(home.eva.id)
    assert {each.connector for each in connections.of_user(owned, home.eva.id)} == {"demo", "files"}


@pytest.mark.requirement("household.shares")
def test_the_receiver_cannot_delete_or_merge_what_others_share(two_accounts: Home) -> None:
    home = two_accounts
    home.bring(home.ben, AccountRecord(stable_key="x", currency="EUR", name="Own"), booking("2026-11-02", "-1", "own"))
    home.share()
    home.settle()
    giro, own, now = home.account(home.ben, GIRO.iban), home.account(home.ben, None), home.services.clock.now()
    with pytest.raises(SharedByOthers):
        home.services.alone(home.ben.id, lambda s: rebuild.delete(s, user=home.ben, account_id=giro, now=now))
    for one, other in ((giro, own), (own, giro)):
        with pytest.raises(NotOneAccount), home.services.of(home.ben.id).transaction() as session:
            merges.merge(session, user=home.ben, source_id=one, target_id=other, now=now)


@pytest.mark.requirement("household.shares")
def test_an_end_comes_by_itself(two_accounts: Home) -> None:
    home = two_accounts
    server, services = home.services.authorization, home.services
    ends = services.clock.now_in_utc() + timedelta(hours=1)
    made = server.shares.offer(home.eva, "ben", terms=EVERYTHING, ends_at=ends, life=services.incarnation.id)
    assert isinstance(made, Share)
    assert server.shares.accept(home.ben, made.id)
    home.settle()
    assert len(home.rows(home.ben)) == 4
    services.clock.offset += timedelta(hours=2)
    home.settle()
    assert home.rows(home.ben) == []


@pytest.mark.requirement("household.shares")
def test_after_a_restore_a_share_rests_until_its_giver_says_that_it_goes_on(two_accounts: Home) -> None:
    home = two_accounts
    made = home.share()
    home.settle()
    home.services.everybody.execute("UPDATE oauth_shares SET life = 'an earlier one', seen = ''")
    home.settle()
    assert home.rows(home.ben) == []
    server, life = home.services.authorization, home.services.incarnation.id
    assert not server.shares.go_on(home.ben, made.id, life=life)
    assert server.shares.go_on(home.eva, made.id, life=life)
    home.settle()
    assert len(home.rows(home.ben)) == 4


@pytest.mark.requirement("household.shares")
def test_a_giver_who_is_paused_hands_over_nothing_new_and_one_who_is_removed_nothing_at_all(two_accounts: Home) -> None:
    home = two_accounts
    home.share()
    home.settle()
    users.pause(home.services.everybody, home.eva.id, since=home.services.clock.now())
    home.bring(home.eva, GIRO, booking("2026-11-05", "-9.00", "e"), closing("80"))
    home.settle()
    assert len(home.rows(home.ben)) == 4
    home.services.authorization.remove_user(home.eva.id)
    home.services.everybody.atomically(lambda session: users.remove(session, home.eva.id))
    home.settle()
    assert home.rows(home.ben) == []


@pytest.mark.requirement("household.shares")
def test_a_receiver_who_is_removed_takes_the_share_along(two_accounts: Home) -> None:
    home = two_accounts
    home.share()
    home.settle()
    home.services.everybody.atomically(lambda session: users.remove(session, home.ben.id))
    home.settle()
    assert home.services.everybody.rows("SELECT id FROM oauth_shares") == []


@pytest.mark.requirement("household.shares")
def test_hundreds_of_small_commits_leave_as_much_as_one(two_accounts: Home) -> None:
    home = two_accounts
    home.share()
    home.settle()
    for number in range(3):
        home.bring(home.eva, SPAR, booking(f"2026-11-1{number}", "1.00", f"n{number}"))
        home.settle()
    counts = [
        home.services.of(user.id).rows("SELECT count(*) AS n FROM contributions WHERE user_id = $1", user.id)[0]["n"]
        for user in (home.eva, home.ben)
    ]
    assert counts[0] == counts[1]
    assert home.rows(home.ben) == home.rows(home.eva)


@pytest.mark.requirement("household.shares")
@pytest.mark.parametrize("first_id", ["shr_0", "shr_z"])
def test_a_share_that_follows_an_ended_one_at_once_is_not_taken_back_with_it(
    two_accounts: Home, monkeypatch: pytest.MonkeyPatch, first_id: str
) -> None:
    home = two_accounts
    monkeypatch.setattr("auth.people.shares.token_hex", lambda _: first_id.removeprefix("shr_"))
    ended = home.share()
    home.settle()
    assert home.services.authorization.shares.end(home.eva, ended.id)
    monkeypatch.setattr("auth.people.shares.token_hex", lambda _: "m")
    home.share()
    home.settle()
    assert home.rows(home.ben) == home.rows(home.eva)


Offer = Callable[..., object]


@pytest.mark.requirement("household.shares")
def test_an_offer_is_for_the_person_of_this_moment_once_for_a_pair_and_open_for_seven_days(home: Home) -> None:
    sharing, life = home.services.authorization.shares, home.services.incarnation.id

    def offer(name: str) -> object:
        return sharing.offer(home.eva, name, terms=EVERYTHING, ends_at=None, life=life)

    assert offer("EVA") == "self"
    nobody = offer("carla")
    assert isinstance(nobody, Share)
    assert nobody.receiver_id is None
    carla = users.add(
        home.services.everybody, name="carla", password_hash=None, has_subscription=True, home_currency="EUR",
        now=home.services.clock.now(),
    )  # fmt: skip
    assert sharing.given_to(carla.id) == []
    assert not sharing.accept(carla, nobody.id)
    made = offer("Ben")
    assert isinstance(made, Share)
    assert offer("ben") == "already"
    assert not sharing.accept(home.eva, made.id)
    home.services.clock.offset += timedelta(days=7)
    assert not sharing.accept(home.ben, made.id)
    assert sharing.given_by(home.eva.id) == []
    again = [offer(f"person{number}") for number in range(21)]
    assert again[20] == "many"
    assert all(isinstance(each, Share) for each in again[:20])


@pytest.mark.requirement("household.shares")
def test_each_offer_is_told_to_whom_it_is_made_but_of_one_giver_five_a_day(home: Home) -> None:
    server, own = home.services.authorization, home.services.of(home.ben.id)
    anna = users.add(
        home.services.everybody, name="anna", password_hash=None, has_subscription=True, home_currency="EUR",
        now=home.services.clock.now(),
    )  # fmt: skip

    def told_after_offer(giver: User) -> int:
        life = home.services.incarnation.id
        made = server.shares.offer(giver, "ben", terms=EVERYTHING, ends_at=None, life=life)
        assert isinstance(made, Share)
        server.record.write()
        server.record.note(home.ben.id, "getOffer")  # of another process, which is slower
        server.record.write()
        assert server.shares.end(giver, made.id)
        return len(stored.of_user(own, home.ben.id))

    assert [told_after_offer(home.eva), told_after_offer(anna)] == [1, 2]
    assert [told_after_offer(home.eva) for _ in range(6)] == [3, 4, 5, 6, 6, 6]


@pytest.mark.requirement("household.shares")
def test_nobody_ends_or_changes_what_is_not_theirs(two_accounts: Home) -> None:
    home = two_accounts
    made = home.share()
    sharing = home.services.authorization.shares
    carla = users.add(
        home.services.everybody, name="carla", password_hash=None, has_subscription=True, home_currency="EUR",
        now=home.services.clock.now(),
    )  # fmt: skip
    assert not sharing.end(carla, made.id)
    assert not sharing.end(carla, "shr_0")
    assert sharing.end(home.ben, made.id)
    assert not sharing.end(home.ben, made.id)


@pytest.mark.requirement("household.shares")
def test_an_end_while_something_is_handed_over_wins(two_accounts: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home = two_accounts
    made = home.share()
    home.services.households.round()
    replace = handed_over.replace

    def and_ended_meanwhile(*given: Any, **named: Any) -> None:
        replace(*given, **named)
        assert home.services.authorization.shares.end(home.eva, made.id)

    monkeypatch.setattr(handed_over, "replace", and_ended_meanwhile)
    home.services.households.round()
    assert home.rows(home.ben) == []
    monkeypatch.undo()
    home.settle()
    assert home.rows(home.ben) == []
    assert home.services.everybody.rows("SELECT id FROM oauth_shares") == []


@pytest.mark.requirement("household.shares")
def test_of_several_who_hand_over_at_once_one_does(two_accounts: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home = two_accounts
    home.share()
    home.services.households.round()
    read, waiting = handed_over.handed, Barrier(2, timeout=60)

    def at_once(*given: Any) -> Any:
        found = read(*given)
        if not waiting.broken and threading.current_thread() is not threading.main_thread():
            with suppress(BrokenBarrierError):
                waiting.wait(2)
        return found

    monkeypatch.setattr(handed_over, "handed", at_once)
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda _: home.services.households.round(), range(2)))
    monkeypatch.undo()
    home.settle()
    assert home.rows(home.ben) == home.rows(home.eva)
    rows = home.services.of(home.ben.id).rows("SELECT batch_id FROM contributions WHERE user_id = $1", home.ben.id)
    assert len(rows) == len({row["batch_id"] for row in rows}) == 3


@pytest.mark.requirement("household.shares")
def test_what_has_ended_is_gone_after_one_look_and_before_a_starting_server_answers(two_accounts: Home) -> None:
    home = two_accounts
    made = home.share()
    home.settle()
    settings = home.services.settings
    assert home.services.authorization.shares.end(home.eva, made.id)
    home.services.close()
    home.services = open_services(settings, for_server=True)
    assert home.rows(home.ben) == []


@pytest.mark.requirement("household.shares")
def test_a_long_history_comes_in_pieces_and_is_looked_at_once_it_is_there(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 6):
        home.bring(home.eva, GIRO, booking(f"2026-11-0{day}", "-1.00", f"day {day}"))
    monkeypatch.setattr(household, "PIECES_MAX", 2)
    monkeypatch.setattr(household, "ROUND_SECONDS_MAX", 0.0)
    looked_at: list[str] = []
    households = structs.replace(home.services.households, after_import=looked_at.append)
    home.share()
    households.round()  # closes the account to apps first
    seen = []
    for _ in range(4):
        households.round()
        seen.append([purpose for *_, purpose in home.rows(home.ben)])
    days = [f"day {day}" for day in range(1, 6)]
    assert seen == [days[:2], days[:4], days, days]
    assert looked_at == [home.ben.id]


@pytest.mark.requirement("household.shares")
def test_what_is_told_anew_is_never_there_in_part(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [home.bring(home.eva, GIRO, booking(f"2026-11-0{day}", "-1.00", f"day {day}")) for day in range(1, 5)]
    home.share()
    home.settle()
    monkeypatch.setattr(household, "PIECES_MAX", 1)
    monkeypatch.setattr(household, "ROUND_SECONDS_MAX", 0.0)
    home.undo(home.eva, jobs[0])
    home.services.households.round()
    assert [purpose for *_, purpose in home.rows(home.ben)] == ["day 2", "day 3", "day 4"]


def says(home: Home, user: User, purpose: str, note: str | None = None, category: str | None = None) -> None:
    """This person says something of their booking with this purpose."""
    own = home.services.of(user.id)
    (row,) = own.rows("SELECT id FROM transactions WHERE user_id = $1 AND purpose = $2", user.id, purpose)
    place = ChosenCategory(category, None) if category is not None else None
    now = home.services.clock.now()

    def work(session: Transaction) -> None:
        annotations.say(session, user.id, Annotation(row["id"], place, note), now=now)
        derivation.apply_rules(session, user.id, now=now, transaction_ids=[row["id"]])

    home.services.change(user.id, work)


def said(home: Home, user: User) -> dict[str, tuple[str, str | None]]:
    """Category and note of a person's bookings, by purpose."""
    own = home.services.of(user.id)
    words = annotations.of_user(own, user.id).by_id
    rows = own.rows("SELECT id, purpose, category FROM transactions WHERE user_id = $1", user.id)
    return {row["purpose"]: (row["category"], words[row["id"]].note if row["id"] in words else None) for row in rows}


@pytest.mark.requirement("household.words")
def test_words_come_along_where_the_giver_lets_them_and_go_with_the_share(two_accounts: Home) -> None:
    home = two_accounts
    says(home, home.eva, "a", "for the garden", "SHOPPING")
    silent = home.share()
    home.settle()
    plain = said(home, home.ben)
    assert plain["a"] == (plain["b"][0], None)
    home.services.authorization.shares.change(
        home.eva, silent, terms=EVERYTHING, ends_at=None, pass_on=False, with_words=True, is_wider=True
    )
    home.settle()
    assert said(home, home.ben) == plain | {"a": ("SHOPPING", "for the garden")}
    says(home, home.ben, "b", "my own")
    says(home, home.eva, "b", "hers")
    says(home, home.eva, "d", "later")
    says(home, home.eva, "a", "for the house")
    home.settle()
    now = said(home, home.ben)
    assert [now[purpose][1] for purpose in "abcd"] == ["for the house", "my own", None, "later"]
    assert now["a"][0] == plain["a"][0], "no category any more"
    home.services.authorization.shares.change(
        home.eva, silent, terms=EVERYTHING, ends_at=None, pass_on=False, with_words=False, is_wider=False
    )
    home.settle()
    assert [each[1] for each in said(home, home.ben).values() if each[1]] == ["my own"]


@pytest.mark.requirement("household.words")
def test_at_the_end_words_leave_a_joint_account_too_and_what_the_receiver_made_of_them_stays(
    two_accounts: Home,
) -> None:
    home = two_accounts
    home.bring(home.ben, GIRO, booking("2026-11-02", "-5.00", "a"), booking("2026-11-03", "-6.00", "b"))
    says(home, home.eva, "a", "hers")
    says(home, home.eva, "c", "hers alone")
    share = home.share(with_words=True)
    home.settle()
    assert {each[1] for each in said(home, home.ben).values()} == {None, "hers alone"}, "apps see the joint account"
    sharing = home.services.authorization.shares
    sharing.change(home.eva, share, terms=EVERYTHING, ends_at=None, pass_on=True, with_words=True, is_wider=True)
    home.settle()
    assert said(home, home.ben)["a"][1] == "hers"
    assert sharing.end(home.eva, share.id)
    home.services.households.round(share.id)
    assert {purpose: each[1] for purpose, each in said(home, home.ben).items()} == {"a": None, "b": None}
    assert home.services.everybody.rows("SELECT note FROM annotations WHERE user_id = $1", home.ben.id) == []


@pytest.mark.requirement("household.words")
def test_words_leave_an_account_before_apps_of_the_receiver_see_it(two_accounts: Home) -> None:
    home = two_accounts
    says(home, home.eva, "a", "hers")
    share = home.share(with_words=True)
    home.settle()
    assert said(home, home.ben)["a"][1] == "hers"
    home.bring(home.ben, GIRO, booking("2026-11-02", "-5.00", "a"))  # a bank of his own tells it from now on
    giro = home.account(home.ben, GIRO.iban)
    held = set(share.held)
    for _ in range(6):
        home.services.households.round(share.id)
        [row] = home.services.everybody.rows("SELECT held FROM oauth_shares WHERE id = $1", share.id)
        held = set(json.loads(row["held"]))
        assert giro in held or said(home, home.ben)["a"][1] is None
    assert giro not in held


@pytest.mark.requirement("household.words")
def test_words_go_when_the_giver_says_so_though_nothing_new_is_handed_over(two_accounts: Home) -> None:
    home = two_accounts
    says(home, home.eva, "a", "hers")
    share = home.share(with_words=True)
    home.settle()
    users.set_subscription(home.services.everybody, home.eva.id, active=False)
    home.services.authorization.shares.change(
        home.eva, share, terms=EVERYTHING, ends_at=None, pass_on=False, with_words=False, is_wider=False
    )
    home.settle()
    assert said(home, home.ben)["a"][1] is None


@pytest.mark.requirement("household.words")
def test_words_are_told_once_and_not_told_on(two_accounts: Home) -> None:
    home = two_accounts
    says(home, home.eva, "c", "hers")
    home.share(with_words=True)
    home.settle()
    own = home.services.of(home.ben.id)
    before = own.rows("SELECT state FROM users WHERE id = $1", home.ben.id)
    home.bring(home.eva, VISA, booking("2026-11-06", "-1.00", "x"))
    for _ in range(3):
        home.settle()
    told = of_shares.words_of(own, home.ben.id, {each.id: each.id for each in accounts.every(own, home.ben.id)})
    assert told == []
    assert own.rows("SELECT state FROM users WHERE id = $1", home.ben.id) != before, "the new booking"
    before = own.rows("SELECT state FROM users WHERE id = $1", home.ben.id)
    home.settle()
    assert own.rows("SELECT state FROM users WHERE id = $1", home.ben.id) == before


IN_WORDS_OF_A_BANK = (booking("2026-11-02", "-5.00", "Lastschrift a"), booking("2026-11-03", "-6.00", "Lastschrift b"))
IN_WORDS_OF_A_BRIDGE = (
    booking("2026-11-02", "-5.00", "POS 17", counterpart_name="Card", provider_id="p1"),
    booking("2026-11-03", "-6.00", "POS 18", counterpart_name="Card", provider_id="p2"),
)
BRIDGED = AccountRecord(stable_key="b1", currency="EUR", name="Bridge")


@pytest.mark.requirement("household.shares")
@pytest.mark.parametrize("kept", ["bank", "bridge"])
@pytest.mark.parametrize("is_joint", [False, True])
def test_an_account_merged_of_two_sources_has_each_booking_once_with_the_receiver_too(
    home: Home, kept: str, *, is_joint: bool
) -> None:
    if is_joint:
        home.bring(home.ben, GIRO, *IN_WORDS_OF_A_BANK, closing("89"))
    home.bring(home.eva, GIRO, *IN_WORDS_OF_A_BANK, closing("89"))
    home.bring(home.eva, BRIDGED, *IN_WORDS_OF_A_BRIDGE, closing("89"), bank="Bridge")
    home.share()
    home.settle()
    giro, bridged = home.account(home.eva, GIRO.iban), home.account(home.eva, None)
    home.merge(home.eva, *((bridged, giro) if kept == "bank" else (giro, bridged)))
    home.settle()
    assert [row[:3] for row in home.rows(home.ben)] == [
        (GIRO.iban, date(2026, 11, 2), Decimal("-5.00")),
        (GIRO.iban, date(2026, 11, 3), Decimal("-6.00")),
    ]


@pytest.mark.requirement("household.shares")
def test_what_one_source_of_the_giver_leaves_out_does_not_take_back_what_another_told(home: Home) -> None:
    def told(amount: str) -> StatementRecord:
        day = date(2026, 11, 3)
        return StatementRecord(closing=Decimal(amount), closing_date=day, told_from=date(2026, 11, 1), told_until=day)

    a, b = IN_WORDS_OF_A_BANK
    home.bring(home.eva, GIRO, a, b, told("89"))
    home.bring(home.eva, GIRO, a, told("95"), bank="Another, a booking behind")
    home.share()
    home.settle()
    assert [purpose for *_, purpose in home.rows(home.ben)] == ["Lastschrift a", "Lastschrift b"]
    shown = {each.bank_name for each in connections.of_user(home.services.of(home.ben.id), home.ben.id)}
    assert shown == {"eva"}


@pytest.mark.requirement("household.shares")
def test_an_account_without_iban_told_by_bank_and_file_is_one_that_apps_do_not_see(home: Home) -> None:
    home.bring(home.eva, BRIDGED, *IN_WORDS_OF_A_BANK, booking("2026-11-04", "-7.00", "c"))
    home.bring(home.eva, replace(BRIDGED, stable_key="file"), *IN_WORDS_OF_A_BANK, connector="files")
    by_bank, by_file = (each.id for each in accounts.every(home.services.of(home.eva.id), home.eva.id))
    home.merge(home.eva, by_file, by_bank)
    home.share()
    home.settle()
    assert [purpose for *_, purpose in home.rows(home.ben)] == ["Lastschrift a", "Lastschrift b", "c"]
    assert not home.covers(home.account(home.ben, None))


@pytest.mark.requirement("household.words")
def test_what_the_receiver_said_of_their_own_booking_that_a_shared_account_showed_outlives_the_share(
    home: Home,
) -> None:
    same = [*IN_WORDS_OF_A_BANK, booking("2026-11-04", "-7.00", "c")]
    home.bring(home.eva, GIRO, *same, closing("82"))
    made = home.share()
    home.settle()
    home.bring(home.ben, BRIDGED, *same, booking("2026-11-07", "-77.00", "his alone"), closing("5"))
    (row,) = home.services.of(home.ben.id).rows("SELECT account_id FROM transactions WHERE purpose = 'his alone'")
    assert row["account_id"] == home.account(home.ben, GIRO.iban)
    says(home, home.ben, "his alone", "mine")
    assert home.services.authorization.shares.end(home.eva, made.id)
    home.settle()
    assert {purpose: note for purpose, (_, note) in said(home, home.ben).items() if note} == {"his alone": "mine"}


@pytest.mark.requirement("household.shares")
@pytest.mark.parametrize("is_joint", [False, True])
def test_what_a_shared_account_shows_for_one_in_question_is_handed_over_whatever_is_answered(
    home: Home, *, is_joint: bool
) -> None:
    coffees = [booking(f"2026-11-0{day}", "-3.00", "Coffee") for day in range(2, 6)]
    rest = [booking("2026-11-02", "-4.00", "Bread"), booking("2026-11-03", "-5.00", "Milk")]
    home.bring(home.eva, GIRO, *coffees, *rest)
    if is_joint:
        home.bring(home.ben, GIRO, *coffees, *rest)
    later = [booking("2026-11-05", "-3.00", "Coffee"), booking("2026-11-06", "-3.00", "Coffee")]
    home.bring(home.eva, BRIDGED, *coffees, *rest, *later, connector="files")
    giro, bridged = home.account(home.eva, GIRO.iban), home.account(home.eva, None)
    home.share(Terms(accounts=(giro,)))

    def coffees_shown() -> int:
        home.settle()
        found = home.services.of(home.eva.id).rows(
            "SELECT booking_date, amount, purpose FROM transactions WHERE user_id = $1 AND account_id = $2",
            *(home.eva.id, giro),
        )
        shown = [row[1:] for row in home.rows(home.ben)]
        assert shown == sorted(tuple(row.values()) for row in found)
        return sum(purpose == "Coffee" for *_, purpose in shown)

    assert coffees_shown() == 6
    home.bring(home.eva, GIRO, booking("2026-11-06", "-3.00", "Coffee"))
    assert coffees_shown() == 6
    now = home.services.clock.now()
    home.merge(home.eva, bridged, giro)
    assert coffees_shown() == 6
    home.services.alone(home.eva.id, lambda s: merges.separate(s, user=home.eva, source_id=bridged, now=now))
    assert coffees_shown() == 6
    show = partial(same_accounts.hide, user_id=home.eva.id, account_id=bridged, is_hidden=False, now=now)
    home.services.alone(home.eva.id, show)
    assert coffees_shown() == 5


@pytest.mark.requirement("household.shares")
@pytest.mark.parametrize("connector", ["demo", "files"])
def test_a_new_account_of_the_receiver_may_be_the_one_that_is_shared_and_is_theirs_alone_after_the_end(
    home: Home, connector: str
) -> None:
    same = [*IN_WORDS_OF_A_BANK, booking("2026-11-04", "-7.00", "c")]
    home.bring(home.eva, GIRO, *same, closing("82"))
    made = home.share()
    home.settle()
    home.bring(home.ben, BRIDGED, *same, booking("2026-11-07", "-77.00", "his alone"), connector=connector)
    bridged, giro = home.account(home.ben, None), home.account(home.ben, GIRO.iban)

    def of_ben() -> list[tuple[Any, Any]]:
        home.settle()
        return [(home.account(home.ben, iban), purpose) for iban, _, _, purpose in home.rows(home.ben)]

    every = [(giro, purpose) for purpose in ("Lastschrift a", "Lastschrift b", "c", "his alone")]
    home.merge(home.ben, bridged, giro)
    assert of_ben() == every
    assert not home.covers(giro), "what they say proves nothing to their apps"
    now = home.services.clock.now()
    home.services.alone(home.ben.id, lambda s: merges.separate(s, user=home.ben, source_id=bridged, now=now))
    home.settle()
    assert not home.covers(giro)
    home.merge(home.ben, bridged, giro)
    assert home.services.authorization.shares.end(home.eva, made.id)
    assert of_ben() == every
    assert home.covers(giro)
    home.services.alone(home.ben.id, lambda s: merges.separate(s, user=home.ben, source_id=bridged, now=now))
    assert of_ben() == [(bridged, purpose) for _, purpose in every]
