"""What each answer of a FinTS bank means for the step that is taken, to the word; the connector is asked directly."""

import base64
import sys
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest
from fints.client import FinTS3PinTanClient
from msgspec.structs import replace

from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from connectors.connecting import Done, Question, Reply, Step
from connectors.connector import (
    Connection,
    HasNews,
    Json,
    LeftOut,
    Misconfigured,
    ProviderUnavailable,
    Ready,
    UserActionRequired,
)
from connectors.sources.fints.bank_line import BankLine
from connectors.sources.fints.connector import FinTs
from connectors.sources.fints.dialog import AccessLocked, ApprovalNeeded, PinRefused, TanRefused
from connectors.sources.fints.library import INSIDES
from connectors.statements import read_records
from tests.simulators.fints import PRODUCT, Bank, FinTsBank, example
from tests.simulators.fints_bank.accounts import BANK_CODE, Booking
from tests.simulators.fints_bank.messages import Answer
from tests.simulators.web_bank import Asked, Said, serving

pytestmark = pytest.mark.requirement("live.fints")

TODAY = date(2026, 11, 20)
NOW = datetime.fromisoformat("2026-11-20T12:00")
NEW = Connection(id="con_1", user_id="u1", bank_name="Testbank AG", settings={})
EMPTY = base64.b64encode(Answer(dialog="D1", number=1).message()).decode()
DAMAGED = "The bank sent a damaged answer."
UNREACHED = "The bank could not be reached."
PIN_REFUSED = (
    "The bank refused the PIN. It is not tried again, for three wrong ones lock the account. Renew the connection."
)
LOCKED = "The bank has locked this access. Unlock it at the bank, then renew the connection."
APPROVE = "The bank wants you to approve this access. Renew the connection on the account page."
TAN_REFUSED = "The bank did not accept the approval. Begin again."
NO_BANK = (
    "Say which bank it is: `bankdata connect fints --url URL --bank-code DIGITS`, the address beginning with https://"
    " and the bank code of eight digits."
)


class Broken(FinTsBank):
    """A bank whose answer number `turn` is this one."""

    turn = 0
    said: Said | None = None

    def answer(self, asked: Asked) -> Said:
        self.turn -= 1
        if self.said is not None and self.turn == 0:
            return self.said
        return super().answer(asked)


@pytest.fixture
def served() -> Iterator[Broken]:
    with serving(Broken(example(TODAY))) as served:
        served.bank.tan = "none"
        yield served


@pytest.fixture
def source() -> FinTs:
    return FinTs(PRODUCT, read_records)


def step(
    source: FinTs, connection: Connection, before: Step | None, given: Mapping[str, str] = {}, now: datetime = NOW
) -> Step:
    memo = before.memo if isinstance(before, Question) else {}
    return source.next_step(connection, Reply(return_url="", state="", given=given, memo=memo), now=now)


def typed(served: FinTsBank, **further: str) -> dict[str, str]:
    """What the person has typed."""
    bank = served.bank
    named = {"url": served.url, "bank_code": BANK_CODE, "login": bank.login, "pin": bank.pin, "keep_pin": "yes"}
    return {**named, **further}


def connected(source: FinTs, served: FinTsBank, kept: list[Json] | None = None) -> Connection:
    done = step(source, NEW, None, typed(served))
    assert isinstance(done, Done)
    keep = kept.append if kept is not None else lambda _: None
    return replace(NEW, settings=done.settings, secrets=done.secrets, keep_secrets=keep)


def fetched(source: FinTs, connection: Connection, cursor: Json | None = None) -> list[Batch | LeftOut]:
    handle = source.start_refresh(connection, now=NOW)
    assert source.poll_refresh(connection, handle, now=NOW) == Ready()
    return list(source.fetch(connection, handle, cursor=cursor, today=TODAY))


def records(each: Batch | LeftOut) -> list[Record]:
    assert isinstance(each, Batch)
    return list(each.records)


def bookings(each: Batch | LeftOut) -> list[tuple[str, str, str | None]]:
    return [
        (row.booking_date.isoformat(), row.status, row.purpose)
        for row in records(each)
        if isinstance(row, TransactionRecord)
    ]


