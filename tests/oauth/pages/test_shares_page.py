"""/account/shares: offered with the password, accepted, narrowed without it, ended by either; who is nobody learns
nothing."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from analytics.records import AccountRecord
from auth.secret_text import stored_hash
from storage import accounts, connections, users
from storage.oauth import shares
from tests.oauth.conftest import PASSWORD
from tests.oauth.pages.test_account import signed_in
from tests.oauth.pages.test_links import comes_in, deeds


def with_accounts(world: Any) -> list[str]:
    """Two accounts of Alice's, by id."""
    connection = connections.add(
        world.database, user_id=world.user.id, user_name="alice", connector="demo", bank_name="Bank", settings={},
        now=world.clock(),
    )  # fmt: skip
    for name in ("giro", "spar"):
        account = AccountRecord(stable_key=name, currency="EUR", name=name.title())
        with world.database.transaction() as session:
            accounts.bring(session, connection, account, account_id=f"acc_{name}", now=world.clock())
    return ["acc_giro", "acc_spar"]


def sent(world: Any, browser: Any, action: str = "", **typed: Any) -> Any:
    session = world.server.sessions.resume(browser.client.cookies["bds_session"])
    form = {"form_token": world.server.sessions.form_token(session, "shares"), **typed}
    return browser.client.post(f"/account/shares{action}", data=form)


def offered(world: Any, browser: Any, **more: Any) -> Any:
    typed = {"name": "bob", "account": ["acc_giro"], "lasts": "", "current_password": PASSWORD}
    return sent(world, browser, **{**typed, **more})


@pytest.mark.requirement("household.page")
def test_a_share_is_offered_accepted_narrowed_and_ended(fresh: Any) -> None:
    with_accounts(fresh)
    alice, bob = signed_in(fresh), signed_in(fresh, "bob")
    assert offered(fresh, alice).headers["location"] == "/account/shares?notice=share_offered"
    (share,) = fresh.server.shares.given_to(fresh.other.id)
    assert share.accounts == ("acc_giro",)
    assert '<strong class="name">alice</strong>' in bob.client.get("/account/shares").text
    assert "Giro" not in bob.client.get("/account/shares").text
    assert sent(fresh, bob, "/accept", share=share.id).headers["location"] == "/account/shares?notice=share_accepted"
    assert sent(fresh, bob, "/accept", share=share.id).headers["location"] == "/account/shares?notice=share_ended"
    page = alice.client.get("/account/shares?notice=share_changed").text
    assert "Sees what is ticked below" in page
    assert "It counts within a few seconds" in page
    more = {"share": share.id, "account": ["acc_giro", "acc_spar"], "lasts": "as before"}
    refused = sent(fresh, alice, "/change", **more, current_password="x")
    assert (refused.status_code, "The current password is wrong" in refused.text) == (400, True)
    assert sent(fresh, alice, "/change", **more, current_password=PASSWORD).status_code == 303
    to_apps = {"share": share.id, "account": ["acc_spar"], "lasts": "30", "pass_on": "on"}
    assert sent(fresh, alice, "/change", **to_apps, current_password="x").status_code == 400
    assert sent(fresh, alice, "/change", **to_apps, current_password=PASSWORD).status_code == 303
    assert "They let your apps see them, too." in bob.client.get("/account/shares").text
    less = {"share": share.id, "account": ["acc_spar"], "lasts": "30"}
    assert sent(fresh, alice, "/change", **less).status_code == 303
    assert "They let your apps see them, too." not in bob.client.get("/account/shares").text
    (share,) = fresh.server.shares.given_by(fresh.user.id)
    assert share.accounts == ("acc_spar",)
    assert share.ends_at == datetime(2026, 12, 20, 23, tzinfo=UTC), "the thirtieth day from today is included"
    longer = {**less, "lasts": ""}
    assert sent(fresh, alice, "/change", **longer, current_password="x").status_code == 400
    assert sent(fresh, bob, "/end", share=share.id).headers["location"] == "/account/shares?notice=share_ended"
    assert fresh.server.shares.given_by(fresh.user.id) == []
    assert sent(fresh, alice, "/change", **less).headers["location"] == "/account/shares?notice=share_ended"
    both = {"acceptShare", "widenShare", "narrowShare", "leaveShare"}
    assert both <= set(deeds(fresh, fresh.user.id)) & set(deeds(fresh, fresh.other.id))


