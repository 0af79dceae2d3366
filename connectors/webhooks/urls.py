"""The rule which addresses apps may name for webhooks."""

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from connectors.public_addresses import Network, is_public, is_within
from connectors.reachable import HOST, VISIBLE

THIS_MACHINE = ipaddress.ip_address("127.0.0.1")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # a host whose last label is one is an address, whatever it looks like


def is_usable(url: str, allowed: Sequence[Network]) -> bool:
    """Whether a webhook may have this address: https with a public name or a public IP address, without user and
    fragment; where there are `allowed` networks, also http, local names, and IP addresses in these networks. Where a
    name leads is checked with each request."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port  # both raise ValueError if malformed
    except ValueError:
        return False
    if "@" in parts.netloc or "#" in url or "\\" in url or port == 0:
        return False
    if not VISIBLE.fullmatch(url) or not HOST.fullmatch(host):
        return False
    if parts.scheme != "https" and not (parts.scheme == "http" and allowed):
        return False
    if ":" in host or NUMBER.fullmatch(host.rpartition(".")[2]):
        return _is_usable_literal(host, parts.scheme, allowed)
    if host == "localhost" or host.endswith(".localhost"):
        return is_within(THIS_MACHINE, allowed)
    return "." in host or bool(allowed)


def _is_usable_literal(host: str, scheme: str, allowed: Sequence[Network]) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return is_within(address, allowed) or (scheme == "https" and is_public(address))
