"""Whose request it is: nobody else's word is believed but a configured proxy's (decision 32)."""

import pytest
from starlette.types import Scope

from handlers.web.addresses import Addresses


def scope(peer: str | None, *forwarded: str) -> Scope:
    headers = [(b"x-forwarded-for", text.encode("latin-1")) for text in forwarded]
    return {"type": "http", "client": None if peer is None else (peer, 4711), "headers": headers}


@pytest.mark.requirement("decision.32.address")
@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "testclient"),
        (None, "local"),
    ],
)
def test_a_client_is_its_ipv4_address_or_its_ipv6_network(peer: str | None, expected: str) -> None:
    assert Addresses().client(scope(peer)) == expected


TRUSTED = ["10.0.0.0/8", "2001:db8:ffff::1"]


@pytest.mark.requirement("decision.32.proxies")
@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("192.0.2.7", ["203.0.113.1"], "192.0.2.7"),  # no proxy: anybody can write the header
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["198.51.100.9, 203.0.113.1"], "203.0.113.1"),  # the left one is the client's own invention
        ("10.0.0.1", ["198.51.100.9", "203.0.113.1"], "203.0.113.1"),  # two headers are one list
        ("10.0.0.1", ["203.0.113.1, 10.2.3.4"], "203.0.113.1"),  # a proxy behind a proxy
        ("10.0.0.1", ["10.9.9.9"], "10.9.9.9"),
        ("10.0.0.1", ["203.0.113.1:5678"], "203.0.113.1"),
        ("10.0.0.1", ["[2001:db8:1:2::9]:5678"], "2001:db8:1:2::/64"),
        ("10.0.0.1", ["2001:db8:1:2::9"], "2001:db8:1:2::/64"),
        ("2001:db8:ffff::1", ["203.0.113.1"], "203.0.113.1"),
        ("::ffff:10.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["203.0.113.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1, \xff"], "10.0.0.1"),
    ],
)
def test_the_last_address_that_a_proxy_vouches_for_is_the_client(
    peer: str, forwarded: list[str], expected: str
) -> None:
    assert Addresses(TRUSTED).client(scope(peer, *forwarded)) == expected


@pytest.mark.requirement("decision.32.proxies")
def test_a_client_on_a_socket_file_is_local() -> None:
    assert Addresses(TRUSTED).client(scope(None, "203.0.113.1")) == "local"
