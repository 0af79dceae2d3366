"""Who is connected at once, and who gives way to the next one."""

from dataclasses import dataclass, field

import pytest

from handlers.web.sockets.connection_limits import CONNECTIONS_MAX
from handlers.web.sockets.peers import Occupation, Peers, note_sign_in, open_files

ONE, OTHER, PROXY = "192.0.2.1", "192.0.2.2", "198.51.100.1"


@dataclass(eq=False)
class Client:
    """A connection in a state of its own."""

    occupation: Occupation = Occupation.ANSWERED
    is_signed_in: bool = False
    is_listening: bool = False
    unchanged_since: float = 0.0
    is_gone: bool = False
    asked: list[float] = field(default_factory=list)

    def give_way(self) -> None:
        self.is_gone = True

    def close_if_overdue(self, now: float) -> None:
        self.asked.append(now)


def working() -> Client:
    return Client()


def sending(since: float = 0, *, is_signed_in: bool = False) -> Client:
    return Client(Occupation.OWING, unchanged_since=since, is_signed_in=is_signed_in)


def idle(since: float, *, is_signed_in: bool = False) -> Client:
    return Client(Occupation.IDLE, unchanged_since=since, is_signed_in=is_signed_in)


def new() -> Client:
    return Client(Occupation.NEW)


def served(since: float) -> Client:
    return Client(Occupation.SERVED, unchanged_since=since)


@pytest.mark.requirement("http.peers")
def test_idle_ones_give_way_first_and_whoever_is_signed_in_last() -> None:
    clients = {
        "idle for longest": idle(1),
        "idle": idle(2),
        "owing for longest": sending(1),
        "owing": sending(2),
        "new": new(),
        "served": served(0),
        "idle, signed in": idle(0, is_signed_in=True),
        "sending, signed in": sending(0, is_signed_in=True),
    }
    peers = Peers(most_per_address=len(clients))
    assert all(peers.admit(client, ONE) for client in reversed(clients.values()))
    left: list[str] = []
    for _ in clients:
        assert peers.admit(working(), ONE)
        left += [name for name, client in clients.items() if client.is_gone and name not in left]
    assert left == list(clients)
    assert not peers.admit(working(), ONE)


@pytest.mark.requirement("http.peers")
def test_of_equal_ones_those_of_the_address_that_has_most_give_way() -> None:
    peers = Peers(most=4)
    mine, others = new(), [new(), new(), new()]
    assert peers.admit(mine, ONE)
    assert all(peers.admit(client, OTHER) for client in others)
    assert peers.admit(working(), PROXY)
    assert [client.is_gone for client in [mine, *others]] == [False, True, False, False]


@pytest.mark.requirement("http.peers")
def test_idle_connections_of_many_strangers_end_no_upload() -> None:
    """640 connections of four addresses, and one that is sending a file."""
    peers = Peers(most=512)
    upload = sending(0, is_signed_in=True)
    assert peers.admit(upload, "192.0.2.9")
    strangers = [(idle(number), f"192.0.2.{number % 4}") for number in range(640)]
    assert all(peers.admit(client, host) for client, host in strangers)
    assert not upload.is_gone
    assert sum(client.is_gone for client, _ in strangers) == 640 + 1 - 512


@pytest.mark.requirement("http.peers")
def test_a_request_under_way_never_gives_way() -> None:
    peers = Peers(most_per_address=2)
    clients = [working(), working()]
    assert all(peers.admit(client, ONE) for client in clients)
    assert not peers.admit(working(), ONE)
    assert peers.admit(working(), OTHER)
    assert not any(client.is_gone for client in clients)


@pytest.mark.requirement("http.peers")
@pytest.mark.parametrize("host", [ONE, PROXY])
def test_streams_and_late_answers_give_way_before_a_new_client_is_refused_behind_a_proxy_too(host: str) -> None:
    peers = Peers([PROXY], most=4, most_per_address=4)
    stream, other = (Client(Occupation.LISTENING, is_signed_in=True, unchanged_since=since) for since in (1, 2))
    late, at_work = Client(Occupation.LATE), working()
    for each in (late, other, at_work, stream):
        assert peers.admit(each, host)
    left = []
    for _ in range(3):
        assert peers.admit(working(), OTHER)
        left += [each for each in (stream, other, late, at_work) if each.is_gone and each not in left]
    assert left == [stream, other, late]
    assert not peers.admit(new(), OTHER)


@pytest.mark.requirement("http.peers")
def test_all_of_one_ipv6_network_are_one_address() -> None:
    peers = Peers(most_per_address=1)
    assert peers.admit(working(), "2001:db8::1")
    assert not peers.admit(working(), "2001:db8::2")
    assert peers.admit(working(), "2001:db8:0:1::1")


@pytest.mark.requirement("http.peers")
def test_proxies_are_bounded_by_the_total_only_and_never_give_way() -> None:
    peers = Peers([PROXY], most=3, most_per_address=1)
    proxied = [sending(), sending()]
    assert all(peers.admit(client, PROXY) for client in proxied)
    stranger = sending()
    assert peers.admit(stranger, ONE)
    assert peers.admit(sending(), PROXY)
    assert stranger.is_gone
    assert not peers.admit(sending(), PROXY)
    assert not any(client.is_gone for client in proxied)


@pytest.mark.requirement("http.peers")
def test_a_unix_socket_is_a_proxy() -> None:
    peers = Peers(most_per_address=1)
    assert peers.admit(working(), None)
    assert peers.admit(working(), None)


@pytest.mark.requirement("http.peers")
def test_who_has_left_makes_room_and_may_leave_twice() -> None:
    peers = Peers(most_per_address=2)
    first, second = working(), working()
    assert peers.admit(first, ONE)
    assert peers.admit(second, ONE)
    peers.forget(first)
    peers.forget(first)
    assert peers.admit(working(), ONE)
    assert not peers.admit(working(), ONE)
    peers.forget(second)
    assert len(peers) == 1


@pytest.mark.requirement("http.peers")
def test_every_connection_is_asked_for_what_it_owes() -> None:
    peers = Peers()
    clients = [working(), sending()]
    assert all(peers.admit(client, ONE) for client in clients)
    peers.close_overdue(7.0)
    assert [client.asked for client in clients] == [[7.0], [7.0]]


@pytest.mark.requirement("http.peers")
def test_connections_leave_files_for_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_files() > 0
    for files, most in ((1_024, 512), (1_000_000, CONNECTIONS_MAX)):
        monkeypatch.setattr("handlers.web.sockets.peers.open_files", lambda files=files: files)
        peers = Peers(most_per_address=10_000)
        assert all(peers.admit(working(), ONE) for _ in range(most))
        assert not peers.admit(working(), ONE)


@pytest.mark.requirement("http.peers")
def test_a_good_token_is_remembered_for_its_connection_where_there_is_one() -> None:
    peer = new()
    note_sign_in({"extensions": {"bankdata.connection": {"peer": peer}}})
    assert peer.is_signed_in
    note_sign_in({})  # the in-process client of tests has no connection
