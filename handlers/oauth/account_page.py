"""The page /account: each app's access with a button to revoke it, the password, signing out (ASVS 5.0 10.4.9,
10.7.3)."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.apps.clients import BUILTIN, PAGE
from auth.authorization_details import LASTS_DAYS
from auth.errors import InvalidToken, OAuthError
from auth.people.provider_metadata import ProviderAway
from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from auth.server import AuthorizationServer
from auth.tokens.terms import is_within
from handlers.loopback import is_loopback
from handlers.oauth import record_page, sessions_page
from handlers.oauth.choices import AS_BEFORE, Choices, NothingChosen, choices_of, preset_choices, sent_choices
from handlers.oauth.languages import Words
from handlers.oauth.mistakes import Mistake
from handlers.oauth.record_page import record_id
from handlers.oauth.rendering import clamp_name, page_headers
from handlers.oauth.site import OPERATOR_PAGE, SETUP_PAGE, Site, Visit
from handlers.work.sync.reminders import consent_ends_within
from storage.connections import NEED_USER
from storage.notices.ways import ending
from storage.oauth.grants import Grant
from storage.oauth.simplefin import SetupToken
from storage.users import User

REMINDED_BEFORE = timedelta(days=30)  # an app that speaks SimpleFIN cannot ask for more time
TWIN_CHARACTERS = 6  # of an app's id, shown if another app has the same name
NOTICES = (
    "revoked",
    "password_changed",
    "narrowed",
    "session_ended",
    "sessions_ended",
    "second_factor_removed",
    "calendar_ended",
)
PURPOSES = ("revoke", "password", "sign out", sessions_page.PURPOSE, "simplefin", "calendar")


class ConnectedApp(Struct):
    """One grant of an app, as the page lists it; an app with several grants is listed as often."""

    grant: Grant
    name: str
    last_used_at: datetime
    simplefin: SetupToken | None = None
    webhook_hosts: str = ""  # the hosts to which its webhooks go
    ends_soon: bool = False
    twin: str = ""  # the end of the app's id, where another one has the same name

    @property
    def client_id(self) -> str:
        """The id of the app."""
        return self.grant.client_id

    @property
    def record_id(self) -> str:
        """The id by which the page finds what the app did in the access record (`record_page.record_id`)."""
        return record_id(self.grant.id, self.client_id)

    @property
    def is_page(self) -> bool:
        """Whether the app is this server's own page, whose access ends with the browser's session."""
        return self.client_id == PAGE


def account_routes(site: Site) -> list[BaseRoute]:
    """The routes of the account page and its forms, of the access record, and of the list of browsers."""
    setup = {"GET": show_setup_form, "POST": make_setup_token} if site.services.settings.simplefin_server else None
    return [
        *site.user_routes({"/account": {"GET": account_page}}),
        *site.user_routes(
            {"/account/revoke": {"POST": revoke}, "/account/narrow": {"POST": change_terms}}, purpose="revoke"
        ),
        *site.user_routes({"/account/password": {"POST": change_password}}, purpose="password"),
        *(site.user_routes({SETUP_PAGE: setup}, purpose="simplefin", back=SETUP_PAGE) if setup else []),
        *site.user_routes(
            {
                "/account/calendar": {"POST": make_calendar_address},
                "/account/calendar/end": {"POST": end_calendar_address},
            },
            purpose="calendar",
        ),
        site.route("/account/sign-out", {"GET": lambda at, _: at.redirect(at.address("/account")), "POST": sign_out}),
        *record_page.record_routes(site),
        *sessions_page.session_routes(site),
    ]


def account_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show the connected apps, all forms of the page, and what a form that has just been sent did (`notice`)."""
    return _account(site, visit, browser, user, notice=visit.notice(NOTICES))


