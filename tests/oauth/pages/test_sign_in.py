"""Signing in: one text for every failure, slower for guessers, never locked for the rightful owner."""

from typing import Any

import pytest

from auth.people import new_passwords
from auth.people.new_passwords import weakness
from auth.people.password_hashing import Passwords
from storage import users
from tests.oauth.conftest import fields

PASSWORD = "umbrella-kettle-violin"


def attempt(world: Any, browser: Any, name: str = "alice", password: str = "wrong wrong wrong") -> Any:
    page = browser.client.get("/oauth/login")
    form = {"form_token": page.text.partition('name="form_token" value="')[2].partition('"')[0], "request": ""}
    return browser.client.post("/oauth/login", data={**form, "username": name, "password": password})


@pytest.mark.requirement("oauth.sign_in")
def test_unknown_user_and_wrong_password_look_the_same(fresh: Any) -> None:
    texts = []
    for name in ("alice", "nobody"):
        answer = attempt(fresh, fresh.browser(), name)
        assert answer.status_code == 400
        texts.append(answer.text.replace(name, "").partition("<main")[2].replace("form_token", ""))
    import re

    one, other = (re.sub(r'value="[^"]*"', "", text) for text in texts)
    assert one == other


@pytest.mark.requirement("oauth.sign_in")
@pytest.mark.parametrize(
    "password", ["", " ", "x" * 1025, "x" * 10_000, "\0", "ü" * 600, PASSWORD + " ", PASSWORD.upper(), PASSWORD[:-1]]
)
def test_every_other_password_is_wrong_and_never_a_failure_of_ours(fresh: Any, password: str) -> None:
    assert attempt(fresh, fresh.browser(), password=password).status_code in (400, 413)


@pytest.mark.requirement("oauth.sign_in")
@pytest.mark.parametrize("name", ["", "\0", "a" * 500, "alice\0", "' OR 1=1 --", "ALICE2", "😀"])
def test_odd_names_are_unknown(fresh: Any, name: str) -> None:
    assert attempt(fresh, fresh.browser(), name).status_code == 400


@pytest.mark.requirement("oauth.sign_in")
def test_a_user_without_password_cannot_sign_in(fresh: Any) -> None:
    fresh.database.execute("UPDATE users SET password_hash = NULL WHERE name = 'alice'")
    assert attempt(fresh, fresh.browser(), password=PASSWORD).status_code == 400
    fresh.database.execute("UPDATE users SET password_hash = 'nonsense' WHERE name = 'alice'")
    assert attempt(fresh, fresh.browser(), password=PASSWORD).status_code == 400


@pytest.mark.requirement("oauth.throttle")
def test_after_five_failures_the_wait_doubles_and_never_becomes_permanent(fresh: Any) -> None:
    for _ in range(4):
        assert attempt(fresh, fresh.browser()).status_code == 400
    assert attempt(fresh, fresh.browser()).status_code == 400  # the fifth starts the wait
    refused = attempt(fresh, fresh.browser(), password=PASSWORD)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) <= 16
    waits = []
    for _ in range(10):
        wait = int(attempt(fresh, fresh.browser()).headers["retry-after"])
        waits.append(wait)
        fresh.clock.forward(seconds=wait)
        attempt(fresh, fresh.browser())
    assert waits[:4] == [16, 31, 61, 121]
    assert waits[-1] == 901
    fresh.clock.forward(seconds=901)
    assert attempt(fresh, fresh.browser(), password=PASSWORD).status_code == 303
    assert attempt(fresh, fresh.browser(), password=PASSWORD).status_code == 303


@pytest.mark.requirement("oauth.throttle")
def test_unknown_names_are_throttled_alike(fresh: Any) -> None:
    for _ in range(5):
        attempt(fresh, fresh.browser(), "nobody")
    assert attempt(fresh, fresh.browser(), "nobody").status_code == 429
    assert attempt(fresh, fresh.browser(), "bob", PASSWORD).status_code == 303


