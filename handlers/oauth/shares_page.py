"""The page on which a person shares accounts with another one, accepts what is offered, and ends either."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta

from msgspec import Struct
from starlette.responses import Response
from starlette.routing import BaseRoute

from auth.authorization_details import LASTS_DAYS
from auth.people.sessions import Browser
from auth.people.shares import Shared
from auth.people.sign_in import Outcome
from handlers.oauth.choices import AS_BEFORE, Choices, NothingChosen, choices_of, sent_choices
from handlers.oauth.operator_page import link_page
from handlers.oauth.site import SHARES_PAGE, ForUser, Site, Visit
from storage.accounts import StoredAccount
from storage.oauth import grants
from storage.oauth.grants import EVERYTHING, Terms
from storage.oauth.shares import Share
from storage.users import User

PURPOSE = "shares"
NOTICES = ("share_offered", "share_accepted", "share_changed", "share_ended", "share_goes_on")


class ShownShare(Struct, frozen=True):
    """A share on the page: the boxes of what it covers, and whether it rests since the store was restored."""

    share: Share
    choices: Choices
    rests: bool


def shares_routes(site: Site) -> list[BaseRoute]:
    """The routes of the page and its forms."""
    pages: Mapping[str, Mapping[str, ForUser]] = {
        SHARES_PAGE: {"GET": shares_page, "POST": give},
        f"{SHARES_PAGE}/change": {"POST": change},
        f"{SHARES_PAGE}/end": {"POST": end},
        f"{SHARES_PAGE}/accept": {"POST": accept},
        f"{SHARES_PAGE}/go-on": {"POST": go_on},
    }
    return [*site.user_routes(pages, purpose=PURPOSE, back=SHARES_PAGE)]


def shares_page(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Show what the person gives and gets, and what a form that has just been sent did (`notice`)."""
    return _page(site, visit, browser, user, notice=visit.notice(NOTICES))


def give(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Offer a share to the person whose name was typed, if the password is right, and redirect to the page, which says
    the same whether or not there is such a person; or, as an operator, to whoever uses an invitation, which is shown
    once."""
    try:
        offered = _sent(site, visit, _own_accounts(site, user))
    except NothingChosen:
        return _page(site, visit, browser, user, at="give", error="nothing")
    name, is_invited = visit.form.get("name", "").strip(), user.is_operator and visit.form.get("invite") == "on"
    if not is_invited and (not name or len(name) > 64):
        return _page(site, visit, browser, user, at="give", error="no_name")
    outcome = site.check_password(visit, browser, user)
    if outcome.browser is None:
        return _page(site, visit, browser, user, at="give", outcome=outcome)
    life = site.services.incarnation.id
    if is_invited:
        address = site.server.shares.invite(user, user, life=life, **offered)
        if address is None:
            return _page(site, visit, browser, user, at="give", error="many")
        return link_page(site, visit, "invitation_with_share", address, back=SHARES_PAGE)
    made = site.server.shares.offer(user, name, life=life, **offered)
    if isinstance(made, str):
        return _page(site, visit, browser, user, at="give", error=made)
    return _done(site, "share_offered")


def change(site: Site, visit: Visit, browser: Browser, user: User) -> Response:
    """Change what is shared or until when, and redirect to the page. Less needs no password, more does; a share that
    has ended meanwhile changes nothing."""
    share = next((each for each in site.server.shares.given_by(user.id) if each.id == visit.form.get("share")), None)
    if share is None:
        return _done(site, "share_ended")
    owned = _own_accounts(site, user)
    try:
        wanted = _sent(site, visit, owned, held=share)
    except NothingChosen:
        return _page(site, visit, browser, user, at=share.id, error="nothing")
    is_wider = site.server.shares.widens(share, owned={account.id for account in owned}, **wanted)
    if is_wider:
        outcome = site.check_password(visit, browser, user)
        if outcome.browser is None:
            return _page(site, visit, browser, user, at=share.id, outcome=outcome)
    site.server.shares.change(user, share, is_wider=is_wider, **wanted)
    site.services.households.round(share.id)
    return _done(site, "share_changed")


def end(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """End the share that the form names, as its giver or its receiver, so that it is gone with the answer, and redirect
    to the page."""
    share_id = visit.form.get("share", "")
    site.server.shares.end(user, share_id)
    site.services.households.round(share_id)
    return _done(site, "share_ended")


def accept(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """Accept the offer that the form names, and redirect to the page."""
    share_id = visit.form.get("share", "")
    is_accepted = site.server.shares.accept(user, share_id)
    site.services.households.round(share_id)
    return _done(site, "share_accepted" if is_accepted else "share_ended")


def go_on(site: Site, visit: Visit, _browser: Browser, user: User) -> Response:
    """Let the share that the form names go on in a restored store, and redirect to the page."""
    site.server.shares.go_on(user, visit.form.get("share", ""), life=site.services.incarnation.id)
    return _done(site, "share_goes_on")


def end_of_day(day_count: int, *, site: Site) -> datetime:
    """The end of the day that is so many days from today, in UTC."""
    zone = site.services.settings.time_zone
    today = site.services.clock.today()
    return datetime.combine(today + timedelta(days=day_count + 1), time(), zone).astimezone(UTC)


def _ticked(visit: Visit) -> dict[str, bool]:
    """What else the form lets the receiver, or their apps, see."""
    return {name: visit.form.get(name) == "on" for name in ("pass_on", "with_words")}


def _own_accounts(site: Site, user: User) -> Sequence[StoredAccount]:
    """Those that the person may share: without what others share with them."""
    held = grants.held_of(site.services.everybody, user.id)
    return [each for each in site.accounts_of(user.id) if each.id not in held]


def _sent(site: Site, visit: Visit, owned: Sequence[StoredAccount], *, held: Share | None = None) -> Shared:
    """What the form shares, and until when. Raises NothingChosen, and Mistake for an end that the form does not
    offer."""
    chosen = sent_choices(visit.form, visit.ticked_accounts)
    terms = chosen.terms(owned, held=held.terms if held is not None else EVERYTHING)
    if chosen.lasts == AS_BEFORE and held is not None:
        ends_at = held.ends_at
    else:
        ends_at = end_of_day(chosen.lifetime(LASTS_DAYS).days, site=site) if chosen.lasts else None
    ticked = _ticked(visit)
    return Shared(
        terms=Terms(accounts=terms.accounts, all_but=terms.all_but),
        ends_at=ends_at,
        pass_on=ticked["pass_on"],
        with_words=ticked["with_words"],
    )


def _done(site: Site, notice: str) -> Response:
    return site.redirect(site.address(f"{SHARES_PAGE}?notice={notice}"))


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
    owned, life = _own_accounts(site, user), site.services.incarnation.id
    given = [
        ShownShare(each, choices_of(each.terms, owned), each.accepted_at is not None and each.life != life)
        for each in site.server.shares.given_by(user.id)
    ]
    return site.form_page(
        "shares.html",
        visit.words,
        outcome,
        error=error,
        at=at,
        notice=notice,
        user=user,
        owned=owned,
        given=given,
        got=site.server.shares.given_to(user.id),
        life=life,
        choices=Choices(accounts=frozenset(), later=False, bookings=True, full_numbers=True),
        name=visit.form.get("name", "") if at == "give" else "",
        ticked=_ticked(visit) if at == "give" else {"pass_on": False, "with_words": False},
        days=LASTS_DAYS,
        as_before=AS_BEFORE,
        shares_address=site.address(SHARES_PAGE),
        form_token=site.server.sessions.form_token(browser, PURPOSE),
    )
