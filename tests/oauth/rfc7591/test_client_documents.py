"""Apps with a document in place of a registration: fetched after sign-in only, never from inner addresses, checked."""

import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.testclient import TestClient

from auth import metadata
from auth.apps import client_documents
from auth.apps.client_documents import Document, DocumentRefused, client_of_document, is_document_address, lifetime
from connectors.connector import ProviderUnavailable
from connectors.reference import checked_download
from connectors.reference.checked_download import download_checked, is_allowed
from handlers.oauth.cookies import WAITING_LENGTH_MAX
from handlers.server import application
from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from tests.oauth.conftest import ALL, REDIRECT, challenge_of, fields

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ADDRESS = "https://app.example/oauth/client.json"
GOOD = {
    "client_id": ADDRESS,
    "client_name": "Chat",
    "redirect_uris": [REDIRECT],
    "token_endpoint_auth_method": "none",
}
PASSWORD = "umbrella-kettle-violin"


def document(told: Any, media_type: str = "application/json") -> Document:
    body = told if isinstance(told, bytes) else json.dumps(told).encode()
    return Document(body=body, media_type=media_type, cache_control="")


@pytest.mark.requirement("oauth.client_documents")
def test_a_document_says_what_a_registration_would() -> None:
    client = client_of_document(ADDRESS, document(GOOD), now=NOW)
    assert (client.id, client.name, client.redirect_uris) == (ADDRESS, "Chat", (REDIRECT,))
    assert client.registered_by == "document"


@pytest.mark.requirement("oauth.client_documents")
@pytest.mark.parametrize(
    "bad",
    [
        document(GOOD, "text/html"),
        document(b"\xff"),
        document(b""),
        document([GOOD]),
        document({**GOOD, "client_id": ADDRESS + "/"}),
        document({name: GOOD[name] for name in GOOD if name != "client_id"}),
        document({**GOOD, "client_secret": "x"}),
        document({**GOOD, "client_secret_expires_at": 0}),
        document({**GOOD, "token_endpoint_auth_method": "client_secret_basic"}),
        document({**GOOD, "token_endpoint_auth_method": "private_key_jwt"}),
        document({**GOOD, "token_endpoint_auth_method": None}),
        document({**GOOD, "redirect_uris": []}),
        document({name: GOOD[name] for name in GOOD if name != "redirect_uris"}),
        document({**GOOD, "redirect_uris": ["http://app.example/back"]}),
        document({**GOOD, "redirect_uris": ["javascript:alert(1)"]}),
        document({**GOOD, "redirect_uris": [REDIRECT] * 21}),
        document({**GOOD, "client_name": "Chat\u202e"}),
        document({**GOOD, "client_name": "x" * 201}),
        document({**GOOD, "grant_types": ["implicit"]}),
    ],
)
def test_a_bad_document_is_refused(bad: Document) -> None:
    with pytest.raises(DocumentRefused):
        client_of_document(ADDRESS, bad, now=NOW)


@pytest.mark.requirement("oauth.client_documents")
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (ADDRESS, True),
        ("https://app.example:8443/client", True),
        ("http://app.example/client", False),
        ("https://app.example", False),
        ("https://app.example/", False),
        ("https://app.example/a/../client", False),
        ("https://app.example/a/%2E%2e/client", False),
        ("https://app.example/./client", False),
        ("https://app.example/client#x", False),
        ("https://user@app.example/client", False),
        ("https://:x@app.example/client", False),
        ("https:///client", False),
        ("https://app.example:port/client", False),
        ("https://app.example/cli ent", False),
        ("https://app.example/" + "x" * 200, False),
    ],
)
def test_which_ids_are_addresses_of_documents(address: str, expected: bool) -> None:
    assert is_document_address(address) is expected


@pytest.mark.requirement("oauth.client_documents")
@pytest.mark.parametrize(
    "inner",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
    ],
)
def test_special_use_addresses_are_never_asked(inner: str) -> None:
    assert not is_allowed(ipaddress.ip_address(inner), False, False)


