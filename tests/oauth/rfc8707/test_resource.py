"""RFC 8707: a client says for which resource it wants a token; there are two, and a token names the one it opens."""

from typing import Any

import jwt
import pytest

from auth.errors import InvalidToken

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


MCP = "http://127.0.0.1:8000/mcp"


@pytest.mark.requirement("mcp.audience")
@pytest.mark.parametrize("named", [MCP, MCP + "/"])
def test_a_grant_for_assistants_has_tokens_of_that_audience_only(world: Any, named: str) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id, resource=named)
    tokens = world.redeem(code, verifier, client_id).json()
    for answer in (tokens, world.refresh(tokens["refresh_token"], client_id, resource=MCP).json()):
        claims = jwt.decode(answer["access_token"], options={"verify_signature": False})
        assert claims["aud"] == MCP


@pytest.mark.requirement("mcp.audience")
def test_an_assistants_token_opens_nothing_of_the_data_interface_and_the_other_way_round(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id, resource=MCP)
    token = world.redeem(code, verifier, client_id).json()["access_token"]
    data = world.tokens()["access_token"]
    assert world.server.access.principal(token, MCP) == world.server.access.principal_in_memory(token, MCP)
    for _ in range(2):  # remembered, too
        assert world.api(token).status_code == 401
        assert world.api(data).status_code == 200
        with pytest.raises(InvalidToken, match="of another resource"):
            world.server.access.principal(data, MCP)
        with pytest.raises(InvalidToken, match="of another resource"):
            world.server.access.principal_in_memory(data, MCP)


@pytest.mark.requirement("mcp.audience")
def test_a_grant_is_for_the_resource_that_was_asked_for(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id, resource=MCP)
    refused = world.redeem(code, verifier, client_id, resource=OURS)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")
    tokens = world.redeem(code, verifier, client_id, resource=MCP).json()
    refused = world.refresh(tokens["refresh_token"], client_id, resource=OURS)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")
    assert world.refresh(tokens["refresh_token"], client_id).status_code == 200


@pytest.mark.requirement("mcp.audience")
def test_the_resource_for_assistants_describes_itself(world: Any) -> None:
    document = world.http.get("/.well-known/oauth-protected-resource/mcp").json()
    assert document == {
        "resource": MCP,
        "authorization_servers": ["http://127.0.0.1:8000"],
        "scopes_supported": ["read:accounts", "read:transactions", "read:cashflow"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Banking Data Service for assistants",
        "resource_documentation": "http://127.0.0.1:8000/docs",
    }
    assert world.http.get("/.well-known/oauth-protected-resource").json()["resource"] == OURS


@pytest.mark.requirement("mcp.audience")
def test_two_different_resources_are_an_invalid_target(world: Any) -> None:
    policy = world.server.policy
    assert [policy.named_resource(named) for named in ((), (MCP,), (OURS, OURS + "/"), (OURS, MCP), ("x",))] == [
        "data",
        "mcp",
        "data",
        None,
        None,
    ]
    sent_back = world.browser().authorize(world.register(), resource=[OURS, MCP])
    assert "invalid_target" in sent_back.text  # a page: nobody is bounced to a stranger's site
