"""Every source connected by a person in a real Chromium, in English and German, against its simulator."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browsers import chromium
from tests.conftest import empty_folder
from tests.days import today
from tests.live.conftest import Live, connection
from tests.service.conftest import get, running
from tests.simulators import finapi, fints
from tests.simulators.enable_banking import APPLICATION, BANK, BankAccount, EnableBankingSimulator, row
from tests.simulators.finapi import FinApiHost
from tests.simulators.fints import FinTsBank
from tests.simulators.fints_bank.accounts import BANK_CODE
from tests.simulators.simplefin import SimpleFinBridge
from tests.simulators.web_bank import serving

__all__ = ["chromium"]

pytestmark = pytest.mark.requirement("live.browser")

PASSWORD = "correct horse 7 battery"
LANGUAGES = ("en-GB", "de-DE")


@dataclass(frozen=True)
class Banks:
    """The server, and the German bank that only its operator can name."""

    live: Live
    fints: FinTsBank


@pytest.fixture(scope="module")
def banks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Banks]:
    """A server for which every source is set up."""
    folder: Path = empty_folder(tmp_path_factory.mktemp("browser") / "data")
    secret = folder.with_name("finapi-secret")
    secret.write_text(f"{finapi.SECRET}\n")
    with (
        serving(SimpleFinBridge()) as simplefin,
        serving(EnableBankingSimulator()) as enable_banking,
        serving(FinApiHost(finapi.example(today()))) as host,
        serving(FinTsBank(fints.example(today()))) as german,
    ):
        rows = [row("r1", today().isoformat(), "-12.50", "Corner Cafe")]
        enable_banking.accounts = [BankAccount(hash="giro", iban="DE89370400440532013000", balance="1.00", rows=rows)]
        settings = {
            "SIMPLEFIN_URL": simplefin.address,
            "ENABLE_BANKING_URL": enable_banking.address,
            "ENABLE_BANKING_APPLICATION": APPLICATION,
            "ENABLE_BANKING_KEY_FILE": str(enable_banking.write_key(folder.parent)),
            "FINAPI_URL": host.address,
            "FINAPI_WEBFORM_URL": host.address,
            "FINAPI_CLIENT": finapi.CLIENT,
            "FINAPI_SECRET_FILE": str(secret),
            "FINTS_PRODUCT": fints.PRODUCT,
            "FINTS_BANKS": f"{BANK_CODE}={german.url}",
            "SYNC_COOLDOWN_SECONDS": "0",
        }
        with running(folder, command="serve", settings=settings) as served:
            yield Banks(Live(served, simplefin, enable_banking, host), german)
        assert "Traceback" not in served.log.read_text()


@dataclass
class Visitor:
    """A person in a browser of one language, signed in at the page where banks are connected."""

    live: Live
    user: str
    page: Page
    language: str

    def words(self, en: str, de: str) -> str:
        """What the page says in this person's language."""
        return en if self.language.startswith("en") else de

    def press(self, en: str, de: str) -> None:
        self.page.get_by_role("button", name=self.words(en, de), exact=True).click()

    def fill(self, label: str, value: str) -> None:
        self.page.get_by_label(re.compile(label)).fill(value)

    def sees(self, en: str, de: str) -> None:
        expect(self.page.get_by_text(self.words(en, de))).to_be_visible()

    def start(self, source: str) -> None:
        self.press(f"Connect with {source}", f"Mit {source} verbinden")

    def is_connected(self, bank: str) -> None:
        """The page says so, speaks one language throughout, and the first sync ends."""
        self.sees(f"{bank} is connected.", f"{bank} ist verbunden.")
        expect(self.page.locator("[lang]:not(html)")).to_have_count(0)
        for _ in range(300):
            if connection(self.live, self.user)["lastSyncedAt"] is not None:
                break
            self.page.wait_for_timeout(100)
        assert self.live.status(self.user) == "ACTIVE"


Visiting = Callable[[str], Visitor]


@pytest.fixture
def visitor(banks: Banks, chromium: Browser) -> Iterator[Visiting]:
    """Opens `/account/connect` in a new browser; the sign-in leads back there."""
    opened = []

    def visit(language: str, path: str = "/account/connect", user: str | None = None) -> Visitor:
        context = chromium.new_context(locale=language)
        opened.append(context)
        page, name = context.new_page(), user or banks.live.user()
        page.goto(banks.live.served.address + path)
        page.get_by_label(re.compile("User name|Benutzername")).fill(name)
        page.get_by_label(re.compile("^(Password|Passwort)$")).fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"{re.escape(path)}$"))
        return Visitor(banks.live, name, page, language)

    yield visit
    for each in opened:
        each.close()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.long
