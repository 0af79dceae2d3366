"""Routes without a token: the contract as a file, the page that shows it, and /healthz."""

from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from handlers.http.fixed_files import fixed_file, stylesheet

CONTRACT_PATH = "/api/openapi.json"
CACHE_SECONDS = 300

# Swagger UI 5.35.0 as published on npm (swagger-ui-dist), with an index and a start-up script of our own: none inline
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
    """The GET routes, open to everybody, of /api/openapi.json (the bytes of `contract`), of /docs with its files, and
    of /healthz, which says that the process answers."""
    pages = resources.files("handlers.http") / "static" / "docs"
    routes = [
        Route("/healthz", _health, methods=["GET"]),
        _file(CONTRACT_PATH, contract, "application/json"),
        _file("/docs", (pages / "index.html").read_bytes(), MEDIA_TYPES[".html"]),
    ]
    return routes + [_page_file(page) for page in pages.iterdir() if page.name != "index.html" and _suffix(page)]


def _page_file(page: Traversable) -> Route:
    content = stylesheet(page) if page.name == "page.css" else page.read_bytes()
    return _file(f"/docs/{page.name}", content, MEDIA_TYPES[_suffix(page)])


def _suffix(page: Traversable) -> str:
    return next((suffix for suffix in MEDIA_TYPES if page.name.endswith(suffix)), "")


def _file(path: str, content: bytes, media_type: str) -> Route:
    headers = {"cache-control": f"public, max-age={CACHE_SECONDS}"}
    if media_type.startswith("text/html"):
        headers |= {
            "content-security-policy": PAGE_POLICY,
            "referrer-policy": "no-referrer",
            "x-frame-options": "DENY",
        }
    return fixed_file(path, content, media_type, headers)


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})
