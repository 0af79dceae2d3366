"""The operations of /webhooks: addresses to which an app's events are sent; each grant sees only its own."""

from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any, TypeVar

from analytics.messages import Message
from connectors.webhooks.urls import is_usable
from handlers.json_shapes import instant, members
from handlers.names import Json
from handlers.operations.events import webhook_secrets
from handlers.operations.events.event_shapes import NEEDS, EventIds, id_of_event
from handlers.web.errors import BadRequest, Conflicting, NotFound, TooManyRequests, Unavailable
from handlers.web.request import Answer, Request
from handlers.work.services import Services
from storage.bank_access.connection_keys import SecretsUnreadable
from storage.database import Session, Transaction
from storage.keys.places import KeysUnusable
from storage.webhooks import deliveries, hooks
from storage.webhooks.deliveries import Delivery
from storage.webhooks.hooks import Webhook

EACH_MAX = 5
NO_WEBHOOK = "Webhook not found"
NO_DELIVERY = "Delivery not found"
NOT_SENT = "This server sends no webhooks. Its operator can start it with --webhooks"
TOO_MANY = Message("At most {limit} webhooks. Remove one first", limit=EACH_MAX)
DISABLED = "This webhook is disabled. Enable it first"
WAITING_MAX = 100  # waiting deliveries of one webhook; at this number no test is accepted
MANY_WAIT = Message("{limit} deliveries of this webhook wait already", limit=WAITING_MAX)
TRY_AGAIN_IN = 60  # seconds
BAD_URL = "url: must be an https address of a public host, without user, password and fragment"
NO_KEYS = "The secret cannot be kept at present: the server's operator finds the reason in the log"

T = TypeVar("T")


def list_webhooks(services: Services, request: Request) -> Json:
    """List the webhooks of the caller's grant, in the order in which they were created."""
    caller = request.principal
    webhooks = hooks.of_grant(services.of(caller.user_id), caller.user_id, caller.grant_id or "")
    return {"webhooks": [_shape(each) for each in webhooks]}


def create_webhook(services: Services, request: Request, *, body: Mapping[str, Any]) -> Answer:
    """Create a webhook for the caller's grant, and return it with its secret, which is shown only this once. Raises
    BadRequest, Conflicting for a sixth webhook or if this server sends none, and Unavailable."""
    caller, now = request.principal, services.clock.now()
    if not services.sends_webhooks:
        raise Conflicting(NOT_SENT)
    if not is_usable(body["url"], services.settings.webhooks_allow):
        raise BadRequest(BAD_URL)
    types = body.get("eventTypes")
    if types is not None and (not types or not NEEDS.keys() >= set(types)):
        raise BadRequest("eventTypes: must be some of {allowed}", allowed=", ".join(NEEDS))
    webhook = Webhook(
        user_id=caller.user_id,
        id=f"whk_{token_hex(12)}",
        grant_id=caller.grant_id or "",
        client_id=caller.client_id,
        scopes=caller.scopes,
        url=body["url"],
        event_types=sorted(set(types)) if types is not None else None,
        description=body.get("description"),
        created_at=now,
    )

    def work(session: Transaction) -> str:
        session.hold(caller.user_id)  # of two requests at once, the second one sees the first one's webhook
        if len(hooks.of_grant(session, caller.user_id, webhook.grant_id)) >= EACH_MAX:
            raise Conflicting(TOO_MANY)
        hooks.add(session, webhook)
        return webhook_secrets.replace_secret(services, session, caller.user_id, webhook.id, now)

    secret = with_sealed_secret(services, caller.user_id, work)
    return Answer(body={**_shape(webhook), "secret": secret}, status=201)


def get_webhook(services: Services, request: Request, *, id: str) -> Json:
    """One webhook of the caller's grant; raises NotFound."""
    return _shape(_find(services.of(request.principal.user_id), request, id))


def delete_webhook(services: Services, request: Request, *, id: str) -> Answer:
    """Delete a webhook of the caller's grant with all its deliveries; raises NotFound."""
    user_id = request.principal.user_id
    services.of(user_id).atomically(lambda session: hooks.remove(session, user_id, _find(session, request, id).id))
    return Answer(body=b"", status=204)