def test_finapi_is_connected_in_its_own_tab_while_the_page_goes_on_by_itself(
    banks: Banks, visitor: Visiting, language: str
) -> None:
    banks.live.finapi.service = finapi.example(today())
    banks.live.finapi.service.polls = 0
    person = visitor(language)
    person.start("finAPI")
    person.press("I have done that", "Das habe ich getan")
    person.sees("Not yet: word that you are done has not arrived here.", "Noch nicht: Dass Sie fertig sind")
    with person.page.context.expect_page() as bank:
        person.page.get_by_role("link", name=person.words("To your bank", "Zu Ihrer Bank")).click()
    expect(bank.value.get_by_text("Signed in.")).to_be_visible()
    person.is_connected("Beispielbank")


def signs_in_at_the_bank(person: Visitor) -> None:
    """From our page to the bank's and back."""
    person.page.get_by_role("link", name=person.words("To your bank", "Zu Ihrer Bank")).click()
    person.page.get_by_role("link", name="Approve").click()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.sampled
def test_enable_banking_leads_to_the_bank_and_back(visitor: Visiting, language: str) -> None:
    person = visitor(language)
    person.start("Enable Banking")
    country = person.page.get_by_label(person.words("Country", "Land"))
    country.select_option("AT")
    person.press("Next", "Weiter")
    person.press("Back", "Zurück")
    expect(country).to_have_value("AT")
    country.select_option("DE")
    person.press("Next", "Weiter")
    person.press("Next", "Weiter")
    signs_in_at_the_bank(person)
    person.is_connected(BANK)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.sampled
def test_simplefin_takes_a_token_once_and_says_so_in_the_language_of_the_page(
    banks: Banks, visitor: Visiting, language: str
) -> None:
    customer = banks.live.simplefin.customer()
    customer.account("checking", "1.00", day=today())
    for attempt in range(2):
        person = visitor(language)
        person.start("SimpleFIN")
        person.fill("SimpleFIN", customer.token)
        person.press("Next", "Weiter")
        if not attempt:
            person.is_connected("SimpleFIN")
    person.sees("This token has been used before or does not exist.", "Dieser Token wurde schon benutzt")
    expect(person.page.locator("[lang]:not(html)")).to_have_count(0)


@pytest.mark.parametrize(("language", "keep"), [("en-GB", "no"), ("de-DE", "yes")])
@pytest.mark.long
def test_an_approval_in_the_app_goes_on_by_itself_and_pressed_too_early_it_says_so(
    banks: Banks, visitor: Visiting, language: str, keep: str
) -> None:
    banks.fints.bank = fints.example(today())
    person = visitor(language)
    person.start("FinTS")
    person.press("Next", "Weiter")
    person.fill("Login|Anmeldename", banks.fints.bank.login)
    person.page.get_by_label("PIN", exact=True).fill(banks.fints.bank.pin)
    person.page.locator("select[name=keep_pin]").select_option(keep)
    person.press("Next", "Weiter")
    person.press("I have done that", "Das habe ich getan")
    person.sees("Not yet: word that you are done has not arrived here.", "Noch nicht: Dass Sie fertig sind")
    banks.fints.bank.approve()
    person.is_connected("Testbank AG")
    promise = person.page.get_by_text(
        person.words("Nothing is fetched from this bank by itself", "Von dieser Bank wird nichts von selbst abgerufen")
    )
    expect(promise).to_have_count(1 if keep == "no" else 0)
    person.page.goto(f"{banks.live.served.address}/connections")
    expect(person.page.get_by_role("region", name="Testbank AG")).to_be_visible()
    expect(promise).to_have_count(1 if keep == "no" else 0)


