"""Webhooks from end to end in one process: what is told to whom, what is tried again, what ends."""

import json
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from auth.scopes import READ_ACCOUNTS, READ_TRANSACTIONS
from connectors.webhooks.client import SendingProcess
from handlers.commands.table import perform
from handlers.operations.events import sending_bounds, webhook_delivery, webhook_secrets, webhooks
from handlers.operations.events.sending_bounds import OF_EACH
from storage import users
from storage.database import StoreUnavailable
from storage.oauth.grants import Terms
from storage.webhooks import deliveries, hooks
from tests.webhooks.conftest import Json, Told, checked


@pytest.mark.requirement("webhooks.told")
def test_the_signature_is_that_of_the_specification() -> None:
    # The example of Standard Webhooks, and of the libraries that check it
    signed = webhook_secrets.signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.requirement("webhooks.told")
def test_what_happens_is_told_signed_and_as_those_hear_it_who_listen(told: Told) -> None:
    client = told.client()
    made = told.hook(client, description="Ledger")
    assert made == {
        "id": made["id"],
        "url": f"{told.receiver.address}/a",
        "eventTypes": None,
        "description": "Ledger",
        "status": "enabled",
        "disabledReason": None,
        "createdAt": made["createdAt"],
        "secret": made["secret"],
    }
    told.happen()
    said = [checked(each, made["secret"]) for each in told.heard(2)]
    assert {each["type"] for each in said} == {"transactions.changed", "sync.completed"}
    (changed,) = [each for each in said if each["type"] == "transactions.changed"]
    assert (changed["data"]["added"], changed["data"]["modified"], changed["data"]["removed"]) == (1, 0, 0)
    assert changed.keys() == {"id", "type", "timestamp", "data"}
    listed = told.settled(client, made)
    assert [(each["state"], each["nextAttemptAt"]) for each in listed] == [("delivered", None)] * 2
    assert {each["eventId"] for each in listed} == {each["id"] for each in said}
    (attempt,) = listed[0]["attempts"]
    assert (attempt["status"], attempt["error"]) == (204, None)
    assert attempt["durationMs"] >= 0


@pytest.mark.requirement("webhooks.told")
def test_types_scopes_and_accounts_are_those_of_the_grant(told: Told) -> None:
    told.happen()  # before there is a webhook
    (account,) = told.client().get("/accounts").json()["accounts"]
    told.hook(told.client(), "/chosen", eventTypes=["transactions.changed"])
    told.hook(told.client(READ_ACCOUNTS), "/narrow")
    told.hook(told.client(terms=Terms(accounts=("acc_other",))), "/elsewhere")
    told.hook(told.client(terms=Terms(accounts=(account["id"],))), "/covered", eventTypes=["transactions.changed"])
    told.hook(told.client(READ_ACCOUNTS, terms=Terms(figures_only=True)), "/figures", eventTypes=["sync.completed"])
    told.happen(day="2026-03-02")
    types = {path: {json.loads(body)["type"] for _, body in told.heard(1, path)} for path in ("/chosen", "/narrow")}
    assert types == {"/chosen": {"transactions.changed"}, "/narrow": {"sync.completed"}}
    ((_, body),) = told.heard(1, "/covered")
    assert json.loads(body)["data"]["accountIds"] == [account["id"]]
    told.heard(1, "/figures")
    told.until(lambda: not told.deliverer.on_its_way)
    assert told.receiver.heard["/elsewhere"] == []
    rows = told.eva.rows("webhook_deliveries")
    assert {row["state"] for row in rows} == {"delivered"}  # what is not for a grant is forgotten


@pytest.mark.requirement("webhooks.told")
def test_what_does_not_come_through_is_tried_again_with_the_same_id(told: Told) -> None:
    client = told.client()
    made = told.hook(client, eventTypes=["sync.completed"])
    told.receiver.answers["/a"] = [(500, {}), (302, {"Location": f"{told.receiver.address}/b"}), (200, {})]
    told.happen()
    told.heard(1)
    (pending,) = told.settled(client, made)
    assert (pending["state"], len(pending["attempts"])) == ("pending", 1)
    told.deliverer.round()
    assert len(told.receiver.heard["/a"]) == 1  # not before its time
    told.advance(seconds=6)
    told.heard(2)
    told.settled(client, made)
    told.advance(seconds=6)
    first, second, third = told.heard(3)
    assert len({headers["webhook-id"] for headers, _ in (first, second, third)}) == 1
    assert len({body for _, body in (first, second, third)}) == 1
    stamps = [int(headers["webhook-timestamp"]) for headers, _ in (first, second, third)]
    assert all(abs(stamp - time.time()) < 300 for stamp in stamps)  # however far a demo lives in the future
    (done,) = told.settled(client, made)
    assert [each["status"] for each in done["attempts"]] == [500, 302, 200]
    assert done["state"] == "delivered"
    assert told.receiver.heard["/b"] == []


