"""Signing in at the household's provider: who is let in as whom, how people come in, link, unlink and sign out."""

import html
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from auth.people.provider_metadata import ProviderAway
from handlers.commands import users as commands
from handlers.commands.control_socket import CommandError
from storage import users
from storage.oauth.grants import Terms
from tests.oauth.conftest import PASSWORD, Browser, World, fields, parameters
from tests.oauth.openid.provider import (
    CLIENT,
    ISSUER,
    Provider,
    as_json,
    comes_back,
    is_in,
    linked,
    settings,
    signs_in,
    to_provider,
)
from tests.oauth.record.test_told_at_once import told

Made = Callable[..., tuple[World, Provider]]


@pytest.fixture
def with_provider(make_world: Callable[..., World]) -> Made:
    def make(**changed: Any) -> tuple[World, Provider]:
        provider = Provider()
        world = make_world(provider=settings(**changed), ask=provider)
        provider.clock = world.clock
        return world, provider

    return make


def signed_in(world: World, name: str = "alice") -> Browser:
    browser = world.browser()
    form = fields(browser.client.get("/oauth/login").text)
    assert browser.client.post("/oauth/login", data={**form, "username": name, "password": PASSWORD}).status_code == 303
    return browser


def links(world: World, provider: Provider, browser: Browser) -> Any:
    """The page that says whom the person is about to link."""
    form = {**fields(browser.client.get("/account/provider").text), "current_password": PASSWORD}
    page = browser.client.post("/account/provider", data=form)
    assert page.status_code == 200, page.text
    (address,) = re.findall(r'class="button primary" href="([^"]+)"', page.text)
    return comes_back(browser, provider, html.unescape(address))


def form_of(page: str, action: str) -> dict[str, Any]:
    """The fields of the form that is sent there."""
    return fields(page[page.index(f'action="{action}"') - 30 :])


@pytest.mark.requirement("oauth.provider")
def test_whoever_is_linked_signs_in_with_the_code_flow_pkce_state_and_nonce(with_provider: Made) -> None:
    world, provider = with_provider()
    linked(world, provider)
    browser = world.browser()
    asked = parameters(to_provider(browser))
    assert {name: asked[name] for name in ("response_type", "client_id", "code_challenge_method", "scope")} == {
        "response_type": "code",
        "client_id": CLIENT,
        "code_challenge_method": "S256",
        "scope": "openid profile",
    }
    assert asked["redirect_uri"] == "http://127.0.0.1:8000/oauth/oidc/callback"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert "alice" in browser.client.get("/account").text


@pytest.mark.requirement("oauth.provider")
def test_an_app_that_waits_is_gone_on_with(with_provider: Made) -> None:
    world, provider = with_provider()
    linked(world, provider)
    browser = world.browser()
    page = browser.authorize(world.register())
    request = parameters(page.headers["location"])["request"]
    assert f"/oauth/oidc?request={request}" in browser.client.get(page.headers["location"]).text
    answer = comes_back(browser, provider, to_provider(browser, request=request))
    assert answer.headers["location"] == f"/oauth/consent?request={request}"


@pytest.mark.requirement("oauth.provider")
def test_an_existing_person_links_after_a_proof_sees_whom_and_unlinks(with_provider: Made) -> None:
    world, provider = with_provider()
    browser = signed_in(world)
    wrong = {**fields(browser.client.get("/account/provider").text), "current_password": "wrong"}
    assert browser.client.post("/account/provider", data=wrong).status_code == 400
    page = links(world, provider, browser)
    assert "as eva" in page.text
    assert "whoever signs in there so is alice here" in page.text
    answer = browser.client.post("/account/provider/confirm", data=form_of(page.text, "/account/provider/confirm"))
    assert answer.headers["location"] == "/account/provider?notice=provider_linked"
    other, _answer = signs_in(world, provider)
    assert is_in(other)
    form = {**fields(browser.client.get("/account/provider").text), "current_password": PASSWORD}
    assert browser.client.post("/account/provider/unlink", data=form).status_code == 303
    assert not is_in(other)
    assert is_in(browser)
    assert signs_in(world, provider)[1].status_code == 400


@pytest.mark.requirement("oauth.provider")
def test_an_account_there_that_is_somebody_elses_here_is_not_linked(with_provider: Made) -> None:
    world, provider = with_provider()
    linked(world, provider)
    page = links(world, provider, signed_in(world, "bob"))
    assert (page.status_code, "somebody else" in page.text) == (400, True)


