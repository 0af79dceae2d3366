"""The pages of signing in and joining by a passkey alone, and of the way back in for whoever has lost it."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.links import PATH
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from handlers.oauth.by_link.join_page import PURPOSE as JOIN_PURPOSE
from handlers.oauth.by_link.join_page import join_form
from handlers.oauth.mistakes import Mistake
from handlers.oauth.site import Site, Visit

SIGN_IN_PATH = "/oauth/passkey"
RECOVERY_PATH = "/oauth/recovery"
PURPOSE = "passkey sign-in"
RECOVERY_PURPOSE = "recovery"


def passkey_sign_in_routes(site: Site) -> list[BaseRoute]:
    """The routes of these pages; none where browsers make no passkeys for this host, or the provider alone lets in."""
    if not site.has_passkeys_alone:
        return []

    def to_join(at: Site, _visit: Visit) -> Response:
        return at.redirect(at.address(PATH))

    return [
        site.route(SIGN_IN_PATH, {"GET": sign_in_page, "POST": sign_in}),
        site.route(RECOVERY_PATH, {"GET": recovery_page, "POST": recover}),
        site.route(f"{PATH}/passkey", {"GET": to_join, "POST": begin_joining}),
        site.route(f"{PATH}/passkey/made", {"GET": to_join, "POST": join}),
    ]


def sign_in_page(site: Site, visit: Visit) -> Response:
    """Ask the browser for a passkey, and begin a session where it has none; redirects on where somebody is signed
    in."""
    secret = site.request_secret(visit.parameters.get("request", ("",))[0])
    if site.server.sign_in.user_of(visit.browser):
        return site.after_sign_in(visit, secret)
    return site.in_session(visit, lambda browser: _page(site, visit, browser, secret))


def sign_in(site: Site, visit: Visit) -> Response:
    """Sign in whose passkey answered, and redirect to where they were going; or show the page again."""
    secret = site.request_secret(visit.form.get("request", ""))
    if site.server.sign_in.user_of(visit.browser):
        return site.after_sign_in(visit, secret)
    browser = site.checked_browser(visit, PURPOSE)
    outcome = site.server.sign_in.by_passkey(browser, visit.form.get("passkey", ""), address=visit.address)
    if outcome.browser is None:
        return _page(site, visit, browser, secret, outcome=outcome)
    return site.signed_in(visit, secret, outcome)


def recovery_page(site: Site, visit: Visit) -> Response:
    """Show the form for name and recovery code, and begin a session where the browser has none."""
    return site.in_session(visit, lambda browser: _recovery(site, visit, browser))


def recover(site: Site, visit: Visit) -> Response:
    """Sign in whose recovery code it is, and redirect to the page on which they make a new passkey."""
    browser, name = site.checked_browser(visit, RECOVERY_PURPOSE), visit.form.get("username", "").strip()
    typed = visit.form.get("code", "")
    outcome = site.server.sign_in.by_recovery_code(name, typed, before=browser, address=visit.address)
    if outcome.browser is None:
        return _recovery(site, visit, browser, name=name, outcome=outcome)
    response = site.redirect(site.address("/account/passkeys"))
    site.remember_signed_in(response, outcome)
    return response


def begin_joining(site: Site, visit: Visit) -> Response:
    """Show the page whose script makes a passkey for somebody who has an invitation, if the name can be had."""
    browser, name = site.checked_browser(visit, JOIN_PURPOSE), visit.form.get("username", "").strip()
    refused = site.server.links.is_free(visit.form.get("secret", ""), name)
    if refused is not None:
        return join_form(site, visit, browser, error=refused)
    return _making(site, visit, browser, name=name)


def join(site: Site, visit: Visit) -> Response:
    """Make the person whose device has made a passkey, sign them in, and show their recovery codes, once."""
    browser, name = site.checked_browser(visit, JOIN_PURPOSE), visit.form.get("username", "").strip()
    known_as = visit.agent or visit.words("passkey")
    joined = site.server.passkeys.joined(browser, visit.form.get("passkey", ""), name=known_as)
    if joined is None:
        return _making(site, visit, browser, name=name, is_refused=True)
    user_id, passkey = joined
    made = site.server.links.become_user_by_passkey(
        visit.form.get("secret", ""),
        name=name,
        user_id=user_id,
        passkey=passkey,
        home_currency=site.services.settings.home_currency,
        address=visit.address,
    )
    if isinstance(made, str):
        return join_form(site, visit, browser, error=made)
    before = browser if browser.user_id is None else None
    outcome = site.server.sign_in.let_in(made, before, address=visit.address)
    begins = site.first_page(made.id, f"{site.policy.public_url}/")
    response = codes_page(site, visit, site.server.second_factors.first_codes(made.id), goes_on=begins)
    site.remember_signed_in(response, outcome)
    return response


def codes_page(site: Site, visit: Visit, codes: tuple[str, ...], *, goes_on: str) -> Response:
    """The page that shows recovery codes, once, and leads on to `goes_on`."""
    return site.page("recovery_codes.html", visit.words, codes=codes, goes_on=goes_on)


def _making(site: Site, visit: Visit, browser: Browser, *, name: str, is_refused: bool = False) -> Response:
    secret = visit.form.get("secret", "")
    if site.server.links.find(secret) is None:
        raise Mistake("join_over")
    return site.form_page(
        "join_passkey.html",
        visit.words,
        None,
        error="refused" if is_refused else "",
        form_action=site.page_elsewhere,
        options=site.server.passkeys.joining_options(name, browser),
        is_scripted=True,
        join_address=site.address(PATH),
        secret=secret,
        name=name,
        form_token=site.server.sessions.form_token(browser, JOIN_PURPOSE),
    )


def _page(site: Site, visit: Visit, browser: Browser, secret: str, *, outcome: Outcome | None = None) -> Response:
    return site.form_page(
        "passkey_sign_in.html",
        visit.words,
        outcome,
        form_action=site.page_elsewhere,
        options=site.server.passkeys.alone_options(browser),
        is_scripted=True,
        sign_in_address=site.address(SIGN_IN_PATH),
        recovery_address=site.address(RECOVERY_PATH),
        request=secret,
        goes_on=visit.waiting_query,
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )


def _recovery(
    site: Site, visit: Visit, browser: Browser, *, name: str = "", outcome: Outcome | None = None
) -> Response:
    return site.form_page(
        "recovery.html",
        visit.words,
        outcome,
        recovery_address=site.address(RECOVERY_PATH),
        name=name,
        form_token=site.server.sessions.form_token(browser, RECOVERY_PURPOSE),
    )
