"""An address that nothing stands behind: a page for a person, an error body for a program."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from handlers.oauth.rendering import unknown_address
from handlers.web.outermost import prefers_html
from tests.oauth.conftest import policy

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
NOT_FOUND = (404, {"error": "Not found"})


@pytest.fixture
def client(make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient]) -> TestClient:
    return connect(make_app(unknown_page=unknown_address(policy(auth_url="http://127.0.0.1:8000/auth"))), token=None)


@pytest.mark.requirement("http.unknown-address")
@pytest.mark.parametrize(
    ("language", "title"), [("de-DE,de;q=0.9", "Diese Seite gibt es nicht"), ("pl", "no such page")]
)
def test_a_person_reads_a_page_in_the_form_of_the_others(client: TestClient, language: str, title: str) -> None:
    answer = client.get("/acount", headers={"Accept": CHROMIUM, "Accept-Language": language})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert title in answer.text
    assert 'href="/auth/oauth/style.css"' in answer.text
    assert '<a class="button" href="http://127.0.0.1:8000/">' in answer.text
    assert "acount" not in answer.text
    assert client.head("/acount", headers={"Accept": CHROMIUM}).content == b""


@pytest.mark.requirement("http.unknown-address")
@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/html;q=0.9", ""])
def test_a_program_reads_an_error_body(client: TestClient, accept: str) -> None:
    answer = client.get("/acount", headers={"Accept": accept})
    assert (answer.status_code, answer.json()) == NOT_FOUND


@pytest.mark.requirement("http.unknown-address")
@pytest.mark.parametrize("path", ["/api/v1/acounts", "/api/", "/.well-known/unknown"])
def test_what_stands_below_the_interface_is_for_programs(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Accept": CHROMIUM})
    assert (answer.status_code, answer.json()) == NOT_FOUND


@pytest.mark.requirement("http.unknown-address")
def test_only_opening_an_address_is_answered_with_a_page(client: TestClient) -> None:
    assert client.post("/acount", headers={"Accept": CHROMIUM}).json() == {"error": "Not found"}
    assert client.post("/docs", headers={"Accept": CHROMIUM}).json() == {
        "error": "Method not allowed. Allowed: GET, HEAD"
    }


@pytest.mark.requirement("http.unknown-address")
@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        (CHROMIUM, True),
        ("Text/HTML", True),
        ("application/json;q=0.5, text/html;q=0.6", True),
        ("text/html;level=1;q=0.4, application/json;q=0.5", False),
        ("text/html;q=0", False),
        ("text/html;q=x", True),
        ("application/json, text/html", False),
        ("text/*", False),
        ("", False),
    ],
)
def test_what_a_browser_wants_is_read_with_its_weights(accept: str, is_page: bool) -> None:
    assert prefers_html(accept) is is_page
