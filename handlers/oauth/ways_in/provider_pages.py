"""The pages of signing in at the household's provider: there and back, linking, and being signed out from there.

Browsers are sent there by links, since the policy of our pages lets no form lead to another host.
"""

from collections.abc import Mapping

import orjson
from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.provider_metadata import ProviderAway, ProviderRefused
from auth.people.provider_sign_in import Back, ProviderSignIn
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from auth.server import LastWayIn
from handlers.oauth.mistakes import Mistake
from handlers.oauth.rendering import page_headers
from handlers.oauth.site import PROVIDER_PAGE, RETURN_PAGES, ForUser, Site, Visit
from storage.oauth.identities import Purpose
from storage.users import User

PURPOSE = "provider"
JOIN_PURPOSE = "join"
NAME_PURPOSE = "provider name"
NOTICES = ("provider_linked", "provider_unlinked")


def provider_routes(site: Site) -> list[BaseRoute]:
    """The routes of these pages; none where the settings name no provider."""
    if site.server.provider is None:
        return []
    pages: Mapping[str, Mapping[str, ForUser]] = {
        PROVIDER_PAGE: {"GET": provider_page, "POST": ask_to_link},
        f"{PROVIDER_PAGE}/confirm": {"POST": link},
        f"{PROVIDER_PAGE}/unlink": {"POST": unlink},
    }
    return [
        site.route("/oauth/oidc", {"GET": sign_in}),
        site.route("/oauth/oidc/callback", {"GET": come_back}),
        site.route("/oauth/oidc/name", {"GET": _to_sign_in, "POST": choose_name}),
        site.route("/oauth/oidc/logout", {"POST": sign_out_from_there}),
        site.route("/oauth/oidc/join", {"POST": join}),
        *site.user_routes(pages, purpose=PURPOSE, back=PROVIDER_PAGE),
    ]


def sign_in(site: Site, visit: Visit) -> Response:
    """Send a browser to the provider, for a waiting authorization request or page, and begin a session where the
    browser has none; redirects on where somebody is signed in."""
    secret = site.request_secret(visit.parameters.get("request", ("",))[0])
    if site.server.sign_in.user_of(visit.browser):
        return site.after_sign_in(visit, secret)
    return site.in_session(
        visit, lambda browser: site.redirect(address_there(site, browser, "sign in", goes_on=secret))
    )


def join(site: Site, visit: Visit) -> Response:
    """Show the way to the provider to somebody who has an invitation, which is used up once they are back."""
    browser = site.checked_browser(visit, JOIN_PURPOSE)
    link = site.server.links.find(visit.form.get("secret", ""))
    if link is None or site.server.links.find_hashed(link.secret_hash) is None:
        raise Mistake("join_over")
    return _go(site, visit, address_there(site, browser, "join", link_hash=link.secret_hash))


def come_back(site: Site, visit: Visit) -> Response:
    """Take a browser back from the provider: sign its person in, ask for their second factor or for a name, or go on
    with what they were sent there for. Raises Mistake where it came to nothing."""
    if visit.browser is None:
        raise Mistake("no_session")
    sent = {name: visit.parameters.get(name, ()) for name in ("state", "code", "iss", "error")}
    if any(len(values) > 1 for values in sent.values()) or not sent["state"]:
        raise Mistake("provider_refused")
    try:
        back = _provider(site).back(
            visit.browser,
            state=sent["state"][0],
            code=sent["code"][0] if sent["code"] and not sent["error"] else None,
            iss=sent["iss"][0] if sent["iss"] else None,
            home_currency=site.services.settings.home_currency,
            address=visit.address,
        )
    except ProviderAway as error:
        raise _away(site, error) from error
    return _after(site, visit, visit.browser, back)


def choose_name(site: Site, visit: Visit) -> Response:
    """Make a user of this name of somebody whom the provider knows, and sign them in; shows the form again for a name
    that cannot be had."""
    browser, secret = site.checked_browser(visit, NAME_PURPOSE), visit.form.get("secret", "")
    name = visit.form.get("username", "").strip()
    currency = site.services.settings.home_currency
    made = _provider(site).name(browser, secret, name, home_currency=currency, address=visit.address)
    if isinstance(made, str):
        return _name_form(site, visit, browser, secret=secret, name=name, error=made)
    return _after(site, visit, browser, made)


def provider_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show as whom the person signs in at the provider, and the form that changes this."""
    return _page(site, visit, browser, user, notice=visit.notice(NOTICES))


def ask_to_link(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show the way to the provider, where the person signs in to be linked, if they have shown who they are here."""
    proof = site.check_password(visit, browser, user)
    if proof.browser is None:
        return _page(site, visit, browser, user, outcome=proof)
    return _go(site, visit, address_there(site, browser, "link"))


