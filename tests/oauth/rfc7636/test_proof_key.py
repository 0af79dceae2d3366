"""RFC 7636: who redeems a code proves that the request was its own; S256 alone."""

import base64
import hashlib
from typing import Any

import pytest

from auth.pkce import challenge_of, is_challenge, is_proven


@pytest.mark.requirement("oauth.pkce")
def test_the_example_of_appendix_b() -> None:
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert is_proven(verifier, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")


@pytest.mark.requirement("oauth.pkce")
@pytest.mark.parametrize(
    ("verifier", "is_one"),
    [("a" * 42, False), ("a" * 43, True), ("a" * 128, True), ("a" * 129, False), ("a" * 42 + "+", False)],
)
def test_a_verifier_has_43_to_128_unreserved_characters_even_if_its_hash_fits(verifier: str, is_one: bool) -> None:
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert is_proven(verifier, challenge) is is_one


@pytest.mark.requirement("oauth.pkce")
@pytest.mark.parametrize("challenge", ["a" * 42, "a" * 44, "a" * 42 + "=", "a" * 42 + "."])
def test_a_challenge_is_43_characters_of_base64url(challenge: str) -> None:
    assert not is_challenge(challenge)
    assert is_challenge("a" * 43)


@pytest.mark.requirement("oauth.pkce")
def test_a_wrong_verifier_does_not_burn_the_code(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id)
    for wrong in ("w" * 43, challenge_of(verifier), verifier[:-1] + ("a" if verifier[-1] != "a" else "b")):
        assert world.redeem(code, wrong, client_id).json()["error"] == "invalid_grant"
    assert world.redeem(code, "", client_id).json()["error"] == "invalid_request"
    assert world.redeem(code, verifier, client_id).status_code == 200
