"""GET /events against a running server: begins, goes on after every break, and ends when it has to."""

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import httpx
import pytest

from handlers.web.open_streams import OF_PERSON_MAX
from tests.service.conftest import Served, account_ids, get, running, start

SECONDS_MAX = 60.0

Json = dict[str, Any]


class Listener:
    """A client that reads a stream in a thread of its own."""

    def __init__(self, served: Served, token: str, *, last: str | None = None, types: str | None = None) -> None:
        self.lines: Queue[str | None] = Queue()
        self.comments = 0
        self.response: httpx.Response | None = None
        headers = {"Authorization": f"Bearer {token}", **({"Last-Event-ID": last} if last else {})}
        self._client = httpx.Client(base_url=served.base_url, headers=headers, timeout=SECONDS_MAX, trust_env=False)
        self._thread = threading.Thread(target=self._read, args=[{"types": types} if types else {}], daemon=True)
        self._thread.start()

    def _read(self, parameters: dict[str, str]) -> None:
        try:
            with self._client.stream("GET", "/events", params=parameters) as self.response:
                for line in self.response.iter_lines():
                    self.lines.put(line)
        except (httpx.HTTPError, OSError):
            pass
        self.lines.put(None)

    def next(self, seconds: float = SECONDS_MAX) -> Json | None:
        """The next event; None when the stream has ended."""
        fields: dict[str, str] = {}
        until = time.monotonic() + seconds
        while True:
            line = self.lines.get(timeout=max(0.01, until - time.monotonic()))
            if line is None:
                return None
            if line.startswith(":"):
                self.comments += 1
            name, _, value = line.partition(": ")
            if name == "retry":
                assert value in ("5000", "60000")
            elif line and name:
                fields[name] = value
            elif "data" in fields:
                said: Json = json.loads(fields["data"])
                assert (said["id"], said["type"]) == (fields["id"], fields["event"])
                return said

    def until(self, type_: str) -> list[Json]:
        """Events up to the first of this type."""
        found: list[Json] = []
        while not found or found[-1]["type"] != type_:
            event = self.next()
            assert event is not None, found
            found.append(event)
        return found

    def rest(self, seconds: float) -> list[Json]:
        """Events until the stream ends or nothing comes for so long, comments neither."""
        found: list[Json] = []
        with suppress(Empty):
            while (event := self.next(seconds)) is not None:
                found.append(event)
        return found

    def is_over(self) -> bool:
        """Whether the stream ends by itself."""
        with suppress(Empty):
            while self.next() is not None:
                pass
            return True
        return False

    def close(self) -> None:
        """Hang up at once: a client that is merely closed waits in its reading for the next sign of life."""
        if self.response is not None:
            with suppress(OSError):
                self.response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._client.close()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive()


@pytest.fixture
def listen() -> Iterator[Callable[..., Listener]]:
    opened: list[Listener] = []

    def begin(*arguments: Any, **named: Any) -> Listener:
        opened.append(Listener(*arguments, **named))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


Listen = Callable[..., Listener]


def place_of(event: Json) -> str:
    """Where an id stands, whenever it was given."""
    return str(event["id"].split("-")[0])


def sync(served: Served, client: httpx.Client) -> None:
    """A whole sync of all of the user's connections, four days later: on some days no bank books anything."""
    served.advance(4 * 86_400)
    ids = account_ids(client)
    started = client.post("/sync", json={"accountIds": ids}).json()["syncJobs"]
    for each in started:
        while get(client, f"/sync/{each['syncId']}")["status"] not in ("completed", "failed"):
            time.sleep(0.05)


@pytest.mark.requirement("events.stream")
@pytest.mark.long
def test_a_sync_is_heard_with_what_it_brought_and_a_break_loses_nothing(own_service: Served, listen: Listen) -> None:
    token, client = own_service.token("solo"), own_service.client("solo")
    first = listen(own_service, token)
    opened = first.next()
    assert opened is not None
    assert (opened["type"], opened["data"]) == ("stream.opened", {})
    assert first.response is not None
    headers = first.response.headers
    assert headers["content-type"] == "text/event-stream"
    assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-store", "no")
    sync(own_service, client)
    heard = first.until("sync.completed")
    completed = heard[-1]
    assert completed["data"].keys() == {"syncId", "connectionId", "newTransactions"}
    changed = [each for each in heard if each["type"] == "transactions.changed"]
    assert sum(each["data"]["added"] for each in changed) == completed["data"]["newTransactions"]
    again = listen(own_service, token, last=opened["id"])
    [stood, *same] = again.until("sync.completed")
    assert (stood["type"], place_of(stood)) == ("stream.opened", place_of(opened))
    assert same == heard
    for place, each in enumerate(heard[:-1]):
        later = listen(own_service, token, last=each["id"])
        assert later.until("sync.completed")[1:] == heard[place + 1 :]
        later.close()


@pytest.mark.requirement("events.stream")
@pytest.mark.long
def test_types_are_chosen_and_scopes_and_foreign_ids_keep_to_themselves(own_service: Served, listen: Listen) -> None:
    client = own_service.client("demo")
    narrow = listen(own_service, own_service.token("demo", "read:accounts"))
    chosen = listen(own_service, own_service.token("demo"), types=" transactions.changed, ,balance.low")
    opened = narrow.next()
    assert opened is not None
    assert chosen.next() is not None
    sync(own_service, client)
    assert {each["type"] for each in narrow.until("sync.completed")} == {"sync.completed"}
    assert {each["type"] for each in chosen.until("transactions.changed")} == {"transactions.changed"}
    other = own_service.token("solo")
    for last in (opened["id"], "evt_1", "7"):
        stranger = listen(own_service, other, last=last)
        reset, begun = stranger.next(), stranger.next()
        assert reset is not None
        assert begun is not None
        assert (reset["type"], begun["type"], begun["id"]) == ("stream.reset", "stream.opened", reset["id"])
        stranger.close()
    refused = client.get("/events", params={"types": "sync.completed,none"})
    assert (refused.status_code, refused.json()["error"].partition(" ")[0]) == (400, "types:")
    assert client.head("/events").status_code in (200, 405)


