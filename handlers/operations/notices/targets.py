"""The operations of /notices/targets: the addresses at which a person is told, each of which works once the code that
was sent there was entered."""

import hmac
from collections.abc import Mapping, Sequence
from secrets import randbelow, token_hex, token_urlsafe
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from analytics.messages import Message
from analytics.notices.hours import counts_of, day_of
from connectors.ways import AddressRefused
from handlers.json_shapes import instant, members
from handlers.names import Json
from handlers.notice_sentences import visible_name
from handlers.operations.events.webhooks import with_sealed_secret
from handlers.operations.notices.notice_settings import begin_settings, person_of
from handlers.web.errors import BadRequest, Conflicting, NotFound, TooManyRequests, Unavailable
from handlers.web.request import Answer, Request
from handlers.work.services import Services
from handlers.work.ways import web_push_key
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import SecretsUnreadable
from storage.database import Transaction
from storage.keys.places import KeysUnusable
from storage.notices import of_access
from storage.notices.ways import deliveries, ending, settings, targets
from storage.notices.ways.deliveries import NoticeDelivery
from storage.notices.ways.targets import NoticeTarget

WAYS = {"email": "email", "subscription": "push", "url": "apprise"}
"""The way to which a member of the request leads."""
EACH_MAX = 10
CODES_MAX = 3  # a day, that nobody has entered
TESTS_MAX = 10  # a day
TRIES_MAX = 5
NOT_FOUND = "Target not found"
ONE_ADDRESS = "Name one address: email, subscription or url"
TOO_MANY = Message("At most {limit} targets. Remove one first", limit=EACH_MAX)
CODES_SENT = Message("{limit} codes were sent today that nobody has entered. Try again tomorrow", limit=CODES_MAX)
TESTS_SENT = Message("{limit} tests were sent today. Try again tomorrow", limit=TESTS_MAX)
NOT_CODE = "code: is not the one that was sent last"
TRIED_OFTEN = "Too many wrong codes. Have a new one sent"
WORKS_ALREADY = "This target works already"
NOT_HERE: Mapping[str, str] = {
    "email": "This server sends no e-mail. Its operator can name a mail server",
    "push": "This server sends nothing to browsers",
    "apprise": "This server sends to no such address. Its operator can install Apprise",
}
NO_KEYS = "The address cannot be kept at present: the server's operator finds the reason in the log"
A_DAY = 86_400

T = TypeVar("T")


def list_notice_targets(services: Services, request: Request) -> Json:
    """List the user's targets, in the order in which they were made, and the ways that this server has. Raises
    Forbidden for an app."""
    user_id = person_of(request)
    return {
        "targets": [_shape(each) for each in targets.of_user(services.of(user_id), user_id)],
        "ways": sorted(services.ways),
    }


def create_notice_target(services: Services, request: Request, *, body: Mapping[str, Any]) -> Answer:
    """Add a target and have a code sent there; return the target. A browser that is one already stays what it is, in
    its present session. Raises Forbidden, BadRequest, Conflicting for an
    eleventh one or a way that is missing here, TooManyRequests and Unavailable."""
    user_id, now = person_of(request), services.clock.now()
    given = [member for member in WAYS if body.get(member) is not None]
    if len(given) != 1:
        raise BadRequest(ONE_ADDRESS)
    way = services.ways.get(WAYS[given[0]])
    if way is None:
        raise Conflicting(NOT_HERE[WAYS[given[0]]])
    try:
        address = way.checked(body[given[0]])
    except AddressRefused as error:
        raise BadRequest(error.args[0]) from None
    target = NoticeTarget(
        user_id=user_id,
        id=f"ntt_{token_hex(12)}",
        way=WAYS[given[0]],
        scheme=address.scheme,
        last=address.last,
        only_of=address.unique,
        name=visible_name(body.get("name") or "") or None,
        whole_sentences=body.get("wholeSentences", False),
        created_at=now,
        session_hash=services.authorization.grants.session_of(request.principal.grant_id or "")
        if address.unique
        else None,
    )

    def work(session: Transaction) -> NoticeTarget:
        session.hold(user_id)  # of two requests at once, the second one sees the first one's target
        known = targets.of_user(session, user_id)
        for each in known:
            if address.unique and each.only_of == address.unique:
                targets.set_session(session, user_id, each.id, target.session_hash)
                return each
        if len(known) >= EACH_MAX:
            raise Conflicting(TOO_MANY)
        begin_settings(services, session, request)
        targets.add(session, target)
        of_access.tell_of(session, user_id, "createNoticeTarget", now=now)
        _send_code(services, session, target, {"address": address.sealed, "leave": token_urlsafe(24)})
        return target

    made = with_sealed_secret(services, user_id, work, refusal=NO_KEYS)
    if made is not target and made.state == "working":  # the process that had it work may have died on the way
        others = targets.owned_elsewhere(services.everybody, made.only_of, but=made.id)
        _end_elsewhere(services, [each for each in others if each.created_at < made.created_at])
    return Answer(body=_shape(made), status=201 if made is target else 200)


def delete_notice_target(services: Services, request: Request, *, id: str) -> Answer:
    """Remove a target; one that has worked gets one last sentence. Raises Forbidden and NotFound."""
    user_id = person_of(request)

    def work(session: Transaction) -> None:
        session.hold(user_id)
        ending.end(session, _find(session, request, id), now=services.clock.now())

    services.of(user_id).atomically(work)
    return Answer(body=b"", status=204)


