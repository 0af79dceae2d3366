"""Serves the browser page: one HTML document without data at a fixed list of addresses, its files below /assets/, and
what a device needs to install it."""

import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from urllib.parse import urlsplit

from starlette.routing import Route

from handlers.languages import ENGLISH, LANGUAGES, catalogue
from handlers.web.descriptions import specification
from handlers.web.fixed_files import fixed_file, stylesheet

PLACES = (
    "/", "/transactions", "/months", "/recurring", "/accounts", "/merchants",
    "/import", "/connections", "/settings", "/notices", "/signed-in",
)  # fmt: skip
ICON = "app-icon.png"
YEAR_SECONDS = 31_536_000
WORKER_HEADERS = {"cache-control": "no-cache", "content-security-policy": "default-src 'none'; img-src 'self'"}
# The modules that the overview needs; the others are loaded with the place or the language that needs them
FIRST = (  # behind auth, whose request for the token would queue behind them over HTTP/1.1
    "api", "charts", "first-run", "format", "icons", "overview", "parts", "place", "sync", "ui", "words",
    "vendor/hooks", "vendor/htm", "vendor/preact",
)  # fmt: skip
WORDS = {"words": "page", "more-words": "place"}  # modules of words by their context in the catalogues
# Comments on lines of their own, or behind code
COMMENT = re.compile(r"^[ ]*(//[^\n]*|/\*\*.*?\*/)\n|(?<=[;,{])[ ]//[ ][^\n]*$", re.MULTILINE | re.DOTALL)
BETWEEN_TAGS = re.compile(r"(?<=[>}])\n(?=<|\$\{)")  # htm leaves them out as well


def page_routes(*, public_url: str, auth_url: str, contract: bytes) -> list[Route]:
    """The routes of the page and its files; addresses inside the page follow the public address, which a proxy may give
    a path."""
    files = module_files()
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name])
    base, folder = urlsplit(public_url).path.rstrip("/"), f"/assets/{digest.hexdigest()[:16]}"
    document = _document(base=base, assets=base + folder, public=public_url, auth=auth_url, contract=contract)
    kept_for_good = {"cache-control": f"public, max-age={YEAR_SECONDS}, immutable"}
    asked_again = {"cache-control": "no-cache", **_page_headers(auth_url, public_url)}
    return [
        *(fixed_file(f"{folder}/{name}", files[name], kept_for_good) for name in files),
        *(fixed_file(path, document, asked_again) for path in PLACES),
        *(fixed_file(f"/{name}", content, WORKER_HEADERS) for name, content in _installed(base).items()),
    ]


def _installed(base: str) -> dict[str, bytes]:
    """What a device keeps under fixed names: the worker that shows what is pushed, whose place bounds what it may do;
    the manifest; the icon."""
    folder = resources.files("handlers.page") / "static" / "installed"
    icon = {"src": f"{base}/{ICON}", "sizes": "512x512", "type": "image/png", "purpose": "any maskable"}
    name = catalogue(ENGLISH).named("page")["service"]
    manifest = {
        **dict.fromkeys(("id", "scope", "start_url"), f"{base}/"),
        "name": name,
        "short_name": "Bank",
        "display": "standalone",
        "icons": [icon],
    }
    worker = _without_comments((folder / "worker.js").read_bytes())
    return {
        "worker.js": worker,
        "app.webmanifest": json.dumps(manifest).encode(),
        ICON: (folder / ICON).read_bytes(),
    }


@cache
def module_files() -> dict[str, bytes]:
    """The modules, the stylesheet and the icon, by their names below /assets/<hash>/."""
    folder = resources.files("handlers.page") / "static"
    own = {name: _without_comments(content) for name, content in _scripts_and_styles(folder).items()}
    files = {**own, **{f"vendor/{name}": content for name, content in _scripts_and_styles(folder / "vendor").items()}}
    said = {
        f"{file}-{language}.js": _module(catalogue(language).named(context))
        for file, context in WORDS.items()
        for language in LANGUAGES
    }
    icon = resources.files("handlers.oauth") / "static" / "oauth.svg"
    return {
        **files,
        **said,
        "icon.svg": icon.read_bytes(),
        "page.css": _without_comments(stylesheet(folder / "page.css")),
    }


def _module(words: Mapping[str, str]) -> bytes:
    """The module that exports these words, in as few bytes as they need: names are quoted where they have to be."""
    named = ((name if name.isidentifier() else json.dumps(name), text) for name, text in words.items())
    said = ",".join(f"{name}:{json.dumps(text, ensure_ascii=False)}" for name, text in named)
    return f"export default {{{said}}};\n".encode()


def _scripts_and_styles(folder: Traversable) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith((".js", ".css"))}


def _without_comments(content: bytes) -> bytes:
    """The content of one of our files without comments, indentation and line ends between tags, which are an eighth of
    what a browser would load."""
    lines = COMMENT.sub("", content.decode()).splitlines()
    return BETWEEN_TAGS.sub("", "\n".join(line.lstrip() for line in lines if line.strip())).encode()


def _document(*, base: str, assets: str, public: str, auth: str, contract: bytes) -> bytes:
    """index.html with the addresses of this server and the scopes of its contract."""
    scopes = specification(contract).security_schemes["oauth2"]["flows"]["authorizationCode"]["scopes"]
    values = {
        "base": base,
        "assets": assets,
        "public": public,
        "auth": auth,
        "scopes": " ".join(scopes),
        "languages": " ".join(LANGUAGES),
    }
    text = (resources.files("handlers.page") / "static" / "index.html").read_text("utf-8")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", html.escape(value))
    links = "\n".join(
        f'<link rel="modulepreload" href="{html.escape(assets)}/{name}.js" fetchpriority="low">' for name in FIRST
    )
    return text.replace("{preloads}", links).encode()


def _page_headers(auth_url: str, public_url: str) -> dict[str, str]:
    """The headers of the page. They allow no script but ours and no markup made from text (Trusted Types: one policy,
    for the address of the worker), and keep windows of other origins, such as sign-in pages, from accessing this one
    (COOP)."""
    here, there = (f"{urlsplit(url).scheme}://{urlsplit(url).netloc}" for url in (public_url, auth_url))
    asked = "'self'" if here == there else f"'self' {there}"
    return {
        "content-security-policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            f"connect-src {asked}; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types worker"
        ),
        "cross-origin-opener-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }
