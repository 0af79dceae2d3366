"""The contract on the wire is the file, and the page that shows it asks nobody else."""

import asyncio
import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable
from html.parser import HTMLParser
from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from handlers.web.app import CONTRACT_FILE
from handlers.web.documentation import documentation
from handlers.web.fixed_files import takes_gzip


@pytest.mark.requirement("contract.bytes")
def test_the_contract_is_served_byte_for_byte(client: TestClient) -> None:
    answer = client.get("/api/openapi.json")
    assert answer.content == CONTRACT_FILE.read_bytes()
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["etag"] == f'"{hashlib.sha256(answer.content).hexdigest()}-gzip"'
    assert answer.headers["cache-control"] == "public, max-age=300"


@pytest.mark.requirement("contract.etag")
@pytest.mark.parametrize("coding", ["gzip", "identity"])
@pytest.mark.parametrize("path", ["/api/openapi.json", "/docs", "/docs/swagger-ui-bundle.js"])
def test_who_has_the_bytes_is_not_sent_them_again(client: TestClient, path: str, coding: str) -> None:
    etag = client.get(path, headers={"Accept-Encoding": coding}).headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = client.get(path, headers={"If-None-Match": known, "Accept-Encoding": coding})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
    unknown = client.get(path, headers={"If-None-Match": '"other"', "Accept-Encoding": coding})
    assert unknown.status_code == 200


@pytest.mark.requirement("docs.compressed")
@pytest.mark.parametrize("path", ["/api/openapi.json", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"])
def test_large_files_are_compressed_for_who_reads_that_and_are_the_same_bytes(client: TestClient, path: str) -> None:
    plain, packed = (client.get(path, headers={"Accept-Encoding": coding}) for coding in ("identity", "br, gzip"))
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 3
    assert packed.content == plain.content
    assert packed.headers["etag"] != plain.headers["etag"]  # "strong" is of one representation: RFC 9110 8.8.3
    for answer in (plain, packed):
        assert answer.headers["vary"] == "Accept-Encoding"
    head = client.head(path, headers={"Accept-Encoding": "gzip"})
    assert (head.content, head.headers["content-length"]) == (b"", packed.headers["content-length"])


@pytest.mark.requirement("docs.compressed")
def test_a_file_is_compressed_once_however_many_ask_at_once_and_waits_for_no_thread_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bytes] = []
    pack = gzip.compress

    def packed(content: bytes, *, mtime: float) -> bytes:
        made.append(content)
        return pack(content, mtime=mtime)

    monkeypatch.setattr(gzip, "compress", packed)
    (contract,) = (route for route in documentation(b"{}" * 1000) if route.path == "/api/openapi.json")
    answer = cast(Callable[[Request], Awaitable[Response]], contract.endpoint)

    def asked(coding: bytes) -> Request:
        return Request({"type": "http", "headers": [(b"accept-encoding", coding)]})

    async def all_at_once() -> list[Response]:
        return await asyncio.gather(*(answer(asked(coding)) for coding in (b"gzip", b"gzip", b"identity")))

    first, second, plain = asyncio.run(all_at_once())
    assert first is second
    assert (pack(b"{}" * 1000, mtime=0), b"{}" * 1000) == (first.body, plain.body)
    assert made == [b"{}" * 1000]
    monkeypatch.setattr("handlers.web.fixed_files.run_in_threadpool", None)
    assert asyncio.run(all_at_once()) == [first, second, plain]


@pytest.mark.requirement("docs.compressed")
def test_small_files_and_data_are_not_compressed(client: TestClient) -> None:
    for path in ("/docs", "/docs/favicon-32x32.png", "/api/v1/transactions"):
        answer = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert not {"content-encoding", "vary"} & set(answer.headers)


@pytest.mark.requirement("docs.compressed")
@pytest.mark.parametrize(
    ("accept_encoding", "is_read"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip ; q=0.001", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("identity", False),
        ("x-gzipped", False),
        ("", False),
    ],
)
def test_who_reads_gzip_says_so(accept_encoding: str, is_read: bool) -> None:
    assert takes_gzip(accept_encoding) is is_read


class Page(HTMLParser):
    """The addresses, inline code and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.addresses += [value for value in (named.get("src"), named.get("href")) if value]
        if tag == "style" or (tag == "script" and "src" not in named) or "style" in named:
            self.inline.append(tag)
        self.inline += [name for name in named if name.startswith("on")]


@pytest.mark.requirement("docs.page")
def test_the_page_has_nothing_inline_and_names_files_of_this_server_only(client: TestClient) -> None:
    page, back = Page(client.get("/docs").text), Page(client.get("/docs/oauth2-redirect.html").text)
    assert page.inline + back.inline == []
    page.addresses.remove("./")  # the way to the page, which this application does not have
    for address in [*page.addresses, *(f"docs/{name}" for name in back.addresses)]:
        assert not re.match(r"[a-z]+:|/", address)
        assert client.get(f"/{address}").status_code == 200


@pytest.mark.requirement("docs.page")
@pytest.mark.parametrize("path", ["/docs", "/docs/oauth2-redirect.html"])
def test_the_pages_are_under_a_policy_that_allows_this_server_only(client: TestClient, path: str) -> None:
    policy = client.get(path).headers["content-security-policy"].split("; ")
    assert policy == [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]


@pytest.mark.requirement("docs.page")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
        ("init.js", "text/javascript; charset=utf-8"),
        ("swagger-ui.css", "text/css; charset=utf-8"),
        ("favicon-32x32.png", "image/png"),
    ],
)
def test_the_files_of_the_page_have_their_types(client: TestClient, name: str, kind: str) -> None:
    assert client.get(f"/docs/{name}").headers["content-type"] == kind


@pytest.mark.requirement("docs.health")
def test_health_is_answered_without_a_token(client: TestClient) -> None:
    answer = client.get("/healthz", headers={"Authorization": ""})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
