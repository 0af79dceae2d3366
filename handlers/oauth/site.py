"""The common part of all pages of the authorization server: reads the request, checks forms, renders pages and
errors."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from auth.errors import TemporarilyUnavailable
from auth.people.password_hashing import Busy
from auth.people.provider_metadata import ProviderSettings
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from auth.policy import origin_of
from connectors.connector import Person
from handlers.oauth import forms
from handlers.oauth.agents import agent_name
from handlers.oauth.cookies import WAITING_LENGTH_MAX, Cookies, sent_cookies
from handlers.oauth.endpoints import BUDGET
from handlers.oauth.languages import Words, words_for
from handlers.oauth.mistakes import Mistake
from handlers.oauth.rendering import page_headers, render
from handlers.web import call
from handlers.web.errors import RETRY_SECONDS, TooManyRequests
from handlers.web.steps.rate_limit import Limiter
from handlers.work.services import Services
from handlers.work.sync.presence import person_at
from storage import accounts, connections
from storage.accounts import StoredAccount
from storage.boundary import contain
from storage.connections import SHARED, StoredConnection
from storage.database import StoreFull, StoreUnavailable
from storage.oauth import grants
from storage.users import User

logger = logging.getLogger("bankdata.oauth")

BANKS_PAGE = "/account/connect"
SETUP_PAGE = "/account/simplefin"
OPERATOR_PAGE = "/operator"
SHARES_PAGE = "/account/shares"
PROVIDER_PAGE = "/account/provider"
RETURN_PAGES = frozenset(
    {
        BANKS_PAGE,
        SETUP_PAGE,
        OPERATOR_PAGE,
        SHARES_PAGE,
        PROVIDER_PAGE,
        "/account/second-factor",
        "/account/passkeys",
    }
)
"""The pages to which a sign-in may lead back; no query of an authorization request looks like one."""


_PAGES_OF = {
    "operator.html": OPERATOR_PAGE,
    "shares.html": SHARES_PAGE,
    "provider.html": PROVIDER_PAGE,
    "second_factor.html": "/account/second-factor",
    "passkeys.html": "/account/passkeys",
}
"""Where somebody who has shown anew who they are goes back to, by template; else to the account page."""


class Visit(Struct, frozen=True, kw_only=True):
    """A browser's request to a page, with its parameters and form decoded. `browser` is the session that its cookie
    names, None without a live one; `known_browser` is the content of the cookie of a browser in which somebody signed
    in before, None without it."""

    parameters: Mapping[str, tuple[str, ...]]
    waiting_query: str  # of an authorization request to sign in for, or one of RETURN_PAGES; of the cookie or the form
    form: Mapping[str, str]
    ticked_accounts: frozenset[str]
    browser: Browser | None
    session_cookie: str
    known_browser: str | None
    address: str
    words: Words
    bearer: str | None  # the access token of a script that calls in place of a form
    agent: str | None  # the name of browser and system
    destination: str | None  # what the browser fetches this for (W3C Fetch Metadata)
    person: Person | None  # what a bank is told about the person present; None if the browser does not send all of that

    def notice(self, known: Collection[str]) -> str:
        """Which of the known notices the address names, of what a form that has just been sent did; else empty."""
        named = self.parameters.get("notice", ("",))[0]
        return named if named in known else ""


Answering = Callable[["Site", Visit], Response]
ForUser = Callable[["Site", Visit, Browser, User], Response]


class Site:
    """What all pages share: the open service with its authorization server, cookies, addresses, limits."""

    def __init__(self, services: Services, *, limiter: Limiter) -> None:
        self.services = services
        self.server = services.authorization
        self.policy = self.server.policy
        self._limiter = limiter
        self.cookies = Cookies(is_https=self.policy.is_https)
        page = origin_of(self.policy.public_url)
        # Where the forms of a sign-in may lead in the end: to the page of this server, if that is on another host
        self.page_elsewhere = page if page != self.policy.origin else ""

    def in_session(self, visit: Visit, answering: Callable[[Browser], Response]) -> Response:
        """The answer of a page that needs a session: in that of the browser, or in a new one where it has none."""
        browser = visit.browser or self.server.sessions.start(visit.agent)
        response = answering(browser)
        if visit.browser is None:
            self.cookies.set_session(response, browser)
        return response

    @property
    def provider_shown(self) -> ProviderSettings | None:
        """What the pages say of the household's provider; None without one."""
        return self.server.provider.settings if self.server.provider is not None else None

    @property
    def has_passkeys_alone(self) -> bool:
        """Whether passkeys let people in by themselves: browsers make some for this host, and not the provider alone
        lets in."""
        is_only = self.provider_shown is not None and self.provider_shown.is_only
        return self.policy.passkey_host is not None and not is_only

    def accounts_of(self, user_id: str) -> Sequence[StoredAccount]:
        """The accounts that a user may let apps read: all that are neither hidden nor shared by others for the user
        alone, the one that appeared first first."""
        own = self.services.of(user_id)
        held = grants.held_of(self.services.everybody, user_id, but_passed_on=True)
        return [each for each in accounts.of_user(own, user_id) if each.id not in held]

    def connections_of(self, user_id: str) -> Sequence[StoredConnection]:
        """The user's connections that are not disconnected, the oldest first; that of uploaded files included, and what
        others share left out."""
        found = connections.of_user(self.services.of(user_id), user_id)
        return [each for each in found if each.connector not in SHARED]

    def address(self, path: str, *, request: str = "") -> str:
        """The path of a page, below that of `auth_url`, and in it the id of a waiting authorization `request`, empty
        for none; it is never built from the Host header."""
        return self.policy.auth_path + path + (f"?request={request}" if request else "")

    def route(self, path: str, methods: Mapping[str, Answering], *, reads_form: bool = True) -> Route:
        """The route of one page, with the functions that answer its methods, each run in a worker thread. What they
        raise becomes a page that says what went wrong; requests are limited per network address. Unless it
        `reads_form`, a body is not looked at, whatever its type."""

        async def endpoint(request: Request) -> Response:
            # HEAD is answered like GET; the server leaves the body out
            answering = methods["GET" if request.method == "HEAD" else request.method]
            words = words_for(request.headers.get("accept-language", ""), sent_cookies(request.headers))
            words = replace(words, zone=self.services.settings.time_zone)
            mistake = Mistake("server_error", status=500)
            response: Response | None = None
            # Without a client nobody is there to read a page; outermost.py ends the request
            with contain(logger, "page failed", passes=(ClientDisconnect,)):
                try:
                    address = call.current(request.scope).client_address
                    await self._limiter.spend("oauth pages", address, rate=BUDGET)
                    visit = await self._visit(request, words, reads_form=reads_form)
                    response = await run_in_threadpool(answering, self, visit)
                except Mistake as made:
                    mistake = made
                except (TooManyRequests, TemporarilyUnavailable) as error:
                    mistake = Mistake("busy", status=429, retry_after=error.retry_after)
                except Busy:
                    mistake = Mistake("busy", status=503, retry_after=5)
                except (StoreUnavailable, StoreFull):
                    mistake = Mistake("busy", status=503, retry_after=RETRY_SECONDS)
            response = response or self.mistake_page(mistake, words)
            if request.method == "HEAD":
                response.body = b""
            return response

        return Route(self.policy.served_path + path, endpoint, methods=list(methods))

    def user_routes(
        self, pages: Mapping[str, Mapping[str, ForUser]], *, purpose: str = "", back: str = ""
    ) -> list[Route]:
        """The routes of pages for a person who is signed in, by path and method. A form has to bring its form token for
        `purpose`. Where nobody is signed in, a form raises Mistake, and another request is redirected to the sign-in,
        and from there to the page `back`, one of RETURN_PAGES, if it is given. A browser that looks again at the
        address of a form that was sent is redirected to the page that the form is on."""

        def for_user(method: str, answering: ForUser) -> Answering:
            def answer(_site: Site, visit: Visit) -> Response:
                if method == "POST":
                    return answering(self, visit, *self.user_of_form(visit, purpose))
                user = self.server.sign_in.user_of(visit.browser)
                if user is None or visit.browser is None:
                    return self.sign_in_for(back) if back else self.redirect(self.address("/oauth/login"))
                return answering(self, visit, visit.browser, user)

            return answer

        def to_form(_site: Site, _visit: Visit) -> Response:
            return self.redirect(self.address(back or "/account"))

        return [
            self.route(path, {"GET": to_form} | {method: for_user(method, each) for method, each in methods.items()})
            for path, methods in pages.items()
        ]

    async def _visit(self, request: Request, words: Words, *, reads_form: bool) -> Visit:
        parameters = forms.query(request)
        bearer = forms.bearer(request.headers)
        has_form = reads_form and request.method == "POST" and bearer is None
        sent = await forms.form(request) if has_form else {}
        cookies = sent_cookies(request.headers)
        session_cookie = cookies.get(self.cookies.session, "")
        browser = await run_in_threadpool(self.server.sessions.resume, session_cookie)
        if request.method == "POST":
            self._refuse_foreign(request)
        return Visit(
            parameters=parameters,
            waiting_query=self.cookies.waiting_query(cookies) or sent.get("goes_on", ("",))[0],
            form={name: values[0] for name, values in sent.items()},
            ticked_accounts=frozenset(sent.get("account", ())),
            browser=browser,
            session_cookie=session_cookie,
            known_browser=cookies.get(self.cookies.known),
            address=call.current(request.scope).client_address,
            words=words,
            bearer=bearer,
            agent=agent_name(request.headers.get("user-agent", "")),
            destination=request.headers.get("sec-fetch-dest"),
            person=person_at(request.headers, call.current(request.scope).client_address),
        )

    def _refuse_foreign(self, request: Request) -> None:
        """Raise Mistake for a form of a foreign page. Under `Referrer-Policy: no-referrer` browsers send `Origin: null`
        with our own forms too, so only another origin's name or Sec-Fetch-Site proves a foreign one; the form token is
        the main check."""
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin", "null").lower()
        if (site is not None and site not in ("same-origin", "none")) or origin not in ("null", self.policy.origin):
            raise Mistake("foreign_form", status=403)

    def checked_browser(self, visit: Visit, purpose: str, *, may_be_over: bool = False) -> Browser:
        """The browser that sent a form, once its form token proves that our own page for this purpose sent it; raises
        Mistake where it does not, or the browser has no session, unless that `may_be_over`. Nobody need be signed
        in."""
        browser = visit.browser
        if browser is None and may_be_over and visit.session_cookie:
            browser = self.server.sessions.over(visit.session_cookie, visit.agent)
        if browser is None:
            raise Mistake("no_session")
        if not self.server.sessions.is_form_token(browser, purpose, visit.form.get("form_token", "")):
            raise Mistake("foreign_form", status=403)
        return browser

    def user_of_form(self, visit: Visit, purpose: str) -> tuple[Browser, User]:
        """The browser that sent a form, checked as by `checked_browser`, and the user who is signed in there; raises
        Mistake where nobody is."""
        browser = self.checked_browser(visit, purpose)
        user = self.server.sign_in.user_of(browser)
        if user is None:
            raise Mistake("no_session")
        return browser, user

    def check_password(self, visit: Visit, browser: Browser, user: User) -> Outcome:
        """The outcome of checking the password in the form's field current_password, limited and logged; its `browser`
        is None if the password was not accepted."""
        password = visit.form.get("current_password", "")
        return self.server.sign_in.check_password(user, browser, password=password, address=visit.address)

    def request_secret(self, secret: str) -> str:
        """This id of a waiting authorization request, empty for none; raises Mistake for a text that cannot be one, so
        that nothing else gets into an address."""
        plain = secret.replace("-", "").replace("_", "")
        if secret and not (len(secret) <= 100 and secret.isascii() and plain.isalnum()):
            raise Mistake("request_over")
        return secret

    def sign_in_first(self, visit: Visit) -> Response:
        """Redirect to the sign-in, and after it back to this authorization request, which has not been checked yet and
        waits in a cookie. Raises Mistake where it is too long."""
        query = urlencode([(name, value) for name, values in visit.parameters.items() for value in values])
        if len(query) > WAITING_LENGTH_MAX:
            raise Mistake("too_large")
        return self.sign_in_for(query)

    def sign_in_for(self, waiting: str) -> Response:
        """Redirect to the sign-in, and after it back to what waits in a cookie: one of RETURN_PAGES, or the query of an
        authorization request."""
        response = self.redirect(self.address("/oauth/login"))
        self.cookies.set_waiting(response, waiting)
        return response

    def first_page(self, user_id: str, otherwise: str) -> str:
        """The address at which a person begins whom nothing else has led here: what is offered to them, if anything."""
        offered = any(each.accepted_at is None for each in self.server.shares.given_to(user_id))
        return self.address(SHARES_PAGE) if offered else otherwise

    def after_sign_in(self, visit: Visit, secret: str, *, begins: str = "") -> Response:
        """Redirect a person who has signed in to the consent page for the request with this id, else to the request or
        page that waits, in the cookie, which is deleted, or for a second press in the form; else to `begins`, the
        account page if it is empty."""
        if secret:
            return self.redirect(self.address("/oauth/consent", request=secret))
        if not visit.waiting_query:
            return self.redirect(begins or self.address("/account"))
        if visit.waiting_query in RETURN_PAGES:
            response = self.redirect(self.address(visit.waiting_query))
        else:
            response = self.redirect(f"{self.address('/oauth/authorize')}?{urlencode(parse_qsl(visit.waiting_query))}")
        self.cookies.set_waiting(response, "")
        return response

    def signed_in(self, visit: Visit, secret: str, outcome: Outcome) -> Response:
        """What a person gets who has just signed in: the redirect of `after_sign_in`, or before it the page that tells
        them that their password was set by a link; with the cookies of the new session."""
        assert outcome.browser is not None
        user_id = outcome.browser.user_id or ""
        response = self.after_sign_in(visit, secret, begins=self.first_page(user_id, ""))
        used = self.server.links.tell(user_id)
        if used is not None:
            goes_on = response.headers["location"]
            response = self.page("told.html", visit.words, kind=used.kind, used_at=used.used_at, goes_on=goes_on)
        self.remember_signed_in(response, outcome)
        return response

    def remember_signed_in(self, response: Response, outcome: Outcome) -> None:
        """Set the cookies of the new session, and of a browser in which this user has signed in."""
        assert outcome.browser is not None
        assert outcome.known_browser is not None, "whoever signs in is known from now on"
        self.cookies.set_session(response, outcome.browser)
        self.cookies.set_known(response, outcome.known_browser)

    def form_page(
        self, template: str, words: Words, outcome: Outcome | None, *, error: str = "", **values: Any
    ) -> Response:
        """A page with a form, and with the error of the last attempt: status 400, or 429 if the person has to wait.
        `outcome` is that of a password or code that failed, None without one; `error` names another error, empty
        without one."""
        wait = outcome.wait_seconds if outcome is not None else 0
        is_paused = outcome is not None and outcome.is_paused
        error = "wait" if wait else "paused" if is_paused else "wrong" if outcome is not None else error
        user = values.get("user")
        if error == "wrong" and user is not None and not self.server.sign_in.asks_password(user):
            error = "stale"
        status = 429 if wait else 400 if error else 200
        response = self.page(template, words, status=status, error=error, wait=wait, **values)
        if wait:
            response.headers["retry-after"] = str(wait)
        return response

    def page(self, template: str, words: Words, *, status: int = 200, form_action: str = "", **values: Any) -> Response:
        """A page made of a template, with the headers that isolate it (oauth.md 3.1)."""
        user = values.get("user")
        asks_password = user is None or self.server.sign_in.asks_password(user)
        return render(
            self.policy,
            template,
            words,
            status=status,
            form_action=form_action,
            asks_password=asks_password,
            has_passkeys_alone=self.has_passkeys_alone,
            **{"back": _PAGES_OF.get(template, "/account"), **values},
        )

    def mistake_page(self, mistake: Mistake, words: Words) -> Response:
        """The page that says what went wrong and what to do now, with the status and headers of the mistake."""
        response = self.page("mistake.html", words, status=mistake.status, mistake=mistake)
        if mistake.retry_after is not None:
            response.headers["retry-after"] = str(mistake.retry_after)
        if mistake.challenge is not None:
            response.headers["www-authenticate"] = mistake.challenge
        return response

    def redirect(self, address: str) -> Response:
        """A redirect with 303, so that the next request is a GET, whatever this one was; 307 would send the password
        again."""
        response = RedirectResponse(address, status_code=303, headers=page_headers(""))
        response.headers["location"] = address  # unchanged: Starlette would quote it again
        return response
