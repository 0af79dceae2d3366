"""Reads what a browser sends, parameters and forms, within limits and strictly decoded."""

from collections.abc import Mapping

from starlette.requests import Request

from handlers.oauth.mistakes import Mistake
from handlers.web.errors import BadRequest
from handlers.web.steps.parameters import pairs

BYTES_MAX = 16_384  # of a form, and of an address's parameters
DRAINED_BYTES_MAX = 1_048_576
FIELDS_MAX = 1_000  # a box for each account
REPEATED = frozenset({"account"})


def query(request: Request) -> dict[str, tuple[str, ...]]:
    """The parameters of the address by name, each with all its values in order, without empty ones; raises Mistake."""
    return _decode(request.scope["query_string"])


async def form(request: Request) -> dict[str, tuple[str, ...]]:
    """The fields of the form by name, each with its values, without empty ones. Only fields of REPEATED may come more
    than once. Raises Mistake, also for another media type and more than 16 KiB."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Mistake("bad_form", status=415)
    content, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        # Read on and drop: a browser that is cut off while it sends never sees the answer
        if size > DRAINED_BYTES_MAX:
            break
        if size <= BYTES_MAX:
            content += chunk
    if size > BYTES_MAX:
        raise Mistake("too_large", status=413)
    fields = _decode(bytes(content))
    if any(len(values) > 1 for name, values in fields.items() if name not in REPEATED):
        raise Mistake("bad_form")
    return fields


def _decode(encoded: bytes) -> dict[str, tuple[str, ...]]:
    """The parameters of an urlencoded text in UTF-8, each with all its values; empty values are left out (RFC 6749
    section 3.1). Raises Mistake."""
    if len(encoded) > BYTES_MAX:
        raise Mistake("too_large", status=400)
    found: dict[str, tuple[str, ...]] = {}
    try:
        for name, value in pairs(encoded, most=FIELDS_MAX):
            if value:
                found[name] = (*found.get(name, ()), value)
    except BadRequest as error:
        raise Mistake("bad_form") from error
    return found


def bearer(headers: Mapping[str, str]) -> str | None:
    """The token in the header `authorization` if its scheme is Bearer; else None."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else None
