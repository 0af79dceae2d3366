"""The pages from the authorization request to the code: authorize, sign-in, consent (RFC 6749 section 4.1)."""

from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth import authorization, authorization_details, lifetimes
from auth.apps import redirects
from auth.apps.client_documents import DocumentRefused
from auth.apps.clients import PAGE
from auth.authorization import AuthorizationRequest, Untrusted
from auth.authorization_details import LASTS_DAYS
from auth.errors import AccessDenied, ConsentRequired, LoginRequired, OAuthError
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from auth.scopes import SCOPES, TICKED_SCOPES
from handlers.oauth.account_page import account_routes
from handlers.oauth.by_link.join_page import join_routes
from handlers.oauth.by_link.leave_page import leave_routes
from handlers.oauth.choices import Choices, NothingChosen, preset_choices, sent_choices
from handlers.oauth.connect_page import connect_routes
from handlers.oauth.mistakes import Mistake
from handlers.oauth.operator_page import operator_routes
from handlers.oauth.passkey_pages import passkey_routes
from handlers.oauth.rendering import file_routes
from handlers.oauth.second_factor_pages import second_factor_routes
from handlers.oauth.shares_page import shares_routes
from handlers.oauth.site import Site, Visit
from handlers.oauth.ways_in.passkey_sign_in import passkey_sign_in_routes
from handlers.oauth.ways_in.proof_page import proof_routes
from handlers.oauth.ways_in.provider_pages import provider_routes
from storage.oauth.clients import Client
from storage.oauth.grants import EVERYTHING, Terms
from storage.oauth.pending import AccessRequest


def page_routes(site: Site) -> list[BaseRoute]:
    """The routes of all pages of the authorization server and of their files, under the path of `auth_url`."""
    return [
        *file_routes(site.policy),
        site.route("/oauth/authorize", {"GET": authorize}),
        site.route("/oauth/login", {"GET": login_page, "POST": sign_in}),
        site.route("/oauth/consent", {"GET": consent_page, "POST": decide}),
        *second_factor_routes(site),
        *passkey_routes(site),
        *account_routes(site),
        *connect_routes(site),
        *join_routes(site),
        *leave_routes(site),
        *operator_routes(site),
        *shares_routes(site),
        *provider_routes(site),
        *passkey_sign_in_routes(site),
        *proof_routes(site),
    ]


def authorize(site: Site, visit: Visit) -> Response:
    """The authorization endpoint: check and store the request, then redirect the browser to the sign-in or, if somebody
    is signed in, to the consent page. Errors are redirected to the app, or shown (Mistake) where it cannot be trusted.
    An app that is described by a document is looked up only once somebody has signed in.

    Only this server's own page gets its code at once where somebody is signed in: its identity is certain.
    """
    client_ids = visit.parameters.get("client_id", ("",))
    client_id = client_ids[0] if len(client_ids) == 1 else ""
    if site.server.documents.serves(client_id) and site.server.sign_in.user_of(visit.browser) is None:
        # An app's document is fetched only for somebody signed in: else anybody could make this server ask any host
        return site.sign_in_first(visit)
    resource = site.policy.named_resource(visit.parameters.get("resource", ()))
    asked = AuthorizationRequest(
        parameters=visit.parameters,
        client=_client(site, client_id),
        resource=resource,
        address=site.policy.address_of(resource or "data"),
        writing_clients=site.policy.writing_clients,
    )
    try:
        redirect_uri = authorization.trusted_redirect(asked)
    except Untrusted as untrusted:
        raise Mistake(f"bad_{untrusted.mistake}", detail=untrusted.description) from untrusted
    assert asked.client is not None
    is_signed_in = site.server.sign_in.user_of(visit.browser) is not None
    fault = authorization.first_fault(asked) or _silent_fault(asked, is_signed_in=is_signed_in)
    if fault is not None:
        return _error_response(site, visit, asked.client, redirect_uri, fault, authorization.returned_state(asked))
    details = authorization.requested_details(asked)
    request = AccessRequest(
        client_id=asked.client.id,
        redirect_uri=redirect_uri,
        scope=authorization.requested_scope(asked),
        state=asked.get("state"),
        code_challenge=asked.get("code_challenge") or "",
        resource=asked.resource or "data",
        details=authorization_details.as_text(details) if details is not None else None,
    )
    if visit.browser is not None and is_signed_in and asked.client.id == PAGE:
        code = site.server.consent.allow_at_once(visit.browser, request)
        return _code_response(site, redirect_uri, code, authorization.returned_state(asked))
    page, keep = "/oauth/consent" if is_signed_in else "/oauth/login", site.server.consent.keep
    return site.in_session(visit, lambda browser: site.redirect(site.address(page, request=keep(browser, request))))


