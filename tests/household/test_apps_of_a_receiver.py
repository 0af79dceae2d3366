"""An app of somebody with whom an account is shared: it changes what is theirs as before, and learns nothing."""

import json
import re
from typing import Any

import pytest

from analytics.records import AccountRecord, TransactionRecord
from auth.principal import PAGE, Principal
from auth.scopes import ALL_SCOPES
from auth.tokens.access_check import principal_of
from handlers.calendar.endpoint import due_payments
from handlers.operations.events import event_shapes
from handlers.web.app import CONTRACT_FILE
from storage.events import outbox
from storage.oauth import grants
from storage.oauth.grants import Standing
from tests.household.conftest import Served, answers
from tests.imports.test_shares import GIRO, SPAR, booking, closing

OWN = AccountRecord(stable_key="own", currency="EUR", name="Ben's own", iban="DE02120300000000202051")
OF_FILES = {"content-type": "application/octet-stream"}
NOT_ASKED = {"/shares", "/events", "/imports/{id}", "/sync/{syncId}", "/webhooks/{id}", "/webhooks/{id}/deliveries"}
OF_THE_PAGE = ("settings", "targets", "targets/{id}/deliveries", "push-key")
NOT_ASKED |= {f"/notices/{each}" for each in OF_THE_PAGE}
ONLY_EVAS = ("Canary", "eva", "4711.11", GIRO.iban or "", SPAR.iban or "", "Giro (", "Spar (")


def own_bookings() -> list[TransactionRecord]:
    return [
        booking(f"2026-{month:02}-05", "-12.99", "stream", counterpart_name="Netflix", provider_id=f"n{month}")
        for month in range(6, 12)
    ] + [
        booking("2026-11-06", "-30.00", "food", counterpart_name="REWE", provider_id="r1"),
        booking("2026-11-07", "2000.00", "pay", counterpart_name="Work GmbH", provider_id="w1"),
    ]


def evas_bookings() -> list[TransactionRecord]:
    return [
        booking(f"2026-{month:02}-09", "-4711.11", "secret", counterpart_name="Canary Club", provider_id=f"c{month}")
        for month in range(6, 12)
    ] + [
        booking("2026-11-06", "-31.00", "food Canary", counterpart_name="REWE", provider_id="e1"),
        booking("2026-11-05", "-12.99", "Canary stream", counterpart_name="Netflix", provider_id="e2"),
    ]


def standing_of(home: Served) -> Standing:
    """The standing of an app to which Ben has given everything."""
    everybody = home.services.everybody
    made = home.services.authorization.grants
    grant = everybody.atomically(lambda s: made.add(s, user_id=home.ben.id, client_id="app", scope="a"))
    found = grants.standing(everybody, grant.id, home.ben.id, grants.held_by_all(everybody))
    assert found is not None
    return found


@pytest.fixture
def shared(served: Served) -> Served:
    """Ben has an account with words of his own; Eva shares two of hers with him."""
    home = served
    home.bring(home.ben, OWN, *own_bookings(), closing("500"))
    app = home.bens_app
    food = next(each for each in app.get("/transactions/search?search=food").json()["transactions"])
    assert app.patch(f"/transactions/{food['id']}/annotation", json={"note": "n", "tags": ["mine"]}).status_code == 200
    assert app.put("/targets", json={"category": "GROCERIES", "amount": 100, "period": "month", "from": "2026-11"})
    home.bring(home.eva, GIRO, *evas_bookings(), closing("89"))
    home.bring(home.eva, SPAR, booking("2026-11-04", "7.00", "Canary"), closing("7"))
    return home


def words_of_ben_about_it(home: Served) -> None:
    """On his page, Ben says something of what Eva shares."""
    page = home.bens_page
    for each in page.get("/transactions/search?search=canary&perPage=100").json()["transactions"]:
        said = {"note": "Canary note", "tags": ["canary"], "category": "HEALTH"}
        assert page.patch(f"/transactions/{each['id']}/annotation", json=said).status_code == 200
    giro = home.account(home.ben, GIRO.iban)
    club = page.get("/transactions/search?search=club").json()["transactions"][0]["id"]
    assert page.post("/corrections", json={"transactionId": club, "category": "HEALTH"}).status_code == 200
    assert page.patch(f"/accounts/{giro}", json={"name": "Canary account"}).status_code == 200


