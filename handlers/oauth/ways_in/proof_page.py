"""The page on which somebody who has no password shows anew who they are: by a passkey, or at the provider."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from handlers.oauth.site import RETURN_PAGES, Site, Visit
from handlers.oauth.ways_in.provider_pages import address_there
from storage.users import User

PROVE_PAGE = "/account/prove"
PURPOSE = "prove"


def proof_routes(site: Site) -> list[BaseRoute]:
    """The routes of the page, its form, and the way to the provider."""
    return [
        *site.user_routes({PROVE_PAGE: {"GET": prove_page, "POST": prove}}, purpose=PURPOSE),
        *site.user_routes({f"{PROVE_PAGE}/there": {"GET": go_there}}),
    ]


def prove_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Ask for a passkey, or show the way to the provider; with the provider alone, redirects there."""
    back = _back(visit.parameters.get("back", ("",))[0])
    if site.has_passkeys_alone and site.server.passkeys.is_any_alone(site.services.everybody, user.id):
        return _page(site, visit, browser, user, back)
    return go_there(site, visit, browser, user)


def prove(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Note that the person has shown who they are, if their passkey answers, and redirect to the page that asked."""
    back = _back(visit.form.get("back", ""))
    if site.server.passkeys.use_alone(browser, visit.form.get("passkey", "")) != user.id:
        return _page(site, visit, browser, user, back, outcome=Outcome())
    site.server.sessions.prove(browser)
    return site.redirect(site.address(back))


def go_there(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Redirect the person to the provider to sign in anew, and from there back to the page that asked for it."""
    back = _back(visit.parameters.get("back", ("",))[0])
    if site.server.provider is None or site.server.provider.identity_of(user.id) is None:
        return site.redirect(site.address(back))
    return site.redirect(address_there(site, browser, "prove", goes_on=back))


def _back(named: str) -> str:
    return named if named in RETURN_PAGES else "/account"


def _page(
    site: Site, visit: Visit, browser: Browser, user: User, back: str, *, outcome: Outcome | None = None
) -> Response:
    provider = site.server.provider
    return site.form_page(
        "prove.html",
        visit.words,
        outcome,
        user=user,
        goes_back=back,
        options=site.server.passkeys.alone_options(browser),
        is_scripted=True,
        provider=site.provider_shown if provider is not None and provider.identity_of(user.id) is not None else None,
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )
