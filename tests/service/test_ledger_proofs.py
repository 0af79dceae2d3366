"""What a sync says of a ledger that its bank's balances contradict: at once, with days and amount, until that ends."""
# ruff: noqa: F811 - the scene is a fixture of another module

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

import pytest
from msgspec.structs import replace

from analytics.integrity import LedgerProblem
from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from connectors.connector import Connection, LeftOut
from handlers.commands.syncs import sync
from handlers.integrity_sentences import sentence
from handlers.work.sync.statement_files import FileImport
from storage import accounts, users
from storage.database import Transaction
from storage.importing.batches import read_batch
from tests.conftest import NOW
from tests.service.test_live_sources import Paper, Scene, Told, scene, services_of  # noqa: F401 - a fixture

DAILY, SUNDAY = Decimal("-1.00"), 6


def told(*, today: date, back: int, balance: str, without: Sequence[date] = ()) -> Iterator[Batch | LeftOut]:
    """An account from which one euro goes each day, on Sundays two, as far back as the bank tells."""
    days = [today - timedelta(days=place) for place in range(back, -1, -1)]
    records: list[Record] = [AccountRecord(stable_key="giro", currency="EUR", name="Giro")]
    records += [booking(each) for each in days if each not in without]
    records.append(StatementRecord(closing=Decimal(balance), closing_date=today, told_from=days[0], told_until=today))
    yield Batch(id=f"giro:{today}", name="Giro", records=iter(records), cursor={"until": str(today)})


def booking(day: date) -> TransactionRecord:
    amount = DAILY - (day.weekday() == SUNDAY)
    return TransactionRecord(amount=amount, currency="EUR", booking_date=day, counterpart_name=f"Shop {day}")


def sum_of(day: date, count: int) -> Decimal:
    """What goes in so many days after this one."""
    return sum((booking(day + timedelta(days=place)).amount for place in range(1, count + 1)), Decimal("0.00"))


def bring_file(scene: Scene, *days: date) -> None:
    """A file with the bookings of these days, for the account that is there."""
    user_id = scene.connection.user_id
    user = users.find(scene.database, user_id)
    assert user is not None
    (account,) = accounts.of_user(scene.database, user_id)
    record = AccountRecord(stable_key="unnamed", currency="EUR", is_anonymous=True)
    records: list[Record] = [record, *map(booking, days), StatementRecord()]

    def work(session: Transaction) -> None:
        read = read_batch(Batch(id="file", name="x.csv", records=iter(records)), today=scene.clock.today())
        brought = FileImport(user_id=user_id, name="files")
        brought.keep(session, read, user=user, connection="Files", choice=account.id, clock=scene.clock)

    scene.database.atomically(work)


@pytest.mark.requirement("integrity.gap")
@pytest.mark.long
def test_days_that_a_bank_cannot_tell_any_more_are_said_until_a_file_brings_them(scene: Scene) -> None:
    first = NOW.date()
    scene.bank.tell = lambda _: told(today=first, back=89, balance="1000.00")
    scene.sync()
    assert scene.shown()["warnings"] == []
    scene.clock.moment += timedelta(days=120)
    later, gone = first + timedelta(days=120), sum_of(first, 120)
    scene.bank.tell = lambda _: told(today=later, back=89, balance=str(1000 + gone))
    scene.sync()
    missing = [first + timedelta(days=place) for place in range(1, 31)]
    days = f"{missing[0].day} {missing[0]:%B %Y} to {missing[-1].day} {missing[-1]:%B %Y}"
    said = (
        f"Giro: Transactions from {days} are missing, {sum_of(first, 30)} EUR in all. Import a statement of these days."
    )
    assert scene.shown()["warnings"] == [said]
    scene.clock.moment += timedelta(days=1)
    scene.bank.tell = lambda _: told(today=later + timedelta(days=1), back=89, balance=str(1000 + sum_of(first, 121)))
    scene.sync()
    assert scene.shown()["warnings"] == [said]
    bring_file(scene, *missing[:29])
    last = booking(missing[-1]).amount
    assert scene.shown()["warnings"] == [said.replace(str(sum_of(first, 30)), str(last))]
    bring_file(scene, *missing)
    assert scene.shown()["warnings"] == []


@pytest.mark.requirement("integrity")
def test_a_booking_that_the_bank_left_out_is_said_by_the_sync_that_meets_it(scene: Scene) -> None:
    sunday = NOW.date() + timedelta(days=SUNDAY - NOW.weekday())
    days = [sunday + timedelta(days=place) for place in range(-1, 3)]

    def synced(place: int, balance: str, *without: date) -> list[str]:
        scene.bank.tell = lambda _: told(today=days[place], back=30, balance=balance, without=without)
        scene.clock.moment = NOW + (days[place] - NOW.date())
        scene.sync()
        return list(scene.shown()["warnings"])

    assert synced(0, "100.00") == []
    (said,) = synced(2, "97.00", sunday)
    text = f"{days[1].day} {days[1]:%B %Y} to {days[2].day} {days[2]:%B %Y}"
    assert said == f"Giro: The balances from {text} differ from the transactions by -2.00 EUR."
    assert synced(3, "96.00") == []  # told again, the booking is there


@pytest.mark.requirement("integrity")
def test_a_sync_by_command_says_what_balances_contradict(scene: Scene) -> None:
    paper = Paper()
    for place, balance in enumerate(("100.00", "7.00")):
        today = NOW.date() + timedelta(days=place)
        scene.bank.tell = partial(lambda today, balance, _: told(today=today, back=9, balance=balance), today, balance)
        scene.clock.moment = NOW + timedelta(days=place)
        sync(services_of(scene), paper, user=users.get_by_name(services_of(scene).everybody, "eva"))
    days = f"{today.day} {today:%B %Y} to {today.day} {today:%B %Y}"
    missing = Decimal(-93) - booking(today).amount
    assert paper.lines == [
        "eva\tOne\t10 new transactions",
        f"One: Giro: The balances from {days} differ from the transactions by {missing} EUR.",
        "eva\tOne\t1 new transaction",
    ]


