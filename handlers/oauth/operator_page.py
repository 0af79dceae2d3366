"""The operator's page: who may come in, who is paused, how the server does; of nobody's money, banks or words a
sign."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.people.sessions import Browser
from auth.people.sign_in import Outcome
from handlers.oauth.mistakes import Mistake
from handlers.oauth.site import OPERATOR_PAGE, ForUser, Site, Visit
from handlers.people import remove_person
from handlers.settings import in_force
from handlers.work.costs import EMBEDDED, POSTGRESQL
from handlers.work.services import Services
from storage import connections, transactions, users
from storage.oauth.moments import aware
from storage.users import LastOperator, User

PURPOSE = "operator"
NOTICES = ("invitation_revoked", "person_paused", "person_unpaused", "person_removed", "operator_marked")
SHOWN_BYTES = 10_000_000  # the steps in which somebody's storage is shown, so that it tells nothing of what they do


class ListedPerson(Struct, frozen=True, kw_only=True):
    """What an operator sees of a person; `connections` counts their bank connections by status, `megabytes` is what
    they take in the store, in steps of ten."""

    user: User
    since: datetime
    last_sign_in: datetime | None
    has_second_factor: bool
    connections: Sequence[tuple[str, int]]
    megabytes: int


def operator_routes(site: Site) -> list[BaseRoute]:
    """The routes of the page and its forms; whoever is no operator finds no such page."""
    pages: Mapping[str, Mapping[str, ForUser]] = {
        OPERATOR_PAGE: {"GET": operator_page},
        f"{OPERATOR_PAGE}/invite": {"POST": invite},
        f"{OPERATOR_PAGE}/uninvite": {"POST": revoke_invitation},
        f"{OPERATOR_PAGE}/pause": {"POST": pause},
        f"{OPERATOR_PAGE}/unpause": {"POST": unpause},
        f"{OPERATOR_PAGE}/password": {"POST": make_password_link},
        f"{OPERATOR_PAGE}/mark": {"POST": mark},
        f"{OPERATOR_PAGE}/remove": {"POST": remove},
    }
    guarded = {
        path: {method: _for_operators(answering) for method, answering in methods.items()}
        for path, methods in pages.items()
    }
    return [*site.user_routes(guarded, purpose=PURPOSE, back=OPERATOR_PAGE)]


def _for_operators(answering: ForUser) -> ForUser:
    def answer(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
        if not user.is_operator:
            raise Mistake("unknown_address", status=404)
        return answering(site, visit, browser, user)

    return answer


def operator_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show people, invitations and the server, and what a form that has just been sent did (`notice`)."""
    return _page(site, visit, browser, user, notice=visit.notice(NOTICES))


def invite(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Make an invitation, if the operator's password is right, and show its link once."""
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _page(site, visit, browser, user, at="invite", outcome=outcome)
    return link_page(site, visit, "invitation", site.server.links.invite(user))


def revoke_invitation(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """End the invitation that the form names, and redirect to the page."""
    site.server.links.revoke(visit.form.get("invitation", ""), user)
    return _done(site, "invitation_revoked")


def pause(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Pause the person whom the form names, and redirect to the page; the last operator stays."""
    person = _person_of_form(site, visit)
    try:
        site.server.operators.pause(person, by=user)
    except LastOperator:
        return _page(site, visit, browser, user, at=person.id, error="last")
    return _done(site, "person_paused")


def unpause(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """Let the person whom the form names go on, and redirect to the page."""
    site.server.operators.unpause(_person_of_form(site, visit), by=user)
    return _done(site, "person_unpaused")


def make_password_link(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Make a link for a new password of the person whom the form names, if the operator's password is right, and show
    it once."""
    person = _person_of_form(site, visit)
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _page(site, visit, browser, user, at=person.id, outcome=outcome)
    return link_page(site, visit, "password", site.server.links.new_password(person, user), name=person.name)


def mark(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Make the person whom the form names an operator or end that, if the operator's password is right, and redirect to
    the page; the last operator stays one."""
    person = _person_of_form(site, visit)
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _page(site, visit, browser, user, at=person.id, outcome=outcome)
    try:
        site.server.operators.mark(person, is_operator=visit.form.get("is_operator") == "on", by=user)
    except LastOperator:
        return _page(site, visit, browser, user, at=person.id, error="last")
    return site.redirect(site.address("/account")) if person.id == user.id else _done(site, "operator_marked")


def remove(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Delete the person whom the form names with everything of theirs, if their name was typed too and the operator's
    password is right, and redirect to the page; the last operator stays."""
    person = _person_of_form(site, visit)
    if not site.server.sign_in.is_name_of(person.id, visit.form.get("name", "").strip()):
        return _page(site, visit, browser, user, at=person.id, error="other_name")
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _page(site, visit, browser, user, at=person.id, outcome=outcome)
    try:
        remove_person(site.services, person, by=user)
    except LastOperator:
        return _page(site, visit, browser, user, at=person.id, error="last")
    return site.redirect(site.address("/account")) if person.id == user.id else _done(site, "person_removed")


def _person_of_form(site: Site, visit: Visit) -> User:
    """The user whom a form names; raises Mistake where there is none (any more)."""
    person = users.find(site.services.everybody, visit.form.get("person", ""))
    if person is None:
        raise Mistake("bad_form")
    return person


def _done(site: Site, notice: str) -> Response:
    return site.redirect(site.address(f"{OPERATOR_PAGE}?notice={notice}"))


def link_page(site: Site, visit: Visit, kind: str, link: str, *, name: str = "", back: str = OPERATOR_PAGE) -> Response:
    """The page that shows a link once, and leads `back`."""
    return site.page(
        "link.html",
        visit.words,
        kind=kind,
        name=name,
        link=link,
        is_in_clear=urlsplit(site.policy.auth_url).scheme == "http",
        back_to="shares" if back != OPERATOR_PAGE else "operator",
        back_address=site.address(back),
    )


def people(services: Services) -> list[ListedPerson]:
    """What an operator sees of everybody, by name."""
    everybody, server = services.everybody, services.authorization
    bytes_each = (POSTGRESQL if services.store.is_shared else EMBEDDED).booking_bytes
    return [
        ListedPerson(
            user=user,
            since=aware(user.created_at),
            last_sign_in=server.record.last_of(user.id, "signIn"),
            has_second_factor=server.second_factors.is_on(user.id),
            connections=sorted(Counter(each.status for each in connections.of_user(everybody, user.id)).items()),
            megabytes=10 * -(-transactions.number_of(everybody, user.id) * bytes_each // SHOWN_BYTES),
        )
        for user in users.everyone(everybody)
    ]


def _page(
    site: Site,
    visit: Visit,
    browser: Browser,
    user: User,
    *,
    notice: str = "",
    at: str = "",
    error: str = "",
    outcome: Outcome | None = None,
) -> Response:
    services = site.services
    shown, made = people(services), services.backed_up_at()
    failing = sum(count for each in shown for status, count in each.connections if status != "ACTIVE")
    return site.form_page(
        "operator.html",
        visit.words,
        outcome,
        error=error,
        at=at,
        notice=notice,
        user=user,
        people=shown,
        invitations=site.server.links.invitations(),
        version=version("banking-data-service"),
        megabytes=-(-services.store.bytes // 1_000_000),
        backup_at=aware(made) if made is not None else None,
        round_at=datetime.fromtimestamp(services.scheduler.last_round_at, UTC),
        failing=failing,
        settings=in_force(os.environ),
        operator_address=site.address(OPERATOR_PAGE),
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )
