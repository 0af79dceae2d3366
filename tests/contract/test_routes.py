"""Which paths and methods exist, and what the others are answered."""

from collections.abc import Callable

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp

MakeApp = Callable[..., ASGIApp]
Connect = Callable[..., TestClient]

EVERY_PATH = [
    "/api/v1/accounts",
    "/api/v1/transactions",
    "/api/v1/transactions/txn_1",
    "/api/v1/cashflow",
    "/api/v1/snapshot",
    "/api/v1/subscriptions",
    "/api/v1/sync/syn_1",
]


@pytest.mark.requirement("loop.routes")
@pytest.mark.parametrize("path", EVERY_PATH)
def test_every_get_of_the_contract_is_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.requirement("loop.head")
@pytest.mark.parametrize("path", [*EVERY_PATH, "/api/openapi.json", "/docs", "/healthz"])
def test_head_has_the_headers_of_get_and_no_content(client: TestClient, path: str) -> None:
    plain = {"Accept-Encoding": "identity"}
    get, head = client.get(path, headers=plain), client.head(path, headers=plain)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-length"] == str(len(get.content))


@pytest.mark.requirement("loop.not-found")
@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v2/accounts",
        "/api/v1/nowhere",
        "/api/v1/accounts/",
        "/api/v1/transactions/txn_1/",
        "/api/v1/transactions/txn_1/more",
        "/api/v1//accounts",
        "/API/V1/accounts",
        "/docs/../pyproject.toml",
        "/docs/LICENSE",
    ],
)
def test_other_paths_are_404_and_never_redirects(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()) == (404, {"error": "Not found"})
    assert "evil" not in str(answer.headers)


@pytest.mark.requirement("loop.allow")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/v1/accounts", "GET, HEAD"),
        ("DELETE", "/api/v1/transactions/txn_1", "GET, HEAD"),
        ("PATCH", "/api/v1/transactions", "GET, HEAD"),
        ("OPTIONS", "/api/v1/cashflow", "GET, HEAD"),
        ("TRACE", "/api/v1/snapshot", "GET, HEAD"),
        ("GET", "/api/v1/sync", "POST"),
        ("HEAD", "/api/v1/sync", "POST"),
        ("QUERY", "/api/v1/sync", "POST"),
        ("PUT", "/api/v1/sync/syn_1", "GET, HEAD"),
        ("POST", "/api/openapi.json", "GET, HEAD"),
        ("POST", "/docs", "GET, HEAD"),
    ],
)
def test_another_method_is_405_with_the_methods_there_are(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert method == "HEAD" or answer.json() == {"error": f"Method not allowed. Allowed: {allowed}"}


@pytest.mark.requirement("loop.allow")
@pytest.mark.requirement("decision 147")
def test_a_concrete_path_is_meant_before_one_with_a_parameter_and_has_its_own_methods_alone(client: TestClient) -> None:
    answer = client.get("/api/v1/subscriptions/added")  # beside GET /api/v1/subscriptions/{id}
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert client.get("/api/v1/subscriptions/other").status_code == 404


@pytest.mark.requirement("loop.allow")
def test_allow_names_the_methods_of_all_routes_of_a_path(make_app: MakeApp, connect: Connect) -> None:
    async def page(_request: object) -> PlainTextResponse:
        return PlainTextResponse("page")

    routes = [Route("/oauth/login", page, methods=["GET"]), Route("/oauth/login", page, methods=["POST"])]
    client = connect(make_app(routes=routes))
    assert client.post("/oauth/login").text == "page"
    assert client.put("/oauth/login").headers["allow"] == "GET, HEAD, POST"


@pytest.mark.requirement("loop.root-path")
def test_the_service_can_live_below_a_path_of_its_proxy(make_app: MakeApp) -> None:
    client = TestClient(make_app(), root_path="/bank", headers={"Authorization": "Bearer good"})
    answer = client.get("/bank/api/v1/accounts")
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
    assert client.post("/bank/api/v1/accounts").headers["allow"] == "GET, HEAD"


@pytest.mark.requirement("loop.path-is-404")
@pytest.mark.parametrize("hostile", ["%20", "%00", "a%2Fb", "a%0Ab", "%FF%FE", "ü", "x" * 65, "%2E%2E", "a,b", "'--"])
def test_a_path_that_can_name_nothing_is_the_404_of_its_operation(client: TestClient, hostile: str) -> None:
    for path, text in [("transactions", "Transaction not found"), ("sync", "Sync job not found")]:
        answer = client.get(f"/api/v1/{path}/{hostile}")
        assert answer.status_code == 404
        assert answer.json()["error"] in (text, "Not found")


@pytest.mark.requirement("loop.path-is-404")
def test_an_unknown_id_and_an_impossible_one_look_the_same(client: TestClient) -> None:
    assert client.get("/api/v1/transactions/unknown").content == client.get("/api/v1/transactions/%20").content
    assert client.get("/api/v1/sync/unknown").content == client.get("/api/v1/sync/%20").content
