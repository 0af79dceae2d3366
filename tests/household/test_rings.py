"""Three people who share in rings, while processes that hand over are killed: at every rest each has what is theirs and
what is shared with them by those whose it is, once, and nothing that came round the ring."""

import multiprocessing
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from typing import Any

import pytest

from analytics.records import AccountRecord, Batch, Record, TransactionRecord
from handlers.settings import Settings
from handlers.work.services import Services, open_services
from storage import accounts, connections, users
from storage.annotations import annotations
from storage.annotations.annotation import Annotation
from storage.importing import ingest
from storage.importing.batches import read_batch
from storage.oauth.grants import EVERYTHING, Terms
from storage.oauth.shares import Share
from storage.users import User
from tests.conftest import chance, seeds
from tests.engines import ENGINE
from tests.imports.test_shares import booking

NAMES = ("eva", "ben", "carla")
IBANS = {
    "eva": ("DE89370400440532013000", "DE75512108001245126199"),
    "ben": ("DE02120300000000202051", "DE02500105170137075030"),
    "carla": ("DE02100500000054540402", "DE02300209000106531065"),
}
STEPS = ("tells", "tells", "tells", "shares", "shares", "narrows", "ends", "words")


def hand_over(settings: Settings, is_ready: Event) -> None:
    """What a server does until it is killed."""
    services = open_services(settings)
    is_ready.set()
    while True:
        services.households.round()


@dataclass
class Ring:
    """Three people of a store that is closed and opened again; what they told, and who shares what with whom."""

    settings: Settings
    dice: Random
    services: Services
    people: dict[str, User] = field(default_factory=dict)
    shares: dict[tuple[str, str], Share] = field(default_factory=dict)
    number: int = 0
    taken: list[str] = field(default_factory=list)

    def step(self) -> None:
        name = self.dice.choice(STEPS)
        self.taken.append(name)
        getattr(self, f"_{name}")()

    def killed(self) -> None:
        """Let another process hand over, and kill it at any moment."""
        self.services.close()
        context = multiprocessing.get_context("spawn")
        is_ready = context.Event()
        process = context.Process(target=hand_over, args=(self.settings, is_ready), daemon=True)
        process.start()
        assert is_ready.wait(60)
        time.sleep(self.dice.random() * 0.4)
        process.kill()
        process.join(60)
        self.services = open_services(self.settings)
        self.taken.append("killed")

    def check(self) -> None:
        """At rest: of every account that somebody told, its person has it, and whoever it is shared with."""
        for _ in range(6):
            self.services.households.round()
        sharing = self.services.authorization.shares
        for name, person in self.people.items():
            wanted = self._told_by(name, EVERYTHING)
            for each in sharing.given_to(person.id):
                if each.accepted_at is not None:
                    wanted += self._told_by(each.giver_name, each.terms)
            assert self._rows(person, among=IBANS) == sorted(wanted), (name, self.taken)

    def _told_by(self, name: str, terms: Terms) -> list[tuple[Any, ...]]:
        own = self.services.of(self.people[name].id)
        owned = [each for each in accounts.every(own, self.people[name].id) if each.iban in IBANS[name]]
        covered = {
            each.iban for each in owned if terms.accounts is None or (each.id in terms.accounts) != terms.all_but
        }
        return [row for row in self._rows(self.people[name], among={name: IBANS[name]}) if row[0] in covered]

    def _rows(self, person: User, *, among: Mapping[str, tuple[str, ...]]) -> list[tuple[Any, ...]]:
        own = self.services.of(person.id)
        ibans = {each.id: each.iban for each in accounts.every(own, person.id)}
        known = {iban for each in among.values() for iban in each}
        found = own.rows(
            "SELECT account_id, booking_date, amount, purpose FROM transactions WHERE user_id = $1", person.id
        )
        return sorted(
            (ibans[row["account_id"]], row["booking_date"], row["amount"], row["purpose"])
            for row in found
            if ibans[row["account_id"]] in known
        )

    def _booking(self) -> TransactionRecord:
        self.number += 1
        day = f"2026-11-{self.dice.randrange(1, 20):02}"
        return booking(day, f"-{self.number}.{self.dice.randrange(10, 100)}", f"told {self.number}")

    def tells(self, name: str) -> None:
        """A bank of this person tells something of one of their accounts."""
        iban, user = self.dice.choice(IBANS[name]), self.people[name]
        account = AccountRecord(stable_key=iban, iban=iban, currency="EUR", name=f"Giro {iban[-3:]}")
        own, now = self.services.of(user.id), self.services.clock.now()
        connection = connections.add(
            own, user_id=user.id, user_name=name, connector="demo", bank_name="Bank", settings={}, now=now
        )
        records: list[Record] = [account, self._booking()]
        job = f"job{self.number}"
        batch = read_batch(Batch(id=job, records=iter(records)), today=self.services.clock.today())
        self.services.alone(
            user.id,
            lambda session: ingest.store(session, user=user, connection=connection, job_id=job, batch=batch, now=now),
        )

    def _tells(self) -> None:
        self.tells(self.dice.choice(NAMES))

    def _terms(self, name: str) -> Terms:
        own = accounts.every(self.services.of(self.people[name].id), self.people[name].id)
        theirs = sorted(each.id for each in own if each.iban in IBANS[name])
        some = Terms(accounts=tuple(id_ for id_ in theirs if self.dice.random() < 0.5))
        return self.dice.choice((EVERYTHING, some))

    def _shares(self) -> None:
        giver, receiver = self.dice.sample(NAMES, 2)
        made = self.services.authorization.shares.offer(
            self.people[giver],
            receiver,
            terms=self._terms(giver),
            ends_at=None,
            life=self.services.incarnation.id,
            with_words=self.dice.random() < 0.5,
        )
        if isinstance(made, Share):
            assert self.services.authorization.shares.accept(self.people[receiver], made.id)
            self.shares[giver, receiver] = made

    def _narrows(self) -> None:
        if self.shares:
            (giver, _receiver), share = self.dice.choice(sorted(self.shares.items()))
            self.services.authorization.shares.change(
                self.people[giver], share, terms=self._terms(giver), ends_at=None, pass_on=False, is_wider=False
            )

    def _ends(self) -> None:
        if self.shares:
            pair = self.dice.choice(sorted(self.shares))
            share = self.shares.pop(pair)
            assert self.services.authorization.shares.end(self.people[self.dice.choice(pair)], share.id)

    def _words(self) -> None:
        name = self.dice.choice(NAMES)
        own = self.services.of(self.people[name].id)
        rows = own.rows("SELECT id FROM transactions WHERE user_id = $1 ORDER BY id LIMIT 3", self.people[name].id)
        if rows:
            said = Annotation(self.dice.choice(rows)["id"], None, f"words of {name}")
            now = self.services.clock.now()
            self.services.change(
                self.people[name].id,
                lambda session: annotations.say(session, self.people[name].id, said, now=now),
            )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return ENGINE.settings(tmp_path / "data", RATE_LIMIT="off")


