"""Names and addresses that always mean the machine itself."""

from ipaddress import ip_address


def is_loopback(name: str) -> bool:
    """Whether this host name or address is always that of the machine itself."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
