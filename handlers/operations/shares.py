"""The operations of /shares: the accounts that one person here lets another one see, offered, accepted, changed and
ended.

Only this server's own page may call them: an app that could share would pass on more than it was given.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from auth.people.shares import Shared, Unoffered
from auth.principal import PAGE
from connectors.text import YEARS
from handlers.json_shapes import instant
from handlers.names import Json
from handlers.operations.selection import owner_of
from handlers.web.errors import BadRequest, Conflicting, Forbidden, NotFound
from handlers.web.request import Answer, Request
from handlers.web.steps.parameters import read_moment
from handlers.work.services import Services
from storage import accounts, connections
from storage.oauth import grants
from storage.oauth.grants import Terms
from storage.oauth.shares import Share
from storage.undo_and_merge import handed_over
from storage.users import User

NOT_FOUND = "Share not found"
OF_THE_PAGE = "Shares are given and left on this service's own page, not by an app"
SIGN_IN_AGAIN = "To share more, sign in again: the password or passkey of the last five minutes is needed"
NOTHING = "accountIds: shares nothing. Name an account, or all but some"
UNKNOWN = "accountIds: contains an id that is not one of your own accounts. GET /accounts lists their ids"
UNOFFERED: Mapping[Unoffered, str] = {
    "self": "person: is yourself",
    "already": "person: you share with this person already, or have offered it. Change that",
    "many": "Twenty offers are open. Wait until some are accepted, or end some",
}


def list_shares(services: Services, request: Request) -> Json:
    """List what the user gives and what they get, offers that can still be accepted included, the first offered
    first."""
    user = _person(services, request)
    sharing = services.authorization.shares
    return {
        "given": [_given(services, each) for each in sharing.given_by(user.id)],
        "received": [_received(services, user, each) for each in sharing.given_to(user.id)],
    }


def offer_share(services: Services, request: Request, *, body: Mapping[str, Any]) -> Answer:
    """Offer accounts to the person of this name, and return the offer, which is the same whether or not there is such a
    person. Raises Forbidden, BadRequest and Conflicting."""
    user = _person(services, request)
    terms, ends_at = _terms(services, user, body), _end(services, body.get("endsAt"))
    _check_signed_in_lately(services, request)
    life, name = services.incarnation.id, body["person"].strip()
    if not name:
        raise BadRequest("person: must be the user name of a person")
    offered = Shared(
        terms=terms, ends_at=ends_at, pass_on=body.get("passOn", False), with_words=body.get("withWords", False)
    )
    made = services.authorization.shares.offer(user, name, life=life, **offered)
    if isinstance(made, str):
        raise Conflicting(UNOFFERED[made])
    return Answer(body=_given(services, made), status=201)


def change_share(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Change what is shared, and until when, or let a share go on that rests since a restore; return it. What is left
    out stays as it is. Raises NotFound, BadRequest, and Forbidden where that shares more and nobody has signed in
    lately."""
    user, sharing = _person(services, request), services.authorization.shares
    share = _find(services, user, id)
    terms, ends_at = share.terms, share.ends_at
    if "accountIds" in body or "allBut" in body:
        named = {"accountIds": share.accounts, "allBut": share.all_but}
        terms = _terms(services, user, {**named, **body}, known=frozenset(share.accounts or ()))
    if "endsAt" in body:
        ends_at = _end(services, body["endsAt"])
    goes_on = body.get("isResting") is False and share.life != services.incarnation.id
    before = Shared(terms=share.terms, ends_at=share.ends_at, pass_on=share.pass_on, with_words=share.with_words)
    after = Shared(
        terms=terms,
        ends_at=ends_at,
        pass_on=body.get("passOn", share.pass_on),
        with_words=body.get("withWords", share.with_words),
    )
    is_wider = sharing.widens(share, owned=_owned(services, user), **after)
    if is_wider or goes_on:
        _check_signed_in_lately(services, request)
    if after != before:
        sharing.change(user, share, is_wider=is_wider, **after)
    if goes_on:
        sharing.go_on(user, share.id, life=services.incarnation.id)
    services.households.round(only=share.id)
    return _given(services, _find(services, user, id))


