"""RFC 8707: a client may say for which resource it wants a token; there is one, and tokens name it."""

from typing import Any

import jwt
import pytest

OURS = "http://127.0.0.1:8000/api/v1"


@pytest.mark.requirement("oauth.resource")
@pytest.mark.parametrize("resource", [OURS, OURS + "/", ""])
def test_our_resource_may_be_named_at_the_token_endpoint(world: Any, resource: str) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id)
    answer = world.redeem(code, verifier, client_id, resource=resource)
    assert answer.status_code == 200
    claims = jwt.decode(answer.json()["access_token"], options={"verify_signature": False})
    assert claims["aud"] == OURS


@pytest.mark.requirement("oauth.resource")
@pytest.mark.parametrize(
    "resource", ["https://elsewhere.example/", OURS + "#x", OURS.upper(), "api", OURS + "/accounts"]
)
def test_any_other_resource_is_an_invalid_target_and_burns_nothing(world: Any, resource: str) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id)
    answer = world.redeem(code, verifier, client_id, resource=resource)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target")
    tokens = world.redeem(code, verifier, client_id).json()
    answer = world.refresh(tokens["refresh_token"], client_id, resource=resource)
    assert answer.json()["error"] == "invalid_target"
    assert world.refresh(tokens["refresh_token"], client_id, resource=OURS).status_code == 200
