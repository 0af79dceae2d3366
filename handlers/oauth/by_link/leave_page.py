"""The page by which letters to one address end without a sign-in: the address of List-Unsubscribe in e-mails. A program
posts there (RFC 8058), a person sees one button: looking ends nothing, as programs look at links, too."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from handlers.oauth.mistakes import Mistake
from handlers.oauth.site import Site, Visit
from handlers.operations.notices.leaving import LEAVE, leave


def leave_routes(site: Site) -> list[BaseRoute]:
    """The route of the page."""
    return [site.route(LEAVE, {"GET": ask, "POST": end}, reads_form=False)]  # often multipart/form-data


def ask(site: Site, visit: Visit) -> Response:
    """Show the button."""
    return site.page("leave.html", visit.words, is_over=False)


def end(site: Site, visit: Visit) -> Response:
    """End letters to the address that the link names; says so for one that has ended before, too. Raises Mistake for a
    link that never was one."""
    if not leave(site.services, visit.parameters.get("of", ("",))[0]):
        raise Mistake("unknown_address", status=404)
    return site.page("leave.html", visit.words, is_over=True)
