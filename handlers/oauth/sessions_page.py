"""The browsers in which a person is signed in, as a part of /account: each can be signed out, or all others at once."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.sessions import Browser
from handlers.oauth.site import ForUser, Site, Visit
from storage.users import User

PURPOSE = "sessions"


def session_routes(site: Site) -> list[BaseRoute]:
    """The routes by which a person signs out one other browser of theirs, or all others."""
    pages: Mapping[str, Mapping[str, ForUser]] = {
        "/account/sessions/end": {"POST": end_one},
        "/account/sessions/end-others": {"POST": end_others},
    }
    return [*site.user_routes(pages, purpose=PURPOSE)]


def end_one(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Sign the user out of the browser that the form names, record that, and redirect to the account page; does nothing
    for the present browser, which has a button of its own, and for others' sessions."""
    session = visit.form.get("session", "")
    if session != browser.id_hash and site.server.sessions.sign_out(user.id, session):
        site.server.record.note(user.id, "endSession")
    return site.redirect(site.address("/account?notice=session_ended"))


def end_others(site: Site, _visit: Visit, browser: Browser, user: User) -> Response:
    """Sign the user out of all browsers except the present one, record that, and redirect to the account page."""
    site.server.sessions.end_all(user.id, but=browser)
    site.server.record.note(user.id, "endSession")
    return site.redirect(site.address("/account?notice=sessions_ended"))
