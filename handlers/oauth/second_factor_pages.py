"""The second step of signing in, and the page on which it is turned on and off."""

from collections.abc import Mapping, Sequence
from typing import Literal

import segno
from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.second_factor import SetUp
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from handlers.oauth.mistakes import Mistake
from handlers.oauth.site import ForUser, Site, Visit
from storage.users import User

STEP_PURPOSE = "second step"
PURPOSE = "second factor"

State = Literal["off", "set up", "codes", "on"]


def second_factor_routes(site: Site) -> list[BaseRoute]:
    """The routes of the second step of a sign-in, and of the page on which the second factor is turned on and off."""
    pages: Mapping[str, Mapping[str, ForUser]] = {
        "/account/second-factor": {"GET": factor_page, "POST": begin},
        "/account/second-factor/confirm": {"POST": confirm},
        "/account/second-factor/off": {"POST": turn_off},
    }
    return [
        site.route("/oauth/second-step", {"GET": step_page, "POST": step}),
        *site.user_routes(pages, purpose=PURPOSE, back="/account/second-factor"),
    ]


def step_page(site: Site, visit: Visit) -> Response:
    """Ask for the code or a passkey; a browser whose user has not entered the password, or needs no code any more, is
    redirected to the sign-in."""
    secret = site.request_secret(visit.parameters.get("request", ("",))[0])
    if visit.browser is None or not _needs_code(site, visit.browser):
        return site.redirect(site.address("/oauth/login", request=secret))
    return _step_form(site, visit, visit.browser, secret)


def step(site: Site, visit: Visit) -> Response:
    """Check the code or passkey in the form, throttled like passwords; sign the user in and redirect to where they were
    going, or show the form again."""
    secret = site.request_secret(visit.form.get("request", ""))
    if site.server.sign_in.user_of(visit.browser):
        return site.after_sign_in(visit, secret)  # whoever presses twice ends where one press ends
    browser = site.checked_browser(visit, STEP_PURPOSE)
    if browser.awaits_user_id is None:
        raise Mistake("second_step_over")
    if not _needs_code(site, browser):
        return site.redirect(site.address("/oauth/login", request=secret))
    passkey = visit.form.get("passkey", "")
    outcome = site.server.sign_in.second_step(
        browser,
        passkey or _typed_code(visit),
        address=visit.address,
        known_browser=visit.known_browser,
        is_passkey=bool(passkey),
    )
    if outcome.browser is None:
        return _step_form(site, visit, browser, secret, outcome=outcome, is_passkey=bool(passkey))
    return site.signed_in(visit, secret, outcome)


def factor_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show whether the second factor is on, and the form that changes this."""
    return _factor(site, visit, browser, user)


def begin(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Check the password again, then make and show a new seed for the authenticator app, as letters and QR code. If the
    second factor is on already, redirects to its page."""
    proof = site.check_password(visit, browser, user)
    if proof.browser is None:
        return _factor(site, visit, browser, user, outcome=proof)
    set_up = site.server.second_factors.begin(user)
    if set_up is None:  # the second factor has been turned on in another tab
        return site.redirect(site.address("/account/second-factor"))
    return _factor(site, visit, browser, user, state="set up", set_up=set_up)


def confirm(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Turn the second factor on by a first code and show the recovery codes; all other browsers, which signed in by the
    password alone, are signed out. Whoever presses twice is told that it is on, not that their code is wrong. Raises
    Mistake where no set-up waits."""
    set_up, outcome = site.server.second_factors.waiting_set_up(user), None
    if set_up is not None:
        typed = visit.form.get("code", "")
        codes = site.server.sign_in.turn_on_second_factor(user, browser, typed, address=visit.address)
        if not isinstance(codes, Outcome):
            return _factor(site, visit, browser, user, state="codes", codes=codes)
        outcome = codes
    if site.server.second_factors.is_on(user.id):
        return site.redirect(site.address("/account/second-factor"))
    if set_up is None:
        raise Mistake("second_step_over")
    return _factor(site, visit, browser, user, state="set up", set_up=set_up, outcome=outcome)


def turn_off(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Check the password and a code again, then turn the second factor off, passkeys included, and redirect to
    /account."""
    proof = site.check_password(visit, browser, user)
    if proof.browser is None:
        return _factor(site, visit, browser, user, outcome=proof)
    proof = site.server.sign_in.check_second_factor(user, browser, _typed_code(visit), address=visit.address)
    if proof.browser is None:
        return _factor(site, visit, browser, user, outcome=proof, is_code_wrong=True)
    site.server.second_factors.turn_off(user.id)
    return site.redirect(site.address("/account?notice=second_factor_removed"))


def _typed_code(visit: Visit) -> str:
    """The recovery code in the form, which has a field of its own so that phones show digits for the other, else the
    code of the app."""
    return visit.form.get("recovery_code") or visit.form.get("code", "")


def _needs_code(site: Site, browser: Browser) -> bool:
    """Whether the browser has passed the password and the second factor is still on: whoever has lost it may have had
    it turned off meanwhile."""
    return browser.awaits_user_id is not None and site.server.second_factors.is_on(browser.awaits_user_id)


def _step_form(
    site: Site,
    visit: Visit,
    browser: Browser,
    secret: str,
    *,
    outcome: Outcome | None = None,
    is_passkey: bool = False,
) -> Response:
    options = site.server.passkeys.request_options(browser)
    return site.form_page(
        "second_step.html",
        visit.words,
        outcome,
        form_action=site.page_elsewhere,
        step_address=site.address("/oauth/second-step"),
        request=secret,
        goes_on=visit.waiting_query,
        options=options,
        is_scripted=options is not None,
        is_passkey=is_passkey,
        form_token=site.server.sessions.form_token(browser, STEP_PURPOSE),
    )


def _factor(
    site: Site,
    visit: Visit,
    browser: Browser,
    user: User,
    *,
    state: State | None = None,
    set_up: SetUp | None = None,
    codes: Sequence[str] = (),
    outcome: Outcome | None = None,
    is_code_wrong: bool = False,
) -> Response:
    factors = site.server.second_factors
    return site.form_page(
        "second_factor.html",
        visit.words,
        outcome,
        is_code_wrong=is_code_wrong or state == "set up",
        state=state or ("on" if factors.is_on(user.id) else "off"),
        user=user,
        seed=" ".join(set_up.seed[start : start + 4] for start in range(0, len(set_up.seed), 4)) if set_up else "",
        picture=_picture(set_up.address) if set_up else "",
        codes=codes,
        left=factors.codes_left(user.id),
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )


def _picture(address: str) -> Markup:
    """The QR code of an address as SVG inside the page: a separate image would need an address that shows the seed."""
    code = segno.make(address, micro=False, error="m")
    return Markup(code.svg_inline(omitsize=True, border=4, dark="#000", light="#fff"))  # noqa: S704 - made of squares