@pytest.mark.requirement("oauth.provider")
def test_somebody_unknown_stays_outside_unless_new_people_may_come(with_provider: Made) -> None:
    world, provider = with_provider()
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(browser)) == (400, False)
    assert users.find_by_name(world.database, "eva") is None


@pytest.mark.requirement("oauth.provider")
def test_a_new_person_comes_in_under_their_name_there(with_provider: Made) -> None:
    world, provider = with_provider(takes_new_people=True)
    provider.claims, provider.userinfo = {}, {"preferred_username": "eva"}
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(browser)) == (303, True)
    made = users.get_by_name(world.database, "eva")
    assert (made.password_hash, made.is_operator) == (None, False)
    assert is_in(signs_in(world, provider)[0])
    assert len(users.everyone(world.database)) == 3


@pytest.mark.requirement("oauth.provider")
def test_a_taken_name_of_a_new_person_asks_for_another_one_and_never_means_that_person(with_provider: Made) -> None:
    world, provider = with_provider(takes_new_people=True)
    provider.claims = {"preferred_username": "Alice", "email": "alice@example.org", "email_verified": True}
    browser, page = signs_in(world, provider)
    assert (page.status_code, is_in(browser)) == (200, False)
    form = fields(page.text)
    taken = browser.client.post("/oauth/oidc/name", data={**form, "username": "alice"})
    assert (taken.status_code, "is taken" in taken.text) == (400, True)
    assert browser.client.post("/oauth/oidc/name", data={**form, "username": "alice2"}).status_code == 303
    assert "alice2" in browser.client.get("/account").text
    again = browser.client.post("/oauth/oidc/name", data={**form, "username": "alice3"})
    assert again.status_code in (400, 403)
    assert users.find_by_name(world.database, "alice3") is None


@pytest.mark.requirement("oauth.provider")
@pytest.mark.parametrize(
    ("held", "is_let_in"),
    [(["family", "x"], True), ("family", True), (["x"], False), ("fam", False), (None, False), ({"family": 1}, False)],
)
def test_only_groups_that_may_enter_do(with_provider: Made, held: Any, is_let_in: bool) -> None:
    world, provider = with_provider(groups_claim="groups", groups=frozenset({"family"}))
    linked(world, provider)
    provider.userinfo = {"groups": held}
    browser, answer = signs_in(world, provider)
    assert is_in(browser) is is_let_in
    assert answer.status_code == (303 if is_let_in else 403)
    assert "groups" in parameters(to_provider(world.browser()))["scope"].split()


@pytest.mark.requirement("oauth.provider")
def test_an_invitation_is_used_by_who_signs_in_at_the_provider(with_provider: Made) -> None:
    world, provider = with_provider()
    address = world.server.shares.invite(world.user, None, life="1", terms=Terms(accounts=None), ends_at=None)
    secret = (address or "").rpartition("#")[2]
    browser = world.browser()
    page = browser.client.post("/join", data={**fields(browser.client.get("/join").text), "secret": secret})
    going = browser.client.post("/oauth/oidc/join", data=form_of(page.text, "/oauth/oidc/join"))
    (address,) = re.findall(r'class="button primary" href="([^"]+)"', going.text)
    back = comes_back(browser, provider, html.unescape(address))
    assert (back.status_code, back.headers["location"]) == (303, "/account/shares"), "what is offered to them"
    assert is_in(browser)
    assert world.server.links.find(secret) is None


@pytest.mark.requirement("oauth.provider")
def test_a_second_factor_turned_on_here_is_asked_except_under_only(with_provider: Made) -> None:
    for is_only in (False, True):
        world, provider = with_provider(is_only=is_only)
        linked(world, provider)
        turn_on(world)
        browser, answer = signs_in(world, provider)
        assert (answer.headers["location"], is_in(browser)) == (
            ("/account", True) if is_only else ("/oauth/second-step", False)
        )


def turn_on(world: World) -> None:
    import pyotp

    factors = world.server.second_factors
    set_up = factors.begin(world.user)
    assert set_up is not None
    from storage.oauth.moments import aware

    assert factors.confirm(world.user, pyotp.TOTP(set_up.seed).at(int(aware(world.clock()).timestamp()))) is not None


