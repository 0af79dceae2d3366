"""Settings from the environment: each with its unit, its default and its check; a wrong one stops the start."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import time, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from auth.policy import Registration
from connectors.reachable import is_reachable
from handlers.loopback import is_loopback

PREFIX = "BANKDATA_"
IN_CLEAR = "The public address is http: passwords and tokens travel in clear. Put TLS in front and say https."
ADDRESS = "an absolute http or https address without query, such as https://bank.example.org"
IN_FILE = "_FILE"  # behind the name of a secret: the file that holds it
SECRET_CHARACTERS_MIN = 32
PAUSES_MAX = 20
WEBHOOK_RETRY_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)  # as Standard Webhooks proposes
LogFormat = Literal["text", "json"]
T = TypeVar("T")


class SettingError(ValueError):
    """A setting has a value that cannot be used, or a name that does not exist; the message says which, and what is
    expected."""


def _setting(default: Any, parse: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"parse": parse})


def _secret_setting(default: Any, parse: Callable[[str], Any]) -> Any:
    """A setting that holds a secret: it may also be given as a file, and is never shown."""
    return field(default=default, repr=False, metadata={"parse": parse, "is_secret": True})


def _text(pattern: str, expected: str) -> Callable[[str], str]:
    """A parser that returns a text if the pattern matches all of it, else raises ValueError with `expected`, which says
    in words what is allowed."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(expected)
        return text

    return parse


def _list(text: str, pattern: str, expected: str) -> list[str]:
    """The parts between the commas of a text, trimmed, each of which the pattern has to match; else ValueError."""
    part = _text(pattern, expected)
    return [part(each.strip()) for each in text.split(",")]


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(ADDRESS)
    return text.rstrip("/")


def _own_url(text: str) -> str:
    """An address of this service, which stands in tokens, headers and pages, and so needs no encoding anywhere."""
    return _url(_text(r"https?://[A-Za-z0-9.\-:\[\]]+(/[A-Za-z0-9._~\-/]*)?", ADDRESS)(text))


def _zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("a time zone name such as Europe/Berlin") from error


def _rate_limit(text: str) -> tuple[int, int] | None:
    if text == "off":
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,6})/([1-9][0-9]{0,5})s", text)
    if match is None:
        raise ValueError("requests per seconds such as 60/60s, or off")
    return int(match[1]), int(match[2])


def _registration_limit(text: str) -> tuple[int, timedelta]:
    match = re.fullmatch("([1-9][0-9]{0,5})/(second|minute|hour|day)", text)
    if match is None:
        raise ValueError("a number per time such as 20/hour")
    return int(match[1]), timedelta(**{f"{match[2]}s": 1})


def _whole_number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def _seconds(low: int, high: int) -> Callable[[str], timedelta]:
    whole = _whole_number(low, high)
    return lambda text: timedelta(seconds=whole(text))


def _pauses(text: str) -> tuple[timedelta, ...]:
    expected = f"up to {PAUSES_MAX} whole numbers of seconds separated by commas, such as 5,300,1800"
    parts = _list(text, "[0-9]{1,6}", expected)
    if len(parts) > PAUSES_MAX:
        raise ValueError(expected)
    return tuple(timedelta(seconds=int(part)) for part in parts)


def _times(text: str) -> tuple[time, ...]:
    if text == "off":
        return ()
    parts = _list(text, "([01][0-9]|2[0-3]):[0-5][0-9]", "times of the day such as 06:30,18:30, or off")
    return tuple(sorted({time.fromisoformat(part) for part in parts}))


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ValueError("addresses or networks separated by commas, such as 10.0.0.0/8,::1") from error