def end_share(services: Services, request: Request, *, id: str) -> Answer:
    """End what the user gives, or leave what they get; all of it has left the receiver's data with the answer, unless
    an import holds that up for seconds. Raises NotFound."""
    if not services.authorization.shares.end(_person(services, request), id):
        raise NotFound(NOT_FOUND)
    services.households.round(only=id)
    return Answer(body=b"", status=204)


def accept_share(services: Services, request: Request, *, id: str) -> Json:
    """Accept what is offered, and return it; its accounts appear within seconds. Raises NotFound."""
    user, sharing = _person(services, request), services.authorization.shares
    if not sharing.accept(user, id):
        raise NotFound(NOT_FOUND)
    services.households.round(only=id)
    return next(_received(services, user, each) for each in sharing.given_to(user.id) if each.id == id)


def _person(services: Services, request: Request) -> User:
    if request.principal.client_id != PAGE:
        raise Forbidden(OF_THE_PAGE)
    return services.user(owner_of(request))


def _check_signed_in_lately(services: Services, request: Request) -> None:
    if not services.authorization.signed_in_lately(request.principal.grant_id or ""):
        raise Forbidden(SIGN_IN_AGAIN)


def _find(services: Services, giver: User, id_: str) -> Share:
    found = next((each for each in services.authorization.shares.given_by(giver.id) if each.id == id_), None)
    if found is None:
        raise NotFound(NOT_FOUND)
    return found


def _owned(services: Services, user: User) -> set[str]:
    """The accounts that a user may share: all that are not hidden nor shared by others."""
    held = grants.held_of(services.everybody, user.id)
    return {each.id for each in accounts.of_user(services.of(user.id), user.id)} - held


def _terms(services: Services, user: User, body: Mapping[str, Any], *, known: frozenset[str] = frozenset()) -> Terms:
    """The accounts that a body names; `known` are named already, though they may be gone or hidden by now."""
    named, all_but = body.get("accountIds"), bool(body.get("allBut"))
    if named is None:
        return Terms()
    if not named and not all_but:
        raise BadRequest(NOTHING)
    if not set(named) <= _owned(services, user) | known:
        raise BadRequest(UNKNOWN)
    return Terms(accounts=tuple(sorted(set(named))), all_but=all_but)


def _end(services: Services, moment: str | None) -> datetime | None:
    if moment is None:
        return None
    ends_at = read_moment(moment)
    if ends_at <= services.clock.now_in_utc() or ends_at.year not in YEARS:
        raise BadRequest("endsAt: must be a moment to come, before {year}", year=YEARS.stop)
    return ends_at


def _given(services: Services, share: Share) -> Json:
    """What the user gives as JSON (Share of the contract)."""
    ids = list(share.accounts) if share.accounts is not None else None
    return _shape(services, share, share.receiver_name) | {"accountIds": ids, "allBut": share.all_but}


def _received(services: Services, receiver: User, share: Share) -> Json:
    """What the user gets as JSON (Share of the contract), with the ids that the accounts have in their data."""
    own = services.of(receiver.id)
    brought = connections.accounts_of(own, receiver.id)
    whose = handed_over.connections_of(own, receiver.id, share.giver_name)
    ids = sorted({id_ for each in whose for id_ in brought.get(each, ())})
    return _shape(services, share, share.giver_name) | {"accountIds": ids, "allBut": False}


def _shape(services: Services, share: Share, person: str) -> Json:
    is_accepted = share.accepted_at is not None
    return {
        "id": share.id,
        "person": person,
        "passOn": share.pass_on,
        "withWords": share.with_words,
        "isResting": is_accepted and share.life != services.incarnation.id,
        "openUntil": None if is_accepted else _moment(share.open_until),
        "offeredAt": _moment(share.offered_at),
        "acceptedAt": _moment(share.accepted_at),
        "endsAt": _moment(share.ends_at),
    }


def _moment(value: datetime | None) -> str | None:
    return instant(value.astimezone(UTC).replace(tzinfo=None)) if value is not None else None
