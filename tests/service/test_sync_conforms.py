"""POST /sync and GET /sync/{syncId}: states, rate rule, failures and new days, on a server whose clock we move."""

from collections.abc import Callable
from itertools import count

import httpx
import pytest

from tests.service.conftest import Json, Served, account_ids, everything, get
from tests.service.test_lists_conform import INSTANT

NUMBERS = count()
PASSWORD = "Regenturm-4711-quer"

NewUser = Callable[..., httpx.Client]


@pytest.fixture
def new_user(own_service: Served) -> NewUser:
    """A user with so many banks of one account each; the faults of each bank show from the second sync on."""

    def make(*faults: str | None) -> httpx.Client:
        name = f"user{next(NUMBERS)}"
        own_service.command("users add", name=name, password=PASSWORD, is_generated=False, has_subscription=True)
        for number, fault in enumerate(faults):
            own_service.command(
                "connect",
                connector="demo",
                user=name,
                bank=f"Bank {number}",
                settings={"accounts": 1, "household": "lapsed"},
                fault=fault,
            )
        return own_service.client(name)

    return make


def posted(client: httpx.Client, **how: object) -> Json:
    answer = client.post("/sync", **how)  # type: ignore[arg-type]  # json= and params= of httpx
    assert answer.status_code == 202, answer.text
    body: Json = answer.json()
    assert body.keys() == {"syncJobs", "skippedConnections"}
    for job in body["syncJobs"]:
        assert job.keys() == {"syncId", "status", "error"}
    return body


def finished(client: httpx.Client, sync_id: str) -> Json:
    """Read the job to its end."""
    for _ in range(50):
        job: Json = get(client, f"/sync/{sync_id}")
        if job["status"] in ("completed", "failed"):
            return job
    raise AssertionError(job)


@pytest.mark.requirement("interface 3")
@pytest.mark.requirement("decision 48")
@pytest.mark.requirement("interface 4.9")
def test_reading_a_job_takes_it_from_pending_to_completed(new_user: NewUser) -> None:
    client = new_user(None)
    answer = client.post("/sync")
    assert answer.status_code == 202
    (summary,) = answer.json()["syncJobs"]
    assert summary["status"] in ("pending", "syncing")
    assert summary["error"] is None
    assert answer.json()["skippedConnections"] == 0
    assert answer.headers["location"] == f"/api/v1/sync/{summary['syncId']}"
    first = get(client, f"/sync/{summary['syncId']}")
    assert first["status"] == "syncing"
    assert first.keys() == {"syncId", "status", "error", "createdAt", "updatedAt"}
    done = finished(client, summary["syncId"])
    assert done["status"] == "completed"
    assert done.keys() == {"syncId", "status", "error", "createdAt", "updatedAt", "newTransactions"}
    assert (done["newTransactions"], done["error"]) == (0, None)
    assert INSTANT.fullmatch(done["createdAt"])
    assert done["updatedAt"] >= done["createdAt"] == first["createdAt"]
    assert get(client, f"/sync/{summary['syncId']}") == done


@pytest.mark.requirement("interface 4.8 rate")
@pytest.mark.requirement("decision 25")
@pytest.mark.requirement("decision 27")
def test_a_connection_is_synced_once_in_30_minutes(own_service: Served, new_user: NewUser) -> None:
    client = new_user(None)
    (job,) = posted(client)["syncJobs"]
    running = client.post("/sync")
    assert running.status_code == 429
    assert finished(client, job["syncId"])["status"] == "completed"
    own_service.advance(1790)
    refused = client.post("/sync")
    assert refused.status_code == 429
    seconds = int(refused.headers["retry-after"])
    assert 1 <= seconds <= 10
    assert refused.json() == {"error": f"All bank connections were synced recently. Try again in {seconds} seconds"}
    own_service.advance(seconds)
    assert len(posted(client)["syncJobs"]) == 1