def test_webhook(services: Services, request: Request, *, id: str) -> Answer:
    """Have a test event sent to a webhook soon, and return the id of the delivery. Raises NotFound, Conflicting for a
    disabled webhook, and TooManyRequests where a hundred deliveries wait."""
    user_id, now = request.principal.user_id, services.clock.now()

    def work(session: Session) -> str:
        _check_enabled(session, request, id)
        if deliveries.count_waiting(session, user_id, id) >= WAITING_MAX:
            raise TooManyRequests(MANY_WAIT, retry_after=TRY_AGAIN_IN)
        return deliveries.add_own(session, user_id, id, "webhook.test", {"webhookId": id}, now=now)

    return Answer(body={"deliveryId": services.of(user_id).atomically(work)}, status=202)


def enable_webhook(services: Services, request: Request, *, id: str) -> Json:
    """Enable a webhook again, and return it: it gets events from now on. Raises NotFound."""
    user_id = request.principal.user_id

    def work(session: Session) -> Webhook:
        hooks.enable(session, user_id, _find(session, request, id).id)
        return _find(session, request, id)

    return _shape(services.of(user_id).atomically(work))


def renew_webhook_secret(services: Services, request: Request, *, id: str) -> Json:
    """Give a webhook a new secret and return it, only this once; the previous one signs too for a day. Raises NotFound
    and Unavailable."""
    user_id, now = request.principal.user_id, services.clock.now()

    def work(session: Session) -> str:
        return webhook_secrets.replace_secret(services, session, user_id, _find(session, request, id).id, now)

    return {"secret": with_sealed_secret(services, user_id, work)}


def list_webhook_deliveries(services: Services, request: Request, *, id: str) -> Json:
    """List the latest deliveries of a webhook, the one made last first. Raises NotFound."""
    own = services.of(request.principal.user_id)
    _find(own, request, id)
    ids = EventIds(incarnation=services.incarnation, user_id=request.principal.user_id)
    return {"deliveries": [_delivery(each, ids) for each in deliveries.last(own, request.principal.user_id, id)]}


def retry_webhook_delivery(services: Services, request: Request, *, id: str, delivery_id: str) -> Answer:
    """Have a delivery sent again now, whatever its outcome was. Raises NotFound, and Conflicting for a disabled
    webhook."""
    user_id, now = request.principal.user_id, services.clock.now()

    def work(session: Session) -> None:
        _check_enabled(session, request, id)
        if not deliveries.send_again(session, user_id, id, delivery_id, now=now):
            raise NotFound(NO_DELIVERY)

    services.of(user_id).atomically(work)
    return Answer(body={"deliveryId": delivery_id}, status=202)


def _find(session: Session, request: Request, id_: str) -> Webhook:
    """The webhook with this id, if the caller's grant has it; raises NotFound."""
    webhook = hooks.find(session, request.principal.user_id, id_)
    if webhook is None or webhook.grant_id != (request.principal.grant_id or ""):
        raise NotFound(NO_WEBHOOK)
    return webhook


def _check_enabled(session: Session, request: Request, id_: str) -> None:
    if _find(session, request, id_).disabled_reason is not None:
        raise Conflicting(DISABLED)


def with_sealed_secret(
    services: Services, user_id: str, work: Callable[[Transaction], T], *, refusal: str = NO_KEYS
) -> T:
    """The result of a transaction that reads or stores an encrypted secret; raises Unavailable with this `refusal`
    where the keys for that cannot be used."""
    try:
        services.connection_keys.get_ready()
        with services.connection_keys.hold():
            return services.of(user_id).atomically(work)
    except (KeysUnusable, SecretsUnreadable):
        raise Unavailable(refusal) from None


def _shape(webhook: Webhook) -> Json:
    return {
        **members(webhook, "id", "url", "eventTypes", "description"),
        "status": "enabled" if webhook.disabled_reason is None else "disabled",
        **members(webhook, "disabledReason", "createdAt"),
    }


def _delivery(delivery: Delivery, ids: EventIds) -> Json:
    return {
        "id": delivery.id,
        "eventId": id_of_event(delivery, ids),
        "eventType": delivery.type,
        "state": delivery.state,
        "nextAttemptAt": instant(delivery.due_at),
        "attempts": delivery.attempts,
    }
