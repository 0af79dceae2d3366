"""No answer from memory is older than what its reader can know to be committed, and none is another user's."""

import threading
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from analytics.classification.rules import parse_rules
from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from handlers.settings import load
from handlers.work.cache.reader import Reader
from handlers.work.services import Services, open_services
from handlers.work.sync.detection import detect_after_import
from storage import accounts, connections, rules, users
from tests.cache.conftest import Operations, asking
from tests.cache.from_store import FromStoreReader
from tests.conftest import NOW, empty_folder, examples
from tests.engines import whole
from tests.storage.conftest import Bank, make_bank

NAMES = ("eva", "max")
IBANS = {"eva": "DE02120300000000202051", "max": "DE02500105170137075030"}
ROUNDS = 15
CHANGES: list[dict[str, Any]] = [{"name": "Our"}, {"name": None}, {"isHidden": True}, {"isHidden": False}]
PAGE: dict[str, Any] = {
    "account_ids": None,
    "category": None,
    "date_from": None,
    "date_to": None,
    "search": None,
    "page": 1,
    "per_page": 100,
}

RECURRING = {"status": "all", "direction": "all"}


def account_of(name: str) -> AccountRecord:
    return AccountRecord(stable_key=IBANS[name], iban=IBANS[name], currency="EUR", name=f"Account of {name}")


def booking(number: int, name: str) -> TransactionRecord:
    return TransactionRecord(
        amount=Decimal(-number - 1),
        currency="EUR",
        booking_date=date(2026, 11, 1) + timedelta(days=number % 19),
        counterpart_name=f"Shop {number} of {name}",
        purpose=f"Purchase {number}",
    )


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """An empty store."""
    opened = open_services(load({}, data_dir=empty_folder(tmp_path / "data")))
    yield opened
    opened.close()


@pytest.mark.no_cover  # many answers, see tests/conftest.py
@pytest.mark.requirement("cache.never_stale")
@pytest.mark.long
def test_a_reader_who_knows_of_a_commit_sees_its_rows_and_no_others(services: Services) -> None:
    now = services.clock.now()
    banks = {name: make_bank(whole(services.store), now, name) for name in NAMES}
    table = Operations(services)
    committed = dict.fromkeys(NAMES, 0)
    is_over = threading.Event()
    faults: list[str] = []

    def write(name: str) -> None:
        for number in range(ROUNDS):
            banks[name].bring([booking(number, name)], account=account_of(name))
            committed[name] = number + 1

    def read(name: str) -> None:
        last = 0
        while not is_over.is_set():
            known = committed[name]
            _, body, _ = table.ask("listTransactions", banks[name].user.id, **PAGE)
            answer = orjson.loads(body)
            total = answer["pagination"]["total"]
            if total < max(known, last):
                faults.append(f"{name}: {total} rows, although {max(known, last)} were known")
            last = total
            shown = [row["counterpartName"] for row in answer["transactions"]]
            faults.extend(f"{name} saw {other}" for other in shown if not other.endswith(f" of {name}"))
            is_over.wait(0.001)  # four readers that never pause leave the writers little of one interpreter

    readers = [threading.Thread(target=read, args=(name,)) for name in NAMES for _ in range(2)]
    writers = [threading.Thread(target=write, args=(name,)) for name in NAMES]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    for thread in readers:
        thread.join()
    assert faults == []
    for name in NAMES:
        _, body, _ = table.ask("listTransactions", banks[name].user.id, **PAGE)
        assert orjson.loads(body)["pagination"]["total"] == ROUNDS


