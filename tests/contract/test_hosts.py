"""Requests are answered when they are meant for a host of ours: names of strangers that lead here are refused."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from handlers.settings import Settings
from handlers.web.hosts import Hosts

Connect = Callable[..., TestClient]
MakeApp = Callable[..., ASGIApp]
PUBLIC = "https://bank.example.org/path"


@pytest.fixture(scope="module")
def here(make_app: MakeApp) -> ASGIApp:
    return make_app(hosts=Hosts([PUBLIC, "https://login.example.org"], is_loopback=True))


@pytest.fixture(scope="module")
def everywhere(make_app: MakeApp) -> ASGIApp:
    return make_app(hosts=Hosts([PUBLIC], is_loopback=False))


OURS = ["bank.example.org", "BANK.example.org:8443", "login.example.org"]
LOOPBACK = ["127.0.0.1:8000", "localhost", "localhost:9000", "[::1]:8000", "127.9.9.9"]
FOREIGN = [
    "evil.example",
    "bank.example.org.evil.example",
    "127.0.0.1.evil.example",
    "192.0.2.1",
    "[",
    "b\u00fccher",
    "",
]


@pytest.mark.requirement("http.hosts")
@pytest.mark.parametrize("host", OURS + LOOPBACK)
def test_the_public_hosts_and_this_machine_are_answered(host: str, here: ASGIApp, connect: Connect) -> None:
    assert connect(here).get("/api/v1/accounts", headers={"Host": host}).status_code == 200


@pytest.mark.requirement("http.hosts")
@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/api/v1/accounts", "/docs", "/nowhere"])
def test_a_foreign_name_is_refused_whatever_is_asked(host: str, path: str, here: ASGIApp, connect: Connect) -> None:
    answer = connect(here).get(path, headers=[(b"Host", host.encode("utf-8"))])
    assert answer.status_code == 421
    assert list(answer.json()) == ["error"]


@pytest.mark.requirement("http.hosts")
@pytest.mark.parametrize("host", [*LOOPBACK, "login.example.org"])
def test_names_of_this_machine_count_only_where_nobody_else_can_connect(
    host: str, everywhere: ASGIApp, connect: Connect
) -> None:
    assert connect(everywhere).get("/docs", headers={"Host": host}).status_code == 421
    assert connect(everywhere).get("/docs", headers={"Host": "bank.example.org"}).status_code == 200


@pytest.mark.requirement("http.hosts")
def test_health_is_told_under_any_name(everywhere: ASGIApp, connect: Connect) -> None:
    assert connect(everywhere).get("/healthz", headers={"Host": "10.0.0.7:8000"}).status_code == 200


@pytest.mark.requirement("http.hosts")
def test_there_is_exactly_one_host_header(here: ASGIApp, connect: Connect) -> None:
    client = connect(here)
    twice = client.get("/docs", headers=[("Host", "localhost"), ("Host", "localhost")])
    assert (twice.status_code, twice.json()) == (400, {"error": "There must be one Host header"})


@pytest.mark.requirement("http.hosts")
@pytest.mark.parametrize(("version", "is_refused"), [("1.1", True), ("1.0", False)])
def test_only_http_1_0_knows_no_host(version: str, is_refused: bool) -> None:
    from handlers.web.errors import BadRequest

    scope = {"headers": [], "path": "/docs", "http_version": version}
    hosts = Hosts([PUBLIC], is_loopback=False)
    if is_refused:
        with pytest.raises(BadRequest):
            hosts.check(scope)
    else:
        hosts.check(scope)


@pytest.mark.requirement("http.hosts")
@pytest.mark.parametrize(
    ("address", "is_in_clear"),
    [
        ("https://bank.example.org", False),
        ("http://127.0.0.1:8000", False),
        ("http://localhost", False),
        ("http://[::1]:8000", False),
        ("http://192.168.1.20:8000", True),
        ("http://127.0.0.1.example.org", True),
    ],
)
def test_only_this_machine_may_be_reached_without_tls(address: str, is_in_clear: bool) -> None:
    assert Settings(public_url=address, auth_url=address).is_in_clear is is_in_clear