@pytest.mark.parametrize(
    ("product", "given", "sentence"),
    [
        (
            "",
            {},
            "FinTS needs a product id of the Deutsche Kreditwirtschaft (a free form at fints.org)."
            " Set BANKDATA_FINTS_PRODUCT.",
        ),
        (PRODUCT, {}, NO_BANK),
        (PRODUCT, {"url": "https://fints.bank.example"}, NO_BANK),
        (PRODUCT, {"url": "http://fints.bank.example", "bank_code": BANK_CODE}, NO_BANK),
    ],
)
def test_without_a_product_id_and_a_bank_nobody_is_asked_for_a_pin(
    product: str, given: dict[str, str], sentence: str
) -> None:
    source = FinTs(product, read_records)
    assert not source.is_set_up
    with pytest.raises(Misconfigured) as refusal:
        step(source, NEW, None, given)
    assert str(refusal.value) == sentence


def test_without_the_library_its_name_is_said(
    source: FinTs, served: FinTsBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "connectors.sources.fints.dialog", None)
    monkeypatch.delattr("connectors.sources.fints.dialog", raising=False)
    with pytest.raises(Misconfigured) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == "FinTS needs a library that is not installed. Install banking-data-service[fints]."


def test_a_page_offers_the_banks_that_the_operator_has_named_and_takes_no_other(served: FinTsBank) -> None:
    source = FinTs(PRODUCT, read_records, {BANK_CODE: served.url, "99999999": "https://fints.bank.example"})
    assert source.is_set_up
    which = step(source, NEW, None)
    assert isinstance(which, Question)
    (field,) = which.fields
    assert field.choices == [(BANK_CODE, "Bundesbank (10000000)"), ("99999999", "99999999")]
    sign_in = step(source, NEW, which, {"bank_code": BANK_CODE})
    assert isinstance(sign_in, Question)
    assert [each.name for each in sign_in.fields] == ["login", "pin", "keep_pin"]
    given = typed(served)
    del given["url"]
    done = step(source, NEW, sign_in, given)
    assert isinstance(done, Done)
    assert done.settings == {"url": served.url, "bank_code": BANK_CODE, "attended_only": False}
    with pytest.raises(Misconfigured) as refusal:
        step(source, NEW, which, {"bank_code": "12345678"})
    assert str(refusal.value) == NO_BANK


def test_an_address_that_may_not_be_asked_opens_no_line() -> None:
    with pytest.raises(Misconfigured) as refusal:
        BankLine("http://fints.bank.example")
    assert str(refusal.value) == "The FinTS address of a bank begins with https:// and has no password in it."


def test_an_address_keeps_its_query(source: FinTs, served: FinTsBank) -> None:
    given = typed(served, url=f"{served.url}?bank=12&mode")
    assert isinstance(step(source, NEW, None, given), Done)
    assert {(each.path, tuple(each.query.items())) for each in served.asked} == {
        ("/fints", (("bank", "12"), ("mode", "")))
    }


def test_a_login_without_accounts_is_not_connected(source: FinTs, served: FinTsBank) -> None:
    served.bank.accounts = []
    with pytest.raises(UserActionRequired) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == "The bank shows no account for this login."


def test_a_wrong_pin_is_asked_for_again(source: FinTs, served: FinTsBank) -> None:
    asked = step(source, NEW, None, typed(served, pin="0000"))
    assert isinstance(asked, Question)
    assert asked.problem is not None
    assert asked.problem == "The bank refused this PIN. Three wrong ones lock the account."
    assert [each.default for each in asked.fields] == [served.bank.login, "", "no"]


def test_a_locked_access_is_said(source: FinTs, served: FinTsBank) -> None:
    served.bank.wrong_pins = 3
    with pytest.raises(AccessLocked) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == LOCKED


def test_a_product_id_that_the_bank_does_not_know_is_the_operators_to_mend(source: FinTs, served: FinTsBank) -> None:
    served.bank.product = "another"
    with pytest.raises(Misconfigured) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == (
        "The bank does not know the FinTS product id. Ask for one and set BANKDATA_FINTS_PRODUCT."
    )


@pytest.mark.parametrize("first", ["920", "921"])
def test_of_two_ways_and_two_devices_the_person_chooses(source: FinTs, served: FinTsBank, first: str) -> None:
    served.bank.has_both_ways, served.bank.devices = True, ("Handy", "Tablet")
    way = step(source, NEW, None, typed(served))
    assert isinstance(way, Question)
    assert way.text == "How do you approve at this bank?"
    (field,) = way.fields
    assert (field.name, field.choices) == ("method", [("920", "mobileTAN"), ("921", "Freigabe in der App")])
    device = step(source, NEW, way, typed(served, method=first))
    assert isinstance(device, Question)
    assert device.text == "Which device do you use for that?"
    (field,) = device.fields
    assert (field.name, field.choices) == ("medium", [("Handy", "Handy"), ("Tablet", "Tablet")])
    done = step(source, NEW, device, typed(served, method=first, medium="Tablet"))
    assert isinstance(done, Done)
    assert (done.secrets["method"], done.secrets["medium"]) == (first, "Tablet")


def test_a_single_device_is_nothing_to_choose(source: FinTs, served: FinTsBank) -> None:
    served.bank.has_both_ways, served.bank.devices = True, ("Handy",)
    assert isinstance(step(source, NEW, None, typed(served, method="920")), Done)


def test_a_tan_opens_the_dialog_that_waits_for_it(source: FinTs, served: FinTsBank) -> None:
    served.bank.tan = "typed"
    asked = step(source, NEW, None, typed(served))
    assert isinstance(asked, Question)
    assert (asked.text, [each.name for each in asked.fields], asked.again_after) == (
        "Bitte die TAN aus der SMS eingeben.",
        ["tan"],
        None,
    )
    assert asked.fields[0].is_secret
    done = step(source, NEW, asked, typed(served, tan=served.bank.right_tan))
    assert isinstance(done, Done)
    assert done.consent_expires_at == NOW + timedelta(days=180)


def test_a_wrong_tan_connects_nothing(source: FinTs, served: FinTsBank) -> None:
    served.bank.tan = "typed"
    asked = step(source, NEW, None, typed(served))
    with pytest.raises(TanRefused) as refusal:
        step(source, NEW, asked, typed(served, tan="000000"))
    assert str(refusal.value) == TAN_REFUSED


def test_the_app_is_waited_for_for_five_minutes_and_no_longer(source: FinTs, served: FinTsBank) -> None:
    served.bank.tan = "app"
    asked = step(source, NEW, None, typed(served))
    assert isinstance(asked, Question)
    assert (asked.text, asked.fields, asked.again_after) == ("Bitte in der App freigeben.", (), 2.0)
    asked = step(source, NEW, asked, typed(served), now=NOW + timedelta(minutes=5))
    assert isinstance(asked, Question)
    with pytest.raises(UserActionRequired) as refusal:
        step(source, NEW, asked, typed(served), now=NOW + timedelta(minutes=5, seconds=1))
    assert str(refusal.value) == "The bank was not told of your approval within five minutes. Begin again."
    served.bank.approve()
    assert isinstance(step(source, NEW, asked, typed(served), now=NOW + timedelta(minutes=5)), Done)


@pytest.mark.parametrize("secrets", [{}, {"login": "eva-login"}])
def test_a_sync_without_a_pin_asks_nobody(source: FinTs, served: FinTsBank, secrets: Json) -> None:
    connection = replace(connected(source, served), secrets=secrets)
    asked = len(served.asked)
    for ask in (
        lambda: source.start_refresh(connection, now=NOW),
        lambda: next(source.fetch(connection, {}, cursor=None, today=TODAY)),
    ):
        with pytest.raises(UserActionRequired) as refusal:
            ask()
        assert str(refusal.value) == (
            "The PIN is not stored, so this bank is asked only when you renew the connection."
        )
    assert len(served.asked) == asked


def test_a_pin_for_one_time_is_forgotten_before_the_dialog_begins(source: FinTs, served: FinTsBank) -> None:
    kept: list[Json] = []
    done = step(source, NEW, None, typed(served, keep_pin="no"))
    assert isinstance(done, Done)
    assert done.settings["attended_only"]
    once = replace(NEW, settings=done.settings, secrets=done.secrets, keep_secrets=kept.append)
    served.bank.pin = "changed"
    with pytest.raises(PinRefused):
        fetched(source, once)
    assert [set(each) & {"pin", "pin_once"} for each in kept] == [set(), set()]