@pytest.mark.requirement("webhooks.told")
def test_after_the_last_attempt_it_has_failed_and_is_sent_again_for_the_asking(told: Told) -> None:
    client = told.client()
    made = told.hook(client, eventTypes=["sync.completed"])
    told.receiver.answers["/a"] = [(503, {"Retry-After": "60"}), (500, {}), (500, {}), (500, {}), (200, {})]
    told.happen()
    told.heard(1)
    told.settled(client, made)
    told.advance(seconds=30)
    told.deliverer.round()
    assert len(told.receiver.heard["/a"]) == 1  # the receiver wanted a minute
    for count, seconds in ((2, 31), (3, 6)):
        told.advance(seconds=seconds)
        told.heard(count)
        (delivery,) = told.settled(client, made)
    assert (delivery["state"], delivery["nextAttemptAt"], len(delivery["attempts"])) == ("failed", None, 3)
    retry = f"/webhooks/{made['id']}/deliveries/{delivery['id']}/retry"
    for count, state in ((4, "failed"), (5, "delivered")):
        answer = client.post(retry)
        assert (answer.status_code, answer.json()) == (202, {"deliveryId": delivery["id"]})
        told.heard(count)
        (again,) = told.settled(client, made)
        assert again["state"] == state
    assert client.post(f"/webhooks/{made['id']}/deliveries/none/retry").status_code == 404


@pytest.mark.requirement("webhooks.told")
@pytest.mark.long
def test_a_receiver_that_dawdles_holds_up_no_other(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OF_EACH, "webhook", 2)
    told.set(webhooks_timeout_seconds=timedelta(seconds=3))
    client = told.client()
    slow = told.hook(client, "/slow", eventTypes=["sync.completed"])
    told.prove(client, slow)
    told.receiver.waits["/slow"] = threading.Event()
    told.hook(client, "/a", eventTypes=["sync.completed"])
    for day in range(1, 5):
        told.happen(day=f"2026-03-0{day}")
    assert len(told.heard(4)) == 4
    told.heard(3, "/slow")
    told.until(lambda: len(told.deliverer.on_its_way) == 2)

    def late() -> list[Json]:
        return [each["attempts"][0] for each in told.deliveries(client, slow)[:-1] if each["attempts"]]

    told.until(late)
    assert {(each["status"], each["error"]) for each in late()} == {(None, "timeout")}


@pytest.mark.requirement("webhooks.told")
@pytest.mark.long
def test_one_that_is_gone_is_told_nothing_more_and_the_others_hear_of_it(told: Told) -> None:
    client = told.client()
    gone, other = (
        told.hook(client, "/gone", eventTypes=["sync.completed"]),
        told.hook(client, eventTypes=["balance.low"]),
    )
    stranger = told.client()
    foreign = told.hook(stranger, "/foreign", eventTypes=["balance.low"])
    told.receiver.answers["/gone"] = [(410, {})]
    told.happen()
    told.heard(1, "/gone")
    told.settled(client, gone)
    found = client.get(f"/webhooks/{gone['id']}").json()
    assert (found["status"], found["disabledReason"]) == ("disabled", "gone")
    (heard,) = told.heard(1)
    said = checked(heard, other["secret"])
    assert (said["type"], said["data"]) == ("webhook.disabled", {"webhookId": gone["id"], "reason": "gone"})
    assert told.deliveries(stranger, foreign) == []
    refused = client.post(f"/webhooks/{gone['id']}/test")
    assert (refused.status_code, refused.json()["error"]) == (409, "This webhook is disabled. Enable it first")
    told.happen(day="2026-03-02")
    assert len(told.deliveries(client, gone)) == 1
    enabled = client.post(f"/webhooks/{gone['id']}/enable").json()
    assert (enabled["status"], enabled["disabledReason"]) == ("enabled", None)
    told.happen(day="2026-03-03")
    told.heard(2, "/gone")