class Household(RuleBasedStateMachine):
    """Whatever happens to a user's data, memory and store say the same the next moment."""

    folder: Path

    @initialize()
    def open(self) -> None:
        self.count = 0
        number = len(list(self.folder.iterdir()))
        self.services = open_services(load({}, data_dir=empty_folder(self.folder / str(number))))
        now = self.services.clock.now()
        self.banks: dict[str, Bank] = {name: make_bank(whole(self.services.store), now, name) for name in NAMES}
        self.kept = Operations(self.services)
        slow = FromStoreReader(self.services.store, self.services.reader.render)
        self.slow = Operations(replace(self.services, reader=slow))
        nothing = Reader(self.services.store, bytes_max=0, render=self.services.reader.render)
        self.forgetful = Operations(replace(self.services, reader=nothing))

    def teardown(self) -> None:
        self.services.close()

    @rule(name=st.sampled_from(NAMES), rows=st.integers(1, 3), balance=st.integers(-5, 5))
    def bring(self, name: str, rows: int, balance: int) -> None:
        self.count += rows
        told = [booking(self.count - back, name) for back in range(rows)]
        closing = StatementRecord(closing=Decimal(balance), closing_date=date(2026, 11, 19))
        self.banks[name].bring(told, account=account_of(name), statement=closing)

    @rule(name=st.sampled_from(NAMES), months=st.integers(2, 5), amount=st.sampled_from(["-9.99", "-9.995", "20"]))
    def bring_what_recurs(self, name: str, months: int, amount: str) -> None:
        told = [
            replace(booking(0, name), booking_date=date(2026, 11 - back, 5), amount=Decimal(amount), purpose="Abo")
            for back in range(months)
        ]
        self.banks[name].bring(told, account=account_of(name))
        if months % 2:
            detect_after_import(self.services.everybody, [self.banks[name].user.id], today=self.services.clock.today())

    @rule(name=st.sampled_from(NAMES))
    def bring_dollars(self, name: str) -> None:
        account = AccountRecord(stable_key="dollars", currency="USD", name=f"Dollars of {name}")
        self.banks[name].bring([replace(booking(3, name), currency="USD")], account=account)

    @rule(name=st.sampled_from(NAMES), said=st.sampled_from(["confirmed", "dismissed", "none"]))
    def decide(self, name: str, said: str) -> None:
        for payment in self.recurring(name)[:1]:
            self.change("confirmSubscription", name, id=payment["id"], body={"confirmation": said})

    @rule(name=st.sampled_from(NAMES), amount=st.integers(1, 9))
    def add_by_hand(self, name: str, amount: int) -> None:
        for account in accounts.of_user(self.services.everybody, self.banks[name].user.id)[:1]:
            due = (self.services.clock.today() + timedelta(days=9)).isoformat()
            body = {"accountId": account.id, "name": "Club", "amount": amount, "frequency": "monthly"}
            self.change("addSubscription", name, body=body | {"nextExpected": due})

    def recurring(self, name: str) -> list[dict[str, Any]]:
        owned = accounts.of_user(self.services.everybody, self.banks[name].user.id)
        asked = RECURRING | {"account_ids": ",".join(each.id for each in owned)}
        _, body, _ = self.slow.ask("listSubscriptionDetails", self.banks[name].user.id, **asked)
        found: list[dict[str, Any]] = orjson.loads(body)["subscriptions"]
        return found

    @rule(name=st.sampled_from(NAMES), currency=st.sampled_from(["EUR", "USD"]))
    def choose_a_currency(self, name: str, currency: str) -> None:
        user_id = self.banks[name].user.id
        self.services.everybody.atomically(lambda session: users.set_home_currency(session, user_id, currency))

    @rule(name=st.sampled_from(NAMES), note=st.sampled_from(["", "a", "b"]), category=st.sampled_from(["", "RENT"]))
    def annotate(self, name: str, note: str, category: str) -> None:
        said = {"note": note, "category": category or None}
        for row in self.banks[name].rows("id, booking_date, amount")[:1]:
            self.change("changeAnnotation", name, id=row["id"], body=said)

    @rule(name=st.sampled_from(NAMES), category=st.sampled_from(["RENT", "DINING"]))
    def correct(self, name: str, category: str) -> None:
        for row in self.banks[name].rows("id, booking_date, amount")[:1]:
            self.change(
                "createCorrection",
                name,
                dry_run=False,
                include=None,
                body={"transactionId": row["id"], "category": category},
            )

    @rule(name=st.sampled_from(NAMES), body=st.sampled_from(CHANGES))
    def change_the_account(self, name: str, body: dict[str, Any]) -> None:
        user_id = self.banks[name].user.id
        for account in accounts.every(self.services.everybody, user_id):
            self.change("changeAccount", name, id=account.id, body=body)

    def change(self, operation: str, name: str, **arguments: Any) -> None:
        self.kept.table[operation](asking(self.banks[name].user.id, operation, ""), **arguments)

    @rule(name=st.sampled_from(NAMES))
    def end_the_connection(self, name: str) -> None:
        bank = self.banks[name]
        self.services.everybody.atomically(
            lambda session: connections.remove(session, bank.user.id, bank.connection.id, now=NOW)
        )

    @rule(name=st.sampled_from(NAMES))
    def connect_again(self, name: str) -> None:
        connection = self.banks[name].connection
        self.services.everybody.atomically(lambda session: connections.renew(session, connection, settings={}))

    @invariant()
    def memory_says_what_the_store_says(self) -> None:
        for bank in getattr(self, "banks", {}).values():
            owned = accounts.of_user(self.services.everybody, bank.user.id)
            named = {"account_ids": ",".join(each.id for each in owned) or None}
            for name, asked in (
                ("listAccounts", {}),
                ("listTransactions", PAGE | named),
                ("listTransactions", PAGE | named | {"search": "shop"}),
                ("getCashflow", named | {"months": 2}),
                ("getCashflow", {"account_ids": None, "months": 2}),
                ("getCashflowCategories", named | {"months": 2}),
                ("getSnapshot", named),
                ("listSubscriptions", named),
                ("listSubscriptionDetails", RECURRING | named),
            ):
                said = self.slow.ask(name, bank.user.id, **asked)
                assert self.kept.ask(name, bank.user.id, **asked) == said
                assert self.forgetful.ask(name, bank.user.id, **asked) == said