@pytest.mark.requirement("household.apps")
def test_every_operation_answers_as_without_the_share(shared: Served) -> None:
    before = answers(shared.bens_app)
    shared.share()
    shared.settle()
    words_of_ben_about_it(shared)
    after = answers(shared.bens_app)
    assert {name: after[name] for name in after if after[name] != before.get(name)} == {}
    text = json.dumps(after, ensure_ascii=False)
    assert [each for each in ONLY_EVAS if re.search(rf"(?<!\w){re.escape(each)}", text)] == []  # not of redevance
    assert "Canary" in json.dumps(answers(shared.bens_page))
    days = shared.services.clock.today()
    assert "Canary" not in repr(due_payments(shared.services, shared.ben.id, days))


@pytest.mark.requirement("household.apps")
def test_what_the_receiver_said_of_a_shared_account_leaves_no_account_behind(shared: Served) -> None:
    before = answers(shared.bens_page)
    made = shared.share()
    shared.settle()
    giro, page = shared.account(shared.ben, GIRO.iban), shared.bens_page
    day = shared.services.clock.today().isoformat()
    added = {"name": "School", "amount": 45, "frequency": "monthly", "nextExpected": day, "accountId": giro}
    for path, said in (
        (f"/accounts/{giro}/balance", {"date": "2026-11-18", "amount": 5}),
        ("/subscriptions/added", added),
    ):
        assert page.post(path, json=said).is_success, path
    assert page.patch(f"/accounts/{giro}", json={"creditLine": 7}).is_success
    assert shared.services.authorization.shares.end(shared.eva, made.id)
    shared.settle()
    after = answers(shared.bens_page)
    paths = ("/accounts", "/accounts/hidden", "/balances", "/forecast?days=60", "/imports", "/integrity")
    assert {path: after[path] for path in paths} == {path: before[path] for path in paths}
    assert [path for path in after if path not in before] == []


@pytest.mark.requirement("household.apps")
def test_every_reading_operation_is_among_those_asked(shared: Served) -> None:
    contract = json.loads(CONTRACT_FILE.read_bytes())["paths"]
    asked = [path.split("?")[0].strip("/").split("/") for path in answers(shared.bens_app)]

    def is_asked(template: str) -> bool:
        parts = template.strip("/").split("/")
        return any(
            len(parts) == len(each) and all(a == b or a[0] == "{" for a, b in zip(parts, each, strict=True))
            for each in asked
        )

    missing = {path for path, of in contract.items() if "get" in of and not is_asked(path)}
    assert missing == NOT_ASKED


@pytest.mark.requirement("household.apps")
def test_what_an_app_changes_is_counted_as_without_the_share(shared: Served) -> None:
    changes: dict[str, tuple[str, Any]] = {
        "/rules?dryRun=true&include=transactions": (
            "post",
            {"field": "counterpartName", "operator": "contains", "value": "e", "category": "SHOPPING"},
        ),
        "/corrections/batch?dryRun=true": (
            "post",
            {"filter": {"search": "food"}, "category": "SHOPPING", "expected": 0},
        ),
    }
    food = shared.bens_app.get("/transactions/search?search=food").json()["transactions"][0]["id"]
    changes["/corrections?dryRun=true&include=transactions"] = ("post", {"transactionId": food, "category": "HEALTH"})

    def outcome() -> dict[str, Any]:
        app = shared.bens_app
        said = {path: app.request(method, path, json=body) for path, (method, body) in changes.items()}
        assert {each.status_code for each in said.values()} <= {200, 201}, {k: v.text for k, v in said.items()}
        return {path: {k: v for k, v in each.json().items() if k != "id"} for path, each in said.items()}

    before = outcome()
    shared.share()
    shared.settle()
    assert outcome() == before


