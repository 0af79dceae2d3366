"""RFC 9207: every authorization response says who sends it, and the metadata say so."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


def sent_back(answer: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(answer.headers["location"]).query)


@pytest.mark.requirement("oauth.issuer")
@pytest.mark.parametrize(("decision", "word"), [("allow", "code"), ("deny", "error")])
def test_the_answer_to_a_consent_names_the_issuer_once(world: Any, decision: str, word: str) -> None:
    browser = world.browser()
    page = browser.sign_in(browser.authorize(world.register()))
    answer = sent_back(browser.consent(page, decision))
    assert word in answer
    assert answer["iss"] == ["http://127.0.0.1:8000"]


@pytest.mark.requirement("oauth.issuer")
@pytest.mark.parametrize(
    "mistake", [{"response_type": "token"}, {"scope": "read:all"}, {"code_challenge": "-"}, {"resource": "https://x/"}]
)
def test_errors_name_the_issuer_too(world: Any, mistake: dict[str, str]) -> None:
    client_id = world.register("http://127.0.0.1/callback")
    answer = world.browser().authorize(client_id, redirect_uri="http://127.0.0.1:7/callback", **mistake)
    assert sent_back(answer)["iss"] == ["http://127.0.0.1:8000"]


@pytest.mark.requirement("oauth.issuer")
def test_the_issuer_is_the_one_of_the_metadata_and_announced(world: Any) -> None:
    document = world.http.get("/.well-known/oauth-authorization-server").json()
    assert document["authorization_response_iss_parameter_supported"] is True
    assert document["issuer"] == "http://127.0.0.1:8000"
