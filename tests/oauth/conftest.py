"""An authorization server behind the real application, a clock that tests move, and a browser that fills forms."""

import base64
import hashlib
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from starlette.testclient import TestClient

from auth.people.password_hashing import Passwords
from auth.people.provider_metadata import AskProvider, ProviderSettings
from auth.policy import Policy
from auth.server import AuthorizationServer
from auth.tokens.keys import KeyRing
from handlers.oauth.endpoints import bearer_check, oauth_api, oauth_shared_paths
from handlers.oauth.sign_in import page_routes
from handlers.oauth.site import Site
from handlers.web.app import Api, create_app
from handlers.web.errors import Unavailable
from handlers.web.request import Answer, Request
from handlers.web.steps.guard import guard
from handlers.web.steps.rate_limit import Limiter, Rate
from storage import users
from storage.boundary import is_failure
from storage.database import StoreFull, StoreUnavailable
from storage.users import User
from tests.engines import ENGINE, OpenStore
from tests.running import running

PASSWORD = "umbrella-kettle-violin"
REDIRECT = "https://app.example/callback"
ALL = "read:accounts read:transactions read:cashflow"
START = datetime.fromisoformat("2026-11-20T12:00:00")
FAST = Passwords(memory_kib=64, time_cost=1)

MAIN: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "t", "version": "1"},
    "components": {
        "securitySchemes": {
            "oauth2": {
                "type": "oauth2",
                "flows": {
                    "authorizationCode": {
                        "authorizationUrl": "/oauth/authorize",
                        "tokenUrl": "/oauth/token",
                        "scopes": {"read:accounts": "a", "read:transactions": "t", "read:cashflow": "c"},
                    }
                },
            }
        }
    },
    "paths": {
        f"/{name}": {
            "get": {
                "operationId": name,
                "security": [{"oauth2": [scope]}],
                "responses": {"200": {"description": "who"}},
            }
        }
        for name, scope in (("accounts", "read:accounts"), ("cashflow", "read:cashflow"))
    },
}


def who(request: Request) -> Answer:
    return Answer(body={"user": request.principal.user_id, "scopes": sorted(request.principal.scopes)})


@dataclass
class Clock:
    moment: datetime = START
    started: float | None = None

    def __call__(self) -> datetime:
        passed = time.monotonic() - self.started if self.started is not None else 0.0
        return self.moment + timedelta(seconds=passed)

    def run(self) -> None:
        """From now on it keeps pace with the real one, as SDKs compare real instants."""
        self.started = time.monotonic()

    def forward(self, **parts: float) -> None:
        self.moment += timedelta(**parts)


@dataclass
class World:
    """Everything a test needs: `http` is a program, `browser` keeps cookies and never follows redirects."""

    clock: Clock
    database: OpenStore
    server: AuthorizationServer
    app: Any
    http: TestClient
    user: User
    other: User
    browsers: list[TestClient] = field(default_factory=list)

    def browser(self, **headers: str) -> "Browser":
        client = TestClient(self.app, base_url=self.server.policy.public_url, follow_redirects=False, headers=headers)
        self.browsers.append(client)
        return Browser(self, client)

    def register(self, *redirect_uris: str, **more: Any) -> str:
        answer = self.http.post(
            "/oauth/register",
            json={"client_name": "Budget", "redirect_uris": list(redirect_uris or (REDIRECT,)), **more},
        )
        assert answer.status_code == 201, answer.text
        client_id: str = answer.json()["client_id"]
        return client_id

    def tokens(self, client_id: str | None = None, *, scope: str = ALL, name: str = "alice") -> dict[str, Any]:
        """The token answer of one whole flow."""
        client_id = client_id or self.register()
        code, verifier = self.browser().code(client_id, scope=scope, name=name)
        answer = self.redeem(code, verifier, client_id)
        assert answer.status_code == 200, answer.text
        return {**answer.json(), "client_id": client_id}

    def redeem(self, code: str, verifier: str, client_id: str, **more: str) -> Any:
        form = {"grant_type": "authorization_code", "code": code, "client_id": client_id, "code_verifier": verifier}
        return self.http.post("/oauth/token", data={**form, "redirect_uri": REDIRECT, **more})

    def refresh(self, token: str, client_id: str, **more: str) -> Any:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client_id}
        return self.http.post("/oauth/token", data={**form, **more})

    def api(self, access_token: str, path: str = "/api/v1/accounts") -> Any:
        return self.http.get(path, headers={"Authorization": f"Bearer {access_token}"})


class Browser:
    """A person's browser."""

    def __init__(self, world: World, client: TestClient) -> None:
        self.world = world
        self.client = client

    def authorize(self, client_id: str, **more: str) -> Any:
        parameters = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": REDIRECT,
            "scope": ALL,
            "state": "st",
            "code_challenge": challenge_of("v" * 43),
            "code_challenge_method": "S256",
            **more,
        }
        return self.client.get("/oauth/authorize", params={k: v for k, v in parameters.items() if v != "-"})

    def sign_in(self, page: Any, name: str = "alice", password: str = PASSWORD) -> Any:
        """Follow a redirect to the sign-in page, fill it, send it."""
        form = fields(self.client.get(page.headers["location"]).text)
        return self.client.post("/oauth/login", data={**form, "username": name, "password": password})

    def consent(self, page: Any, decision: str = "allow") -> Any:
        """Follow a redirect to the consent page and decide."""
        form = fields(self.client.get(page.headers["location"]).text)
        return self.client.post("/oauth/consent", data={**form, "decision": decision})

    def code(self, client_id: str, *, scope: str = ALL, name: str = "alice", **more: str) -> tuple[str, str]:
        """A code and its verifier, after sign-in and consent."""
        verifier = secrets.token_urlsafe(48)
        page = self.authorize(client_id, scope=scope, code_challenge=challenge_of(verifier), **more)
        assert page.status_code == 303, page.text
        if "/oauth/login" in page.headers["location"]:
            page = self.sign_in(page, name)
            assert page.status_code == 303, page.text
        answer = self.consent(page)
        return parameters(answer.headers["location"])["code"], verifier


def policy(*, public_url: str = "http://127.0.0.1:8000", auth_url: str = "", **settings: Any) -> Policy:
    """What the settings of the service are by default."""
    limits = {"registration_limit": (20, timedelta(hours=1)), "refresh_reuse_seconds": timedelta(seconds=60)}
    defaults = {"registration": "open", "shows_addresses": False, **limits}
    return Policy(public_url=public_url, auth_url=auth_url or public_url, **{**defaults, **settings})


def file_of(ring: KeyRing) -> Path:
    """The file in which the keys of these tests are kept."""
    assert ring.path is not None
    return ring.path


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def parameters(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query, keep_blank_values=True).items()}


def fields(html: str) -> dict[str, Any]:
    """What a browser sends of the page's first form, but for its buttons and what is typed; of the consent page what
    is ticked and selected there, too."""
    form = html.partition("<form")[2].partition("</form>")[0]
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))
    return {**hidden, **(shown_choices(html) if 'id="decision"' in html else {})}


def shown_choices(html: str) -> dict[str, Any]:
    """The boxes that are ticked, and how long is selected, as a browser would send them."""
    found = re.findall(r'<input type="checkbox"[^>]*name="([^"]+)" value="([^"]+)" checked>', html)
    lasts = re.findall(r'<option value="(\d+)" selected>', html) or re.findall(r'<option value="(\d+)"', html)
    others = {name: value for name, value in found if name != "account"}
    accounts = [value for name, value in found if name == "account"]
    return {"account": accounts, **others, "lasts": lasts[0]}


@pytest.fixture(scope="session")
def keys_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys"


Make = Callable[..., World]


