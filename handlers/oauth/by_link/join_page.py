"""The page to which links lead that work once: it makes a person, or sets a new password.

The secret of a link comes from behind the # of the address, by the script of these pages, or pasted; always in the body
of a form, so that no log, history or preview has it, and looking uses nothing up.
"""

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.links import PATH
from auth.people.sessions import Browser
from handlers.oauth.mistakes import Mistake
from handlers.oauth.site import Site, Visit
from storage.oauth.links import Link

PURPOSE = "join"


def join_routes(site: Site) -> list[BaseRoute]:
    """The routes of the page and its forms."""

    def to_form(at: Site, _visit: Visit) -> Response:
        return at.redirect(at.address(PATH))

    return [
        site.route(PATH, {"GET": ask_for_link, "POST": show_form}),
        site.route(f"{PATH}/person", {"GET": to_form, "POST": become_user}),
        site.route(f"{PATH}/password", {"GET": to_form, "POST": set_password}),
        site.route(f"{PATH}/sign-in", {"GET": to_form, "POST": sign_in}),
    ]


def ask_for_link(site: Site, visit: Visit) -> Response:
    """Show the form for the link, which the page's script fills from the address and sends, and begin a session where
    the browser has none."""
    return site.in_session(visit, lambda browser: _page(site, visit, browser))


def show_form(site: Site, visit: Visit) -> Response:
    """Show what the link is for: a form for name and password, or for a new password alone. Raises Mistake for one that
    does not work, whatever the reason."""
    browser, link = _sent(site, visit)
    return _page(site, visit, browser, link)


def become_user(site: Site, visit: Visit) -> Response:
    """Make the person whose name and password the form has, sign them in, and redirect to what is offered to them, or
    to their page; shows the form again where name or password cannot be used."""
    browser, link = _sent(site, visit)
    if site.provider_shown is not None and site.provider_shown.is_only:
        raise Mistake("bad_form")  # whoever comes in by a password could not come again
    if (error := _repeated(visit)) is not None:
        return _page(site, visit, browser, link, error=error)
    made = site.server.links.become_user(
        visit.form["secret"],
        name=visit.form.get("username", "").strip(),
        password=visit.form.get("new_password", ""),
        home_currency=site.services.settings.home_currency,
        address=visit.address,
    )
    if made == "over":
        raise Mistake("join_over")
    if isinstance(made, str):
        return _page(site, visit, browser, link, error=made)
    response = site.redirect(site.first_page(made.id, f"{site.policy.public_url}/"))
    before = browser if browser.user_id is None else None  # what somebody else began in this browser stays theirs
    site.remember_signed_in(response, site.server.sign_in.let_in(made, before, address=visit.address))
    return response


def set_password(site: Site, visit: Visit) -> Response:
    """Set the password anew, whereupon all browsers of this person are signed out, and redirect to the sign-in; shows
    the form again for a password that cannot be used."""
    browser, link = _sent(site, visit)
    if (error := _repeated(visit)) is not None:
        return _page(site, visit, browser, link, error=error)
    new = visit.form.get("new_password", "")
    changed = site.server.links.set_password(visit.form["secret"], new, address=visit.address)
    if changed == "over":
        raise Mistake("join_over")
    if isinstance(changed, str):
        return _page(site, visit, browser, link, error=changed)
    return site.redirect(site.address("/oauth/login"))


def sign_in(site: Site, visit: Visit) -> Response:
    """Sign the person in whom the link lets in, unless their second factor is asked first. They are told of it at their
    next sign-in, since this one may be somebody else's."""
    browser, _link = _sent(site, visit)
    user = site.server.links.sign_in(visit.form["secret"], address=visit.address)
    if user is None:
        raise Mistake("join_over")
    before = browser if browser.user_id is None else None
    outcome = site.server.sign_in.let_in_by_link(user, before, address=visit.address)
    if outcome.half is not None:
        response = site.redirect(site.address("/oauth/second-step"))
        site.cookies.set_session(response, outcome.half)
        return response
    if outcome.browser is None:
        raise Mistake("join_over")
    response = site.redirect(f"{site.policy.public_url}/")
    site.remember_signed_in(response, outcome)
    return response


def _sent(site: Site, visit: Visit) -> tuple[Browser, Link]:
    browser = site.checked_browser(visit, PURPOSE)
    link = site.server.links.find(visit.form.get("secret", ""))
    if link is None:
        raise Mistake("join_over")
    return browser, link


def _repeated(visit: Visit) -> str | None:
    """The name of the error where the password was not repeated as it was typed."""
    is_same = visit.form.get("new_password", "") == visit.form.get("repeated_password", "")
    return None if is_same else "different"


def join_form(site: Site, visit: Visit, browser: Browser, *, error: str) -> Response:
    """The form for a name and a way in, with this error, for the link in the form that was sent; raises Mistake for one
    that does not work (any more)."""
    link = site.server.links.find(visit.form.get("secret", ""))
    if link is None or error == "over":
        raise Mistake("join_over")
    return _page(site, visit, browser, link, error=error)


def _page(site: Site, visit: Visit, browser: Browser, link: Link | None = None, *, error: str = "") -> Response:
    person = site.server.links.person_of(link) if link is not None else None
    return site.form_page(
        "join.html",
        visit.words,
        None,
        error=error,
        form_action=site.page_elsewhere,
        is_scripted=link is None,
        join_address=site.address(PATH),
        provider=site.provider_shown,
        kind=link.kind if link is not None else "",
        secret=visit.form.get("secret", ""),
        name=person.name if person is not None else visit.form.get("username", ""),
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )
