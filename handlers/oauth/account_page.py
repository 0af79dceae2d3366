"""/account: the apps a person has connected, each with Revoke; the password; signing out (ASVS 5.0 10.4.9, 10.7.3)."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.apps.clients import PAGE
from auth.errors import InvalidToken
from auth.people.sessions import Browser
from auth.scopes import ALL_SCOPES
from auth.server import AuthorizationServer
from handlers.oauth.choices import NothingChosen, account_boxes, chosen_terms
from handlers.oauth.mistakes import Mistake
from handlers.oauth.rendering import clamped, page_headers
from handlers.oauth.site import Site, Visit
from storage.oauth.grants import Grant
from storage.users import User

TWIN_CHARACTERS = 6  # of the id of an app whose name another one has, too
NOTICES = ("revoked", "password_changed", "narrowed")


@dataclass(slots=True)
class ConnectedApp:
    """One app with everything it was allowed, however often it was connected."""

    client_id: str
    name: str
    scopes: list[str]
    since: datetime
    last_used_at: datetime
    grants: list[Grant] = field(default_factory=list)  # each connection
    twin: str = ""  # the end of its id, where another app has the same name

    @property
    def is_page(self) -> bool:
        """Whether it is the page of this server, which ends with the session instead."""
        return self.client_id == PAGE


def account_routes(site: Site) -> list[BaseRoute]:
    """The account page and its three forms."""
    return [
        site.route("/account", {"GET": account_page}),
        site.route("/account/revoke", {"POST": revoke}),
        site.route("/account/narrow", {"POST": narrow}),
        site.route("/account/password", {"POST": change_password}),
        site.route("/account/sign-out", {"POST": sign_out}),
    ]


def account_page(site: Site, visit: Visit) -> Response:
    """What is connected, and the forms."""
    user = site.server.sign_in.user_of(visit.browser)
    if user is None:
        return site.redirect(site.address("/oauth/login"))
    assert visit.browser is not None
    notice = visit.parameters.get("notice", ("",))[0]
    return _account(site, visit, visit.browser, user, notice=notice if notice in NOTICES else "")


def revoke(site: Site, visit: Visit) -> Response:
    """End everything that one app was allowed, at once."""
    _browser, user = _signed_in(site, visit, "revoke")
    client_id = visit.form.get("client", "")
    if site.server.clients.find(client_id) is not None:
        site.server.grants.revoke_all(because="revoked by the user", user_id=user.id, client_id=client_id)
    return site.redirect(site.address("/account?notice=revoked"))


def narrow(site: Site, visit: Visit) -> Response:
    """Let one connection of an app see less, from its next request on. More than it sees it never gets this way: who
    wants that connects the app again."""
    _browser, user = _signed_in(site, visit, "revoke")
    held = [each.grant for each in site.server.grants.connected(user.id) if each.grant.id == visit.form.get("grant")]
    try:
        terms = chosen_terms(visit.form, visit.ticked_accounts, site.accounts_of(user.id))
    except NothingChosen:
        raise Mistake("nothing_left") from None
    for grant in held:
        site.server.grants.narrow(grant, terms=terms)
    return site.redirect(site.address("/account?notice=narrowed"))


def change_password(site: Site, visit: Visit) -> Response:
    """The current password proves who is at the keyboard; the new one ends all other sessions."""
    browser, user = _signed_in(site, visit, "password")
    new = visit.form.get("new_password", "")
    if new != visit.form.get("repeated_password", ""):
        return _account(site, visit, browser, user, error="different")
    outcome = site.server.sign_in.change_password(
        user, browser, current=visit.form.get("current_password", ""), new=new, address=visit.address
    )
    if isinstance(outcome, str):
        return _account(site, visit, browser, user, error=outcome)
    if outcome.wait:
        response = _account(site, visit, browser, user, error="wait", wait=int(outcome.wait.total_seconds()) + 1)
        response.headers["retry-after"] = str(int(outcome.wait.total_seconds()) + 1)
        return response
    if outcome.browser is None:
        return _account(site, visit, browser, user, error="wrong")
    response = site.redirect(site.address("/account?notice=password_changed"))
    site.cookies.remember(response, outcome.browser)
    return response


def sign_out(site: Site, visit: Visit) -> Response:
    """End the session; from the consent page the waiting request stays for whoever signs in next.

    The page of this server sends its access token in place of a form token, and no form.
    """
    if visit.bearer is not None:
        return _sign_out_of_page(site, visit, visit.bearer)
    browser, _user = _signed_in(site, visit, "sign out")
    secret = visit.form.get("request", "")
    if secret and site.server.consent.waiting(browser, secret):
        response = site.redirect(f"{site.address('/oauth/login')}?request={secret}")
        site.cookies.remember(response, site.server.sessions.sign_out_for_another(browser))
        return response
    site.server.sessions.end(browser)
    response = site.redirect(site.address("/oauth/login"))
    site.cookies.forget(response)
    return response


def _sign_out_of_page(site: Site, visit: Visit, token: str) -> Response:
    try:
        grant_id = site.server.access.principal(token).grant_id
        session_hash = site.server.grants.session_of(grant_id) if grant_id is not None else None
    except InvalidToken:
        session_hash = None
    if session_hash is None:  # over already, or the token of an app
        raise Mistake("no_session", status=401, challenge='Bearer error="invalid_token"')
    site.server.sessions.end_hashed(session_hash)
    response = Response(status_code=204, headers=page_headers(""))
    if visit.browser is None or visit.browser.id_hash == session_hash:
        site.cookies.forget(response)
    return response


def connected_apps(server: AuthorizationServer, user_id: str, *, time_zone: tzinfo) -> list[ConnectedApp]:
    """One entry per app, the most recently connected first, moments in this zone."""
    apps: dict[str, ConnectedApp] = {}
    for entry in server.grants.connected(user_id):
        grant = entry.grant
        last_used_at = entry.last_used_at or grant.created_at
        app = apps.setdefault(
            grant.client_id,
            ConnectedApp(grant.client_id, entry.client_name, [], grant.created_at, last_used_at),
        )
        app.grants.append(grant)
        allowed = {*app.scopes, *grant.scope.split()}
        app.scopes = [scope for scope in ALL_SCOPES if scope in allowed]
        app.since = min(app.since, grant.created_at)
        app.last_used_at = max(app.last_used_at, last_used_at)
    names = Counter(clamped(app.name) for app in apps.values())
    for app in apps.values():
        app.since, app.last_used_at = app.since.astimezone(time_zone), app.last_used_at.astimezone(time_zone)
        app.twin = app.client_id[-TWIN_CHARACTERS:] if names[clamped(app.name)] > 1 else ""
    return list(apps.values())


def _signed_in(site: Site, visit: Visit, purpose: str) -> tuple[Browser, User]:
    browser = site.checked_browser(visit, purpose)
    user = site.server.sign_in.user_of(browser)
    if user is None:
        raise Mistake("no_session")
    return browser, user


def _account(
    site: Site, visit: Visit, browser: Browser, user: User, *, notice: str = "", error: str = "", wait: int = 0
) -> Response:
    sessions = site.server.sessions
    return site.page(
        "account.html",
        visit.words,
        status=200 if not error else 429 if error == "wait" else 400,
        user=user,
        boxes=lambda grant: account_boxes(site.accounts_of(user.id), grant.terms),
        apps=connected_apps(site.server, user.id, time_zone=site.time_zone),
        is_empty=not site.has_accounts(user.id),
        notice=notice,
        error=error,
        wait=wait,
        tokens={purpose: sessions.form_token(browser, purpose) for purpose in ("revoke", "password", "sign out")},
    )
