"""Who is connected at once, and who gives way to the next one."""

from dataclasses import dataclass, field

import pytest

from handlers.http.sockets.connection_limits import CONNECTIONS_MAX
from handlers.http.sockets.peers import Peers, open_files

ONE, OTHER, PROXY = "192.0.2.1", "192.0.2.2", "198.51.100.1"


@dataclass(eq=False)
class Client:
    """A connection in a state of its own."""

    is_sending: bool = False
    is_idle: bool = False
    unchanged_since: float = 0.0
    is_gone: bool = False
    asked: list[float] = field(default_factory=list)

    def give_way(self) -> None:
        self.is_gone = True

    def close_if_overdue(self, now: float) -> None:
        self.asked.append(now)


def working() -> Client:
    return Client()


def sending() -> Client:
    return Client(is_sending=True)


def idle(since: float) -> Client:
    return Client(is_idle=True, unchanged_since=since)


@pytest.mark.requirement("http.peers")
def test_the_oldest_that_owes_something_gives_way_to_the_next_of_its_address() -> None:
    peers = Peers(most_per_address=3)
    clients = [idle(1), sending(), sending()]
    assert all(peers.admit(client, ONE) for client in clients)
    assert peers.admit(sending(), ONE)
    assert [client.is_gone for client in clients] == [False, True, False]
    assert len(peers) == 3


@pytest.mark.requirement("http.peers")
def test_else_the_one_that_has_been_idle_for_longest_gives_way() -> None:
    peers = Peers(most_per_address=3)
    clients = [idle(3), idle(2), working()]
    assert all(peers.admit(client, ONE) for client in clients)
    assert peers.admit(working(), ONE)
    assert [client.is_gone for client in clients] == [False, True, False]


@pytest.mark.requirement("http.peers")
def test_a_request_under_way_never_gives_way() -> None:
    peers = Peers(most_per_address=2)
    clients = [working(), working()]
    assert all(peers.admit(client, ONE) for client in clients)
    assert not peers.admit(working(), ONE)
    assert peers.admit(working(), OTHER)
    assert not any(client.is_gone for client in clients)


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
        monkeypatch.setattr("handlers.http.sockets.peers.open_files", lambda files=files: files)
        peers = Peers(most_per_address=10_000)
        assert all(peers.admit(working(), ONE) for _ in range(most))
        assert not peers.admit(working(), ONE)
