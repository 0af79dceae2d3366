"""How many deliveries are on their way at once: to one webhook, of one user and to one host, so that whoever receives
slowly holds up nobody else."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from storage.webhooks.hooks import Webhook

SLOW_MILLISECONDS = 2_000  # a receiver has 15 seconds by default, and good ones take a tenth of one
REMEMBERED_MAX = 10_000  # then everything is learned anew
OF_EACH = {"webhook": 8, "user": 16, "host": 32}
OF_UNPROVEN = {"webhook": 1, "user": 4, "host": 2}
"""The same for those who are new, or whose last delivery took long, until one is answered soon."""


class _Sharer(NamedTuple):
    kind: Literal["webhook", "user", "host"]
    name: str


class SendingBounds:
    """Counts what is on its way, and remembers who is quick."""

    def __init__(self) -> None:
        self._busy: Counter[_Sharer] = Counter()
        self._quick: set[_Sharer] = set()
        self._hosts: dict[str, str] = {}  # by the id of the webhook

    def count(self, webhooks: Iterable[Webhook]) -> None:
        """Count anew: one delivery to each of these webhooks is on its way."""
        self._busy = Counter(sharer for each in webhooks for sharer in self._sharers(each))

    def add(self, webhook: Webhook) -> None:
        """Count one more delivery to this webhook."""
        self._busy.update(self._sharers(webhook))

    def has_room(self, webhook: Webhook) -> bool:
        """Whether one more delivery to this webhook may be on its way."""
        return not any(self._is_full(sharer) for sharer in self._sharers(webhook))

    def full(self) -> list[str]:
        """The ids of webhooks and users that get nothing more at present, as far as hosts are known."""
        full = {sharer for sharer in self._busy if self._is_full(sharer)}
        hosts = {name for kind, name in full if kind == "host"}
        named = {name for kind, name in full if kind != "host"}
        return sorted(named.union(id_ for id_, host in self._hosts.items() if host in hosts))

    def note(self, webhook: Webhook, milliseconds: int) -> None:
        """Remember that a delivery to this webhook took so long."""
        if milliseconds >= SLOW_MILLISECONDS:
            self._quick.difference_update(self._sharers(webhook))
        else:
            self._quick.update(self._sharers(webhook))

    def _is_full(self, sharer: _Sharer) -> bool:
        return self._busy[sharer] >= (OF_EACH if sharer in self._quick else OF_UNPROVEN)[sharer.kind]

    def _sharers(self, webhook: Webhook) -> Iterator[_Sharer]:
        if len(self._hosts) >= REMEMBERED_MAX or len(self._quick) >= REMEMBERED_MAX:
            self._hosts.clear()
            self._quick.clear()
        host = self._hosts.setdefault(webhook.id, urlsplit(webhook.url).netloc.rpartition("@")[2])
        yield _Sharer("webhook", webhook.id)
        yield _Sharer("user", webhook.user_id)
        yield _Sharer("host", host)