def _networks_or_off(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return () if text == "off" else _networks(text)
    except ValueError as error:
        raise ValueError(f"{error}, or off") from error


def _one_of(*words: str) -> Callable[[str], str]:
    return _text("|".join(words), "one of " + ", ".join(words))


def _on_or_off(text: str) -> bool:
    return _text("on|off", "on or off")(text) == "on"


def _client_ids(text: str) -> frozenset[str]:
    expected = "ids as `bankdata clients list` shows them, separated by commas"
    return frozenset(_list(text, "[A-Za-z0-9_-]{16,100}", expected))


def _hosts(text: str) -> frozenset[str] | None:
    """The names of the hosts in lower case; an empty set for `off`, None for `on`."""
    if text in ("on", "off"):
        return None if text == "on" else frozenset()
    expected = "on, off, or names of hosts separated by commas"
    return frozenset(_list(text.lower(), "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", expected))


def _database_url(text: str) -> str:
    if text.startswith("postgresql://"):
        return text
    if not text.startswith("duckdb:////") or text.endswith("/"):  # a relative path would be another store elsewhere
        raise ValueError(
            "duckdb:///PATH with an absolute path, such as duckdb:////var/lib/bankdata/bankdata.duckdb, or"
            " postgresql://USER@HOST/NAME"
        )
    return text


def _secrets(text: str) -> str:
    if not all(len(line) >= SECRET_CHARACTERS_MIN for line in text.splitlines()):
        raise ValueError(f"{SECRET_CHARACTERS_MIN} characters or more, such as `openssl rand -base64 32` prints")
    return text


def _rates_url(text: str) -> str:
    if not is_reachable(text):
        raise ValueError("an https address, such as https://mirror.example.org/eurofxref-hist.zip")
    return text


def _provider_url(text: str) -> str:
    if not is_reachable(text) or "?" in text:
        raise ValueError("an https address, such as https://bridge.example.org")
    return text.rstrip("/")


def _banks(text: str) -> tuple[tuple[str, str], ...]:
    named = [part.strip().partition("=") for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{8}", code) and is_reachable(address) for code, _, address in named):
        raise ValueError("bank codes with https addresses, such as 12345678=https://fints.bank.example/pintan")
    return tuple((code, address) for code, _, address in named)


_currency = _text("[A-Z]{3}", "a currency code of three capital letters")
_word = _text("[!-~]{1,200}", "an id without blanks")


def _data_home() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "bankdata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of the service; each name here is that of the environment without prefix, in lower case. What each
    one means stands in docs/settings.md alone."""

    data_dir: Path = _setting(None, Path)
    database_url: str = _secret_setting("", _database_url)
    database_app_url: str = _secret_setting(
        "",
        _text("postgresql://.*", "postgresql://USER@HOST/NAME, the database of BANKDATA_DATABASE_URL for another role"),
    )
    database_pool: int = _setting(10, _whole_number(1, 1_000))
    database_prepare: bool = _setting(True, _on_or_off)
    keys_secret: str = _secret_setting("", _secrets)
    public_url: str = _setting("http://127.0.0.1:8000", _own_url)
    auth_url: str = _setting("", _own_url)
    billing_url: str = _setting("", _url)
    time_zone: ZoneInfo = _setting(ZoneInfo("Europe/Berlin"), _zone)
    home_currency: str = _setting("EUR", _currency)
    rate_limit: tuple[int, int] | None = _setting((60, 60), _rate_limit)
    rate_limit_url: str = _secret_setting(
        "memory://", _text("memory://|rediss?://.*", "memory:// or redis://HOST:PORT")
    )
    sync_cooldown_seconds: timedelta = _setting(timedelta(minutes=30), _seconds(0, 86_400))
    schedule: tuple[time, ...] = _setting((time(6, 30), time(18, 30)), _times)
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting((), _networks)
    registration: Registration = _setting("open", _one_of("open", "token", "off"))
    registration_limit: tuple[int, timedelta] = _setting((20, timedelta(hours=1)), _registration_limit)
    refresh_reuse_seconds: timedelta = _setting(timedelta(0), _seconds(0, 60))
    writing_clients: frozenset[str] = _setting(frozenset(), _client_ids)
    client_documents: frozenset[str] | None = _setting(frozenset(), _hosts)
    rates_url: str = _setting("https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip", _rates_url)
    connection_keys: Path = _setting(None, Path)
    simplefin_url: str = _setting("https://bridge.simplefin.org", _provider_url)
    finapi_url: str = _setting("https://live.finapi.io", _provider_url)
    finapi_webform_url: str = _setting("https://webform.finapi.io", _provider_url)
    finapi_client: str = _setting("", _word)
    finapi_secret_file: Path | None = _setting(None, Path)
    fints_product: str = _setting("", _word)
    fints_banks: tuple[tuple[str, str], ...] = _setting((), _banks)
    enable_banking_url: str = _setting("https://api.enablebanking.com", _provider_url)
    enable_banking_application: str = _setting("", _word)
    enable_banking_key_file: Path | None = _setting(None, Path)
    events_heartbeat_seconds: timedelta = _setting(timedelta(seconds=15), _seconds(1, 3_600))
    webhooks_allow: tuple[IPv4Network | IPv6Network, ...] = _setting((), _networks)
    webhooks_retry_seconds: tuple[timedelta, ...] = _setting(
        tuple(timedelta(seconds=each) for each in WEBHOOK_RETRY_SECONDS), _pauses
    )
    webhooks_timeout_seconds: timedelta = _setting(timedelta(seconds=15), _seconds(1, 120))
    cache_mb: int = _setting(256, _whole_number(0, 1_000_000))
    log_level: str = _setting("info", _one_of("debug", "info", "warning", "error"))
    log_format: LogFormat = _setting("text", _one_of("text", "json"))
    metrics_for: tuple[IPv4Network | IPv6Network, ...] = _setting(_networks("127.0.0.0/8,::1"), _networks_or_off)
    simplefin_server: bool = _setting(True, _on_or_off)
    log_addresses: bool = _setting(False, _on_or_off)

    @property
    def store_path(self) -> Path | None:
        """The path of the DuckDB file; None where the store is a PostgreSQL database."""
        path = self.database_url.removeprefix("duckdb:///")
        return None if path == self.database_url else Path(path)

    @property
    def store_name(self) -> str:
        """How to name the store to people: the path of its file, or the address of its database without user and
        password."""
        if self.store_path is not None:
            return str(self.store_path)
        parts = urlsplit(self.database_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def is_in_clear(self) -> bool:
        """Whether passwords and tokens cross a network without TLS: whether an address of the service is http and not
        this machine's own."""
        parts = [urlsplit(address) for address in (self.public_url, self.auth_url)]
        return any(part.scheme == "http" and not is_loopback(part.hostname or "") for part in parts)

    @property
    def base_url(self) -> str:
        """The address of the data interface; it is also the audience of access tokens."""
        return f"{self.public_url}/api/v1"


def load(
    environment: Mapping[str, str], *, data_dir: Path | None = None, address: str = "http://127.0.0.1:8000"
) -> Settings:
    """The settings read from an environment. `data_dir` comes from the command line and wins over the environment;
    `address` is where the server listens, which is its public address unless the environment says otherwise.

    Raises SettingError with one sentence, also for a BANKDATA_ name that does not exist: a typing error must not
    silently leave a default in place.
    """
    known = {PREFIX + item.name.upper(): item for item in fields(Settings)}
    in_files = {name + IN_FILE for name, item in known.items() if "is_secret" in item.metadata}
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known.keys() | in_files)
    if unknown:
        raise SettingError(f"{unknown[0]}: there is no such setting. docs/settings.md lists all of them.")
    values: dict[str, Any] = {}
    for name, item in known.items():
        is_secret = "is_secret" in item.metadata
        text = (_secret_value(environment, name) if is_secret else environment.get(name, "")).strip()
        if text:
            try:
                values[item.name] = item.metadata["parse"](text)
            except ValueError as error:
                shown = "the value" if is_secret else repr(text)
                raise SettingError(f"{name}: {shown} cannot be used, expected {error}.") from error
    data_dir = (data_dir or values.get("data_dir") or _data_home()).expanduser().absolute()
    values["data_dir"] = data_dir
    values.setdefault("connection_keys", data_dir / "connection-keys.json")
    values.setdefault("database_url", f"duckdb:///{data_dir / 'bankdata.duckdb'}")
    public_url = values.setdefault("public_url", address)
    values.setdefault("auth_url", public_url)
    values.setdefault("billing_url", f"{public_url}/billing")
    return Settings(**values)


def _secret_value(environment: Mapping[str, str], name: str) -> str:
    """The value of a secret setting: from the environment itself, or from the file that the environment names instead;
    empty if neither is set. Raises SettingError."""
    text, file = environment.get(name, "").strip(), environment.get(name + IN_FILE, "").strip()
    if not file:
        return text
    if text:
        raise SettingError(f"{name} and {name}{IN_FILE} are both set: one of them says it.")
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        raise SettingError(f"{name}{IN_FILE}: {file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"{name}{IN_FILE}: {file} is not a text in UTF-8.") from error
