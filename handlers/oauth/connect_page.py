"""The page /account/connect: a person connects a bank, or renews a connection, by answering the questions of its
source.

The way to the bank is a page with a plain link, because `form-action` of our own policy also holds for the redirect
that would follow a form. The way back is /connect/return, which only the browser that was sent may use.
"""

from collections.abc import Mapping
from math import ceil

from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.sessions import Browser
from connectors.connecting import Question, Redirect
from connectors.sources.demo.live import PAGE_PATH, LiveDemoBank
from connectors.sources.uploads import Uploads
from handlers.oauth.mistakes import Mistake
from handlers.oauth.rendering import page_headers
from handlers.oauth.site import BANKS_PAGE, ForUser, Site, Visit
from handlers.work.sync.connecting import RETURN_PATH, Attempt, AttemptUnknown
from handlers.work.sync.stored_secrets import KEY_MISSING
from storage.connections import StoredConnection
from storage.users import User

PURPOSE = "connect a bank"
NOTICES = ("fetch_started", "fetch_recent", "fetch_refused", "disconnected", "disconnected_here")
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif")


def connect_routes(site: Site) -> list[BaseRoute]:
    """The routes of the page /account/connect and its steps, the address to which banks send browsers back, and with
    the live demo bank the page that stands for its own."""
    pages: Mapping[str, Mapping[str, ForUser]] = {
        "/account/connect": {"GET": choice_page, "POST": begin},
        "/account/connect/fetch": {"POST": fetch},
        "/account/connect/disconnect": {"GET": ask_to_disconnect, "POST": disconnect},
        "/account/connect/step": {"GET": step_page, "POST": answer},
    }
    return [
        *site.user_routes(pages, purpose=PURPOSE, back=BANKS_PAGE),
        site.route("/account/connect/image", {"GET": image}),
        site.route(RETURN_PATH, {"GET": come_back}),
        *([site.route(PAGE_PATH, {"GET": demo_bank})] if LiveDemoBank.name in site.services.connecting.sources else []),
    ]


def choice_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show the sources that can be connected, and the user's connections, except that of uploaded files, with what can
    be done about each; only the connection that the address names, if it names one of the user's."""
    sources = site.services.connecting.sources
    connected = site.connections_of(user.id)
    renewed = _connection_of(site, user, visit.parameters.get("connection", ("",))[0])
    return site.page(
        "connect.html",
        visit.words,
        sources=[each for each in sources.values() if each.is_set_up],
        banks=[each for each in connected if each.connector != Uploads.name] if renewed is None else [renewed],
        renewed=renewed,
        live=sources.keys(),
        closed=[each.id for each in connected if not site.services.sync_engine.has_key(each)],
        key_missing=KEY_MISSING,
        notice=visit.notice(NOTICES),
        form_token=_form_token(site, browser),
    )


