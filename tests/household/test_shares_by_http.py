"""/shares: the page gives, accepts, changes and ends what an app can neither see nor do."""

from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from auth.principal import PAGE
from storage.database import UserBusy
from storage.oauth import browsers
from storage.oauth.browsers import BrowserSession
from storage.undo_and_merge import handed_over
from storage.users import User
from tests.household.conftest import Served
from tests.imports.test_shares import GIRO, SPAR, booking


def signed_in(home: Served, user: User, *, ago: timedelta = timedelta()) -> TestClient:
    """The page of somebody who has signed in so long ago."""
    now, everybody = home.services.clock.now_in_utc(), home.services.everybody
    row = BrowserSession(id_hash=f"{user.id}{ago}", user_id=user.id, created_at=now - ago, seen_at=now)
    everybody.atomically(lambda session: browsers.add(session, row))
    page = home.asking(user.id, PAGE)
    everybody.execute(
        "UPDATE oauth_grants SET session_hash = $1 WHERE user_id = $2 AND client_id = $3 AND session_hash IS NULL",
        *(row.id_hash, user.id, PAGE),
    )
    home.services.authorization.access.forget()
    return page


@pytest.fixture
def two(served: Served) -> Served:
    served.bring(served.eva, GIRO, booking("2026-11-02", "-5.00", "a"))
    served.bring(served.eva, SPAR, booking("2026-11-02", "-6.00", "b"))
    return served


def ibans(page: TestClient) -> set[str]:
    return {each["iban"] for each in page.get("/accounts").json()["accounts"]}


def given(page: TestClient) -> Any:
    return page.get("/shares").json()["given"]


@pytest.mark.requirement("household.contract")
def test_a_share_is_offered_accepted_changed_and_ended_by_the_contract(two: Served) -> None:
    eva, ben = signed_in(two, two.eva), signed_in(two, two.ben)
    giro, spar = two.account(two.eva, GIRO.iban), two.account(two.eva, SPAR.iban)
    offered = eva.post("/shares", json={"person": "Ben", "accountIds": [giro]})
    assert offered.status_code == 201
    offer = offered.json()
    assert (offer["person"], offer["accountIds"], offer["acceptedAt"], offer["endsAt"]) == ("Ben", [giro], None, None)
    assert offer["openUntil"] is not None
    assert eva.get("/shares").json() == {"given": [offer], "received": []}
    (got,) = ben.get("/shares").json()["received"]
    assert (got["person"], got["accountIds"]) == ("eva", [])
    assert ben.post(f"/shares/{offer['id']}/acceptance").json()["acceptedAt"] is not None
    assert ben.post(f"/shares/{offer['id']}/acceptance").status_code == 404
    two.settle()
    assert ibans(ben) == {GIRO.iban}
    assert ben.get("/shares").json()["received"][0]["accountIds"] == [two.account(two.ben, GIRO.iban)]
    changed = eva.patch(f"/shares/{offer['id']}", json={"accountIds": [giro, spar], "endsAt": "2030-01-01T00:00:00Z"})
    assert (changed.status_code, changed.json()["endsAt"]) == (200, "2030-01-01T00:00:00.000Z")
    two.settle()
    assert ibans(ben) == {GIRO.iban, SPAR.iban}
    assert eva.patch(f"/shares/{offer['id']}", json={"accountIds": [spar]}).json()["accountIds"] == sorted([spar])
    assert ibans(ben) == {SPAR.iban}  # with the answer
    assert ben.delete(f"/shares/{offer['id']}").status_code == 204
    assert (ibans(ben), given(eva)) == (set(), [])


