"""FinTS from the prompt to the answer of the interface, against a simulated bank."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from analytics.records import Batch, TransactionRecord
from connectors.connector import Connection, Json
from connectors.sources.fints.connector import FinTs
from connectors.statements import read_records
from handlers.work.sync.outcomes import ONLY_ATTENDED
from tests.days import days_ago, today
from tests.live.conftest import Live, Talk, connection
from tests.simulators.fints import PRODUCT, FinTsBank, example
from tests.simulators.fints_bank.accounts import BANK_CODE, Booking
from tests.simulators.web_bank import serving

pytestmark = pytest.mark.requirement("live.fints")


@pytest.fixture
def bank() -> Iterator[FinTsBank]:
    with serving(FinTsBank(example(today()))) as served:
        bank = served.bank
        bank.accounts[0].opening = Decimal("100.00")
        bank.accounts[0].bookings = [
            Booking(day=days_ago(7), amount=Decimal("-4.20"), name="Kiosk", purpose="Kaffee"),
            Booking(day=days_ago(7), amount=Decimal("-4.20"), name="Kiosk", purpose="Kaffee"),
            Booking(day=days_ago(1), amount=Decimal("-30.00"), name="Buchladen", purpose="Atlas", is_pending=True),
        ]
        yield served


def connect(live: Live, bank: FinTsBank, user: str, *answers: str, **given: str) -> Talk:
    """`bankdata connect fints`; the app approves when it is asked for."""
    named = {"url": bank.url, "bank_code": BANK_CODE, **given}
    return live.talk("connect live", *answers, meanwhile=bank.bank.approve, source="fints", user=user, given=named)


def connected(live: Live, bank: FinTsBank, keep: str = "yes") -> str:
    user = live.user()
    talk = connect(live, bank, user, bank.bank.login, bank.bank.pin, keep)
    assert (talk.lines, talk.error) == (["Testbank AG: 2 new accounts, 2 new transactions"], "")
    return user


def sync(live: Live, user: str) -> list[str]:
    return [line.partition("\t")[2] for line in live.talk("sync", user=user).lines]


@pytest.mark.long
def test_everything_is_there_once_and_keeps_its_id_whatever_is_told_later(live: Live, bank: FinTsBank) -> None:
    user = connected(live, bank)
    coffee = (days_ago(7).isoformat(), -4.2, "Kaffee")
    assert live.bookings(user) == [coffee, coffee]
    assert live.balances(user) == {"Girokonto": 91.6, "Tagesgeld": 5000.0}
    first = live.ids(user)
    assert sync(live, user) == ["Testbank AG\t0 new transactions"]
    late = days_ago(30)
    bank.bank.accounts[0].bookings[2:] = [
        Booking(day=today(), amount=Decimal("-30.00"), name="Buchladen", purpose="Atlas Rechnung 7"),
        Booking(day=late, amount=Decimal("5.00"), name="Bank", purpose="Zinsen"),
    ]
    bank.bank.entries_per_page = 2
    assert sync(live, user) == ["Testbank AG\t2 new transactions"]
    booked = (today().isoformat(), -30.0, "Atlas Rechnung 7")
    assert live.bookings(user) == [(late.isoformat(), 5.0, "Zinsen"), coffee, coffee, booked]
    assert first < live.ids(user)
    assert live.balances(user)["Girokonto"] == 66.6
    bank.bank.accounts[0].opening += Decimal("25.00")
    sync(live, user)
    assert live.balances(user)["Girokonto"] == 91.6
    before = live.ids(user)
    bank.bank.approvals.clear()
    talk = live.talk(
        "connect live",
        "",
        bank.bank.pin,
        "yes",
        meanwhile=bank.bank.approve,
        source="fints",
        user=user,
        bank="Testbank AG",
    )
    assert talk.lines == ["Testbank AG: 0 new accounts, 0 new transactions"]
    assert live.ids(user) == before


def test_a_login_that_is_typed_with_the_command_takes_the_pin_alone_from_standard_input(
    live: Live, bank: FinTsBank
) -> None:
    bank.bank.tan = "none"
    named = ("--user", live.user(), "--url", bank.url, "--bank-code", BANK_CODE, "--login", bank.bank.login)
    done = live.bankdata("connect", "fints", *named, stdin=f"{bank.bank.pin}\n")
    assert (done.returncode, done.stdout) == (0, "Testbank AG: 2 new accounts, 2 new transactions\n"), done.stderr


@pytest.mark.requirement("live.long-ago")
@pytest.mark.long
def test_bookings_of_long_ago_come_with_another_approval_and_the_bank_is_connected_without(
    live: Live, bank: FinTsBank
) -> None:
    bank.bank.tan, bank.bank.free_days = "typed", 90
    for account in bank.bank.accounts:
        account.bookings.insert(0, Booking(day=days_ago(200), amount=Decimal("1.00"), name="Bank", purpose="Zinsen"))
    user = live.user()
    tan = bank.bank.right_tan
    talk = connect(live, bank, user, bank.bank.login, bank.bank.pin, "yes", tan, tan, "")
    assert sum(each.startswith("The bank wants another approval for transactions") for each in talk.notes) == 2
    assert (talk.lines, talk.error) == (["Testbank AG: 2 new accounts, 3 new transactions"], "")
    assert live.bookings(user)[0] == (days_ago(200).isoformat(), 1.0, "Zinsen")
    assert live.balances(user) == {"Girokonto": 92.6, "Tagesgeld": 5001.0}


@pytest.mark.requirement("live.long-ago")
@pytest.mark.long
def test_an_approval_for_bookings_of_long_ago_that_nobody_answers_for_is_left_out(live: Live, bank: FinTsBank) -> None:
    bank.bank.free_days = 90
    assert live.bookings(connected(live, bank))[0][0] == days_ago(7).isoformat()


@pytest.mark.long
def test_a_bank_without_camt_gives_its_bookings_as_mt940(live: Live, bank: FinTsBank) -> None:
    bank.bank.format = "mt940"
    user = connected(live, bank)
    assert live.bookings(user) == [(days_ago(7).isoformat(), -4.2, "Kaffee")] * 2
    assert live.balances(user) == {"Girokonto": 91.6, "Tagesgeld": 5000.0}
    assert sync(live, user) == ["Testbank AG\t0 new transactions"]


@pytest.mark.long
def test_a_pin_that_is_not_stored_opens_the_bank_once_and_lies_nowhere(live: Live, bank: FinTsBank) -> None:
    user = connected(live, bank, keep="no")
    asked = len(bank.asked)
    (line,) = sync(live, user)
    assert line == f"Testbank AG\tfailed: {ONLY_ATTENDED}"
    assert len(bank.asked) == asked
    assert live.status(user) == "ACTIVE"
    assert not connection(live, user)["canSync"]
    for path in live.served.folder.rglob("*"):
        assert not path.is_file() or bank.bank.pin.encode() not in path.read_bytes(), path
    assert bank.bank.pin not in live.served.log.read_text()


@pytest.mark.long
def test_a_tan_is_asked_for_and_a_wrong_one_connects_nothing(live: Live, bank: FinTsBank) -> None:
    bank.bank.tan = "typed"
    user = live.user()
    talk = connect(live, bank, user, bank.bank.login, bank.bank.pin, "yes", "000000")
    assert (talk.lines, talk.error) == ([], "The bank did not accept the approval. Begin again.")
    talk = connect(live, bank, user, bank.bank.login, bank.bank.pin, "yes", bank.bank.right_tan)
    assert talk.notes[1] == "Bitte die TAN aus der SMS eingeben."
    assert talk.lines == ["Testbank AG: 2 new accounts, 2 new transactions"]


@pytest.mark.long
def test_a_wrong_pin_is_asked_for_again_and_never_tried_twice(live: Live, bank: FinTsBank) -> None:
    user = live.user()
    talk = connect(live, bank, user, bank.bank.login, "wrong", "yes", "", bank.bank.pin, "yes")
    assert "The bank refused this PIN. Three wrong ones lock the account." in talk.notes
    assert talk.lines == ["Testbank AG: 2 new accounts, 2 new transactions"]
    bank.bank.pin = "changed"
    (line,) = sync(live, user)
    assert line.startswith("Testbank AG\tfailed: Testbank AG: The bank refused the PIN.")
    assert (live.status(user), bank.bank.wrong_pins) == ("REAUTH_REQUIRED", 1)
    asked = len(bank.asked)
    sync(live, user)
    assert len(bank.asked) == asked


@pytest.mark.long
def test_an_approval_wanted_while_nobody_is_there_ends_the_sync_for_good(live: Live, bank: FinTsBank) -> None:
    user = connected(live, bank)
    bank.bank.approvals.clear()
    (line,) = sync(live, user)
    reason = "The bank wants you to approve this access. Renew the connection on the account page."
    assert line == f"Testbank AG\tfailed: Testbank AG: {reason}"
    assert live.status(user) == "REAUTH_REQUIRED"
    asked = len(bank.asked)
    sync(live, user)
    assert len(bank.asked) == asked


@pytest.mark.parametrize("fault", ["503", "html", "truncated", "redirect"])
@pytest.mark.sampled
def test_after_a_broken_answer_the_next_sync_is_exact(live: Live, bank: FinTsBank, fault: str) -> None:
    user = connected(live, bank)
    bank.bank.accounts[0].bookings.append(Booking(day=today(), amount=Decimal("-1.00"), name="Neu", purpose="Neu"))
    bank.faults.append(fault)
    (line,) = sync(live, user)
    assert line.startswith("Testbank AG\tfailed: ")
    assert live.status(user) == "ACTIVE"
    again = {"source": "fints", "user": user, "bank": "Testbank AG"}
    pin = bank.bank.pin  # renewed, for else the bank is left alone for five minutes
    talk = live.talk("connect live", "", pin, "yes", meanwhile=bank.bank.approve, **again)
    assert talk.lines == ["Testbank AG: 0 new accounts, 1 new transaction"]


@pytest.mark.long
def test_an_account_that_was_not_stored_before_a_crash_is_read_from_its_beginning(bank: FinTsBank) -> None:
    bank.bank.tan = "none"
    two_months_ago = days_ago(60)
    for account in bank.bank.accounts:
        account.bookings.insert(0, Booking(day=two_months_ago, amount=Decimal("1.00"), name="Bank", purpose="alt"))
    source, secrets = FinTs(PRODUCT, read_records), {"login": bank.bank.login, "pin": bank.bank.pin}
    settings = {"url": bank.url, "bank_code": BANK_CODE}
    asked = Connection(id="con_1", user_id="u1", bank_name="Bank", settings=settings, secrets=secrets)

    def told(cursor: Json | None) -> Iterator[tuple[Batch, int]]:
        for batch in source.fetch(asked, {}, cursor=cursor, today=today()):
            assert isinstance(batch, Batch)
            yield batch, sum(isinstance(each, TransactionRecord) for each in batch.records)

    (current, of_current), (_, of_savings) = told(None)
    assert (of_current, of_savings) == (4, 1)
    (_, of_current), (savings, of_savings) = told(current.cursor)
    assert (of_current, of_savings) == (3, 1)
    assert [of for _, of in told(savings.cursor)] == [3, 0]


@pytest.mark.long
def test_what_the_bank_refuses_is_named(live: Live, bank: FinTsBank) -> None:
    user = connected(live, bank)
    bank.bank.refused = {"HKCAZ"}
    said = "\n".join(sync(live, user))
    assert "The bank gives no transactions of this account (FinTS: 9210)." in said
    assert live.status(user) == "ACTIVE"


def test_a_product_id_that_banks_do_not_know_is_said(live: Live, bank: FinTsBank) -> None:
    bank.bank.product = "another"
    talk = connect(live, bank, live.user(), bank.bank.login, bank.bank.pin, "no")
    assert "does not know the FinTS product id" in talk.error


@pytest.mark.parametrize("given", [{"url": "http://10.0.0.1/fints"}, {"bank_code": "1"}, {"url": ""}])
def test_only_an_address_that_may_be_asked_is_taken(live: Live, bank: FinTsBank, given: dict[str, str]) -> None:
    talk = connect(live, bank, live.user(), **given)
    assert "Say which bank it is" in talk.error
    assert not bank.asked
