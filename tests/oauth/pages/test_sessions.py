"""The browsers in which a person is signed in: listed on /account, and ended there."""

import re
from datetime import datetime
from itertools import chain
from typing import Any

import pytest

from handlers.oauth.agents import agent_name
from storage.notices.ways import deliveries, targets
from storage.notices.ways.targets import NoticeTarget
from tests.oauth.conftest import PASSWORD
from tests.oauth.pages.test_account import NEW, forms, signed_in

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
EDGE = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML) Chrome/140.0 Safari/537.36 Edg/140.0"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19 Mobile Safari/604.1"


@pytest.mark.requirement("oauth.sessions")
@pytest.mark.parametrize(
    ("said", "name"),
    [(FIREFOX, "Firefox, Linux"), (EDGE, "Edge, Windows"), (IPHONE, "Safari, iPhone"), ("curl/8", None), ("", None)],
)
def test_a_browser_is_called_what_people_call_it(said: str, name: str | None) -> None:
    assert agent_name(said) == name


@pytest.mark.requirement("oauth.sessions")
def test_each_browser_is_listed_with_this_one_marked_and_ended_by_itself(fresh: Any) -> None:
    first, second, third = signed_in(fresh, agent=FIREFOX), signed_in(fresh, agent=EDGE), signed_in(fresh, agent=IPHONE)
    signed_in(fresh, "bob")
    page = first.client.get("/account").text
    cards = page.partition('id="sessions"')[2].partition("</section>")[0].split("<li>")[1:]
    names = [re.search(r"<strong class=\"name\">([^<]+)<", card)[1] for card in cards]  # type: ignore[index]
    assert names[0] == "Firefox, Linux"
    assert sorted(names[1:]) == ["Edge, Windows", "Safari, iPhone"]
    assert ["(this browser)" in card for card in cards] == [True, False, False]
    (edge,) = (card for card in cards if "Edge" in card)
    session = re.search(r'name="session" value="(\w+)"', edge)[1]  # type: ignore[index]
    form = {"form_token": forms(page)["end-others"]["form_token"], "session": session}
    assert first.client.post("/account/sessions/end", data=form).headers["location"] == "/account?notice=session_ended"
    assert second.client.get("/account").status_code == 303
    assert third.client.get("/account").status_code == 200
    assert first.client.post("/account/sessions/end-others", data=form).status_code == 303
    assert third.client.get("/account").status_code == 303
    assert first.client.get("/account").status_code == 200


@pytest.mark.requirement("oauth.sessions")
def test_nobody_ends_another_s_session(fresh: Any) -> None:
    victim, attacker = signed_in(fresh), signed_in(fresh, "bob")
    signed_in(fresh, "bob")
    (row,) = fresh.database.rows("SELECT id_hash FROM oauth_sessions WHERE user_id = $1", fresh.user.id)
    (attacker_id,) = (row["id"] for row in fresh.database.rows("SELECT id FROM users WHERE name = 'bob'"))
    form = forms(attacker.client.get("/account").text)["end-others"]
    attacker.client.post("/account/sessions/end", data={**form, "session": row["id_hash"]})
    assert victim.client.get("/account").status_code == 200
    entries = chain.from_iterable(fresh.server.record.hours(attacker_id))
    assert "endSession" not in {each.operation for each in entries}
    assert attacker.client.post("/account/sessions/end", data={"session": row["id_hash"]}).status_code == 403


@pytest.mark.requirement("oauth.account")
@pytest.mark.parametrize(("box", "said"), [({}, []), ({"end_apps": "on"}, ["removed"])])
def test_a_new_password_ends_the_ways_of_notices_where_that_is_ticked(
    fresh: Any, box: dict[str, str], said: list[str]
) -> None:
    own, user_id = fresh.database.of(fresh.user.id), fresh.user.id
    stranger = NoticeTarget(
        user_id=user_id,
        id="ntt_1",
        way="email",
        scheme="mailto",
        last=".org",
        name=None,
        whole_sentences=True,
        state="working",
        created_at=datetime(2026, 3, 1),  # noqa: DTZ001
    )
    own.atomically(lambda session: targets.add(session, stranger))
    browser = signed_in(fresh)
    form = forms(browser.client.get("/account").text)["password"]
    new = {"current_password": PASSWORD, "new_password": NEW, "repeated_password": NEW}
    browser.client.post("/account/password", data={**form, **new, **box})
    assert [each.what for each in deliveries.last(own, user_id, "ntt_1") if each.what == "removed"] == said
    assert len(targets.of_user(own, user_id)) == 1 - len(said)


@pytest.mark.requirement("oauth.account")
@pytest.mark.parametrize(("box", "status"), [({}, 200), ({"end_apps": "on"}, 401)])
def test_a_new_password_ends_apps_where_that_is_ticked(fresh: Any, box: dict[str, str], status: int) -> None:
    tokens = fresh.tokens()
    browser = signed_in(fresh)
    form = forms(browser.client.get("/account").text)["password"]
    new = {"current_password": PASSWORD, "new_password": NEW, "repeated_password": NEW}
    browser.client.post("/account/password", data={**form, **new, **box})
    assert fresh.api(tokens["access_token"]).status_code == status