def test_a_stored_pin_that_the_bank_refuses_is_forgotten(source: FinTs, served: FinTsBank) -> None:
    kept: list[Json] = []
    connection = connected(source, served, kept)
    served.bank.pin = "changed"
    with pytest.raises(PinRefused) as refusal:
        fetched(source, connection)
    assert str(refusal.value) == PIN_REFUSED
    assert "pin" not in kept[-1]


@pytest.mark.parametrize("tan", ["app", "typed"])
@pytest.mark.sampled
def test_a_sync_that_needs_an_approval_ends_and_says_where_it_is_given(
    source: FinTs, served: FinTsBank, tan: Any
) -> None:
    served.bank.tan = tan
    asked = step(source, NEW, None, typed(served))
    served.bank.approve()
    done = step(source, NEW, asked, typed(served, tan=served.bank.right_tan))
    assert isinstance(done, Done)
    connection = replace(NEW, settings=done.settings, secrets=done.secrets)
    assert len(fetched(source, connection)) == 2
    served.bank.approvals.clear()
    with pytest.raises(ApprovalNeeded) as refusal:
        fetched(source, connection)
    assert str(refusal.value) == APPROVE


def test_bookings_that_need_an_approval_of_their_own_end_the_sync(source: FinTs, served: FinTsBank) -> None:
    connection = connected(source, served)
    served.bank.asks_for_every_order = True
    with pytest.raises(ApprovalNeeded) as refusal:
        fetched(source, connection)
    assert str(refusal.value) == APPROVE


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (Said(status=404, document={}), UNREACHED),
        (Said(text="<html>Wartung</html>", content_type="text/html"), DAMAGED),
        (Said(text="", content_type="text/plain"), DAMAGED),
        (Said(text="SElSTUc6MjoyKzAwMTA6Ok9LJw==", content_type="text/plain"), DAMAGED),  # a segment without envelope
    ],
)
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_an_answer_that_is_no_message_is_damaged(
    source: FinTs, served: Broken, said: Said, sentence: str, turn: int
) -> None:
    served.said, served.turn = said, turn
    with pytest.raises(ProviderUnavailable) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == sentence


def test_an_answer_that_leaves_out_what_was_asked_for_is_damaged(source: FinTs, served: Broken) -> None:
    connected(source, served)
    served.said = Said(text=EMPTY, content_type="text/plain")
    served.turn = len(served.asked) - 3  # the question for accounts, before those for old bookings and the goodbye
    with pytest.raises(ProviderUnavailable) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == DAMAGED


@pytest.mark.long
def test_a_goodbye_that_fails_changes_nothing(source: FinTs, served: Broken) -> None:
    connection = connected(source, served)
    before = len(served.asked)
    fetched(source, connection)
    exchanges = len(served.asked) - before
    served.said, served.turn = Said(status=500, document={}), exchanges
    assert len(fetched(source, connection)) == 2


def test_an_order_that_the_bank_refuses_for_all_accounts_names_its_code(source: FinTs, served: FinTsBank) -> None:
    served.bank.refused = {"HKSPA"}
    with pytest.raises(ProviderUnavailable) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == "The bank refused an order (FinTS code 9210)."


def test_an_order_that_needs_an_approval_of_its_own_says_where_it_is_given(source: FinTs, served: FinTsBank) -> None:
    connection = connected(source, served)
    served.bank.refused, served.bank.refusal = {"HKSPA"}, "9075"
    with pytest.raises(ApprovalNeeded) as refusal:
        fetched(source, connection)
    assert str(refusal.value) == APPROVE


def test_an_account_without_bookings_is_left_out_with_the_banks_code(source: FinTs, served: FinTsBank) -> None:
    connection = connected(source, served)
    served.bank.refused = {"HKCAZ"}
    reason = "The bank gives no transactions of this account (FinTS: 9210)."
    assert fetched(source, connection) == [
        LeftOut(name="Girokonto", reason=reason),
        LeftOut(name="Tagesgeld", reason=reason),
    ]


