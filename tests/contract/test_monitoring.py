"""What is seen of requests from outside: figures for monitors, slow requests and ids in the log, readiness."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from ipaddress import ip_network
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from handlers.web import request_durations
from handlers.web.addresses import Network
from handlers.web.health_and_metrics import health_and_metrics
from handlers.web.hosts import Hosts
from handlers.web.request_durations import RequestDurations

MakeApp = Callable[..., ASGIApp]
Connect = Callable[..., TestClient]
HERE: Sequence[Network] = (ip_network("127.0.0.0/8"), ip_network("::1"))
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def measured(
    make_app: MakeApp,
    *,
    is_ready: Callable[[], bool] = lambda: True,
    metrics_for: Sequence[Network] = HERE,
    **more: Any,
) -> RequestDurations:
    registry = CollectorRegistry()
    app = make_app(
        routes=health_and_metrics(partial(generate_latest, registry), is_ready=is_ready, metrics_for=metrics_for),
        **more,
    )
    return RequestDurations(app, registry, waiting=["getSyncJob"])


def from_address(app: ASGIApp, address: str) -> TestClient:
    return TestClient(
        app, headers={"Authorization": "Bearer good"}, client=(address, 50_000), raise_server_exceptions=False
    )


def counts(text: str) -> dict[tuple[str, str], float]:
    """Requests by operation and status."""
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = families["bankdata_request_duration_seconds"].samples
    return {
        (sample.labels["operation"], sample.labels["status"]): sample.value
        for sample in samples
        if sample.name.endswith("_count")
    }


@pytest.mark.requirement("monitoring.metrics")
def test_requests_are_counted_by_operation_and_status(make_app: MakeApp) -> None:
    client = from_address(measured(make_app), "127.0.0.1")
    client.get("/api/v1/accounts")
    client.get("/api/v1/accounts")
    client.get("/api/v1/transactions/txn_0")
    client.get("/api/v1/accounts", headers={"Authorization": ""})
    client.get("/nowhere")
    assert counts(client.get("/metrics").text) == {
        ("listAccounts", "200"): 2,
        ("getTransaction", "404"): 1,
        ("listAccounts", "401"): 1,
        ("none", "404"): 1,
    }


@pytest.mark.requirement("monitoring.metrics")
@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("::ffff:127.0.0.1", {}, 200),
        ("192.0.2.1", {}, 404),
        ("somewhere", {}, 404),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.1"}, 404),
        ("127.0.0.1", {"Forwarded": "for=192.0.2.1"}, 404),
    ],
)
def test_figures_are_for_machines_of_the_networks_and_never_for_what_comes_through_a_proxy(
    make_app: MakeApp, address: str, headers: dict[str, str], status: int
) -> None:
    assert from_address(measured(make_app), address).get("/metrics", headers=headers).status_code == status


@pytest.mark.requirement("monitoring.metrics")
def test_without_networks_there_is_no_such_address(make_app: MakeApp) -> None:
    client = from_address(measured(make_app, metrics_for=()), "127.0.0.1")
    assert client.get("/metrics").json() == client.get("/nowhere").json()


@pytest.mark.requirement("monitoring.metrics")
@pytest.mark.parametrize(("host", "status"), [("10.0.0.7:8000", 200), ("evil.example", 421), ("bank.example.org", 200)])
def test_monitors_may_ask_by_address_and_pages_of_strangers_not(make_app: MakeApp, host: str, status: int) -> None:
    app = measured(make_app, hosts=Hosts(["https://bank.example.org"], is_loopback=False))
    assert from_address(app, "127.0.0.1").get("/metrics", headers={"Host": host}).status_code == status


@pytest.mark.requirement("monitoring.slow")
@pytest.mark.parametrize(
    ("path", "is_named"), [("/api/v1/transactions?search=secret", True), ("/api/v1/sync/syn_1", False)]
)
def test_a_slow_request_is_named_without_what_was_asked_unless_waiting_is_its_task(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str, is_named: bool
) -> None:
    monkeypatch.setattr(request_durations, "SLOW_SECONDS", 0.0)
    with caplog.at_level(logging.WARNING, logger="bankdata.requests"):
        answer = from_address(measured(make_app), "127.0.0.1").get(path, headers={"traceparent": TRACEPARENT})
    assert answer.status_code == 200
    named = f"slow: listTransactions, 200 after 0.0 s, request {TRACE}"
    assert caplog.messages == ([named] if is_named else [])


@pytest.mark.requirement("monitoring.slow")
def test_a_client_that_sends_slowly_is_no_slow_request(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(request_durations, "SLOW_SECONDS", 1.0)

    def slowly() -> Iterator[bytes]:
        yield b"{"
        time.sleep(1.1)
        yield b"}"

    with caplog.at_level(logging.WARNING, logger="bankdata.requests"):
        headers = {"Content-Type": "application/json"}
        answer = from_address(measured(make_app), "127.0.0.1").post("/api/v1/sync", content=slowly(), headers=headers)
    assert answer.status_code == 202
    assert caplog.messages == []


@pytest.mark.requirement("monitoring.slow")
def test_a_quick_request_leaves_no_line(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="bankdata"):
        from_address(measured(make_app), "127.0.0.1").get("/healthz")
    assert caplog.messages == []


@pytest.mark.requirement("monitoring.request-id")
@pytest.mark.parametrize(
    ("sent", "is_taken"),
    [
        (TRACEPARENT, True),
        (f"cc-{TRACE}-b7ad6b7169203331-01-more", True),  # a later version may add to it
        (f"ff-{TRACE}-b7ad6b7169203331-01", False),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-b7ad6b7169203331-01", False),
        (f"00-{TRACE}-b7ad6b7169203331", False),
        ("", False),
    ],
)
def test_the_id_of_a_failure_is_that_of_the_clients_trace(
    make_app: MakeApp, sent: str, is_taken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_request: object) -> None:
        raise RuntimeError

    client = from_address(make_app({"listAccounts": fails}), "127.0.0.1")
    named = client.get("/api/v1/accounts", headers={"traceparent": sent}).headers["x-request-id"]
    assert (named == TRACE) is is_taken
    assert len(named) == 32
    assert f"request {named} failed" in caplog.text


@pytest.mark.requirement("monitoring.request-id")
def test_two_traces_name_nothing(make_app: MakeApp) -> None:
    def fails(_request: object) -> None:
        raise RuntimeError

    client = from_address(make_app({"listAccounts": fails}), "127.0.0.1")
    twice = [("Authorization", "Bearer good"), ("traceparent", TRACEPARENT), ("traceparent", TRACEPARENT)]
    assert client.get("/api/v1/accounts", headers=twice).headers["x-request-id"] != TRACE


@pytest.mark.requirement("monitoring.ready")
@pytest.mark.parametrize(("is_ready", "status"), [(True, 200), (False, 503)])
def test_ready_is_what_the_store_answers(make_app: MakeApp, is_ready: bool, status: int) -> None:
    app = measured(make_app, is_ready=lambda: is_ready, hosts=Hosts(["https://bank.example.org"], is_loopback=False))
    answer = from_address(app, "192.0.2.1").get("/readyz", headers={"Host": "10.0.0.7"})
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, None if is_ready else "2")


@pytest.mark.requirement("monitoring.ready")
def test_a_store_that_hangs_is_not_ready_and_costs_one_thread(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.web.health_and_metrics.READY_WITHIN", 0.05)
    answered, asked = threading.Event(), []

    def hangs() -> bool:
        asked.append(time.monotonic())
        return answered.wait(60)

    with from_address(measured(make_app, is_ready=hangs), "127.0.0.1") as client:
        assert [client.get("/readyz").status_code for _ in range(3)] == [503, 503, 503]
        assert len(asked) == 1
        answered.set()