def begin(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Begin to connect the source in the form, or to renew the connection in it, and redirect to the first step. Raises
    Mistake for a source that cannot be connected here."""
    renewed: StoredConnection | None = None
    name = visit.form.get("source", "")
    if "connection" in visit.form:
        renewed = _connection_of(site, user, visit.form["connection"])
        name = renewed.connector if renewed is not None else ""
    source = site.services.connecting.sources.get(name)
    if source is None or (renewed is None and not source.is_set_up):
        raise Mistake("bad_form")
    return _redirect_to_step(
        site, visit, site.services.connecting.begin(user.id, name, renewed=renewed, browser=browser.id_hash)
    )


def fetch(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """Start a sync of the connection in the form at the wish of a person who is present, of whom the bank is told
    (decision 94), and redirect to the page, which says whether it began. Raises Mistake for a connection of no live
    source."""
    connection = _connection_of(site, user, visit.form.get("connection", ""))
    if connection is None or connection.connector not in site.services.connecting.sources:
        raise Mistake("bad_form")
    started = site.services.sync_engine.sync_now(connection, visit.person)
    is_refused = started.error is not None and not started.is_too_soon
    outcome = "started" if started.job is not None else "refused" if is_refused else "recent"
    return site.redirect(site.address(f"/account/connect?notice=fetch_{outcome}"))


def ask_to_disconnect(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Ask whether the connection in the address is to end, and say what stays; redirects to the page where the user has
    no such connection."""
    connection = _connection_of(site, user, visit.parameters.get("connection", ("",))[0])
    if connection is None:  # it has been ended meanwhile, or is somebody else's
        return site.redirect(site.address(BANKS_PAGE))
    return site.page("disconnect.html", visit.words, connection=connection, form_token=_form_token(site, browser))


def disconnect(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """End the connection in the form here and, if possible, the access at its provider, record that, and redirect to
    the page; its accounts and bookings stay. Raises Mistake where the user has no such connection."""
    connection = _connection_of(site, user, visit.form.get("connection", ""))
    if connection is None:
        raise Mistake("bad_form")
    left = site.services.connecting.remove(connection)
    site.server.record.note(user.id, "disconnectBank")
    return site.redirect(site.address(f"{BANKS_PAGE}?notice={'disconnected_here' if left else 'disconnected'}"))


def step_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show the present step of an attempt to connect: a question, a link to the bank, or how the attempt ended. Where
    the step is done elsewhere, the page reloads itself, which asks the source for the next step and redirects there."""
    attempt = _attempt(site, user, browser, visit.parameters.get("attempt", ("",))[0])
    is_early = "early" in visit.parameters
    if "look" in visit.parameters and attempt.waits_seconds is not None:
        return _redirect_to_step(site, visit, _attempt(site, user, browser, attempt.id, {}), is_early=is_early)
    response = site.page(
        "connect_step.html",
        visit.words,
        attempt=attempt,
        question=attempt.step if isinstance(attempt.step, Question) else None,
        redirect=attempt.step if isinstance(attempt.step, Redirect) else None,
        waits=attempt.waits_seconds is not None,
        early=is_early,
        later="later" in visit.parameters,
        form_token=_form_token(site, browser),
    )
    if attempt.waits_seconds is not None:  # the page reloads itself, by a header because it has no script
        again = f"{_step_address(site, attempt, is_early=is_early)}&look=1"
        response.headers["refresh"] = f"{ceil(attempt.waits_seconds)}; url={again}"
    return response


def answer(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Hand the answer in the form to the source, and redirect to the next step, or to the one before if that is what
    the form says; a person who says too early that a step
    elsewhere is done learns that it is not. Raises Mistake where the attempt is over."""
    own = ("form_token", "attempt")
    given = {name: value for name, value in visit.form.items() if name not in own}
    attempt_id = visit.form.get("attempt", "")
    if "back" in given:
        return _redirect_to_step(site, visit, _attempt(site, user, browser, attempt_id, is_back=True))
    has_waited = _attempt(site, user, browser, attempt_id).waits_seconds is not None
    attempt = _attempt(site, user, browser, attempt_id, given)
    return _redirect_to_step(site, visit, attempt, is_early=has_waited and attempt.waits_seconds is not None)


def image(site: Site, visit: Visit) -> Response:
    """The picture of an attempt's question, such as a photoTAN. Raises Mistake where there is none, or nobody is signed
    in: as it is no page to come back to, nobody is sent to sign in."""
    if visit.browser is None or (user := site.server.sign_in.user_of(visit.browser)) is None:
        raise Mistake("no_session")
    step = _attempt(site, user, visit.browser, visit.parameters.get("attempt", ("",))[0]).step
    if not isinstance(step, Question) or step.image is None or step.image_type not in IMAGE_TYPES:
        raise Mistake("connecting_over", status=404)
    return Response(step.image, media_type=step.image_type, headers=page_headers(""))


def come_back(site: Site, visit: Visit) -> Response:
    """Take the next step for a browser that comes back from its bank, and redirect there; each `state` is valid for one
    return, in the browser that was sent. Raises Mistake for any other. Where a command began the attempt, shows a page
    that says so instead."""
    browser = visit.browser
    parameters = {name: values[0] for name, values in visit.parameters.items()}
    try:
        user_id, attempt = site.services.connecting.resume(
            parameters, browser=browser.id_hash if browser is not None else None
        )
    except AttemptUnknown:
        raise Mistake("connecting_over") from None
    if browser is None or browser.user_id != user_id:  # a command began the attempt, and goes on by itself
        return site.page("connect_back.html", visit.words, attempt=attempt)
    return _redirect_to_step(site, visit, attempt)


def demo_bank(site: Site, visit: Visit) -> Response:
    """The page that stands for a bank's own in `bankdata demo --live`, with a link back that bears the state."""
    state = visit.parameters.get("state", ("",))[0]
    return site.page("demo_bank.html", visit.words, back=site.address(RETURN_PATH), state=state)


def _connection_of(site: Site, user: User, connection_id: str) -> StoredConnection | None:
    """The user's connection with this id; None where there is none, or it is disconnected or of uploaded files."""
    found = (each for each in site.connections_of(user.id) if each.id == connection_id)
    return next((each for each in found if each.connector != Uploads.name), None)


def _attempt(
    site: Site,
    user: User,
    browser: Browser,
    attempt_id: str,
    given: Mapping[str, str] | None = None,
    *,
    is_back: bool = False,
) -> Attempt:
    """The attempt in its present state or, if `given` is an answer, after that answer, which the source gets; with
    `is_back` at the question before. Raises Mistake if the attempt is over or another browser's."""
    connecting = site.services.connecting
    try:
        if is_back:
            connecting.back(user.id, attempt_id, browser=browser.id_hash)
        if given is None:
            return connecting.find(user.id, attempt_id, browser=browser.id_hash)
        return connecting.answer(user.id, attempt_id, given, browser=browser.id_hash)
    except AttemptUnknown:
        raise Mistake("connecting_over") from None


def _redirect_to_step(site: Site, visit: Visit, attempt: Attempt, *, is_early: bool = False) -> Response:
    """Redirect to the page of the attempt's step, which says that the step is not done yet if the person came back too
    early (`is_early`). Starts the first sync of a connection that this very step has made or renewed, which begins no
    cool-down (decision 25), and only once, however often the last form is sent; the page says so if its source allows
    none yet."""
    address = _step_address(site, attempt, is_early=is_early and attempt.waits_seconds is not None)
    if attempt.connection is not None and attempt.is_new:
        started = site.services.sync_engine.sync_now(attempt.connection, visit.person, is_first=True)
        address += "&later=1" if started.is_too_soon else ""
    return site.redirect(address)


def _step_address(site: Site, attempt: Attempt, *, is_early: bool) -> str:
    return site.address(f"/account/connect/step?attempt={attempt.id}{'&early=1' if is_early else ''}")


def _form_token(site: Site, browser: Browser) -> str:
    return site.server.sessions.form_token(browser, PURPOSE)