def test_an_account_is_what_the_bank_says_of_it(source: FinTs, served: FinTsBank) -> None:
    current, savings = fetched(source, connected(source, served))
    first, *_, last = records(savings)
    assert first == AccountRecord(
        stable_key="DE35100000000000000077",
        currency="EUR",
        iban="DE35100000000000000077",
        name="Tagesgeld",
        kind="savings",
        bank_name="Testbank AG",
    )
    assert last == StatementRecord(
        closing=Decimal("5000.00"),
        closing_date=TODAY,
        told_from=TODAY - timedelta(days=89),
        told_until=TODAY,
        is_pending_complete=True,
    )
    assert bookings(current) == [
        ("2026-11-08", "booked", "Gehalt"),
        ("2026-11-11", "booked", "Miete"),
        ("2026-11-17", "booked", "Kaffee"),
        ("2026-11-17", "booked", "Kaffee"),
        ("2026-11-20", "pending", "vorgemerkt"),
    ]
    source.settle(NEW, {}, batch=Batch(id="b", records=iter(())), refusal=None)
    source.disconnect(NEW, now=NOW)
    assert not isinstance(source, HasNews)


def test_a_dialog_that_the_bank_refuses_at_once_says_so(source: FinTs, served: FinTsBank) -> None:
    served.bank.dialog_code = "9800"
    with pytest.raises(ProviderUnavailable) as refusal:
        step(source, NEW, None, typed(served))
    assert str(refusal.value) == "The bank refused the dialog."


def test_a_bank_without_camt_is_read_by_mt940_and_says_nothing_of_what_is_pending(
    source: FinTs, served: FinTsBank
) -> None:
    served.bank.format, served.bank.entries_per_page = "mt940", 3
    current, savings = fetched(source, connected(source, served))
    assert bookings(current) == [
        ("2026-11-08", "booked", "Gehalt"),
        ("2026-11-11", "booked", "Miete"),
        ("2026-11-17", "booked", "Kaffee"),
        ("2026-11-17", "booked", "Kaffee"),
    ]
    assert bookings(savings) == []


def test_a_bank_that_leaves_out_what_accounts_may_be_asked_is_asked_all_the_same(
    source: FinTs, served: FinTsBank
) -> None:
    served.bank.shown_operations = ""
    current, _ = fetched(source, connected(source, served))
    assert len(bookings(current)) == 5


@pytest.mark.parametrize(
    ("shown", "balance", "count"),
    [
        ("HKSPA:1+HKCAZ:1", None, 5),
        ("HKSPA:1+HKSAL:1", Decimal("2711.60"), 0),
    ],
)
def test_an_account_is_asked_for_what_it_may_be_asked(
    source: FinTs, served: FinTsBank, shown: str, balance: Decimal | None, count: int
) -> None:
    served.bank.shown_operations = shown
    current, _ = fetched(source, connected(source, served))
    _, *found, last = records(current)
    assert isinstance(last, StatementRecord)
    assert (last.closing, len(found)) == (balance, count)


def test_an_account_that_a_bank_offers_no_balance_of_is_left_out(source: FinTs, served: FinTsBank) -> None:
    served.bank.has_balances = False
    current, *_ = fetched(source, connected(source, served))
    assert current == LeftOut(
        name="Girokonto", reason="The bank gives no transactions of this account (FinTS: not offered)."
    )


@pytest.mark.long
def test_what_was_read_is_read_again_from_ten_days_before(source: FinTs, served: FinTsBank) -> None:
    connection = connected(source, served)
    known = "DE23100000001234567890"
    old = replace_day(served, TODAY - timedelta(days=45))
    for until, expected in (
        (TODAY - timedelta(days=34), []),  # ten days before it is 44 days ago
        (TODAY - timedelta(days=35), [old]),
        (TODAY - timedelta(days=200), [old]),  # never more than is free of another approval
    ):
        current, _ = fetched(source, connection, cursor={"until": {known: until.isoformat()}})
        assert [day for day, _, purpose in bookings(current) if purpose == "Gehalt"] == expected


def replace_day(served: FinTsBank, day: date) -> str:
    served.bank.accounts[0].bookings[0].day = day
    return day.isoformat()


