"""Behind a real nginx or Caddy with TLS, as docs/operations.md sets them up: every address can be followed."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.browsers import FULL, running_browser
from tests.service.conftest import Served, free_port, running

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SECONDS_MAX = 60.0
CALLBACK = "http://127.0.0.1:9/callback"
WELL_KNOWN = ("oauth-protected-resource/bank/api/v1", "oauth-authorization-server/bank")


@dataclass(frozen=True)
class Proxied:
    """A demo server behind nginx: `client` believes its certificate, `public` is where clients reach the service."""

    served: Served
    client: httpx.Client
    public: str

    @property
    def root(self) -> str:
        """The host, without the path."""
        return self.public.removesuffix("/bank")

    def get(self, address: str, user: str = "solo", **headers: str) -> httpx.Response:
        """A request with a token of this user, as a client of the internet makes it."""
        token = self.served.token(user)
        return self.client.get(
            urljoin(f"{self.public}/", address), headers={"Authorization": f"Bearer {token}", **headers}
        )


def certificate(folder: Path) -> ssl.SSLContext:
    """Writes a certificate for 127.0.0.1 and its key; what believes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a proxy of the tests")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "bank.example.org.pem").write_bytes(pem)
    (folder / "bank.example.org.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return ssl.create_default_context(cadata=pem.decode())


@contextmanager
def nginx(folder: Path, servers: str, port: int) -> Iterator[None]:
    """nginx with this configuration, until the block ends."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.fail("nginx is missing: apt-get install nginx-light (docs/testing.md)")
    kept = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}"
        f" http {{ access_log off; {kept} {servers} }}"
    )
    with started([program, "-p", str(folder), "-c", configuration, "-e", folder / "errors"], folder / "errors", port):
        yield


@contextmanager
def caddy(folder: Path, site: str, port: int) -> Iterator[None]:
    """Caddy with this configuration, until the block ends."""
    program = shutil.which("caddy")
    if program is None:
        pytest.fail("caddy is missing: apt-get install caddy (docs/testing.md)")
    configuration = folder / "Caddyfile"
    configuration.write_text(f"{{\n admin off\n auto_https disable_redirects\n skip_install_trust\n}}\n{site}")
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [program, "run", "--config", str(configuration), "--adapter", "caddyfile"]
    with started(command, folder / "errors", port, **home):
        yield


@contextmanager
def started(command: Sequence[str | Path], errors: Path, port: int, **environment: str) -> Iterator[None]:
    """A proxy that listens at this port, until the block ends."""
    with errors.open("ab") as log:
        process = subprocess.Popen(command, stderr=log, env={**os.environ, **environment})
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except ConnectionRefusedError:
                assert process.poll() is None, errors.read_text()
                assert time.monotonic() < deadline, "the proxy did not start"
                time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)


def documented(folder: Path, *, port: int, behind: int) -> str:
    """The server block of docs/operations.md for nginx, with ports and files of the test."""
    block = blocks("nginx")[0]
    return (
        block.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        .replace("/etc/ssl/", f"{folder}/")
        .replace("http://127.0.0.1:8000", f"http://127.0.0.1:{behind}")
    )


def blocks(language: str) -> list[str]:
    """What docs/operations.md shows in the language of a proxy."""
    return re.findall(rf"```{language}\n(.+?)```", OPERATIONS.read_text(), re.DOTALL)


def compressing(block: str, *, behind: int) -> str:
    """The same with what it takes to compress bank data."""
    own = "".join(blocks("nginx")[1:]).replace("http://127.0.0.1:8000", f"http://127.0.0.1:{behind}")
    return block.replace("location / {", f"location / {{ {own}")


def documented_caddy(folder: Path, path: str, *, port: int, behind: int) -> str:
    """The site of docs/operations.md for Caddy, compressing, with ports and files of the test, under /bank or not."""
    block, under_a_path = blocks("caddy")
    if path:
        block = block.replace("reverse_proxy 127.0.0.1:8000", under_a_path)
    (line,) = re.findall(r"`(encode .+?)` in Caddy", OPERATIONS.read_text())
    pem, key = folder / "bank.example.org.pem", folder / "bank.example.org.key"
    return block.replace("bank.example.org {", f"https://127.0.0.1:{port} {{\n    tls {pem} {key}\n    {line}").replace(
        "127.0.0.1:8000", f"127.0.0.1:{behind}"
    )


def under(path: str, block: str) -> str:
    """The same for a service under a path, which the proxy takes off; two documents stand at the root of the host."""
    (passed,) = re.findall(r"proxy_pass \S+;", block)
    wells = "".join(f"location = /.well-known/{name} {{ {passed} }}" for name in WELL_KNOWN)
    block = block.replace(passed, passed.replace(";", "/;"))
    return block.replace("location / {", f"{wells} location {path}/ {{")


Behind = Callable[..., Proxied]


@pytest.fixture(scope="module")
def behind(copied: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    """A demo server behind a proxy, under this path of the public address: one for all tests that ask for the same."""
    with ExitStack() as stack:

        @cache
        def begin(path: str, proxy: str, **settings: str) -> Proxied:
            folder = tmp_path_factory.mktemp(proxy)
            port = free_port()
            public = f"https://127.0.0.1:{port}{path}"
            told = {"PUBLIC_URL": public, "TRUSTED_PROXIES": "127.0.0.1", **settings}
            served = stack.enter_context(running(copied(), settings=told, is_measured=False))
            believed = certificate(folder)
            if proxy == "caddy":
                stack.enter_context(caddy(folder, documented_caddy(folder, path, port=port, behind=served.port), port))
            else:
                block = documented(folder, port=port, behind=served.port)
                block = under(path, block) if path else compressing(block, behind=served.port)
                stack.enter_context(nginx(folder, block, port))
            client = stack.enter_context(httpx.Client(verify=believed, trust_env=False, timeout=60))
            return Proxied(served, client, public)

        yield begin


@pytest.mark.requirement("proxy.addresses")
@pytest.mark.parametrize(("path", "proxy"), [("", "nginx"), ("/bank", "nginx"), ("/bank", "caddy")])
@pytest.mark.long
def test_every_address_that_is_sent_leads_somewhere_behind_the_proxy(path: str, proxy: str, behind: Behind) -> None:
    proxied = behind(path, proxy)
    first = proxied.get("api/v1/transactions?perPage=100")
    total, seen, page = first.json()["pagination"]["total"], 0, first
    while True:
        seen += len(page.json()["transactions"])
        if "next" not in page.links:
            break
        page = proxied.get(urljoin(str(page.url), page.links["next"]["url"]))
    assert seen == total > 100

    long = proxied.get(f"api/v1/transactions?page=2&perPage=1&unknown={'x' * 6_000}")
    assert (long.status_code, proxied.get(urljoin(str(long.url), long.links["next"]["url"])).status_code) == (200, 200)

    subscriptions = proxied.get("api/v1/subscriptions")
    details = proxied.get(urljoin(str(subscriptions.url), subscriptions.links["alternate"]["url"]))
    assert len(details.json()["subscriptions"]) == len(subscriptions.json()["subscriptions"]) > 0

    token = proxied.served.token("solo")
    started = proxied.client.post(f"{proxied.public}/api/v1/sync", headers={"Authorization": f"Bearer {token}"})
    job = proxied.get(urljoin(str(started.url), started.headers["location"]))
    assert job.json()["syncId"] == started.json()["syncJobs"][0]["syncId"]

    challenge = proxied.client.get(f"{proxied.public}/api/v1/accounts").headers["www-authenticate"]
    resource = proxied.client.get(re.findall(r'resource_metadata="(.+?)"', challenge)[0]).json()
    assert resource["resource"] == f"{proxied.public}/api/v1"
    server = proxied.client.get(f"{proxied.root}/.well-known/oauth-authorization-server{path}")
    assert server.json()["issuer"] == proxied.public
    assert proxied.client.get(server.json()["jwks_uri"]).json()["keys"]
    account = proxied.client.get(f"{proxied.public}/account", follow_redirects=True)
    assert (account.status_code, str(account.url)) == (200, f"{proxied.public}/oauth/login")


@pytest.mark.requirement("proxy.compression")
@pytest.mark.parametrize("proxy", ["nginx", "caddy"])
@pytest.mark.long
def test_proxies_compress_bank_data_and_no_page_with_a_form_and_say_that_tls_stays(proxy: str, behind: Behind) -> None:
    proxied = behind("", proxy)
    page = proxied.get("api/v1/transactions?perPage=50", **{"Accept-Encoding": "gzip"})
    assert (page.status_code, page.headers["content-encoding"], page.headers["vary"]) == (
        200,
        "gzip",
        "Accept-Encoding",
    )
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    form = proxied.client.get(f"{proxied.public}/oauth/login", headers={"Accept-Encoding": "gzip"})
    assert (form.status_code, len(form.content) > 1024) == (200, True)
    assert "content-encoding" not in form.headers
    contract = proxied.client.get(f"{proxied.public}/api/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert contract.headers["etag"].endswith('-gzip"')
    token = proxied.served.token("solo", "write:imports")
    upload = proxied.client.post(
        f"{proxied.public}/api/v1/imports?filename=a.xml&dryRun=true",
        content=b"x" * 100_000,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"},
    )
    assert (upload.status_code, upload.json()["format"]) == (200, None)
    too_large = proxied.client.post(f"{proxied.public}/oauth/register", content=b"x" * 100_000)
    assert too_large.status_code == 413


@pytest.mark.requirement("proxy.client-address")
@pytest.mark.parametrize("proxy", ["nginx", "caddy"])
@pytest.mark.long
def test_the_rate_limit_counts_the_client_that_the_proxy_names_whatever_it_says_itself(
    proxy: str, behind: Behind
) -> None:
    proxied = behind("", proxy, RATE_LIMIT="3/60s")
    said = [proxied.get("api/v1/accounts", **{"X-Forwarded-For": f"203.0.113.{number}"}) for number in range(4)]
    assert [answer.status_code for answer in said] == [200, 200, 200, 429]


@pytest.mark.requirement("proxy.addresses")
@pytest.mark.parametrize("path", ["", "/bank"])
@pytest.mark.long
def test_an_unknown_client_is_let_in_behind_the_proxy_by_a_person_with_a_browser(path: str, behind: Behind) -> None:
    proxied, client = behind(path, "nginx"), {"redirect_uris": [CALLBACK], "client_name": "Ledger"}
    server = proxied.client.get(f"{proxied.root}/.well-known/oauth-authorization-server{path}").json()
    registered = proxied.client.post(server["registration_endpoint"], json=client).json()
    verifier = "a-verifier-of-forty-three-characters-or-more"
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
    asked = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": CALLBACK,
        "scope": "read:accounts",
        "state": "s1",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    complaints: list[str] = []
    with running_browser(FULL) as browser:  # the shell stops before an address where nobody listens
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.route(f"{CALLBACK}**", lambda route: route.fulfill(content_type="text/html", body="back in the app"))
        page.goto(f"{server['authorization_endpoint']}?{urlencode(asked)}")
        page.locator("input:focus").wait_for()  # Chromium complains where somebody types before its autofocus
        page.fill("#username", "solo")
        page.fill("#password", "demo-solo-2024")
        page.keyboard.press("Enter")
        page.click("button[value=allow]")
        page.wait_for_url(f"{CALLBACK}**")
        code = parse_qs(urlsplit(page.url).query)["code"][0]
        granted = proxied.client.post(
            server["token_endpoint"],
            data={
                "grant_type": "authorization_code",
                "code": code,
                "client_id": registered["client_id"],
                "redirect_uri": CALLBACK,
                "code_verifier": verifier,
            },
        ).json()
        page.goto(f"{proxied.public}/account")
        assert "Ledger" in page.inner_text("main")
        page.goto(f"{proxied.public}/docs#/Accounts/listAccounts")
        page.click("text=Try it out")
        with page.expect_response(f"{proxied.public}/api/v1/accounts") as tried:
            page.click("text=Execute")
        assert tried.value.status == 401  # the page was not authorized
    assert [told for told in complaints if "401" not in told] == []
    bearer = {"Authorization": f"Bearer {granted['access_token']}"}
    assert len(proxied.client.get(f"{proxied.public}/api/v1/accounts", headers=bearer).json()["accounts"]) == 1


@pytest.mark.requirement("proxy.addresses")
@pytest.mark.long
def test_the_page_and_its_files_are_found_below_the_path_of_the_proxy(behind: Behind) -> None:
    proxied = behind("/bank", "nginx")
    complaints: list[str] = []
    with running_browser() as browser:
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{proxied.public}/months?month=2026-01")
        page.locator("input:focus").wait_for()  # Chromium complains where somebody types before its autofocus
        page.fill("#username", "solo")
        page.fill("#password", "demo-solo-2024")
        page.keyboard.press("Enter")
        page.locator(".figures data").first.wait_for()
        assert page.url == f"{proxied.public}/months?month=2026-01"
        page.locator("a[href='/bank/transactions']").first.click()
        page.locator(".long-list a").first.wait_for()
        assert page.url == f"{proxied.public}/transactions"
    assert complaints == []


@pytest.mark.requirement("proxy.addresses")
@pytest.mark.long
def test_the_worker_of_the_page_reaches_no_further_than_the_path_of_the_proxy(behind: Behind) -> None:
    proxied = behind("/bank", "nginx")
    with running_browser(FULL, "--ignore-certificate-errors") as browser:  # for workers a context cannot ignore them
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(f"{proxied.public}/notices")
        page.locator("input:focus").wait_for()
        page.fill("#username", "solo")
        page.fill("#password", "demo-solo-2024")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Add this browser").click()
        page.context.grant_permissions(["notifications"], origin=proxied.root)
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_text("Your browser did not reach the push service of its maker.").wait_for()
        told = page.evaluate(
            "async () => (({ scope, active }) => [scope, active.scriptURL])(await navigator.serviceWorker.ready)"
        )
        assert told == [f"{proxied.public}/", f"{proxied.public}/worker.js"]
        assert page.evaluate("async () => (await navigator.serviceWorker.getRegistration('/')) === undefined")
        manifest = page.context.new_cdp_session(page).send("Page.getAppManifest")
        assert (manifest["errors"], manifest["manifest"]["startUrl"]) == ([], f"{proxied.public}/")
