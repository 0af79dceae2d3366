"""Sends events to webhooks: finds due deliveries, has them sent by a process without a store, and stores their outcome.

The server's own process opens no connection for them (decision 66): it prepares whole requests with their signatures,
and learns of receivers only what the sending process reports. The pauses before it tries again are the setting
`webhooks_retry_seconds`.
"""

import logging
import time
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from random import SystemRandom
from typing import Any

import orjson
from msgspec import Struct

from auth.errors import InvalidToken
from auth.principal import Principal
from auth.tokens.access_check import principal_of
from connectors.webhooks.client import SendingProcess, SendingProcessGone
from handlers.json_shapes import instant
from handlers.names import Json
from handlers.operations.events import webhook_secrets
from handlers.operations.events.event_shapes import EventIds, data_of, id_of_event, receives, shape
from handlers.operations.events.sending_bounds import SendingBounds
from handlers.setting_values import PAUSES_MAX
from handlers.work.services import Services
from storage.bank_access.connection_keys import SecretsUnreadable
from storage.boundary import contain
from storage.database import Session, StoreUnavailable, Transaction
from storage.events import outbox
from storage.keys.places import KeysUnusable
from storage.oauth import grants
from storage.webhooks import deliveries, hooks
from storage.webhooks.deliveries import Delivery
from storage.webhooks.hooks import Webhook

LOOK_EVERY = 0.5  # seconds between two looks at what is due
IDLE_LOOKS = 4  # times LOOK_EVERY after an empty look, where several processes look, each at every machine of a cluster
SENT_AT_ONCE = 256
LEASE = timedelta(seconds=30)  # beside the time that a receiver has
PUT_OFF = timedelta(hours=1)  # a delivery without a subscription, or without the key that opens the secret
ATTEMPTS_KEPT = PAUSES_MAX + 5  # of each delivery, which may be sent again and again by hand
GONE = 410
TRIES_AGAIN_IN = 5.0  # seconds after an error of this side

log = logging.getLogger("bankdata.webhooks")


class _DeliveryAttempt(Struct, frozen=True):
    delivery: Delivery
    webhook: Webhook
    begun_at: datetime