@pytest.mark.requirement("oauth.client_documents")
def test_public_addresses_are_asked_and_others_where_that_was_said() -> None:
    assert is_allowed(ipaddress.ip_address("9.9.9.9"), False, False)
    assert is_allowed(ipaddress.ip_address("2620:fe::fe"), False, False)
    assert is_allowed(ipaddress.ip_address("::1"), True, False)
    assert not is_allowed(ipaddress.ip_address("10.0.0.1"), True, False)
    assert is_allowed(ipaddress.ip_address("10.0.0.1"), False, True)


@pytest.mark.requirement("oauth.client_documents")
@pytest.mark.parametrize(
    ("cache_control", "minutes"),
    [("", 5), ("max-age=60", 5), ("public, max-age=3600", 60), ("max-age=999999", 1440), ("no-store, max-age=3600", 5)],
)
def test_a_document_is_remembered_for_five_minutes_to_a_day(cache_control: str, minutes: int) -> None:
    assert lifetime(cache_control) == timedelta(minutes=minutes)


class Host:
    """An https server of one app on this machine; `answer` is status, headers and body. Where it does not go on, it
    falls silent after that, or dribbles."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.dribbles = False
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.answer: tuple[int, dict[str, str], bytes] = (404, {}, b"")
        host = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.asked.append(self.path)
                status, headers, body = host.answer
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()
                with suppress(OSError):  # the other side has had enough
                    while host.dribbles and not host.goes_on.wait(0.01):
                        self.wfile.write(b" ")
                host.goes_on.wait(60)

            def log_message(self, *_ignored: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate(folder))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"https://localhost:{self.server.server_address[1]}/client.json"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def shows(self, **told: Any) -> None:
        self.answer = (200, {}, json.dumps({**GOOD, "client_id": self.address, **told}).encode())


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "host.pem", folder / "host.key"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    host = Host(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(folder / "host.pem"))
        yield host
    host.server.shutdown()
    host.server.server_close()


@pytest.fixture(scope="module")
def site(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A service on this machine that takes documents of everybody."""
    settings = load({"BANKDATA_CLIENT_DOCUMENTS": "on"}, data_dir=tmp_path_factory.mktemp("documents"))
    services = open_services(settings)
    users.add(
        services.everybody,
        name="alice",
        password_hash=services.authorization.passwords.hash(PASSWORD),
        has_subscription=True,
        home_currency="EUR",
        now=services.clock.now_in_utc(),
    )
    yield services, application(services)
    services.close()


def refusal(address: str, *, asks_loopback: bool = True) -> str:
    """Why nothing is fetched from there."""
    with pytest.raises(ProviderUnavailable) as refused:
        download_checked(address, asks_loopback=asks_loopback)
    return str(refused.value)


def asked(browser: TestClient, client_id: str, **more: str) -> Any:
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "scope": ALL,
        "state": "a b&c",
        "code_challenge": challenge_of("v" * 43),
        "code_challenge_method": "S256",
        **more,
    }
    return browser.get("/oauth/authorize", params=query)


@pytest.mark.requirement("oauth.client_documents")
def test_nobody_is_asked_before_sign_in_and_consent_names_the_host(site: Any, host: Host) -> None:
    services, app = site
    announced = metadata.server_metadata(services.authorization.policy)
    assert announced["client_id_metadata_document_supported"] is True
    host.shows()
    host.asked.clear()
    browser = TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False)
    page = asked(browser, host.address)
    assert page.headers["location"].endswith("/oauth/login")
    form = fields(browser.get(page.headers["location"]).text)
    wrong = browser.post("/oauth/login", data={**form, "username": "alice", "password": "wrong"})
    assert (wrong.status_code, host.asked) == (400, [])
    signed_in = browser.post("/oauth/login", data={**fields(wrong.text), "username": "alice", "password": PASSWORD})
    assert host.asked == []
    page = browser.get(signed_in.headers["location"])
    assert "/oauth/consent" in page.headers["location"]
    consent = browser.get(page.headers["location"])
    assert host.asked == ["/client.json"]
    assert "Described by localhost." in consent.text
    answer = browser.post("/oauth/consent", data={**fields(consent.text), "decision": "allow"})
    assert "code=" in answer.headers["location"]
    assert "state=a+b%26c" in answer.headers["location"].replace("%20", "+")
    assert "/oauth/consent" in asked(browser, host.address).headers["location"]
    assert len(host.asked) == 1  # remembered

    # What a person was shown is no longer what the app says of itself: the answer counts no more
    waiting = browser.get(asked(browser, host.address).headers["location"])
    host.shows(client_name="Somebody else")
    services.clock.offset += timedelta(minutes=6)
    assert "Somebody else" in browser.get(asked(browser, host.address).headers["location"]).text
    over = browser.post("/oauth/consent", data={**fields(waiting.text), "decision": "allow"})
    assert (over.status_code, "location" in over.headers) == (400, False)

    # An error is told, and never remembered
    services.clock.offset += timedelta(minutes=6)
    host.answer = (500, {}, b"")
    assert asked(browser, host.address).status_code == 400
    host.shows()
    assert asked(browser, host.address).status_code == 303


@pytest.mark.requirement("oauth.client_documents")
def test_a_request_too_long_to_wait_for_a_sign_in_is_refused(site: Any, host: Host) -> None:
    browser = TestClient(site[1], base_url="http://127.0.0.1:8000", follow_redirects=False)
    assert asked(browser, host.address, more="s" * (WAITING_LENGTH_MAX - 500)).status_code == 303
    assert asked(browser, host.address, more="s" * WAITING_LENGTH_MAX).status_code == 400


@pytest.mark.requirement("oauth.client_documents")
def test_a_document_that_is_as_it_was_changes_nothing_and_so_many_are_remembered(
    site: Any, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, _ = site
    documents = services.authorization.documents
    monkeypatch.setattr(client_documents, "REMEMBERED_MAX", 1)
    host.shows()
    before = documents.client(host.address)
    host.asked.clear()
    services.clock.offset += timedelta(minutes=6)
    assert documents.client(host.address) == before
    assert (host.asked, len(documents._until)) == (["/client.json"], 1)


@pytest.mark.requirement("oauth.client_documents")
def test_an_app_whose_host_is_trusted_no_more_begins_nothing_new(
    site: Any, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, app = site
    host.shows()
    services.authorization.documents.client(host.address)
    trusted = replace(services.authorization.policy, document_hosts=frozenset({"app.example"}))
    monkeypatch.setattr(services.authorization.documents, "_policy", trusted)
    browser = TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False)
    assert asked(browser, host.address).status_code == 400


@pytest.mark.requirement("oauth.client_documents")
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            (302, {"Location": "https://localhost/other"}, b""),
            "localhost answered with status 302 instead of the document.",
        ),
        ((404, {}, b"{}"), "localhost answered with status 404 instead of the document."),
        ((206, {}, b"{}"), "localhost answered with status 206 instead of the document."),
        ((200, {}, b" " * 5121), "localhost sent a document of more than 5120 bytes."),
        ((200, {"Content-Encoding": "gzip"}, b"{}"), "localhost sent a packed document, which was not asked for."),
    ],
)
def test_only_a_small_whole_answer_is_taken(
    host: Host, answer: tuple[int, dict[str, str], bytes], sentence: str
) -> None:
    host.answer = (200, {"Content-Encoding": "identity"}, b" " * 5120)
    assert len(download_checked(host.address, asks_loopback=True).body) == 5120
    host.answer = answer
    assert refusal(host.address) == sentence