@pytest.mark.requirement("household.page")
def test_whether_there_is_a_person_of_a_name_is_not_told(fresh: Any) -> None:
    with_accounts(fresh)
    alice = signed_in(fresh)
    answers = [offered(fresh, alice, name=name) for name in ("bob", "nobody")]
    assert {(each.status_code, each.headers["location"]) for each in answers} == {
        (303, "/account/shares?notice=share_offered")
    }
    page = alice.client.get("/account/shares").text
    assert page.count("If there is a person of this name, they can accept it within seven days") == 2
    assert "offerShare" not in deeds(fresh, fresh.other.id)


@pytest.mark.requirement("household.page")
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"account": []}, "Tick at least one account"),
        ({"name": " "}, "Type the user name"),
        ({"name": "Alice"}, "That is yourself"),
        ({"current_password": "x"}, "The current password is wrong"),
    ],
)
def test_what_cannot_be_offered_is_said(fresh: Any, typed: dict[str, Any], said: str) -> None:
    with_accounts(fresh)
    answer = offered(fresh, signed_in(fresh), **typed)
    assert (answer.status_code, said in answer.text) == (400, True)
    assert fresh.server.shares.given_by(fresh.user.id) == []


@pytest.mark.requirement("household.page")
def test_nothing_is_shared_that_is_not_the_givers_or_for_how_long_no_form_says(fresh: Any) -> None:
    with_accounts(fresh)
    alice, bob = signed_in(fresh), signed_in(fresh, "bob")
    assert offered(fresh, alice, lasts="4000").status_code == 400
    assert offered(fresh, bob, name="alice").status_code == 400
    assert offered(fresh, alice, name="bob").status_code == 303
    assert "share with this person already" in offered(fresh, alice).text
    (share,) = fresh.server.shares.given_by(fresh.user.id)
    assert sent(fresh, alice, "/change", share=share.id, account=[], lasts="").status_code == 400
    fresh.database.atomically(lambda session: shares.hold_back(session, share.id, ["acc_x"]))
    assert fresh.browser().client.post("/account/shares", data={"name": "bob"}).status_code == 400


@pytest.mark.requirement("household.page")
def test_a_share_that_rests_goes_on_when_its_giver_says_so(fresh: Any) -> None:
    with_accounts(fresh)
    alice, bob = signed_in(fresh), signed_in(fresh, "bob")
    offered(fresh, alice)
    (share,) = fresh.server.shares.given_by(fresh.user.id)
    sent(fresh, bob, "/accept", share=share.id)
    fresh.database.execute("UPDATE oauth_shares SET life = 'earlier'")
    assert "Does it go on?" in alice.client.get("/account/shares").text
    assert "Rests since this service was restored" in bob.client.get("/account/shares").text
    sent(fresh, bob, "/go-on", share=share.id)
    assert "Does it go on?" in alice.client.get("/account/shares").text
    assert sent(fresh, alice, "/go-on", share=share.id).headers["location"] == "/account/shares?notice=share_goes_on"
    assert "Does it go on?" not in alice.client.get("/account/shares").text
    assert "resumeShare" in deeds(fresh, fresh.other.id)


@pytest.mark.requirement("household.page")
def test_who_is_invited_with_an_offer_comes_in_accepts_it_and_nobody_else_can(fresh: Any) -> None:
    with_accounts(fresh)
    operator = signed_in(fresh, "bob")
    assert offered(fresh, operator, name="", invite="on").status_code == 400, "bob is no operator"
    users.set_operator(fresh.database, fresh.user.id, is_operator=True)
    alice = signed_in(fresh)
    assert offered(fresh, alice, name="", invite="on", current_password="x").status_code == 400
    assert fresh.server.links.invitations() == []
    shown = [offered(fresh, alice, name="", invite="on") for _ in range(2)]
    first, second = (re.findall(r"<code>(http[^<]*)</code>", page.text)[0] for page in shown)
    assert "can accept what you share" in shown[0].text
    assert alice.client.get("/account/shares").text.count("Whoever comes in by your invitation") == 2
    fresh.server.links.revoke(stored_hash(second.partition("#")[2]), fresh.user)
    assert alice.client.get("/account/shares").text.count("Whoever comes in by your invitation") == 1
    fresh.clock.forward(days=6)
    assert comes_in(fresh, first)[1].headers["location"] == "/account/shares"
    fresh.clock.forward(days=6)  # the offer counts from now on
    person = users.get_by_name(fresh.database, "carla")
    (share,) = fresh.server.shares.given_to(person.id)
    assert (share.giver_name, share.receiver_name, share.accounts) == ("alice", "carla", ("acc_giro",))
    assert fresh.server.shares.accept(person, share.id)
    assert {"getOffer", "acceptShare"} <= set(deeds(fresh, person.id))
    assert fresh.server.shares.given_by(fresh.user.id) == fresh.server.shares.given_to(person.id)
