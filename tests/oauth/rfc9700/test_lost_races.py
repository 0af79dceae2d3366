"""The moments that races are made of, one by one: what a caller hears who comes second."""

import re
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient

from auth.errors import InvalidToken
from auth.people.sessions import Browser
from auth.tokens import access_check
from handlers.oauth.endpoints import failure_answer
from storage import users
from storage.database import Conflict, StoreUnavailable
from storage.oauth import codes, tokens
from tests.oauth.conftest import application, fields


def second(*_: object, **__: object) -> bool:
    return False


def conflict(*_: object, **__: object) -> None:
    raise Conflict("somebody was first")


@pytest.mark.requirement("oauth.races")
@pytest.mark.parametrize("secret", ["code", "refresh token"])
def test_whom_the_store_calls_second_gets_nothing_and_ends_the_family(
    fresh: Any, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    issued = fresh.tokens()
    code, verifier = fresh.browser().code(issued["client_id"])
    if secret == "code":
        monkeypatch.setattr(codes, "use", second)
        answer = fresh.redeem(code, verifier, issued["client_id"])
    else:
        monkeypatch.setattr(tokens, "use_refresh", second)
        answer = fresh.refresh(issued["refresh_token"], issued["client_id"])
    assert answer.json()["error"] == "invalid_grant"
    assert (fresh.api(issued["access_token"]).status_code == 401) == (secret == "refresh token")


@pytest.mark.requirement("oauth.races")
def test_a_conflict_that_does_not_end_spends_nothing(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = fresh.tokens()
    browser = fresh.browser()
    page = browser.sign_in(browser.authorize(tokens["client_id"]))
    session = fresh.server.sessions.resume(browser.client.cookies["bds_session"])
    monkeypatch.setattr(fresh.database, "atomically", conflict)
    with pytest.raises(StoreUnavailable):
        fresh.server.refresh_tokens.refresh(tokens["refresh_token"], client_id=tokens["client_id"], scope=None)
    secret = page.headers["location"].partition("request=")[2]
    assert fresh.server.consent.decide(session, secret, is_allowed=True) is None
    monkeypatch.undo()
    assert fresh.server.refresh_tokens.refresh(tokens["refresh_token"], client_id=tokens["client_id"], scope=None)


@pytest.mark.requirement("oauth.races")
def test_what_a_machine_with_a_wrong_clock_refuses_is_put_off_and_another_one_still_takes_it(fresh: Any) -> None:
    issued, right = fresh.tokens(), fresh.http
    fresh.http = TestClient(application(fresh.server, fresh.database, is_clock_off=lambda: True))
    fresh.clock.forward(days=400)
    answer = fresh.refresh(issued["refresh_token"], issued["client_id"])
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    fresh.clock.forward(days=-400)
    fresh.http = right
    assert fresh.refresh(issued["refresh_token"], issued["client_id"]).status_code == 200


@pytest.mark.requirement("oauth.races")
def test_of_two_answers_to_one_question_the_second_is_told_that_it_is_over(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, user_of = fresh.browser(), fresh.server.sign_in.user_of
    page = browser.sign_in(browser.authorize(fresh.register()))
    form = fields(browser.client.get(page.headers["location"]).text)

    def overtaken(session: Browser) -> object:
        fresh.server.consent.decide(session, form["request"], is_allowed=False)  # in another tab
        return user_of(session)

    monkeypatch.setattr(fresh.server.sign_in, "user_of", overtaken)
    answer = browser.client.post("/oauth/consent", data={**form, "decision": "allow"})
    assert (answer.status_code, "This sign-in is over" in answer.text) == (400, True)
    assert fresh.server.grants.connected_apps() == []


@pytest.mark.requirement("oauth.races")
def test_forms_of_a_user_who_was_just_removed_change_nothing(fresh: Any) -> None:
    browser = fresh.browser()
    page = browser.sign_in(browser.authorize(fresh.register()))
    consent = browser.client.get(page.headers["location"]).text.partition("</form>")[0]
    account = browser.client.get("/account").text.partition("</form>")[0]
    users.remove(fresh.database, fresh.user.id)
    for path, html in (("/oauth/consent", consent), ("/account/sign-out", account)):
        form = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', html))
        assert browser.client.post(path, data={**form, "decision": "allow"}).status_code == 400
    assert fresh.server.grants.connected_apps() == []


@pytest.mark.requirement("oauth.races")
def test_a_grant_that_outlived_its_user_by_a_moment_gives_no_tokens(fresh: Any) -> None:
    earlier, client_id = fresh.tokens(), fresh.register()
    code, verifier = fresh.browser().code(client_id)
    users.remove(fresh.database, fresh.user.id)  # the grants were deleted just before these two came in
    answers = fresh.redeem(code, verifier, client_id), fresh.refresh(earlier["refresh_token"], earlier["client_id"])
    assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [(400, "invalid_grant")] * 2


@pytest.mark.requirement("oauth.access_check")
def test_what_is_remembered_of_tokens_and_grants_is_bounded(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_check, "CACHED_TOKENS_MAX", 2)
    monkeypatch.setattr(access_check, "CACHED_GRANTS_MAX", 2)
    client_id = fresh.register()
    for _ in range(5):
        assert fresh.api(fresh.tokens(client_id)["access_token"]).status_code == 200
    assert len(fresh.server.access._claims) <= 2
    assert len(fresh.server.access._principals) <= 2
    assert len(fresh.server.access._standing) <= 2


@pytest.mark.requirement("oauth.access_check")
def test_a_token_whose_grant_is_unknown_speaks_for_nobody(fresh: Any) -> None:
    token = fresh.server.access._tokens.issue(
        user_id=fresh.user.id, client_id="c", scopes=["read:accounts"], grant_id="unknown", now=fresh.clock()
    )
    with pytest.raises(InvalidToken):
        fresh.server.access.principal(token)


@pytest.mark.requirement("oauth.bad_input")
def test_the_server_stops_reading_what_never_ends_and_answers_nobody_who_is_gone(fresh: Any) -> None:
    content = b"a=" + b"x" * 1_200_000
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert fresh.http.post("/oauth/login", content=content, headers=headers).status_code == 413
    assert failure_answer(ClientDisconnect()) is None
