"""The second factor: turned on with a first code, asked for after the password, each code once, and turned off."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from threading import Barrier
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest
from starlette.testclient import TestClient

from auth.people.second_factor import SecondFactors
from auth.people.sessions import Sessions
from auth.people.sign_in import Outcome
from auth.server import AuthorizationServer
from handlers.commands.control_socket import CommandError
from handlers.commands.users import turn_off_second_factor
from handlers.work.services import Services
from storage import users
from storage.database import StoreUnavailable
from storage.oauth import second_factors
from tests.oauth.conftest import FAST, PASSWORD, application, fields, policy
from tests.oauth.pages.test_account import forms, signed_in
from tests.service.test_live_sources import Paper

REQUIREMENT = "oauth.second_factor"


def seconds(world: Any) -> int:
    return int(world.clock().replace(tzinfo=UTC).timestamp())


def code_of(world: Any, seed: str, *, steps: int = 0) -> str:
    return str(pyotp.HOTP(seed).at(seconds(world) // 30 + steps))


def turn_on(world: Any, name: str = "alice") -> tuple[str, list[str], Any]:
    """The seed, the recovery codes, and the browser in which it was turned on; the code that did it counts no more."""
    browser = signed_in(world, name)
    seed, form = begun(browser)
    answer = browser.client.post("/account/second-factor/confirm", data={**form, "code": code_of(world, seed)})
    assert answer.status_code == 200, answer.text
    codes = re.findall(r"[A-Z2-7]{4}(?:-[A-Z2-7]{4}){5}", answer.text)
    assert len(set(codes)) == 10
    world.clock.forward(seconds=30)
    return seed, codes, browser


def half_signed_in(world: Any, name: str = "alice") -> tuple[Any, dict[str, str]]:
    """A browser after the password, and the form of its second step."""
    browser = world.browser()
    form = forms(browser.client.get("/oauth/login").text)["login"]
    page = browser.client.post("/oauth/login", data={**form, "username": name, "password": PASSWORD})
    assert page.headers["location"] == "/oauth/second-step"
    return browser, fields(browser.client.get("/oauth/second-step").text)


def step(browser: Any, form: dict[str, str], code: str) -> Any:
    return browser.client.post("/oauth/second-step", data={**form, "code": code})


@pytest.mark.requirement(REQUIREMENT)
def test_the_password_alone_opens_nothing_and_the_code_then_everything(fresh: Any) -> None:
    seed, _codes, first = turn_on(fresh)
    assert first.client.get("/account").status_code == 200
    browser, form = half_signed_in(fresh)
    assert browser.client.get("/account").headers["location"] == "/oauth/login"
    assert "bds_known" not in browser.client.cookies
    before = browser.client.cookies["bds_session"]
    assert "This code is wrong" in step(browser, form, "000000").text
    assert step(browser, form, code_of(fresh, seed)).headers["location"] == "/account"
    assert browser.client.cookies["bds_session"] != before
    assert browser.client.get("/account").status_code == 200


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize(("steps", "status"), [(0, 303), (-1, 303), (-2, 400), (1, 400)])
def test_the_code_of_now_and_of_the_step_before_counts(fresh: Any, steps: int, status: int) -> None:
    seed, _codes, _browser = turn_on(fresh)
    fresh.clock.forward(seconds=90)
    browser, form = half_signed_in(fresh)
    assert step(browser, form, code_of(fresh, seed, steps=steps)).status_code == status


@pytest.mark.requirement(REQUIREMENT)
def test_a_code_counts_once_and_so_does_that_which_turned_it_on(fresh: Any) -> None:
    seed, _codes, _browser = turn_on(fresh)
    browser, form = half_signed_in(fresh)
    assert step(browser, form, code_of(fresh, seed, steps=-1)).status_code == 400
    assert step(browser, form, code_of(fresh, seed)).status_code == 303
    browser, form = half_signed_in(fresh)
    assert step(browser, form, code_of(fresh, seed)).status_code == 400
    fresh.clock.forward(seconds=30)
    spaced = f" {code_of(fresh, seed)[:3]} {code_of(fresh, seed)[3:]} "
    assert step(browser, form, spaced).status_code == 303


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize("kind", ["code", "recovery code"])
def test_of_twelve_who_show_one_code_at_once_one_gets_in(fresh: Any, kind: str) -> None:
    seed, codes, _browser = turn_on(fresh)
    typed = code_of(fresh, seed) if kind == "code" else codes[0]
    with ThreadPoolExecutor(12) as pool:
        used = list(pool.map(lambda _: fresh.server.second_factors.use(fresh.user.id, typed), range(12)))
    assert sorted(map(str, used)) == [*["None"] * 11, kind]


@pytest.mark.requirement(REQUIREMENT)
def test_a_recovery_code_gets_in_once_in_any_writing(fresh: Any) -> None:
    _seed, codes, first = turn_on(fresh)
    browser, form = half_signed_in(fresh)
    assert step(browser, form, codes[3].lower().replace("-", " ")).status_code == 303
    browser, form = half_signed_in(fresh)
    assert step(browser, form, codes[3]).status_code == 400
    assert step(browser, form, codes[4]).status_code == 303
    assert "Recovery codes left: 8." in first.client.get("/account").text
    assert codes[5].replace("-", "") not in str(fresh.database.rows("SELECT code_hash FROM recovery_codes"))


@pytest.mark.requirement("oauth.throttle")
def test_guessing_codes_gets_slow_and_the_right_password_makes_no_room(fresh: Any) -> None:
    seed, _codes, _browser = turn_on(fresh)
    for _ in range(5):
        browser, form = half_signed_in(fresh)  # each with the right password
        assert step(browser, form, "000000").status_code == 400
    browser, form = half_signed_in(fresh)
    held = step(browser, form, code_of(fresh, seed))
    assert (held.status_code, held.headers["retry-after"]) == (429, "16")
    fresh.clock.forward(seconds=30)
    assert step(browser, form, code_of(fresh, seed)).status_code == 303


def begun(browser: Any) -> tuple[str, dict[str, str]]:
    """The seed of a set-up that begins in this browser, and the form for its first code."""
    form = fields(browser.client.get("/account/second-factor").text)
    page = browser.client.post("/account/second-factor", data={**form, "current_password": PASSWORD})
    return re.sub(r"\s", "", re.search(r"key into the app: <code>([A-Z2-7 ]+)</code>", page.text)[1]), fields(page.text)  # type: ignore[index]


@pytest.mark.requirement("oauth.throttle")
def test_guessing_the_first_code_gets_slow_and_beginning_anew_makes_no_room(fresh: Any) -> None:
    browser = signed_in(fresh)
    for _ in range(5):
        _seed, form = begun(browser)
        wrong = browser.client.post("/account/second-factor/confirm", data={**form, "code": "000000"})
        assert wrong.status_code == 400
    seed, form = begun(browser)
    right = {**form, "code": code_of(fresh, seed)}
    held = browser.client.post("/account/second-factor/confirm", data=right)
    assert (held.status_code, held.headers["retry-after"]) == (429, "16")
    assert "Please wait 16 seconds" in held.text
    fresh.clock.forward(seconds=16)
    again = {**form, "code": code_of(fresh, seed)}
    assert browser.client.post("/account/second-factor/confirm", data=again).status_code == 200


@pytest.mark.requirement("oauth.throttle")
def test_of_twelve_wrong_first_codes_at_once_five_are_checked(fresh: Any) -> None:
    browser = signed_in(fresh)
    begun(browser)
    here = fresh.server.sessions.resume(browser.client.cookies["bds_session"])

    def guess(_: int) -> Any:
        return fresh.server.sign_in.turn_on_second_factor(fresh.user, here, "000000", address="192.0.2.1")

    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(guess, range(12)))
    assert [outcome.wait is None for outcome in outcomes].count(True) == 5


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize(("seconds_later", "status"), [(299, 303), (300, 400)])
def test_there_are_five_minutes_between_the_steps(fresh: Any, seconds_later: int, status: int) -> None:
    seed, _codes, _browser = turn_on(fresh)
    browser, form = half_signed_in(fresh)
    fresh.clock.forward(seconds=seconds_later)
    assert step(browser, form, code_of(fresh, seed)).status_code == status


@pytest.mark.requirement(REQUIREMENT)
def test_a_new_password_ends_those_who_wait_at_the_second_step(fresh: Any) -> None:
    seed, _codes, _browser = turn_on(fresh)
    browser, form = half_signed_in(fresh)
    fresh.server.sessions.end_all(fresh.user.id)
    assert step(browser, form, code_of(fresh, seed)).status_code == 400
    assert browser.client.get("/oauth/second-step").headers["location"] == "/oauth/login"


@pytest.mark.requirement(REQUIREMENT)
def test_an_app_s_request_waits_through_both_steps_and_silence_is_no_way_round(fresh: Any) -> None:
    seed, _codes, _browser = turn_on(fresh)
    client_id = fresh.register()
    browser = fresh.browser()
    page = browser.sign_in(browser.authorize(client_id))
    assert urlsplit(page.headers["location"]).path == "/oauth/second-step"
    asked = parse_qs(urlsplit(page.headers["location"]).query)["request"][0]
    assert browser.client.get(f"/oauth/consent?request={asked}").status_code == 303
    silent = browser.authorize(client_id, prompt="none")
    assert "code=" not in silent.headers.get("location", "")
    form = fields(browser.client.get(page.headers["location"]).text)
    consent = step(browser, form, code_of(fresh, seed))
    assert "code=" in browser.consent(consent).headers["location"]


@pytest.mark.requirement(REQUIREMENT)
def test_turning_it_on_and_off_takes_the_password_and_signs_others_out(fresh: Any) -> None:
    other = signed_in(fresh)
    seed, codes, browser = turn_on(fresh)
    assert other.client.get("/account").status_code == 303
    form = fields(browser.client.get("/account/second-factor").text)
    for address in ("/account/second-factor", "/account/second-factor/off"):
        wrong = browser.client.post(address, data={**form, "current_password": "wrong"})
        assert (wrong.status_code, "The current password is wrong" in wrong.text) == (400, True)
    again = browser.client.post("/account/second-factor", data={**form, "current_password": PASSWORD})
    assert again.headers["location"] == "/account/second-factor"  # it is on: nothing begins anew
    for wrong_code in ("", "000000", code_of(fresh, seed, steps=-1)):  # the last one was used
        given = {**form, "current_password": PASSWORD, "code": wrong_code}
        refused = browser.client.post("/account/second-factor/off", data=given)
        assert (refused.status_code, "This code is wrong" in refused.text) == (400, True)
    off = browser.client.post(
        "/account/second-factor/off", data={**form, "current_password": PASSWORD, "code": codes[0]}
    )
    assert off.headers["location"] == "/account?notice=second_factor_removed"
    assert fresh.database.rows("SELECT user_id FROM recovery_codes") == []
    signed_in(fresh)


@pytest.mark.requirement(REQUIREMENT)
def test_others_are_signed_out_by_the_very_commit_that_turns_it_on(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = signed_in(fresh)

    def killed(*_ignored: Any, **_too: Any) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(Sessions, "end_all", killed)  # the machine dies right after the commit
    with pytest.raises(AssertionError):
        turn_on(fresh)
    assert fresh.server.second_factors.is_on(fresh.user.id)
    assert other.client.get("/account").status_code == 303


@pytest.mark.requirement(REQUIREMENT)
def test_the_operator_turns_it_off_for_whoever_has_lost_it(fresh: Any) -> None:
    turn_on(fresh)
    services, paper = cast(Services, SimpleNamespace(everybody=fresh.database, authorization=fresh.server)), Paper()
    turn_off_second_factor(services, paper, name="alice")
    assert paper.notes == ["alice signs in with the password alone now."]
    signed_in(fresh)
    with pytest.raises(CommandError, match="alice has no second factor"):
        turn_off_second_factor(services, paper, name="alice")


@pytest.mark.requirement(REQUIREMENT)
def test_who_waits_at_the_second_step_when_it_is_turned_off_signs_in_by_the_password(fresh: Any) -> None:
    turn_on(fresh)
    browser, form = half_signed_in(fresh)
    fresh.server.second_factors.turn_off(fresh.user.id)
    assert step(browser, form, "000000").headers["location"] == "/oauth/login"
    assert browser.client.get("/oauth/second-step").headers["location"] == "/oauth/login"
    sign_in = forms(browser.client.get("/oauth/login").text)["login"]
    answer = browser.client.post("/oauth/login", data={**sign_in, "username": "alice", "password": PASSWORD})
    assert answer.headers["location"] == "/account"


@pytest.mark.requirement(REQUIREMENT)
def test_a_seed_that_no_code_confirmed_is_asked_of_nobody(fresh: Any) -> None:
    browser = signed_in(fresh)
    form = fields(browser.client.get("/account/second-factor").text)
    page = browser.client.post("/account/second-factor", data={**form, "current_password": PASSWORD})
    wrong = browser.client.post("/account/second-factor/confirm", data={**fields(page.text), "code": "1"})
    assert (wrong.status_code, "<svg" in wrong.text) == (400, True)
    signed_in(fresh)
    fresh.clock.forward(minutes=16)
    late = browser.client.post("/account/second-factor/confirm", data={**fields(page.text), "code": "1"})
    assert "This took too long" in late.text


@pytest.mark.requirement(REQUIREMENT)
def test_the_seed_is_sealed_and_other_keys_leave_the_recovery_codes(fresh: Any, tmp_path: Any) -> None:
    seed, codes, _browser = turn_on(fresh)
    (row,) = fresh.database.rows("SELECT sealed_seed FROM second_factors")
    assert seed not in row["sealed_seed"]
    server = AuthorizationServer(fresh.database, tmp_path / "new keys", policy(), fresh.clock, passwords=FAST)
    with TestClient(application(server), base_url=server.policy.public_url):
        assert server.second_factors.use(fresh.user.id, code_of(fresh, seed)) is None
        assert server.second_factors.use(fresh.user.id, codes[0]) == "recovery code"


@pytest.mark.requirement(REQUIREMENT)
def test_one_user_s_codes_are_nobody_else_s_and_go_with_the_user(fresh: Any) -> None:
    seed, codes, _browser = turn_on(fresh)
    turn_on(fresh, "bob")
    factors: SecondFactors = fresh.server.second_factors
    assert factors.use(fresh.other.id, code_of(fresh, seed)) is None
    assert factors.use(fresh.other.id, codes[0]) is None
    fresh.database.atomically(lambda session: users.remove(session, fresh.user.id))
    assert factors.codes_left(fresh.user.id) == 0
    assert not factors.is_on(fresh.user.id)


@pytest.mark.requirement(REQUIREMENT)
def test_it_speaks_german_too_and_nothing_on_its_pages_is_a_script(fresh: Any) -> None:
    turn_on(fresh)
    browser, _form = half_signed_in(fresh)
    page = browser.client.get("/oauth/second-step", headers={"accept-language": "de"})
    assert "Bestätigen Sie, dass Sie es sind" in page.text
    set_up = signed_in(fresh, "bob")
    form = fields(set_up.client.get("/account/second-factor").text)
    shown = set_up.client.post("/account/second-factor", data={**form, "current_password": PASSWORD})
    for each in (page, shown):
        assert "<script" not in each.text
        assert " style=" not in each.text
        assert "default-src 'none'" in each.headers["content-security-policy"]
        assert each.headers["cache-control"] == "no-store"


@pytest.mark.requirement(REQUIREMENT)
def test_of_two_who_turn_it_on_at_once_one_gets_the_recovery_codes(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    both_have_looked, find = Barrier(2), second_factors.find

    def found(*arguments: Any) -> Any:
        kept = find(*arguments)
        both_have_looked.wait(60)
        return kept

    seed, _form = begun(signed_in(fresh))
    monkeypatch.setattr(second_factors, "find", found)
    with ThreadPoolExecutor(2) as pool:
        told = [pool.submit(fresh.server.second_factors.confirm, fresh.user, code_of(fresh, seed)) for _ in range(2)]
    assert sorted(each.result() is None for each in told) == [False, True]


@pytest.mark.requirement(REQUIREMENT)
@pytest.mark.parametrize("found_waiting", [False, True])
def test_who_presses_twice_is_told_that_it_is_on_and_how_to_get_codes_again(
    fresh: Any, monkeypatch: pytest.MonkeyPatch, found_waiting: bool
) -> None:
    browser = signed_in(fresh)
    seed, form = begun(browser)
    sent = {**form, "code": code_of(fresh, seed)}
    waiting = fresh.server.second_factors.waiting_set_up(fresh.user)
    assert browser.client.post("/account/second-factor/confirm", data=sent).status_code == 200
    if found_waiting:  # the second press came while the first one was at work
        monkeypatch.setattr(SecondFactors, "waiting_set_up", lambda *_: waiting)
    again = browser.client.post("/account/second-factor/confirm", data=sent)
    assert again.headers["location"] == "/account/second-factor"
    page = browser.client.get("/account/second-factor").text
    assert "It is on" in page
    assert "turning it on again makes new codes" in page


@pytest.mark.requirement(REQUIREMENT)
def test_who_is_not_there_any_more_or_has_none_gets_no_further(fresh: Any) -> None:
    assert fresh.server.second_factors.use(fresh.user.id, "123456") is None
    gone = SimpleNamespace(awaits_user_id="usr_gone")
    assert fresh.server.sign_in.second_step(gone, "123456", address="::1", known_browser=None) == Outcome()
    page = fresh.browser().client.get("/account/second-factor")
    assert page.headers["location"] == "/oauth/login"
