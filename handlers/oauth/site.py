"""What all pages of the authorization server share: reading a browser's request, cookies, headers, templates."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from auth.errors import TemporarilyUnavailable
from auth.people.passwords import Busy
from auth.people.sessions import KNOWN_BROWSER_LIFETIME, LIFETIME, Browser
from auth.policy import Policy
from auth.server import AuthorizationServer
from handlers.http import call
from handlers.http.outermost import UnknownPage
from handlers.http.rate_limit import Limiter, Rate
from handlers.oauth.languages import LANGUAGES, Words, words_for

logger = logging.getLogger("bankdata.oauth")

FORM_BYTES_MAX = 16_384
DRAINED_BYTES_MAX = 1_048_576
QUERY_BYTES_MAX = 16_384
FIELDS_MAX = 100
NAME_SHOWN_MAX = 50  # two lines of a heading on a phone
STYLE_PATH = "/oauth/style.css"
ICON_PATH = "/oauth/icon.svg"

_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Mistake(Exception):
    """A page that says what went wrong; `name` finds its words."""

    def __init__(
        self, name: str, *, status: int = 400, detail: str = "", back: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(name)
        self.name = name
        self.status = status
        self.detail = detail
        self.back = back
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A browser's request: parameters decoded, its session found."""

    parameters: Mapping[str, tuple[str, ...]]
    form: Mapping[str, str]
    browser: Browser | None
    known_browser: str | None
    address: str
    words: Words


Answering = Callable[["Site", Visit], Response]


class Site:
    """The pages' surroundings: server, cookies, addresses."""

    def __init__(
        self,
        server: AuthorizationServer,
        *,
        limiter: Limiter,
        rate: Rate | None,
        time_zone: tzinfo,
        has_accounts: Callable[[str], bool],
    ) -> None:
        """`time_zone`: whose days and times people see. `has_accounts`: whether there are bank data of a user."""
        self.server = server
        self.time_zone = time_zone
        self.has_accounts = has_accounts
        self.policy = server.policy
        self._limiter = limiter
        self._rate = rate
        prefix = "__Host-" if server.policy.is_https else ""
        self.session_cookie = f"{prefix}bds_session"
        self.known_cookie = f"{prefix}bds_known"

    def address(self, path: str) -> str:
        """The address of a page, as a path: nothing is ever built from the Host header."""
        return self.policy.auth_path + path

    def route(self, path: str, methods: Mapping[str, Answering]) -> Route:
        """One page with the functions that answer its methods, each in a worker thread."""

        async def endpoint(request: Request) -> Response:
            # HEAD is answered like GET; the server leaves the body out
            answering = methods["GET" if request.method == "HEAD" else request.method]
            words = words_for(request.headers.get("accept-language", ""))
            try:
                await self._count(request)
                visit = await self._visit(request, words)
                response = await run_in_threadpool(answering, self, visit)
            except Mistake as mistake:
                response = self.mistake_page(mistake, words)
            except TemporarilyUnavailable as error:
                response = self.mistake_page(Mistake("busy", status=429, retry_after=error.retry_after), words)
            except Busy:
                response = self.mistake_page(Mistake("busy", status=503, retry_after=5), words)
            except ClientDisconnect:
                raise  # nobody is there to read a page; outermost.py ends the request without a word
            except Exception:
                logger.exception("page failed")
                response = self.mistake_page(Mistake("server_error", status=500), words)
            if request.method == "HEAD":
                response.body = b""
            return response

        return Route(self.policy.served_path + path, endpoint, methods=list(methods))

    async def _count(self, request: Request) -> None:
        if self._rate is not None:
            address = call.current(request.scope).client_address
            quota = await self._limiter.take("oauth pages", self._rate, address)
            if not quota.is_granted:
                raise TemporarilyUnavailable(quota.reset_seconds)

    async def _visit(self, request: Request, words: Words) -> Visit:
        query: bytes = request.scope["query_string"]
        parameters = _decoded(query, limit=QUERY_BYTES_MAX)
        form = await _form(request) if request.method == "POST" else {}
        cookies = _cookies(request)
        browser = await run_in_threadpool(self.server.sessions.find, cookies.get(self.session_cookie))
        if request.method == "POST":
            self._refuse_foreign(request)
        return Visit(
            parameters=parameters,
            form=form,
            browser=browser,
            known_browser=cookies.get(self.known_cookie),
            address=call.current(request.scope).client_address,
            words=words,
        )

    def _refuse_foreign(self, request: Request) -> None:
        """A form must come from our own page. Under `Referrer-Policy: no-referrer` browsers send `Origin: null` with
        our own forms too, so that only another origin's name or Sec-Fetch-Site is proof; the form token is the rule."""
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin", "null").lower()
        if (site is not None and site not in ("same-origin", "none")) or origin not in ("null", self.policy.origin):
            raise Mistake("foreign_form", status=403)

    def checked_browser(self, visit: Visit, purpose: str) -> Browser:
        """The browser that sent a form, once it is certain that our own page for this purpose sent it."""
        if visit.browser is None:
            raise Mistake("no_session")
        if not self.server.sessions.is_form_token(visit.browser, purpose, visit.form.get("form_token", "")):
            raise Mistake("foreign_form", status=403)
        return visit.browser

    def page(self, template: str, words: Words, *, status: int = 200, form_action: str = "", **values: Any) -> Response:
        """A rendered page with the headers that keep it to itself (oauth.md 3.1)."""
        return rendered(self.policy, template, words, status=status, form_action=form_action, **values)

    def mistake_page(self, mistake: Mistake, words: Words) -> Response:
        """What went wrong, and what to do now."""
        response = self.page("mistake.html", words, status=mistake.status, mistake=mistake)
        if mistake.retry_after is not None:
            response.headers["retry-after"] = str(mistake.retry_after)
        return response

    def redirect(self, address: str) -> Response:
        """303: the next request is a GET, whatever this one was; 307 would repeat the password."""
        response = RedirectResponse(address, status_code=303, headers=_headers(""))
        response.headers["location"] = address  # as it is: Starlette would quote it again
        return response

    def remember(self, response: Response, browser: Browser) -> None:
        """Give a browser its session."""
        self._set_cookie(response, self.session_cookie, browser.secret, LIFETIME)

    def remember_known(self, response: Response, value: str) -> None:
        """Let a browser be known at the next sign-in."""
        self._set_cookie(response, self.known_cookie, value, KNOWN_BROWSER_LIFETIME)

    def forget(self, response: Response) -> None:
        """Take the session away."""
        self._set_cookie(response, self.session_cookie, "", timedelta())

    def _set_cookie(self, response: Response, name: str, value: str, lifetime: timedelta) -> None:
        response.set_cookie(
            name,
            value,
            max_age=int(lifetime.total_seconds()),
            path="/",
            secure=self.policy.is_https,
            httponly=True,
            samesite="lax",
        )