@pytest.mark.requirement("integrity")
def test_a_balance_that_is_told_again_keeps_the_days_that_were_told(scene: Scene) -> None:
    day = NOW.date()

    def quiet(_: Connection) -> Iterator[Batch | LeftOut]:
        account = AccountRecord(stable_key="giro", currency="EUR", name="Giro")
        balance = StatementRecord(
            closing=Decimal(5), closing_date=day, told_from=scene.clock.today(), told_until=scene.clock.today()
        )
        yield Batch(id="giro", name="Giro", records=iter([account, balance]))

    scene.bank.tell = quiet
    for _ in range(2):
        scene.sync()
        scene.clock.moment += timedelta(days=1)
    rows = scene.database.rows("SELECT closing, told_from, told_until FROM statements ORDER BY received_at")
    assert [(row["closing"], row["told_from"], row["told_until"]) for row in rows] == [
        (Decimal(5), day, day),
        (None, day + timedelta(days=1), day + timedelta(days=1)),
    ]


SILENT = (
    "Giro: The bank reported no transaction of this account, not even those of the last days. The next sync asks again."
)


@pytest.mark.requirement("integrity.silence")
def test_an_empty_answer_where_something_was_told_before_is_a_warning_and_leaves_the_cursor(scene: Scene) -> None:
    days = [NOW.date() + timedelta(days=place) for place in range(3)]

    def synced(place: int, *, is_empty: bool, balance: str = "100.00") -> tuple[str, list[str], object]:
        def tell(_: Connection) -> Iterator[Batch | LeftOut]:
            (batch,) = told(today=days[place], back=9, balance=balance)
            assert isinstance(batch, Batch)
            records = [each for each in batch.records if not (is_empty and isinstance(each, TransactionRecord))]
            yield replace(batch, records=iter(records))

        scene.bank.tell, scene.clock.moment = tell, NOW + timedelta(days=place)
        return scene.sync().status, scene.shown()["warnings"], scene.stored().cursor

    assert synced(0, is_empty=False) == ("completed", [], {"until": str(days[0])})
    assert synced(1, is_empty=True) == ("completed", [SILENT], {"until": str(days[0])})
    fine = str(100 + sum_of(days[0], 2))
    assert synced(2, is_empty=False, balance=fine) == ("completed", [], {"until": str(days[2])})


@pytest.mark.requirement("integrity.silence")
@pytest.mark.parametrize("change", ["old history", "no window"])
def test_an_empty_answer_that_may_be_empty_is_none_to_warn_of(scene: Scene, change: str) -> None:
    later = NOW.date() + timedelta(days=40 if change == "old history" else 1)
    scene.bank.tell = lambda _: told(today=NOW.date(), back=9, balance="100.00")
    scene.sync()

    def tell(_: Connection) -> Iterator[Batch | LeftOut]:
        account = AccountRecord(stable_key="giro", currency="EUR", name="Giro")
        first = None if change == "no window" else later - timedelta(days=89)
        balance = StatementRecord(told_from=first, told_until=later if first else None)
        yield Batch(id="x", name="Giro", records=iter([account, balance]))

    scene.bank.tell, scene.clock.moment = tell, NOW + (later - NOW.date())
    scene.sync()
    assert scene.shown()["warnings"] == []


@pytest.mark.requirement("integrity.silence")
def test_an_account_that_its_bank_tells_no_more_is_a_warning_unless_it_is_hidden_or_excused(scene: Scene) -> None:
    def giro(_: Connection) -> Iterator[Batch | LeftOut]:
        yield from told(today=NOW.date(), back=9, balance="100.00")

    def both(connection: Connection) -> Iterator[Batch | LeftOut]:
        yield from giro(connection)
        records: list[Record] = [AccountRecord(stable_key="card", currency="EUR", name="Card"), StatementRecord()]
        yield Batch(id="card", name="Card", records=iter(records))

    def refused(connection: Connection) -> Iterator[Batch | LeftOut]:
        yield from giro(connection)
        yield LeftOut(name="Card", reason="The bank does not show this account.")

    def warned(tell: Told) -> list[str]:
        scene.bank.tell = tell
        scene.clock.moment += timedelta(hours=7)
        assert scene.sync().status == "completed"
        return list(scene.shown()["warnings"])

    assert warned(both) == []
    assert warned(giro) == ["Card: The bank no longer reports this account. Hide it if it is closed."]
    assert warned(refused) == ["Card: The bank does not show this account."]
    user_id = scene.connection.user_id
    card = accounts.resolve(scene.database, user_id, "Card")
    accounts.hide(scene.database, user_id=user_id, account_id=card.id, since=NOW)
    assert warned(giro) == []


@pytest.mark.requirement("integrity.gap")
def test_a_gap_whose_amount_no_balance_tells_is_said_without_one() -> None:
    first, last = NOW.date(), NOW.date() + timedelta(days=1)
    gap = LedgerProblem(kind="gap", first=first, last=last, amount=None)
    days = f"{first.day} {first:%B %Y} to {last.day} {last:%B %Y}"
    assert sentence(gap, "EUR") == f"Transactions from {days} are missing. Import a statement of these days."
    assert "1,234.50 EUR" in sentence(replace(gap, amount=Decimal("1234.5")), "EUR")
