"""JSON-RPC in both eras of the Model Context Protocol: reads messages, and builds results and errors.

Up to revision 2025-11-25 a client shakes hands (`initialize`); since 2026-07-28 every request stands alone and
describes itself in headers and in `_meta`. One address serves both, and nothing is kept of either between requests.
"""

import base64
import binascii
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson
from msgspec import Struct
from starlette.datastructures import Headers

from handlers.mcp.apps import charts
from handlers.names import Json
from handlers.web.request import Answer

MODERN = ("2026-07-28",)
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
VERSIONS = (*MODERN, *HANDSHAKE)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
NAMING = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""By method: the parameter that must be repeated in a header."""
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR, NOT_ALLOWED = -32602, -32603, -32001
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022

ASKS = "asks-"
"""What a session id begins with, after what it says of charts, where the client asks its person for us."""
_STATUSES = {METHOD_NOT_FOUND: 404}  # of errors in the modern era; all others are 400

Id = str | int


class RpcError(Exception):
    """Ends a request with a JSON-RPC error; `str(error)` is its sentence, which repeats nothing the client sent. `code`
    is that of JSON-RPC, `status` that of HTTP, `id` the request's, and `data` a further member of the error."""

    def __init__(
        self, code: int, message: str, *, id_: Id | None = None, status: int = 400, data: Json | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.id = id_
        self.status = status
        self.data = data


class RpcRequest(Struct, frozen=True, kw_only=True):
    """A JSON-RPC request, or a notification if it has no id. `is_modern`: it follows a revision without a handshake."""

    id: Id | None
    method: str
    params: Mapping[str, Any]
    is_modern: bool
    shows_apps: bool  # whether the client draws charts
    elicits: bool = False  # whether the client asks its person for us

    def error(self, code: int, message: str) -> RpcError:
        """An error in answer to this request, to be raised. In the handshake era its status is 200, because those
        clients drop the body of a 4xx."""
        status = _STATUSES.get(code, 400) if self.is_modern else 200
        return RpcError(code, message, id_=self.id, status=status)


def read(body: Any, headers: Headers) -> RpcRequest:
    """The message in a decoded body, checked against the headers where its revision asks for that; raises RpcError."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str):
        # A batch (removed in 2025-06-18), or a response to nothing that was asked
        raise RpcError(INVALID_REQUEST, "The body must be one JSON-RPC 2.0 request or notification.")
    id_, params = body.get("id"), body.get("params", {})
    if "id" in body and (isinstance(id_, bool) or not isinstance(id_, str | int)):
        raise RpcError(INVALID_REQUEST, "id must be a string or an integer.")
    if not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "params must be an object.", id_=id_)
    meta = params.get("_meta")
    version = _header(headers, VERSION_HEADER)
    is_modern = (isinstance(meta, dict) and VERSION_KEY in meta) or (version is not None and version not in HANDSHAKE)
    message = RpcRequest(
        id=id_,
        method=body["method"],
        params=params,
        is_modern=is_modern,
        shows_apps=_shows_apps(body["method"], params, headers, is_modern=is_modern),
        elicits=_elicits(body["method"], params, headers, is_modern=is_modern),
    )
    if is_modern:
        _check_modern(message, headers)
    return message


def session(message: RpcRequest) -> dict[str, str]:
    """Headers of the answer to `initialize`: a random session id that says by its beginning what the client can do,
    where that is anything; nothing is stored."""
    kinds = (charts.SESSIONS if message.shows_apps else "") + (ASKS if message.elicits else "")
    return charts.session(kinds) if kinds else {}


def answer_in(body: Any) -> tuple[str, str] | None:
    """The id of a question of ours, and what the person has said: accept, decline or cancel; None for a message that
    answers nothing."""
    if not isinstance(body, dict) or "method" in body or not {"result", "error"} & body.keys():
        return None
    id_, result = body.get("id"), body.get("result")
    said = result.get("action") if isinstance(result, dict) else None
    return (id_, said if said in ("accept", "decline") else "cancel") if isinstance(id_, str) else None


def result_answer(message: RpcRequest, result: Json, headers: Mapping[str, str] | None = None) -> Answer:
    """The answer with the result of a request; in the modern era with the member `resultType` "complete" added."""
    body = {"resultType": "complete", **result} if message.is_modern else result
    return Answer(body={"jsonrpc": "2.0", "id": message.id, "result": body}, headers=headers or {})


def error_answer(error: RpcError, headers: Mapping[str, str] | None = None) -> Answer:
    """The answer with an error; its `id` is null if the error names none."""
    failure: Json = {"code": error.code, "message": str(error)}
    if error.data is not None:
        failure["data"] = error.data
    return Answer(body={"jsonrpc": "2.0", "id": error.id, "error": failure}, status=error.status, headers=headers or {})


def exact_number(value: object) -> orjson.Fragment:
    """A decimal with all its digits, 5.00 as 5.00. orjson calls this for decimals only."""
    assert isinstance(value, Decimal)
    return orjson.Fragment(f"{value:f}")


def _shows_apps(method: str, params: Json, headers: Headers, *, is_modern: bool) -> bool:
    """Whether the client can show charts. In the modern era it says so with each request; in the handshake era only
    with the first one, after which the session's id says it."""
    if is_modern:
        meta = params.get("_meta")
        return isinstance(meta, dict) and charts.is_shown_by(meta.get(CAPABILITIES_KEY))
    if method == "initialize":
        return charts.is_shown_by(params.get("capabilities"))
    return headers.get(charts.SESSION_HEADER, "").startswith(charts.SESSIONS)


def _elicits(method: str, params: Json, headers: Headers, *, is_modern: bool) -> bool:
    """Whether the client shows its person a question of ours: it says so as it says what it draws (`_shows_apps`)."""
    declared = params
    if is_modern:
        meta = params.get("_meta")
        declared = meta if isinstance(meta, dict) else {}
    elif method != "initialize":
        return ASKS in headers.get(charts.SESSION_HEADER, "")
    capabilities = declared.get(CAPABILITIES_KEY if is_modern else "capabilities")
    able = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(able, dict) and (not able or "form" in able)


def _check_modern(message: RpcRequest, headers: Headers) -> None:
    """Check what the modern revision requires of each request: `_meta`, then headers that agree with the body, then a
    version that is served. Raises RpcError.

    A proxy may have routed by the headers, so any difference from the body is refused, and so is a header that comes
    twice.
    """
    version = _header(headers, VERSION_HEADER)
    if message.id is None:  # a notification has no result, and its headers are not prescribed
        _check_version(message, version)
        return
    repeated = [name for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER) if len(headers.getlist(name)) > 1]
    if repeated:
        raise _mismatch(message, f"{repeated[0]} must be sent once.")
    meta = message.params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
        raise message.error(INVALID_PARAMS, f"params._meta must hold {VERSION_KEY} and {CAPABILITIES_KEY}.")
    if version is None or version != meta[VERSION_KEY]:
        raise _mismatch(message, f"{VERSION_HEADER} must be sent and equal {VERSION_KEY}.")
    if _header(headers, METHOD_HEADER) != message.method:
        raise _mismatch(message, f"{METHOD_HEADER} must be sent and equal method.")
    named = NAMING.get(message.method)
    if named is not None and _decode(_header(headers, NAME_HEADER)) != message.params.get(named):
        raise _mismatch(message, f"{NAME_HEADER} must be sent and equal params.{named}.")
    _check_version(message, version)


def _check_version(message: RpcRequest, version: str | None) -> None:
    if version not in MODERN:
        raise RpcError(
            UNSUPPORTED_VERSION,
            "This version of the protocol is not served.",
            id_=message.id,
            data={"supported": list(VERSIONS), "requested": (version or "")[:20]},
        )


def _mismatch(message: RpcRequest, sentence: str) -> RpcError:
    return message.error(HEADER_MISMATCH, sentence)


def _header(headers: Headers, name: str) -> str | None:
    """The header's value without blanks around it, which are no part of it (RFC 9110); the server leaves those at the
    end. None if it is not sent."""
    value = headers.get(name)
    return value.strip(" \t") if value is not None else None


def _decode(value: str | None) -> str | None:
    """The header's value, decoded where it came as =?base64?...?= because it is not plain ASCII; None if it cannot be
    decoded, or was not sent."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
