"""Accounts that may be one, told alone and by files of several, answered, merged, separated, taken back and deleted in
any order: no booking is lost, in two accounts or with another one, and copies of clients are the list."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from random import Random

import pytest

from analytics.records import AccountRecord, Batch, Record, TransactionRecord
from storage import accounts, jobs
from storage.database import Transaction
from storage.importing import lent_bookings, runs
from storage.importing.batches import read_batch
from storage.importing.matching.booking_keys import transaction_id
from storage.undo_and_merge import merges, rebuild, undoable_imports
from tests.conftest import seeds
from tests.imports.household import Household
from tests.imports.mirrors import Mirror, Served
from tests.imports.test_change_feed import GIRO, Life, booked

TAG = AccountRecord(stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR", name="Tag")
BRIDGE, FILE = (AccountRecord(stable_key=name, currency="EUR", name=name) for name in ("Bridge", "File"))
ALL = (GIRO, TAG, BRIDGE, FILE)
STEPS = 60
Told = frozenset[tuple[date, Decimal, str]]


class Questions:
    """A household of four accounts that tell of the same money, and what each import has told of each."""

    def __init__(self, eva: Household, random: Random) -> None:
        self.life, self.random, self.eva, self.database = Life(eva), random, eva, eva.services.everybody
        self.told = dict[str, dict[str, Told]]()  # by import and key of the account
        days = random.sample(range(0, 20, 2), 8)  # equal amounts are two days apart, or more
        self.money = [
            booked(date(2026, 11, 1) + timedelta(days=day), f"-{amount}.00", f"shop {amount}", f"{amount} of {day}")
            for amount in range(5, 10)
            for day in days
        ]

    def bring(self, *of: AccountRecord) -> None:
        """One import that tells some of the money of each of these accounts: all with three or more in common."""
        common = self.random.sample(self.money, 6)
        given = {each: {*common, *self.random.sample(self.money, 2)} for each in of}
        flat: list[Record] = []
        for account, told in given.items():
            flat += [account, *sorted(told, key=str)]
        self.life.number += 1
        services, user = self.eva.services, self.eva.user
        services.clock.offset += timedelta(seconds=1)
        now, connection = services.clock.now(), self.life.live if of in ((GIRO,), (BRIDGE,)) else self.life.files
        read = read_batch(Batch(id=f"batch{self.life.number}", records=iter(flat)), today=services.clock.today())

        def work(session: Transaction) -> str:
            job = jobs.start(session, user_id=user.id, connection_id=connection.id, cooldown=timedelta(), now=now)
            assert job is not None
            runs.store_batch(session, job, connection, read, now=now)
            runs.complete(session, job, now=now)
            return job.id

        self.told[self.database.atomically(work)] = {each.stable_key: as_told(told) for each, told in given.items()}

    def change(self, work: Callable[[Transaction], object]) -> None:
        self.database.atomically(work)

    def step(self) -> None:
        """One thing after the other that may happen."""
        user, now, random = self.eva.user, self.eva.services.clock.now(), self.random
        every = accounts.every(self.database, user.id)
        made = undoable_imports.of_user(self.database, user.id)
        merged = merges.merged_accounts(self.database, user.id)
        asked = [each for each in every if each.same_as]
        what = random.choice(
            ["bring", "bring", "answer", "hide", "merge", "merge", "separate", "undo", "delete", "again"]
        )
        if what == "bring" or len(every) < 2:
            self.bring(*random.choice([(GIRO,), (BRIDGE,), (FILE,), (TAG, FILE), (GIRO, TAG), (GIRO, TAG, FILE)]))
        elif what in ("answer", "hide"):
            one = random.choice(asked if what == "answer" and asked else every)
            self.life.do(
                "accounts show" if one.is_hidden else "accounts hide", account=one.id, is_hidden=not one.is_hidden
            )
        elif what == "merge" and asked:
            one = random.choice(asked)
            self.change(lambda s: merges.merge(s, user=user, source_id=one.id, target_id=str(one.same_as), now=now))
        elif what == "separate" and merged:
            id_ = random.choice(merged).id
            self.change(lambda s: merges.separate(s, user=user, source_id=id_, now=now))
        elif what == "undo":
            job_id = random.choice(made).job_id
            self.eva.undo(job_id)
            del self.told[job_id]
        elif what == "delete" and not merged and random.random() < 0.3:
            one = random.choice(every)
            self.change(lambda s: rebuild.delete(s, user=user, account_id=one.id, now=now))
            for told in self.told.values():
                told.pop(one.stable_key, None)
        else:
            ids = {each.id for each in random.sample(every, random.randint(1, len(every)))}
            self.change(lambda s: rebuild.rebuild(s, user=user, account_ids=ids, job_id="again", now=now))

    def check(self) -> None:
        """Each booking is in one account, and each account has what it was told."""
        user_id = self.eva.user.id
        every = {each.id: each for each in accounts.every(self.database, user_id)}
        lent = {row["id"]: row["owner"] for row in lent_bookings.lent(self.database, user_id).to_dicts()}
        rows = self.database.rows(
            "SELECT id, identity, account_id, booking_date, amount, purpose FROM transactions WHERE user_id = $1",
            user_id,
        )
        assert len({row["id"] for row in rows}) == len(rows)
        own, held = defaultdict[str, set[tuple[date, Decimal, str]]](set), Counter[tuple[str, date, Decimal]]()
        for row in rows:
            owner = str(lent.get(row["id"], row["account_id"]))
            assert transaction_id(owner, row["identity"]) == row["id"]
            own[owner].add((row["booking_date"], row["amount"], row["purpose"]))
            held[row["account_id"], row["booking_date"], row["amount"]] += 1
        wholes = {each.into for each in merges.merged_accounts(self.database, user_id)}
        for id_, account in every.items():
            said = frozenset[tuple[date, Decimal, str]]().union(
                *(told.get(account.stable_key, ()) for told in self.told.values())
            )
            assert id_ in wholes or own[id_] == said
            holder = shown_end(every, id_)
            if account.same_as and holder and not wholes & {id_, holder}:
                assert len(near(own[id_], held, holder)) == 0
        for (id_, day, amount), number in held.items():
            assert number == 1 or id_ in wholes, (day, amount)


def near(
    own: Iterable[tuple[date, Decimal, str]], held: Mapping[tuple[str, date, Decimal], int], holder: str
) -> list[str]:
    """Which of these bookings the holder does not show on their day or two days beside it."""
    beside = [timedelta(days=days) for days in (-2, 0, 2)]
    return [words for day, amount, words in own if not any(held.get((holder, day + each, amount)) for each in beside)]


def shown_end(every: Mapping[str, accounts.StoredAccount], id_: str) -> str | None:
    """The account that is shown for this one, if any, question after question."""
    seen = set[str]()
    while (account := every[id_]).is_hidden:
        if account.same_as is None or id_ in seen:
            return None
        seen.add(id_)
        id_ = account.same_as
    return id_


def as_told(records: Iterable[TransactionRecord]) -> Told:
    return frozenset((each.booking_date, each.amount, str(each.purpose)) for each in records)


@pytest.mark.long
@pytest.mark.no_cover  # many steps, see tests/conftest.py
@pytest.mark.requirement("accounts.overlap")
@pytest.mark.parametrize("seed", seeds(8))
def test_whatever_is_asked_answered_and_taken_back_each_booking_is_with_its_account_once(
    eva: Household, seed: int
) -> None:
    questions = Questions(eva, Random(seed))
    mirror = Mirror(Served(eva).client())
    for number in range(STEPS):
        questions.step()
        questions.check()
        if number % 4 == 3:
            mirror.read()
            assert mirror.rows == Served(eva).listed()
