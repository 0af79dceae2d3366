"""POST /mcp in both eras: what is answered, what is refused, and in which words."""

from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient

from handlers.commands.access import print_token
from handlers.mcp.endpoint import failure_answer
from handlers.server import application
from storage import users
from storage.database import StoreUnavailable
from tests.explanations.conftest import Service, Silent
from tests.mcp.conftest import ADDRESS, META, MODERN, Assistant, assistant

ALL = "read:accounts read:transactions read:cashflow"
METADATA = f"{ADDRESS}/.well-known/oauth-protected-resource/mcp"
NO_TOKEN = {"Authorization": "Basic eA=="}
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


@pytest.mark.requirement("mcp.handshake")
@pytest.mark.parametrize(
    ("asked", "agreed"),
    [("2025-11-25", "2025-11-25"), ("2024-11-05", "2024-11-05"), ("2030-01-01", "2025-11-25"), (None, "2025-11-25")],
)
def test_a_handshake_agrees_on_a_version_of_its_era(demo_user: Assistant, asked: str | None, agreed: str) -> None:
    answer = demo_user.asks("initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": {}})
    result = answer.json()["result"]
    assert result["protocolVersion"] == agreed
    assert result["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}}
    assert "bank_text" in result["instructions"]
    assert "mcp-session-id" not in answer.headers
    assert "resultType" not in result


@pytest.mark.requirement("mcp.handshake")
def test_notifications_are_taken_and_pings_answered(demo_user: Assistant) -> None:
    answer = demo_user.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status_code, answer.content) == (202, b"")
    assert demo_user.send(PING, **{"MCP-Protocol-Version": "2025-06-18"}).json() == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {},
    }


@pytest.mark.requirement("mcp.modern")
def test_a_modern_client_discovers_and_lists_without_a_handshake(demo_user: Assistant) -> None:
    found = demo_user.asks_modern("server/discover").json()["result"]
    assert found["supportedVersions"][0] == MODERN
    assert found["resultType"] == "complete"
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "bankdata"
    listed = demo_user.asks_modern("tools/list").json()["result"]
    assert (listed["resultType"], listed["cacheScope"], listed["ttlMs"] > 0) == ("complete", "private", True)
    assert [tool["name"] for tool in listed["tools"]] == [tool["name"] for tool in demo_user.tools()]
    called = demo_user.asks_modern("tools/call", {"name": "get_overview"}).json()["result"]
    assert (called["resultType"], called["isError"]) == ("complete", False)


@pytest.mark.requirement("mcp.modern")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp-Method": "tools/call"}, -32020),
        ({"Mcp-Method": ""}, -32020),
        ({"MCP-Protocol-Version": "2025-11-25"}, -32020),
        ({"MCP-Protocol-Version": "2027-01-01"}, -32020),
    ],
)
def test_headers_that_differ_from_the_body_are_refused(
    demo_user: Assistant, headers: dict[str, str], code: int
) -> None:
    answer = demo_user.asks_modern("tools/list", None, **headers)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (400, code, 1)


@pytest.mark.requirement("mcp.modern")
@pytest.mark.parametrize("missing", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_each_routing_header_is_needed_once(demo_user: Assistant, missing: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_overview", "_meta": META}}
    headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "get_overview")]
    kept = [pair for pair in headers if pair[0] != missing]
    assert demo_user.http.post("/mcp", json=body, headers=headers).status_code == 200
    for sent in (kept, [*headers, next(pair for pair in headers if pair[0] == missing)]):
        answer = demo_user.http.post("/mcp", json=body, headers=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


@pytest.mark.requirement("mcp.modern")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("=?base64?Z2V0X292ZXJ2aWV3?=", 200),
        ("=?base64?!?=", 400),
        ("=?base64?/w==?=", 400),
        ("  get_overview \t", 200),
        ("get overview", 400),
    ],
)
def test_a_name_in_a_header_may_be_encoded_and_have_blanks_around_it(
    demo_user: Assistant, name: str, status: int
) -> None:
    answer = demo_user.asks_modern("tools/call", {"name": "get_overview"}, **{"Mcp-Name": name})
    assert answer.status_code == status


