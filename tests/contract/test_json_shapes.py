"""What only a real server shows: raw bytes on a socket against uvicorn, none of which may reach a 500."""

from collections.abc import Callable

import orjson
import pytest

from handlers.web.steps.bodies import BODY_BYTES_MAX

Live = Callable[[bytes], bytes]

TOKEN = b"Authorization: Bearer good\r\nConnection: close\r\n"


def get(target: bytes) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\n"


def post(headers: bytes, content: bytes) -> bytes:
    return b"POST /api/v1/sync HTTP/1.1\r\nHost: x\r\n" + TOKEN + headers + b"\r\n" + content


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def error(answer: bytes) -> str:
    sentence: str = orjson.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    return sentence


@pytest.mark.requirement("wire.body")
@pytest.mark.parametrize(
    "headers",
    [
        b"",
        b"Content-Length: 0\r\n",
        b"Content-Type: application/json\r\n",
        b"Content-Type: application/json\r\nContent-Length: 0\r\n",
    ],
)
def test_a_post_without_a_body_is_202(live: Live, headers: bytes) -> None:
    assert status(live(post(headers, b""))) == 202


@pytest.mark.requirement("wire.body")
def test_a_chunked_body_is_read_and_an_empty_one_is_none(live: Live) -> None:
    chunked = b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n"
    assert status(live(post(chunked, b"0\r\n\r\n"))) == 202
    assert status(live(post(chunked, b"2\r\n{}\r\n0\r\n\r\n"))) == 202
    assert error(live(post(chunked, b"2\r\n[]\r\n0\r\n\r\n"))) == "body: must be of type object"


@pytest.mark.requirement("wire.body-size")
def test_the_largest_body_is_read_and_a_larger_one_is_413(live: Live) -> None:
    largest = b" " * (BODY_BYTES_MAX - 2) + b"{}"
    assert status(live(post(b"Content-Length: %d\r\n" % len(largest), largest))) == 202
    assert status(live(post(b"Content-Length: %d\r\n" % (len(largest) + 1), largest + b" "))) == 413


@pytest.mark.requirement("wire.body-size")
def test_a_body_that_is_only_announced_is_refused_at_once(live: Live) -> None:
    assert status(live(post(b"Content-Length: 20000000000\r\n", b""))) == 413


@pytest.mark.requirement("wire.body-size")
def test_a_larger_body_in_chunks_is_413(live: Live) -> None:
    chunks = b"".join(b"1000\r\n" + b" " * 4096 + b"\r\n" for _ in range(17)) + b"0\r\n\r\n"
    answer = live(post(b"Transfer-Encoding: chunked\r\n", chunks))
    assert (status(answer), error(answer)) == (413, f"The body is larger than {BODY_BYTES_MAX} bytes")


@pytest.mark.requirement("decision.2")
def test_a_page_beyond_64_bits_is_answered_as_it_was_asked_for(live: Live) -> None:
    answer = live(get(b"/api/v1/transactions?page=1" + b"0" * 30))
    assert b'"page":1' + b"0" * 30 + b"," in answer


@pytest.mark.requirement("wire.query")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (b"search=M%C3%BCller", 200),
        (b"search=M\xc3\xbcller", 400),  # the server itself refuses what is no HTTP
        (b"search=%FF", 400),
        (b"search=%", 400),
        (b"search=%00", 400),
        (b"page=" + b"9" * 6000, 400),
        (b"page=" + b"9" * 31, 200),
        (b"accountIds=a&accountIds=b", 400),
        (b"dateFrom=2026-02-30", 400),
        (b"page[]=1", 200),
        (b"search='%22%3Cscript%3E", 200),
        (b"search=a+b%2Bc", 200),
    ],
)
def test_bytes_of_a_query_are_read_or_refused(live: Live, query: bytes, expected: int) -> None:
    assert status(live(get(b"/api/v1/transactions?" + query))) == expected


@pytest.mark.requirement("wire.path")
@pytest.mark.parametrize(
    "segment",
    [b"%00", b"%FF%FE", b"%", b"%zz", b"%2F", b"%2e%2e%2fetc", b"..", b"a;b", b"%0d%0aX-Evil:%201", b"x" * 9000],
)
def test_bytes_of_a_path_are_404_and_never_more(live: Live, segment: bytes) -> None:
    answer = live(get(b"/api/v1/transactions/" + segment))
    assert status(answer) == 404
    assert b"evil" not in answer.lower()
    assert error(answer) in ("Transaction not found", "Not found")


@pytest.mark.requirement("wire.path")
@pytest.mark.parametrize(
    "target", [b"//evil.example/api/v1/accounts", b"http://evil.example/api/v1/accounts/", b"*", b"/\xff"]
)
def test_odd_targets_are_no_server_error(live: Live, target: bytes) -> None:
    answer = live(get(target))
    assert 200 <= status(answer) < 500
    assert b"\nlocation:" not in answer.lower()


@pytest.mark.requirement("wire.headers")
@pytest.mark.parametrize(
    "header",
    [
        b"Authorization: Bearer \xff\xfe",
        b"Authorization: \xff",
        b"X-Forwarded-For: " + b"1.2.3.4, " * 500,
        b"Content-Type: \xff/\xff",
        b"If-None-Match: \xff",
        b"Accept: application/xml",
        b"Content-Length: 5",
    ],
)
def test_odd_headers_are_no_server_error(live: Live, header: bytes) -> None:
    for target in (b"/api/v1/accounts", b"/api/openapi.json"):
        answer = live(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + b"\r\n\r\nhello")
        assert status(answer) in (200, 401)


@pytest.mark.requirement("wire.head")
def test_head_sends_no_content(live: Live) -> None:
    head = live(get(b"/api/v1/accounts").replace(b"GET", b"HEAD", 1))
    assert status(head) == 200
    assert head.endswith(b"\r\n\r\n")


@pytest.mark.requirement("decision 4")
@pytest.mark.parametrize(
    "request_line", [b"GET /\xff HTTP/1.1", b"GET / HTTP/9.9", b"\x00\xff", b"GET /api/v1/accounts?a=\xfc HTTP/1.1"]
)
def test_what_is_no_http_is_refused_in_the_error_body_of_everything_else(live: Live, request_line: bytes) -> None:
    answer = live(request_line + b"\r\nHost: x\r\n\r\n")
    assert status(answer) == 400
    assert b"content-type: application/json\r\n" in answer
    assert error(answer) == "Invalid HTTP request received"
