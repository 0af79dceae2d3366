"""The documentation page as a client: known by itself, at one address, with one grant a person."""

from pathlib import Path
from typing import Any

import pytest

from auth.apps.clients import DOCUMENTATION
from auth.server import AuthorizationServer
from tests.oauth.conftest import parameters, policy

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

REDIRECT = "http://127.0.0.1:8000/docs/oauth2-redirect.html"


def tokens(world: Any, name: str = "alice") -> dict[str, Any]:
    code, verifier = world.browser().code(DOCUMENTATION, name=name, redirect_uri=REDIRECT)
    answer = world.redeem(code, verifier, DOCUMENTATION, redirect_uri=REDIRECT)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture
def served(fresh: Any) -> Any:
    fresh.server.clients.ensure_documentation()
    return fresh


@pytest.mark.requirement("oauth.documentation-page")
def test_the_consent_page_says_that_the_documentation_is_part_of_the_service(served: Any) -> None:
    browser = served.browser()
    page = browser.sign_in(browser.authorize(DOCUMENTATION, redirect_uri=REDIRECT))
    text = browser.client.get(page.headers["location"]).text
    assert "Part of this service" in text
    assert "not verified" not in text


@pytest.mark.requirement("oauth.documentation-page")
@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9999/docs/oauth2-redirect.html",
        "http://localhost:8000/docs/oauth2-redirect.html",
        "http://127.0.0.1:8000/docs/oauth2-redirect.html?",
        "https://evil.example/docs/oauth2-redirect.html",
    ],
)
def test_no_other_address_gets_a_code_in_its_name(address: str, served: Any) -> None:
    answer = served.browser().authorize(DOCUMENTATION, redirect_uri=address)
    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.requirement("oauth.documentation-page")
def test_it_cannot_do_without_pkce(served: Any) -> None:
    answer = served.browser().authorize(DOCUMENTATION, redirect_uri=REDIRECT, code_challenge="-")
    assert parameters(answer.headers["location"])["error"] == "invalid_request"


@pytest.mark.requirement("oauth.documentation-page")
def test_a_new_sign_in_ends_the_one_before_of_the_same_person_only(served: Any) -> None:
    first = tokens(served)
    others, apps = tokens(served, name="bob"), served.tokens()
    served.clock.forward(seconds=1)
    second = tokens(served)
    assert served.api(first["access_token"]).status_code == 401
    for kept in (second, others, apps):
        assert served.api(kept["access_token"]).status_code == 200
    assert [entry.client_name for entry in served.server.grants.connected_apps(served.user.id)].count(
        "Interface documentation"
    ) == 1


@pytest.mark.requirement("oauth.documentation-page")
def test_it_moves_with_the_public_address_and_is_made_once(served: Any, keys_folder: Path) -> None:
    clients = served.server.clients
    assert [clients.ensure_documentation() for _ in range(2)] == [DOCUMENTATION] * 2
    moved = AuthorizationServer(served.database, keys_folder, policy(public_url="https://bank.example/b"), served.clock)
    moved.clients.ensure_documentation()
    (found,) = [client for client in moved.clients.all() if client.id == DOCUMENTATION]
    assert found.redirect_uris == ("https://bank.example/b/docs/oauth2-redirect.html",)
