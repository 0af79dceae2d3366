"""Passkeys that sign in alone: who is let in, how people join and come back in, and that the last way in stays."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from auth.server import LastWayIn
from storage import users
from storage.database import Session
from tests.oauth.conftest import PASSWORD, Browser, World, fields
from tests.oauth.pages.test_account import signed_in
from tests.oauth.pages.test_passkeys import ORIGIN, PRESENT, Device, added, options_in, text, with_passkey
from tests.oauth.pages.test_second_factor import turn_on


@pytest.fixture
def bank(make_world: Callable[..., World]) -> World:
    """A service under a domain."""
    return make_world(public_url=ORIGIN)


def add_alone(browser: Any, device: Device, **typed: str) -> Any:
    """What the page says once this device has made a passkey that signs in alone."""
    form = fields(browser.client.get("/account/passkeys").text)
    sent = {**form, "name": "Telephone", "current_password": PASSWORD, "alone": "on", **typed}
    page = browser.client.post("/account/passkeys", data=sent)
    assert page.status_code == 200, page.text
    answer = device.makes(options_in(page))
    return browser.client.post("/account/passkeys/add", data={**fields(page.text), "passkey": answer})


def signs_in(world: World, device: Device) -> tuple[Browser, Any]:
    browser = world.browser()
    page = browser.client.get("/oauth/passkey")
    answer = device.signs(options_in(page))
    return browser, browser.client.post("/oauth/passkey", data={**fields(page.text), "passkey": answer})


def joins(world: World, device: Device, name: str = "eva") -> tuple[Browser, Any]:
    secret = world.server.links.invite().rpartition("#")[2]
    browser = world.browser()
    form = {**fields(browser.client.get("/join").text), "secret": secret, "username": name}
    page = browser.client.post("/join/passkey", data=form)
    assert page.status_code == 200, page.text
    answer = device.makes(options_in(page))
    return browser, browser.client.post("/join/passkey/made", data={**fields(page.text), "passkey": answer})


def is_in(browser: Browser) -> bool:
    return bool(browser.client.get("/account").status_code == 200)


def codes_in(page: str) -> list[str]:
    return re.findall(r"(?:[A-Z2-7]{4}-){5}[A-Z2-7]{4}", page)


@pytest.mark.requirement("oauth.passkeys_alone")
def test_neither_password_nor_code_is_asked(bank: World) -> None:
    _seed, _codes, browser = turn_on(bank)
    device = Device()
    assert add_alone(browser, device).headers["location"] == "/account/passkeys"
    assert "signs in by itself" in browser.client.get("/account/passkeys").text
    fresh, answer = signs_in(bank, device)
    assert (answer.headers["location"], is_in(fresh)) == ("/account", True)


@pytest.mark.requirement("oauth.passkeys_alone")
def test_one_made_beside_codes_stays_that(bank: World) -> None:
    device, _browser, _seed = with_passkey(bank)
    fresh, answer = signs_in(bank, device)
    assert (answer.status_code, is_in(fresh)) == (400, False)


@pytest.mark.requirement("oauth.passkeys_alone")
def test_turning_the_codes_off_keeps_the_one_that_signs_in_alone(bank: World) -> None:
    beside, browser, _seed = with_passkey(bank)
    alone = Device()
    add_alone(browser, alone)
    bank.server.second_factors.turn_off(bank.user.id)
    assert [each.is_alone for each in bank.server.passkeys.of_user(bank.user.id)] == [True]
    assert is_in(signs_in(bank, alone)[0])
    assert not is_in(signs_in(bank, beside)[0])


@pytest.mark.requirement("oauth.passkeys_alone")
@pytest.mark.parametrize(
    "attack",
    [
        {"flags": PRESENT},
        {"origin": "https://evil.example"},
        {"host": "evil.example"},
        {"type": "webauthn.create"},
        {"handle": None},
        {"handle": text(b"u-nobody")},
        {"handle": text(b"\xff\xfe")},
        {"handle": "x" * 400},
        {"id": b"another"},
        {"count": 0},
    ],
    ids=str,
)
def test_what_no_device_of_a_person_says_lets_nobody_in(bank: World, attack: dict[str, Any]) -> None:
    device = Device(count=3)
    add_alone(signed_in(bank), device)
    for name, value in attack.items():
        setattr(device, name, value)
    fresh, answer = signs_in(bank, device)
    assert (answer.status_code, is_in(fresh)) == (400, False)


@pytest.mark.requirement("oauth.passkeys_alone")
def test_the_key_of_one_person_does_not_sign_in_another(bank: World) -> None:
    device = Device()
    add_alone(signed_in(bank), device)
    device.handle = text(bank.other.id.encode())
    assert not is_in(signs_in(bank, device)[0])


@pytest.mark.requirement("oauth.passkeys_alone")
def test_a_signature_counts_once_and_in_its_own_browser(bank: World) -> None:
    device = Device()
    add_alone(signed_in(bank), device)
    browser, other = bank.browser(), bank.browser()
    page, others = browser.client.get("/oauth/passkey"), other.client.get("/oauth/passkey")
    answer = device.signs(options_in(page))
    assert other.client.post("/oauth/passkey", data={**fields(others.text), "passkey": answer}).status_code == 400
    sent = {**fields(page.text), "passkey": answer}
    before = dict(browser.client.cookies)
    assert browser.client.post("/oauth/passkey", data=sent).status_code == 303
    thief = bank.browser()
    thief.client.cookies.update(before)
    assert thief.client.post("/oauth/passkey", data=sent).status_code == 400
    assert not is_in(thief)


@pytest.mark.requirement("oauth.passkeys_alone")
def test_a_paused_person_is_not_let_in(bank: World) -> None:
    device = Device()
    add_alone(signed_in(bank), device)
    bank.server.operators.pause(bank.user)
    assert not is_in(signs_in(bank, device)[0])


@pytest.mark.requirement("oauth.passkeys_alone")
def test_somebody_joins_by_a_passkey_alone_and_is_shown_ten_codes_once(bank: World) -> None:
    device = Device()
    browser, page = joins(bank, device)
    assert (page.status_code, len(codes_in(page.text)), is_in(browser)) == (200, 10, True)
    eva = users.get_by_name(bank.database, "eva")
    assert (eva.password_hash, bank.server.second_factors.is_on(eva.id)) == (None, False)
    assert is_in(signs_in(bank, device)[0])
    attempt = bank.server.sign_in.attempt("eva", "", before=None, address="a", known_browser=None)
    assert attempt.browser is None


@pytest.mark.requirement("oauth.passkeys_alone")
def test_a_taken_name_costs_the_invitation_one_of_twenty_tries(bank: World) -> None:
    secret = bank.server.links.invite().rpartition("#")[2]
    browser = bank.browser()
    form = {**fields(browser.client.get("/join").text), "secret": secret, "username": "alice"}
    for _ in range(19):
        assert "is taken" in browser.client.post("/join/passkey", data=form).text
    assert "This link does not work" in browser.client.post("/join/passkey", data=form).text
    assert browser.client.post("/join/passkey", data={**form, "username": "eva"}).status_code == 400
    assert users.find_by_name(bank.database, "eva") is None


@pytest.mark.requirement("oauth.passkeys_alone")
def test_a_recovery_code_lets_in_once_whoever_has_no_password(bank: World) -> None:
    _browser, page = joins(bank, Device())
    code = codes_in(page.text)[0]
    browser, answer = recovers(bank, "eva", code)
    assert (answer.headers["location"], is_in(browser)) == ("/account/passkeys", True)
    device = Device()
    assert add_alone(browser, device, current_password="").status_code == 303
    assert is_in(signs_in(bank, device)[0])
    assert not is_in(recovers(bank, "eva", code)[0])


def recovers(world: World, name: str, code: str) -> tuple[Browser, Any]:
    browser = world.browser()
    form = fields(browser.client.get("/oauth/recovery").text)
    return browser, browser.client.post("/oauth/recovery", data={**form, "username": name, "code": code})


@pytest.mark.requirement("oauth.passkeys_alone")
def test_whoever_has_a_password_is_not_let_in_by_a_recovery_code_alone(bank: World) -> None:
    _seed, codes, _browser = turn_on(bank)
    browser, answer = recovers(bank, "alice", codes[0])
    assert (answer.status_code, is_in(browser)) == (400, False)
    assert bank.server.second_factors.codes_left(bank.user.id) == 10


@pytest.mark.requirement("oauth.passkeys_alone")
def test_guessing_recovery_codes_gets_slow_for_names_that_exist_and_others(bank: World) -> None:
    joins(bank, Device())
    for name in ("eva", "nobody"):
        answers = [recovers(bank, name, f"AAAA-AAAA-AAAA-AAAA-AAAA-AAA{each}")[1] for each in range(6)]
        assert [each.status_code for each in answers] == [400, 400, 400, 400, 400, 429]


@pytest.mark.requirement("oauth.passkeys_alone")
def test_the_last_way_in_is_not_removed_even_by_two_at_once(bank: World) -> None:
    device, second = Device(), Device()
    browser, _page = joins(bank, device)
    add_alone(browser, second, current_password="")
    eva = users.get_by_name(bank.database, "eva")
    ids = [each.id for each in bank.server.passkeys.of_user(eva.id)]
    assert len(ids) == 2

    keeps, together = bank.server.keeps_a_way_in(eva), Barrier(2, timeout=2)

    def check(session: Session) -> None:
        with suppress(BrokenBarrierError):  # of the one that begins anew nobody else is left
            together.wait()
        keeps(session)

    def remove(passkey_id: str) -> bool:
        try:
            return bank.server.passkeys.remove(eva.id, passkey_id, check=check)
        except LastWayIn:
            return False

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(remove, ids)) == [False, True]
    form = fields(browser.client.get("/account/passkeys").text)
    (left,) = bank.server.passkeys.of_user(eva.id)
    answer = browser.client.post("/account/passkeys/remove", data={**form, "id": left.id})
    assert (answer.status_code, "last way in" in answer.text) == (400, True)
    assert len(bank.server.passkeys.of_user(eva.id)) == 1


@pytest.mark.requirement("oauth.passkeys_alone")
def test_without_a_password_a_proof_is_the_passkey_of_the_last_five_minutes(bank: World) -> None:
    device = Device()
    browser, _page = joins(bank, device)
    bank.clock.forward(minutes=6)
    form = fields(browser.client.get("/account/passkeys").text)
    stale = browser.client.post("/account/passkeys", data={**form, "name": "x"})
    assert (stale.status_code, "more than five minutes ago" in stale.text) == (400, True)
    other = Device()
    add_alone(signed_in(bank), other)
    for each, is_proof in ((other, False), (device, True)):
        page = browser.client.get("/account/prove?back=/account/passkeys")
        answer = browser.client.post(
            "/account/prove", data={**fields(page.text), "passkey": each.signs(options_in(page))}
        )
        assert answer.status_code == (303 if is_proof else 400)
    assert answer.headers["location"] == "/account/passkeys"
    assert browser.client.post("/account/passkeys", data={**form, "name": "x"}).status_code == 200


@pytest.mark.requirement("oauth.passkeys_alone")
def test_a_challenge_that_anybody_gets_adds_no_passkey(bank: World) -> None:
    browser = signed_in(bank)
    add_alone(browser, Device())
    form = fields(browser.client.get("/account/passkeys").text)
    made = browser.client.post("/account/passkeys", data={**form, "current_password": PASSWORD, "alone": "on"})
    unproven = options_in(browser.client.get("/account/prove"))["challenge"]  # given without a proof
    answer = Device().makes({**options_in(made), "challenge": unproven})
    refused = browser.client.post("/account/passkeys/add", data={**form, "passkey": answer, "alone": "on"})
    assert (refused.status_code, len(bank.server.passkeys.of_user(bank.user.id))) == (400, 1)


@pytest.mark.requirement("oauth.passkeys_alone")
def test_codes_of_a_second_step_are_no_way_in_for_whoever_has_no_passkey(bank: World) -> None:
    _seed, codes, _browser = turn_on(bank)
    bank.database.execute("UPDATE users SET password_hash = NULL WHERE id = $1", bank.user.id)
    refused, _answer = recovers(bank, bank.user.name, codes[0])
    assert not is_in(refused)


@pytest.mark.requirement("oauth.passkeys_alone")
def test_where_browsers_make_none_nothing_offers_one(make_world: Callable[..., World]) -> None:
    world = make_world(public_url="http://127.0.0.1:8000")
    browser = world.browser()
    assert "/oauth/passkey" not in browser.client.get("/oauth/login").text
    assert browser.client.get("/oauth/passkey").status_code == 404


@pytest.mark.requirement("oauth.passkeys_alone")
def test_a_second_one_on_the_same_device_is_refused(bank: World) -> None:
    device, browser = Device(), signed_in(bank)
    add_alone(browser, device)
    assert added(browser, device).status_code == 400


@pytest.mark.requirement("oauth.passkeys_alone")
def test_of_many_who_join_by_one_invitation_at_once_one_comes_in_and_looking_uses_nothing_up(bank: World) -> None:
    secret = bank.server.links.invite().rpartition("#")[2]
    for path in ("/join", "/join/passkey", "/join/passkey/made", "/join/person"):
        bank.browser().client.get(path)  # a preview
    ready = []
    for number in range(6):
        browser = bank.browser()
        form = {**fields(browser.client.get("/join").text), "secret": secret, "username": f"eva{number}"}
        page = browser.client.post("/join/passkey", data=form)
        ready.append((browser, {**fields(page.text), "passkey": Device().makes(options_in(page))}))

    def use(one: tuple[Browser, dict[str, Any]]) -> int:
        browser, form = one
        return int(browser.client.post("/join/passkey/made", data=form).status_code)

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(use, ready)) == [200, 400, 400, 400, 400, 400]
    assert sum(is_in(browser) for browser, _form in ready) == 1
    assert len(users.everyone(bank.database)) == 3