@pytest.mark.requirement("interface 4.8 skipped")
@pytest.mark.long
def test_recently_synced_connections_are_skipped_and_counted(own_service: Served, new_user: NewUser) -> None:
    client = new_user(None, None, None)
    ids = account_ids(client)
    assert len(ids) == 3
    body = posted(client, json={"accountIds": [ids[0]]})
    assert (len(body["syncJobs"]), body["skippedConnections"]) == (1, 0)
    body = posted(client, params={"accountIds": f"{ids[0]},{ids[1]}"})
    assert (len(body["syncJobs"]), body["skippedConnections"]) == (1, 1)
    body = posted(client)
    assert (len(body["syncJobs"]), body["skippedConnections"]) == (1, 2)
    assert client.post("/sync").status_code == 429


@pytest.mark.requirement("decision 6 sync")
@pytest.mark.long
def test_account_ids_of_body_and_query_are_united(new_user: NewUser) -> None:
    client = new_user(None, None, None)
    ids = account_ids(client)
    body = posted(client, json={"accountIds": [ids[0], "acc_unknown"]}, params={"accountIds": ids[2]})
    assert (len(body["syncJobs"]), body["skippedConnections"]) == (2, 0)
    unknown = client.post("/sync", json={"accountIds": ["acc_unknown"]})
    assert (unknown.status_code, unknown.json()) == (404, {"error": "No bank connections found"})
    body = posted(client, json={"accountIds": []})
    assert (len(body["syncJobs"]), body["skippedConnections"]) == (1, 2)


@pytest.mark.requirement("interface 8 sync account ids")
def test_50_account_ids_are_allowed_and_51_are_not(new_user: NewUser) -> None:
    client = new_user(None)
    (own,) = account_ids(client)
    others = [f"acc_{number}" for number in range(50)]
    assert client.post("/sync", json={"accountIds": others}).status_code == 404
    assert client.post("/sync", json={"accountIds": [own, *others]}).status_code == 400
    assert client.post("/sync", json={"accountIds": others}, params={"accountIds": own}).status_code == 400
    posted(client, json={"accountIds": [own, *others[:49]]})


@pytest.mark.requirement("interface 4.8 body")
@pytest.mark.parametrize("content", [b"", b"{}"])
def test_the_body_may_be_missing_or_empty(new_user: NewUser, content: bytes) -> None:
    headers = {"content-type": "application/json"} if content else {}
    assert new_user(None).post("/sync", content=content, headers=headers).status_code == 202


@pytest.mark.requirement("decision 25")
@pytest.mark.requirement("decision 26")
def test_a_failed_job_says_why_and_may_be_tried_again_after_two_minutes(own_service: Served, new_user: NewUser) -> None:
    client = new_user("fails")
    synced_at = get(client, "/accounts")["accounts"][0]["lastSyncedAt"]
    (job,) = posted(client)["syncJobs"]
    failed = finished(client, job["syncId"])
    assert (failed["status"], failed["error"]) == ("failed", "The bank could not be reached.")
    assert "newTransactions" not in failed
    assert get(client, "/accounts")["accounts"][0]["lastSyncedAt"] == synced_at
    own_service.advance(110)
    refused = client.post("/sync")
    assert refused.status_code == 429
    own_service.advance(int(refused.headers["retry-after"]))
    assert len(posted(client)["syncJobs"]) == 1
    assert get(client, f"/sync/{job['syncId']}") == failed


@pytest.mark.requirement("decision 23")
@pytest.mark.long
def test_three_failures_in_a_row_make_an_error_that_forbids_nothing(own_service: Served, new_user: NewUser) -> None:
    client = new_user("fails")
    for expected in ("ACTIVE", "ACTIVE", "ERROR", "ERROR"):
        (job,) = posted(client)["syncJobs"]
        finished(client, job["syncId"])
        assert get(client, "/accounts")["accounts"][0]["bankConnection"]["status"] == expected
        own_service.advance(121)


@pytest.mark.requirement("decision 26")
def test_a_job_without_progress_for_15_minutes_times_out(own_service: Served, new_user: NewUser) -> None:
    client = new_user("slow")
    (job,) = posted(client)["syncJobs"]
    assert get(client, f"/sync/{job['syncId']}")["status"] == "syncing"
    own_service.advance(15 * 60)
    failed = finished(client, job["syncId"])
    assert (failed["status"], failed["error"]) == ("failed", "The sync timed out")