@pytest.mark.requirement("oauth.throttle")
def test_strangers_guessing_does_not_lock_out_a_browser_that_is_known(fresh: Any) -> None:
    known = fresh.browser()
    assert attempt(fresh, known, password=PASSWORD).status_code == 303
    page = known.client.get("/account").text
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    assert known.client.post("/account/sign-out", data={"form_token": token}).status_code == 303
    for _ in range(6):
        attempt(fresh, fresh.browser())
    assert attempt(fresh, fresh.browser(), password=PASSWORD).status_code == 429
    assert attempt(fresh, known, password=PASSWORD).status_code == 303


@pytest.mark.requirement("oauth.throttle")
def test_a_known_browser_is_known_for_its_own_user_only_and_cannot_guess_freely(fresh: Any) -> None:
    known = fresh.browser()
    attempt(fresh, known, "bob", PASSWORD)
    cookie = known.client.cookies["bds_known"]
    for value in (cookie, cookie[:-1], cookie.replace(".", ".1", 1), "a.b.c", "..", "a.9" + "9" * 50 + ".c", "٣.٣.٣"):
        assert fresh.server.sessions.knows(value, fresh.user.id) is None
    assert fresh.server.sessions.knows(cookie, fresh.other.id)
    token = known.client.get("/account").text.partition('name="form_token" value="')[2].partition('"')[0]
    known.client.post("/account/sign-out", data={"form_token": token})
    for _ in range(5):
        assert attempt(fresh, known, "bob").status_code == 400
    assert attempt(fresh, known, "bob", PASSWORD).status_code == 429
    fresh.clock.forward(days=181)
    assert fresh.server.sessions.knows(cookie, fresh.other.id) is None


@pytest.mark.requirement("oauth.throttle")
@pytest.mark.long
def test_one_address_that_tries_many_names_is_slowed_down(fresh: Any) -> None:
    browser = fresh.browser()
    for number in range(100):
        assert attempt(fresh, browser, f"name{number}").status_code == 400
    assert attempt(fresh, browser, "bob", PASSWORD).status_code == 429


@pytest.mark.requirement("oauth.password_hash")
def test_passwords_are_argon2id_and_old_hashes_are_renewed_at_sign_in(fresh: Any) -> None:
    from auth.people.password_hashing import LANES, MEMORY_KIB, TIME_COST

    assert (MEMORY_KIB, TIME_COST, LANES) == (19456, 2, 1)
    assert Passwords().hash("a").startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    old = Passwords(memory_kib=32, time_cost=1).hash(PASSWORD)
    fresh.database.execute("UPDATE users SET password_hash = $1 WHERE name = 'alice'", old)
    assert attempt(fresh, fresh.browser(), password=PASSWORD).status_code == 303
    (row,) = fresh.database.rows("SELECT password_hash FROM users WHERE name = 'alice'")
    assert "m=64,t=1" in row["password_hash"]


@pytest.mark.requirement("oauth.password_rules")
@pytest.mark.parametrize(
    ("password", "fault"),
    [
        ("elevenchars", "short"),
        ("", "short"),
        ("x" * 1025, "long"),
        ("ü" * 513, "long"),
        ("\ud800" * 12, "long"),
        ("maximilian-2026!", "name"),
        ("MAXIMILIAN1234", "name"),
        ("passwordpassword", "common"),
        ("Password1234", "common"),
        ("P@ssw0rd2026!", "common"),
        ("123456789012", "common"),
        ("qwertyuiop123", "common"),
        ("qwertzuiopasdf", "common"),
        ("1q2w3e4r5t6y", "common"),
        ("1qaz2wsx3edc", "common"),
        ("iloveyou2024", "common"),
        ("aaaaaaaaaaaa", "common"),
        ("abcabcabcabc", "common"),
        ("administrator1", "common"),
        ("letmein letmein", "common"),
        ("BayernMuenchen1", "common"),
        ("ichliebedich!", "common"),
        ("!!!!!!!!!!!!", "common"),
        ("Sommer2026!!", "common"),
        ("Passwort1234", "common"),
        ("Sparkasse2026!", "common"),
        ("schatzimausi1", "common"),
        ("bankdata2026!", "common"),
        ("maximilian-hase", "common"),
        ("correct horse battery staple", None),
        ("umbrella-kettle-violin", None),
        ("Xk7#pQ2vLm9$", None),
        ("tr0ub4dor&3-ish", None),
        ("Wir fahren morgen früh nach Rügen", None),
        ("x1" * 7 + "kettle", "common"),
        ("kettle violins", None),
        ("ü" * 5 + "äöß4kfj", None),
    ],
)
def test_new_passwords(password: str, fault: str | None) -> None:
    assert weakness(password, user_name="maximilian") == fault