@pytest.mark.requirement("mcp.modern")
def test_a_version_that_is_not_served_is_told_what_is(demo_user: Assistant) -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    headers = {"MCP-Protocol-Version": "2031-01-01", "Mcp-Method": "tools/list"}
    answer = demo_user.asks("tools/list", {"_meta": meta}, **headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["data"]["requested"]) == (400, -32022, "2031-01-01")
    assert MODERN in error["data"]["supported"]
    notified = demo_user.send({"jsonrpc": "2.0", "method": "notifications/x"}, **{"MCP-Protocol-Version": "2031-01-01"})
    assert notified.status_code == 400
    assert (
        demo_user.send({"jsonrpc": "2.0", "method": "notifications/x"}, **{"MCP-Protocol-Version": MODERN}).status_code
        == 202
    )


@pytest.mark.requirement("mcp.modern")
@pytest.mark.parametrize("meta", [None, {}, {"io.modelcontextprotocol/protocolVersion": MODERN}])
def test_a_modern_request_says_what_it_is(demo_user: Assistant, meta: Any) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    answer = demo_user.asks("tools/list", {"_meta": meta}, **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


@pytest.mark.requirement("mcp.errors")
def test_unknown_methods_tools_and_cursors_have_their_codes_in_both_eras(demo_user: Assistant) -> None:
    asked: list[tuple[str, dict[str, Any], int, int]] = [
        ("roots/list", {}, 404, -32601),
        ("tools/call", {"name": "delete_everything"}, 400, -32602),
        ("tools/list", {"cursor": "x"}, 400, -32602),
        ("prompts/list", {"cursor": "x"}, 400, -32602),
        ("prompts/get", {"name": "delete_everything"}, 400, -32602),
    ]
    for method, params, status, code in asked:
        modern, old = demo_user.asks_modern(method, params), demo_user.asks(method, params)
        assert (modern.status_code, modern.json()["error"]["code"]) == (status, code)
        assert (old.status_code, old.json()["error"]["code"]) == (200, code)
        assert "everything" not in old.text
    assert demo_user.asks_modern("initialize").status_code == 404
    assert demo_user.asks("server/discover").json()["error"]["code"] == -32601


@pytest.mark.requirement("mcp.errors")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"ping"', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    ],
)
def test_what_is_no_message_is_refused(demo_user: Assistant, body: bytes, code: int) -> None:
    answer = demo_user.http.post("/mcp", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


@pytest.mark.requirement("mcp.errors")
def test_other_failures_of_http_are_told_in_json_rpc_too(demo_user: Assistant) -> None:
    typed = demo_user.http.post("/mcp", content=b"{}", headers={"Content-Type": "text/plain"})
    large = demo_user.http.post("/mcp", content=b" " * 70_000, headers={"Content-Type": "application/json"})
    assert [(each.status_code, each.json()["jsonrpc"]) for each in (typed, large)] == [(415, "2.0"), (413, "2.0")]


@pytest.mark.requirement("mcp.access")
def test_without_a_token_for_this_address_there_is_a_challenge_that_names_all_scopes(demo_user: Assistant) -> None:
    answer = demo_user.http.post("/mcp", json=PING, headers=NO_TOKEN)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == f'Bearer scope="{ALL}", resource_metadata="{METADATA}"'
    assert answer.json()["error"]["message"] == "Unauthorized"
    data_token = demo_user.rest.headers["authorization"]
    answer = demo_user.http.post("/mcp", json=PING, headers={"Authorization": data_token})
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    mcp_token = demo_user.http.headers["authorization"]
    assert demo_user.rest.get("/accounts", headers={"Authorization": mcp_token}).status_code == 401


@pytest.mark.requirement("mcp.access")
def test_what_a_grant_does_not_allow_is_not_listed_and_asks_for_more_with_403(demo_service: Service) -> None:
    narrow = assistant(demo_service, "demo", frozenset({"read:cashflow"}))
    assert [tool["name"] for tool in narrow.tools()] == ["get_cashflow", "get_forecast", "list_recurring_payments"]
    for answer in (
        narrow.asks("tools/call", {"name": "explain_figure"}),
        narrow.asks_modern("tools/call", {"name": "explain_figure"}),
    ):
        assert answer.status_code == 403
        challenge = 'Bearer error="insufficient_scope", scope="read:accounts read:cashflow", '
        assert answer.headers["www-authenticate"] == f'{challenge}resource_metadata="{METADATA}"'


@pytest.mark.requirement("mcp.access")
def test_without_a_subscription_nothing_is_answered_and_nothing_asked_for(demo_service: Service) -> None:
    answer = assistant(demo_service, "lapsed").asks("tools/list")
    assert answer.status_code == 403
    assert "www-authenticate" not in answer.headers
    assert "Active subscription required" in answer.json()["error"]["message"]


@pytest.mark.requirement("mcp.origin")
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (ADDRESS, 200),
        ("http://localhost:6274", 200),
        ("http://[::1]:3000", 200),
        ("https://evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("ftp://127.0.0.1", 403),
    ],
)
def test_pages_of_strangers_may_not_speak_to_it(demo_user: Assistant, origin: str, status: int) -> None:
    assert demo_user.send(PING, Origin=origin).status_code == status
    assert demo_user.http.post("/mcp", json=PING, headers={"Origin": origin, **NO_TOKEN}).status_code in (
        401,
        403,
    )


