"""What the tests of webhooks share: a receiver that is really there, and a household whose app is told what happens."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from auth.scopes import ALL_SCOPES
from handlers.operations.events import webhook_delivery, webhook_secrets
from handlers.operations.events.webhook_delivery import Deliverer
from handlers.server import application
from storage.oauth.grants import EVERYTHING, Terms
from storage.users import User
from tests.imports.household import Household
from tests.imports.test_change_feed import GIRO, Life, booked

SECONDS_MAX = 60.0

Json = dict[str, Any]
Answer = tuple[int, dict[str, str]]


class Receiver:
    """An HTTP server of an app. `answers` are what comes next at a path, 204 where nothing is said; `waits` is what a
    path waits for before it answers."""

    def __init__(self) -> None:
        self.heard: dict[str, list[tuple[dict[str, str], bytes]]] = defaultdict(list)
        self.answers: dict[str, list[Answer]] = defaultdict(list)
        self.waits: dict[str, threading.Event] = {}
        receiver = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = receiver.answers[self.path].pop(0) if receiver.answers[self.path] else (204, {})
                receiver.heard[self.path].append(({name.lower(): value for name, value in self.headers.items()}, body))
                if self.path in receiver.waits:
                    receiver.waits[self.path].wait(SECONDS_MAX)
                with suppress(OSError):  # the other side has had enough
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()

            def log_message(self, *_ignored: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        self.address = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        for each in self.waits.values():
            each.set()
        self.server.shutdown()
        self.server.server_close()


def checked(heard: tuple[dict[str, str], bytes], *secrets: str) -> Json:
    """What was received, if each of these secrets has signed it."""
    headers, body = heard
    id_, timestamp = headers["webhook-id"], int(headers["webhook-timestamp"])
    assert headers["webhook-signature"].split(" ") == [
        webhook_secrets.signature(secret, id_, timestamp, body.decode()) for secret in secrets
    ]
    assert headers["content-type"] == "application/json"
    said: Json = json.loads(body)
    assert said["id"] == id_
    return said


class Told:
    """A household with an app that is told what happens, and the server's part that tells it."""

    def __init__(self, eva: Household, receiver: Receiver) -> None:
        self.eva, self.services, self.receiver = eva, eva.services, receiver
        self.services.sends_webhooks = True
        self.set(webhooks_allow=(ip_network("127.0.0.0/8"),), webhooks_retry_seconds=(timedelta(seconds=5),) * 2)
        self.app = application(self.services, validate_responses=True)
        self.life = Life(eva)
        self.deliverer = Deliverer(self.services)

    def set(self, **settings: Any) -> None:
        for name, value in settings.items():
            object.__setattr__(self.services.settings, name, value)

    def client(self, *scopes: str, terms: Terms = EVERYTHING, user: User | None = None) -> TestClient:
        token = self.services.authorization.issue_token(
            (user or self.eva.user).id, frozenset(scopes or ALL_SCOPES), timedelta(days=90), terms=terms
        )
        return TestClient(
            self.app, base_url="http://127.0.0.1:8000/api/v1", headers={"Authorization": f"Bearer {token}"}
        )

    def hook(self, client: TestClient, path: str = "/a", **further: Any) -> Json:
        answer = client.post("/webhooks", json={"url": f"{self.receiver.address}{path}", **further})
        assert answer.status_code == 201, answer.text
        made: Json = answer.json()
        return made

    def happen(self, *, day: str = "2026-03-01") -> None:
        """A booking more."""
        self.life.bring(GIRO, booked(day, f"-{self.life.number + 1}.00", "Rewe", f"{self.life.number}"))

    def advance(self, **time_: float) -> None:
        self.services.clock.offset += timedelta(**time_)

    def until(self, is_so: Callable[[], object]) -> None:
        """Tell until it is so."""
        end = time.monotonic() + SECONDS_MAX
        while not is_so():
            assert time.monotonic() < end, "it never came to it"
            self.deliverer.round()

    def heard(self, count: int, path: str = "/a") -> list[tuple[dict[str, str], bytes]]:
        """What has come there, once it is so many."""
        self.until(lambda: len(self.receiver.heard[path]) >= count)
        return self.receiver.heard[path]

    def prove(self, client: TestClient, *hooks: Json) -> None:
        """Show that these are answered: to new ones one delivery is sent at a time."""
        for each in hooks:
            client.post(f"/webhooks/{each['id']}/test")
        self.until(lambda: all(self.deliveries(client, each)[0]["state"] == "delivered" for each in hooks))

    def deliveries(self, client: TestClient, hook: Json) -> list[Json]:
        found: list[Json] = client.get(f"/webhooks/{hook['id']}/deliveries").json()["deliveries"]
        return found

    def settled(self, client: TestClient, hook: Json) -> list[Json]:
        """The deliveries, once none is on its way."""
        self.until(lambda: not self.deliverer.on_its_way)
        return self.deliveries(client, hook)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def told(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.setattr(webhook_delivery, "LOOK_EVERY", 0.02)
    eva = Household(tmp_path / "eva")
    made = Told(eva, receiver)
    yield made
    made.deliverer.close()
    eva.services.close()
