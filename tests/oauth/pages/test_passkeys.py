"""Passkeys: made after the password, asked for in place of a code, signed for one page and one moment, and removed."""

import hashlib
import html
import json
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from auth.people import passkeys as rules
from auth.policy import origin_of
from auth.server import AuthorizationServer
from handlers.oauth.site import Site
from storage import users
from tests.oauth.conftest import FAST, PASSWORD, fields, policy
from tests.oauth.pages.test_account import signed_in
from tests.oauth.pages.test_second_factor import code_of, half_signed_in, step, turn_on

REQUIREMENT = "oauth.passkeys"
ORIGIN = "https://bank.example"
PRESENT, VERIFIED, WITH_KEY = 0x01, 0x04, 0x40


def text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def content(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Device:
    """An authenticator that keeps one key and counts; a test may make it lie."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    count: int = 0
    flags: int = PRESENT | VERIFIED
    origin: str = ORIGIN
    host: str | None = None  # in place of what the page says
    type: str | None = None  # in place of the right one
    handle: str | None = None  # of the user for whom the key was made

    def makes(self, options: dict[str, Any]) -> str:
        """The answer to PublicKeyCredentialCreationOptions."""
        self.handle = options["user"]["id"]
        numbers = self.key.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (numbers.x, numbers.y))
        public_key = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})  # COSE: EC2, ES256, P-256
        credential = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + public_key
        data = self._data(options["rp"]["id"], self.flags | WITH_KEY) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        said = self._client_data("webauthn.create", options["challenge"])
        return self._answer(clientDataJSON=said, attestationObject=attestation)

    def signs(self, options: dict[str, Any]) -> str:
        """The answer to PublicKeyCredentialRequestOptions."""
        self.count += 1
        data = self._data(options["rpId"], self.flags)
        said = self._client_data("webauthn.get", options["challenge"])
        signature = self.key.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(SHA256()))
        named = {"userHandle": content(self.handle)} if self.handle is not None else {}
        return self._answer(clientDataJSON=said, authenticatorData=data, signature=signature, **named)

    def _data(self, host: str, flags: int) -> bytes:
        return hashlib.sha256((self.host or host).encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": self.type or kind, "challenge": challenge, "origin": self.origin}).encode()

    def _answer(self, **response: bytes) -> str:
        told = {name: text(value) for name, value in response.items()}
        return json.dumps({"id": text(self.id), "rawId": text(self.id), "type": "public-key", "response": told})


def options_in(page: Any) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(html.unescape(re.search(r'data-options="([^"]*)"', page.text)[1]))  # type: ignore[index]
    return options


def asked(browser: Any, name: str = "Telephone") -> Any:
    """The page on which the script asks for a new passkey."""
    form = fields(browser.client.get("/account/passkeys").text)
    return browser.client.post("/account/passkeys", data={**form, "name": name, "current_password": PASSWORD})


def added(browser: Any, device: Device, name: str = "Telephone") -> Any:
    page = asked(browser, name)
    answer = device.makes(options_in(page))
    return browser.client.post("/account/passkeys/add", data={**fields(page.text), "passkey": answer})


def with_passkey(world: Any, name: str = "alice") -> tuple[Device, Any, str]:
    """A device with a passkey of this user, the browser in which it was made, and the seed of the codes."""
    seed, _codes, browser = turn_on(world, name)
    device = Device()
    assert added(browser, device).headers["location"] == "/account/passkeys"
    return device, browser, seed


def at_the_step(world: Any, name: str = "alice") -> tuple[Any, dict[str, str], dict[str, Any]]:
    """A browser after the password, the form of its second step, and what its page tells a device."""
    browser, form = half_signed_in(world, name)
    return browser, form, options_in(browser.client.get("/oauth/second-step"))


def shows(browser: Any, form: dict[str, str], answer: str) -> Any:
    return browser.client.post("/oauth/second-step", data={**form, "passkey": answer})


@pytest.fixture
def bank(make_world: Callable[..., Any]) -> Any:
    """A service under a domain."""
    return make_world(public_url=ORIGIN)


@pytest.mark.requirement(REQUIREMENT)
def test_a_passkey_takes_the_place_of_the_code_and_its_last_use_is_seen(bank: Any) -> None:
    device, first, seed = with_passkey(bank)
    assert "Last used around" not in first.client.get("/account/passkeys").text
    browser, form, options = at_the_step(bank)
    assert (options["rpId"], options["userVerification"]) == ("bank.example", "preferred")
    assert [each["id"] for each in options["allowCredentials"]] == [text(device.id)]
    assert browser.client.get("/account").headers["location"] == "/oauth/login"
    assert shows(browser, form, device.signs(options)).headers["location"] == "/account"
    assert browser.client.get("/account").status_code == 200
    page = first.client.get("/account/passkeys").text
    assert "Telephone" in page
    assert "Last used around" in page
    browser, form = half_signed_in(bank)
    assert step(browser, form, code_of(bank, seed)).status_code == 303  # codes go on working
    bank.server.record.write()
    assert bank.database.rows("SELECT calls FROM access_record WHERE operation = 'addPasskey'") == [{"calls": 1}]


def lies(**more: Any) -> Callable[[Device, dict[str, Any]], str]:
    def answer(device: Device, options: dict[str, Any]) -> str:
        for name, value in more.items():
            setattr(device, name, value)
        return device.signs(options)

    return answer


WRONG: dict[str, Callable[[Device, dict[str, Any]], str]] = {
    "another origin": lies(origin="https://bank.example.evil.example"),
    "another port": lies(origin="https://bank.example:8443"),
    "another host": lies(host="evil.example"),
    "made for making": lies(type="webauthn.create"),
    "nobody touched it": lies(flags=0),
    "no counting on": lies(count=-1),
    "another key": lies(key=ec.generate_private_key(ec.SECP256R1())),
    "another passkey": lies(id=b"another passkey."),
    "another challenge": lambda device, options: device.signs({**options, "challenge": text(b"x" * 43)}),
    "no JSON": lambda _device, _options: "{",
    "a list": lambda _device, _options: "[]",
    "an id that is none": lambda _device, _options: '{"id": 1}',
    "nested": lambda _device, _options: "[" * 5_000,
    "nothing but the id": lambda device, _options: json.dumps({"id": text(device.id)}),
}


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.sampled
def test_what_is_not_signed_here_and_now_opens_nothing(bank: Any, wrong: str) -> None:
    device, _browser, _seed = with_passkey(bank)
    device.count = 5
    browser, form, options = at_the_step(bank)
    assert shows(browser, form, device.signs(options)).status_code == 303
    browser, form, options = at_the_step(bank)
    refused = shows(browser, form, WRONG[wrong](device, options))
    assert (refused.status_code, "did not work with this passkey" in html.unescape(refused.text)) == (400, True)
    assert browser.client.get("/account").headers["location"] == "/oauth/login"


@pytest.mark.requirement(REQUIREMENT)
def test_a_signature_counts_in_the_browser_that_asked_for_it_and_once(bank: Any) -> None:
    device, _browser, _seed = with_passkey(bank)
    other, other_form, _options = at_the_step(bank)
    browser, form, options = at_the_step(bank)
    answer = device.signs(options)
    assert shows(other, other_form, answer).status_code == 400
    half = bank.server.sessions.resume(browser.client.cookies["__Host-bds_session"])
    with ThreadPoolExecutor(12) as pool:
        used = list(pool.map(lambda _: bank.server.passkeys.use(half, answer), range(12)))
    assert used.count(True) == 1
    assert shows(browser, form, answer).status_code == 400


@pytest.mark.requirement(REQUIREMENT)
def test_devices_that_do_not_count_get_in_too_and_each_page_asks_anew(bank: Any) -> None:
    device, _browser, _seed = with_passkey(bank)
    for _ in range(2):
        browser, form, options = at_the_step(bank)
        device.count = -1
        assert shows(browser, form, device.signs(options)).status_code == 303
    browser, form, earlier = at_the_step(bank)
    browser.client.get("/oauth/second-step")
    assert shows(browser, form, device.signs(earlier)).status_code == 400


@pytest.mark.requirement("oauth.throttle")
def test_wrong_passkeys_and_wrong_codes_are_counted_together(bank: Any) -> None:
    device, _browser, seed = with_passkey(bank)
    browser, form, _options = at_the_step(bank)
    for _ in range(3):
        assert shows(browser, form, "{}").status_code == 400
    for _ in range(2):
        assert step(browser, form, "000000").status_code == 400
    held = shows(browser, form, device.signs(options_in(browser.client.get("/oauth/second-step"))))
    assert held.status_code == 429
    assert step(browser, form, code_of(bank, seed)).status_code == 429


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize(
    ("lie", "value"),
    [("origin", "https://evil.example"), ("host", "evil.example"), ("type", "webauthn.get"), ("flags", 0)],
)
def test_a_passkey_that_was_not_made_here_is_not_kept(bank: Any, lie: str, value: Any) -> None:
    _seed, _codes, browser = turn_on(bank)
    device = Device()
    setattr(device, lie, value)
    refused = added(browser, device)
    assert (refused.status_code, "No passkey was added" in refused.text) == (400, True)
    assert bank.server.passkeys.of_user(bank.user.id) == []


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize(("seconds", "status"), [(299, 303), (300, 400)])
def test_a_passkey_is_made_within_five_minutes_and_once(bank: Any, seconds: int, status: int) -> None:
    _seed, _codes, browser = turn_on(bank)
    page = asked(browser)
    data = {**fields(page.text), "passkey": Device().makes(options_in(page))}
    bank.clock.forward(seconds=seconds)
    assert browser.client.post("/account/passkeys/add", data=data).status_code == status
    assert browser.client.post("/account/passkeys/add", data=data).status_code == 400


@pytest.mark.requirement(REQUIREMENT)
def test_there_are_none_without_codes_twice_or_beyond_the_limit(bank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "has_passkeys_alone", False)
    without = signed_in(bank, "bob")
    assert without.client.get("/account/passkeys").headers["location"] == "/account/second-factor"
    monkeypatch.undo()
    assert bank.browser().client.get("/account/passkeys").headers["location"] == "/oauth/login"
    device, browser, _seed = with_passkey(bank)
    assert added(browser, device).status_code == 400
    monkeypatch.setattr(rules, "PASSKEYS_MAX", 2)
    bank.clock.forward(seconds=1)
    assert added(browser, Device(), "Key \t on  my ring").status_code == 303
    assert added(browser, Device()).status_code == 400
    names = [each.name for each in bank.server.passkeys.of_user(bank.user.id)]
    assert names == ["Telephone", "Key on my ring"]
    page = asked(browser)
    bank.server.second_factors.turn_off(bank.user.id)  # in another tab
    late = {**fields(page.text), "passkey": Device().makes(options_in(page))}
    assert browser.client.post("/account/passkeys/add", data=late).status_code == 400
    assert bank.server.passkeys.of_user(bank.user.id) == []


@pytest.mark.requirement(REQUIREMENT)
def test_one_without_a_name_is_called_like_its_browser(bank: Any) -> None:
    _seed, _codes, browser = turn_on(bank)
    assert added(browser, Device(), "").status_code == 303
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    browser.client.headers["user-agent"] = firefox
    assert added(browser, Device(), "a\0b").status_code == 303
    names = {each.name for each in bank.server.passkeys.of_user(bank.user.id)}
    assert names == {"Passkey", "Firefox, Linux"}


@pytest.mark.requirement(REQUIREMENT)
def test_adding_and_removing_take_the_password_and_the_own_passkey(bank: Any) -> None:
    device, browser, _seed = with_passkey(bank)
    their, _their_browser, _their_seed = with_passkey(bank, "bob")
    form = fields(browser.client.get("/account/passkeys").text)
    for address in ("/account/passkeys", "/account/passkeys/remove"):
        wrong = browser.client.post(address, data={**form, "id": text(device.id), "current_password": "wrong"})
        assert (wrong.status_code, "The current password is wrong" in wrong.text) == (400, True)
        assert "data-options" not in wrong.text
    right = {**form, "current_password": PASSWORD}
    browser.client.post("/account/passkeys/remove", data={**right, "id": text(their.id)})
    assert len(bank.server.passkeys.of_user(bank.other.id)) == 1
    at_step, step_form, options = at_the_step(bank)
    browser.client.post("/account/passkeys/remove", data={**right, "id": text(device.id)})
    assert bank.server.passkeys.of_user(bank.user.id) == []
    assert shows(at_step, step_form, device.signs(options)).status_code == 400


@pytest.mark.requirement(REQUIREMENT)
def test_they_go_with_the_second_factor_and_with_the_user(bank: Any) -> None:
    with_passkey(bank)
    with_passkey(bank, "bob")
    bank.server.second_factors.turn_off(bank.user.id)
    bank.database.atomically(lambda session: users.remove(session, bank.other.id))
    assert bank.database.rows("SELECT id FROM passkeys") == []


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://bank.example", "bank.example"),
        ("https://Bank.Example:8443/money", "bank.example"),
        ("https://7.bank.example", "7.bank.example"),
        ("http://localhost:8000", "localhost"),
        ("http://bank.localhost:8000", "bank.localhost"),
        ("http://127.0.0.1:8000", None),
        ("https://192.0.2.1", None),
        ("https://[2001:db8::1]", None),
        ("http://bank.example", None),
    ],
)
def test_they_are_for_a_domain_that_browsers_trust(address: str, host: str | None) -> None:
    assert policy(public_url=address).passkey_host == host


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://Bank.Example:443/money", ORIGIN),
        ("https://bank.example:8443", "https://bank.example:8443"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:443", "http://localhost:443"),
        ("https://[2001:db8::443]", "https://[2001:db8::443]"),
    ],
)
def test_an_address_has_the_origin_that_browsers_make_of_it(address: str, origin: str) -> None:
    assert origin_of(address) == origin


@pytest.mark.requirement(REQUIREMENT)
def test_an_address_may_name_the_port_that_browsers_leave_out(make_world: Callable[..., Any]) -> None:
    _device, browser, _seed = with_passkey(make_world(public_url=f"{ORIGIN}:443"))
    form = fields(browser.client.get("/account/passkeys").text)
    sent = browser.client.post("/account/passkeys", data={**form, "current_password": "x"}, headers={"Origin": ORIGIN})
    assert "The current password is wrong" in sent.text


@pytest.mark.requirement(REQUIREMENT)
def test_where_there_can_be_none_the_page_says_why(fresh: Any) -> None:
    _seed, _codes, browser = turn_on(fresh)
    page = browser.client.get("/account/passkeys")
    assert "only for an https address with a domain name" in page.text
    assert "this service stands at http://127.0.0.1:8000" in page.text
    form = {"form_token": fresh.server.sessions.form_token(_here(fresh, browser), "passkeys")}
    begun = browser.client.post("/account/passkeys", data={**form, "current_password": PASSWORD})
    assert begun.headers["location"] == "/account/passkeys"


def _here(world: Any, browser: Any) -> Any:
    return world.server.sessions.resume(browser.client.cookies["bds_session"])


@pytest.mark.requirement(REQUIREMENT)
def test_those_of_an_earlier_address_are_listed_and_asked_of_nobody(bank: Any, keys_folder: Any) -> None:
    _device, browser, _seed = with_passkey(bank)
    moved = AuthorizationServer(
        bank.database, keys_folder, policy(public_url="https://new.example"), bank.clock, passwords=FAST
    )
    half = moved.sessions.await_second_factor(None, bank.user.id)
    assert moved.passkeys.request_options(half) is None
    assert [each.host for each in moved.passkeys.of_user(bank.user.id)] == ["bank.example"]
    bank.database.execute("UPDATE passkeys SET host = 'old.example' WHERE user_id = $1", bank.user.id)
    assert "only for old.example" in browser.client.get("/account/passkeys").text


@pytest.mark.requirement("oauth.page_headers")
def test_two_pages_have_one_script_and_say_what_goes_without_and_no_other_page_has_any(bank: Any) -> None:
    _device, browser, _seed = with_passkey(bank)
    at_step, _form, _options = at_the_step(bank)
    for page in (at_step.client.get("/oauth/second-step"), asked(browser)):
        assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src")
        assert re.findall(r"<script[^>]*>", page.text) == ['<script src="/oauth/passkeys.js" defer>']
        assert "<noscript><p>A passkey needs JavaScript" in page.text
    script = bank.http.get("/oauth/passkeys.js")
    assert (script.status_code, script.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    consent = browser.client.get(browser.authorize(bank.register()).headers["location"])
    others = (consent, *map(browser.client.get, ("/account", "/account/passkeys", "/account/second-factor")))
    assert [page.status_code for page in others] == [200] * 4
    for page in others:
        assert "<script" not in page.text
        assert "script-src" not in page.headers["content-security-policy"]


@pytest.mark.requirement(REQUIREMENT)
def test_the_pages_of_passkeys_speak_german_too(bank: Any) -> None:
    _device, browser, _seed = with_passkey(bank)
    page = browser.client.get("/account/passkeys", headers={"accept-language": "de"})
    assert "Passkey hinzufügen" in page.text
    at_step, _form, _options = at_the_step(bank)
    assert "Passkey verwenden" in at_step.client.get("/oauth/second-step", headers={"accept-language": "de"}).text
