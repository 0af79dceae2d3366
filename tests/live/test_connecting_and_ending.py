"""Connecting again, being reminded of it, and ending: over the real command line and pages, against the simulators."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.days import today
from tests.live.conftest import Live
from tests.live.test_enable_banking import at_the_bank, bank, fields, signed_in, wait_for_sync
from tests.live.test_fints import connect
from tests.service.conftest import get
from tests.simulators.enable_banking import BANK
from tests.simulators.fints import FinTsBank, example
from tests.simulators.simplefin import booking
from tests.simulators.web_bank import serving

__all__ = ["bank"]  # a fixture of other tests, for these too


@pytest.fixture
def page(live: Live) -> Iterator[Callable[[str, str], httpx.Client]]:
    """A browser in which this user is signed in, in this language."""
    made = []

    def opened(user: str, language: str) -> httpx.Client:
        browser = httpx.Client(
            base_url=live.served.address,
            follow_redirects=True,
            timeout=60,
            trust_env=False,
            headers={"accept-language": language},
        )
        made.append(browser)
        signed_in(browser, user)
        return browser

    yield opened
    for each in made:
        each.close()


@pytest.mark.requirement("live.attempts")
@pytest.mark.long
def test_the_last_form_sent_twice_begins_one_first_sync(live: Live, page: Callable[[str, str], httpx.Client]) -> None:
    customer, user = live.simplefin.customer(), live.user()
    customer.account("1", "5.00", booking("a", today(), "-1.00", "Cafe"), day=today())
    browser = page(user, "en")
    form = fields(browser.get("/account/connect").text)["form_token"]
    step = browser.post("/account/connect", data={"form_token": form, "source": "simplefin"})
    last = {**fields(step.text), "token": customer.token}
    asked = len(live.simplefin.asked)
    for _ in range(3):
        assert "SimpleFIN is connected." in browser.post("/account/connect/step", data=last).text
        wait_for_sync(live, user)
    assert [each.path.rpartition("/")[2] for each in live.simplefin.asked[asked:]].count("accounts") == 1


@pytest.mark.requirement("live.fints")
@pytest.mark.long
def test_a_second_login_at_a_bank_is_a_connection_beside_the_first_and_the_same_one_renews(live: Live) -> None:
    user = live.user()
    with serving(FinTsBank(example(today()))) as fints_bank:
        connect(live, fints_bank, user, "eva-login", fints_bank.bank.pin, "yes")
        fints_bank.bank.login = "tom-login"
        talk = connect(live, fints_bank, user, "tom-login", fints_bank.bank.pin, "yes")
        assert talk.notes[-1] == "Testbank AG 2 is connected."
        talk = connect(live, fints_bank, user, "tom-login", fints_bank.bank.pin, "yes")
        assert talk.notes[-1] == "Testbank AG 2 is connected."
        fints_bank.bank.login = "eva-login"
        assert live.talk("sync", user=user).lines[0].endswith("Testbank AG\t0 new transactions")
    names = [each["bankName"] for each in get(live.client(user), "/connections")["connections"]]
    assert names == ["Testbank AG", "Testbank AG 2"]


@pytest.mark.usefixtures("bank")
@pytest.mark.requirement("sync.consent")
@pytest.mark.parametrize(
    ("language", "ends", "expired", "link"),
    [
        ("en", "The consent ends in less than 7 days", "The consent has expired", "Renew a bank"),
        ("de", "Die Zustimmung endet in weniger als 7 Tagen", "Die Zustimmung ist abgelaufen", "Bank erneuern"),
    ],
)
@pytest.mark.sampled
def test_the_account_page_reminds_of_a_consent_that_ends_and_leads_to_the_renewal(
    live: Live, page: Callable[[str, str], httpx.Client], language: str, ends: str, expired: str, link: str
) -> None:
    user = live.user()
    browser = page(user, "de")
    browser.get(f"{at_the_bank(browser)}/approve")
    wait_for_sync(live, user)
    browser.headers["accept-language"] = language
    assert link not in browser.get("/account").text
    for session in live.enable_banking.sessions.values():
        session["access"] = {"valid_until": (datetime.now(UTC) + timedelta(days=6)).isoformat()}
    live.sync(user)
    shown = browser.get("/account").text
    assert f"<li>{BANK}: {ends}</li>" in shown
    assert f'href="/account/connect#renew">{link}</a>' in shown
    assert 'id="renew"' in browser.get("/account/connect").text
    live.enable_banking.end_sessions("EXPIRED")
    live.sync(user)
    assert f"<li>{BANK}: {expired}</li>" in browser.get("/account").text


@pytest.mark.usefixtures("bank")
@pytest.mark.requirement("live.enable_banking")
def test_with_a_user_the_access_at_the_providers_ends_and_what_cannot_be_ended_there_is_said(
    live: Live, page: Callable[[str, str], httpx.Client]
) -> None:
    customer, user = live.simplefin.customer(), live.user()
    customer.account("1", "5.00", booking("a", today(), "-1.00", "Cafe"), day=today())
    assert live.bankdata("connect", "simplefin", "--user", user, stdin=f"{customer.token}\n").returncode == 0
    browser = page(user, "de")
    browser.get(f"{at_the_bank(browser)}/approve")
    done = live.bankdata("users", "remove", user, "--yes")
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "The access to SimpleFIN could not be ended at the provider: SimpleFIN has no request for that. End it"
            " there.",
            f"Removed user {user} with all data.",
        ],
    )
    assert [each["status"] for each in live.enable_banking.sessions.values()][-1] == "CLOSED"