@pytest.mark.requirement("household.contract")
def test_to_share_more_needs_a_sign_in_of_the_last_five_minutes_to_share_less_none(two: Served) -> None:
    lately, before = signed_in(two, two.eva), signed_in(two, two.eva, ago=timedelta(minutes=5))
    giro, spar = (two.account(two.eva, each.iban) for each in (GIRO, SPAR))
    assert before.post("/shares", json={"person": "ben"}).status_code == 403
    id_ = lately.post("/shares", json={"person": "ben", "accountIds": [giro], "endsAt": "2030-01-01T00:00Z"}).json()[
        "id"
    ]
    for wider in ({"accountIds": [giro, spar]}, {"accountIds": None}, {"allBut": True}, {"endsAt": None}):
        assert before.patch(f"/shares/{id_}", json=wider).status_code == 403
    (unchanged,) = given(before)
    assert (unchanged["accountIds"], unchanged["allBut"], unchanged["endsAt"]) == (
        [giro], False, "2030-01-01T00:00:00.000Z",
    )  # fmt: skip
    assert before.patch(f"/shares/{id_}", json={"endsAt": "2029-01-01T00:00Z"}).status_code == 200
    two.services.everybody.execute("UPDATE oauth_shares SET life = 'an earlier one', accepted_at = offered_at")
    assert before.patch(f"/shares/{id_}", json={"isResting": False}).status_code == 403
    assert lately.patch(f"/shares/{id_}", json={"isResting": False}).json()["isResting"] is False
    assert before.delete(f"/shares/{id_}").status_code == 204


@pytest.mark.requirement("household.contract")
def test_no_app_opens_shares_whatever_its_grant(two: Served) -> None:
    made = two.share()
    for app in (two.bens_app, two.asking(two.eva.id)):
        sent = [
            app.get("/shares"),
            app.post("/shares", json={"person": "ben"}),
            app.patch(f"/shares/{made.id}", json={}),
            app.delete(f"/shares/{made.id}"),
            app.post(f"/shares/{made.id}/acceptance"),
        ]
        assert {each.status_code for each in sent} == {403}
        assert {each.json()["error"] for each in sent} == {
            "Shares are given and left on this service's own page, not by an app"
        }


@pytest.mark.requirement("household.contract")
def test_nobody_learns_who_is_here_nor_what_others_share(two: Served) -> None:
    eva, ben = signed_in(two, two.eva), signed_in(two, two.ben)
    there, nowhere = (eva.post("/shares", json={"person": name}).json() for name in ("ben", "nobody"))
    own = ("id", "person", "offeredAt", "openUntil")
    assert {k: v for k, v in there.items() if k not in own} == {k: v for k, v in nowhere.items() if k not in own}
    for id_ in (there["id"], nowhere["id"], "shr_0"):
        others = ben.patch(f"/shares/{id_}", json={"allBut": True})
        assert (others.status_code, others.json()) == (404, {"error": "Share not found"})
    for id_ in (nowhere["id"], "shr_0"):
        assert ben.delete(f"/shares/{id_}").status_code == 404
        assert ben.post(f"/shares/{id_}/acceptance").status_code == 404
    assert eva.post(f"/shares/{there['id']}/acceptance").status_code == 404


@pytest.mark.requirement("household.contract")
def test_what_cannot_be_offered_is_said(two: Served) -> None:
    eva = signed_in(two, two.eva)
    for body, status, begins in (
        ({"person": "ben", "accountIds": []}, 400, "accountIds: shares nothing"),
        ({"person": "ben", "accountIds": ["acc_other"]}, 400, "accountIds: contains an id"),
        ({"person": "ben", "endsAt": "2020-01-01T00:00:00Z"}, 400, "endsAt"),
        ({"person": "ben", "endsAt": "soon"}, 400, "endsAt: must be a moment with its time zone"),
        ({"person": "ben", "endsAt": "2030-01-01T00:00:00"}, 400, "endsAt: must be a moment with its time zone"),
        ({"person": "ben", "endsAt": "9999-12-31T23:59:59-01:00"}, 400, "endsAt: must be a moment with its time zone"),
        ({"person": "ben", "endsAt": "9999-12-31T23:59:59Z"}, 400, "endsAt: must be a moment to come, before 2200"),
        ({"person": " "}, 400, "person"),
        ({}, 400, ""),
        ({"person": "EVA"}, 409, "person: is yourself"),
    ):
        answer = eva.post("/shares", json=body)
        assert answer.status_code == status, (body, answer.text)
        assert answer.json()["error"].startswith(begins)
    assert eva.post("/shares", json={"person": "ben"}).status_code == 201
    assert eva.post("/shares", json={"person": "Ben"}).status_code == 409