@pytest.mark.requirement("household.apps")
def test_rules_and_imports_of_an_app_go_on_when_something_is_shared(shared: Served) -> None:
    shared.share()
    shared.settle()
    app = shared.bens_app
    rule = {"field": "counterpartName", "operator": "contains", "value": "Canary", "category": "HEALTH"}
    made = app.post("/rules", json=rule)
    assert (made.status_code, made.json()["changed"]) == (200, 0)
    assert app.post("/categories", json={"name": "Trips", "category": "ENTERTAINMENT"}).status_code in (200, 201)
    assert [each["name"] for each in app.get("/categories").json()["own"]] == ["Trips"]
    page = shared.bens_page.get("/transactions/search?search=club").json()["transactions"]
    assert {each["category"] for each in page} == {"HEALTH"}  # the rule is Ben's, and holds for all that he sees


@pytest.mark.requirement("household.apps")
def test_a_shared_account_does_not_exist_for_operations_on_accounts(shared: Served) -> None:
    shared.share()
    shared.settle()
    app, giro, own = shared.bens_app, shared.account(shared.ben, GIRO.iban), shared.account(shared.ben, OWN.iban)
    assert app.patch(f"/accounts/{giro}", json={"isHidden": True}).status_code == 404
    assert app.delete(f"/accounts/{giro}?name=x").status_code == 404
    assert app.post(f"/accounts/{giro}/merge", json={"into": own}).status_code == 404
    assert app.post(f"/accounts/{own}/merge", json={"into": giro}).status_code == 404
    payment = {"accountId": giro, "name": "Gym", "amount": 5, "frequency": "monthly", "nextExpected": "2026-12-01"}
    assert app.post("/subscriptions/added", json=payment).status_code == 400
    club = shared.bens_page.get(f"/subscriptions/details?status=all&accountIds={giro}").json()["subscriptions"]
    assert club
    for each in club:
        said = app.post(f"/subscriptions/{each['id']}/confirmation", json={"confirmation": "confirmed"})
        assert said.status_code == 404
    assert app.post("/sync", json={"accountIds": [giro]}).status_code == 404
    content = b'"Datum";"Betrag"\n'
    said = app.post(f"/imports?filename=x.csv&accountId={giro}", content=content, headers=OF_FILES)
    assert said.status_code == 400


@pytest.mark.requirement("household.contract")
def test_the_page_is_told_that_a_shared_account_is_left_and_not_deleted(shared: Served) -> None:
    shared.share()
    shared.settle()
    page, giro = shared.bens_page, shared.account(shared.ben, GIRO.iban)
    (name,) = (each["accountName"] for each in page.get("/accounts").json()["accounts"] if each["id"] == giro)
    refused = page.delete(f"/accounts/{giro}", params={"name": name})
    assert refused.status_code == 409
    assert "Leave the share" in refused.json()["error"]
    assert shared.account(shared.ben, GIRO.iban) == giro


@pytest.mark.requirement("household.apps")
def test_no_event_tells_an_app_of_a_share_neither_while_it_stands_nor_after_it(shared: Served) -> None:
    services, ben = shared.services, shared.ben
    feeds = ("/transactions/changes", "/accounts/changes")
    cursors = {path: shared.bens_app.get(path).json()["nextCursor"] for path in feeds}
    made = shared.share()
    shared.settle()
    shared.bring(shared.eva, GIRO, booking("2026-11-09", "-7.00", "Canary", provider_id="late"), closing("1"))
    shared.settle()
    everything = standing_of(shared)
    whole = principal_of(everything, client_id="app", scopes=frozenset(ALL_SCOPES), grant_id="g")
    of_page = principal_of(everything, client_id=PAGE, scopes=frozenset(ALL_SCOPES), grant_id="g")
    giro = shared.account(ben, GIRO.iban)

    def said(caller: Principal) -> str:
        told = outbox.after(services.of(ben.id), ben.id, 0, limit=1000)
        return repr([data for each in told if (data := event_shapes.data_of(services.of(ben.id), caller, each))])

    assert giro in said(of_page)
    assert giro not in said(whole)
    before = said(whole)
    assert services.authorization.shares.end(shared.eva, made.id)
    shared.settle()
    whole = principal_of(standing_of(shared), client_id="app", scopes=frozenset(ALL_SCOPES), grant_id="g")
    assert said(whole) == before
    for path, cursor in cursors.items():
        news = shared.bens_app.get(path, params={"cursor": cursor}).json()
        assert [news["added"], news["modified"], news["removed"]] == [[], [], []]


