"""SimpleFIN from the command line to the answer of the interface, against a simulated bridge."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.live.conftest import Live, connection
from tests.simulators.simplefin import Customer, at_noon, booking

pytestmark = pytest.mark.requirement("live.simplefin")

TODAY = datetime.now(UTC).date()
YESTERDAY, BEFORE = TODAY - timedelta(days=1), TODAY - timedelta(days=2)


@pytest.fixture
def customer(live: Live) -> Customer:
    live.simplefin.faults.clear()
    made = live.simplefin.customer()
    made.account(
        "1",
        "100.00",
        booking("a", BEFORE, "-10.00", "Cafe"),
        booking("b", BEFORE, "-10.00", "Cafe"),
        booking("p", None, "-30.00", "Gas", transacted_at=at_noon(YESTERDAY)),
        day=BEFORE,
    )
    return made


def connected(live: Live, customer: Customer) -> str:
    user = live.user()
    done = live.bankdata("connect", "simplefin", "--user", user, stdin=f"{customer.token}\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SimpleFIN: 1 new account, 2 new transactions\n"
    return user


def test_everything_is_there_once_and_keeps_its_id_whatever_is_told_later(live: Live, customer: Customer) -> None:
    user = connected(live, customer)
    cafe = (BEFORE.isoformat(), -10.0, "Cafe")
    assert live.bookings(user) == [cafe, cafe]
    assert live.balances(user) == {"Account 1": 100.0}
    first = live.ids(user)
    assert live.sync(user) == ["SimpleFIN\t0 new transactions"]
    customer.account(
        "1",
        "50.00",
        booking("a", BEFORE, "-10.00", "Cafe"),
        booking("b", YESTERDAY, "-11.00", "Cafe, corrected"),
        booking("p2", TODAY, "-30.00", "Gas", transacted_at=at_noon(YESTERDAY)),
        booking("late", TODAY - timedelta(days=80), "5.00", "Late"),
        day=TODAY,
    )
    assert live.sync(user) == ["SimpleFIN\t2 new transactions"]
    assert live.bookings(user) == [
        ((TODAY - timedelta(days=80)).isoformat(), 5.0, "Late"),
        cafe,
        (YESTERDAY.isoformat(), -11.0, "Cafe, corrected"),
        (TODAY.isoformat(), -30.0, "Gas"),
    ]
    assert first < live.ids(user)
    assert live.balances(user) == {"Account 1": 50.0}
    customer.accounts[0]["balance"] = "100.00"
    assert live.sync(user) == ["SimpleFIN\t0 new transactions"]
    assert live.balances(user) == {"Account 1": 100.0}


@pytest.mark.parametrize("fault", ["503", "malformed", "truncated", "html", "hang-up", "redirect"])
def test_after_a_broken_answer_the_next_sync_is_exact(live: Live, customer: Customer, fault: str) -> None:
    user = connected(live, customer)
    customer.accounts[0]["transactions"].append(booking("c", TODAY, "-1.00", "New"))
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
    customer.account("miles", "1.00", day=TODAY, currency="https://miles.example/")
    done = live.bankdata("sync", "--user", user)
    assert "First Bank" in done.stdout
    assert "Sign in again" in done.stdout
    assert "points or miles" in done.stdout
    assert live.status(user) == "ACTIVE"
    customer.accounts = []
    live.sync(user)
    assert live.status(user) == "REAUTH_REQUIRED"


def test_removing_the_connection_forgets_its_secret(live: Live, customer: Customer) -> None:
    user = connected(live, customer)
    id_ = connection(live, user)["id"]
    assert live.bankdata("connections", "remove", id_, "--user", user).returncode == 0
    assert len(live.bookings(user)) == 2