class Deliverer:
    """Sends due deliveries of events to webhooks until the server stops; runs in a thread of its own."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stop_event = services.sync_engine.stopped
        self._jitter = SystemRandom()
        self._idle_looks = IDLE_LOOKS if services.sharing.has_other_processes else 1
        self._sender: SendingProcess | None = None  # started with the first delivery
        self._bounds = SendingBounds()
        self.on_its_way: dict[str, _DeliveryAttempt] = {}  # by the id of the delivery
        self._outcomes = deque[Mapping[str, Any]]()  # that are to be stored

    def work(self) -> None:
        """Send deliveries and store their outcomes, round by round, until the sync engine stops, and then end the
        sending process; after an error log it, wait five seconds and go on."""
        is_waiting = False
        while not self._stop_event.is_set():
            with contain(log, "webhooks go on after an error", is_expected=self._stop_event.is_set):
                try:
                    self.round()
                    is_waiting = False
                    continue
                except SendingProcessGone:
                    log.warning("the process that sends webhooks has ended; another one takes its place")
                    self.close()
                except StoreUnavailable:
                    if not is_waiting:
                        log.warning("webhooks wait for the database")
                    is_waiting = True
            self._stop_event.wait(TRIES_AGAIN_IN)
        self.close()

    def round(self) -> None:
        """Have the due deliveries sent, and store outcomes as they arrive until it is time for the next look: a hundred
        that time out together delay nobody else's."""
        is_idle = not self._send_due() and not self.on_its_way
        until = time.monotonic() + LOOK_EVERY * (self._idle_looks if is_idle else 1)
        while (left := until - time.monotonic()) > 0 and not self._stop_event.is_set():
            if self._sender is None:
                self._stop_event.wait(left)
                return
            self._outcomes += self._sender.outcomes(within=0 if self._outcomes else left)
            if self._outcomes:
                self._settle(self._outcomes.popleft())

    def close(self) -> None:
        """End the sending process and forget what is on its way; deliveries without an outcome are sent again once
        their lease is over."""
        if self._sender is not None:
            self._sender.close()
        self._sender = None
        self.on_its_way.clear()
        self._outcomes.clear()

    def _send_due(self) -> bool:
        """Have due deliveries sent, within the bounds for each webhook, user and host, and return whether any was due,
        sent or not."""
        if self._services.clock_watch.is_off():
            return False  # its moments would be wrong; other machines send
        now = self._services.clock.now()
        # A delivery without an answer within its lease, or whose outcome could not be stored, is due again like others
        self.on_its_way = {id_: each for id_, each in self.on_its_way.items() if (each.delivery.due_at or now) > now}
        self._bounds.count(each.webhook for each in self.on_its_way.values())
        is_any, is_more = False, True
        while is_more and (room := SENT_AT_ONCE - len(self.on_its_way)) > 0:
            found = deliveries.due(self._services.everybody, now=now, but_of=self._bounds.full(), limit=room)
            is_any, is_full = is_any or bool(found), False
            for due in found:
                webhook = hooks.find(self._services.of(due.user_id), due.user_id, due.webhook_id)
                if webhook is not None and not self._bounds.has_room(webhook):
                    is_full = True
                elif due.id not in self.on_its_way and self._send(due, webhook, now) and webhook is not None:
                    self._bounds.add(webhook)
            # Further deliveries, behind many of one webhook, user or host, were not looked at yet
            is_more = is_full and len(found) == room
        return is_any

    def _send(self, due: Delivery, webhook: Webhook | None, now: datetime) -> bool:
        """Have one delivery sent, and note that in the user's record of accesses; return whether it was sent. Not if
        another process was first; nor without a valid grant (its webhook is removed), without the event (dropped), or
        without a subscription or secret (put off by an hour)."""
        own, seconds = self._services.of(due.user_id), self._services.settings.webhooks_timeout_seconds
        delivery = own.atomically(lambda session: deliveries.claim(session, due, until=now + seconds + LEASE))
        if delivery is None:
            return False
        caller = self._caller(webhook) if webhook is not None else None
        if webhook is None or caller is None:
            own.atomically(lambda session: hooks.remove(session, due.user_id, due.webhook_id))
            return False
        try:
            secrets = webhook_secrets.valid_secrets(self._services, webhook, now)
        except (SecretsUnreadable, KeysUnusable) as error:
            log.warning("webhook=%s gets nothing: %s", webhook.id, error)
            secrets = []
        if not secrets or not caller.has_subscription:
            self._put_off(delivery, due_at=now + PUT_OFF)
            return False
        with own.transaction() as session:
            message = self._message(session, caller, delivery)
        if message is None:
            own.atomically(lambda session: deliveries.drop(session, delivery))
            return False
        body = orjson.dumps(message).decode()
        sent_at = now - self._services.clock.offset  # the real time, which receivers compare with their clocks
        if self._sender is None:
            self._sender = SendingProcess(self._services.settings.webhooks_allow)
        self.on_its_way[delivery.id] = _DeliveryAttempt(delivery, webhook, now)
        self._sender.send(
            {
                "id": delivery.id,
                "url": webhook.url,
                "headers": webhook_secrets.headers(secrets, message["id"], sent_at, body),
                "body": body,
                "seconds": seconds.total_seconds(),
            }
        )
        record = self._services.authorization.record
        record.note(webhook.user_id, "sendWebhook", grant_id=webhook.grant_id, client_id=webhook.client_id)
        return True

    def _caller(self, webhook: Webhook) -> Principal | None:
        """The principal of the webhook's grant, with its present terms and those of the webhook's scopes that it still
        has; None if the grant has ended."""
        access, everybody = self._services.authorization.access, self._services.everybody
        try:
            standing = access.check(webhook.grant_id, webhook.user_id)
        except InvalidToken:
            return None
        grant = grants.find(everybody, webhook.grant_id)
        scopes = webhook.scopes & frozenset(grant.scope.split() if grant is not None else ())
        return principal_of(standing, client_id=webhook.client_id, scopes=scopes, grant_id=webhook.grant_id)

    def _message(self, session: Session, caller: Principal, delivery: Delivery) -> Json | None:
        """The event as JSON, as it is sent; None if the grant covers nothing in it, or the event is forgotten."""
        ids = EventIds(incarnation=self._services.incarnation, user_id=caller.user_id)
        if delivery.sequence is None:
            data: Json | None = dict(delivery.data or {})
        else:
            found = outbox.after(session, caller.user_id, delivery.sequence - 1, limit=1)
            is_there = bool(found) and found[0].sequence == delivery.sequence
            data = data_of(session, caller, found[0]) if is_there and receives(caller, delivery.type) else None
        return shape(id_of_event(delivery, ids), delivery.type, delivery.made_at, data) if data is not None else None

    def _put_off(self, delivery: Delivery, **said: Any) -> None:
        said = {"state": "pending", "attempts": delivery.attempts, **said}
        self._services.of(delivery.user_id).atomically(lambda session: deliveries.settle(session, delivery, **said))

    def _settle(self, outcome: Mapping[str, Any]) -> None:
        """Store the outcome of one attempt: whether the delivery has succeeded, failed, or is due again, and whether
        its webhook is failing or is to be disabled. Does nothing if the lease is over."""
        sent = self.on_its_way.pop(outcome["id"], None)
        if sent is None:
            return  # its lease is over
        self._bounds.note(sent.webhook, outcome["durationMs"])
        attempt = {"at": instant(sent.begun_at), **{name: outcome[name] for name in ("status", "error", "durationMs")}}
        now = self._services.clock.now()
        self._services.of(sent.delivery.user_id).atomically(
            lambda session: self._keep(session, sent, attempt, timedelta(seconds=outcome["retryAfter"]), now)
        )

    def _keep(
        self, session: Transaction, sent: _DeliveryAttempt, attempt: Mapping[str, Any], wanted: timedelta, now: datetime
    ) -> None:
        delivery, user_id, id_ = sent.delivery, sent.delivery.user_id, sent.webhook.id
        attempts, status = [*delivery.attempts, attempt][-ATTEMPTS_KEPT:], attempt["status"]
        is_delivered = status is not None and 200 <= status < 300
        pauses = self._services.settings.webhooks_retry_seconds
        is_last = is_delivered or len(attempts) > len(pauses)
        again = None if is_last else now + max(pauses[len(attempts) - 1] * self._jitter.uniform(0.9, 1.1), wanted)
        state = "delivered" if is_delivered else "failed" if is_last else "pending"
        webhook = hooks.find(session, user_id, id_)
        if not deliveries.settle(session, delivery, state=state, due_at=again, attempts=attempts) or webhook is None:
            return  # the webhook was removed, or another process sent the delivery meanwhile
        if is_last:
            deliveries.keep_last(session, user_id, id_)
        if is_delivered:
            if webhook.failing_since is not None:
                hooks.set_failing(session, user_id, id_, None)
            return
        since = webhook.failing_since or now
        if status == GONE:
            self._disable(session, webhook, "gone", now)
        elif now - since >= deliveries.GIVEN_UP_AFTER:
            self._disable(session, webhook, "failing", now)
        elif webhook.failing_since is None:
            hooks.set_failing(session, user_id, id_, now)

    def _disable(self, session: Session, webhook: Webhook, reason: str, now: datetime) -> None:
        """Disable a webhook, and send an event about that to the other webhooks of its grant."""
        hooks.disable(session, webhook.user_id, webhook.id, because=reason)
        log.warning("webhook=%s gets nothing any more: %s", webhook.id, reason)
        for other in hooks.of_grant(session, webhook.user_id, webhook.grant_id):
            if other.disabled_reason is None and other.id != webhook.id:
                said = {"webhookId": webhook.id, "reason": reason}
                deliveries.add_own(session, webhook.user_id, other.id, "webhook.disabled", said, now=now)
