"""The addresses that belong to the public internet; requests to hosts that strangers name go nowhere else."""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SPECIAL: Sequence[Network] = [
    ipaddress.ip_network(each)
    for each in (
        "64:ff9b::/96",  # an IPv4 address behind NAT64
        "64:ff9b:1::/48",  # the same within one network
        "fec0::/10",  # site-local, which some networks still use
        "3fff::/20",  # documentation
        "192.0.0.0/24",
        "192.88.99.0/24",
    )
]
"""Networks that `is_global` takes for public in at least one release of Python."""


def plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 address maps; any other address unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_public(address: Address) -> bool:
    """Whether the address is that of one machine on the public internet. An IPv6 address that maps an IPv4 address is
    judged as that one; one that embeds an IPv4 address otherwise (6to4, Teredo, NAT64) is not public."""
    address = plain(address)
    if isinstance(address, ipaddress.IPv6Address) and (address.sixtofour is not None or address.teredo is not None):
        return False
    is_special = address.is_multicast or address.is_reserved or is_within(address, SPECIAL)
    return address.is_global and not is_special


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    """Whether the address is in one of these networks."""
    return any(plain(address) in network for network in networks)
