"""The body of POST /sync and forms of other descriptions: read with limits, refused in one sentence."""

import gzip
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from handlers.web.app import Api
from handlers.web.steps.bodies import BODY_BYTES_MAX

Post = Callable[..., Any]


@pytest.fixture(scope="module")
def received(make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient]) -> Post:
    """The body that POST /sync hands to its function."""
    seen: list[Any] = []

    def start_sync(_request: object, *, account_ids: str | None, body: Any) -> dict[str, Any]:
        seen.append(body)
        return {"syncJobs": [], "skippedConnections": 0}

    client = connect(make_app({"startSync": start_sync}, validate_responses=False))

    def post(**arguments: Any) -> Any:
        answer = client.post("/api/v1/sync", **arguments)
        assert answer.status_code == 200, answer.text
        return seen.pop()

    return post


@pytest.fixture
def refused(client: TestClient) -> Post:
    """Status and sentence of a refused POST /sync."""

    def post(**arguments: Any) -> tuple[int, str]:
        answer = client.post("/api/v1/sync", **arguments)
        assert answer.json().keys() == {"error"}
        return answer.status_code, answer.json()["error"]

    return post


@pytest.mark.requirement("loop.body-optional")
@pytest.mark.parametrize("kind", [None, "application/json", "text/plain", "application/x-www-form-urlencoded"])
def test_no_body_is_202_whatever_type_is_named(client: TestClient, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    assert client.post("/api/v1/sync", headers=headers).status_code == 202
    assert client.post("/api/v1/sync", headers={**headers, "Content-Encoding": "gzip"}).status_code == 202


@pytest.mark.requirement("loop.body-optional")
def test_no_body_arrives_as_none(received: Post) -> None:
    assert received() is None


@pytest.mark.requirement("loop.body")
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=latin-1",
    ],
)
def test_json_is_read_under_every_spelling_of_its_type(received: Post, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    assert received(content=b'{"accountIds": ["a"]}', headers=headers) == {"accountIds": ["a"]}


@pytest.mark.requirement("loop.body")
def test_unknown_members_and_empty_lists_pass(received: Post) -> None:
    assert received(content=b'{"more": 1, "accountIds": []}') == {"more": 1, "accountIds": []}


@pytest.mark.requirement("loop.body")
def test_a_body_in_chunks_is_a_body(received: Post) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"accountIds":'
        yield b' ["a"]}'

    assert received(content=chunks()) == {"accountIds": ["a"]}


@pytest.mark.requirement("loop.body")
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
        "*/*",
    ],
)
def test_another_type_is_415(refused: Post, kind: str) -> None:
    expected = (415, "The body must be application/json")
    assert refused(content=b"{}", headers={"Content-Type": kind}) == expected


@pytest.mark.requirement("loop.body")
@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "identity, gzip"])
def test_a_compressed_body_is_415(refused: Post, encoding: str) -> None:
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    assert refused(content=gzip.compress(b"{}"), headers=headers) == (415, "The body must not be compressed")


@pytest.mark.requirement("loop.body-json")
@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff\xfe{\x00}\x00",
        b'{"accountIds": ["\xff"]}',
        b"\xef\xbb\xbf{}",
        b'{"accountIds": NaN}',
        b'{"accountIds": ["\\ud800"]}',
        b'{"accountIds": ' + b"[" * 20000 + b"]" * 20000 + b"}",
        b'{"accountIds": ' + b"9" * 6000 + b"}",
        b"{'accountIds': []}",
        b"{}{}",
        b" ",
        gzip.compress(b"{}", mtime=0),
    ],
)
def test_what_is_not_json_is_400(refused: Post, content: bytes) -> None:
    assert refused(content=content) == (400, "body: must be JSON in UTF-8")


@pytest.mark.requirement("loop.body-json")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"null", "body: must be of type object"),
        (b"[]", "body: must be of type object"),
        (b'"a"', "body: must be of type object"),
        (b'{"accountIds": null}', "accountIds: must be of type array"),
        (b'{"accountIds": "a,b"}', "accountIds: must be of type array"),
        (b'{"accountIds": ["a", 1]}', "accountIds[1]: must be of type string"),
        (b'{"accountIds": [{"a": 1}]}', "accountIds[0]: must be of type string"),
        (b'{"accountIds": ["' + b"x" * 65 + b'"]}', "accountIds[0]: must have at most 64 characters"),
    ],
)
def test_what_the_contract_does_not_allow_is_400(refused: Post, content: bytes, text: str) -> None:
    assert refused(content=content) == (400, text)