@pytest.mark.requirement("demo.faults")
def test_a_slow_bank_stays_syncing_for_a_minute_and_then_completes(own_service: Served, new_user: NewUser) -> None:
    client = new_user("slow")
    (job,) = posted(client)["syncJobs"]
    for _ in range(4):
        assert get(client, f"/sync/{job['syncId']}")["status"] == "syncing"
    own_service.advance(61)
    assert finished(client, job["syncId"])["status"] == "completed"


@pytest.mark.requirement("decision 23")
@pytest.mark.requirement("decision 27")
@pytest.mark.parametrize(("fault", "status"), [("needs_user", "REAUTH_REQUIRED"), ("consent_expired", "EXPIRED")])
@pytest.mark.sampled
def test_a_connection_that_needs_its_user_is_in_the_answer_without_a_job(
    own_service: Served, new_user: NewUser, fault: str, status: str
) -> None:
    client = new_user(fault, None)
    body = posted(client)
    assert [finished(client, job["syncId"])["status"] for job in body["syncJobs"]] == ["failed", "completed"]
    assert get(client, "/accounts")["accounts"][0]["bankConnection"]["status"] == status
    own_service.advance(1801)
    body = posted(client)
    assert body["skippedConnections"] == 0
    assert body["syncJobs"][0]["syncId"] is None
    assert body["syncJobs"][0]["status"] == "failed"
    assert body["syncJobs"][0]["error"]
    assert body["syncJobs"][1]["syncId"]
    again = posted(client)
    assert (len(again["syncJobs"]), again["skippedConnections"]) == (1, 1)


@pytest.mark.requirement("decision 23")
@pytest.mark.long
def test_connecting_again_renews_a_connection_that_needed_its_user(own_service: Served, new_user: NewUser) -> None:
    client = new_user("consent_expired")
    before = everything(client)
    (job,) = posted(client)["syncJobs"]
    finished(client, job["syncId"])
    user = next(name for (name, _), known in own_service.clients.items() if known is client)
    own_service.command("connect", connector="demo", user=user, bank="Bank 0", settings={}, fault=None)
    assert get(client, "/accounts")["accounts"][0]["bankConnection"]["status"] == "ACTIVE"
    assert everything(client) == before
    own_service.advance(1801)
    (job,) = posted(client)["syncJobs"]
    assert finished(client, job["syncId"])["status"] == "completed"


@pytest.mark.requirement("interface 2.12 newTransactions")
@pytest.mark.requirement("demo.grows")
@pytest.mark.long
def test_a_new_day_brings_new_transactions_and_says_how_many(own_service: Served, new_user: NewUser) -> None:
    client = new_user(None)
    before = everything(client)
    created = {row["id"]: get(client, f"/transactions/{row['id']}")["createdAt"] for row in before[:20]}
    balance = get(client, "/accounts")["accounts"][0]["balance"]
    synced_at = get(client, "/accounts")["accounts"][0]["lastSyncedAt"]
    own_service.advance(15 * 86_400)
    (job,) = posted(client)["syncJobs"]
    done = finished(client, job["syncId"])
    after = everything(client)
    assert done["newTransactions"] == len(after) - len(before) > 0
    known = {row["id"]: row for row in before}
    assert known.keys() <= {row["id"] for row in after}
    assert all(row == known[row["id"]] for row in after if row["id"] in known)
    assert {id_: get(client, f"/transactions/{id_}")["createdAt"] for id_ in created} == created
    account = get(client, "/accounts")["accounts"][0]
    grown = sum(row["amount"] for row in after if row["id"] not in known)
    assert account["balance"] == pytest.approx(balance + grown)
    assert account["lastSyncedAt"] > synced_at


@pytest.mark.requirement("decision 28")
@pytest.mark.long
def test_somebody_elses_job_is_unknown(new_user: NewUser) -> None:
    mine, theirs = new_user(None), new_user(None)
    (job,) = posted(mine)["syncJobs"]
    answer = theirs.get(f"/sync/{job['syncId']}")
    assert (answer.status_code, answer.json()) == (404, {"error": "Sync job not found"})
    assert get(mine, f"/sync/{job['syncId']}")["syncId"] == job["syncId"]
