"""The outermost application: the last-resort error, and what scripts of other origins may do (oauth.md 2.11)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from typing import Any

import pytest
from polars.exceptions import PanicException
from starlette.exceptions import HTTPException
from starlette.requests import Request as PageRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message
from starlette.websockets import WebSocketDisconnect

MakeApp = Callable[..., ASGIApp]
Connect = Callable[..., TestClient]
EXPOSED = ["WWW-Authenticate", "Retry-After", "RateLimit", "RateLimit-Policy", "Link", "Location", "ETag"]


@pytest.mark.requirement("interface.7.internal")
@pytest.mark.parametrize("failure", [RuntimeError, PanicException])
def test_an_accident_is_internal_error_and_its_reason_is_in_the_log_only(
    make_app: MakeApp, connect: Connect, caplog: pytest.LogCaptureFixture, failure: type[BaseException]
) -> None:
    def list_accounts(_request: object) -> dict[str, Any]:
        raise failure("the reason")

    answer = connect(make_app({"listAccounts": list_accounts})).get("/api/v1/accounts")
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal error"})
    assert "the reason" not in str(answer.headers)
    assert f"request {answer.headers['x-request-id']} failed" in caplog.text
    assert "the reason" in caplog.text


@pytest.mark.requirement("interface.7.internal")
@pytest.mark.parametrize("body", [{"amount": object()}, {"text": "\ud800"}, {"number": Decimal("1.5")}])
def test_an_answer_that_is_no_json_is_an_accident(make_app: MakeApp, connect: Connect, body: Any) -> None:
    app = make_app({"listAccounts": lambda _request: body}, validate_responses=False)
    assert connect(app).get("/api/v1/accounts").status_code == 500


@pytest.mark.requirement("interface.7.internal")
def test_an_answer_against_the_contract_is_an_accident_under_test(make_app: MakeApp, connect: Connect) -> None:
    operations = {"listAccounts": lambda _request: {"accounts": [{"id": "a"}]}}
    assert connect(make_app(operations)).get("/api/v1/accounts").status_code == 500
    assert connect(make_app(operations, validate_responses=False)).get("/api/v1/accounts").status_code == 200


@pytest.mark.requirement("loop.pages")
def test_failures_of_pages_are_error_bodies_too(make_app: MakeApp, connect: Connect) -> None:
    async def page(request: PageRequest) -> Response:
        raise HTTPException(int(request.path_params["status"]), detail="<b>detail</b>", headers={"X-More": "1"})

    client = connect(make_app(routes=[Route("/page/{status}", page)]))
    answer = client.get("/page/418")
    assert (answer.status_code, answer.json()) == (418, {"error": "I'm a teapot"})
    assert answer.headers["x-more"] == "1"
    assert client.get("/page/503").json() == {"error": "Internal error"}


@pytest.mark.requirement("loop.headers")
@pytest.mark.parametrize("path", ["/api/v1/accounts", "/api/openapi.json", "/docs", "/healthz", "/nowhere", "/"])
def test_no_answer_may_be_taken_for_another_type(client: TestClient, path: str) -> None:
    assert client.get(path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.requirement("oauth.cors")
@pytest.mark.parametrize(
    "path", ["/api/v1/accounts", "/api/v1/transactions?page=x", "/api/v1/nowhere", "/api/openapi.json"]
)
def test_every_origin_may_read_the_interface_without_credentials(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    assert set(EXPOSED) <= set(answer.headers["access-control-expose-headers"].split(", "))


@pytest.mark.requirement("oauth.cors")
def test_pages_are_not_shared_and_more_paths_can_be(make_app: MakeApp, connect: Connect) -> None:
    async def page(_request: PageRequest) -> Response:
        return PlainTextResponse("page")

    routes = [Route(path, page) for path in ("/oauth/token", "/oauth/authorize", "/.well-known/x")]
    client = connect(make_app(routes=routes, shared_paths=["/oauth/token"]))
    shared = {
        path: "access-control-allow-origin" in client.get(path).headers
        for path in ("/oauth/token", "/oauth/authorize", "/.well-known/x", "/docs", "/healthz")
    }
    assert shared == {
        "/oauth/token": True,
        "/oauth/authorize": False,
        "/.well-known/x": True,
        "/docs": False,
        "/healthz": False,
    }


@pytest.mark.requirement("oauth.cors")
def test_a_preflight_is_answered_without_a_token(app: ASGIApp, connect: Connect) -> None:
    asked = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    client = connect(app, token=None)
    answer = client.options("/api/v1/accounts", headers=asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD, POST"
    assert answer.headers["access-control-allow-headers"].split(", ")[0] == "Authorization"
    assert client.options("/docs", headers=asked).status_code == 405


@pytest.mark.requirement("loop.websocket")
def test_there_are_no_websockets(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/v1/accounts"):
        raise AssertionError


async def drive(app: ASGIApp, *incoming: Message, path: str = "/api/v1/sync") -> list[Message]:
    """What an application sends for a POST whose messages are given."""
    messages, sent = list(incoming), []

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()  # the client waits for its answer
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "root_path": "",
        "headers": [(b"authorization", b"Bearer good")],
        "client": ("192.0.2.7", 1),
    }
    await app(scope, receive, send)
    return sent


@pytest.mark.requirement("loop.disconnect")
def test_a_client_that_leaves_is_answered_nothing(app: ASGIApp) -> None:
    part = {"type": "http.request", "body": b"{", "more_body": True}
    assert asyncio.run(drive(app, part, {"type": "http.disconnect"})) == []


@pytest.mark.requirement("loop.disconnect")
def test_an_accident_after_the_first_byte_breaks_the_connection(make_app: MakeApp) -> None:
    async def late() -> AsyncIterator[bytes]:
        yield b"first"
        raise RuntimeError("late")

    async def stream(_request: PageRequest) -> Response:
        return StreamingResponse(late())

    app = make_app(routes=[Route("/stream", stream, methods=["POST"])])
    with pytest.raises(RuntimeError, match="late"):
        asyncio.run(drive(app, path="/stream"))


@pytest.mark.requirement("sync.stops")
def test_an_answer_that_has_begun_when_the_server_ends_is_not_begun_again(make_app: MakeApp) -> None:
    has_begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"first"
        has_begun.set()
        await asyncio.Event().wait()

    async def stream(_request: PageRequest) -> Response:
        return StreamingResponse(endless())

    async def ended() -> list[Message]:
        app = make_app(routes=[Route("/stream", stream, methods=["POST"])])
        request = asyncio.create_task(drive(app, path="/stream"))
        await has_begun.wait()
        request.cancel()
        return await request

    begun, first = asyncio.run(ended())
    assert (begun["status"], first["body"]) == (200, b"first")