@pytest.mark.requirement("events.stream")
def test_a_stream_that_begins_after_a_profile_tells_all_that_has_changed_since(
    own_service: Served, listen: Listen
) -> None:
    token, client = own_service.token("solo"), own_service.client("solo")
    read = get(client, "/profile")["lastEventId"]
    sync(own_service, client)
    opened, *heard = listen(own_service, token, last=read).until("sync.completed")
    assert (opened["type"], place_of(opened)) == ("stream.opened", read.split("-")[0])
    assert "transactions.changed" in {each["type"] for each in heard}
    last = get(client, "/profile")["lastEventId"]
    assert [each["type"] for each in listen(own_service, token, last=last).rest(2)] == ["stream.opened"]


@pytest.mark.requirement("events.stream")
def test_a_grant_has_five_streams_and_a_closed_one_makes_room(own_service: Served, listen: Listen) -> None:
    token = own_service.token("globe")
    streams = [listen(own_service, token) for _ in range(5)]
    assert all(each.next() is not None for each in streams)
    bare = own_service.bare(token)
    refused = bare.get("/events")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    streams[0].close()
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        with bare.stream("GET", "/events") as answer:
            if answer.status_code == 200:
                break
        time.sleep(0.1)
    assert answer.status_code == 200
    bare.close()


@pytest.mark.requirement("events.stream")
def test_of_one_person_the_oldest_stream_gives_way_and_is_told_to_come_back_later(
    own_service: Served, listen: Listen
) -> None:
    tokens = [own_service.token("globe") for _ in range(5)]
    streams = [listen(own_service, tokens[number // 5]) for number in range(OF_PERSON_MAX)]
    assert all(each.next() is not None for each in streams)
    last = listen(own_service, tokens[-1])
    assert last.next() is not None
    deadline = time.monotonic() + 60
    while not (ended := [each for each in streams if not each.lines.empty()]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ended) == 1
    assert [ended[0].lines.get() for _ in range(3)] == ["retry: 60000", "", None]


@pytest.mark.requirement("events.stream")
@pytest.mark.long
def test_a_stream_ends_with_its_token_its_grant_and_its_subscription(own_service: Served, listen: Listen) -> None:
    short = listen(own_service, own_service.token("empty", seconds=3600))
    assert short.next() is not None
    own_service.advance(3601)
    assert short.is_over()
    granted = listen(own_service, own_service.token("empty"))
    unpaid = listen(own_service, own_service.token("lapsed"))
    assert granted.next() is not None
    assert unpaid.next() is None
    own_service.command("users subscription", name="empty", active=False)
    assert granted.is_over()
    own_service.command("users subscription", name="empty", active=True)
    last = listen(own_service, own_service.token("empty"))
    assert last.next() is not None
    for line in own_service.command("grants list", user="empty"):
        own_service.command("grants revoke", grant_id=line.split("\t")[0])
    assert last.is_over()


@contextmanager
def beating(folder: Path, **how: Any) -> Iterator[Served]:
    with running(folder, settings={"EVENTS_HEARTBEAT_SECONDS": "1"}, **how) as served:
        yield served


@pytest.mark.requirement("events.stream")
@pytest.mark.long
def test_a_silent_stream_beats_and_a_stop_ends_it_at_once(copied: Callable[[], Path], listen: Listen) -> None:
    with beating(copied()) as served:
        stream = listen(served, served.token("solo"))
        assert stream.next() is not None
        assert stream.rest(2.5) == []
        assert stream.comments >= 1
        begun = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - begun < 10
        assert stream.is_over()


@pytest.mark.requirement("events.stream")
@pytest.mark.long
def test_each_event_comes_once_and_in_order_through_reconnects_and_kills(
    copied: Callable[[], Path], listen: Listen
) -> None:
    folder = copied()
    served = start(folder, is_measured=False)
    heard: list[Json] = []
    last: str | None = None
    length = None
    try:
        for turn in range(4):
            token, client = served.token("solo"), served.client("solo")
            if length is None:
                opened = listen(served, token).next()
                assert opened is not None
                last, length = opened["id"], rows_of(client)
            sync(served, client)
            goal = get(client, "/accounts")  # the server has answered: what was told is stored
            assert goal["accounts"]
            for _ in range(5):
                stream = listen(served, token, last=last)
                assert stream.next() is not None
                try:
                    event = stream.next(1.0)
                except Empty:
                    event = None
                stream.close()
                if event is not None:
                    heard.append(event)
                    last = event["id"]
            if turn in (0, 2):
                served.stop(signal.SIGKILL)
                served = start(folder, is_measured=False)
        stream = listen(served, served.token("solo"), last=last)
        heard += stream.rest(3.0)
        heard = [each for each in heard if not each["type"].startswith("stream.")]
        ids = [each["id"] for each in heard]
        assert len(ids) == len(set(ids))
        changed = [each["data"] for each in heard if each["type"] == "transactions.changed"]
        grown = sum(each["added"] - each["removed"] for each in changed)
        assert length is not None
        assert grown == rows_of(served.client("solo")) - length
        assert sum(each["type"] == "sync.completed" for each in heard) == 4
    finally:
        served.stop()


def rows_of(client: httpx.Client) -> int:
    """How long the full list is, adjusting entries and all."""
    count: int = get(client, "/transactions", accountIds=",".join(account_ids(client)))["pagination"]["total"]
    return count