def revoke(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """End the grant that the form names, if it is a live one of this user, and redirect to the account page."""
    grant = _grant_of_form(site, user, visit)
    if grant is not None:
        site.server.grants.revoke(grant.id, because="revoked by the user")
    return site.redirect(site.address("/account?notice=revoked"))


def change_terms(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Change what the grant in the form covers or when it ends, from the app's next request on, and redirect to the
    account page. Less access needs no password, more does. Raises Mistake where nothing would be left; a grant that is
    not a live one of this user changes nothing."""
    grant = _grant_of_form(site, user, visit)
    if grant is None:  # revoked in another tab
        return site.redirect(site.address("/account?notice=revoked"))
    done = site.redirect(site.address("/account?notice=narrowed"))
    owned = site.accounts_of(user.id)
    chosen = sent_choices(visit.form, visit.ticked_accounts)
    try:
        terms = chosen.terms(owned, held=grant.terms)
    except NothingChosen:
        raise Mistake("nothing_left") from None
    if chosen.lasts == AS_BEFORE:
        ends = grant.expires_at
    else:
        ends = site.server.grants.end_of(chosen.lifetime(_days_of(site, grant)))
    if ends <= grant.expires_at and is_within(terms, grant.terms, {account.id for account in owned}):
        site.server.grants.narrow(grant, terms=terms, ends=ends)
        return done
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _account(site, visit, browser, user, at=grant.id, outcome=outcome, chosen=chosen)
    site.server.grants.widen(grant, terms=terms, ends=ends)
    return done


def show_setup_form(site: Site, _visit: Visit, _browser: Browser, _user: User) -> Response:
    """Redirect to that form on the account page which makes a setup token for SimpleFIN."""
    return site.redirect(site.address("/account#simplefin"))


def make_setup_token(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Make a setup token for an app that speaks SimpleFIN, if the password is right, and show it once."""
    chosen = sent_choices(visit.form, visit.ticked_accounts)
    try:
        terms = chosen.terms(site.accounts_of(user.id))
    except NothingChosen:
        return _account(site, visit, browser, user, at="simplefin", error="simplefin_no_account", chosen=chosen)
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _account(site, visit, browser, user, at="simplefin", outcome=outcome, chosen=chosen)
    name, lifetime = visit.form.get("name", ""), chosen.lifetime(LASTS_DAYS)
    try:
        token = site.server.simplefin.setup_token(user.id, name, terms=terms, lifetime=lifetime)
    except OAuthError:
        return _account(site, visit, browser, user, at="simplefin", error="simplefin_no_name", chosen=chosen)
    at = urlsplit(site.policy.public_url)
    return site.page(
        "simplefin_token.html",
        visit.words,
        name=name.strip(),
        setup_token=token,
        address=site.policy.public_url,
        is_loopback=is_loopback(at.hostname or ""),
        is_in_clear=at.scheme == "http",
    )


def make_calendar_address(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Make the address of the calendar of payments and show it once, whereupon the previous one ends; needs the
    password, because whoever has the address reads what is due."""
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _account(site, visit, browser, user, at="calendar", outcome=outcome)
    return site.page(
        "calendar_address.html",
        visit.words,
        address=site.server.calendar.make(user.id),
        is_in_clear=urlsplit(site.policy.public_url).scheme == "http",
    )


def end_calendar_address(site: Site, _visit: Visit, _browser: Browser, user: User) -> Response:
    """End the calendar's address at once, and redirect to the account page."""
    site.server.calendar.revoke(user.id)
    return site.redirect(site.address("/account?notice=calendar_ended"))


def change_password(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Change the password, if the current one is right; this browser gets a new session and all others are signed out.
    All apps' access, the address of the calendar and the addresses to which notices go end, too, if that is ticked."""
    new = visit.form.get("new_password", "")
    if new != visit.form.get("repeated_password", ""):
        return _account(site, visit, browser, user, at="password", error="different")
    outcome = site.server.sign_in.change_password(
        user, browser, current=visit.form.get("current_password", ""), new=new, address=visit.address
    )
    if isinstance(outcome, str):
        return _account(site, visit, browser, user, at="password", error=outcome)
    if outcome.browser is None:
        return _account(site, visit, browser, user, at="password", outcome=outcome)
    if "end_apps" in visit.form:
        site.server.grants.revoke_all(because="revoked by the user", user_id=user.id)
        site.server.calendar.revoke(user.id)
        ended = partial(ending.end_all, user_id=user.id, now=site.services.clock.now())
        site.services.of(user.id).atomically(ended)
    response = site.redirect(site.address("/account?notice=password_changed"))
    site.cookies.set_session(response, outcome.browser)
    return response


def sign_out(site: Site, visit: Visit) -> Response:
    """End the browser's session and redirect to the sign-in. From the consent page, the waiting request is kept in a
    new session for whoever signs in next.

    The server's own page sends its access token instead of a form with a form token, and gets an empty answer (204).
    """
    if visit.bearer is not None:
        return _sign_out_of_page(site, visit, visit.bearer)
    browser, _user = site.user_of_form(visit, "sign out")
    secret = visit.form.get("request", "")
    if secret and site.server.consent.waiting_request(browser, secret):
        response = site.redirect(site.address("/oauth/login", request=secret))
        site.cookies.set_session(response, site.server.sessions.sign_out_for_another(browser))
        return response
    site.server.sessions.end(browser.id_hash)
    response = _signed_out(site, visit, browser)
    site.cookies.delete_session(response)
    return response


def _signed_out(site: Site, visit: Visit, browser: Browser) -> Response:
    """What somebody sees who has signed out: the sign-in, or before it the way to sign out of the provider, too."""
    provider, login = site.server.provider, site.address("/oauth/login")
    with suppress(ProviderAway):
        address = provider.sign_out_address(browser, site.policy.origin + login) if provider is not None else ""
        if provider is not None and address:
            return site.page("signed_out.html", visit.words, provider=provider.settings.name, address=address)
    return site.redirect(login)


def _sign_out_of_page(site: Site, visit: Visit, token: str) -> Response:
    try:
        grant_id = site.server.access.principal(token).grant_id
        session_hash = site.server.grants.session_of(grant_id) if grant_id is not None else None
    except InvalidToken:
        session_hash = None
    if session_hash is None:  # the session is over already, or the token is an app's
        raise Mistake("no_session", status=401, challenge='Bearer error="invalid_token"')
    site.server.sessions.end(session_hash)
    response = Response(status_code=204, headers=page_headers(""))
    if visit.browser is None or visit.browser.id_hash == session_hash:
        site.cookies.delete_session(response)
    return response


def connected_apps(server: AuthorizationServer, user_id: str) -> list[ConnectedApp]:
    """One entry per live grant of an app of the user, the grant made last first. The server's own page, which has a
    grant for each signed-in browser, is listed once."""
    hosts: dict[str, set[str]] = defaultdict(set)
    for grant_id, url in server.grants.webhook_addresses(user_id):
        hosts[grant_id].add(urlsplit(url).hostname or "")
    apps = [
        ConnectedApp(
            grant=each.grant,
            name=each.client_name,
            last_used_at=each.last_used_at or each.grant.created_at,
            simplefin=each.simplefin,
            webhook_hosts=", ".join(sorted(hosts[each.grant.id])),
            ends_soon=each.grant.expires_at < server.grants.end_of(REMINDED_BEFORE),
        )
        for each in server.grants.connected_apps(user_id)
    ]
    first_page = next((app for app in apps if app.is_page), None)
    ids_by_name: dict[str, set[str]] = {}
    for app in apps:
        ids_by_name.setdefault(clamp_name(app.name), set()).add(app.client_id)
    for app in apps:
        app.twin = app.client_id[-TWIN_CHARACTERS:] if len(ids_by_name[clamp_name(app.name)]) > 1 else ""
    return [app for app in apps if not app.is_page or app is first_page]


def _reminders(site: Site, words: Words, user_id: str) -> list[str]:
    """A sentence for each bank connection that can be renewed and should be: its consent ends within two weeks, or it
    needs its user."""
    said = []
    for each in site.connections_of(user_id):
        days = consent_ends_within(each, now=site.services.clock.now())
        if each.connector in site.services.connecting.sources and (days is not None or each.status in NEED_USER):
            what = words(f"connection_{each.status}") if days is None else words("consent_ends", days=days)
            said.append(f"{clamp_name(each.bank_name)}: {what}")
    return said


def _days_of(site: Site, grant: Grant) -> Sequence[int]:
    """The choices, in days from now, for how long the access can last. A token issued by the operator has a fixed end,
    and can only be made to end earlier."""
    if grant.client_id != BUILTIN:
        return LASTS_DAYS
    return [each for each in LASTS_DAYS if site.server.grants.end_of(timedelta(days=each)) < grant.expires_at]


def _grant_of_form(site: Site, user: User, visit: Visit) -> Grant | None:
    """The grant that a form names, if it is a live one of this user's connected apps; else None."""
    connected = (each.grant for each in site.server.grants.connected_apps(user.id))
    return next((grant for grant in connected if grant.id == visit.form.get("grant")), None)


def _account(
    site: Site,
    visit: Visit,
    browser: Browser,
    user: User,
    *,
    notice: str = "",
    at: str = "",
    outcome: Outcome | None = None,
    error: str = "",
    chosen: Choices | None = None,
) -> Response:
    """The account page, with an error at one of its forms: `at` is "password", "simplefin", "calendar" or the id of a
    grant. `outcome` is that of a password check that failed, `error` another reason. `chosen` are the choices that the
    person had made in the form. `notice` names the text on what another form has done."""
    sessions, owned = site.server.sessions, site.accounts_of(user.id)
    apps = connected_apps(site.server, user.id)
    record, deeds = record_page.overview(site, user.id)
    for app in apps:
        app.last_used_at = max([app.last_used_at, *(line.last_at for line in record.get(app.record_id, ()))])
    return site.form_page(
        "account.html",
        visit.words,
        outcome,
        error=error,
        at=at,
        user=user,
        operator_address=site.address(OPERATOR_PAGE),
        owned=owned,
        provider=site.server.provider,
        choices_of=lambda grant: chosen if chosen and grant.id == at else choices_of(grant.terms, owned),
        days_of=lambda grant: _days_of(site, grant),
        as_before=AS_BEFORE,
        apps=apps,
        ended=record_page.ended_apps(site, user.id, but={app.record_id for app in apps}),
        record=record,
        deeds=deeds,
        browsers=sorted(sessions.of_user(user.id), key=lambda each: each.id_hash != browser.id_hash),
        this_browser=browser.id_hash,
        has_second_factor=site.server.second_factors.is_on(user.id),
        recovery_codes_left=site.server.second_factors.codes_left(user.id),
        reminders=_reminders(site, visit.words, user.id),
        notice=notice,
        ends_apps="end_apps" in visit.form,
        calendar_since=site.server.calendar.made_at(user.id),
        has_simplefin=site.services.settings.simplefin_server,
        simplefin_name=visit.form.get("name", ""),
        simplefin_choices=chosen if chosen and at == "simplefin" else preset_choices(None, owned),
        simplefin_days=LASTS_DAYS,
        tokens={purpose: sessions.form_token(browser, purpose) for purpose in PURPOSES},
    )
