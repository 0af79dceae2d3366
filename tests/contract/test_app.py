"""How the application is put together: what does not fit stops the start, and other APIs keep their own words."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from handlers.web.app import CONTRACT_FILE, Api
from handlers.web.descriptions import specification
from handlers.web.errors import BadRequest, Refusal
from handlers.web.request import Answer, Request

MakeApp = Callable[..., ASGIApp]
Connect = Callable[..., TestClient]


def described(*ids: str) -> bytes:
    """A description with one POST for each id."""
    responses = {"200": {"description": "ok"}}
    paths = {f"/oauth/{name}": {"post": {"operationId": name, "responses": responses}} for name in ids}
    return orjson.dumps({"openapi": "3.0.3", "info": {"title": "other", "version": "1"}, "paths": paths})


async def echo(request: Request) -> dict[str, Any]:
    return {"method": request.method, "path": request.path, "query": request.query, "caller": request.caller}


@pytest.mark.requirement("loop.startup")
def test_contract_and_operations_name_the_same(make_app: MakeApp) -> None:
    with pytest.raises(ValueError, match="operations of contract and code differ: listTransactionz"):
        make_app({"listTransactionz": echo})
    with pytest.raises(ValueError, match="differ: token"):
        make_app(extra_apis=[Api(description=described("token"), operations={})])


@pytest.mark.requirement("loop.startup")
def test_an_operation_id_belongs_to_one_description(make_app: MakeApp) -> None:
    api = Api(description=described("listAccounts"), operations={"listAccounts": echo})
    with pytest.raises(ValueError, match="listAccounts"):
        make_app(extra_apis=[api])


@pytest.mark.requirement("loop.startup")
@pytest.mark.requirement("decision 147")
def test_a_function_that_does_not_take_its_arguments_stops_the_start(make_app: MakeApp) -> None:
    def get_transaction(_request: object, *, transaction_id: str) -> dict[str, Any]:
        return {"id": transaction_id}

    with pytest.raises(TypeError, match="get_transaction does not fit its operation"):
        make_app({"getTransaction": get_transaction})


@pytest.mark.requirement("loop.startup")
@pytest.mark.parametrize(
    ("written", "wrong", "message"),
    [
        ('"security": [', '"x-security": [', "the contract asks for no token: listAccounts"),
        ('"oauth2": [', '"oauth2": ["read:cashflow", ', "listAccounts: the contract must ask for exactly one scope"),
    ],
)
def test_every_operation_on_data_asks_for_one_scope(make_app: MakeApp, written: str, wrong: str, message: str) -> None:
    contract = CONTRACT_FILE.read_text().replace(written, wrong, 1).encode()
    with pytest.raises(ValueError, match=message):
        make_app(contract=contract)


@pytest.mark.requirement("loop.startup")
def test_a_description_is_read_once_whoever_serves_it_and_each_application_answers_by_its_own_functions(
    make_app: MakeApp, connect: Connect
) -> None:
    async def other(_request: object) -> dict[str, Any]:
        return {"accounts": [], "undescribed": True}

    async def wrong(_request: object) -> dict[str, Any]:
        return {}

    first = make_app()
    read = specification.cache_info().misses
    apps = (first, make_app({"listAccounts": other}), make_app({"listAccounts": wrong}, validate_responses=False))
    assert specification.cache_info().misses == read
    answers = [connect(app).get("/api/v1/accounts") for app in apps]
    assert [(answer.status_code, len(answer.json())) for answer in answers] == [(200, 1), (200, 2), (200, 0)]
    assert connect(make_app({"listAccounts": wrong})).get("/api/v1/accounts").status_code == 500


@pytest.mark.requirement("loop.threads")
def test_plain_functions_run_in_a_thread_and_async_ones_do_not(make_app: MakeApp, connect: Connect) -> None:
    threads: list[bool] = []

    def plain(_request: object) -> dict[str, Any]:
        threads.append(is_loop_here())
        return {"accounts": []}

    async def direct(_request: object) -> dict[str, Any]:
        threads.append(is_loop_here())
        return {"accounts": []}

    for operation in (plain, direct):
        assert connect(make_app({"listAccounts": operation})).get("/api/v1/accounts").status_code == 200
    assert threads == [False, True]


def is_loop_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.mark.requirement("loop.request")
def test_an_operation_sees_the_request(make_app: MakeApp, connect: Connect) -> None:
    seen: list[Request] = []

    def list_accounts(request: Request) -> dict[str, Any]:
        seen.append(request)
        return {"accounts": []}

    client = connect(make_app({"listAccounts": list_accounts}))
    client.get("/api/v1/accounts?a=%C3%BC", headers={"X-Thing": "x"})
    (request,) = seen
    assert (request.method, request.path, request.query) == ("GET", "/api/v1/accounts", "a=%C3%BC")
    assert (request.headers["x-thing"], request.client_address) == ("x", "testclient")


@pytest.mark.requirement("proxy.addresses")
def test_an_operation_sees_the_path_that_the_client_asked_for_before_a_proxy_took_a_part_off(
    make_app: MakeApp, connect: Connect
) -> None:
    seen: list[str] = []

    def list_accounts(request: Request) -> dict[str, Any]:
        seen.append(request.path)
        return {"accounts": []}

    client = connect(make_app({"listAccounts": list_accounts}, public_url="https://bank.example/some/path"))
    client.get("/api/v1/accounts")
    assert seen == ["/some/path/api/v1/accounts"]


@pytest.mark.requirement("loop.answer")
def test_bytes_and_headers_of_an_answer_are_sent_as_they_are(make_app: MakeApp, connect: Connect) -> None:
    async def token(_request: object) -> Answer:
        return Answer(body=b"plain", status=201, headers={"Content-Type": "text/plain", "X-More": "more"})

    client = connect(make_app(extra_apis=[Api(description=described("token"), operations={"token": token})]))
    answer = client.post("/oauth/token")
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (201, b"plain", "text/plain")
    assert (answer.headers["x-more"], answer.headers["cache-control"]) == ("more", "no-store")


@pytest.mark.requirement("loop.answer")
@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x", "a\x00", "a\n", "a\u2028b"])
def test_a_control_character_never_reaches_a_header(make_app: MakeApp, connect: Connect, value: str) -> None:
    async def token(_request: object) -> Answer:
        return Answer(body={}, headers={"Link": value})

    client = connect(make_app(extra_apis=[Api(description=described("token"), operations={"token": token})]))
    answer = client.post("/oauth/token")
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal error"})
    assert "link" not in answer.headers


@pytest.mark.requirement("loop.own-words")
def test_another_api_answers_failures_in_its_own_words(make_app: MakeApp, connect: Connect) -> None:
    async def token(_request: object) -> dict[str, Any]:
        raise BadRequest("a: is wrong")

    async def revoke(_request: object) -> dict[str, Any]:
        raise LookupError("unknown")

    def failure_answer(error: BaseException) -> Answer | None:
        if isinstance(error, Refusal):
            return Answer(body={"error": "invalid_request", "error_description": str(error)}, status=error.status)
        return None

    operations = {"token": token, "revoke": revoke}
    client = connect(
        make_app(
            extra_apis=[
                Api(description=described("token", "revoke"), operations=operations, failure_answer=failure_answer)
            ]
        )
    )
    answer = client.post("/oauth/token")
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "invalid_request", "error_description": "a: is wrong"},
    )
    unforeseen = client.post("/oauth/revoke")
    assert unforeseen.json() == {"error": "invalid_request", "error_description": "Internal error"}
    assert client.get("/api/v1/transactions?page=x").json() == {"error": "page: must be an integer of at least 1"}


@pytest.mark.requirement("loop.lifespan")
def test_the_lifespan_surrounds_the_requests(make_app: MakeApp) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        events.append("start")
        yield
        events.append("stop")

    with TestClient(make_app(lifespan=lifespan), headers={"Authorization": "Bearer good"}) as client:
        assert client.get("/api/v1/accounts").status_code == 200
        assert events == ["start"]
    assert events == ["start", "stop"]


@pytest.mark.requirement("loop.concurrency")
def test_parallel_requests_keep_their_arguments_apart(make_app: MakeApp, connect: Connect) -> None:
    together = threading.Barrier(8, timeout=60)

    def get_transaction(_request: object, *, id: str) -> dict[str, Any]:
        together.wait()
        return {"id": id}

    client = connect(make_app({"getTransaction": get_transaction}, validate_responses=False))
    ids = [f"txn_{number}" for number in range(8)]
    answers: dict[str, str] = {}
    threads = [
        threading.Thread(
            target=lambda name=name: answers.update({name: client.get(f"/api/v1/transactions/{name}").json()["id"]})
        )
        for name in ids
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {name: name for name in ids}
