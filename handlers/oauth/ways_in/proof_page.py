"""The page on which somebody who has no password shows anew who they are."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.sessions import Browser
from handlers.oauth.site import RETURN_PAGES, Site, Visit
from handlers.oauth.ways_in.provider_pages import address_there
from storage.users import User

PROVE_PAGE = "/account/prove"


def proof_routes(site: Site) -> list[BaseRoute]:
    """The routes of the page."""
    return [*site.user_routes({PROVE_PAGE: {"GET": prove}})]


def prove(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Send the person to the provider to sign in anew, and from there back to the page that asked for it."""
    back = visit.parameters.get("back", ("",))[0]
    goes_on = back if back in RETURN_PAGES else "/account"
    if site.server.provider is None or site.server.provider.identity_of(user.id) is None:
        return site.redirect(site.address(goes_on))
    return site.redirect(address_there(site, browser, "prove", goes_on=goes_on))
