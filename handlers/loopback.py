"""Recognises host names and addresses that always mean this machine itself."""

from ipaddress import ip_address


def is_loopback(name: str) -> bool:
    """Whether this host name or address always means this machine itself: `localhost`, or an address such as 127.0.0.1
    or ::1."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
