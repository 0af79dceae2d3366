"""Sends what people are told to their targets: finds due letters, decides whether they are still to be sent, has them
sent, and stores what came of it. Each is sent at least once."""

import logging
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from connectors.ways import LetterOutcome
from handlers.json_shapes import instant
from handlers.operations.notices import digest, turns
from handlers.operations.notices.turns import Prepared
from handlers.web.request import Operation
from handlers.work.services import Services
from storage.bank_access.connection_keys import SecretsUnreadable
from storage.boundary import begin_thread, contain
from storage.database import StoreUnavailable, Transaction
from storage.keys.places import KeysUnusable
from storage.notices.ways import deliveries, ending, targets
from storage.notices.ways.deliveries import NoticeDelivery

LOOK_EVERY = 2.0  # seconds between two looks at what is due
SENT_AT_ONCE = 16
LOOKED_AT = 100
DIGESTS_AT_ONCE = 4  # made between two looks: each asks much, and others wait
OF_EACH_USER = 4  # of those sent at once, so that slow receivers of one person hold up nobody else
LEASE = timedelta(minutes=3)  # a way has less
PAUSES = tuple(timedelta(minutes=each) for each in (1, 5, 15, 45, 120, 360, 720))
REFUSALS_MAX = 5
REFUSED_FOR = timedelta(hours=1)
PUT_OFF = timedelta(hours=1)  # without the key that opens the address, or after an error of this side
TRIES_AGAIN_IN = 5.0  # seconds after an error of this side

log = logging.getLogger("bankdata.notices")


class _OnItsWay(NamedTuple):
    prepared: Prepared
    begun_at: datetime


class NoticeSender:
    """Sends letters until the server stops; runs in a thread of its own."""

    def __init__(self, services: Services, operations: Mapping[str, Operation]) -> None:
        """`operations` by operationId, which digests are made of."""
        self._services = services
        self._operations = operations
        self._stop_event = services.sync_engine.stopped
        self.on_its_way: dict[Future[LetterOutcome], _OnItsWay] = {}

    def work(self) -> None:
        """Send, round by round, until the sync engine stops; after an error log it, wait five seconds and go on."""
        is_waiting = False
        while not self._stop_event.is_set():
            with contain(log, "notices go on after an error", is_expected=self._stop_event.is_set):
                try:
                    self.round()
                    is_waiting = False
                    continue
                except StoreUnavailable:
                    if not is_waiting:
                        log.warning("notices wait for the database")
                    is_waiting = True
            self._stop_event.wait(TRIES_AGAIN_IN)
        self.close()

    def round(self) -> None:
        """Have due letters sent, and store what came of those under way, until it is time for the next look."""
        self._send_due()
        if not self.on_its_way:
            self._stop_event.wait(LOOK_EVERY)
            return
        for done in wait(self.on_its_way, LOOK_EVERY, FIRST_COMPLETED).done:
            self._settle(done, self.on_its_way.pop(done))

    def close(self) -> None:
        """End the ways; what has no outcome yet is sent again once its lease is over."""
        for way in self._services.ways.values():
            way.close()

    def _send_due(self) -> None:
        if self._services.clock_watch.is_off():
            return  # its moments would be wrong; other machines send
        now = self._services.clock.now()
        digest.begin_due(self._services, now)
        busy = [each.prepared.delivery for each in self.on_its_way.values()]
        room = SENT_AT_ONCE - len(busy)
        of_users = Counter(each.user_id for each in busy)
        full = [user_id for user_id, count in of_users.items() if count >= OF_EACH_USER]
        taken = {each.target_id for each in busy}
        found = deliveries.due(self._services.everybody, now=now, but=[*taken, *full], limit=LOOKED_AT) if room else []
        digests = 0
        for due in found:
            digests += due.what == "digest"
            if due.target_id in taken or of_users[due.user_id] >= OF_EACH_USER or not room or digests > DIGESTS_AT_ONCE:
                continue
            if (prepared := self._prepared(due, now)) is not None:
                room -= 1
                of_users[due.user_id] += 1
                taken.add(due.target_id)
                sending = Future[LetterOutcome]()
                self.on_its_way[sending] = _OnItsWay(prepared, now)
                begin_thread("letter", partial(_send, prepared, sending))

    def _prepared(self, due: NoticeDelivery, now: datetime) -> Prepared | None:
        """The letter with its way and address, claimed for this process; None where it is not to be sent now."""
        own, lease = self._services.of(due.user_id), now + LEASE
        with contain(log, "a letter waits after an error", passes=(StoreUnavailable,)):
            try:
                said = digest.said_of(self._services, self._operations, due) if due.what == "digest" else None
                return own.atomically(partial(turns.take, self._services, due=due, now=now, lease=lease, digest=said))
            except (SecretsUnreadable, KeysUnusable) as error:
                log.warning("target=%s gets nothing: %s", due.target_id, error)
        own.atomically(partial(self._put_off, due=due, now=now))
        return None

    def _put_off(self, session: Transaction, *, due: NoticeDelivery, now: datetime) -> None:
        if (claimed := deliveries.claim(session, due, until=now + LEASE)) is not None:
            deliveries.settle(session, claimed, state="waiting", reason="unreadable", due_at=now + PUT_OFF)

    def _settle(self, done: Future[LetterOutcome], sent: _OnItsWay) -> None:
        """Store what came of a letter, and what that means for its target."""
        outcome = done.result()
        delivery, now = sent.prepared.delivery, self._services.clock.now()
        attempt = {"at": instant(sent.begun_at), "reason": outcome.reason or None}
        self._services.of(delivery.user_id).atomically(
            lambda session: _keep(session, delivery, outcome, attempt, now=now)
        )


