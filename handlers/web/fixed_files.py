"""Serves files that do not change while the server runs: with a strong ETag, and compressed once for clients that read
gzip."""

import asyncio
import gzip
import hashlib
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles

from handlers.web.steps.request_headers import weights

COMPRESSED_BYTES_MIN = 1024
MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}

_FILES = StaticFiles()  # without a folder: used only for its rules on If-None-Match


def fixed_file(path: str, content: bytes, headers: Mapping[str, str]) -> Route:
    """A GET route that serves this content at this path, whose ending tells its media type (none: a page); from 1,024
    bytes on compressed for clients that accept gzip. A client that already has it gets a 304."""
    media_type = MEDIA_TYPES.get(PurePosixPath(path).suffix, "text/html")
    digest = hashlib.sha256(content).hexdigest()
    is_large = len(content) >= COMPRESSED_BYTES_MIN
    common = {**headers, **({"vary": "Accept-Encoding"} if is_large else {})}
    # A memoryview: one copy for all readers, however slow they are (handlers/web/sockets/request_and_answer.py)
    plain = Response(memoryview(content), headers={**common, "etag": f'"{digest}"'}, media_type=media_type)

    # Filled at the first request for it: compressing Swagger UI takes a tenth of a second
    compressed: list[Response] = []
    compressing = asyncio.Lock()

    def compress() -> Response:
        own = {**common, "etag": f'"{digest}-gzip"', "content-encoding": "gzip"}
        return Response(memoryview(gzip.compress(content, mtime=0)), headers=own, media_type=media_type)

    # Not in a worker thread: with hundreds of requests at once, everybody waited for seconds while threads took turns
    async def answer(request: Request) -> Response:
        response = plain
        if is_large and takes_gzip(request.headers.get("accept-encoding", "")):
            async with compressing:
                if not compressed:
                    compressed.append(await run_in_threadpool(compress))
            response = compressed[0]
        if _FILES.is_not_modified(response.headers, request.headers):
            return NotModifiedResponse(response.headers)
        return response

    return Route(path, answer, methods=["GET"])


def stylesheet(file: Traversable) -> bytes:
    """The content of the stylesheet, with the colours and sizes that all pages share (`tokens.css`) before it."""
    tokens = resources.files("handlers.web") / "static" / "tokens.css"
    return tokens.read_bytes() + file.read_bytes()


def takes_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header names gzip, with any weight but 0 (RFC 9110 12.5.3); `*` is not enough."""
    return weights(accept_encoding).get("gzip", 0.0) != 0.0