@pytest.mark.parametrize("format_", ["camt", "mt940"])
@pytest.mark.parametrize("pages_max", [200, 1])
@pytest.mark.sampled
def test_pages_that_go_round_or_have_no_end_leave_their_account_and_its_cursor_alone(
    source: FinTs,
    served: FinTsBank,
    monkeypatch: pytest.MonkeyPatch,
    format_: Literal["camt", "mt940"],
    pages_max: int,
) -> None:
    connection = connected(source, served)
    monkeypatch.setattr("connectors.sources.fints.bank_line.PAGES_MAX", pages_max)
    served.bank.format, served.bank.entries_per_page, served.bank.goes_round = format_, 1, pages_max > 1
    before = {"until": {"DE23100000001234567890": "2026-11-10"}}
    current, savings = fetched(source, connection, cursor=before)
    assert current == LeftOut(
        name="Girokonto", reason="The bank gives no transactions of this account (FinTS: pages without end)."
    )
    assert isinstance(savings, Batch)
    assert savings.cursor is not None
    assert savings.cursor["until"]["DE23100000001234567890"] == "2026-11-10"


def with_older_bookings(bank: Bank) -> None:
    """A bank that wants an approval for transactions older than 90 days, of which each account has one."""
    bank.free_days = 90
    for number, account in enumerate(bank.accounts, 1):
        old = Booking(day=date(2025, 12, 1), amount=Decimal(number), name="Bank", purpose=f"Zinsen {number}")
        account.bookings.insert(0, old)


@pytest.mark.requirement("live.long-ago")
@pytest.mark.parametrize("form", ["camt", "mt940"])
@pytest.mark.sampled
def test_bookings_of_long_ago_are_read_while_their_customer_is_there(
    source: FinTs, served: FinTsBank, form: Literal["camt", "mt940"]
) -> None:
    with_older_bookings(served.bank)
    served.bank.free_days, served.bank.format = 10_000, form
    kept: list[Json] = []
    connection = connected(source, served, kept)
    current, savings = fetched(source, connection)
    of_long_ago, *rest = bookings(current)
    assert of_long_ago == ("2025-12-01", "booked", "Zinsen 1")
    assert len(rest) == (5 if form == "camt" else 4)
    assert bookings(savings) == [("2025-12-01", "booked", "Zinsen 2")]
    assert [list(each) for each in kept] == [["login", "state", "pin", "older"], ["login", "state", "pin"]]
    assert bookings(fetched(source, replace(connection, secrets=kept[-1]))[1]) == []


@pytest.mark.requirement("live.long-ago")
@pytest.mark.parametrize(("tan", "answer"), [("typed", "123456"), ("app", "yes")])
@pytest.mark.sampled
def test_an_approval_for_bookings_of_long_ago_is_asked_for_account_by_account(
    source: FinTs, served: FinTsBank, tan: Any, answer: str
) -> None:
    with_older_bookings(served.bank)
    served.bank.tan = tan
    served.bank.entries_per_page = 2
    asked = step(source, NEW, None, typed(served))
    served.bank.approve()
    first = step(source, NEW, asked, typed(served, tan=served.bank.right_tan))
    assert isinstance(first, Question)
    assert first.text.startswith("The bank wants another approval for transactions older than 89 days.")
    assert [(each.name, each.is_optional) for each in first.fields] == [("tan", True)]
    assert (first.again_after, first.problem) == (None, None)
    served.bank.approve()
    second = step(source, NEW, first, typed(served, tan=answer))
    assert isinstance(second, Question)
    assert second.problem is None
    served.bank.approve()
    done = step(source, NEW, second, typed(served, tan=answer))
    assert isinstance(done, Done)
    current, savings = fetched(source, replace(NEW, settings=done.settings, secrets=done.secrets))
    assert [bookings(each)[0][2] for each in (current, savings)] == ["Zinsen 1", "Zinsen 2"]


