"""The calendar part of /account: an address of the calendar of payments is made, shown once, and ended."""

from urllib.parse import urlsplit

from starlette.responses import Response

from handlers.oauth.site import Site, Visit
from storage.users import User

PURPOSE = "calendar"


def address_page(site: Site, visit: Visit, user: User) -> Response:
    """Make a new address and show its page; the previous address ends."""
    return site.page(
        "calendar_address.html",
        visit.words,
        address=site.server.calendar.make(user.id),
        is_in_clear=urlsplit(site.policy.public_url).scheme == "http",
    )


def end_address(site: Site, visit: Visit) -> Response:
    """End the calendar's address at once."""
    _browser, user = site.signed_in(visit, PURPOSE)
    site.server.calendar.revoke(user.id)
    return site.redirect(site.address("/account?notice=calendar_ended"))