@pytest.mark.requirement("household.apps")
def test_the_receivers_open_page_hears_that_a_share_has_ended_and_nothing_of_what_it_was(shared: Served) -> None:
    services, ben, made = shared.services, shared.ben, shared.share()
    shared.settle()
    last = outbox.position(services.of(ben.id), ben.id)
    assert services.authorization.shares.end(shared.eva, made.id)
    for _ in range(2):  # its bookings go, then what is still told of them
        services.households.round()
        of_page = principal_of(standing_of(shared), client_id=PAGE, scopes=frozenset(ALL_SCOPES), grant_id="g")
        told = outbox.after(services.of(ben.id), ben.id, last, limit=10)
        assert [event_shapes.data_of(services.of(ben.id), of_page, each) for each in told] == [
            {"accountIds": [], "added": 0, "modified": 0, "removed": 0}
        ]


@pytest.mark.requirement("household.apps")
def test_a_joint_account_is_called_as_a_bank_of_the_receivers_own_calls_it(shared: Served) -> None:
    shared.share()
    shared.settle()
    ours = AccountRecord(stable_key="our key", currency="EUR", iban=GIRO.iban, name="Ours")
    shared.bring(shared.ben, ours, booking("2026-11-08", "-1.00", "own"))
    shared.settle()
    (joint,) = [each for each in shared.bens_app.get("/accounts").json()["accounts"] if each["iban"] == GIRO.iban]
    assert (joint["accountName"], joint["bankConnection"]["bankName"]) == ("Ours", "Bank")
    assert all("eva" not in each["bankName"] for each in shared.bens_app.get("/connections").json()["connections"])


@pytest.mark.requirement("household.apps")
def test_a_file_about_a_shared_account_tells_an_app_no_more_than_the_file(shared: Served) -> None:
    shared.share()
    shared.settle()
    exported = shared.bens_page.get(
        f"/transactions/export?format=camt053&accountIds={shared.account(shared.ben, GIRO.iban)}"
    )
    assert exported.status_code == 200

    def sent(app: Any, dry_run: str) -> Any:
        answer = app.post(f"/imports?filename=x.xml&dryRun={dry_run}", content=exported.content, headers=OF_FILES)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    of_page, of_app = sent(shared.bens_page, "true"), sent(shared.bens_app, "true")
    assert of_page["known"] == 8
    assert (of_app["new"], of_app["known"]) == (of_page["new"] + 8, 0)
    assert of_app["accountIds"] == []
    made = sent(shared.bens_page, "false")["importId"]
    app = shared.bens_app
    assert app.get("/imports").json() == {"imports": []}
    assert app.get(f"/imports/{made}").json()["accountIds"] == []
    assert app.delete(f"/imports/{made}").status_code == 404
    assert [each["importId"] for each in shared.bens_page.get("/imports").json()["imports"]] == [made]


@pytest.mark.requirement("household.shares")
def test_who_shares_accounts_of_several_banks_is_one_connection_on_the_page(served: Served) -> None:
    served.bring(served.eva, GIRO, booking("2026-11-02", "-5.00", "a"))
    served.bring(served.eva, SPAR, booking("2026-11-02", "-6.00", "b"), bank="Another")
    served.share()
    served.settle()
    (shown,) = served.bens_page.get("/connections").json()["connections"]
    assert (shown["bankName"], len(shown["accountIds"])) == ("eva", 2)


@pytest.mark.requirement("household.apps")
def test_what_the_receiver_answers_about_a_shared_account_no_app_answers_or_takes_back(served: Served) -> None:
    home = served
    home.bring(home.eva, GIRO, *evas_bookings())
    home.share()
    home.settle()
    home.bring(
        home.ben, AccountRecord(stable_key="1", currency="EUR", name="File"), *evas_bookings(), connector="files"
    )
    giro, file = home.account(home.ben, GIRO.iban), home.account(home.ben, None)
    app, page = home.bens_app, home.bens_page
    assert app.post(f"/accounts/{file}/merge", json={"into": giro}).status_code == 404
    assert page.post(f"/accounts/{file}/merge", json={"into": giro}).status_code == 200
    assert app.delete(f"/accounts/{file}/merge").status_code == 404
    assert [each["id"] for each in page.get("/accounts").json()["accounts"]] == [giro]
    assert page.delete(f"/accounts/{file}/merge").status_code == 200
