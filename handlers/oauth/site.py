"""What all pages of the authorization server go through: who visits, whether the form is ours, how it ends."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from auth.errors import TemporarilyUnavailable
from auth.people.password_hashing import Busy
from auth.people.sessions import Browser
from auth.server import AuthorizationServer
from handlers.http import call
from handlers.http.errors import RETRY_SECONDS
from handlers.http.steps.rate_limit import Limiter, Rate
from handlers.oauth import forms
from handlers.oauth.cookies import Cookies, sent_cookies
from handlers.oauth.languages import Words, words_for
from handlers.oauth.mistakes import Mistake
from handlers.oauth.rendering import page_headers, rendered
from storage.accounts import StoredAccount
from storage.database import StoreUnavailable

logger = logging.getLogger("bankdata.oauth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A browser's request: parameters decoded, its session found."""

    parameters: Mapping[str, tuple[str, ...]]
    form: Mapping[str, str]
    ticked_accounts: frozenset[str]
    browser: Browser | None
    known_browser: str | None
    address: str
    words: Words
    bearer: str | None  # the access token of a script that calls in place of a form
    destination: str | None  # what the browser fetches this for (W3C Fetch Metadata)


AccountsOf = Callable[[str], Sequence[StoredAccount]]
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
        accounts_of: AccountsOf = lambda _user_id: (),
    ) -> None:
        """`time_zone`: whose days and times people see. `has_accounts`: whether there are bank data of a user.
        `accounts_of`: the accounts that a user may let apps read."""
        self.server = server
        self.time_zone = time_zone
        self.has_accounts = has_accounts
        self.accounts_of = accounts_of
        self.policy = server.policy
        self._limiter = limiter
        self._rate = rate
        self.cookies = Cookies(is_https=server.policy.is_https)

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
            except StoreUnavailable:
                response = self.mistake_page(Mistake("busy", status=503, retry_after=RETRY_SECONDS), words)
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
        parameters = forms.query(request)
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        bearer = credentials.strip() if scheme.lower() == "bearer" else None
        sent = await forms.form(request) if request.method == "POST" and bearer is None else {}
        cookies = sent_cookies(request)
        browser = await run_in_threadpool(self.server.sessions.find, cookies.get(self.cookies.session))
        if request.method == "POST":
            self._refuse_foreign(request)
        return Visit(
            parameters=parameters,
            form={name: values[0] for name, values in sent.items()},
            ticked_accounts=frozenset(sent.get("account", ())),
            browser=browser,
            known_browser=cookies.get(self.cookies.known),
            address=call.current(request.scope).client_address,
            words=words,
            bearer=bearer,
            destination=request.headers.get("sec-fetch-dest"),
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
        if mistake.challenge is not None:
            response.headers["www-authenticate"] = mistake.challenge
        return response

    def redirect(self, address: str) -> Response:
        """303: the next request is a GET, whatever this one was; 307 would repeat the password."""
        response = RedirectResponse(address, status_code=303, headers=page_headers(""))
        response.headers["location"] = address  # as it is: Starlette would quote it again
        return response
