"""finAPI from the command to the answer of the interface, against a simulated service."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tests.days import days_ago, today
from tests.live.conftest import Live, Talk, connection
from tests.simulators.finapi import Account, FinApi, booking, pending
from tests.simulators.web_bank import Said

pytestmark = pytest.mark.requirement("live.finapi")


@pytest.fixture
def service(live: Live) -> FinApi:
    giro = Account(id=81, name="Girokonto", iban="DE89370400440532013000", balance=Decimal("91.60"))
    giro.bookings = [
        booking(1, days_ago(7), "-4.20", "Kiosk", "Kaffee"),
        booking(2, days_ago(7), "-4.20", "Kiosk", "Kaffee"),
        booking(3, days_ago(7), "-1.00", "finAPI", "Ausgleich", isAdjustingEntry=True),
    ]
    giro.pending = [pending(days_ago(1), "-30.00", "Buchladen", "Atlas")]
    card = Account(id=82, name="Karte", iban=None, kind="CreditCard", balance=Decimal("-120.50"))
    consent = datetime.now(UTC) + timedelta(days=90)
    live.finapi.service = FinApi(
        accounts=[giro, card], today=today(), polls=0, consent_until=f"{consent:%Y-%m-%d %H:%M:%S}.000"
    )
    live.finapi.faults.clear()
    return live.finapi.service


def connect(live: Live, service: FinApi, user: str, **further: str) -> Talk:
    """`bankdata connect finapi`; the person signs in at the bank as soon as there is a form."""
    return live.talk("connect live", meanwhile=service.sign_in, source="finapi", user=user, **further)


def connected(live: Live, service: FinApi) -> str:
    user = live.user()
    talk = connect(live, service, user)
    address, came = talk.lines
    assert address.startswith(f"{live.finapi.address}/webForm/")
    assert came == "Beispielbank: 2 new accounts, 2 new transactions"
    return user


def sync(live: Live, user: str) -> list[str]:
    return [line.partition("\t")[2] for line in live.talk("sync", user=user).lines]


@pytest.mark.long
def test_everything_is_there_once_and_keeps_its_id_whatever_is_told_later(live: Live, service: FinApi) -> None:
    user = connected(live, service)
    coffee = (days_ago(7).isoformat(), -4.2, "Kaffee")
    assert live.bookings(user) == [coffee, coffee]
    assert live.balances(user) == {"Girokonto": 91.6, "Karte": -120.5}
    first, giro, late = live.ids(user), service.accounts[0], days_ago(30)
    giro.pending = []
    giro.bookings += [
        booking(4, today(), "-30.00", "Buchladen", "Atlas"),
        booking(5, late, "5.00", "Bank", "Zinsen", importDate=str(today())),
        booking(6, days_ago(7), "-4.30", "Kiosk", "Kaffee", importDate=str(today()), isPotentialDuplicate=True),
    ]
    giro.balance, service.page_size = Decimal("66.60"), 2
    assert sync(live, user) == ["Beispielbank\t3 new transactions"]
    assert live.bookings(user) == [
        (late.isoformat(), 5.0, "Zinsen"),
        (days_ago(7).isoformat(), -4.3, "Kaffee"),
        coffee,
        coffee,
        (today().isoformat(), -30.0, "Atlas"),
    ]
    assert first < live.ids(user)
    assert live.balances(user)["Girokonto"] == 66.6
    giro.balance = Decimal("91.60")
    sync(live, user)
    assert live.balances(user)["Girokonto"] == 91.6


@pytest.mark.long
def test_a_token_that_ends_in_the_middle_is_renewed_once(live: Live, service: FinApi) -> None:
    user = connected(live, service)
    service.broken["/api/v2/transactions"] = Said(status=401, document={"errors": []})
    service.expire_tokens()
    assert sync(live, user) == ["Beispielbank\t0 new transactions"]


@pytest.mark.long
def test_a_sign_in_that_the_bank_wants_ends_the_sync_until_it_is_renewed(live: Live, service: FinApi) -> None:
    user = connected(live, service)
    before = live.ids(user)
    service.task = "WEB_FORM_REQUIRED"
    sync(live, user)
    assert live.status(user) == "REAUTH_REQUIRED"
    asked = len(live.finapi.asked)
    sync(live, user)
    assert len(live.finapi.asked) == asked
    talk = connect(live, service, user, bank="Beispielbank")
    assert talk.lines[-1] == "Beispielbank: 0 new accounts, 0 new transactions"
    assert (live.status(user), live.ids(user)) == ("ACTIVE", before)


@pytest.mark.long
def test_a_consent_that_is_over_though_the_bank_asks_for_nobody_is_given_again_in_a_new_form(
    live: Live, service: FinApi
) -> None:
    user = connected(live, service)
    before, until = live.ids(user), service.consent_until
    service.consent_until = "2026-01-01 12:00:00.000"
    sync(live, user)
    assert live.status(user) == "EXPIRED"

    def signs_in() -> None:
        service.sign_in()
        service.consent_until = until

    talk = live.talk("connect live", meanwhile=signs_in, source="finapi", user=user, bank="Beispielbank")
    assert (talk.error, talk.lines[-1]) == ("", "Beispielbank: 0 new accounts, 0 new transactions")
    assert (live.status(user), live.ids(user)) == ("ACTIVE", before)


@pytest.mark.parametrize(
    ("code", "is_wanted", "status"),
    [
        ("INTERNAL_ERROR", False, "ACTIVE"),
        ("BANK_SERVER_REJECTION", False, "ACTIVE"),
        ("BANK_SERVER_REJECTION", True, "REAUTH_REQUIRED"),
    ],
)
@pytest.mark.sampled
def test_what_a_failed_update_means(live: Live, service: FinApi, code: str, is_wanted: bool, status: str) -> None:
    user = connected(live, service)
    service.task, service.error_code, service.is_action_required = "COMPLETED_WITH_ERROR", code, is_wanted
    sync(live, user)
    assert live.status(user) == status


@pytest.mark.parametrize("fault", ["503", "truncated", "html", "redirect"])
@pytest.mark.sampled
def test_after_a_broken_answer_the_next_sync_is_exact(live: Live, service: FinApi, fault: str) -> None:
    user = connected(live, service)
    service.accounts[0].bookings.append(booking(9, today(), "-1.00", "Neu", "Neu"))
    live.finapi.faults.append(fault)
    (line,) = sync(live, user)
    assert line.startswith("Beispielbank\tfailed: ")
    assert live.status(user) == "ACTIVE"
    talk = connect(live, service, user, bank="Beispielbank")  # else the bank is left alone for five minutes
    assert talk.lines == ["Beispielbank: 0 new accounts, 1 new transaction"]


def test_a_connection_that_is_gone_at_finapi_is_revoked(live: Live, service: FinApi) -> None:
    user = connected(live, service)
    service.connections.clear()
    sync(live, user)
    assert live.status(user) == "REVOKED"


def test_removing_the_connection_removes_it_at_finapi_too(live: Live, service: FinApi) -> None:
    user = connected(live, service)
    live.talk("connections remove", user=user, connection_id=connection(live, user)["id"])
    assert (service.connections, service.users) == (set(), {})
    assert len(live.bookings(user)) == 2