@pytest.mark.requirement("live.long-ago")
@pytest.mark.parametrize(("tan", "wrong", "right"), [("typed", "000000", "123456"), ("app", "yes", "yes")])
def test_an_approval_for_bookings_of_long_ago_that_is_not_accepted_is_asked_for_again(
    source: FinTs, served: FinTsBank, tan: Any, wrong: str, right: str
) -> None:
    with_older_bookings(served.bank)
    del served.bank.accounts[1]
    served.bank.tan = tan
    asked = step(source, NEW, None, typed(served))
    served.bank.approve()
    asked = step(source, NEW, asked, typed(served, tan=served.bank.right_tan))
    asked = step(source, NEW, asked, typed(served, tan=wrong))
    assert isinstance(asked, Question)
    assert asked.problem is not None
    assert asked.problem == "The bank has not accepted this yet."
    served.bank.approve()
    done = step(source, NEW, asked, typed(served, tan=right))
    assert isinstance(done, Done)
    assert list(done.secrets["older"]) == [served.bank.accounts[0].iban]


@pytest.mark.parametrize(("answer", "late"), [("", 0), ("no", 0), ("123456", 301)])
@pytest.mark.sampled
def test_without_that_approval_the_bank_is_connected_all_the_same(
    source: FinTs, served: FinTsBank, answer: str, late: int
) -> None:
    with_older_bookings(served.bank)
    served.bank.tan = "typed"
    asked = step(source, NEW, None, typed(served))
    asked = step(source, NEW, asked, typed(served, tan=served.bank.right_tan))
    done = step(source, NEW, asked, typed(served, tan=answer), now=NOW + timedelta(seconds=late))
    assert isinstance(done, Done)
    assert "older" not in done.secrets
    orders = len(served.bank.orders)
    renewed = replace(NEW, settings=done.settings, secrets=done.secrets)
    assert isinstance(step(source, renewed, None, typed(served)), Done)
    assert "HKCAZ" not in served.bank.orders[orders:]


@pytest.mark.requirement("live.long-ago")
@pytest.mark.parametrize("refusal", ["9210", "9075"])
def test_a_bank_that_gives_no_bookings_of_long_ago_is_connected_all_the_same(
    source: FinTs, served: FinTsBank, refusal: str
) -> None:
    with_older_bookings(served.bank)
    served.bank.refused, served.bank.refusal = {"HKCAZ"}, refusal
    done = step(source, NEW, None, typed(served))
    assert isinstance(done, Done)
    assert "older" not in done.secrets


@pytest.mark.requirement("live.long-ago")
@pytest.mark.long
def test_bookings_of_long_ago_wait_for_an_account_that_the_bank_leaves_out_and_leave_no_gap(
    source: FinTs, served: FinTsBank
) -> None:
    with_older_bookings(served.bank)
    served.bank.free_days = 10_000
    between = Booking(day=TODAY - timedelta(days=85), amount=Decimal(3), name="Bank", purpose="Zinsen 3")
    served.bank.accounts[1].bookings.insert(1, between)
    kept: list[Json] = []
    connection = connected(source, served, kept)
    served.bank.refused = {"HKCAZ"}
    assert all(isinstance(each, LeftOut) for each in fetched(source, connection))
    assert "older" in kept[-1]
    served.bank.refused = set()
    connection = replace(connection, secrets=kept[-1])
    _, savings = source.fetch(
        connection,
        source.start_refresh(connection, now=NOW + timedelta(days=10)),
        cursor=None,
        today=TODAY + timedelta(days=10),
    )
    assert [purpose for _, _, purpose in bookings(savings)] == ["Zinsen 2", "Zinsen 3"]
    assert "older" not in kept[-1]


@pytest.mark.requirement("live.long-ago")
@pytest.mark.long
def test_an_account_that_wants_an_approval_for_each_page_has_none_of_long_ago_rather_than_a_part(
    source: FinTs, served: FinTsBank
) -> None:
    with_older_bookings(served.bank)
    served.bank.tan, served.bank.entries_per_page, served.bank.asks_for_every_order = "typed", 2, True
    asked = step(source, NEW, None, typed(served))
    for _ in range(3):
        assert isinstance(asked, Question)
        assert asked.problem is None
        asked = step(source, NEW, asked, typed(served, tan=served.bank.right_tan))
    assert isinstance(asked, Done)
    current, savings = (account.iban for account in served.bank.accounts)
    assert {iban: len(found) for iban, found in asked.secrets["older"].items()} == {current: 0, savings: 1}


def test_what_we_touch_of_the_library_is_there() -> None:
    assert [name for name in INSIDES if not hasattr(FinTS3PinTanClient, name)] == []
