"""Signing in over real sockets at a provider that others wrote, the certified oidc-provider, as a confidential and as a
public client; and how a provider is asked."""

import html
import os
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from msgspec import structs
from playwright.sync_api import Page

from auth.people.provider_metadata import ProviderAway, ProviderQuery
from handlers.work import identity_provider
from handlers.work.identity_provider import Asking
from storage import users
from tests.browsers import running_browser
from tests.oauth.conftest import PASSWORD, World, fields
from tests.oauth.openid.provider import settings
from tests.oauth.rfc7591.test_client_documents import certificate
from tests.running import running

SHOTS = os.environ.get("BANKDATA_TEST_SHOTS")  # a folder: screenshots for people to look at

FOLDER = Path(__file__).parent / "npm"
INSTALL = Path(__file__).parents[2] / "clients" / "npm" / "install.sh"
SECRET = "a secret: with/every+sign%"


@contextmanager
def oidc_provider(port: int, redirect_uri: str, kind: str) -> Iterator[None]:
    folder = subprocess.run(["bash", str(INSTALL), str(FOLDER)], check=True, capture_output=True, text=True)
    script = Path(folder.stdout.strip()) / "provider.mjs"
    script.write_text((FOLDER / "provider.mjs").read_text("utf-8"), "utf-8")
    command = ["node", str(script), str(port), redirect_uri, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            while process.stdout.readline() != "ready\n":
                assert process.poll() is None
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def follow(client: httpx.Client, address: str) -> httpx.Response:
    """What a browser gets in the end that goes to this address."""
    for _ in range(20):
        answer = client.get(address)
        if not answer.is_redirect:
            return answer
        address = urljoin(address, answer.headers["location"])
    raise AssertionError(f"too many redirects, the last to {urlsplit(address).path}")


def at(world: World, path: str) -> str:
    return world.server.policy.public_url + path


@pytest.fixture
def home(make_world: Callable[..., World]) -> Iterator[Callable[[str], tuple[World, httpx.Client]]]:
    """A world behind a socket beside a provider, and a browser that keeps the cookies of both."""
    with ExitStack() as stack:

        def make(kind: str) -> tuple[World, httpx.Client]:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            address, port = f"http://127.0.0.1:{listener.getsockname()[1]}", free_port()
            stack.enter_context(oidc_provider(port, f"{address}/oauth/oidc/callback", kind))
            provider = settings(
                issuer=f"http://127.0.0.1:{port}/",
                client_secret="" if kind == "public" else SECRET,
                takes_new_people=True,
                groups_claim="groups",
                groups=frozenset({"family"}),
            )
            ask = Asking(None)
            stack.callback(ask.close)
            world = make_world(public_url=address, provider=provider, ask=ask)
            world.clock.moment = datetime.now(UTC).replace(tzinfo=None)
            world.clock.run()
            stack.enter_context(running(world.app, listener, log_level="error", lifespan="off"))
            return world, stack.enter_context(httpx.Client(timeout=30))

        yield make


@pytest.mark.requirement("oauth.provider_real")
@pytest.mark.parametrize("kind", ["client_secret_basic", "client_secret_post", "public"])
def test_a_person_comes_in_proves_who_they_are_and_is_signed_out_from_there(
    home: Callable[[str], tuple[World, httpx.Client]], kind: str
) -> None:
    world, client = home(kind)
    page = follow(client, at(world, "/oauth/oidc"))
    assert (page.status_code, "eva" in page.text, page.url.path) == (200, True, "/account")
    (eva,) = [each for each in users.everyone(world.database) if each.name == "eva"]
    assert world.server.provider is not None
    identity = world.server.provider.identity_of(eva.id)
    assert identity is not None
    assert (identity.subject, identity.shown) == ("eva-7", "eva")
    proven = follow(client, at(world, "/account/prove?back=/account/provider"))
    assert (proven.status_code, proven.url.path) == (200, "/account/provider")
    if kind != "client_secret_basic":
        return
    form = fields(page.text[page.text.index("/account/sign-out") - 30 :])
    out = client.post(at(world, "/account/sign-out"), data=form)
    (address,) = re.findall(r'href="(http://127[^"]+)" rel="noreferrer"', out.text)
    assert follow(client, at(world, "/account")).url.path == "/oauth/login"
    again = follow(client, at(world, "/oauth/oidc"))
    assert again.url.path == "/account", "still signed in there"
    asked = client.get(html.unescape(address))
    fields_there = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', asked.text))
    action = re.findall(r'action="([^"]+)"', asked.text)[0]
    client.post(action, data={**fields_there, "logout": "yes"})
    assert follow(client, at(world, "/account")).url.path == "/oauth/login", "signed out by the back channel"


@pytest.mark.requirement("oauth.provider_real")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", "sends on"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "fault"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + b"x" * 400_000, "more than 262144"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx", "damaged"),
    ],
    ids=["a redirect", "a fault", "too much", "packed"],
)
def test_a_provider_that_sends_on_floods_or_fails_is_away(answer: bytes, said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _address = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        ask = Asking(None)
        with closing(ask), pytest.raises(ProviderAway, match=said):
            ask(ProviderQuery(address=f"http://127.0.0.1:{listener.getsockname()[1]}/x"))
        thread.join(10)


@pytest.mark.requirement("oauth.provider_real")
def test_a_slow_provider_is_given_up_and_other_machines_in_clear_are_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patience = structs.replace(identity_provider.PATIENCE, whole=0.2)
    monkeypatch.setattr(identity_provider, "PATIENCE", patience)
    with socket.create_server(("127.0.0.1", 0)) as listener, closing(Asking(None)) as ask:
        with pytest.raises(ProviderAway, match="in time"):
            ask(ProviderQuery(address=f"http://127.0.0.1:{listener.getsockname()[1]}/x"))
        for address in ("http://id.example/x", "http://169.254.169.254/latest", "ftp://id.example/x"):
            with pytest.raises(ProviderAway, match="is not asked"):
                ask(ProviderQuery(address=address))


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("oauth.provider_real")
def test_in_a_browser_somebody_links_signs_in_and_signs_out_without_one_policy_violation(
    home: Callable[[str], tuple[World, httpx.Client]],
) -> None:
    world, _client = home("client_secret_post")
    complaints: list[str] = []
    with running_browser() as chromium:
        context = chromium.new_context(locale="de-DE", color_scheme="dark", viewport={"width": 375, "height": 720})
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(at(world, "/account/provider"))
        page.fill("#username", "alice")
        page.fill("#password", PASSWORD)
        page.get_by_role("button", name="Anmelden", exact=True).click()
        page.fill("#current", PASSWORD)
        page.get_by_role("button", name="Verknüpfen").click()
        page.get_by_role("link", name="Weiter").click()
        page.get_by_text("Bei Authelia sind Sie als eva angemeldet").wait_for()
        shot(page, "provider-confirm")
        page.get_by_role("button", name="Das bin ich: verknüpfen").click()
        page.get_by_text("Sie melden sich bei Authelia als eva an.").wait_for()
        page.goto(at(world, "/account"))
        page.click('form[action$="/sign-out"] button')
        page.goto(at(world, "/oauth/login"))
        shot(page, "provider-login")
        page.get_by_role("link", name="Mit Authelia anmelden").click()
        page.wait_for_url(at(world, "/account"))
        page.get_by_text("alice", exact=True).first.wait_for()
        page.click('form[action$="/sign-out"] button')
        page.get_by_role("link", name="Auch bei Authelia abmelden").wait_for()
        shot(page, "provider-out")
        context.close()
    assert complaints == []


@pytest.mark.requirement("oauth.provider_real")
def test_a_certificate_counts_if_the_system_or_the_file_of_the_settings_knows_its_authority(tmp_path: Path) -> None:
    pem, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    body = b'{"issuer": "https://localhost"}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(2):
                connection, _address = listener.accept()
                with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                    secured.recv(65_536)
                    secured.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        query = ProviderQuery(address=f"https://localhost:{listener.getsockname()[1]}/x")
        with closing(Asking(None)) as ask, pytest.raises(ProviderAway, match="cannot be reached"):
            ask(query)
        with closing(Asking(pem)) as ask:
            assert ask(query).body == body
        thread.join(10)
    with closing(Asking(tmp_path / "none.pem")) as ask, pytest.raises(ProviderAway):
        ask(query)