def _client(site: Site, client_id: str) -> Client | None:
    if not site.server.documents.serves(client_id):
        client = site.server.clients.find(client_id)
        # An app whose document is no longer accepted gets nothing new; its present grants last until they are revoked
        return client if client is None or client.registered_by != "document" else None
    try:
        return site.server.documents.client(client_id)
    except DocumentRefused as refused:
        raise Mistake("bad_client", detail=f"The document that describes the app: {refused}") from None


def _silent_fault(asked: AuthorizationRequest, *, is_signed_in: bool) -> OAuthError | None:
    """The error for a request with prompt=none, which may show no page; None for other requests, and where no page is
    needed.

    "none: The Authorization Server MUST NOT display any authentication or consent user interface pages. An error is
    returned if an End-User is not already Authenticated or the Client does not have pre-configured consent for the
    requested Claims." OpenID Connect Core 1.0 section 3.1.2.1
    """
    assert asked.client is not None
    if asked.get("prompt") != "none":
        return None
    if not is_signed_in:
        return LoginRequired()
    return ConsentRequired() if asked.client.id != PAGE else None


def _code_response(site: Site, redirect_uri: str, code: str, state: Mapping[str, str]) -> Response:
    # "code", "state" RFC 6749 section 4.1.2; "iss" RFC 9207 section 2
    parameters = {"code": code, **state, "iss": site.policy.issuer}
    return site.redirect(redirects.with_parameters(redirect_uri, parameters))


def _error_response(
    site: Site, visit: Visit, client: Client, redirect_uri: str, fault: OAuthError, state: Mapping[str, str]
) -> Response:
    """Redirect to the app with the error. But nobody is bounced through this server to a web site that anyone can
    register: unless somebody is signed in, the error is shown (Mistake), with a link. "The authorization server MUST
    always authenticate the user first ... before redirecting the user." (RFC 9700 section 4.11.2)."""
    address = _error_redirect(site, redirect_uri, fault, state)
    is_bounce = redirects.is_web(redirect_uri) and client.registered_by in ("self", "document")
    if is_bounce and site.server.sign_in.user_of(visit.browser) is None:
        raise Mistake("bad_request", detail=f"{fault.code}: {fault.description}", back=address)
    return site.redirect(address)


def _error_redirect(site: Site, redirect_uri: str, fault: OAuthError, state: Mapping[str, str]) -> str:
    # `iss` in errors too: "In authorization responses to the client, including error responses, an authorization
    # server supporting this specification MUST indicate its identity by including the 'iss' parameter
    # in the response." RFC 9207 section 2
    parameters = {"error": fault.code, "error_description": fault.description, **state, "iss": site.policy.issuer}
    return redirects.with_parameters(redirect_uri, parameters)


def login_page(site: Site, visit: Visit) -> Response:
    """Show the sign-in form, for a waiting authorization request or for the account page, and begin a session where the
    browser has none; redirects on where somebody is signed in."""
    secret = site.request_secret(visit.parameters.get("request", ("",))[0])
    if site.server.sign_in.user_of(visit.browser):
        return site.after_sign_in(visit, secret)
    return site.in_session(visit, lambda browser: _login_form(site, visit, browser, secret))


def sign_in(site: Site, visit: Visit) -> Response:
    """Check the name, blanks around it aside, and password, and sign in or redirect to the second step; an unknown user
    and a wrong password get the same text. Whoever presses twice ends where one press ends, with or without the cookie
    that the answer to the first one brought; another person's form is not taken for a second press."""
    secret = site.request_secret(visit.form.get("request", ""))
    before, name = visit.browser, visit.form.get("username", "").strip()
    is_name_of, token = site.server.sign_in.is_name_of, visit.form.get("form_token", "")
    if before and is_name_of(before.user_id, name):
        return site.after_sign_in(visit, secret)  # signed in by the first press or in another tab: nothing to check
    is_own_form = before is not None and site.server.sessions.is_form_token(before, "login", token)
    if before and is_name_of(before.awaits_user_id, name) and not is_own_form:
        return site.redirect(site.address("/oauth/second-step", request=secret))
    browser = site.checked_browser(visit, "login", may_be_over=True)
    outcome = site.server.sign_in.attempt(
        name,
        visit.form.get("password", ""),
        before=browser,
        address=visit.address,
        known_browser=visit.known_browser,
    )
    if outcome.half is not None:
        response = site.redirect(site.address("/oauth/second-step", request=secret))
        site.cookies.set_session(response, outcome.half)
        return response
    if outcome.browser is None:
        return _login_form(site, visit, browser, secret, name=name, outcome=outcome)
    return site.signed_in(visit, secret, outcome)


def _login_form(
    site: Site, visit: Visit, browser: Browser, secret: str, *, name: str = "", outcome: Outcome | None = None
) -> Response:
    opened = site.server.consent.waiting_request(browser, secret) if secret else None
    if secret and opened is None and outcome is None:
        raise Mistake("request_over")
    return site.form_page(
        "login.html",
        visit.words,
        outcome,
        form_action=site.page_elsewhere,
        client=opened[1] if opened and opened[1].id != PAGE else None,
        is_page=opened is not None and opened[1].id == PAGE,
        request=secret,
        goes_on=visit.waiting_query,
        provider=site.provider_shown,
        form_token=site.server.sessions.form_token(browser, "login"),
        name=name,
    )


