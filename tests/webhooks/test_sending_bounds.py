"""How many deliveries are on their way to one webhook, of one user and to one host, and how few to who is slow."""

from dataclasses import dataclass, field

import pytest

from handlers.operations.events.sending_bounds import SLOW_MILLISECONDS, SendingBounds
from storage.webhooks.hooks import Webhook
from tests.conftest import NOW

pytestmark = pytest.mark.requirement("webhooks.bounds")


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


def test_a_webhook_a_user_and_a_host_have_so_many_at_once() -> None:
    sending = Sending()
    assert sending.as_many_as_may(hook("1", host="one.example")) == 8
    assert sending.as_many_as_may(hook("2", host="two.example"), hook("3", host="three.example")) == 16 - 8
    assert sending.bounds.full() == ["1", "ada"]
    of_one_host = [hook(f"{user} {number}", user=user) for user in ("bo", "cy", "di") for number in range(2)]
    assert sending.as_many_as_may(*of_one_host) == 32
    assert set(sending.bounds.full()) >= {each.id for each in of_one_host}
    assert sending.as_many_as_may(hook("4", user="eva", host="four.example")) == 8
    sending.bounds.count([])
    assert sending.bounds.full() == []


def test_who_was_slow_has_few_until_one_is_answered_soon() -> None:
    sending, silent, good = Sending(), hook("1", host="silent.example"), hook("2", host="good.example")
    sending.bounds.note(silent, SLOW_MILLISECONDS)
    assert sending.as_many_as_may(silent) == 1
    assert sending.as_many_as_may(good) == 4 - 1
    sending.bounds.count([])
    same_host = [hook(f"of user {number}", user=f"user {number}", host="silent.example") for number in range(3)]
    assert sending.as_many_as_may(*same_host) == 2
    sending.bounds.count([])
    sending.bounds.note(silent, SLOW_MILLISECONDS - 1)
    assert sending.as_many_as_may(silent) == 8


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.operations.events.sending_bounds.REMEMBERED_MAX", 3)
    sending, silent = Sending(), hook("1", host="silent.example")
    sending.bounds.note(silent, SLOW_MILLISECONDS)
    assert sending.as_many_as_may(silent) == 8, "one webhook, user and host are three"
