"""Reads request bodies up to a limit, decodes them strictly, checks them against the contract, and refuses in one
sentence."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from jsonschema import FormatChecker, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from analytics.messages import message
from handlers.web.errors import BadRequest, ContentTooLarge, UnsupportedMediaType
from handlers.web.framework import Draft4RequestValidator
from handlers.web.steps.parameters import Unreadable, form_fields, read_date, read_moment
from handlers.web.steps.request_headers import check_length, header

BODY_BYTES_MAX = 65_536

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

RULES = {
    "type": "must be of type {}",
    "enum": "must be one of {}",
    "maxItems": "must have at most {} items",
    "minItems": "must have at least {} items",
    "maxLength": "must have at most {} characters",
    "minLength": "must have at least {} characters",
}
"""The sentence of each rule of a schema, by its JSON Schema keyword."""

FORMATS = FormatChecker(formats=())
for _name, _read in (("date", read_date), ("date-time", read_moment)):
    FORMATS.checks(_name, raises=Unreadable)(lambda value, read=_read: not isinstance(value, str) or bool(read(value)))


class Body:
    """The request body of one operation."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        """`described` is the contract's requestBody; its media types are the only ones that are read."""
        self._required: bool = described.get("required", False)
        self._readers = {kind: _reader(kind, media["schema"]) for kind, media in described["content"].items()}
        # A browser sends a body without a type to other sites without asking first: where a body is the whole request,
        # as in registering a client, its type must be stated.
        self._assumed = "" if self._required else next(iter(described["content"]))

    async def read(self, scope: Scope, receive: Receive) -> Any:
        """The body as JSON values that fit their schema; None for an empty one that is not required, even if its type
        is stated. Raises BadRequest, ContentTooLarge, UnsupportedMediaType, and ClientDisconnect if the client goes
        away."""
        headers = scope["headers"]
        content = await _content(headers, receive)
        if not content:
            if self._required:
                raise BadRequest("body: is required")
            return None
        if header(headers, b"content-encoding") not in ("", "identity"):
            raise UnsupportedMediaType("The body must not be compressed")
        kind = header(headers, b"content-type").partition(";")[0].strip() or self._assumed
        reader = self._readers.get(kind)
        if reader is None:
            raise UnsupportedMediaType("The body must be {formats}", formats=" or ".join(self._readers))
        return reader(content)


async def _content(headers: list[tuple[bytes, bytes]], receive: Receive) -> bytes:
    check_length(headers, BODY_BYTES_MAX)
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        content += message.get("body", b"")
        if len(content) > BODY_BYTES_MAX:
            raise ContentTooLarge(BODY_BYTES_MAX)
        if not message.get("more_body", False):
            return bytes(content)


def _reader(kind: str, schema: Mapping[str, Any]) -> Callable[[bytes], Any]:
    decode = {JSON: _json, FORM: form_fields}[kind]
    validator = Draft4RequestValidator(schema, format_checker=FORMATS)

    def read(content: bytes) -> Any:
        value = decode(content)
        error = next(validator.iter_errors(value), None)
        if error is not None:
            raise _refusal(error)
        return value

    return read


def _json(content: bytes) -> Any:
    try:
        return orjson.loads(content)  # refuses NaN, lone surrogates, depths beyond 1,024 and what is not UTF-8
    except orjson.JSONDecodeError:
        raise BadRequest("body: must be JSON in UTF-8") from None


def _refusal(error: ValidationError) -> BadRequest:
    """What is wrong, said by the rule of the contract; the client's own bytes are never repeated."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    if isinstance(error.cause, Unreadable):
        reason = message(str(error.cause))
    else:
        rule = {"required": "must have {}", "pattern": "contains characters that are not allowed", **RULES}
        reason = message(in_words(rule.get(str(error.validator), "is not what the contract allows"), error))
    return BadRequest("{name}: {reason}", name=place.lstrip(".") or "body", reason=reason)


def in_words(rule: str, error: ValidationError) -> str:
    """The sentence of a rule, its `{}` replaced by the value that the schema gives it, a list separated by commas."""
    value: Any = error.validator_value
    return rule.format(", ".join(map(str, value)) if isinstance(value, list) else value)