def rendered(
    policy: Policy, template: str, words: Words, *, status: int, form_action: str = "", **values: Any
) -> Response:
    """A page of this server, which may depend on nobody's session."""
    html = (
        _templates()
        .get_template(template)
        .render(
            t=words,
            style=policy.auth_path + STYLE_PATH,
            icon=policy.auth_path + ICON_PATH,
            account_address=policy.auth_path + "/account",
            login_address=policy.auth_path + "/oauth/login",
            **values,
        )
    )
    return Response(html, status_code=status, media_type="text/html", headers=_headers(form_action))


def unknown_address(policy: Policy) -> UnknownPage:
    """What a person reads who opens an address that nothing stands behind; made once in each language."""
    mistake = Mistake("unknown_address", status=404)
    pages = {
        words.language: rendered(policy, "mistake.html", words, status=mistake.status, mistake=mistake)
        for words in LANGUAGES.values()
    }
    return lambda accept_language: pages[words_for(accept_language).language]


def file_routes(site: Site) -> list[Route]:
    """The one stylesheet and the icon."""
    return [_file(site, STYLE_PATH, "oauth.css", "text/css"), _file(site, ICON_PATH, "oauth.svg", "image/svg+xml")]


def _file(site: Site, path: str, name: str, media_type: str) -> Route:
    content = (resources.files("handlers.oauth") / "static" / name).read_bytes()

    async def answer(_request: Request) -> Response:
        return Response(content, media_type=media_type, headers={"cache-control": "public, max-age=300"})

    return Route(site.policy.served_path + path, answer, methods=["GET"])


def _cookies(request: Request) -> dict[str, str]:
    """The cookies of a browser as they were set: nothing is unquoted, since ours need no quotes.

    Starlette leaves that to `http.cookies`, whose cost before Python 3.11.10 is the square of their length
    (CVE-2024-7592).
    """
    pairs = [pair.partition("=") for header in request.headers.getlist("cookie") for pair in header.split(";")]
    return {name.strip(): value.strip() for name, _, value in pairs}


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Mistake("bad_form", status=415)
    content, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        # Read on and forget: a browser that is cut off while it sends never sees the answer
        if size > DRAINED_BYTES_MAX:
            break
        if size <= FORM_BYTES_MAX:
            content += chunk
    if size > FORM_BYTES_MAX:
        raise Mistake("too_large", status=413)
    fields = _decoded(bytes(content), limit=FORM_BYTES_MAX)
    if any(len(values) > 1 for values in fields.values()):
        raise Mistake("bad_form")
    return {name: values[0] for name, values in fields.items()}


def _decoded(encoded: bytes, *, limit: int) -> dict[str, tuple[str, ...]]:
    """Parameters in UTF-8, each with all its values, empty ones left out (RFC 6749 section 3.1)."""
    if len(encoded) > limit:
        raise Mistake("too_large", status=400)
    try:
        text = encoded.decode("utf-8")
        if _BROKEN_PERCENT.search(text):
            raise Mistake("bad_form")
        pairs = parse_qsl(text, keep_blank_values=False, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError as error:  # UnicodeDecodeError is one
        raise Mistake("bad_form") from error
    found: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        found[name] = (*found.get(name, ()), value)
    return found


def _headers(form_action: str) -> dict[str, str]:
    return {
        "content-security-policy": (
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
            f"form-action 'self'{' ' + form_action if form_action else ''}"
        ),
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("handlers.oauth", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["clamped"] = clamped
    return environment


def clamped(name: str) -> str:
    """A name that a stranger chose, no longer than a heading can be."""
    return name if len(name) <= NAME_SHOWN_MAX else f"{name[: NAME_SHOWN_MAX - 1].rstrip()}…"
