"""Fetching the file of reference rates, against a real web server: bounded, from one place, all or nothing."""

import gzip
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import repeat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from connectors.connector import LimitExceeded, ProviderUnavailable, SourceError
from connectors.reachable import is_reachable
from connectors.reference import rates_download
from connectors.reference.rates_download import FILE_BYTES_MAX, REDIRECTS_MAX, NoFileThere, download
from tests.analytics.rate_server import RateServer, rate_server, response

pytestmark = pytest.mark.requirement("rates.download")

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"  # no length: the body ends with the connection


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server() -> Iterator[RateServer]:
    with rate_server() as running:
        yield running


def fetched(address: str) -> bytes:
    def unseen(done: int, total: int) -> None: ...

    return download(address, progress=unseen)


def refused(address: str, error: type[SourceError]) -> str:
    """The one sentence with which the address is refused."""
    with pytest.raises(error) as caught:
        fetched(address)
    said = str(caught.value)
    assert re.fullmatch(r"[^\n]+[^.]\.", said)
    return said


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip", True),
        ("https://mirror.example.org:8443/rates?kind=hist", True),
        ("https://[2001:db8::1]/rates", True),
        ("http://127.0.0.1:8000/rates", True),
        ("http://localhost/rates", True),
        ("http://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip", False),
        ("http://127.0.0.1.example.org/rates", False),
        ("http://localhost@example.org/rates", False),
        ("https://user:secret@example.org/rates", False),
        ("https://example.org/rates#part", False),
        ("https://example.org/ra tes", False),
        ("https://example.org/r\u00e4tes", False),
        ("https://example.org:0/rates", False),
        ("https://example.org:65536/rates", False),
        ("https://%65xample.org/rates", False),
        ("https:///rates", False),
        ("https://[::1/rates", False),
        ("ftp://example.org/rates", False),
        ("file:///etc/passwd", False),
        ("/rates", False),
        ("", False),
    ],
)
def test_only_https_is_allowed_and_http_on_this_machine(address: str, expected: bool) -> None:
    assert is_reachable(address) is expected


def test_a_file_comes_whole_and_says_how_far_it_is(server: RateServer) -> None:
    body = bytes(range(256)) * 1000
    steps: list[tuple[int, int]] = []
    content = download(server.page("/a", response(body)), progress=lambda done, total: steps.append((done, total)))
    assert content == body
    assert steps[-1] == (len(body), len(body))
    assert {total for _, total in steps} == {len(body)}
    assert fetched(server.page("/b", HEAD, body)) == body, "without a length, too"


def test_nothing_is_unpacked_on_the_way(server: RateServer) -> None:
    packed = gzip.compress(b"0" * 1_000_000)
    assert fetched(server.page("/a", response(packed, headers="Content-Encoding: gzip\r\n"))) == packed
    ((_, headers),) = server.asked
    assert headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "status", ["404 Not Found", "500 Oh", "403 No", "204 Empty", "206 Part", "304 Old", "302 Lost"]
)
def test_every_other_status_is_refused(server: RateServer, status: str) -> None:
    body = b"" if status[:3] in ("204", "304") else b"eurofxref"
    said = refused(server.page("/a", response(body, status=status)), NoFileThere)
    assert said == f"127.0.0.1:{server.server_port} answered with status {status[:3]} instead of the file."


def test_redirects_are_followed_within_the_host_and_not_for_ever(server: RateServer) -> None:
    for number in range(REDIRECTS_MAX + 1):
        server.page(f"/{number}", response(b"", status="302 Found", headers=f"Location: {number + 1}\r\n"))
    server.page(f"/{REDIRECTS_MAX + 1}", response(b"here"))
    assert fetched(server.address + "/1") == b"here"
    said = refused(server.address + "/0", NoFileThere)
    assert said == f"127.0.0.1:{server.server_port} sends on from one address to the next without end."


def test_a_redirect_elsewhere_is_not_followed(server: RateServer) -> None:
    with rate_server() as other:
        other.page("/b", response(b"from elsewhere"))
        for target, there in (
            (f"{other.address}/b", other.address),
            (f"//127.0.0.1:{other.server_port}/b", other.address),
            (f"http://localhost:{server.server_port}/b", f"http://localhost:{server.server_port}"),
            (f"https://127.0.0.1:{server.server_port}/b", f"https://127.0.0.1:{server.server_port}"),
            ("https://example.org/b", "https://example.org"),
            ("file:///etc/passwd", "file://127.0.0.1"),  # httpx keeps the host
        ):
            page = server.page("/a", response(b"", status="301 Moved", headers=f"Location: {target}\r\n"))
            said = refused(page, NoFileThere)
            assert said == f"{server.address} sends on to {there}, and that is not followed."
        assert other.asked == []
    assert {path for path, _ in server.asked} == {"/a"}


@pytest.mark.parametrize(
    "target", ["http://[::1", "http://a..b/", "http://\x1b[31m/", f"http://{'x' * 300}/", "mailto:a"]
)
def test_a_redirect_to_no_address_is_one_sentence(server: RateServer, target: str) -> None:
    refused(server.page("/a", response(b"", status="302 Found", headers=f"Location: {target}\r\n")), SourceError)