@pytest.mark.requirement("oauth.client_documents")
def test_inner_hosts_other_ports_and_slow_ones_are_not_asked(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.shows()
    host.asked.clear()
    assert download_checked(host.address, asks_private=True).media_type == "application/json"
    for address, sentence in (
        (host.address, "localhost is no host on the public internet."),
        ("https://localhost/x", "localhost is no host on the public internet."),
        ("https://10.0.0.1/x", "10.0.0.1 is no host on the public internet."),
        ("https://[::1]/x", "::1 is no host on the public internet."),
        ("https://2130706433/x", "2130706433 is no host on the public internet."),
        ("https://9.9.9.9:8443/x", "9.9.9.9 is asked at port 443 only."),
    ):
        assert refusal(address, asks_loopback=False) == sentence
    assert refusal("https://10.0.0.1/x") == "10.0.0.1 is no host on the public internet."
    assert len(host.asked) == 1
    monkeypatch.setattr(checked_download, "SECONDS_MAX", 0.5)
    for dribbles in (False, True):
        monkeypatch.setattr(host, "dribbles", dribbles)
        host.goes_on.clear()
        assert refusal(host.address) in (
            "localhost did not answer within 0.5 seconds.",
            "localhost did not answer as it should.",  # the system may see it first
        )
        host.goes_on.set()


@pytest.mark.requirement("oauth.client_documents")
def test_a_host_that_takes_all_the_time_to_be_reached_is_asked_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 0.0

    def reached_late(*arguments: Any, **named: Any) -> socket.socket:
        nonlocal moment
        moment = checked_download.SECONDS_MAX
        return reached(*arguments, **named)

    reached = socket.create_connection
    monkeypatch.setattr(checked_download, "time", SimpleNamespace(monotonic=lambda: moment))
    monkeypatch.setattr(socket, "create_connection", reached_late)
    host.shows()
    host.asked.clear()
    assert refusal(host.address) == "localhost did not answer as it should."
    assert host.asked == []


@pytest.mark.requirement("oauth.client_documents")
def test_a_document_that_is_whole_when_the_time_is_over_is_late(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 0.0

    def read_to_the_end(answer: HTTPResponse, count: int) -> bytes:
        nonlocal moment
        body = read(answer, count)
        moment = over
        return body

    read = HTTPResponse.read
    monkeypatch.setattr(checked_download, "time", SimpleNamespace(monotonic=lambda: moment))
    monkeypatch.setattr(HTTPResponse, "read", read_to_the_end)
    host.shows()
    over = 4.999
    assert download_checked(host.address, asks_loopback=True).media_type == "application/json"
    moment, over = 0.0, 5.0
    assert refusal(host.address) == "localhost did not answer within 5 seconds."


@pytest.mark.requirement("oauth.client_documents")
def test_a_host_whose_certificate_bears_another_name_is_asked_nothing(host: Host) -> None:
    host.asked.clear()
    assert refusal(host.address.replace("localhost", "127.0.0.1")) == "127.0.0.1 did not answer as it should."
    assert host.asked == []


@pytest.mark.requirement("oauth.client_documents")
@pytest.mark.long
def test_a_host_that_never_says_who_it_is_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_download, "SECONDS_MAX", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/client.json"
        assert refusal(address) == "127.0.0.1 did not answer as it should."
        silent.settimeout(60)
        with silent.accept()[0] as left:
            left.settimeout(60)
            while left.recv(1 << 16):  # the greeting of TLS, and then the end: the connection is not kept
                pass
    checked_download._cut_off(
        checked_download._PinnedConnection("localhost", ipaddress.ip_address("127.0.0.1"), 443, 0.0)
    )  # as when the time is over before there is anything to cut off


@pytest.mark.requirement("oauth.client_documents")
def test_a_name_that_is_looked_up_for_too_long_is_given_up(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    found = threading.Event()

    def looked_up(*arguments: Any, **named: Any) -> Any:
        found.wait()
        return getaddrinfo(*arguments, **named)

    getaddrinfo = socket.getaddrinfo
    host.shows()
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", looked_up)
        patched.setattr(checked_download, "SECONDS_MAX", 0.01)
        assert refusal(host.address) == "localhost was not found in time."
        found.set()
        patched.setattr(checked_download, "SECONDS_MAX", 5.0)
        assert download_checked(host.address, asks_loopback=True).media_type == "application/json"


@pytest.mark.requirement("oauth.client_documents")
def test_four_hosts_are_asked_at_once_and_no_more(host: Host) -> None:
    host.shows()
    with ExitStack() as others:
        for _ in range(3):
            others.enter_context(checked_download._turns)
        assert download_checked(host.address, asks_loopback=True).media_type == "application/json"
        others.enter_context(checked_download._turns)
        assert refusal(host.address) == "localhost cannot be asked now: too many others are being asked."
    assert download_checked(host.address, asks_loopback=True).media_type == "application/json"


@pytest.mark.requirement("oauth.client_documents")
def test_off_by_default_nothing_is_announced_and_nobody_asked(tmp_path: Path) -> None:
    services = open_services(load({}, data_dir=tmp_path))
    try:
        assert "client_id_metadata_document_supported" not in metadata.server_metadata(services.authorization.policy)
        assert not services.authorization.documents.serves(ADDRESS)
    finally:
        services.close()