def consent_page(site: Site, visit: Visit, *, error: str = "", chosen: Choices | None = None) -> Response:
    """Show which app asks, for what, and where the person will be sent back to; every app is always asked about (ASVS
    5.0 10.7.1), only this server's own page gets its code at once. Where nobody is signed in, redirects to the sign-in.
    `chosen` are the choices that the person sent and that cannot be granted because of `error`."""
    _refuse_scripts(visit)
    secret = site.request_secret(visit.form.get("request") or visit.parameters.get("request", ("",))[0])
    user = site.server.sign_in.user_of(visit.browser)
    if user is None:
        return site.redirect(site.address("/oauth/login", request=secret))
    assert visit.browser is not None
    opened = site.server.consent.waiting_request(visit.browser, secret)
    if opened is None and site.server.consent.was_of_page(visit.browser, secret):
        return site.redirect(f"{site.policy.public_url}/")  # pressed twice: the page asks once more, and gets its code
    if opened is None:
        raise Mistake("request_over")
    request, client = opened
    if client.id == PAGE:
        return _finish_consent(site, visit.browser, secret, is_allowed=True, ticked=frozenset(TICKED_SCOPES))
    asked = request.scope.split()
    owned = site.accounts_of(user.id)
    details = authorization_details.from_text(request.details) if request.details is not None else None
    choices = chosen or preset_choices(details, owned)
    return site.page(
        "consent.html",
        visit.words,
        status=400 if error else 200,
        form_action=redirects.form_action_source(request.redirect_uri),
        client=client,
        scopes=[scope for scope in asked if scope in SCOPES],
        ticked=[scope for scope in asked if scope in TICKED_SCOPES],
        wants_to_change=any(scope.startswith("write:") for scope in asked),
        user=user,
        destination=redirects.destination(request.redirect_uri),
        document_host=urlsplit(client.id).hostname if client.registered_by == "document" else "",
        is_loopback=redirects.is_loopback(request.redirect_uri),
        is_app=not redirects.is_web(request.redirect_uri) and not redirects.is_loopback(request.redirect_uri),
        days=lifetimes.GRANT.days,
        accounts=choices.boxes(owned),
        choices=choices,
        is_asked_in_detail=details is not None,
        is_assistant=request.resource == "mcp",
        lasts=LASTS_DAYS,
        error=error,
        request=secret,
        form_token=site.server.sessions.form_token(visit.browser, f"consent {secret}"),
        sign_out_token=site.server.sessions.form_token(visit.browser, "sign out"),
    )


def decide(site: Site, visit: Visit) -> Response:
    """Allow or deny the waiting request, once, and redirect to the app with a code or an error; a form without any
    account is shown again. The form carries only the request's id, so there is nothing in it to tamper with."""
    _refuse_scripts(visit)
    secret = site.request_secret(visit.form.get("request", ""))
    browser = site.checked_browser(visit, f"consent {secret}")
    decision = visit.form.get("decision")
    if decision not in ("allow", "deny"):
        raise Mistake("bad_form")
    user = site.server.sign_in.user_of(browser)
    if user is None:
        raise Mistake("no_session")
    if decision == "deny":
        return _finish_consent(site, browser, secret, is_allowed=False, ticked=frozenset())
    chosen = sent_choices(visit.form, visit.ticked_accounts)
    try:
        terms = chosen.terms(site.accounts_of(user.id))
    except NothingChosen:
        return consent_page(site, visit, error="no_account", chosen=chosen)
    lifetime = chosen.lifetime(LASTS_DAYS)
    return _finish_consent(
        site, browser, secret, is_allowed=True, ticked=chosen.changes, terms=terms, lifetime=lifetime
    )


def _finish_consent(
    site: Site,
    browser: Browser,
    secret: str,
    *,
    is_allowed: bool,
    ticked: frozenset[str],
    terms: Terms = EVERYTHING,
    lifetime: timedelta | None = None,
) -> Response:
    decided = site.server.consent.decide(
        browser, secret, is_allowed=is_allowed, ticked=ticked, terms=terms, lifetime=lifetime
    )
    if decided is None:
        raise Mistake("request_over")
    request, code = decided
    state = {"state": request.state} if request.state is not None else {}
    if code is None:
        return site.redirect(_error_redirect(site, request.redirect_uri, AccessDenied(), state))
    return _code_response(site, request.redirect_uri, code, state)


def _refuse_scripts(visit: Visit) -> None:
    """Raise Mistake for a request that a script sent: a script of our own origin must not read the form token and press
    Allow for another app. "Sec-Fetch-Dest: document" marks a person's navigation, and only browsers that do not know
    the header leave it out (W3C Fetch Metadata)."""
    if visit.destination not in (None, "document"):
        raise Mistake("foreign_form", status=403)