@pytest.mark.requirement("oauth.provider")
def test_under_only_no_password_opens_and_proofs_are_sign_ins_of_five_minutes(with_provider: Made) -> None:
    world, provider = with_provider(is_only=True)
    linked(world, provider)
    page = world.browser().client.get("/oauth/login").text
    assert 'type="password"' not in page
    browser = world.browser()
    form = {"form_token": "", **form_token_of_login(browser)}
    answer = browser.client.post("/oauth/login", data={**form, "username": "alice", "password": PASSWORD})
    assert (answer.status_code, is_in(browser)) == (400, False)
    browser, _answer = signs_in(world, provider)
    assert make_calendar(browser).status_code == 200
    world.clock.forward(minutes=6)
    stale = make_calendar(browser)
    assert (stale.status_code, "Sign in once more" in stale.text) == (400, True)
    there = browser.client.get("/account/prove?back=/account").headers["location"]
    assert {name: parameters(there)[name] for name in ("prompt", "max_age")} == {"prompt": "login", "max_age": "0"}
    assert comes_back(browser, provider, there).headers["location"] == "/account"
    assert make_calendar(browser).status_code == 200


def form_token_of_login(browser: Browser) -> dict[str, str]:
    answer = browser.client.get("/oauth/oidc")
    assert answer.status_code == 303
    session = browser.world.server.sessions.resume(browser.client.cookies["bds_session"])
    assert session is not None
    return {"form_token": browser.world.server.sessions.form_token(session, "login")}


def make_calendar(browser: Browser) -> Any:
    page = browser.client.get("/account").text
    return browser.client.post("/account/calendar", data=form_of(page, "/account/calendar"))


@pytest.mark.requirement("oauth.provider")
def test_a_session_there_of_long_ago_signs_in_but_proves_nothing(with_provider: Made) -> None:
    world, provider = with_provider(is_only=True)
    linked(world, provider)
    provider.signed_in_at = provider._now() - 3600
    browser, _answer = signs_in(world, provider)
    assert is_in(browser)
    assert make_calendar(browser).status_code == 400
    there = browser.client.get("/account/prove?back=/account").headers["location"]
    assert comes_back(browser, provider, there).status_code == 400
    assert make_calendar(browser).status_code == 400


@pytest.mark.requirement("oauth.provider")
def test_the_last_way_in_is_not_unlinked(with_provider: Made) -> None:
    world, provider = with_provider(takes_new_people=True)
    browser, _answer = signs_in(world, provider)
    answer = browser.client.post("/account/provider/unlink", data=fields(browser.client.get("/account/provider").text))
    assert (answer.status_code, "last way in" in answer.text) == (400, True)
    assert is_in(signs_in(world, provider)[0])


@pytest.mark.requirement("oauth.provider")
def test_signing_out_offers_to_sign_out_there_too(with_provider: Made) -> None:
    world, provider = with_provider()
    linked(world, provider)
    browser, _answer = signs_in(world, provider)
    page = browser.client.post(
        "/account/sign-out", data=form_of(browser.client.get("/account").text, "/account/sign-out")
    )
    (address,) = re.findall(rf'href="({ISSUER}/end[^"]+)"', page.text)
    assert parameters(html.unescape(address)) == {
        "client_id": CLIENT,
        "post_logout_redirect_uri": "http://127.0.0.1:8000/oauth/login",
    }
    assert not is_in(browser)


@pytest.mark.requirement("oauth.provider")
@pytest.mark.parametrize(("named", "ends"), [({"sub": None, "sid": "there-1"}, 1), ({}, 2), ({"sid": "other"}, 0)])
def test_the_back_channel_ends_the_session_of_a_sid_and_of_a_sub_all_by_this_provider(
    with_provider: Made, named: dict[str, Any], ends: int
) -> None:
    world, provider = with_provider()
    linked(world, provider)
    by_password = signed_in(world)
    first, _answer = signs_in(world, provider)
    provider.claims = {"sid": "there-2"}
    second, _answer = signs_in(world, provider)
    tokens = world.tokens()
    answer = world.http.post("/oauth/oidc/logout", data={"logout_token": provider.logout_token(**named)})
    assert (answer.status_code, answer.content) == (200, b"")
    assert (is_in(first), is_in(second)) == {0: (True, True), 1: (False, True), 2: (False, False)}[ends]
    assert is_in(by_password)
    assert world.api(tokens["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.provider")
def test_whoever_is_thrown_out_of_the_group_there_is_out_here_within_a_day(with_provider: Made) -> None:
    world, provider = with_provider(groups_claim="groups", groups=("bank",))
    linked(world, provider)
    provider.claims = {"groups": ["bank"]}
    browser, _answer = signs_in(world, provider)
    by_password = signed_in(world)
    provider.claims = {"groups": []}
    for _ in range(3):
        world.clock.forward(hours=7)
        assert is_in(browser)
        assert is_in(by_password)
    world.clock.forward(hours=3)
    assert not is_in(browser)
    assert is_in(by_password)
    again, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(again)) == (403, False)


