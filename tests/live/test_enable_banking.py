"""Enable Banking from the command line and from the account page, against a simulated provider and bank."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import httpx
import pytest

from tests.days import days_ago, today
from tests.live.conftest import Live, connection
from tests.simulators.enable_banking import BANK, BankAccount, EnableBankingSimulator, row

pytestmark = pytest.mark.requirement("live.enable_banking")

PASSWORD = "correct horse 7 battery"


def day(back: int) -> str:
    return days_ago(back).isoformat()


@pytest.fixture
def bank(live: Live) -> EnableBankingSimulator:
    simulator = live.enable_banking
    simulator.accounts = [
        BankAccount(
            hash="giro",
            iban="DE89370400440532013000",
            balance="100.00",
            rows=[
                row("r1", day(3), "-10.00", "Cafe"),
                row("r2", day(3), "-10.00", "Cafe"),
                row("0", day(2), "-1.00", "Kiosk"),
                row("0", day(2), "-2.00", "Kiosk"),
                row("r5", day(1), "-30.00", "Tankstelle", status="PDNG"),
                row("r6", day(1), "99.00", "Nie", status="RJCT"),
            ],
        )
    ]
    return simulator


def connected(live: Live, user: str, *, way: str = "approve") -> tuple[int, str, str]:
    """Connect by command, the person going to the bank in a browser of their own; code, output, errors."""
    process = live.started("connect", "enable-banking", "--user", user, "--country", "DE", "--bank", BANK)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    with httpx.Client(follow_redirects=True, timeout=60, trust_env=False) as browser:
        assert "Mock Bank" in browser.get(url).text
        page = browser.get(f"{url}/{way}")
        assert page.status_code == 200, page.text
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_a_bank_is_connected_by_command_and_every_booking_is_there_once(
    live: Live, bank: EnableBankingSimulator
) -> None:
    user = live.user()
    assert connected(live, user)[:2] == (0, f"{BANK}: 1 new account, 4 new transactions\n")
    cafe = (day(3), -10.0, "Cafe")
    kiosk = [(day(2), -2.0, "Kiosk"), (day(2), -1.0, "Kiosk")]
    assert live.bookings(user) == [cafe, cafe, *kiosk]
    assert live.balances(user) == {"Account giro": 100.0}
    assert connection(live, user)["consentExpiresAt"][:10] == (today() + timedelta(days=90)).isoformat()
    before = live.ids(user)
    bank.accounts[0].rows[4] = row("r5x", day(0), "-30.00", "Tankstelle")
    bank.accounts[0].balance = "70.00"
    assert live.sync(user) == [f"{BANK}\t1 new transaction"]
    assert live.bookings(user)[-1] == (day(0), -30.0, "Tankstelle")
    assert before < live.ids(user)
    assert live.balances(user) == {"Account giro": 70.0}
    bank.end_sessions("EXPIRED")
    live.sync(user)
    assert live.status(user) == "EXPIRED"
    asked = len(bank.asked)
    live.sync(user)
    assert len(bank.asked) == asked
    ids = live.ids(user)
    assert connected(live, user)[:2] == (0, f"{BANK}: 0 new accounts, 0 new transactions\n")
    assert live.ids(user) == ids
    assert live.status(user) == "ACTIVE"
    assert live.bankdata("connections", "remove", connection(live, user)["id"], "--user", user).returncode == 0
    assert [each["status"] for each in bank.sessions.values()][-1] == "CLOSED"


def test_a_denial_connects_nothing(live: Live, bank: EnableBankingSimulator) -> None:
    user = live.user()
    code, out, err = connected(live, user, way="deny")
    assert (code, out) == (1, "")
    assert "Nothing was connected" in err
    assert live.bankdata("connections", "list", "--user", user).stdout == ""


@pytest.mark.long
def test_a_bank_that_tells_less_is_asked_for_less_and_an_account_it_refuses_is_a_warning(
    live: Live, bank: EnableBankingSimulator
) -> None:
    bank.accounts[0].longest = 90
    bank.accounts.append(BankAccount(hash="card", iban=None, balance="0", error="ASPSP_ACCOUNT_NOT_ACCESSIBLE"))
    user = live.user()
    code, out, err = connected(live, user)
    assert "Account card: refused: The bank does not give access to this account." in out
    assert (code, err.splitlines()[-1]) == (1, "Error: Not everything came from Mock Bank.")
    assert live.status(user) == "ACTIVE"
    assert len(live.bookings(user)) == 4


@pytest.fixture
def browser(live: Live) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=live.served.address,
        follow_redirects=True,
        timeout=60,
        trust_env=False,
        headers={"Accept-Language": "de"},
    ) as made:
        yield made


def signed_in(browser: httpx.Client, user: str) -> None:
    browser.post(
        "/oauth/login", data={**fields(browser.get("/oauth/login").text), "username": user, "password": PASSWORD}
    )


def wait_for_sync(live: Live, user: str) -> None:
    """Until the sync that followed connecting has ended."""
    while connection(live, user)["isSyncing"] or connection(live, user)["lastSyncedAt"] is None:
        pass


def fields(page: str) -> dict[str, str]:
    """The hidden fields of the last form of a page."""
    form = page.rpartition("<form")[2]
    return {
        name: unescape(value) for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    }


def at_the_bank(browser: httpx.Client) -> str:
    """From the choice to the plain link, in German; the link."""
    page = browser.get("/account/connect").text
    assert "Bank verbinden" in page
    page = browser.post("/account/connect", data={**fields(page), "source": "enable-banking"}).text
    page = browser.post("/account/connect/step", data={**fields(page), "country": "DE"}).text
    assert f'<option value="{BANK}"' in page
    answer = browser.post("/account/connect/step", data={**fields(page), "bank": BANK})
    assert "form-action 'self'" in answer.headers["content-security-policy"]
    (link,) = re.findall(r'<a class="primary button" href="([^"]+)"', answer.text)
    return unescape(link)


@pytest.mark.long
def test_a_stranger_connects_a_bank_from_the_page_alone_and_renews_it(
    live: Live, bank: EnableBankingSimulator, browser: httpx.Client
) -> None:
    user = live.user()
    signed_in(browser, user)
    done = browser.get(f"{at_the_bank(browser)}/approve")
    assert f"{BANK} ist verbunden." in done.text
    wait_for_sync(live, user)
    bank.end_sessions("EXPIRED")
    live.sync(user)
    page = browser.get("/account/connect").text
    assert "Die Zustimmung ist abgelaufen" in page
    id_ = connection(live, user)["id"]
    page = browser.post("/account/connect", data={"form_token": fields(page)["form_token"], "connection": id_}).text
    (link,) = re.findall(r'<a class="primary button" href="([^"]+)"', page)
    assert f"{BANK} ist verbunden." in browser.get(f"{unescape(link)}/approve").text
    wait_for_sync(live, user)
    assert live.status(user) == "ACTIVE"
    assert len(live.bookings(user)) == 4


@pytest.mark.requirement("sync.attended")
@pytest.mark.long
def test_a_person_who_fetches_on_the_page_is_present_for_the_bank_and_an_app_is_not(
    live: Live, bank: EnableBankingSimulator, browser: httpx.Client
) -> None:
    user = live.user()
    signed_in(browser, user)
    browser.get(f"{at_the_bank(browser)}/approve")
    wait_for_sync(live, user)
    used = connection(live, user)["quota"]["used"]

    def told(asked: int) -> set[str | None]:
        wait_for_sync(live, user)
        return {each.headers.get("psu-ip-address") for each in bank.asked[asked:]}

    asked = len(bank.asked)
    page = browser.get("/account/connect").text
    given = {"form_token": fields(page)["form_token"], "connection": connection(live, user)["id"]}
    browser.headers["Accept"] = "text/html"
    assert "Neue Buchungen werden abgerufen" in browser.post("/account/connect/fetch", data=given).text
    assert told(asked) == {"127.0.0.1"}
    assert connection(live, user)["quota"]["used"] == used
    asked = len(bank.asked)
    live.client(user).post("/sync")
    assert live.sync(user)
    assert told(asked) == {None}
    assert connection(live, user)["quota"]["used"] > used


def test_the_way_back_is_good_once_in_the_browser_that_was_sent_and_for_no_forged_state(
    live: Live, bank: EnableBankingSimulator, browser: httpx.Client
) -> None:
    user = live.user()
    signed_in(browser, user)
    link = at_the_bank(browser)
    exchanges = bank.paths().count("POST /sessions")
    back = httpx.get(f"{link}/approve", timeout=60, trust_env=False).headers["location"]
    with httpx.Client(follow_redirects=True, timeout=60, trust_env=False) as other:
        assert other.get(back).status_code == 400
        signed_in_other = live.user()
        other.base_url = httpx.URL(live.served.address)
        signed_in(other, signed_in_other)
        assert other.get(back).status_code == 400
    forged = re.sub(r"state=[^&]+", f"state={user}.forged", back)
    assert browser.get(forged).status_code == 400
    assert bank.paths().count("POST /sessions") == exchanges
    assert f"{BANK} ist verbunden." in browser.get(back).text
    assert browser.get(back).status_code == 400
    assert bank.paths().count("POST /sessions") == exchanges + 1


@pytest.mark.long
def test_the_accounts_of_a_company_are_asked_for_as_such_when_they_are_renewed_too(
    live: Live, bank: EnableBankingSimulator, browser: httpx.Client
) -> None:
    user = live.user()
    signed_in(browser, user)
    page = browser.get("/account/connect").text
    page = browser.post("/account/connect", data={**fields(page), "source": "enable-banking"}).text
    form = {**fields(page), "country": "DE", "psu_type": "business"}
    page = browser.post("/account/connect/step", data=form).text
    page = browser.post("/account/connect/step", data={**fields(page), "bank": BANK}).text
    (link,) = re.findall(r'<a class="primary button" href="([^"]+)"', page)
    assert f"{BANK} ist verbunden." in browser.get(f"{unescape(link)}/approve").text
    wait_for_sync(live, user)
    given = {"form_token": fields(browser.get("/account/connect").text)["form_token"]}
    browser.post("/account/connect", data={**given, "connection": connection(live, user)["id"]})
    asked = [each.document() for each in bank.asked if each.path == "/auth"][-2:]
    assert [each["psu_type"] for each in asked] == ["business", "business"]
    listed = [each.query["psu_type"] for each in bank.asked if each.path == "/aspsps"][-2:]
    assert listed == ["business", "business"]


def test_of_many_banks_one_is_searched_by_name_and_needs_no_script(
    live: Live, bank: EnableBankingSimulator, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bank, "other_banks", [f"Sparkasse {number}" for number in range(2_402)])
    signed_in(browser, live.user())
    page = browser.get("/account/connect").text
    page = browser.post("/account/connect", data={**fields(page), "source": "enable-banking"}).text
    page = browser.post("/account/connect/step", data={**fields(page), "country": "DE"}).text
    assert re.findall(r'name="bank" type="text" list="(\S+)"', page) == ["choices-1"]
    assert page.count("<option") == 2_403
    page = browser.post("/account/connect/step", data={**fields(page), "bank": BANK.upper()}).text
    assert 'class="primary button"' in page
