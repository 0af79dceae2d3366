"""The contract as it is, the page that shows it, and whether the service is up: routes without a token."""

import hashlib
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CONTRACT_PATH = "/api/openapi.json"
CACHE_SECONDS = 300

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
    """Fixed bytes under a strong ETag, so that asking again costs nothing."""
    etag = f'"{hashlib.sha256(content).hexdigest()}"'
    headers = {"etag": etag, "cache-control": f"public, max-age={CACHE_SECONDS}"}
    if media_type.startswith("text/html"):
        headers |= {
            "content-security-policy": PAGE_POLICY,
            "referrer-policy": "no-referrer",
            "x-frame-options": "DENY",
        }

    async def answer(request: Request) -> Response:
        if _is_known(request.headers.get("if-none-match", ""), etag):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)

    return Route(path, answer, methods=["GET"])


def _is_known(if_none_match: str, etag: str) -> bool:
    # "A recipient MUST use the weak comparison function" RFC 9110 13.1.2
    known = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in known or known == ["*"]


async def _to_docs(_request: Request) -> Response:
    return RedirectResponse("docs", status_code=303)  # relative: the Host header is never repeated


async def _healthy(_request: Request) -> Response:
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})
