"""Routes without a token: the contract as a file, the page that shows it, and /healthz."""

from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from handlers.web.fixed_files import fixed_file, stylesheet

CONTRACT_PATH = "/api/openapi.json"
CACHE_SECONDS = 300

# Swagger UI 5.35.0 as published on npm (swagger-ui-dist), with an index and a start-up script of our own: none inline
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
KEPT = {"cache-control": f"public, max-age={CACHE_SECONDS}"}
PAGE_HEADERS = {
    **KEPT,
    "content-security-policy": PAGE_POLICY,
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}


def documentation(contract: bytes) -> list[Route]:
    """The GET routes, open to everybody, of /api/openapi.json (the bytes of `contract`), of /docs with its files, and
    of /healthz, which says that the process answers."""
    pages = resources.files("handlers.web") / "static" / "docs"
    return [
        Route("/healthz", _health, methods=["GET"]),
        fixed_file(CONTRACT_PATH, contract, KEPT),
        *(_page_file(page) for page in pages.iterdir() if page.name.endswith((".html", ".js", ".css", ".png"))),
    ]


def _page_file(page: Traversable) -> Route:
    path = "/docs" if page.name == "index.html" else f"/docs/{page.name}"
    content = stylesheet(page) if page.name == "page.css" else page.read_bytes()
    return fixed_file(path, content, PAGE_HEADERS if page.name.endswith(".html") else KEPT)


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})
