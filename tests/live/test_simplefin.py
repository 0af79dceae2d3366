"""SimpleFIN from the command line to the answer of the interface, against a simulated bridge."""

import base64
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pytest

from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from connectors.connecting import Done, Question, Reply
from connectors.connector import (
    Connection,
    ConsentRevoked,
    HasNews,
    LeftOut,
    ProviderUnavailable,
    RateLimited,
    Ready,
    SourceError,
    UserActionRequired,
)
from connectors.sources.simplefin import SimpleFin, Unpaid
from handlers.languages import catalogue
from tests.days import days_ago, today
from tests.live.conftest import Live, connection
from tests.simulators.simplefin import Customer, account, at_noon, booking
from tests.simulators.web_bank import Parrot, Said, serving

pytestmark = pytest.mark.requirement("live.simplefin")


@pytest.fixture
def customer(live: Live) -> Customer:
    live.simplefin.faults.clear()
    made = live.simplefin.customer()
    made.account(
        "1",
        "100.00",
        booking("a", days_ago(2), "-10.00", "Cafe"),
        booking("b", days_ago(2), "-10.00", "Cafe"),
        booking("p", None, "-30.00", "Gas", transacted_at=at_noon(days_ago(1))),
        day=days_ago(2),
    )
    return made


def connected(live: Live, customer: Customer) -> str:
    user = live.user()
    done = live.bankdata("connect", "simplefin", "--user", user, stdin=f"{customer.token}\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SimpleFIN: 1 new account, 2 new transactions\n"
    return user


@pytest.mark.long
def test_everything_is_there_once_and_keeps_its_id_whatever_is_told_later(live: Live, customer: Customer) -> None:
    user = connected(live, customer)
    cafe = (days_ago(2).isoformat(), -10.0, "Cafe")
    assert live.bookings(user) == [cafe, cafe]
    assert live.balances(user) == {"Account 1": 100.0}
    first = live.ids(user)
    assert live.sync(user) == ["SimpleFIN\t0 new transactions"]
    customer.account(
        "1",
        "50.00",
        booking("a", days_ago(2), "-10.00", "Cafe"),
        booking("b", days_ago(1), "-11.00", "Cafe, corrected"),
        booking("p2", today(), "-30.00", "Gas", transacted_at=at_noon(days_ago(1))),
        booking("late", days_ago(80), "5.00", "Late"),
        day=today(),
    )
    assert live.sync(user) == ["SimpleFIN\t2 new transactions"]
    assert live.bookings(user) == [
        (days_ago(80).isoformat(), 5.0, "Late"),
        cafe,
        (days_ago(1).isoformat(), -11.0, "Cafe, corrected"),
        (today().isoformat(), -30.0, "Gas"),
    ]
    assert first < live.ids(user)
    assert live.balances(user) == {"Account 1": 50.0}
    customer.accounts[0]["balance"] = "100.00"
    assert live.sync(user) == ["SimpleFIN\t0 new transactions"]
    assert live.balances(user) == {"Account 1": 100.0}


@pytest.mark.parametrize("fault", ["503", "malformed", "truncated", "html", "hang-up", "redirect"])
@pytest.mark.sampled
def test_after_a_broken_answer_the_next_sync_is_exact(live: Live, customer: Customer, fault: str) -> None:
    user = connected(live, customer)
    customer.accounts[0]["transactions"].append(booking("c", today(), "-1.00", "New"))
    live.simplefin.faults.extend([fault] * (3 if fault == "503" else 1))
    (line,) = live.sync(user)
    assert line.startswith("SimpleFIN\tfailed: SimpleFIN: 127.0.0.1:")
    assert not live.simplefin.faults
    assert live.status(user) == "ACTIVE"
    again = live.simplefin.customer()  # for the source is left alone for five minutes, unless it is connected anew
    again.accounts = customer.accounts
    done = live.bankdata("connect", "simplefin", "--user", user, stdin=f"{again.token}\n")
    assert done.stdout == "SimpleFIN: 0 new accounts, 1 new transaction\n", done.stderr
    assert len(live.bookings(user)) == 3


def test_one_bad_gateway_is_passed_over(live: Live, customer: Customer) -> None:
    user = connected(live, customer)
    live.simplefin.faults.append("502")
    assert live.sync(user) == ["SimpleFIN\t0 new transactions"]


def test_a_token_is_claimed_once_and_a_used_one_is_a_warning(live: Live, customer: Customer) -> None:
    connected(live, customer)
    done = live.bankdata("connect", "simplefin", "--user", live.user(), stdin=f"{customer.token}\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "somebody else may have access" in done.stderr


@pytest.mark.parametrize("token", ["no token", "aHR0cHM6Ly9ldmlsLmV4YW1wbGUvY2xhaW0vMQ=="])
def test_a_token_that_leads_elsewhere_is_asked_for_again_and_never_followed(live: Live, token: str) -> None:
    asked = len(live.simplefin.asked)
    done = live.bankdata("connect", "simplefin", "--user", live.user(), stdin=f"{token}\n")
    assert done.returncode == 1
    assert "That is no token of this SimpleFIN server." in done.stderr
    assert len(live.simplefin.asked) == asked


def test_access_that_was_disabled_is_not_asked_again_until_it_is_renewed(live: Live, customer: Customer) -> None:
    user = connected(live, customer)
    before = live.ids(user)
    customer.is_revoked = True
    live.sync(user)
    assert live.status(user) == "REVOKED"
    asked = len(live.simplefin.asked)
    live.sync(user)
    assert len(live.simplefin.asked) == asked
    again = live.simplefin.customer()
    again.accounts = customer.accounts
    done = live.bankdata("connect", "simplefin", "--user", user, stdin=f"{again.token}\n")
    assert done.stdout == "SimpleFIN: 0 new accounts, 0 new transactions\n", done.stderr
    assert live.status(user) == "ACTIVE"
    assert live.ids(user) == before


def test_one_bank_of_two_that_wants_a_sign_in_is_a_warning_and_alone_a_failure(live: Live, customer: Customer) -> None:
    user = connected(live, customer)
    customer.errlist = [{"code": "con.auth", "msg": "Sign in\x07 again", "conn_id": "CON-1"}]
    customer.account("miles", "1.00", day=today(), currency="https://miles.example/")
    done = live.bankdata("sync", "--user", user)
    assert "First Bank" in done.stdout
    assert "Sign in again" in done.stdout
    assert "points or miles" in done.stdout
    assert (done.returncode, done.stderr) == (1, "Error: Not everything came from SimpleFIN.\n")
    assert live.status(user) == "ACTIVE"
    customer.accounts = []
    live.sync(user)
    assert live.status(user) == "REAUTH_REQUIRED"


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.long
def test_an_account_that_comes_back_under_other_ids_counts_once_until_its_user_says_whether_it_is_the_same(
    live: Live, customer: Customer
) -> None:
    rows = [booking(str(n), days_ago(n), f"-{n}.00", "Shop") for n in (3, 4, 5)]
    customer.account("2", "50.00", *rows, day=today())
    user = live.user()
    live.bankdata("connect", "simplefin", "--user", user, stdin=f"{customer.token}\n")
    counted, ids = live.bookings(user), live.ids(user)
    customer.accounts.pop()
    assert live.sync(user) == ["SimpleFIN\t0 new transactions"]
    customer.account("new-2", "60.00", *({**each, "id": f"new-{each['id']}"} for each in rows), day=today())
    live.sync(user)
    assert (live.balances(user), live.bookings(user)) == ({"Account 1": 100.0, "Account 2": 50.0}, counted)
    assert connection(live, user)["warnings"] == [
        "Account new-2: Is this the same account as Account 2? Its transactions are there too."
        " It counts once you have said so."
    ]
    found = live.bankdata("accounts", "list", "--user", user).stdout.splitlines()
    (new,) = (line.split("\t")[0] for line in found if "Account new-2" in line)
    (old,) = (line.split("\t")[0] for line in found if "Account 2" in line)
    assert live.bankdata("accounts", "merge", "--user", user, "--yes", new, old).returncode == 0
    live.sync(user)
    assert (live.balances(user), live.ids(user)) == ({"Account 1": 100.0, "Account 2": 60.0}, ids)


def test_removing_the_connection_forgets_its_secret(live: Live, customer: Customer) -> None:
    user = connected(live, customer)
    id_ = connection(live, user)["id"]
    assert live.bankdata("connections", "remove", id_, "--user", user).returncode == 0
    assert len(live.bookings(user)) == 2


DAY = date(2026, 2, 28)
NOW = datetime(2026, 2, 28, 12)  # noqa: DTZ001 - the store keeps UTC without zone
BOOKED = booking("a", DAY, "-1.00", "Cafe")
ACCOUNT = account("1", "9.00", BOOKED, day=DAY)


@pytest.fixture(scope="module")
def bridge() -> Iterator[Parrot]:
    with serving(Parrot()) as served:
        yield served


@pytest.fixture
def source(bridge: Parrot) -> Iterator[SimpleFin]:
    bridge.faults.clear()
    found = SimpleFin(bridge.address)
    yield found
    found._provider.close()


def connected_to(address: str, userinfo: str = "eva:secret@") -> Connection:
    access_url = address.replace("//", f"//{userinfo}") + "/simplefin"
    return Connection(id="c1", user_id="u1", bank_name="SimpleFIN", settings={}, secrets={"access_url": access_url})


def told_by(source: SimpleFin, connection: Connection) -> list[list[Record] | LeftOut]:
    """The records of each account, and what was left out."""
    handle = source.start_refresh(connection, now=NOW)
    told = source.fetch(connection, handle, cursor=None, today=DAY)
    return [list(each.records) if isinstance(each, Batch) else each for each in told]


def refused(source: SimpleFin, connection: Connection) -> tuple[type[SourceError], str, str]:
    with pytest.raises(SourceError) as refusal:
        told_by(source, connection)
    return type(refusal.value), str(refusal.value), refusal.value.detail


@pytest.mark.parametrize(
    ("told", "detail"),
    [
        ({"accounts": {}}, "not a list of objects"),
        ({"accounts": ["1"]}, "not a list of objects"),
        ({"accounts": [ACCOUNT], "connections": "none"}, "not a list of objects"),
        ({"accounts": [ACCOUNT], "errlist": [1]}, "not a list of objects"),
        ({"accounts": [{**ACCOUNT, "transactions": {}}]}, "not a list of objects"),
        ({"accounts": [{**ACCOUNT, "id": ""}]}, "no id"),
        ({"accounts": [{**ACCOUNT, "id": 1}]}, "no id"),
        ({"accounts": [{**ACCOUNT, "transactions": [{**BOOKED, "id": None}]}]}, "no id"),
        ({"accounts": [{**ACCOUNT, "balance": "much"}]}, "balance is no amount"),
        ({"accounts": [{key: ACCOUNT[key] for key in ACCOUNT if key != "balance"}]}, "balance is no amount"),
        ({"accounts": [{**ACCOUNT, "transactions": [{**BOOKED, "amount": "1.2.3"}]}]}, "amount is no amount"),
        ({"accounts": [{**ACCOUNT, "balance-date": "soon"}]}, "balance-date is no moment"),
        ({"accounts": [{**ACCOUNT, "balance-date": [1]}]}, "balance-date is no moment"),
        ({"accounts": [{**ACCOUNT, "transactions": [{**BOOKED, "posted": 10**20}]}]}, "posted is no moment"),
        ({"accounts": [{**ACCOUNT, "balance-date": 253402300799}]}, "balance-date is no moment"),  # the year 9999
    ],
)
def test_an_answer_that_is_not_of_the_protocol_is_damaged(
    bridge: Parrot, source: SimpleFin, told: dict[str, Any], detail: str
) -> None:
    bridge.said = Said(document={"accounts": [ACCOUNT]})
    (records,) = told_by(source, connected_to(bridge.address))
    assert isinstance(records, list)
    assert [type(each) for each in records] == [AccountRecord, TransactionRecord, StatementRecord]
    bridge.said = Said(document=told)
    assert refused(source, connected_to(bridge.address)) == (
        ProviderUnavailable,
        "SimpleFIN sent a damaged answer.",
        detail,
    )


@pytest.mark.parametrize(
    ("codes", "error", "sentence"),
    [
        (["con.auth"], UserActionRequired, "A bank wants you to sign in again, at SimpleFIN."),
        (["act.failed", "con.auth"], UserActionRequired, "A bank wants you to sign in again, at SimpleFIN."),
        (["act.failed"], ProviderUnavailable, "SimpleFIN has nothing from your banks at present."),
        (["gen.authors"], ProviderUnavailable, "SimpleFIN has nothing from your banks at present."),
        (["con.auth", "gen.quota"], RateLimited, "The bank allows no further requests for now."),
        (["gen.limit"], RateLimited, "The bank allows no further requests for now."),
    ],
)
def test_where_nothing_comes_the_complaints_say_why(
    bridge: Parrot, source: SimpleFin, codes: list[str], error: type[SourceError], sentence: str
) -> None:
    complaints = [{"code": code, "msg": "Words of the bridge"} for code in codes]
    bridge.said = Said(document={"accounts": [], "errlist": complaints})
    assert refused(source, connected_to(bridge.address)) == (error, sentence, " ".join(codes))
    bridge.said = Said(document={"accounts": [ACCOUNT], "errlist": complaints})
    _, *left_out = told_by(source, connected_to(bridge.address))
    assert left_out == [LeftOut(name="SimpleFIN", reason="Words of the bridge")] * len(codes)


def test_complaints_of_the_first_version_are_words_alone_and_none_are_no_complaint(
    bridge: Parrot, source: SimpleFin
) -> None:
    bridge.said = Said(document={"accounts": [ACCOUNT], "errors": ["Your bank is asleep", ""]})
    assert told_by(source, connected_to(bridge.address))[1:] == [
        LeftOut(name="SimpleFIN", reason="Your bank is asleep"),
        LeftOut(name="SimpleFIN", reason="SimpleFIN could not ask this bank."),
    ]
    bridge.said = Said(document={"accounts": [], "errors": ["Your bank is asleep"]})
    assert refused(source, connected_to(bridge.address)) == (
        ProviderUnavailable,
        "SimpleFIN has nothing from your banks at present.",
        "gen.other",
    )
    bridge.said = Said(document={"accounts": []})
    assert told_by(source, connected_to(bridge.address)) == []


@pytest.mark.parametrize(
    ("status", "error", "sentence"),
    [
        ("401", ConsentRevoked, "The consent for this bank connection was withdrawn. Connect the bank again."),
        ("402", Unpaid, "SimpleFIN wants to be paid: see to the subscription there."),
        ("403", ConsentRevoked, "The consent for this bank connection was withdrawn. Connect the bank again."),
        ("404", ProviderUnavailable, "The bank could not be reached."),
        ("429", RateLimited, "The bank allows no further requests for now."),
    ],
)
def test_a_status_says_what_became_of_the_access(
    bridge: Parrot, source: SimpleFin, status: str, error: type[SourceError], sentence: str
) -> None:
    bridge.faults.append(status)
    assert refused(source, connected_to(bridge.address)) == (error, sentence, f"status {status}")


@pytest.mark.parametrize(
    ("host", "userinfo"),
    [("https://evil.example", "eva:secret@"), ("http://127.0.0.1:port", "eva:secret@"), ("", "eva@"), ("", "")],
)
def test_an_access_url_of_another_server_or_without_a_password_is_never_used(
    bridge: Parrot, source: SimpleFin, host: str, userinfo: str
) -> None:
    asked = len(bridge.asked)
    assert refused(source, connected_to(host or bridge.address, userinfo)) == (
        UserActionRequired,
        "The bank asks for a sign-in. Renew the connection at the bank.",
        "no access URL of this server",
    )
    assert len(bridge.asked) == asked


@pytest.mark.parametrize(
    ("said", "error", "sentence"),
    [
        (
            Said(status=403, text="Forbidden"),
            UserActionRequired,
            "This token has been used before or does not exist. If it was not you, somebody else may have access:"
            " disable it at SimpleFIN, then make another one.",
        ),
        (Said(status=404, text="Nothing here"), ProviderUnavailable, "The bank could not be reached."),
        (
            Said(text="https://eva:secret@evil.example/simplefin"),
            ProviderUnavailable,
            "SimpleFIN gave an address that cannot be used.",
        ),
        (Said(text="{address}/simplefin"), ProviderUnavailable, "SimpleFIN gave an address that cannot be used."),
    ],
)
def test_a_token_gives_an_access_url_of_its_own_server_or_nothing(
    bridge: Parrot, source: SimpleFin, said: Said, error: type[SourceError], sentence: str
) -> None:
    token = base64.b64encode(f"{bridge.address}/claim/1".encode()).decode()
    nobody = Connection(id="", user_id="u1", bank_name="", settings={})
    reply = Reply(return_url="", state="", given={"token": token})
    own = bridge.address.replace("//", "//eva:secret@") + "/simplefin"
    bridge.said = Said(text=own)
    assert source.next_step(nobody, reply, now=NOW) == Done(bank_name="SimpleFIN", secrets={"access_url": own})
    bridge.said = Said(status=said.status, text=said.text.format(address=bridge.address))
    with pytest.raises(error) as refusal:
        source.next_step(nobody, reply, now=NOW)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    "token",
    ["", "   ", "no token", "QUJD", "w6k=", base64.b64encode(b"https://evil.example/claim/1").decode(), "A" * 2004],
)
def test_what_is_no_token_of_this_server_is_asked_for_again(bridge: Parrot, source: SimpleFin, token: str) -> None:
    asked = len(bridge.asked)
    nobody = Connection(id="", user_id="u1", bank_name="", settings={})
    reply = Reply(return_url="", state="", given={"token": token})
    question = source.next_step(nobody, reply, now=NOW)
    assert isinstance(question, Question)
    assert [each.name for each in question.fields] == ["token"]
    here = f"SimpleFIN ({bridge.address.removeprefix('http://')}/simplefin/create)"
    assert here in question.text
    assert here in (catalogue("de").said(question.text) or "")
    problem = "That is no token of this SimpleFIN server. Copy all of it." if token.strip() else None
    assert (question.problem and question.problem) == problem
    assert len(bridge.asked) == asked


def test_a_booking_without_a_day_is_pending_and_points_are_no_currency(bridge: Parrot, source: SimpleFin) -> None:
    waiting = booking("p", None, "-3.00", "Gas", transacted_at=at_noon(date(2026, 2, 27)))
    miles = {**ACCOUNT, "id": "2", "name": "Miles", "currency": "https://miles.example/"}
    bridge.said = Said(document={"accounts": [{**ACCOUNT, "transactions": [BOOKED, waiting]}, miles]})
    records, left_out = told_by(source, connected_to(bridge.address))
    assert isinstance(records, list)
    bookings = [each for each in records if isinstance(each, TransactionRecord)]
    assert [(each.status, each.booking_date) for each in bookings] == [("booked", DAY), ("pending", date(2026, 2, 27))]
    assert left_out == LeftOut(name="Miles", reason="It is kept in points or miles, which are no currency.")


def test_bookings_that_share_an_id_are_told_without_it(bridge: Parrot, source: SimpleFin) -> None:
    waiting = booking("b", None, "-3.00", "Gas", transacted_at=at_noon(DAY))
    rows = [BOOKED, BOOKED, booking("b", DAY, "-3.00", "Gas"), waiting]
    bridge.said = Said(document={"accounts": [{**ACCOUNT, "transactions": rows}]})
    (records,) = told_by(source, connected_to(bridge.address))
    assert isinstance(records, list)
    ids = [each.provider_id for each in records if isinstance(each, TransactionRecord)]
    assert ids == [None, None, "b", "b"]


def test_it_is_ready_at_once_and_has_no_news_by_itself(bridge: Parrot, source: SimpleFin) -> None:
    asked = len(bridge.asked)
    connection = connected_to(bridge.address)
    assert source.poll_refresh(connection, source.start_refresh(connection, now=NOW), now=NOW) == Ready()
    assert not isinstance(source, HasNews)
    assert len(bridge.asked) == asked