@pytest.mark.requirement("oauth.provider")
def test_a_provider_that_is_away_is_said_and_the_password_stays(with_provider: Made) -> None:
    world, provider = with_provider()
    provider.replies[".well-known/openid-configuration"] = ProviderAway("id.example: ConnectError")
    browser = world.browser()
    answer = browser.client.get("/oauth/oidc")
    assert (answer.status_code, "cannot be reached" in answer.text) == (503, True)
    assert world.browser().client.get("/oauth/oidc").status_code == 503
    assert len(provider.asked) == 1, "not asked again within seconds"
    assert is_in(signed_in(world))
    del provider.replies[".well-known/openid-configuration"]
    world.clock.forward(seconds=6)
    assert world.browser().client.get("/oauth/oidc").status_code == 303


@pytest.mark.requirement("oauth.provider")
def test_a_paused_person_is_not_let_in(with_provider: Made) -> None:
    world, provider = with_provider()
    linked(world, provider)
    world.server.operators.pause(world.user)
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(browser)) == (403, False)


@pytest.mark.requirement("oauth.provider")
def test_another_issuer_is_other_people(make_world: Callable[..., World], with_provider: Made) -> None:
    world, provider = with_provider()
    assert world.server.provider is not None
    told = world.server.provider.link_subject(world.user.id, provider.subject)
    assert told is None
    moved = make_world(provider=settings(issuer="https://new.example"), ask=provider)
    assert moved.server.provider is not None
    assert moved.server.provider._via("1", None) != world.server.provider._via("1", None)


@pytest.mark.requirement("oauth.provider")
def test_whoever_is_removed_leaves_nothing_and_may_come_again(with_provider: Made) -> None:
    world, provider = with_provider(takes_new_people=True)
    signs_in(world, provider)
    eva = users.get_by_name(world.database, "eva")
    world.server.remove_user(eva.id)
    world.database.atomically(lambda session: users.remove(session, eva.id))
    assert world.database.rows("SELECT * FROM oauth_identities") == []
    browser, _answer = signs_in(world, provider)
    assert is_in(browser)
    assert users.get_by_name(world.database, "eva").id != eva.id


@pytest.mark.requirement("oauth.provider")
def test_the_secret_goes_by_basic_or_in_the_form_as_the_metadata_say(with_provider: Made) -> None:
    for methods, is_basic in ((None, True), (["client_secret_post"], False)):
        world, provider = with_provider()
        provider.metadata = {"token_endpoint_auth_methods_supported": methods}
        linked(world, provider)
        signs_in(world, provider)
        (token,) = [each for each in provider.asked if each.address.endswith("/token")]
        assert ("Authorization" in token.headers) is is_basic
        assert ("client_secret" in (token.form or {})) is not is_basic


@pytest.mark.requirement("oauth.provider")
def test_keys_are_rotated_without_a_restart(with_provider: Made) -> None:
    from tests.oauth.openid.provider import OTHER_KEY, jwk, signed

    world, provider = with_provider()
    linked(world, provider)
    assert is_in(signs_in(world, provider)[0])
    provider.keys = [jwk(OTHER_KEY, "k2")]
    provider.sign = lambda claims: signed(claims, OTHER_KEY, kid="k2")
    assert signs_in(world, provider)[1].status_code == 400, "asked a moment ago"
    world.clock.forward(seconds=61)
    assert is_in(signs_in(world, provider)[0])


@pytest.mark.requirement("oauth.provider")
def test_metadata_are_asked_for_when_first_needed(with_provider: Made) -> None:
    world, provider = with_provider()
    provider.replies["userinfo"] = as_json({})
    assert provider.asked == []
    world.browser().client.get("/oauth/login")
    assert provider.asked == []
    to_provider(world.browser())
    to_provider(world.browser())
    assert [each.address for each in provider.asked] == [f"{ISSUER}/.well-known/openid-configuration"]