@pytest.mark.requirement("webhooks.told")
@pytest.mark.long
def test_five_days_of_failures_end_it_and_one_success_in_between_does_not(told: Told) -> None:
    client = told.client()
    made = told.hook(client, eventTypes=["sync.completed"])
    told.set(webhooks_retry_seconds=())

    def happens(status: int) -> Json:
        told.receiver.answers["/a"] = [(status, {})]
        told.happen()
        told.heard(len(told.receiver.heard["/a"]) + 1)
        told.settled(client, made)
        found: Json = client.get(f"/webhooks/{made['id']}").json()
        return found

    assert happens(500)["status"] == "enabled"
    told.advance(days=4, hours=23)
    assert happens(500)["status"] == "enabled"
    assert happens(200)["status"] == "enabled"
    told.advance(days=1)
    assert happens(500)["status"] == "enabled"
    told.advance(days=5)
    found = happens(500)
    assert (found["status"], found["disabledReason"]) == ("disabled", "failing")


@pytest.mark.requirement("webhooks.told")
def test_what_is_on_its_way_when_it_is_disabled_or_removed_changes_nothing_more(told: Told) -> None:
    client = told.client()
    first, second = told.hook(client, "/a"), told.hook(client, "/b")
    told.prove(client, first, second)
    told.receiver.waits |= {"/a": threading.Event(), "/b": threading.Event()}
    told.receiver.answers |= {"/a": [(410, {}), (410, {})], "/b": [(500, {})]}
    for each in (first, first, second):
        client.post(f"/webhooks/{each['id']}/test")
    told.heard(3, "/a")
    told.heard(2, "/b")
    assert client.delete(f"/webhooks/{second['id']}").status_code == 204
    for waiting in told.receiver.waits.values():
        waiting.set()
    assert [each["state"] for each in told.settled(client, first)] == ["failed", "failed", "delivered"]
    assert [each["id"] for each in client.get("/webhooks").json()["webhooks"]] == [first["id"]]
    assert {row["webhook_id"] for row in told.eva.rows("webhook_deliveries")} == {first["id"]}


@pytest.mark.requirement("webhooks.told")
def test_a_former_secret_signs_too_for_a_day(told: Told) -> None:
    client = told.client()
    made = told.hook(client)

    def next_heard(count: int) -> tuple[dict[str, str], bytes]:
        answer = client.post(f"/webhooks/{made['id']}/test")
        assert answer.status_code == 202
        return told.heard(count)[-1]

    said = checked(next_heard(1), made["secret"])
    assert (said["type"], said["data"]) == ("webhook.test", {"webhookId": made["id"]})
    renewed = client.post(f"/webhooks/{made['id']}/secret").json()
    assert renewed.keys() == {"secret"}
    checked(next_heard(2), renewed["secret"], made["secret"])
    told.advance(hours=24)
    checked(next_heard(3), renewed["secret"])
    later, last = [client.post(f"/webhooks/{made['id']}/secret").json()["secret"] for _ in range(2)]
    checked(next_heard(4), last, later)
    rows = told.services.everybody.rows("SELECT sealed FROM connection_secrets")
    assert rows
    assert not any(made["secret"] in row["sealed"] or renewed["secret"] in row["sealed"] for row in rows)


@pytest.mark.requirement("webhooks.told")
def test_it_ends_with_its_grant_and_waits_for_subscription_and_key(told: Told) -> None:
    kept, ended = told.client(), told.client()
    made, over = told.hook(kept, eventTypes=["sync.completed"]), told.hook(ended, "/over")
    perform(told.services, "users subscription", {"name": "eva", "active": False}, told.eva)
    told.happen()
    told.deliverer.round()
    assert told.receiver.heard == {}
    perform(told.services, "users subscription", {"name": "eva", "active": True}, told.eva)
    grants = {row["url"]: row["grant_id"] for row in told.eva.rows("webhooks")}
    told.services.authorization.grants.revoke(grants[over["url"]], because="revoked by the user")
    told.advance(hours=1, seconds=1)
    told.heard(1)
    told.settled(kept, made)
    assert [row["id"] for row in told.eva.rows("webhooks")] == [made["id"]]
    assert {row["webhook_id"] for row in told.eva.rows("webhook_deliveries")} == {made["id"]}
    assert told.receiver.heard["/over"] == []
    secret = told.services.everybody.rows("SELECT sealed FROM connection_secrets WHERE field = 'secret'")[0]["sealed"]
    told.services.everybody.execute("UPDATE connection_secrets SET sealed = 'gone.x'")
    kept.post(f"/webhooks/{made['id']}/test")
    told.deliverer.round()
    assert len(told.receiver.heard["/a"]) == 1
    assert kept.post(f"/webhooks/{made['id']}/secret").status_code == 503
    told.services.everybody.execute("UPDATE connection_secrets SET sealed = $1", secret)
    told.advance(hours=1, seconds=1)
    told.heard(2)
    told.services.everybody.execute("DELETE FROM connection_secrets")
    kept.post(f"/webhooks/{made['id']}/test")
    told.deliverer.round()
    assert len(told.receiver.heard["/a"]) == 2


