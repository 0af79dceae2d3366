"""Which password opens /simplefin and nothing else, how often, and what strangers and guesses hear."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from auth.people.password_hashing import Busy
from auth.scopes import SCOPES
from handlers.simplefin import endpoint
from handlers.web.steps import rate_limit
from storage import users
from storage.database import StoreFull, StoreUnavailable
from tests.explanations.conftest import Holder, Service, body_of
from tests.simplefin.conftest import (
    GIRO,
    App,
    app_at,
    balance,
    bare,
    booked,
    claim_path,
    connected,
    served,
    setup_token,
)

pytestmark = pytest.mark.requirement("simplefin.admission")

NOT_OPEN = "This access is not open (any more). Its owner can make a new setup token"


def test_all_that_opens_nothing_hears_one_sentence(service: Service, holder: Holder) -> None:
    app, http = connected(service, holder.user.id), bare(service, "192.0.2.2")
    user_part, password = app.auth
    headers = [
        {},
        {"Authorization": "Basic"},
        {"Authorization": "Basic Og=="},
        {"Authorization": "Basic =="},
        {"Authorization": "Basic /////w=="},
        {"Authorization": f"Bearer {password}"},
    ]
    answers = [http.get("/simplefin/accounts", headers=each) for each in headers]
    pairs = [(user_part, "wrong"), ("A" * 16, password), ("x", "y"), (user_part.lower(), password), (user_part, "")]
    answers += [http.get("/simplefin/accounts", auth=pair) for pair in pairs]
    assert {answer.status_code for answer in answers} == {403}
    assert {answer.text for answer in answers} == {answers[0].text}
    body = answers[0].json()
    assert body["errors"] == [NOT_OPEN]
    assert body["errlist"] == [{"code": "gen.auth", "msg": NOT_OPEN}]
    assert body["accounts"] == body["connections"] == []
    assert "www-authenticate" not in answers[0].headers


def test_what_opens_one_interface_opens_no_other(service: Service, holder: Holder) -> None:
    app = connected(service, holder.user.id)
    assert app.http.get("/api/v1/accounts", auth=app.auth).status_code == 401
    assert app.http.post("/mcp", json={}, auth=app.auth).status_code == 401
    for resource in ("data", "mcp"):
        token = service.services.authorization.issue_token(
            holder.user.id, frozenset(SCOPES), timedelta(hours=1), resource=resource
        )
        headers = {"Authorization": f"Bearer {token}"}
        assert app.http.get("/simplefin/accounts", headers=headers).status_code == 403
    assert app.http.get("/api/v1/accounts", headers={"Authorization": f"Bearer {app.auth[1]}"}).status_code == 401


def test_an_access_ends_at_once_for_revocation_and_in_time_for_its_end(service: Service, holder: Holder) -> None:
    grants = service.services.authorization.grants
    app, lasting = connected(service, holder.user.id, days=1), connected(service, holder.user.id)
    assert app.get().status_code == 200
    clock = service.services.clock
    before = clock.offset
    clock.offset = before + timedelta(days=1, seconds=1)
    assert app.get().status_code == 403
    clock.offset = before
    for each in grants.connected_apps(holder.user.id):
        grants.revoke(each.grant.id, because="revoked by the user")
    assert lasting.get().status_code == 403
    assert lasting.get().json()["errors"] == [NOT_OPEN]


def test_a_removed_user_has_no_app_and_no_trace_of_it(service: Service) -> None:
    removed = service.newcomer()
    app = connected(service, removed.user.id)
    assert app.get().status_code == 200
    service.services.authorization.remove_user(removed.user.id)
    users.remove(service.services.everybody, removed.user.id)
    assert app.get().status_code == 403
    names = [each.name for each in service.services.authorization.clients.all() if each.registered_by == "simplefin"]
    held = service.services.everybody.rows("SELECT count(*) AS n FROM simplefin_access")[0]["n"]
    assert held == len(names)


def test_without_a_subscription_the_protocol_has_a_status_of_its_own(service: Service, holder: Holder) -> None:
    app, everybody = connected(service, holder.user.id), service.services.everybody
    assert app.get().status_code == 200
    users.set_subscription(everybody, holder.user.id, active=False)
    service.services.authorization.access.forget()
    answer = app.get()
    assert answer.status_code == 402
    assert answer.json()["errlist"][0]["code"] == "gen."
    assert answer.json()["errors"] == ["Active subscription required. Subscribe at http://127.0.0.1:8000/billing"]


def test_guesses_are_slowed_down_where_they_come_from_and_stop_nobody_else(service: Service, holder: Holder) -> None:
    app, guesser = connected(service, holder.user.id), bare(service, "198.51.100.7")
    user_part = app.auth[0]
    answers = [guesser.get("/simplefin/accounts", auth=(user_part, f"guess{n}")) for n in range(8)]
    assert [answer.status_code for answer in answers] == [403] * 5 + [429] * 3
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 16
    assert answers[-1].json()["errlist"][0]["code"] == "gen.api"
    assert app.get().status_code == 200
    assert bare(service, "198.51.100.8").get("/simplefin/accounts", auth=(user_part, "x")).status_code == 403


def test_two_users_at_once_see_each_their_own(service: Service) -> None:
    held = [service.newcomer() for _ in range(2)]
    for number, each in enumerate(held):
        each.bring(GIRO, [booked("2026-11-01", f"-{number}.50", f"Of {number}")], balance(f"{number}.00"))
    apps = [connected(service, each.user.id) for each in held]

    def seen(number: int) -> tuple[int, list[str]]:
        return number % 2, [row["description"] for row in apps[number % 2].rows()]

    with ThreadPoolExecutor(4) as pool:
        assert all(rows == [f"Of {number}"] for number, rows in pool.map(seen, range(40)))


def test_scripts_of_other_origins_may_ask(service: Service, holder: Holder) -> None:
    app = connected(service, holder.user.id)
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    asked["Access-Control-Request-Headers"] = "authorization"
    preflight = app.http.options("/simplefin/accounts", headers=asked)
    assert preflight.status_code == 204
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    answer = app.http.get("/simplefin/accounts", headers={"Origin": "https://app.example"}, auth=app.auth)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"


def test_what_is_there_for_everybody(service: Service) -> None:
    http = bare(service)
    assert http.get("/simplefin/info").json() == {"versions": ["1.0", "2.0"]}
    create = http.get("/simplefin/create")
    assert (create.status_code, create.headers["location"]) == (303, "http://127.0.0.1:8000/account/simplefin")
    for path in ("/simplefin", "/simplefin/", "/simplefin/accounts/"):
        assert http.get(path).status_code == 404
    assert http.post("/simplefin/accounts").status_code == 405


def test_each_budget_is_of_its_own(limited: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    few = rate_limit.Rate(requests=3, seconds=60)
    for name in ("OF_GRANT", "OF_REFUSED", "OF_CLAIMS"):
        monkeypatch.setattr(endpoint, name, few)
    user = limited.newcomer().user.id
    app, other = connected(limited, user), connected(limited, user)
    assert [app.get().status_code for _ in range(4)] == [200, 200, 200, 429]
    assert other.get().status_code == 200
    stranger = bare(limited, "203.0.113.5")
    assert [stranger.get("/simplefin/accounts").status_code for _ in range(4)] == [403, 403, 403, 429]
    assert [stranger.post("/simplefin/claim/none").status_code for _ in range(4)] == [403, 403, 403, 429]
    assert bare(limited, "203.0.113.6").get("/simplefin/accounts").status_code == 403
    limit = body_of(limited.client(user), "/accounts")
    assert limit == {"accounts": []}


@pytest.mark.long
def test_an_app_may_walk_from_1970_on(limited: Service) -> None:
    holder = limited.newcomer()
    holder.bring(GIRO, [booked("2026-11-01", "-1.00")], balance("1.00"))
    app = connected(limited, holder.user.id)
    step, now = 44 * 86_400, 1_795_176_000
    rows, start = 0, 0
    while start < now:
        rows += len(app.rows(f"start-date={start}&end-date={start + step}"))
        start += step
    assert rows == 1


def test_what_apps_do_is_in_the_record(service: Service, holder: Holder) -> None:
    token = setup_token(service, holder.user.id, name="Budget")
    http = bare(service)
    app = app_at(http, http.post(claim_path(token)).text)
    http.post(claim_path(token))
    app.get()
    app.get("start-date=x")
    record = service.services.authorization.record
    entries = [each for piece in record.hours(holder.user.id) for each in piece]
    seen = {each.operation: (each.client_name, each.calls, each.refusals) for each in entries}
    assert seen == {
        "issueToken": ("bankdata token", 1, 0),
        "giveConsent": ("Budget", 1, 0),
        "claimSimpleFin": ("Budget", 2, 1),
        "getSimpleFinAccounts": ("Budget", 2, 1),
    }


@pytest.mark.engine("duckdb")
def test_no_secret_is_in_log_or_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service = served(tmp_path / "data")
    user = service.newcomer().user.id
    token, http = setup_token(service, user), bare(service)
    app = app_at(http, http.post(claim_path(token)).text)
    app.get("start-date=12345678901")
    app.get("start-date=secretquery")
    http.post(claim_path(token))
    http.get("/simplefin/accounts", auth=(app.auth[0], "guessed-password"))
    code = claim_path(token).rpartition("/")[2]
    logged = "\n".join(each.getMessage() for each in caplog.records if not each.name.startswith("httpx"))
    assert "setup token exchanged" in logged
    secrets = [code, token, app.auth[1], "guessed-password", "secretquery", "12345678901"]
    assert [each for each in secrets if each in logged] == []
    service.services.close()
    stored = b"".join(file.read_bytes() for file in sorted((tmp_path / "data").rglob("*")) if file.is_file())
    assert [each for each in secrets if each.encode() in stored] == []


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    service = served(tmp_path / "data", SIMPLEFIN_SERVER="off")
    http = bare(service)
    for path in ("/simplefin/info", "/simplefin/create", "/simplefin/accounts"):
        assert http.get(path).status_code == 404
    assert http.post("/simplefin/claim/x").status_code == http.post("/account/simplefin").status_code == 404
    service.services.close()


@pytest.mark.parametrize(
    ("failure", "status"),
    [(StoreUnavailable(), 503), (StoreFull(), 503), (Busy(), 503), (RuntimeError("a secret"), 500)],
)
def test_a_failure_here_is_told_as_one(
    service: Service, holder: Holder, monkeypatch: pytest.MonkeyPatch, failure: Exception, status: int
) -> None:
    app = connected(service, holder.user.id)

    def fails(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(service.services.reader, "open", fails)
    answer = app.get()
    assert answer.status_code == status
    assert answer.json()["errlist"][0]["code"] == "gen.api"
    assert "secret" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503)


def test_who_is_gone_needs_no_answer() -> None:
    from starlette.requests import ClientDisconnect

    assert endpoint.failure_answer(ClientDisconnect()) is None


def test_a_claim_is_a_post(service: Service, holder: Holder) -> None:
    http, path = bare(service), claim_path(setup_token(service, holder.user.id))
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert http.request(method, path).status_code == 405
    answer = http.post(path, headers={"Authorization": "Basic Og=="}, data={"any": "form"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert isinstance(app_at(http, answer.text), App)
    again = http.post(path)
    assert (again.status_code, again.text[:9], again.headers["content-type"]) == (
        403,
        "Forbidden",
        "text/plain; charset=utf-8",
    )
    assert http.post("/simplefin/claim/unknown").text == again.text