@pytest.mark.requirement("mcp.address")
def test_there_is_one_method_and_a_slash_at_the_end_means_nothing(demo_user: Assistant) -> None:
    for path in ("/mcp", "/mcp/"):
        for method in ("GET", "DELETE", "PUT"):
            answer = demo_user.http.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert demo_user.http.post(path, json=PING).json()["result"] == {}
    assert demo_user.http.post("/mcp/x", json=PING).status_code == 404


@pytest.mark.requirement("mcp.budget")
def test_each_grant_has_a_budget_and_refused_addresses_have_one(demo_service: Service) -> None:
    services = demo_service.services
    object.__setattr__(services.settings, "rate_limit", (2, 60))
    try:
        app = application(services)
    finally:
        object.__setattr__(services.settings, "rate_limit", None)
    first, second = assistant(demo_service, "demo"), assistant(demo_service, "solo")
    clients = [TestClient(app, base_url=ADDRESS, headers=dict(each.http.headers)) for each in (first, second)]
    one, other = (Assistant(client, first.rest) for client in clients)
    assert [one.result("get_cashflow")["isError"] for _ in range(3)] == [False, False, True]
    assert "wait" in one.error("get_cashflow")
    assert other.result("get_cashflow")["isError"] is False
    statuses = [clients[0].post("/mcp", json=PING, headers=NO_TOKEN).status_code for _ in range(3)]
    assert statuses == [401, 401, 429]
    assert one.asks("ping").status_code == 200


@pytest.mark.requirement("mcp.errors")
def test_a_failure_of_ours_is_an_internal_error(demo_user: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("handlers.mcp.endpoint.TOOLS", {"get_overview": broken})
    answer = demo_user.asks("tools/call", {"name": "get_overview"})
    assert (answer.status_code, answer.json()["error"]) == (500, {"code": -32603, "message": "Internal error"})


@pytest.mark.requirement("mcp.errors")
def test_a_store_that_is_away_is_a_reason_to_ask_again_later(
    demo_user: Assistant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr("handlers.mcp.endpoint.TOOLS", {"get_overview": away})
    answer = demo_user.asks("tools/call", {"name": "get_overview"})
    assert (answer.status_code, answer.headers["retry-after"], answer.json()["error"]["code"]) == (503, "2", -32603)
    assert "failed" not in caplog.text


@pytest.mark.requirement("mcp.audience")
def test_the_operator_prints_a_token_for_assistants(demo_service: Service, demo_user: Assistant) -> None:
    printed: list[str] = []

    class Kept(Silent):
        def line(self, text: str) -> None:
            printed.append(text)

    for is_for_assistants in (True, False):
        print_token(
            demo_service.services,
            Kept(),
            user=users.get_by_name(demo_service.services.everybody, "demo"),
            scope=ALL,
            seconds=60,
            for_assistants=is_for_assistants,
        )
    headers = [{"Authorization": f"Bearer {token}"} for token in printed]
    assert [demo_user.http.post("/mcp", json=PING, headers=each).status_code for each in headers] == [200, 401]


@pytest.mark.requirement("mcp.handshake")
def test_who_has_gone_away_is_answered_nothing() -> None:
    assert failure_answer(ClientDisconnect()) is None