@pytest.mark.requirement("live.long-ago")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.long
def test_an_approval_for_bookings_of_long_ago_is_given_or_left_out(
    banks: Banks, visitor: Visiting, language: str
) -> None:
    bank = banks.fints.bank = fints.example(today())
    bank.tan, bank.free_days = "typed", 90
    person = visitor(language)
    person.start("FinTS")
    person.press("Next", "Weiter")
    person.fill("Login|Anmeldename", bank.login)
    person.page.get_by_label("PIN", exact=True).fill(bank.pin)
    person.press("Next", "Weiter")
    wanted = "The bank wants another approval for transactions", "Für Buchungen, die älter als 89 Tage sind"
    for typed, said in ((bank.right_tan, wanted), ("000000", ("not accepted", "noch nicht angenommen"))):
        person.page.get_by_label("TAN", exact=True).fill(typed)
        person.press("Next", "Weiter")
        person.sees(*said)
    person.press("Next", "Weiter")
    person.is_connected("Testbank AG")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.long
def test_a_bank_is_fetched_from_renewed_and_disconnected_beside_its_name(
    banks: Banks, visitor: Visiting, language: str
) -> None:
    live, bank = banks.live, banks.live.enable_banking
    person = visitor(language)
    page = person.page
    person.start("Enable Banking")
    person.press("Next", "Weiter")
    person.press("Next", "Weiter")
    signs_in_at_the_bank(person)
    person.is_connected(BANK)
    before = connection(live, person.user)
    asked = len(bank.asked)

    page.goto(f"{live.served.address}/connections")
    card = page.get_by_role("region", name=BANK)
    expect(card).to_contain_text(person.words("4 of 4 fetches in 24 hours left", "noch 4 von 4 Abrufen in 24 Stunden"))
    card.get_by_role("button", name=person.words("Sync now", "Jetzt abrufen")).click()
    expect(page.get_by_text(person.words("Nothing new", "Nichts Neues"))).to_be_visible()
    assert {each.headers.get("psu-ip-address") for each in bank.asked[asked:]} == {"127.0.0.1"}
    assert connection(live, person.user)["quota"]["used"] == before["quota"]["used"] == 0

    card.get_by_role("link", name=person.words("Renew", "Erneuern")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(person.words(f"Renew {BANK}", f"{BANK} erneuern"))
    person.press(f"Renew {BANK}", f"{BANK} erneuern")
    expect(page.get_by_role("heading", level=1)).to_have_text(person.words(f"Renew {BANK}", f"{BANK} erneuern"))
    signs_in_at_the_bank(person)
    person.is_connected(BANK)
    assert connection(live, person.user)["id"] == before["id"]

    page.goto(f"{live.served.address}/connections")
    page.get_by_role("region", name=BANK).get_by_role("link", name=person.words("Disconnect", "Trennen")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(person.words(f"Disconnect {BANK}", f"{BANK} trennen"))
    page.get_by_role("link", name=person.words("Keep it connected", "Verbunden lassen")).click()
    page.get_by_role("link", name=person.words(f"Disconnect {BANK}", f"{BANK} trennen")).click()
    person.press("Disconnect", "Trennen")
    person.sees("The connection has ended.", "Die Verbindung ist getrennt.")
    assert bank.paths()[-1].startswith("DELETE /sessions/")
    assert get(live.client(person.user), "/connections") == {"connections": []}
    assert len(live.bookings(person.user)) == 1
    page.goto(f"{live.served.address}/account")
    person.sees("Bank disconnected", "Bank getrennt")


@pytest.mark.long
def test_the_overview_reminds_of_a_bank_before_its_consent_ends(banks: Banks, visitor: Visiting) -> None:
    soon = datetime.now(UTC) + timedelta(days=6)
    banks.live.finapi.service = finapi.example(today())
    banks.live.finapi.service.polls = 0
    banks.live.finapi.service.consent_until = f"{soon:%Y-%m-%d %H:%M:%S}.000"
    person = visitor("de-DE")
    person.start("finAPI")
    with person.page.context.expect_page():
        person.page.get_by_role("link", name="Zu Ihrer Bank").click()
    person.is_connected("Beispielbank")
    person.page.goto(banks.live.served.address)
    reminder = person.page.get_by_role("listitem").filter(has_text="Eine Zustimmung läuft ab")
    expect(reminder).to_contain_text("Die Zustimmung für Beispielbank läuft am")
    reminder.get_by_role("link").click()
    expect(person.page).to_have_url(re.compile(r"/account/connect\?connection=con_"))
    person.press("Beispielbank erneuern", "Beispielbank erneuern")
    person.is_connected("Beispielbank")
