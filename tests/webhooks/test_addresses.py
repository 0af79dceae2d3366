"""Where webhooks may lead, and where not."""

import ipaddress

import pytest

from connectors.public_addresses import is_public
from connectors.webhooks.urls import is_usable

ADDRESSES = pytest.mark.requirement("webhooks.addresses")
LOOPBACK = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("10.1.0.0/16")]


@ADDRESSES
@pytest.mark.parametrize(
    "inner",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001:0:7f00:1::",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_what_is_not_of_the_public_internet_is_no_public_address(inner: str) -> None:
    assert not is_public(ipaddress.ip_address(inner))
    assert not is_usable(f"https://[{inner}]/" if ":" in inner else f"https://{inner}/", [])


@ADDRESSES
@pytest.mark.parametrize("public", ["9.9.9.9", "172.32.0.1", "192.0.1.1", "2620:fe::fe", "::ffff:9.9.9.9"])
def test_the_others_are(public: str) -> None:
    assert is_public(ipaddress.ip_address(public))
    assert is_usable(f"https://[{public}]/" if ":" in public else f"https://{public}/", [])


@ADDRESSES
@pytest.mark.parametrize(
    "url",
    [
        "",
        "app.example.org",
        "ftp://app.example.org/",
        "http://app.example.org/",
        "https:///path",
        "https://eva@app.example.org/",
        "https://eva:secret@app.example.org/",
        "https://app.example.org@127.0.0.1/",
        "https://app.example.org/#there",
        "https://app.example.org\\@127.0.0.1/",
        "https://app.example.org:0/",
        "https://app.example.org:65536/",
        "https://app.example.org:x/",
        "https://app example.org/",
        "https://app.example.org/\r\nHost: inner",
        "https://ä.example.org/",
        "https://%31%32%37.0.0.1/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://app.localhost/",
        "https://intranet/",
        "https://127.1/",
        "https://127.0.0.1./",
        "https://0x7f000001/",
        "https://0x7f.0.0.1/",
        "https://127.0.0.0x1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
    ],
)
def test_what_leads_elsewhere_or_nowhere_is_refused_at_once(url: str) -> None:
    assert not is_usable(url, [])


@ADDRESSES
def test_names_are_taken_and_allowed_networks_too_by_http() -> None:
    assert is_usable("https://app.example.org:8443/a?b=c", [])
    assert is_usable("https://app.example.org./", [])
    for near in ("127.0.0.1", "localhost", "10.1.2.3", "receiver", "receiver.inner"):
        assert is_usable(f"http://{near}:8080/", LOOPBACK)
        assert is_usable(f"https://{near}/", LOOPBACK)
    for far in ("10.2.0.1", "9.9.9.9", "[::1]"):
        assert not is_usable(f"http://{far}/", LOOPBACK)
    assert is_usable("https://9.9.9.9/", LOOPBACK)
    assert not is_usable("https://localhost/", LOOPBACK[1:])
