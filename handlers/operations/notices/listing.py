"""GET /notices and PATCH /notices/{id}: what a person is told, and what they have done with it."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from auth.principal import Principal
from handlers.json_shapes import instant, money
from handlers.names import Json
from handlers.notice_sentences import step_of, text_of, title_of
from handlers.operations.notices.covered import may_see
from handlers.operations.selection import owner_of
from handlers.web.errors import BadRequest, NotFound
from handlers.web.request import Request
from handlers.web.steps.parameters import read_date
from handlers.work.services import Services
from storage import accounts
from storage.database import Session, Transaction
from storage.notices import looks, stored
from storage.notices.stored import LIVE, Notice

NOT_FOUND = "Notice not found"
SNOOZED_MAX = timedelta(days=30)
IDS = ("accountIds", "transactionIds", "subscriptionId", "connectionId")


def list_notices(
    services: Services, request: Request, *, state: str | None, kind: str | None, cursor: str | None, limit: int
) -> Json:
    """List what the user was told, as far as the caller may see it, the latest first. A cursor is the notice before the
    page, whatever has become of it since; raises BadRequest where the caller sees no such notice."""
    caller = request.principal
    with services.of(caller.user_id).transaction() as session:
        found = visible(session, caller)
    if cursor is not None:
        place = next((place for place, each in enumerate(found) if each.id == cursor), None)
        if place is None:
            raise BadRequest("cursor: not of this list. Begin without one")
        found = found[place + 1 :]
    asked = [each for each in found if state in (None, each.state) and kind in (None, each.kind)]
    return {
        "notices": [shape(each, caller) for each in asked[:limit]],
        "nextCursor": asked[limit - 1].id if len(asked) > limit else None,
    }


def change_notice(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Store what the person has done with a notice: read, put off until a day, dismissed, or open again. Raises
    NotFound and BadRequest."""
    caller, user_id = request.principal, owner_of(request)
    today, now = services.clock.today(), services.clock.now()
    state, until = body["state"], _until(body, today)

    def work(session: Transaction) -> Json:
        notice = next((each for each in visible(session, caller) if each.id == id), None)
        if notice is None:
            raise NotFound(NOT_FOUND)
        if notice.state not in (*LIVE, "dismissed"):
            raise BadRequest("state: this notice is over")
        stored.set_state(session, user_id, id, state, until=until, now=now)
        if until is not None:
            looks.look_by(session, user_id, until)
        changed = stored.find(session, user_id, id)
        assert changed is not None, "a notice went while its user was held"
        return shape(changed, caller)

    return services.alone(user_id, work)


def visible(session: Session, caller: Principal, *, states: Sequence[str] = stored.LISTED) -> list[Notice]:
    """The notices in these states that the caller may see, the latest first; those about hidden accounts are left out,
    but for the question whether two accounts are one."""
    shown = {each.id for each in accounts.of_user(session, caller.user_id)}
    return [
        each
        for each in stored.of_user(session, caller.user_id, states=states)
        if may_see(caller, each.kind, each.content["accountIds"])
        and (each.kind == "account.same" or shown.issuperset(each.content["accountIds"]))
    ]


def shape(notice: Notice, caller: Principal) -> Json:
    """The notice as JSON (Notice of the contract)."""
    said = notice.content
    amount, currency = said["amount"], said["currency"]
    return {
        "id": notice.id,
        "kind": notice.kind,
        "state": notice.state,
        "interrupts": notice.interrupts,
        "createdAt": instant(notice.created_at),
        "day": said["dueOn"] or notice.day.isoformat(),
        **{name: said[name] for name in IDS},
        "amount": money(Decimal(amount), currency) if amount is not None else None,
        "currency": currency,
        "dueOn": said["dueOn"],
        "returnableUntil": said["returnableUntil"],
        "snoozedUntil": notice.snoozed_until.isoformat() if notice.snoozed_until is not None else None,
        "title": title_of(notice.kind),
        "text": text_of(said["message"], said["arguments"], is_narrow=caller.coverage is not None),
        "step": step_of(notice.kind),
    }


def _until(body: Mapping[str, Any], today: date) -> date | None:
    if body["state"] != "snoozed":
        if body.get("until") is not None:
            raise BadRequest("until: only for a notice that is snoozed")
        return None
    if body.get("until") is None:
        raise BadRequest("until: the day on which it is told again")
    until = read_date(body["until"])
    if not today < until <= today + SNOOZED_MAX:
        raise BadRequest(f"until: after today, and at most {SNOOZED_MAX.days} days ahead")
    return until