@pytest.mark.no_cover  # random examples, see tests/conftest.py
@pytest.mark.requirement("cache.never_stale")
def test_memory_and_store_agree_after_every_change(tmp_path: Path) -> None:
    class Here(Household):
        folder = tmp_path

    run_state_machine_as_test(Here, settings=settings(max_examples=examples(3), stateful_step_count=12))


@pytest.mark.requirement("cache.never_stale")
def test_a_rule_that_is_removed_is_quoted_no_more(services: Services) -> None:
    bank = make_bank(whole(services.store), services.clock.now())
    with services.everybody.transaction() as session:
        rules.keep(
            session,
            bank.user.id,
            parse_rules('{"field": "counterpartName", "operator": "contains", "value": "Shop", "category": "DINING"}'),
        )
    bank.bring([booking(1, "eva")], account=account_of("eva"))
    table = Operations(services)
    _, body, _ = table.ask("listTransactions", bank.user.id, **PAGE)
    asked = {"id": orjson.loads(body)["transactions"][0]["id"]}
    for _ in range(2):
        _, before, _ = table.ask("explainTransaction", bank.user.id, **asked)
        assert "Your rule 1 says so" in before.decode()
    with services.everybody.transaction() as session:
        rules.keep(session, bank.user.id, [])
    _, after, _ = table.ask("explainTransaction", bank.user.id, **asked)
    assert "you have changed your rules since" in after.decode()


@pytest.mark.requirement("cache.never_stale")
def test_two_commits_never_leave_one_state_though_the_first_to_begin_is_the_last_to_end(services: Services) -> None:
    database, user_id = whole(services.store), make_bank(whole(services.store), services.clock.now()).user.id
    before = database.state(user_id)
    with database.transaction() as slow:
        slow.rows("UPDATE users SET data_version = data_version + 1 WHERE id = $1 RETURNING data_version", user_id)
        database.changes(user_id)
        between = database.state(user_id)
        slow.changes(user_id)
    assert len({before, between, database.state(user_id)}) == 3
