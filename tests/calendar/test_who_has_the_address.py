"""Who reads a calendar: whoever has its address, until it ends, and nobody by guessing."""

import logging
import re
from pathlib import Path

import pytest

from handlers.calendar import endpoint
from handlers.web.steps import rate_limit
from storage import users
from storage.database import StoreError, StoreFull, StoreUnavailable
from tests.calendar.conftest import pays, subscribed
from tests.explanations.conftest import Holder, Service
from tests.simplefin.conftest import bare, served

pytestmark = pytest.mark.requirement("calendar.address")

NOT_FOUND = '{"error":"Not found"}'


def test_a_new_address_ends_the_one_before_and_a_revoked_one_is_as_unknown(service: Service, holder: Holder) -> None:
    links, http = service.services.authorization.calendar, bare(service)
    first, second = subscribed(service, holder.user.id), subscribed(service, holder.user.id)
    assert [http.get(path).status_code for path in (first, second)] == [404, 200]
    assert links.revoke(holder.user.id)
    assert not links.revoke(holder.user.id)
    unknown = f"/calendar/{'A' * 43}/payments.ics"
    short, long = second.replace("/payments", "x/payments"), second[:50] + "/payments.ics"
    answers = [http.get(path) for path in (first, second, unknown, short, long, "/calendar/%00/payments.ics")]
    assert {(answer.status_code, answer.text) for answer in answers} == {(404, NOT_FOUND)}
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}


def test_the_address_has_256_random_bits_and_the_store_a_hash(service: Service, holder: Holder) -> None:
    paths = {subscribed(service, holder.user.id) for _ in range(5)}
    assert len(paths) == 5
    assert all(re.fullmatch(r"/calendar/[A-Za-z0-9_-]{43}/payments\.ics", path) for path in paths)
    held = service.services.everybody.rows("SELECT * FROM calendar_links WHERE user_id = $1", holder.user.id)
    assert len(held) == 1
    assert re.fullmatch("[0-9a-f]{64}", held[0]["secret_hash"])


def test_what_has_not_changed_is_not_sent_again(service: Service, holder: Holder) -> None:
    path, http = subscribed(service, holder.user.id), bare(service)
    answer = http.get(path)
    etag = answer.headers["etag"]
    assert re.fullmatch('"[0-9a-f]{64}"', etag)
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (
        "text/calendar; charset=utf-8",
        "private",
    )
    assert "access-control-allow-origin" not in answer.headers
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = http.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert again.headers["cache-control"] == "private"
        assert "content-length" not in again.headers
    assert http.get(path, headers={"If-None-Match": '"other"'}).content == answer.content
    head = http.head(path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)
    pays(holder, "Streambox", *(f"2026-{month:02}-15" for month in range(6, 12)))
    changed = http.get(path, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


def test_the_address_opens_nothing_else_and_nothing_else_opens_it(service: Service, holder: Holder) -> None:
    path = subscribed(service, holder.user.id)
    secret = path.split("/")[2]
    http = bare(service)
    assert http.get("/api/v1/accounts", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert http.post(path).status_code == 405
    signed_in = holder.client.headers["authorization"]
    asked = http.get(f"/calendar/{holder.user.id}/payments.ics", headers={"Authorization": signed_in})
    assert asked.status_code == 404


def test_two_users_have_each_their_own(service: Service) -> None:
    held = [service.newcomer() for _ in range(2)]
    pays(held[0], "Streambox", *(f"2026-{month:02}-15" for month in range(6, 12)))
    told = [bare(service).get(subscribed(service, each.user.id)).text for each in held]
    assert ["Streambox" in text for text in told] == [True, False]


def test_a_removed_user_leaves_no_address(service: Service) -> None:
    removed = service.newcomer().user.id
    path = subscribed(service, removed)
    service.services.authorization.remove_user(removed)
    users.remove(service.services.everybody, removed)
    assert bare(service).get(path).status_code == 404
    assert service.services.everybody.rows("SELECT * FROM calendar_links WHERE user_id = $1", removed) == []


def test_without_a_subscription_the_calendar_waits(service: Service, holder: Holder) -> None:
    path, everybody = subscribed(service, holder.user.id), service.services.everybody
    users.set_subscription(everybody, holder.user.id, active=False)
    answer = bare(service).get(path)
    assert answer.status_code == 403
    assert answer.json() == {"error": "Active subscription required. Subscribe at http://127.0.0.1:8000/billing"}
    users.set_subscription(everybody, holder.user.id, active=True)
    assert bare(service).get(path).status_code == 200


def test_guesses_and_fetches_have_budgets_apart(limited: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    few = rate_limit.Rate(requests=3, seconds=60)
    monkeypatch.setattr(endpoint, "OF_LINK", few)
    monkeypatch.setattr(endpoint, "OF_REFUSED", few)
    path, other = (subscribed(limited, limited.newcomer().user.id) for _ in range(2))
    stranger = bare(limited, "203.0.113.5")
    answers = [stranger.get(f"/calendar/{'A' * 42}{n}/payments.ics") for n in range(4)]
    assert [answer.status_code for answer in answers] == [404, 404, 404, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert bare(limited, "203.0.113.6").get("/calendar/x/payments.ics").status_code == 404
    assert [stranger.get(path).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert stranger.get(other).status_code == 200


def test_what_is_done_with_an_address_is_in_the_record(service: Service, holder: Holder) -> None:
    path, http = subscribed(service, holder.user.id), bare(service)
    http.get(path)
    users.set_subscription(service.services.everybody, holder.user.id, active=False)
    http.get(path)
    service.services.authorization.calendar.revoke(holder.user.id)
    http.get(path)
    record = service.services.authorization.record
    entries = [each for piece in record.hours(holder.user.id) for each in piece]
    seen = {each.operation: (each.calls, each.refusals) for each in entries if each.operation != "issueToken"}
    assert seen == {"makeCalendarLink": (1, 0), "readCalendar": (2, 1), "endCalendarLink": (1, 0)}


@pytest.mark.parametrize("failure", [StoreUnavailable, StoreFull])
def test_a_store_that_does_not_answer_or_has_no_room_is_told_as_such(
    service: Service, holder: Holder, monkeypatch: pytest.MonkeyPatch, failure: type[StoreError]
) -> None:
    path = subscribed(service, holder.user.id)

    def fails(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(endpoint, "due_payments", fails)
    answer = bare(service).get(path)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.engine("duckdb")
def test_the_address_is_in_no_log_and_no_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service = served(tmp_path / "data")
    user = service.newcomer().user.id
    path, http = subscribed(service, user), bare(service)
    guess = "g" * 43
    assert http.get(path).status_code == 200
    assert http.get(f"/calendar/{guess}/payments.ics").status_code == 404
    logged = "\n".join(each.getMessage() for each in caplog.records if not each.name.startswith("httpx"))
    assert "calendar link made" in logged
    assert "calendar link refused" in logged
    secrets = [path.split("/")[2], guess]
    assert [each for each in secrets if each in logged] == []
    service.services.close()
    stored = b"".join(file.read_bytes() for file in sorted((tmp_path / "data").rglob("*")) if file.is_file())
    assert [each for each in secrets if each.encode() in stored] == []
