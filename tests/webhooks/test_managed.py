"""/webhooks: what an app may set up, and what it is refused."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from auth.scopes import READ_CASHFLOW
from handlers.oauth.account_page import connected_apps
from handlers.operations.events import webhook_secrets
from storage.keys.places import KeysUnusable
from tests.documents.conftest import ROOT, blocks
from tests.webhooks.conftest import Told

URL = "https://app.example.org/hooks/bank?of=eva"
MANAGED = pytest.mark.requirement("webhooks.managed")


@MANAGED
def test_an_app_makes_reads_and_removes_webhooks_of_its_own(told: Told) -> None:
    client, other = told.client(), told.client()
    made = client.post("/webhooks", json={"url": URL, "eventTypes": ["sync.failed", "balance.low", "sync.failed"]})
    assert made.status_code == 201
    shown = {name: value for name, value in made.json().items() if name != "secret"}
    assert (shown["url"], shown["eventTypes"], shown["description"]) == (URL, ["balance.low", "sync.failed"], None)
    assert made.json()["secret"].startswith("whsec_")
    path = f"/webhooks/{shown['id']}"
    assert client.get("/webhooks").json() == {"webhooks": [shown]}
    assert client.get(path).json() == shown
    assert client.get(f"{path}/deliveries").json() == {"deliveries": []}
    assert other.get("/webhooks").json() == {"webhooks": []}
    for method, below in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/test"),
        ("POST", "/enable"),
        ("POST", "/secret"),
        ("GET", "/deliveries"),
        ("POST", "/deliveries/one/retry"),
    ):
        refused = other.request(method, f"{path}{below}")
        assert (refused.status_code, refused.json()) == (404, {"error": "Webhook not found"}), (method, below)
    removed = client.delete(path)
    assert (removed.status_code, removed.content) == (204, b"")
    assert "content-length" not in removed.headers
    assert client.delete(path).status_code == 404
    assert told.services.everybody.rows("SELECT field FROM connection_secrets") == []


@MANAGED
def test_a_grant_has_five(told: Told) -> None:
    client = told.client()
    for _ in range(5):
        assert client.post("/webhooks", json={"url": URL}).status_code == 201
    refused = client.post("/webhooks", json={"url": URL})
    assert (refused.status_code, refused.json()["error"]) == (409, "At most 5 webhooks. Remove one first")
    assert told.client().post("/webhooks", json={"url": URL}).status_code == 201


@MANAGED
def test_what_cannot_be_used_is_refused_in_one_sentence(told: Told) -> None:
    told.set(webhooks_allow=())
    client = told.client()
    refused: list[tuple[Any, str]] = [
        ({"url": "http://app.example.org/"}, "url: must be an https address of a public host"),
        ({"url": "https://10.0.0.1/"}, "url: must be an https address of a public host"),
        ({"url": URL, "eventTypes": ["sync.done"]}, "eventTypes: must be some of sync.completed"),
        ({"url": URL, "eventTypes": []}, "eventTypes: must be some of"),
        ({}, "body"),
        ({"url": URL, "description": "x" * 201}, "description: must have at most 200 characters"),
    ]
    for body, sentence in refused:
        answer = client.post("/webhooks", json=body)
        assert (answer.status_code, answer.json()["error"][: len(sentence)]) == (400, sentence)


@MANAGED
def test_a_server_that_sends_none_and_one_without_keys_make_none(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    client = told.client()
    assert told.client(READ_CASHFLOW).post("/webhooks", json={"url": URL}).status_code == 403

    def unusable(*_: object) -> None:
        raise KeysUnusable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(told.services.connection_keys, "get_ready", unusable)
        assert client.post("/webhooks", json={"url": URL}).status_code == 503
    told.services.sends_webhooks = False
    refused = client.post("/webhooks", json={"url": URL})
    assert (refused.status_code, refused.json()["error"].split(".")[0]) == (409, "This server sends no webhooks")
    assert client.get("/webhooks").json() == {"webhooks": []}


@MANAGED
def test_the_account_page_says_where_an_app_is_told_something(told: Told) -> None:
    client = told.client()
    for url in (URL, "https://other.example.org/", "https://other.example.org/2"):
        assert client.post("/webhooks", json={"url": url}).status_code == 201
    told.client()
    apps = connected_apps(told.services.authorization, told.eva.user.id)
    assert sorted(app.webhook_hosts for app in apps) == ["", "app.example.org, other.example.org"]
    record = told.services.authorization.record
    record.write()
    done = {
        entry.operation
        for entry in record.overview(told.eva.user.id, within=told.services.clock.now() - told.eva.user.created_at)
    }
    assert "createWebhook" in done


@MANAGED
def test_the_receiver_of_the_page_checks_what_comes(told: Told, tmp_path: Path) -> None:
    (text,) = [block.text for block in blocks(ROOT / "docs" / "webhooks.md") if block.language == "python"]
    page: dict[str, Any] = {}
    exec(compile(text, "webhooks.md", "exec"), page)
    client = told.client()
    made = told.hook(client)
    client.post(f"/webhooks/{made['id']}/test")
    ((headers, body),) = told.heard(1)
    assert page["received"](headers, body, made["secret"]) == json.loads(body)
    former = client.post(f"/webhooks/{made['id']}/secret").json()["secret"]
    for wrong_headers, wrong_body, secret, reason in (
        (headers, body + b" ", made["secret"], "not signed"),
        (headers, body, former, "not signed"),
        ({**headers, "webhook-id": "evt_other"}, body, made["secret"], "not signed"),
    ):
        with pytest.raises(ValueError, match=reason):
            page["received"](wrong_headers, wrong_body, secret)
    six_minutes_ago = datetime.now(UTC) - timedelta(minutes=6)
    old = webhook_secrets.headers([former], headers["webhook-id"], six_minutes_ago, body.decode())
    with pytest.raises(ValueError, match="too old"):
        page["received"](old, body, former)
