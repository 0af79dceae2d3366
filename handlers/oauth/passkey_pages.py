"""The page on which passkeys are made, named and removed; making and removing one takes the password."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.apps.clients import is_storable
from auth.people.passkeys import NAME_CHARACTERS_MAX
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from handlers.oauth.site import ForUser, Site, Visit
from storage.users import User

PURPOSE = "passkeys"


def passkey_routes(site: Site) -> list[BaseRoute]:
    """The routes of the page of passkeys and its three forms."""
    pages: Mapping[str, Mapping[str, ForUser]] = {
        "/account/passkeys": {"GET": passkeys_page, "POST": begin},
        "/account/passkeys/add": {"POST": add},
        "/account/passkeys/remove": {"POST": remove},
    }
    return [*site.user_routes(pages, purpose=PURPOSE, back="/account/passkeys")]


def passkeys_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show the user's passkeys, and the form for one more. While the second factor's codes, which stay as another way
    in, are off, redirects to their page."""
    if not site.server.second_factors.is_on(user.id):
        return site.redirect(site.address("/account/second-factor"))
    return _page(site, visit, browser, user)


def begin(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Check the password again, then show the page whose script asks the browser to make a passkey. If browsers make
    none for this host, redirects to the page as it was."""
    proof = site.check_password(visit, browser, user)
    if proof.browser is None:
        return _page(site, visit, browser, user, outcome=proof)
    if site.policy.passkey_host is None:
        return site.redirect(site.address("/account/passkeys"))
    return _page(site, visit, browser, user, options=site.server.passkeys.creation_options(user, browser))


def add(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Store the passkey that the device has made, under the name in the form, and redirect to the page; shows an error
    where the device's answer is not accepted."""
    if not site.server.passkeys.add(user, browser, visit.form.get("passkey", ""), name=_name(visit)):
        return _page(site, visit, browser, user, outcome=Outcome(), is_refused=True)
    return site.redirect(site.address("/account/passkeys"))


def remove(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Check the password again, then delete the passkey and redirect to the page."""
    proof = site.check_password(visit, browser, user)
    if proof.browser is None:
        return _page(site, visit, browser, user, outcome=proof)
    site.server.passkeys.remove(user.id, visit.form.get("id", ""))
    return site.redirect(site.address("/account/passkeys"))


def _name(visit: Visit) -> str:
    """The passkey's name as typed, cut to its greatest length; where it cannot be stored, the browser's name."""
    typed = " ".join(visit.form.get("name", "").split())[:NAME_CHARACTERS_MAX]
    return typed if is_storable(typed) else visit.agent or visit.words("passkey")


def _page(
    site: Site,
    visit: Visit,
    browser: Browser,
    user: User,
    *,
    options: str = "",
    outcome: Outcome | None = None,
    is_refused: bool = False,
) -> Response:
    return site.form_page(
        "passkeys.html",
        visit.words,
        outcome,
        user=user,
        options=options,
        is_scripted=bool(options),
        is_refused=is_refused,
        issuer=site.policy.issuer,
        name=_name(visit),
        passkeys=site.server.passkeys.of_user(user.id),
        host=site.policy.passkey_host,
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )
