"""The page on which passkeys are made, named and removed; making and removing one takes the password."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.apps.clients import is_storable
from auth.people.passkeys import NAME_CHARACTERS_MAX
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from auth.server import LastWayIn
from handlers.oauth.site import ForUser, Site, Visit
from handlers.oauth.ways_in.passkey_sign_in import codes_page
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
    """Show the user's passkeys, and the form for one more. Where none can sign in alone, and the second factor, beside
    which one could stand, is off, redirects to its page."""
    if not site.has_passkeys_alone and not site.server.second_factors.is_on(user.id):
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
    options = site.server.passkeys.creation_options(user, browser, is_alone=_is_alone(site, visit, user))
    return _page(site, visit, browser, user, options=options)


def add(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Store the passkey that the device has made, under the name in the form, and redirect to the page, or show
    recovery codes to whoever has no password; shows an error where the device's answer is not accepted."""
    answer, is_alone = visit.form.get("passkey", ""), site.has_passkeys_alone and "alone" in visit.form
    if not site.server.passkeys.add(user, browser, answer, name=_name(visit), is_alone=is_alone):
        return _page(site, visit, browser, user, outcome=Outcome(), is_refused=True)
    codes = site.server.second_factors.first_codes(user.id) if is_alone and user.password_hash is None else ()
    if codes:
        return codes_page(site, visit, codes, goes_on=f"{site.policy.public_url}/")
    return site.redirect(site.address("/account/passkeys"))


def remove(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Check the password again, then delete the passkey, unless it is the last way in, and redirect to the page."""
    proof = site.check_password(visit, browser, user)
    if proof.browser is None:
        return _page(site, visit, browser, user, outcome=proof)
    try:
        site.server.passkeys.remove(user.id, visit.form.get("id", ""), check=site.server.keeps_a_way_in(user))
    except LastWayIn:
        return _page(site, visit, browser, user, error="last_way")
    return site.redirect(site.address("/account/passkeys"))


def _is_alone(site: Site, visit: Visit, user: User) -> bool:
    """Whether the passkey of this form is to sign in alone: where the person says so, or has no second factor beside
    which it could stand."""
    return site.has_passkeys_alone and ("alone" in visit.form or not site.server.second_factors.is_on(user.id))


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
    error: str = "",
) -> Response:
    return site.form_page(
        "passkeys.html",
        visit.words,
        outcome,
        error=error,
        user=user,
        is_alone=_is_alone(site, visit, user),
        has_second_factor=site.server.second_factors.is_on(user.id),
        options=options,
        is_scripted=bool(options),
        is_refused=is_refused,
        issuer=site.policy.issuer,
        name=_name(visit),
        passkeys=site.server.passkeys.of_user(user.id),
        host=site.policy.passkey_host,
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )
