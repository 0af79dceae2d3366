"""How settings are read: a parser for each kind, which raises ValueError with what is expected."""

import re
from collections.abc import Callable
from datetime import time, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.reachable import is_reachable
from connectors.ways.apprise import NEVER

ADDRESS = "an absolute http or https address without query, such as https://bank.example.org"
SECRET_CHARACTERS_MIN = 32
PAUSES_MAX = 20


def matching(pattern: str, expected: str) -> Callable[[str], str]:
    """A parser that returns a text if the pattern matches all of it, else raises ValueError with `expected`, which says
    in words what is allowed."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(expected)
        return text

    return parse


def all_matching(text: str, pattern: str, expected: str) -> list[str]:
    """The parts between the commas of a text, trimmed, each of which the pattern has to match; else ValueError."""
    part = matching(pattern, expected)
    return [part(each.strip()) for each in text.split(",")]


def url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(ADDRESS)
    return text.rstrip("/")


def own_url(text: str) -> str:
    """An address of this service, which stands in tokens, headers and pages, and so needs no encoding anywhere."""
    return url(matching(r"https?://[A-Za-z0-9.\-:\[\]]+(/[A-Za-z0-9._~\-/]*)?", ADDRESS)(text))


def zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("a time zone name such as Europe/Berlin") from error


def rate_limit(text: str) -> tuple[int, int] | None:
    if text == "off":
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,6})/([1-9][0-9]{0,5})s", text)
    if match is None:
        raise ValueError("requests per seconds such as 60/60s, or off")
    return int(match[1]), int(match[2])


def registration_limit(text: str) -> tuple[int, timedelta]:
    match = re.fullmatch("([1-9][0-9]{0,5})/(second|minute|hour|day)", text)
    if match is None:
        raise ValueError("a number per time such as 20/hour")
    return int(match[1]), timedelta(**{f"{match[2]}s": 1})


def whole_number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def seconds(low: int, high: int) -> Callable[[str], timedelta]:
    whole = whole_number(low, high)
    return lambda text: timedelta(seconds=whole(text))


def pauses(text: str) -> tuple[timedelta, ...]:
    expected = f"up to {PAUSES_MAX} whole numbers of seconds separated by commas, such as 5,300,1800"
    parts = all_matching(text, "[0-9]{1,6}", expected)
    if len(parts) > PAUSES_MAX:
        raise ValueError(expected)
    return tuple(timedelta(seconds=int(part)) for part in parts)


def times(text: str) -> tuple[time, ...]:
    if text == "off":
        return ()
    parts = all_matching(text, "([01][0-9]|2[0-3]):[0-5][0-9]", "times of the day such as 06:30,18:30, or off")
    return tuple(sorted({time.fromisoformat(part) for part in parts}))


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ValueError("addresses or networks separated by commas, such as 10.0.0.0/8,::1") from error


def networks_or_off(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return () if text == "off" else networks(text)
    except ValueError as error:
        raise ValueError(f"{error}, or off") from error


def notice_schemes(text: str) -> tuple[str, ...]:
    expected = "names such as ntfys,gotifys, none that write to this machine, or off"
    named = () if text == "off" else tuple(all_matching(text, "[a-z0-9]{2,20}", expected))
    if NEVER & set(named):
        raise ValueError(expected)
    return named


def one_of(*words: str) -> Callable[[str], str]:
    return matching("|".join(words), "one of " + ", ".join(words))


def on_or_off(text: str) -> bool:
    return matching("on|off", "on or off")(text) == "on"


def client_ids(text: str) -> frozenset[str]:
    expected = "ids as `bankdata clients list` shows them, separated by commas"
    return frozenset(all_matching(text, "[A-Za-z0-9_-]{16,100}", expected))


def hosts(text: str) -> frozenset[str] | None:
    """The names of the hosts in lower case; an empty set for `off`, None for `on`."""
    if text in ("on", "off"):
        return None if text == "on" else frozenset()
    expected = "on, off, or names of hosts separated by commas"
    return frozenset(all_matching(text.lower(), "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", expected))


def database_url(text: str) -> str:
    if text.startswith("postgresql://"):
        return text
    if not text.startswith("duckdb:////") or text.endswith("/"):  # a relative path would be another store elsewhere
        raise ValueError(
            "duckdb:///PATH with an absolute path, such as duckdb:////var/lib/bankdata/bankdata.duckdb, or"
            " postgresql://USER@HOST/NAME"
        )
    return text


def secrets(text: str) -> str:
    if not all(len(line) >= SECRET_CHARACTERS_MIN for line in text.splitlines()):
        raise ValueError(f"{SECRET_CHARACTERS_MIN} characters or more, such as `openssl rand -base64 32` prints")
    return text


def rates_url(text: str) -> str:
    if not is_reachable(text):
        raise ValueError("an https address, such as https://mirror.example.org/eurofxref-hist.zip")
    return text


def provider_url(text: str) -> str:
    if not is_reachable(text) or "?" in text:
        raise ValueError("an https address, such as https://bridge.example.org")
    return text.rstrip("/")


def banks(text: str) -> tuple[tuple[str, str], ...]:
    named = [part.strip().partition("=") for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{8}", code) and is_reachable(address) for code, _, address in named):
        raise ValueError("bank codes with https addresses, such as 12345678=https://fints.bank.example/pintan")
    return tuple((code, address) for code, _, address in named)


currency = matching("[A-Z]{3}", "a currency code of three capital letters")
word = matching("[!-~]{1,200}", "an id without blanks")


def label(text: str) -> str:
    """A name to be shown on a page."""
    if not text.isprintable() or len(text) > 40:
        raise ValueError("up to 40 letters, such as Authelia")
    return text


def claim(text: str) -> tuple[str, frozenset[str]]:
    """The name of a claim and the values of which one is asked for."""
    name, is_there, values = text.partition("=")
    listed = frozenset(filter(None, (each.strip() for each in values.split(","))))
    if not is_there or not re.fullmatch(r"[!-<>-~]{1,200}", name.strip()) or not listed:
        raise ValueError("the name of a claim and its values, such as groups=family,friends")
    return name.strip(), listed