@pytest.mark.requirement("household.contract")
def test_apps_see_what_is_shared_only_while_its_giver_lets_them(two: Served) -> None:
    eva, ben, before = signed_in(two, two.eva), signed_in(two, two.ben), signed_in(two, two.eva, ago=timedelta(hours=1))
    id_ = eva.post("/shares", json={"person": "ben"}).json()["id"]
    assert ben.post(f"/shares/{id_}/acceptance").json()["passOn"] is False
    two.settle()
    assert (ibans(ben), ibans(two.bens_app)) == ({GIRO.iban, SPAR.iban}, set())
    assert before.patch(f"/shares/{id_}", json={"passOn": True}).status_code == 403
    app = two.bens_app
    assert ibans(app) == set()
    assert eva.patch(f"/shares/{id_}", json={"passOn": True}).json()["passOn"] is True
    assert ibans(app) == {GIRO.iban, SPAR.iban}
    giro = two.account(two.ben, GIRO.iban)
    assert ben.post("/shares", json={"person": "carla", "accountIds": [giro]}).status_code == 400
    assert before.patch(f"/shares/{id_}", json={"passOn": False}).json()["passOn"] is False
    assert (ibans(app), ibans(ben)) == (set(), {GIRO.iban, SPAR.iban})
    assert eva.patch(f"/shares/{id_}", json={"passOn": True}).status_code == 200
    assert before.delete(f"/shares/{id_}").status_code == 204
    assert (ibans(app), ibans(ben)) == (set(), set())


@pytest.mark.requirement("household.soon")
def test_nobody_reads_on_after_an_end_though_an_import_keeps_the_rows(
    two: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = two.share()
    two.settle()
    eva, ben = signed_in(two, two.eva), signed_in(two, two.ben)
    assert ibans(ben) == {GIRO.iban, SPAR.iban}

    def busy(*_given: Any, **_named: Any) -> None:
        raise UserBusy("ben")

    monkeypatch.setattr(handed_over, "replace", busy)
    assert eva.delete(f"/shares/{made.id}").status_code == 204
    assert len(two.rows(two.ben)) == 2
    assert (ibans(ben), ben.get("/transactions/search").json()["transactions"]) == (set(), [])


@pytest.mark.requirement("household.contract")
def test_what_others_share_cannot_be_shared_on(two: Served) -> None:
    two.share()
    two.settle()
    ben = signed_in(two, two.ben)
    shared = two.account(two.ben, GIRO.iban)
    assert ben.post("/shares", json={"person": "carla", "accountIds": [shared]}).status_code == 400


@pytest.mark.requirement("household.words")
def test_words_come_along_by_the_contract_and_whoever_says_something_says_only_that(two: Served) -> None:
    eva, ben = signed_in(two, two.eva), signed_in(two, two.ben)
    giro = two.account(two.eva, GIRO.iban)
    (hers,) = (each["id"] for each in eva.get(f"/transactions?accountIds={giro}").json()["transactions"])
    assert eva.patch(f"/transactions/{hers}/annotation", json={"note": "for the garden"}).status_code == 200
    two.share()
    two.settle()
    theirs = two.account(two.ben, GIRO.iban)
    (found,) = (each["id"] for each in ben.get(f"/transactions?accountIds={theirs}").json()["transactions"])
    assert ben.get(f"/transactions/{found}/annotation").json()["note"] is None
    (share,) = given(eva)
    assert share["withWords"] is False
    assert eva.patch(f"/shares/{share['id']}", json={"withWords": True}).json()["withWords"] is True
    two.settle()
    assert ben.get(f"/transactions/{found}/annotation").json()["note"] == "for the garden"
    assert ben.get("/shares").json()["received"][0]["withWords"] is True
    after = ben.patch(f"/transactions/{found}/annotation", json={"tags": ["ours"]}).json()
    assert (after["note"], after["tags"]) == (None, ["ours"])
    two.settle()
    assert ben.get(f"/transactions/{found}/annotation").json()["note"] is None
    assert eva.get(f"/transactions/{hers}/annotation").json()["note"] == "for the garden"
    late = signed_in(two, two.eva, ago=timedelta(minutes=6))
    assert late.patch(f"/shares/{share['id']}", json={"withWords": False}).status_code == 200
    assert late.patch(f"/shares/{share['id']}", json={"withWords": True}).status_code == 403