def confirm_notice_target(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Have a target work, by the code that was sent there; return it. Raises Forbidden, NotFound, Conflicting where it
    works already, BadRequest for another code, and TooManyRequests after five."""
    user_id = person_of(request)

    def work(session: Transaction) -> bool:
        session.hold(user_id)
        target = _find(session, request, id)
        if target.state != "unconfirmed":
            raise Conflicting(WORKS_ALREADY)
        if target.tries >= TRIES_MAX:
            raise TooManyRequests(TRIED_OFTEN, retry_after=A_DAY)
        secrets = connection_secrets.find(session, services.connection_keys, user_id, id)
        if not hmac.compare_digest(secrets.get("code", "").encode(), body["code"].encode()):
            targets.set_tries(session, user_id, id, target.tries + 1)
            return False
        del secrets["code"]
        connection_secrets.keep(session, services.connection_keys, user_id, id, secrets)
        targets.work(session, user_id, id)
        counted = today(services, session, user_id)
        settings.count(session, user_id, {**counted, "codes": max(0, counted.get("codes", 0) - 1)})
        return True

    found = _find(services.of(user_id), request, id)
    others = targets.owned_elsewhere(services.everybody, found.only_of, but=id) if found.only_of else []
    if not with_sealed_secret(services, user_id, work, refusal=NO_KEYS):
        raise BadRequest(NOT_CODE)
    _end_elsewhere(services, others)
    return _shape(_find(services.of(user_id), request, id))


def test_notice_target(services: Services, request: Request, *, id: str) -> Answer:
    """Have a test sent to a target, to one that does not work yet a new code; return the id of the delivery. A paused
    one works again when it has arrived. Raises Forbidden, NotFound, TooManyRequests and Unavailable."""
    user_id = person_of(request)

    def work(session: Transaction) -> str:
        session.hold(user_id)
        target = _find(session, request, id)
        if target.state == "unconfirmed":
            secrets = connection_secrets.find(session, services.connection_keys, user_id, id)
            targets.set_tries(session, user_id, id, 0)
            return _send_code(services, session, target, secrets)
        return send_test(services, session, target)

    return Answer(body={"deliveryId": with_sealed_secret(services, user_id, work, refusal=NO_KEYS)}, status=202)


def send_test(services: Services, session: Transaction, target: NoticeTarget) -> str:
    """Have a test sent to a target that works or is paused; returns the id of the delivery. Raises TooManyRequests."""
    counted = today(services, session, target.user_id)
    if counted.get("tests", 0) >= TESTS_MAX:
        raise TooManyRequests(TESTS_SENT, retry_after=A_DAY)
    settings.count(session, target.user_id, {**counted, "tests": counted.get("tests", 0) + 1})
    return deliveries.add(session, target.user_id, target_id=target.id, what="test", now=services.clock.now())


def list_notice_deliveries(services: Services, request: Request, *, id: str) -> Json:
    """List the latest letters to a target, the one made last first. Raises Forbidden and NotFound."""
    user_id = person_of(request)
    own = services.of(user_id)
    _find(own, request, id)
    return {"deliveries": [_delivery(each) for each in deliveries.last(own, user_id, id)]}


def get_push_key(services: Services, request: Request) -> Json:
    """The key with which browsers subscribe. Raises Forbidden for an app, and Unavailable."""
    person_of(request)
    try:
        return {"key": web_push_key(services.everybody, services.connection_keys).public}
    except (KeysUnusable, SecretsUnreadable):
        raise Unavailable(NO_KEYS) from None


def today(services: Services, session: Transaction, user_id: str) -> dict[str, Any]:
    """What was counted of the person's present day; of another day nothing counts any more."""
    wanted = settings.find(session, user_id)
    zone = ZoneInfo(wanted.time_zone) if wanted is not None else services.settings.time_zone
    return counts_of(settings.counted(session, user_id), day_of(services.clock.now(), zone))


def _send_code(services: Services, session: Transaction, target: NoticeTarget, secrets: Mapping[str, Any]) -> str:
    """Have a new code sent, which takes the place of the one before; returns the id of the delivery."""
    user_id, counted = target.user_id, today(services, session, target.user_id)
    if counted.get("codes", 0) >= CODES_MAX:
        raise TooManyRequests(CODES_SENT, retry_after=A_DAY)
    settings.count(session, user_id, {**counted, "codes": counted.get("codes", 0) + 1})
    kept = {**secrets, "code": f"{randbelow(10**8):08}"}
    connection_secrets.keep(session, services.connection_keys, user_id, target.id, kept)
    return deliveries.add(session, user_id, target_id=target.id, what="code", now=services.clock.now())


def _end_elsewhere(services: Services, others: Sequence[NoticeTarget]) -> None:
    """End the targets of others with an address that one alone may have: the last one who entered its code."""
    for each in others:

        def work(session: Transaction, other: NoticeTarget = each) -> None:
            session.hold(other.user_id)
            ending.remove(session, other, now=services.clock.now())

        services.of(each.user_id).atomically(work)


def _find(session: Any, request: Request, id_: str) -> NoticeTarget:
    found = targets.find(session, request.principal.user_id, id_)
    if found is None or found.state == "removed":
        raise NotFound(NOT_FOUND)
    return found


def _shape(target: NoticeTarget) -> Json:
    return members(target, "id", "way", "scheme", "last", "name", "wholeSentences", "state", "reason", "createdAt")


def _delivery(delivery: NoticeDelivery) -> Json:
    return {
        **members(delivery, "id", "what", "kind", "noticeId", "state", "reason", "madeAt"),
        "nextAttemptAt": instant(delivery.due_at),
        "attempts": delivery.attempts,
    }