@pytest.mark.requirement("oauth.provider")
def test_while_the_provider_is_away_a_link_signs_in_once_and_is_told_at_the_next_sign_in(with_provider: Made) -> None:
    world, provider = with_provider(is_only=True)
    linked(world, provider)
    secret = world.server.links.sign_in_link(world.user).rpartition("#")[2]
    browser, other = world.browser(), world.browser()
    for each, is_let_in in ((browser, True), (other, False)):
        page = each.client.post("/join", data={**fields(each.client.get("/join").text), "secret": secret})
        form = form_of(page.text, "/join/sign-in") if is_let_in else {"secret": secret, "form_token": "x"}
        each.client.post("/join/sign-in", data=form)
        assert is_in(each) is is_let_in
    _browser, told = signs_in(world, provider)
    assert "Somebody signed in as you by a link" in told.text
    late = world.server.links.sign_in_link(world.user).rpartition("#")[2]
    world.clock.forward(minutes=10)
    assert world.server.links.sign_in(late, address="a") is None
    with_factor = world.server.links.sign_in_link(world.user).rpartition("#")[2]
    turn_on(world)
    page = other.client.post("/join", data={**fields(other.client.get("/join").text), "secret": with_factor})
    answer = other.client.post("/join/sign-in", data=form_of(page.text, "/join/sign-in"))
    assert (answer.headers["location"], is_in(other)) == ("/oauth/second-step", False)


@pytest.mark.requirement("oauth.provider")
def test_under_only_nobody_joins_by_a_password_or_a_passkey(with_provider: Made) -> None:
    world, _provider = with_provider(is_only=True)
    secret = world.server.links.invite().rpartition("#")[2]
    browser = world.browser()
    form = {**fields(browser.client.get("/join").text), "secret": secret}
    page = browser.client.post("/join", data=form).text
    assert ('type="password"' in page, "/join/passkey" in page, "/oauth/oidc/join" in page) == (False, False, True)
    typed = {"username": "eva", "new_password": PASSWORD + " eva's", "repeated_password": PASSWORD + " eva's"}
    assert browser.client.post("/join/person", data={**form, **typed}).status_code == 400
    assert users.find_by_name(world.database, "eva") is None


@pytest.mark.requirement("oauth.provider")
def test_people_are_linked_and_unlinked_by_command(with_provider: Made) -> None:
    world, provider = with_provider()
    services: Any = SimpleNamespace(everybody=world.database, authorization=world.server)
    said: list[str] = []
    report: Any = SimpleNamespace(note=said.append, line=said.append)
    commands.link(services, report, name="alice", subject=provider.subject)
    assert told(world, world.user) == {"access.new.linkProvider": 1}
    browser, _answer = signs_in(world, provider)
    assert is_in(browser)
    for name, subject in (("bob", provider.subject), ("alice", "another")):
        with pytest.raises(CommandError, match="already"):
            commands.link(services, report, name=name, subject=subject)
    world.database.execute("UPDATE users SET password_hash = NULL WHERE id = $1", world.user.id)
    commands.unlink(services, report, name="alice")
    assert not is_in(browser)
    assert "no way in now" in said[-1]
    with pytest.raises(CommandError, match="not linked"):
        commands.unlink(services, report, name="alice")


@pytest.mark.requirement("oauth.provider")
def test_the_first_person_of_a_store_may_come_in_by_the_provider_and_is_operator(with_provider: Made) -> None:
    world, provider = with_provider(is_only=True)
    for each in (world.user, world.other):
        world.database.atomically(lambda session, each=each: users.remove(session, each.id))  # type: ignore[misc]
    secret = world.server.links.first().rpartition("#")[2]
    browser = world.browser()
    page = browser.client.post("/join", data={**fields(browser.client.get("/join").text), "secret": secret})
    going = browser.client.post("/oauth/oidc/join", data=form_of(page.text, "/oauth/oidc/join"))
    (address,) = re.findall(r'class="button primary" href="([^"]+)"', going.text)
    comes_back(browser, provider, html.unescape(address))
    assert [(each.name, each.is_operator) for each in users.everyone(world.database)] == [("eva", True)]
    provider.subject = "another"
    other, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(other)) == (400, False)
