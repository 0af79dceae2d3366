"""The rule which addresses of other machines may be asked at all; addresses in settings are checked by it."""

import re
from urllib.parse import urlsplit

THIS_MACHINE = ("127.0.0.1", "localhost")
VISIBLE = re.compile("[!-~]+")
HOST = re.compile("[0-9a-z._:-]+")


def is_reachable(address: str) -> bool:
    """Whether the address may be asked: https, with a host and without a password or fragment; http on this machine
    only."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port  # both raise ValueError if malformed
    except ValueError:
        return False
    is_guarded = parts.scheme == "https" or (parts.scheme == "http" and host in THIS_MACHINE)
    is_plain = VISIBLE.fullmatch(address) and HOST.fullmatch(host) and port != 0
    return is_guarded and bool(is_plain) and "@" not in parts.netloc and "#" not in address
