"""The contract as it is, the page that shows it, and whether the service is up: routes without a token."""

import asyncio
import gzip
import hashlib
import re
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles

CONTRACT_PATH = "/api/openapi.json"
CACHE_SECONDS = 300
COMPRESSED_BYTES_MIN = 1024

_REFUSED = re.compile(r"q=0(\.0{0,3})?")
_FILES = StaticFiles()  # of no folder: for its rules on If-None-Match

# Swagger UI 5.35.0 as published on npm (swagger-ui-dist), index and start-up script our own: nothing inline
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".png": "image/png",
}


def documentation(contract: bytes) -> list[Route]:
    """/api/openapi.json (byte for byte the file), /docs and its files, / (leads to /docs), /healthz."""
    pages = resources.files("handlers.http") / "static" / "docs"
    routes = [
        Route("/", _to_docs, methods=["GET"]),
        Route("/healthz", _healthy, methods=["GET"]),
        _file(CONTRACT_PATH, contract, "application/json"),
        _file("/docs", (pages / "index.html").read_bytes(), MEDIA_TYPES[".html"]),
    ]
    return routes + [_page_file(page) for page in pages.iterdir() if page.name != "index.html" and _suffix(page)]


def _page_file(page: Traversable) -> Route:
    return _file(f"/docs/{page.name}", page.read_bytes(), MEDIA_TYPES[_suffix(page)])


def _suffix(page: Traversable) -> str:
    return next((suffix for suffix in MEDIA_TYPES if page.name.endswith(suffix)), "")


def _file(path: str, content: bytes, media_type: str) -> Route:
    """Fixed bytes under a strong ETag, so that asking again costs nothing; large ones compressed for who reads that."""
    digest = hashlib.sha256(content).hexdigest()
    headers = {"cache-control": f"public, max-age={CACHE_SECONDS}"}
    if media_type.startswith("text/html"):
        headers |= {
            "content-security-policy": PAGE_POLICY,
            "referrer-policy": "no-referrer",
            "x-frame-options": "DENY",
        }
    is_large = len(content) >= COMPRESSED_BYTES_MIN
    if is_large:
        headers["vary"] = "Accept-Encoding"
    plain = Response(content, headers={**headers, "etag": f'"{digest}"'}, media_type=media_type)

    compressed: list[Response] = []  # one, from the first request for it on: Swagger UI takes a tenth of a second
    compressing = asyncio.Lock()

    def compress() -> Response:
        own = {**headers, "etag": f'"{digest}-gzip"', "content-encoding": "gzip"}
        return Response(gzip.compress(content, mtime=0), headers=own, media_type=media_type)

    # Not in a worker thread: hundreds of requests at once kept everybody waiting for seconds while threads took turns
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


def takes_gzip(accept_encoding: str) -> bool:
    """Whether a client reads gzip (RFC 9110 12.5.3); `gzip;q=0` says that it does not."""
    codings = [part.partition(";") for part in accept_encoding.lower().replace(" ", "").split(",")]
    return any(name == "gzip" and not _REFUSED.fullmatch(weight) for name, _, weight in codings)


async def _to_docs(_request: Request) -> Response:
    return RedirectResponse("docs", status_code=303)  # relative: the Host header is never repeated


async def _healthy(_request: Request) -> Response:
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})