def link(site: Site, visit: Visit, browser: Browser, _user: User) -> Response:
    """Link whom the page has named, and redirect to the page."""
    ended = _provider(site).confirm(browser, visit.form.get("secret", "")).ended
    if ended is not None:
        raise Mistake(f"provider_{ended}")
    return site.redirect(site.address(f"{PROVIDER_PAGE}?notice=provider_linked"))


def unlink(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Unlink the person from the provider, if they have shown who they are and have another way in, and redirect to the
    page."""
    proof = site.check_password(visit, browser, user)
    if proof.browser is None:
        return _page(site, visit, browser, user, outcome=proof)
    try:
        _provider(site).unlink(user.id, check=site.server.keeps_a_way_in(user))
    except LastWayIn:
        return _page(site, visit, browser, user, error="last_way")
    if browser.via is not None:  # this session ended, too
        return site.redirect(site.address("/oauth/login"))
    return site.redirect(site.address(f"{PROVIDER_PAGE}?notice=provider_unlinked"))


def sign_out_from_there(site: Site, visit: Visit) -> Response:
    """The back-channel by which the provider says that somebody has signed out there (Back-Channel Logout 1.0 section
    2.8): an empty answer, or the error as JSON."""
    headers = page_headers("")
    try:
        _provider(site).signed_out_there(visit.form.get("logout_token", ""))
    except (ProviderRefused, ProviderAway):
        body = orjson.dumps({"error": "invalid_request", "error_description": "This logout token is not valid here."})
        return Response(body, status_code=400, media_type="application/json", headers=headers)
    return Response(status_code=200, headers=headers)


def address_there(
    site: Site, browser: Browser, purpose: Purpose, *, goes_on: str = "", link_hash: str | None = None
) -> str:
    """The address at the provider to which this browser is sent for this purpose; raises Mistake where the provider is
    away."""
    try:
        return _provider(site).begin(browser, purpose, goes_on=goes_on, link_hash=link_hash)
    except ProviderAway as error:
        raise _away(site, error) from error


def _to_sign_in(site: Site, _visit: Visit) -> Response:
    return site.redirect(site.address("/oauth/login"))


def _after(site: Site, visit: Visit, browser: Browser, back: Back) -> Response:
    is_signed_in = site.server.sign_in.user_of(browser) is not None
    if back.ended is not None:
        if back.ended == "over" and is_signed_in:
            return site.redirect(site.address("/account"))  # a second press
        raise Mistake(f"provider_{back.ended}", status=403 if back.ended == "not_admitted" else 400)
    if back.secret and back.purpose == "name":
        return _name_form(site, visit, browser, secret=back.secret, name=back.shown)
    if back.secret:
        user = site.server.sign_in.user_of(browser)
        assert user is not None, "checked on the way back"
        return _page(site, visit, browser, user, secret=back.secret, shown=back.shown)
    if back.purpose in ("link", "prove"):
        goes_on = back.goes_on if back.goes_on in RETURN_PAGES else "/account"
        return site.redirect(site.address(PROVIDER_PAGE if back.purpose == "link" else goes_on))
    return _signed_in(site, visit, back.goes_on, back.outcome)


def _signed_in(site: Site, visit: Visit, goes_on: str, outcome: Outcome | None) -> Response:
    if outcome is None:
        return site.after_sign_in(visit, goes_on)
    if outcome.is_paused:
        raise Mistake("provider_paused", status=403)
    if outcome.half is not None:
        response = site.redirect(site.address("/oauth/second-step", request=goes_on))
        site.cookies.set_session(response, outcome.half)
        return response
    return site.signed_in(visit, goes_on, outcome)


def _away(site: Site, error: ProviderAway) -> Mistake:
    site.server.note_provider_away(str(error))
    return Mistake("provider_away_only" if _provider(site).settings.is_only else "provider_away", status=503)


def _provider(site: Site) -> ProviderSignIn:
    assert site.server.provider is not None, "else there are no such routes"
    return site.server.provider


def _go(site: Site, visit: Visit, address: str) -> Response:
    return site.page("provider_go.html", visit.words, provider=_provider(site).settings.name, address=address)


def _name_form(site: Site, visit: Visit, browser: Browser, *, secret: str, name: str, error: str = "") -> Response:
    return site.form_page(
        "provider_name.html",
        visit.words,
        None,
        error=error,
        form_action=site.page_elsewhere,
        provider=_provider(site).settings.name,
        secret=secret,
        name=name,
        form_token=site.server.sessions.form_token(browser, NAME_PURPOSE),
    )


def _page(
    site: Site,
    visit: Visit,
    browser: Browser,
    user: User,
    *,
    notice: str = "",
    error: str = "",
    outcome: Outcome | None = None,
    secret: str = "",
    shown: str = "",
) -> Response:
    return site.form_page(
        "provider.html",
        visit.words,
        outcome,
        error=error,
        notice=notice,
        user=user,
        provider=_provider(site).settings.name,
        identity=_provider(site).identity_of(user.id),
        secret=secret,
        shown=shown,
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )
