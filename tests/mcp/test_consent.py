"""What a person ticks on the consent page and afterwards: accounts, bookings, whole numbers, and how long."""

import json
import re
import secrets
from datetime import timedelta
from importlib import resources
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from auth.apps.clients import BUILTIN
from auth.authorization_details import LASTS_DAYS
from auth.tokens.terms import is_within, narrower
from handlers.oauth.choices import AS_BEFORE, choices_of, sent_choices
from handlers.oauth.mistakes import Mistake
from storage import accounts, users
from storage.oauth.grants import Terms
from tests.explanations.conftest import Service
from tests.mcp.conftest import ADDRESS
from tests.oauth.conftest import ALL, REDIRECT, challenge_of, fields, parameters, shown_choices

MCP = f"{ADDRESS}/mcp"
ASKED = '<span class="asked'  # is seen until something else is chosen


class Person:
    """The demo's first user in a browser."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.browser = TestClient(service.app, base_url=ADDRESS, follow_redirects=False)
        answer = self.browser.post("/oauth/register", json={"client_name": "Chat", "redirect_uris": [REDIRECT]})
        self.client_id = answer.json()["client_id"]
        self.verifier = secrets.token_urlsafe(48)

    def asked(self, resource: str = MCP, **more: str) -> Any:
        """The consent page."""
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "scope": ALL,
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
            "resource": resource,
            **more,
        }
        page = self.browser.get("/oauth/authorize", params=query)
        if "/oauth/login" in page.headers["location"]:
            form = fields(self.browser.get(page.headers["location"]).text)
            page = self.browser.post("/oauth/login", data={**form, "username": "demo", "password": "demo-demo-2024"})
        return self.browser.get(page.headers["location"])

    def answers(self, page: Any, **ticked: Any) -> Any:
        """Allow; what is ticked in place of what the page shows, if anything."""
        shown = fields(page.text)
        hidden = {name: shown[name] for name in ("form_token", "request")}
        return self.browser.post(
            "/oauth/consent", data={**(hidden if ticked else shown), "decision": "allow", **ticked}
        )

    def tokens(self, answer: Any) -> Any:
        form = {
            "grant_type": "authorization_code",
            "code": parameters(answer.headers["location"])["code"],
            "client_id": self.client_id,
            "code_verifier": self.verifier,
            "redirect_uri": REDIRECT,
        }
        return self.browser.post("/oauth/token", data=form).json()

    def accounts(self, token: str) -> Any:
        answer = self.browser.get("/api/v1/accounts", headers={"Authorization": f"Bearer {token}"})
        return [account["id"] for account in answer.json()["accounts"]]


def boxes(html: str, name: str = "account") -> list[str]:
    return re.findall(rf'name="{name}" value="([^"]+)" ?(?:checked)?', html)


@pytest.fixture
def person(demo_service: Service) -> Person:
    return Person(demo_service)


@pytest.mark.requirement("grants.consent")
def test_unchanged_it_grants_everything_and_only_some_accounts_when_only_those_are_ticked(person: Person) -> None:
    page = person.asked(f"{ADDRESS}/api/v1")
    ids = boxes(page.text)
    assert len(ids) >= 3
    assert "full_numbers" not in page.text
    assert f'{ASKED} accounts">{len(ids)} of {len(ids)} accounts</span>' in page.text
    assert f'{ASKED} days" data-days="365">365 days</span>' in page.text
    everything = {"account": ids, "later_accounts": "on", "bookings": "on", "lasts": "365"}
    tokens = person.tokens(person.answers(page, **everything))
    assert (person.accounts(tokens["access_token"]), tokens["scope"]) == (ids, ALL)
    page = person.asked(f"{ADDRESS}/api/v1")
    tokens = person.tokens(person.answers(page, account=ids[1], bookings="on", lasts="7"))
    assert person.accounts(tokens["access_token"]) == [ids[1]]
    page = person.asked(f"{ADDRESS}/api/v1")
    tokens = person.tokens(person.answers(page, account=ids[1:], later_accounts="on", bookings="on", lasts="7"))
    assert person.accounts(tokens["access_token"]) == ids[1:]


@pytest.mark.requirement("grants.consent")
def test_without_bookings_the_scope_that_reads_them_goes(person: Person) -> None:
    page = person.asked(f"{ADDRESS}/api/v1")
    tokens = person.tokens(person.answers(page, account=boxes(page.text), later_accounts="on", lasts="365"))
    assert tokens["scope"] == "read:accounts read:cashflow"
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert person.browser.get("/api/v1/subscriptions", headers=headers).status_code == 403


@pytest.mark.requirement("grants.consent")
def test_no_account_shows_the_page_again_and_a_strangers_account_is_no_form_of_ours(person: Person) -> None:
    page = person.asked()
    again = person.answers(page, bookings="on", lasts="365")
    assert again.status_code == 400
    assert 'role="alert"' in again.text
    assert person.answers(page, account="acc_of_somebody_else", lasts="365").status_code == 400
    assert person.answers(page, account=boxes(page.text), lasts="366").status_code == 400
    allowed = person.answers(again, account=boxes(again.text)[0], lasts="365")
    assert "code=" in allowed.headers["location"]


@pytest.mark.requirement("grants.consent")
def test_access_ends_when_the_person_said(person: Person) -> None:
    page = person.asked()
    assert "company that runs it" in page.text
    answer = person.answers(page, account=boxes(page.text), bookings="on", full_numbers="on", lasts="1")
    tokens = person.tokens(answer)
    clock = person.service.services.clock
    held = person.service.services.authorization.grants.connected_apps()[0].grant
    assert held.expires_at - held.created_at == timedelta(days=1)
    assert (held.resource, held.terms.full_numbers, held.terms.all_but) == ("mcp", True, False)
    clock.offset += timedelta(hours=23, minutes=30)
    try:
        form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": person.client_id}
        refreshed = person.browser.post("/oauth/token", data=form).json()
        assert 0 < refreshed["expires_in"] <= 1800
    finally:
        clock.offset -= timedelta(hours=23, minutes=30)


@pytest.mark.requirement("grants.consent")
def test_whatever_end_is_chosen_is_said() -> None:
    style = (resources.files("handlers.oauth") / "static" / "oauth.css").read_text("utf-8")
    said = re.findall(r'has\(\[value="(\d+)"\]:checked\) \.chosen\[data-days="\1"\]', style)
    assert [int(days) for days in said] == list(LASTS_DAYS)


@pytest.mark.requirement("oauth.authorization_details")
def test_details_preset_the_boxes_and_are_answered_as_granted(person: Person) -> None:
    owned = accounts.of_user(
        person.service.services.everybody, users.get_by_name(person.service.services.everybody, "demo").id
    )
    with_iban = next(account for account in owned if account.iban)
    spaced = " ".join(re.findall(".{1,4}", (with_iban.iban or "").lower()))
    details = {
        "type": "account_information",
        "actions": ["list_accounts", "read_cashflow"],
        "accounts": [{"iban": spaced}, {"id": "acc_of_somebody_else"}],
        "fullNumbers": True,
        "lastsDays": 30,
    }
    page = person.asked(authorization_details=json.dumps([details]))
    assert '<details class="choices" open>' in page.text
    assert f'{ASKED} accounts">1 of {len(boxes(page.text))} accounts</span>' in page.text
    assert f'{ASKED} days" data-days="30">30 days</span>' in page.text
    assert re.search(f'{ASKED} days" data-days="30">[^<]*ends after 30 days at the latest\\.</span>', page.text)
    assert shown_choices(page.text) == {"account": [with_iban.id], "full_numbers": "on", "lasts": "30"}
    tokens = person.tokens(person.answers(page, **shown_choices(page.text)))
    granted = {
        "type": "account_information",
        "locations": [MCP],
        "actions": ["list_accounts", "read_balances", "read_cashflow"],
        "accounts": [{"id": with_iban.id}],
        "laterAccounts": False,
        "fullNumbers": True,
    }
    assert tokens["authorization_details"] == [granted]
    held = person.service.services.authorization.grants.connected_apps()[0].grant
    assert (held.expires_at - held.created_at).days == 30
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": person.client_id}
    assert person.browser.post("/oauth/token", data=form).json()["authorization_details"] == [granted]


@pytest.mark.requirement("oauth.authorization_details")
def test_the_person_decides_and_the_answer_says_what_for(person: Person) -> None:
    details = json.dumps([{"type": "account_information", "laterAccounts": False}])
    page = person.asked(f"{ADDRESS}/api/v1", authorization_details=details)
    ids = boxes(page.text)
    assert shown_choices(page.text) == {"account": ids, "bookings": "on", "lasts": "365"}
    answer = person.answers(page, account=ids[1:], later_accounts="on", bookings="on", lasts="7")
    (granted,) = person.tokens(answer)["authorization_details"]
    assert granted == {
        "type": "account_information",
        "locations": [f"{ADDRESS}/api/v1"],
        "actions": ["list_accounts", "read_balances", "read_transactions", "read_cashflow"],
        "accounts": [{"id": account_id} for account_id in ids[1:]],
        "laterAccounts": True,
    }


@pytest.mark.requirement("oauth.authorization_details")
def test_accounts_that_nobody_has_are_asked_for_in_vain(person: Person) -> None:
    nobodys = [{"type": "account_information", "accounts": [{"id": "acc_of_somebody_else"}], "lastsDays": 7}]
    page = person.asked(authorization_details=json.dumps(nobodys))
    assert shown_choices(page.text) == {"account": [], "bookings": "on", "lasts": "7"}
    again = person.answers(page)
    assert (again.status_code, 'role="alert"' in again.text) == (400, True)


@pytest.mark.requirement("grants.consent")
def test_the_page_that_comes_again_shows_what_was_chosen_and_nothing_else(person: Person) -> None:
    page = person.asked()
    again = person.answers(page, lasts="7", full_numbers="on")
    assert (again.status_code, 'role="alert"' in again.text) == (400, True)
    assert shown_choices(again.text) == {"account": [], "full_numbers": "on", "lasts": "7"}


@pytest.mark.requirement("grants.consent")
@pytest.mark.parametrize("left_out", ["lasts", "everything"])
def test_what_is_missing_in_a_form_is_no_yes(person: Person, left_out: str) -> None:
    page = person.asked()
    sent = fields(page.text)
    kept = ("form_token", "request") if left_out == "everything" else set(sent) - {"lasts"}
    answer = person.browser.post("/oauth/consent", data={**{name: sent[name] for name in kept}, "decision": "allow"})
    assert answer.status_code == 400
    assert person.answers(page).status_code == 303  # the request still waits


@pytest.mark.requirement("grants.consent")
def test_what_was_never_allowed_cannot_last_as_before(person: Person) -> None:
    page = person.asked()
    assert person.answers(page, **{**shown_choices(page.text), "lasts": AS_BEFORE}).status_code == 400
    assert person.answers(page).status_code == 303


def refresh_of(person: Person, tokens: Any) -> dict[str, str]:
    return {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": person.client_id}


def connection(person: Person) -> tuple[dict[str, str], Any]:
    """The form of the newest connection on /account, and the connection."""
    held = person.service.services.authorization.grants.connected_apps()[0].grant
    page = person.browser.get("/account").text
    form = re.search(rf'<form[^>]*narrow"(?:(?!</form>).)*?value="{held.id}".*?</form>', page, re.DOTALL)
    assert form is not None
    return {**fields(form[0]), "grant": held.id, "lasts": AS_BEFORE}, held


@pytest.mark.requirement("grants.narrowed")
def test_the_account_page_narrows_one_connection_at_once(person: Person) -> None:
    token = person.tokens(person.answers(person.asked(f"{ADDRESS}/api/v1")))["access_token"]
    ids = person.accounts(token)
    sent, held = connection(person)
    assert held.terms == Terms()
    saved = person.browser.post("/account/narrow", data={**sent, "account": ids[0], "bookings": "on"})
    assert saved.headers["location"].endswith("notice=narrowed")
    assert person.accounts(token) == [ids[0]]
    assert person.browser.post("/account/narrow", data=sent).status_code == 400
    assert person.browser.post("/account/narrow", data={**sent, "grant": "g0", "account": ids[0]}).status_code == 303
    assert (
        person.browser.post("/account/narrow", data={**sent, "form_token": "x", "account": ids[0]}).status_code == 403
    )


@pytest.mark.requirement("grants.narrowed")
def test_a_connection_that_was_revoked_in_another_tab_is_not_said_to_see_anything(person: Person) -> None:
    ids = person.accounts(person.tokens(person.answers(person.asked(f"{ADDRESS}/api/v1")))["access_token"])
    sent, held = connection(person)
    person.service.services.authorization.grants.revoke(held.id, because="revoked by the user")
    late = person.browser.post("/account/narrow", data={**sent, "account": ids[0], "bookings": "on"})
    assert late.headers["location"] == "/account?notice=revoked"


@pytest.mark.requirement("grants.widened")
def test_to_let_a_connection_see_more_needs_the_password(person: Person) -> None:
    page = person.asked(f"{ADDRESS}/api/v1")
    ids = boxes(page.text)
    tokens = person.tokens(person.answers(page, account=ids[0], lasts="365"))
    sent, _held = connection(person)
    wider = {**sent, "account": ids[:2], "bookings": "on"}
    for password in ("", "wrong"):
        refused = person.browser.post("/account/narrow", data={**wider, "current_password": password})
        assert (refused.status_code, "The current password is wrong" in refused.text) == (400, True)
        assert person.accounts(tokens["access_token"]) == [ids[0]]
    saved = person.browser.post("/account/narrow", data={**wider, "current_password": "demo-demo-2024"})
    assert saved.status_code == 303
    assert person.accounts(tokens["access_token"]) == ids[:2]
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": person.client_id}
    assert person.browser.post("/oauth/token", data=form).json()["scope"] == ALL


@pytest.mark.requirement("grants.narrowed")
def test_the_end_of_an_access_is_seen_and_brought_nearer_for_the_asking(person: Person) -> None:
    tokens = person.tokens(person.answers(person.asked()))
    sent, held = connection(person)
    assert f'Ends <time datetime="{held.expires_at.astimezone(person.service.services.clock.zone).isoformat()}">' in (
        person.browser.get("/account").text
    )
    whole = {**sent, "account": boxes(person.asked().text), "later_accounts": "on", "bookings": "on"}
    assert person.browser.post("/account/narrow", data={**whole, "lasts": "7"}).status_code == 303
    _sent, shorter = connection(person)
    assert (shorter.expires_at - person.service.services.clock.now_in_utc()).days == 6
    without = {name: value for name, value in whole.items() if name != "lasts"}
    assert person.browser.post("/account/narrow", data=without).status_code == 400
    assert "refresh_token" in person.browser.post("/oauth/token", data=refresh_of(person, tokens)).json()


@pytest.mark.requirement("grants.widened")
def test_an_access_goes_on_for_longer_for_the_password_and_its_app_notices_nothing(person: Person) -> None:
    page = person.asked()
    tokens = person.tokens(person.answers(page, **{**shown_choices(page.text), "lasts": "1"}))
    sent, _held = connection(person)
    whole = {**sent, "account": boxes(page.text), "later_accounts": "on", "bookings": "on", "lasts": "30"}
    refused = person.browser.post("/account/narrow", data=whole)
    assert refused.status_code == 400
    assert '<option value="30" selected>' in refused.text
    longer = person.browser.post("/account/narrow", data={**whole, "current_password": "demo-demo-2024"})
    assert longer.status_code == 303
    clock = person.service.services.clock
    clock.offset += timedelta(days=29)
    try:
        assert "refresh_token" in person.browser.post("/oauth/token", data=refresh_of(person, tokens)).json()
    finally:
        clock.offset -= timedelta(days=29)


@pytest.mark.requirement("grants.widened")
def test_a_token_of_the_operator_can_only_end_earlier(person: Person) -> None:
    services = person.service.services
    user_id = users.get_by_name(services.everybody, "demo").id
    services.authorization.issue_token(user_id, frozenset(ALL.split()), timedelta(days=8))
    person.asked()
    sent, held = connection(person)
    assert held.client_id == BUILTIN
    form = {**sent, "account": boxes(person.asked().text), "later_accounts": "on", "bookings": "on"}
    password = {"current_password": "demo-demo-2024"}
    assert person.browser.post("/account/narrow", data={**form, **password, "lasts": "30"}).status_code == 400
    assert person.browser.post("/account/narrow", data={**form, "lasts": "7"}).status_code == 303


@pytest.mark.requirement("grants.widened")
@pytest.mark.parametrize(
    ("held", "sent", "left"),
    [
        (
            Terms(accounts=("hidden",), all_but=True),
            {"later_accounts": "on"},
            Terms(accounts=("hidden",), all_but=True),
        ),
        (Terms(accounts=("hidden",)), {}, Terms(accounts=("a", "hidden"))),
        (Terms(accounts=("hidden",), all_but=True), {}, Terms(accounts=("a",))),
        (Terms(accounts=("hidden",)), {"later_accounts": "on"}, Terms()),
    ],
)
def test_what_the_form_does_not_show_keeps_what_it_had(
    person: Person, held: Terms, sent: dict[str, str], left: Terms
) -> None:
    services = person.service.services
    shown = replace(accounts.of_user(services.everybody, users.get_by_name(services.everybody, "demo").id)[0], id="a")
    chosen = sent_choices({**sent, "bookings": "on"}, frozenset({"a"}))
    assert chosen.terms([shown], held=held) == left
    assert choices_of(left, [shown]).accounts == {"a"}


@pytest.mark.requirement("grants.widened")
@pytest.mark.parametrize(
    ("wanted", "held", "expected"),
    [
        (Terms(), Terms(), True),
        (Terms(accounts=("a",)), Terms(), True),
        (Terms(), Terms(accounts=("a", "b")), False),  # later ones
        (Terms(accounts=("a", "b")), Terms(accounts=("a",)), False),
        (Terms(), Terms(accounts=("gone",), all_but=True), True),
        (Terms(), Terms(accounts=("a",), all_but=True), False),
        (Terms(accounts=("a",), all_but=True), Terms(accounts=("b",)), False),
        (Terms(), Terms(figures_only=True), False),
        (Terms(full_numbers=True), Terms(), False),
    ],
)
def test_what_is_more_than_before(wanted: Terms, held: Terms, expected: bool) -> None:
    assert is_within(wanted, held, {"a", "b"}) is expected


@pytest.mark.requirement("grants.narrowed")
@pytest.mark.parametrize(
    ("held", "wanted", "left"),
    [
        (Terms(), Terms(accounts=("a",)), Terms(accounts=("a",))),
        (Terms(accounts=("a",)), Terms(), Terms(accounts=("a",))),
        (Terms(accounts=("a", "b")), Terms(accounts=("b", "c")), Terms(accounts=("b",))),
        (Terms(accounts=("a",), all_but=True), Terms(accounts=("a", "b")), Terms(accounts=("b",))),
        (Terms(accounts=("a", "b")), Terms(accounts=("a",), all_but=True), Terms(accounts=("b",))),
        (
            Terms(accounts=("a",), all_but=True),
            Terms(accounts=("b",), all_but=True),
            Terms(accounts=("a", "b"), all_but=True),
        ),
        (
            Terms(figures_only=True, full_numbers=True),
            Terms(full_numbers=True),
            Terms(figures_only=True, full_numbers=True),
        ),
        (Terms(full_numbers=True), Terms(), Terms()),
    ],
)
def test_what_is_left_is_what_both_cover(held: Terms, wanted: Terms, left: Terms) -> None:
    assert narrower(held, wanted) == left


@pytest.mark.requirement("grants.consent")
def test_a_form_says_how_long_or_is_refused() -> None:
    def lifetime(**form: str) -> timedelta:
        return sent_choices(form, frozenset()).lifetime([365, 30])

    assert lifetime(lasts="30") == timedelta(days=30)
    for form in ({}, {"lasts": "0"}, {"lasts": "7"}, {"lasts": AS_BEFORE}):
        with pytest.raises(Mistake):
            lifetime(**form)