def worlds(folder: Path, keys_folder: Path) -> Iterator[Make]:
    """Makes worlds with the given settings and closes them."""
    opened: list[World] = []

    def make(
        *,
        rate: Rate | None = None,
        passwords: Passwords = FAST,
        many: bool = False,
        provider: ProviderSettings | None = None,
        ask: AskProvider | None = None,
        **settings: Any,
    ) -> World:
        clock = Clock()
        database = stores.enter_context(ENGINE.passing_store(folder / f"store{len(opened)}.duckdb"))
        server = AuthorizationServer(
            database,
            keys_folder,
            policy(**settings),
            clock,
            passwords=passwords,
            has_other_processes=many,
            provider=provider,
            ask=ask,
        )
        hashed = passwords.hash(PASSWORD)
        person = [
            users.add(
                database, name=name, password_hash=hashed, has_subscription=True, home_currency="EUR", now=clock()
            )
            for name in ("alice", "bob")
        ]
        app = application(server, database, rate=rate)
        http = TestClient(app, base_url=server.policy.public_url, follow_redirects=False)
        world = World(clock, database, server, app, http, person[0], person[1])
        opened.append(world)
        return world

    with ExitStack() as stores:
        yield make
        for world in opened:
            for client in [world.http, *world.browsers]:
                client.close()


@pytest.fixture
def make_world(tmp_path: Path, keys_folder: Path) -> Iterator[Make]:
    """For tests of settings."""
    yield from worlds(tmp_path, keys_folder)


@pytest.fixture(scope="module")
def make_shared_world(tmp_path_factory: pytest.TempPathFactory, keys_folder: Path) -> Iterator[Make]:
    yield from worlds(tmp_path_factory.mktemp("world"), keys_folder)


@pytest.fixture(scope="module")
def world(make_shared_world: Make) -> World:
    """Shared by a module: every test brings its own client and browser, and leaves the clock alone."""
    return make_shared_world(registration_limit=(100_000, timedelta(hours=1)))


@pytest.fixture
def fresh(make_world: Make) -> World:
    """A world of one's own: for clocks, limits and throttles."""
    return make_world()


def surroundings(server: AuthorizationServer, database: OpenStore | None) -> Any:
    """What the pages read of an open service: no bank is connected, and none can be."""
    return SimpleNamespace(
        authorization=server,
        settings=SimpleNamespace(
            time_zone=ZoneInfo("Europe/Berlin"),
            simplefin_server=True,
            home_currency="EUR",
            data_dir=Path("no such folder"),
        ),
        connecting=SimpleNamespace(sources={}, disconnect=lambda _ended: ()),
        incarnation=SimpleNamespace(id="life"),
        households=SimpleNamespace(round=lambda _share_id: None),
        clock=SimpleNamespace(today=lambda: START.date(), now=lambda: START),
        scheduler=SimpleNamespace(last_round_at=START.timestamp()),
        of=lambda _user_id: database,
        backed_up_at=lambda: None,
        everybody=database,
        store=SimpleNamespace(is_shared=False, bytes=12_000_000),
    )


def application(
    server: AuthorizationServer,
    database: OpenStore | None = None,
    *,
    rate: Rate | None = None,
    extra: tuple[Api, ...] = (),
    is_clock_off: Callable[[], bool] = lambda: False,
) -> Any:
    import orjson

    limiter = Limiter(rate=rate)
    return create_app(
        is_failure=is_failure,
        contract=orjson.dumps(MAIN),
        operations={"accounts": who, "cashflow": who},
        guard=guard(bearer_check(server), public_url=server.policy.public_url, billing_url="https://billing.example/"),
        public_url=server.policy.public_url,
        limiter=limiter,
        extra_apis=[oauth_api(server, limiter=limiter, is_clock_off=is_clock_off), *extra],
        routes=page_routes(Site(surroundings(server, database), limiter=limiter)),
        shared_paths=oauth_shared_paths(server),
        unavailable={StoreUnavailable: Unavailable, StoreFull: Unavailable},
    )


@pytest.fixture
def live(make_world: Make) -> Iterator[World]:
    """The same behind a real socket, at `world.server.policy.public_url`, on the real clock's pace."""
    yield from behind_a_socket(make_world, "127.0.0.1")


@pytest.fixture
def live_at_localhost(make_world: Make) -> Iterator[World]:
    """The same under a name."""
    yield from behind_a_socket(make_world, "localhost")


def behind_a_socket(make_world: Make, host: str) -> Iterator[World]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        world = make_world(public_url=f"http://{host}:{listener.getsockname()[1]}")
        world.clock.run()
        with running(world.app, listener, log_level="error", lifespan="off"):
            yield world