@pytest.mark.requirement("webhooks.told")
def test_of_two_processes_one_takes_it_and_what_is_not_answered_is_sent_again(told: Told) -> None:
    client = told.client()
    made = told.hook(client, eventTypes=["sync.completed"])
    other = webhook_delivery.Deliverer(told.services)
    told.happen()

    def is_told() -> bool:  # and no outcome is still with the other one
        other.round()
        return [each["state"] for each in told.deliveries(client, made)] == ["delivered"]

    try:
        told.until(is_told)
        assert len(told.heard(1)) == 1
        told.receiver.answers["/a"] = [(500, {})]
        client.post(f"/webhooks/{made['id']}/test")
        now = told.services.clock.now()
        (due,) = deliveries.due(told.services.everybody, now=now, but_of=[], limit=10)
        webhook = hooks.find(told.services.everybody, due.user_id, due.webhook_id)
        assert told.deliverer._send(due, webhook, now)
        assert not other._send(due, webhook, now)  # it has looked before the first one took it
        told.heard(2)
        told.deliverer.close()  # as if it were killed before it is answered
        told.advance(minutes=1)
        told.heard(3)
        assert told.settled(client, made)[0]["state"] == "delivered"
    finally:
        other.close()


@pytest.mark.requirement("webhooks.told")
def test_outcomes_that_a_store_does_not_take_are_sent_again_by_the_same_process(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = told.client()
    made = told.hook(client)
    told.prove(client, made)
    for _ in range(2):
        client.post(f"/webhooks/{made['id']}/test")

    def away(*_ignored: Any, **_too: Any) -> bool:
        raise StoreUnavailable

    outcomes: list[Any] = []
    read = SendingProcess.outcomes

    def later(process: SendingProcess, **how: Any) -> list[Any]:
        outcomes.extend(read(process, **how))
        return []

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(SendingProcess, "outcomes", later)
        told.until(lambda: len(outcomes) == 2)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(SendingProcess, "outcomes", lambda *_ignored, **_too: outcomes)  # both at once
        meanwhile.setattr(deliveries, "settle", away)
        with pytest.raises(StoreUnavailable):
            told.deliverer.round()
    told.advance(minutes=1)
    told.heard(5)
    assert {each["state"] for each in told.settled(client, made)} == {"delivered"}


@pytest.mark.requirement("webhooks.told")
def test_the_last_hundred_are_kept_and_old_ones_forgotten(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "KEPT", 2)
    client = told.client()
    made = told.hook(client)
    ids = []
    for _ in range(4):
        told.advance(seconds=1)
        ids.append(client.post(f"/webhooks/{made['id']}/test").json()["deliveryId"])
    told.heard(4)
    told.until(lambda: not told.deliverer.on_its_way)
    assert [each["id"] for each in told.deliveries(client, made)] == ids[:1:-1]
    assert len(told.eva.rows("webhook_deliveries")) == 2
    told.advance(days=31)
    told.services.scheduler._on_new_day(told.services.clock.today())
    assert told.deliveries(client, made) == []


@pytest.mark.requirement("webhooks.told")
def test_no_more_tests_are_taken_than_a_hundred_deliveries_wait(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "WAITING_MAX", 2)
    client = told.client()
    made, other = told.hook(client), told.hook(client, "/b")
    statuses = [client.post(f"/webhooks/{each['id']}/test").status_code for each in (made, made, made, other)]
    assert statuses == [202, 202, 429, 202]
    told.heard(1)
    told.settled(client, made)
    assert client.post(f"/webhooks/{made['id']}/test").status_code == 202


@pytest.mark.requirement("webhooks.told")
def test_who_finds_nothing_among_several_processes_looks_less_often(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_delivery, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(told.deliverer, "_idle_looks", webhook_delivery.IDLE_LOOKS)
    begun = time.monotonic()
    told.deliverer.round()
    assert time.monotonic() - begun >= 0.4


@pytest.mark.requirement("webhooks.told")
def test_an_event_that_is_forgotten_is_not_told(told: Told) -> None:
    client = told.client(READ_ACCOUNTS, READ_TRANSACTIONS)
    made = told.hook(client)
    told.happen()
    told.services.everybody.execute("DELETE FROM events")
    told.deliverer.round()
    assert told.deliveries(client, made) == []
    assert told.receiver.heard == {}
    rows = told.services.everybody.rows("SELECT * FROM webhook_deliveries")
    assert rows == []


@pytest.mark.requirement("webhooks.told")
def test_the_thread_goes_on_after_errors_and_a_process_that_ended(
    told: Told, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(webhook_delivery, "TRIES_AGAIN_IN", 0.01)
    client = told.client()
    made = told.hook(client)
    client.post(f"/webhooks/{made['id']}/test")
    told.heard(1)
    assert told.deliverer._sender is not None
    told.deliverer._sender._process.kill()
    failures: list[Any] = [StoreUnavailable(), ValueError("once"), None, None]
    round_ = told.deliverer.round

    def next_round() -> None:
        failure = failures.pop(0)
        if failure is not None:
            raise failure
        if not failures:
            told.services.sync_engine.stop()
            raise ValueError("at the end")
        round_()

    monkeypatch.setattr(told.deliverer, "round", next_round)
    told.deliverer.work()
    said = [record.getMessage() for record in caplog.records if record.name == "bankdata.webhooks"]
    assert said == [
        "webhooks wait for the database",
        "webhooks go on after an error",
        "the process that sends webhooks has ended; another one takes its place",
    ]
    told.deliverer.round = round_  # type: ignore[method-assign]


def try_out_of_another(told: Told, path: str) -> None:
    """Have a webhook of another user tried out, whose delivery is the newest."""
    tom = users.add(
        told.services.everybody,
        name="tom",
        password_hash=None,
        has_subscription=True,
        home_currency="EUR",
        now=told.services.clock.now(),
    )
    client = told.client(user=tom)
    made = told.hook(client, path)
    client.post(f"/webhooks/{made['id']}/test")


@pytest.mark.requirement("webhooks.told")
def test_receivers_of_one_user_that_hang_hold_up_no_other_user(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_delivery, "SENT_AT_ONCE", 4)
    monkeypatch.setattr(sending_bounds, "OF_UNPROVEN", {**OF_EACH, "user": 3})
    told.receiver.waits["/hangs"] = threading.Event()
    client = told.client()
    hanging = [told.hook(client, "/hangs") for _ in range(3)]
    for each in hanging * 2:
        client.post(f"/webhooks/{each['id']}/test")
    told.heard(3, "/hangs")
    told.advance(seconds=1)  # those of the one who has many come first
    try_out_of_another(told, "/a")
    told.heard(1)
    told.until(lambda: len(told.deliverer.on_its_way) == 3)
    assert len(told.receiver.heard["/hangs"]) == 3
    told.receiver.waits["/hangs"].set()
    told.heard(6, "/hangs")


@pytest.mark.requirement("webhooks.told")
def test_whoever_has_much_to_be_told_does_not_keep_others_from_the_same_look(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_delivery, "SENT_AT_ONCE", 4)
    monkeypatch.setattr(sending_bounds, "OF_UNPROVEN", {**OF_EACH, "user": 2})
    told.receiver.waits["/hangs"] = threading.Event()
    client = told.client()
    made = told.hook(client, "/hangs")
    for _ in range(5):
        client.post(f"/webhooks/{made['id']}/test")
    told.advance(seconds=1)
    try_out_of_another(told, "/hangs")
    told.deliverer.round()
    assert len(told.deliverer.on_its_way) == 3
    told.receiver.waits["/hangs"].set()
    told.heard(6, "/hangs")


@pytest.mark.requirement("webhooks.told")
def test_what_no_process_has_sent_for_five_days_is_forgotten(told: Told) -> None:
    client = told.client()
    made = told.hook(client)
    client.post(f"/webhooks/{made['id']}/test")
    told.advance(days=5, seconds=-60)

    def forgotten() -> list[Json]:
        now = told.services.clock.now()
        deliveries.forget(told.services.everybody, before=now - timedelta(days=30), now=now)
        return told.deliveries(client, made)

    assert len(forgotten()) == 1
    told.advance(seconds=61)
    assert forgotten() == []
    client.post(f"/webhooks/{made['id']}/test")
    told.heard(1)
    told.settled(client, made)
    told.advance(days=29)
    assert [each["state"] for each in forgotten()] == ["delivered"]
    told.advance(days=1, seconds=1)
    assert forgotten() == []