@pytest.mark.requirement("interface.8.account-ids")
def test_fifty_ids_are_allowed_and_one_more_is_not(received: Post, refused: Post) -> None:
    assert len(received(json={"accountIds": ["a"] * 50})["accountIds"]) == 50
    assert refused(json={"accountIds": ["a"] * 51}) == (400, "accountIds: must have at most 50 items")


@pytest.mark.requirement("loop.body-size")
def test_a_body_may_have_64_kb_and_not_a_byte_more(received: Post, refused: Post) -> None:
    largest = orjson.dumps({"pad": "x" * (BODY_BYTES_MAX - 10)})
    assert len(largest) == BODY_BYTES_MAX
    assert received(content=largest)["pad"]
    assert refused(content=largest + b" ") == (413, f"The body is larger than {BODY_BYTES_MAX} bytes")


@pytest.mark.requirement("loop.body-size")
def test_the_limit_counts_what_comes_not_what_is_announced(refused: Post) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(BODY_BYTES_MAX // 1024 + 1):
            yield b" " * 1024

    assert refused(content=chunks())[0] == 413


@pytest.mark.requirement("loop.order")
def test_a_bad_body_without_a_token_is_401(app: ASGIApp, connect: Callable[..., TestClient]) -> None:
    answer = connect(app, token=None).post("/api/v1/sync?accountIds=%00", content=b"{")
    assert answer.status_code == 401


FORM_API = {
    "openapi": "3.0.3",
    "info": {"title": "forms", "version": "1"},
    "paths": {
        "/oauth/token": {
            "post": {
                "operationId": "token",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "type": "object",
                                "required": ["grant_type"],
                                "properties": {"grant_type": {"type": "string"}},
                            }
                        }
                    },
                },
                "responses": {"200": {"description": "ok"}},
            }
        }
    },
}


@pytest.fixture(scope="module")
def form(make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient]) -> TestClient:
    async def token(_request: object, *, body: dict[str, str]) -> dict[str, str]:
        return body

    api = Api(description=orjson.dumps(FORM_API), operations={"token": token})
    return connect(make_app(extra_apis=[api]), token=None)


@pytest.mark.requirement("loop.form")
def test_a_form_arrives_as_its_fields(form: TestClient) -> None:
    answer = form.post("/oauth/token", data={"grant_type": "x y", "code": ""})
    assert answer.json() == {"grant_type": "x y", "code": ""}


@pytest.mark.requirement("loop.form")
@pytest.mark.parametrize(
    ("content", "status", "text"),
    [
        (b"", 400, "body: is required"),
        (b"code=1", 400, "body: must have grant_type"),
        (b"grant_type=a&code=1&code=1", 400, "body: every field must be given once"),
        (b"grant_type=%FF", 400, "Parameters must be percent-encoded UTF-8"),
        (b"grant_type=\xff", 400, "Parameters must be percent-encoded UTF-8"),
        (b"&".join([b"a=1"] * 1001), 400, "There must be at most 200 parameters"),
        (b"grant_type=" + b"x" * BODY_BYTES_MAX, 413, f"The body is larger than {BODY_BYTES_MAX} bytes"),
    ],
)
def test_a_bad_form_is_refused(form: TestClient, content: bytes, status: int, text: str) -> None:
    answer = form.post("/oauth/token", content=content, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (answer.status_code, answer.json()) == (status, {"error": text})


@pytest.mark.requirement("loop.form")
def test_json_is_no_form(form: TestClient) -> None:
    assert form.post("/oauth/token", json={"grant_type": "x"}).status_code == 415


@pytest.mark.requirement("loop.form")
def test_a_required_body_without_a_type_is_refused_because_browsers_send_such_across_sites(form: TestClient) -> None:
    assert form.post("/oauth/token", content=b"grant_type=x").status_code == 415
