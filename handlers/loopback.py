"""Recognises host names and addresses that always mean this machine itself."""

from ipaddress import ip_address


def is_loopback(name: str) -> bool:
    """Whether this host name or address always means this machine itself."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
