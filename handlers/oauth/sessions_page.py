"""The browsers in which a person is signed in, as a part of /account: each can be signed out, or all others at once."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from handlers.oauth.site import Site, Visit

PURPOSE = "sessions"


def session_routes(site: Site) -> list[BaseRoute]:
    """The routes by which one other browser is signed out, or all others."""
    return [
        site.route("/account/sessions/end", {"POST": end_one}),
        site.route("/account/sessions/end-others", {"POST": end_others}),
    ]


def end_one(site: Site, visit: Visit) -> Response:
    """Sign out one other browser; the present one has a button of its own."""
    browser, user = site.signed_in(visit, PURPOSE)
    session = visit.form.get("session", "")
    if session != browser.id_hash and site.server.sessions.end_of_user(user.id, session):
        site.server.record.note(user.id, "endSession")
    return site.redirect(site.address("/account?notice=session_ended"))


def end_others(site: Site, visit: Visit) -> Response:
    """Sign out all browsers except this one."""
    browser, user = site.signed_in(visit, PURPOSE)
    site.server.sessions.end_all(user.id, but=browser)
    site.server.record.note(user.id, "endSession")
    return site.redirect(site.address("/account?notice=sessions_ended"))