@pytest.mark.requirement("oauth.password_rules")
@pytest.mark.parametrize("run", ["qwertyuiop", "4@8({[<369&#!1/|0$5+7%2", "1!i|l7t+", "01012000", "äöü", "passwort"])
def test_of_a_long_password_only_a_bounded_part_is_judged(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    real = new_passwords.zxcvbn  # type: ignore[attr-defined]  # imported there

    def noting(password: str, words: list[str]) -> Any:
        judged.append(password)
        return real(password, words)

    monkeypatch.setattr(new_passwords, "zxcvbn", noting)
    weakness((run * 334)[:1000], user_name="maximilian")
    assert [len(each) for each in judged] in ([32], [])  # more than 1,024 bytes are refused before


@pytest.mark.requirement("oauth.sign_in")
def test_two_tabs_need_one_sign_in(fresh: Any) -> None:
    browser, client_id = fresh.browser(), fresh.register()
    first, second = browser.authorize(client_id), browser.authorize(client_id)
    form = (
        browser.client.get(second.headers["location"]).text.partition('name="form_token" value="')[2].partition('"')[0]
    )
    assert "code=" in browser.consent(browser.sign_in(first)).headers["location"]
    secret = second.headers["location"].partition("request=")[2]
    data = {"form_token": form, "request": secret, "username": "alice", "password": PASSWORD}
    answer = browser.client.post("/oauth/login", data=data)
    assert "code=" in browser.consent(answer).headers["location"]


@pytest.mark.requirement("oauth.pages")
def test_whoever_presses_twice_is_signed_in_once_and_goes_on_to_the_app(fresh: Any) -> None:
    browser, again = fresh.browser(), fresh.browser()
    page = browser.authorize(fresh.register())
    form = fields(browser.client.get(page.headers["location"]).text)
    again.client.cookies.update(browser.client.cookies)  # the first press has not been answered yet
    pressed = [
        each.client.post("/oauth/login", data={**form, "username": "alice", "password": PASSWORD})
        for each in (browser, again)
    ]
    assert browser.client.cookies["bds_session"] == again.client.cookies["bds_session"]
    assert "code=" in again.consent(pressed[1]).headers["location"]
    alice = users.find_by_name(fresh.database, "alice")
    assert alice is not None
    assert len(fresh.server.sessions.of_user(alice.id)) == 1


@pytest.mark.requirement("oauth.pages")
def test_a_form_that_was_left_open_over_night_signs_in(fresh: Any) -> None:
    browser = fresh.browser()
    form = fields(browser.client.get("/oauth/login").text)
    fresh.clock.forward(hours=13)
    answer = browser.client.post("/oauth/login", data={**form, "username": "alice", "password": PASSWORD})
    assert answer.headers["location"] == "/account"
    assert browser.client.get("/account").status_code == 200


@pytest.mark.requirement("oauth.pages")
def test_the_form_for_a_request_that_is_over_signs_in_and_says_where_to_go_on(fresh: Any) -> None:
    browser = fresh.browser()
    page = browser.authorize(fresh.register())
    form = fields(browser.client.get(page.headers["location"]).text)
    fresh.clock.forward(hours=13)
    fresh.server.cleanup.sweep()
    wrong = browser.client.post("/oauth/login", data={**form, "username": "alice", "password": "wrong"})
    assert (wrong.status_code, "User name or password is wrong" in wrong.text) == (400, True)
    form = {**fields(wrong.text), "username": "alice", "password": PASSWORD}
    over = browser.client.get(browser.client.post("/oauth/login", data=form).headers["location"])
    assert "This sign-in is over" in over.text
    assert 'href="http://127.0.0.1:8000/"' in over.text
    assert browser.client.get("/account").status_code == 200
