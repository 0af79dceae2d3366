"""How many deliveries are on their way to one webhook, of one user and to one host, and how few to the new or slow."""

import threading
from dataclasses import dataclass, field

import pytest

from handlers.operations.events import sending_bounds, webhook_delivery
from handlers.operations.events.sending_bounds import SLOW_MILLISECONDS, SendingBounds
from storage.webhooks.hooks import Webhook
from tests.conftest import NOW
from tests.webhooks.conftest import Receiver, Told

pytestmark = pytest.mark.requirement("webhooks.bounds")

SOON = SLOW_MILLISECONDS - 1


def hook(id_: str, *, user: str = "ada", host: str = "a.example") -> Webhook:
    return Webhook(
        user_id=user,
        id=id_,
        grant_id="g",
        client_id="app",
        scopes=frozenset(),
        url=f"https://{host}/{id_}",
        event_types=None,
        description=None,
        created_at=NOW,
    )


@dataclass
class Sending:
    """Deliveries that are on their way."""

    bounds: SendingBounds = field(default_factory=SendingBounds)

    def as_many_as_may(self, *webhooks: Webhook) -> int:
        """So many begin, to these webhooks by turns, until none of them has room."""
        count = 0
        while open_ones := [each for each in webhooks if self.bounds.has_room(each)]:
            self.bounds.add(open_ones[count % len(open_ones)])
            count += 1
        return count

    def are_answered(self, milliseconds: int, *webhooks: Webhook) -> None:
        """Nothing is on its way any more: the last one to each of these webhooks took so long."""
        for each in webhooks:
            self.bounds.note(each, milliseconds)
        self.bounds.count([])


def test_a_webhook_a_user_and_a_host_that_are_answered_soon_have_so_many_at_once() -> None:
    sending = Sending()
    of_ada = [hook(number, host=f"{number}.example") for number in ("one", "two", "three")]
    of_one_host = [hook(f"{user} {number}", user=user) for user in ("bo", "cy", "di") for number in range(2)]
    of_eva = hook("4", user="eva", host="four.example")
    sending.are_answered(SOON, *of_ada, *of_one_host, of_eva)
    assert sending.as_many_as_may(of_ada[0]) == 8
    assert sending.as_many_as_may(*of_ada[1:]) == 16 - 8
    assert sending.bounds.full() == ["ada", "one"]
    assert sending.as_many_as_may(*of_one_host) == 32
    assert set(sending.bounds.full()) >= {each.id for each in of_one_host}
    assert sending.as_many_as_may(of_eva) == 8
    sending.bounds.count([])
    assert sending.bounds.full() == []


def test_who_is_new_or_was_slow_has_few_until_one_is_answered_soon() -> None:
    sending, silent, good = Sending(), hook("1", host="silent.example"), hook("2", host="good.example")
    same_host = [hook(f"of user {number}", user=f"user {number}", host="silent.example") for number in range(3)]
    for _ in range(2):
        assert sending.as_many_as_may(silent) == 1
        assert sending.as_many_as_may(good) == 1
        sending.bounds.count([])
        assert sending.as_many_as_may(*same_host) == 2
        sending.are_answered(SLOW_MILLISECONDS, silent, good)
    sending.are_answered(SOON, good)
    assert sending.as_many_as_may(good) == 8
    assert sending.as_many_as_may(silent) == 1
    sending.are_answered(SOON, silent)
    assert sending.as_many_as_may(silent) == 8
    sending.are_answered(SLOW_MILLISECONDS, *(hook(str(number), host=f"{number}.example") for number in range(8)))
    assert sending.as_many_as_may(*(hook(str(number), host=f"{number}.example") for number in range(8))) == 4


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.operations.events.sending_bounds.REMEMBERED_MAX", 3)
    sending, good = Sending(), hook("1", host="good.example")
    sending.are_answered(SOON, good)
    assert sending.as_many_as_may(good) == 1, "one webhook, user and host are three"


def test_outcomes_that_come_together_are_stored_between_looks_at_what_is_due(
    told: Told, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending_bounds, "OF_UNPROVEN", sending_bounds.OF_EACH)
    client, answered = told.client(), receiver.waits.setdefault("/a", threading.Event())
    webhook = told.hook(client)
    for _ in range(8):
        assert client.post(f"/webhooks/{webhook['id']}/test").status_code == 202
    told.heard(8)

    monkeypatch.setattr(webhook_delivery, "LOOK_EVERY", 0.0001)  # less than it takes to store one
    answered.set()
    while left := len(told.deliverer.on_its_way):
        told.deliverer.round()
        assert left - len(told.deliverer.on_its_way) <= 1, "others waited for so many"
    assert {each["state"] for each in told.deliveries(client, webhook)} == {"delivered"}
