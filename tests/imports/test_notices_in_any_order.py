"""Each cause is told once in whatever order its bookings come, and whatever is undone, merged or killed meanwhile."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from multiprocessing.synchronize import Event
from random import Random
from threading import Thread

import pytest

from analytics.records import AccountRecord, TransactionRecord
from handlers.settings import Settings
from handlers.work.services import open_services
from handlers.work.sync.detection import detect_after_import
from storage.undo_and_merge import undoable_imports
from storage.users import User
from tests.conftest import chance, seeds
from tests.imports.household import Household
from tests.imports.test_change_feed import GIRO, booked
from tests.imports.test_notices import OTHER, Noticed, gym, look

pytestmark = [pytest.mark.requirement("notices.once"), pytest.mark.engine("duckdb")]

TWICE = [booked(f"2026-11-{day}", "-24.00", "Kino", f"Kauf {day}", gvc="106") for day in (17, 18)]
RENT = booked("2026-11-16", "-700.00", "Vermieter", "Miete", gvc="117")
PIECES: Sequence[tuple[AccountRecord, Sequence[TransactionRecord]]] = (
    (GIRO, [booked("2026-11-17", "-29.90", "Fitnesswelt", "Beitrag", gvc="105")]),
    (GIRO, [gym("2026-11-17")]),
    (GIRO, TWICE),
    (OTHER, TWICE),
    (GIRO, [RENT, booked("2026-11-18", "700.00", "Vermieter", "Miete", gvc="159")]),
    (GIRO, [booked("2026-11-19", "-14.99", "Streambox", "Abo")]),
)
CAUSES = {"debit.new": 1, "charge.double": 2, "payment.failed": 1, "price.raised": 1}
STEPS = ("brings", "brings", "brings", "undoes", "merges", "night", "twice", "hides")


def looks_on(settings: Settings, user: User, offset: timedelta, is_ready: Event) -> None:
    """What a server does until it is killed."""
    services = open_services(settings)
    services.clock.offset = offset
    is_ready.set()
    while True:
        services.everybody.changes(user.id)
        detect_after_import(services.everybody, [user.id], today=services.clock.today())


class Order(Noticed):
    """A household in which everything comes in some order."""

    def __init__(self, eva: Household, dice: Random) -> None:
        super().__init__(eva)
        self.dice = dice
        self.base = 0
        self.source: str | None = None  # the account that is merged into another one
        self.taken: list[str] = []

    def step(self, name: str) -> None:
        self.taken.append(name)
        getattr(self, f"_{name}")()
        look(self)
        told = Counter(kind for type_, kind in self.messages() if type_ == "notice.new")
        assert {kind: told[kind] for kind in CAUSES if told[kind] > CAUSES[kind]} == {}, (told, self.taken)

    def begin(self) -> None:
        usual = [booked(f"2026-{month:02}-09", f"-{month}.00", "Kino", "Kauf", gvc="106") for month in range(5, 11)]
        price = [booked(f"2026-{month:02}-19", "-12.99", "Streambox", "Abo") for month in range(5, 11)]
        self.brings(GIRO, booked("2026-06-01", "-5.00", "Rewe", "Brot"), *usual, *price)
        self.brings(OTHER, booked("2026-06-01", "-6.00", "Edeka", "Brot"), *usual)
        self.base = len(self._imports())

    def _imports(self) -> list[str]:
        return [each.job_id for each in undoable_imports.of_user(self.eva.services.everybody, self.eva.user.id)]

    def _brings(self) -> None:
        account, records = self.dice.choice(PIECES)
        self.bring(account, *records, of=self.dice.choice((self.live, self.files)))

    def _undoes(self) -> None:
        if made := self._imports()[self.base :]:
            self.eva.undo(self.dice.choice(made))

    def _merges(self) -> None:
        if self.source is not None:
            self.do("accounts separate", account=self.source)
            self.source = None
        else:
            self.source = self.account(OTHER)
            self.do("accounts merge", account=self.source, into=self.account(GIRO))

    def _hides(self) -> None:
        for is_hidden in (True, False):
            self.do("accounts hide", account=self.account(GIRO), is_hidden=is_hidden)
            look(self)

    def _night(self) -> None:
        self.eva.services.clock.offset += timedelta(days=1)

    def _twice(self) -> None:
        """Two looks at once."""
        self.eva.services.everybody.changes(self.eva.user.id)
        others = [Thread(target=look, args=[self]) for _ in range(2)]
        for each in others:
            each.start()
        for each in others:
            each.join(60)

    def _killed(self) -> None:
        """Another process looks, and is killed at any moment."""
        self._brings()
        settings, offset = self.eva.services.settings, self.eva.services.clock.offset
        self.eva.services.close()
        context = multiprocessing.get_context("spawn")
        is_ready = context.Event()
        process = context.Process(target=looks_on, args=(settings, self.eva.user, offset, is_ready), daemon=True)
        process.start()
        assert is_ready.wait(60)
        time.sleep(self.dice.random() * 0.4)
        process.kill()
        process.join(60)
        self.eva.services = open_services(settings)
        self.eva.services.clock.offset = offset

    def end(self) -> None:
        """Everything is there in the end: what was told is told of what is there, and open where it holds."""
        for account, records in PIECES:
            self.bring(account, *records)
            look(self)
        shown = Counter(each["kind"] for each in self.notices())
        assert {kind: shown[kind] for kind in CAUSES if shown[kind] > CAUSES[kind]} == {}, (shown, self.taken)


@pytest.mark.parametrize("seed", seeds(8))
def test_in_whatever_order_things_come_each_cause_is_told_once(eva: Household, seed: int) -> None:
    home = Order(eva, Random(seed))
    home.begin()
    home.bring(GIRO, *PIECES[0][1])
    look(home)
    assert home.messages() == [("notice.new", "debit.new")]
    for _ in range(8):
        home.step(home.dice.choice(STEPS))
    home.end()


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_a_process_that_is_killed_while_it_looks_makes_no_cause_come_twice(eva: Household, number: int) -> None:
    home = Order(eva, chance(f"killed looks {number}"))
    home.begin()
    for name in ("brings", "killed", "undoes", "killed", "merges", "killed"):
        home.step(name)
    home.end()


def test_ten_years_that_are_imported_at_once_tell_nothing(eva: Household) -> None:
    home = Noticed(eva)
    years = [
        booked(f"{year}-{month:02}-{day}", amount, name, f"{text} {year}-{month}", gvc=gvc)
        for year in range(2016, 2027)
        for month in range(1, 12 if year == 2026 else 13)
        for day, amount, name, text, gvc in (
            (15, f"-{year - 2000}.99", "Streambox", "Abo", "105"),
            (17, "-24.00", "Kino", "Kauf", "106"),
            (18, "-24.00", "Kino", "noch ein Kauf", "106"),
            (19, "-700.00", "Vermieter", "Miete", "117"),
        )
    ]
    home.brings(GIRO, *years, gym("2026-11-18"), booked("2026-11-19", "700.00", "Vermieter", "Miete", gvc="159"))
    look(home)
    assert (home.told(), home.messages()) == ([], [])