def test_a_file_has_at_most_twenty_megabytes_whatever_it_says_of_itself(server: RateServer) -> None:
    largest = b"0" * FILE_BYTES_MAX
    assert len(fetched(server.page("/largest", HEAD, largest))) == FILE_BYTES_MAX
    server.page("/larger", HEAD, largest, b"0")
    server.page("/announced", response(largest + b"0"))
    server.pages["/endless"] = (HEAD if first else b"0" * 65_536 for first in (True, *repeat(False, 2_000)))
    for path in ("/larger", "/announced", "/endless"):
        said = refused(server.address + path, LimitExceeded)
        assert said.endswith(f" sent more than {FILE_BYTES_MAX} bytes, which no file of rates has.")
    assert next(iter(server.pages["/endless"]), None) is not None, "the rest was not even read"


def test_a_body_that_is_cut_off_is_refused(server: RateServer) -> None:
    said = refused(server.page("/a", response(b"half", length=8)), ProviderUnavailable)
    reason = "peer closed connection without sending complete message body (received 4 bytes, expected 8)"
    assert said == f"127.0.0.1:{server.server_port} did not send the whole file: {reason}."
    refused(
        server.page("/b", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"), ProviderUnavailable
    )


@pytest.mark.parametrize("answer", [b"", b"hello\r\n\r\n", response(b"", headers="A: b\r\n" * 30_000)])
def test_an_answer_that_is_none_is_one_sentence(server: RateServer, answer: bytes) -> None:
    assert "did not send the whole file" in refused(server.page("/a", answer), ProviderUnavailable)
    refused(server.page("/b", f"HTTP/1.1 200 OK\r\nContent-Length: {'9' * 5000}\r\n\r\n".encode()), ProviderUnavailable)


def test_a_closed_port_and_a_name_nobody_has_are_one_sentence() -> None:
    with rate_server() as server:
        address = server.address
    said = refused(f"{address}/a", ProviderUnavailable)
    assert said == f"{address.removeprefix('http://')} cannot be reached: [Errno 111] Connection refused."
    assert refused("https://a..b/", NoFileThere) == "https://a..b/ is no address of a file, and leads to none."


def test_a_host_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates_download, "CONNECT_SECONDS_MAX", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes the connection and never says who it is
        said = refused(f"https://127.0.0.1:{mute.getsockname()[1]}/a", ProviderUnavailable)
    assert said.endswith(" did not answer within 0.2 seconds.")


def test_a_host_that_falls_silent_is_given_up(server: RateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates_download, "SILENCE_SECONDS_MAX", 0.2)
    given_up = threading.Event()

    def silent() -> Iterator[bytes]:
        yield response(b"first", length=10)
        given_up.wait(60)

    server.pages["/a"] = silent()
    said = refused(f"{server.address}/a", ProviderUnavailable)
    given_up.set()
    assert said.endswith(" sent nothing for 0.2 seconds.")


def test_a_file_that_trickles_in_is_given_up(server: RateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    page = server.page("/a", response(b"slow"))
    assert fetched(page) == b"slow"
    monkeypatch.setattr(rates_download, "SECONDS_MAX", 0.0)
    assert refused(page, ProviderUnavailable).endswith(" needed more than 0 seconds to send the file.")


def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, context = own_certificate(tmp_path)
    with rate_server(context) as server:
        page = server.page("/a", response(b"over TLS"))
        assert "CERTIFICATE_VERIFY_FAILED" in refused(page, ProviderUnavailable)
        assert server.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert fetched(page) == b"over TLS"
        assert "cannot be reached" in refused(page.replace("127.0.0.1", "localhost"), ProviderUnavailable)


def test_the_proxy_of_the_environment_is_not_asked_for_this_machine(
    server: RateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rate_server() as proxy:
        closed = proxy.address
    monkeypatch.setenv("HTTP_PROXY", closed)
    monkeypatch.setenv("HTTPS_PROXY", closed)
    assert fetched(server.page("/a", response(b"direct"))) == b"direct"
    assert "cannot be reached" in refused("https://example.org/a", ProviderUnavailable)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("SSL_CERT_FILE", "none.pem", "[Errno 2] No such file or directory"),
        ("HTTPS_PROXY", "gopher://example.org", "Unknown scheme for proxy URL URL('gopher://example.org')"),
    ],
)
def test_an_environment_that_cannot_be_used_is_one_sentence(
    name: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    said = refused("https://example.org/a", ProviderUnavailable)
    assert said == f"example.org cannot be asked in this environment: {reason}."


def own_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 that has signed itself, and what a server needs to show it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rates")])
    made = datetime.fromisoformat("2020-01-01T00:00:00+00:00")
    builder = x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
    builder = builder.serial_number(1).not_valid_before(made).not_valid_after(made + timedelta(days=36_500))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    path = folder / "server.pem"
    unprotected = serialization.NoEncryption()
    kind = serialization.PrivateFormat.PKCS8
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, kind, unprotected)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return path, context
