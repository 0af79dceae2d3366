"""Which addresses are of the public internet: what strangers name is asked nowhere else."""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SPECIAL: Sequence[Network] = [
    ipaddress.ip_network(each)
    for each in (
        "64:ff9b::/96",  # an IPv4 address behind NAT64
        "fec0::/10",  # site-local, which some networks still use
        "3fff::/20",  # documentation
        "192.0.0.0/24",
        "192.88.99.0/24",
    )
]
"""What `is_global` takes for public, in some release of Python at least."""


def plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for by itself; else the same."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_public(address: Address) -> bool:
    """Whether it is an address of one machine on the public internet, and carries no other one within."""
    address = plain(address)
    if isinstance(address, ipaddress.IPv6Address) and (address.sixtofour is not None or address.teredo is not None):
        return False
    is_special = address.is_multicast or address.is_reserved or is_within(address, SPECIAL)
    return address.is_global and not is_special


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    """Whether it lies in one of these."""
    return any(plain(address) in network for network in networks)