def _send(prepared: Prepared, sending: Future[LetterOutcome]) -> None:
    """Send a letter, in a thread of its own."""
    outcome = LetterOutcome(state="later", reason="no_answer")
    with contain(log, "a way has failed"):
        outcome = prepared.way.send(prepared.address, prepared.letter)
    sending.set_result(outcome)


def _keep(
    session: Transaction,
    delivery: NoticeDelivery,
    outcome: LetterOutcome,
    attempt: Mapping[str, object],
    *,
    now: datetime,
) -> None:
    if outcome.state == "gone":
        session.hold(delivery.user_id)
    attempts, user_id, id_ = [*delivery.attempts, attempt], delivery.user_id, delivery.target_id
    is_delivered, is_over = outcome.state == "delivered", outcome.state in ("gone", "paused")
    is_last = is_over or len(attempts) > len(PAUSES) or (delivery.what in ("removed", "code") and len(attempts) > 3)
    again = None
    if not is_delivered and not is_last:
        again = now + max(PAUSES[len(attempts) - 1], timedelta(seconds=outcome.wait))
    state = "delivered" if is_delivered else "failed" if is_last else "waiting"
    said = {"state": state, "reason": outcome.reason or None, "due_at": again, "attempts": attempts}
    if not deliveries.settle(session, delivery, **said):
        return  # the target was removed, or another process sent the letter meanwhile
    target = targets.find(session, user_id, id_)
    if target is None:
        return
    if again is None:
        deliveries.keep_last(session, user_id, id_)
    if target.state == "removed":
        if again is None:
            targets.remove(session, user_id, id_)
    elif outcome.state == "gone":
        ending.remove(session, target, now=now)
    elif outcome.state == "paused":
        targets.pause(session, user_id, id_, because=outcome.reason)
    elif is_delivered:
        if delivery.what == "test" and target.state == "paused":
            targets.work(session, user_id, id_)
        elif target.refusals:
            targets.set_refusals(session, user_id, id_, 0, None)
    elif outcome.state == "refused":
        since = target.refused_since or now
        targets.set_refusals(session, user_id, id_, target.refusals + 1, since)
        if target.refusals + 1 >= REFUSALS_MAX and now - since >= REFUSED_FOR:
            targets.pause(session, user_id, id_, because=outcome.reason)