@pytest.fixture
def ring(settings: Settings) -> Iterator[Ring]:
    made = Ring(settings, Random(0), open_services(settings))
    for name in NAMES:
        made.people[name] = users.add(
            made.services.everybody,
            name=name,
            password_hash=None,
            has_subscription=True,
            home_currency="EUR",
            now=made.services.clock.now(),
        )
    yield made
    made.services.close()


@pytest.mark.long
@pytest.mark.no_cover
@pytest.mark.requirement("household.rings")
@pytest.mark.parametrize("seed", seeds(6))
def test_rings_of_three_people_survive_kills(ring: Ring, seed: int) -> None:
    ring.dice = chance(f"rings {seed}")
    for name in NAMES:
        ring.tells(name)
    for _ in range(4):
        for _ in range(ring.dice.randrange(3, 9)):
            ring.step()
        if ring.dice.random() < 0.7:
            ring.killed()
        ring.check()
    for pair in sorted(ring.shares):
        assert ring.services.authorization.shares.end(ring.people[pair[0]], ring.shares[pair].id)
    ring.shares.clear()
    ring.check()
    assert ring.services.everybody.rows("SELECT id FROM oauth_shares") == []
    assert ring.services.everybody.rows("SELECT note FROM annotations WHERE told_by IS NOT NULL") == []


@pytest.mark.requirement("household.rings")
def test_a_ring_of_three_neither_echoes_nor_keeps_alive(ring: Ring) -> None:
    sharing = ring.services.authorization.shares
    for name in NAMES:
        ring.tells(name)
    for giver, receiver in zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True):
        made = sharing.offer(
            ring.people[giver], receiver, terms=EVERYTHING, ends_at=None, life=ring.services.incarnation.id
        )
        assert isinstance(made, Share)
        assert sharing.accept(ring.people[receiver], made.id)
        ring.shares[giver, receiver] = made
    ring.check()
    assert {name: len(ring._rows(each, among=IBANS)) for name, each in ring.people.items()} == dict.fromkeys(NAMES, 2)
    assert sharing.end(ring.people["eva"], ring.shares["eva", "ben"].id)
    ring.check()
    assert {name: len(ring._rows(each, among=IBANS)) for name, each in ring.people.items()} == {
        "eva": 2,
        "ben": 1,
        "carla": 2,
    }
